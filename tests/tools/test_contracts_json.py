"""JSON from an engine and for one: RFC 8259 and nothing else, every digit of an integer kept."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastrpc.tools.contracts import _strict_json
from fastrpc.tools.contracts._bridge import answers
from fastrpc.tools.contracts._errors import ENGINE_PROTOCOL, EngineError
from hypothesis import given
from hypothesis import strategies as st

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**40), 10**40)
    | st.floats(allow_nan=False, allow_infinity=False, width=32)
    | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(JSON, st.sampled_from(["", " ", "\n\t "]))
def test_a_value_is_read_as_it_was_written(value: Any, space: str) -> None:
    text = space + json.dumps(value, allow_nan=False) + space
    assert repr(answers.parsed(text.encode())) == repr(answers.parsed(text)) == repr(value)
    assert repr(_strict_json.decode(text)) == repr(value)


@pytest.mark.parametrize(
    "number", [2**63 - 1, 2**63, 2**64, 2**64 + 1, 10**18 - 1, -(10**18) - 1, 10**25 + 1, 10**30 + 1]
)
def test_integers_keep_every_digit(number: int) -> None:
    assert repr(answers.parsed(b'{"a":[%d]}' % number)) == repr({"a": [number]})


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "NaN",
        "[Infinity]",
        "-Infinity",
        "{",
        "[1,]",
        "{'a': 1}",
        '"\x01"',
        "1 2",
        "nul",
        "[1] x",
        "\ufeff1",
    ],
)
def test_what_is_no_json_is_refused(text: str) -> None:
    for given_text in (text, text.encode()):
        with pytest.raises(EngineError) as caught:
            answers.parsed(given_text)
        assert caught.value.code == ENGINE_PROTOCOL
    with pytest.raises(ValueError, match=r"."):
        _strict_json.decode(text)


def test_bytes_that_are_no_utf_8_are_refused_and_halves_of_pairs_are_read() -> None:
    with pytest.raises(EngineError):
        answers.parsed(b'"\xff"')
    assert answers.parsed(rb'"\ud800"') == "\ud800"
    with pytest.raises(EngineError):
        answers.parsed(b"[" * 100_000)

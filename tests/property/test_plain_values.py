"""Plain values: the compiled writer against the standard library, and both ways to a result."""

from __future__ import annotations

import json
import math
import struct
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastrpc._core.encoder import (
    OBJECT_FORM,
    TEXT_FORM,
    WRAPPED_FORM,
    OutputBuffer,
    dumps,
    plain_json,
    result_of,
)
from fastrpc.engine.results import Results
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, VERSIONS
from fastrpc.schema import describe
from fastrpc.tool_style import PLAIN

TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=40),
    st.text('ab"\\\n\x00\x1f\x7fé漢🎉', max_size=40),
    st.builds(str.__mul__, st.sampled_from(["x", 'x"', "é", "\x00", "漢\\"]), st.integers(0, 3000)),
)  # fmt: skip
DOUBLES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.builds(round, st.floats(-1e10, 1e10), st.integers(0, 8)),
    st.builds("{}e{}".format, st.integers(0, 10**17), st.integers(-340, 290)).map(float),
)  # fmt: skip
LEAVES = st.one_of(st.none(), st.booleans(), st.integers(), st.integers(-(2**70), 2**70), DOUBLES, TEXTS)
VALUES = st.recursive(
    LEAVES,
    lambda values: st.one_of(
        st.lists(values, max_size=6),
        st.lists(values, max_size=3).map(tuple),
        st.dictionaries(TEXTS, values, max_size=6),
    ),
    max_leaves=30,
)
ODD = st.sampled_from(
    [
        math.nan,
        math.inf,
        -math.inf,
        "\ud800",
        "long and then \udfff",
        object(),
        {1, 2},
        b"",
        {1: 2},
        {None: 1},
    ]
)
MIXED = st.recursive(st.one_of(LEAVES, ODD), lambda values: st.lists(values, max_size=4), max_leaves=8)
RESULTS = Results({"name": "t", "version": "1"})


class Tool:
    """As much of a tool as a result asks for."""

    def __init__(self, annotation: Any) -> None:
        def give():  # type: ignore[no-untyped-def]
            pass

        give.__annotations__["return"] = annotation
        self.signature = describe(give)
        self.style = PLAIN


BY_FORM = {TEXT_FORM: Tool(Any), OBJECT_FORM: Tool(dict), WRAPPED_FORM: Tool(list)}
KIND_OF_FORM = {OBJECT_FORM: dict, WRAPPED_FORM: (list, tuple)}


def standard(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()


def is_plain(value: Any) -> bool:
    """Say what the writer promises to take."""
    if type(value) is str:
        return not any("\ud800" <= character <= "\udfff" for character in value)
    if type(value) is float:
        return math.isfinite(value)
    if type(value) in (list, tuple):
        return all(map(is_plain, value))
    if type(value) is dict:
        return all(
            type(name) is str and is_plain(name) and is_plain(member) for name, member in value.items()
        )
    return value is None or type(value) in (int, bool)


@settings(max_examples=400)
@given(VALUES)
@example({"": [], "a": {}, "b": [[{}]]})
@example(["x" * 1023, "x" * 1024, "x" * 1025 + "é", "x" * 5000 + '"', "y" * 70_000])
@example([2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**400])
def test_plain_values_are_written_as_the_standard_library_writes_them(value: Any) -> None:
    assert plain_json(value) == dumps(value) == standard(value)


@settings(max_examples=400)
@given(st.lists(st.binary(min_size=8, max_size=8), min_size=1, max_size=200), DOUBLES)
def test_every_double_is_written_as_repr_writes_it(bits: list[bytes], other: float) -> None:
    doubles = [struct.unpack("<d", eight)[0] for eight in bits] + [other, math.nextafter(other, 0)]
    doubles = [double for double in doubles if math.isfinite(double)]
    assert plain_json(doubles) == f"[{','.join(map(repr, doubles))}]".encode()


@pytest.mark.parametrize("exponent", range(-1074, 1024, 30))
def test_doubles_around_each_power_of_two_are_written_as_repr_writes_them(exponent: int) -> None:
    for power in range(exponent, min(exponent + 30, 1024)):
        two = math.ldexp(1.0, power)
        for double in (two, math.nextafter(two, 0), math.nextafter(two, math.inf), -two):
            assert plain_json(double) == repr(double).encode()


@settings(max_examples=200)
@given(VALUES, st.sampled_from([TEXT_FORM, OBJECT_FORM, WRAPPED_FORM]), st.sampled_from(VERSIONS))
def test_both_ways_to_a_result_agree(value: Any, form: int, version: str) -> None:
    if value is None or isinstance(value, str):
        return
    if form in KIND_OF_FORM and not isinstance(value, KIND_OF_FORM[form]):
        return  # refused: the output schema says otherwise
    of = RESULTS.of(BY_FORM[form], value, version)  # type: ignore[arg-type]
    likely = RESULTS._rare_value(value, form, version)
    if version < "2025-06-18":
        likely = RESULTS._rare_value(value, TEXT_FORM, version)
        form = TEXT_FORM
    assert of == likely
    output = OutputBuffer()
    assert output.value(b"7", value, form, RESULTS.endings(version)[form])
    assert output.take() == b'{"jsonrpc":"2.0","id":7,"result":' + of + b"}\n"
    result = json.loads(of)
    assert result["content"] == [{"type": "text", "text": standard(value).decode()}]
    beside = {WRAPPED_FORM: {"result": value}, OBJECT_FORM: value if isinstance(value, dict) else None}
    assert result.get("structuredContent") == json.loads(standard(beside.get(form)))


@settings(max_examples=200)
@given(MIXED)
def test_what_is_refused_leaves_nothing_behind(value: Any) -> None:
    output = OutputBuffer()
    output.value(b"1", [1], TEXT_FORM, RESULTS.endings(LATEST_SESSION_VERSION)[0])
    before = output.end
    written = output.value(b"2", [value], WRAPPED_FORM, RESULTS.endings(LATEST_SESSION_VERSION)[2])
    assert written == is_plain(value) == (plain_json(value) is not None)
    assert (result_of([value], TEXT_FORM, b'"}]}') is not None) == written
    lines = output.take().splitlines()
    assert len(lines) == 1 + written
    assert written or before == len(lines[0]) + 1
    assert json.loads(lines[0])["id"] == 1

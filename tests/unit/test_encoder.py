"""The encoder against the standard library: every string and value comes back as it was."""

from __future__ import annotations

import json
import os
import random
from typing import Any

import pytest

from fastrpc._core.encoder import OutputBuffer, dumps, quoted

SEED = int(os.environ.get("FASTRPC_SEED", "1"))
ODD = 'ab"\\\n\x00\x1f\x7f é漢🎉/\u2028'
PLAIN = "abcdefgh XYZ019"


def texts(count: int) -> list[str]:
    """Texts of every length up to 80, plain ones and odd ones, so that each step of the escaper is met."""
    chance = random.Random(SEED)
    return [
        "".join(chance.choice(ODD if chance.random() < share else PLAIN) for _ in range(number % 80))
        for number in range(count)
        for share in (0.0, 0.05, 0.5)
    ]


@pytest.mark.parametrize("part", range(4), ids=lambda part: f"seed={SEED}.{part}")
def test_strings_come_back_as_they_were(part: int) -> None:
    for text in texts(8000)[part::4]:
        encoded = quoted(text)
        assert json.loads(encoded) == text
        assert min(encoded) >= 0x20


def test_every_character_at_every_place_of_a_block_is_escaped() -> None:
    for length in (1, 7, 8, 9, 15, 16, 17, 24, 31, 33):
        for at in range(length):
            for odd in '"\\\n\x00\x1f\x7f\x80é':
                text = "x" * at + odd + "y" * (length - at - 1)
                assert json.loads(quoted(text)) == text


def test_a_long_text_reserves_no_more_than_it_needs() -> None:
    output = OutputBuffer()
    output.text(b"1", "x" * 1_000_000 + '"' * 10, b'"}]}}\n')
    assert output.end < 1_001_000
    assert output.take().count(b'\\"') == 10
    assert output.end == 0


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        False,
        0,
        -1,
        2**80,
        1.5,
        -0.0,
        1e300,
        "",
        "é",
        [],
        {},
        [1, [2, {"a": None}]],
        {"b": 1, "a": (2, 3)},
    ],
)
def test_plain_values_are_encoded_like_the_standard_library_does(value: Any) -> None:
    assert dumps(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1: 2}, {1, 2}, b"bytes"])
def test_what_is_no_plain_value_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        dumps(value)


def test_a_lone_surrogate_is_refused_before_anything_is_written() -> None:
    output = OutputBuffer()
    with pytest.raises(UnicodeEncodeError):
        output.text(b"1", "x\ud800", b"")
    assert output.take() == b""


@pytest.mark.parametrize("alphabet", ["é ÿ", "é漢\uffff\u0800\u07ff", "🎉\U0010ffff漢é", "plain"])
def test_texts_of_every_width_come_back_as_they_were(alphabet: str) -> None:
    chance = random.Random(SEED)
    output = OutputBuffer()
    for length in [*range(70), 20_000, 70_000]:
        for share in (0.02, 0.5, 1.0):
            text = "".join(
                chance.choice(alphabet + '"\\\n\x00') if chance.random() < share else "x"
                for _ in range(length)
            )
            output.text(b"1", text, b'"}]}}\n')
            assert json.loads(output.take())["result"]["content"][0]["text"] == text


def test_half_a_pair_after_a_long_text_leaves_earlier_answers_whole() -> None:
    output = OutputBuffer()
    output.text(b"1", "é" * 40_000, b'"}]}}\n')
    whole = output.end
    with pytest.raises(UnicodeEncodeError):
        output.text(b"2", "é" * 40_000 + "\ud800", b'"}]}}\n')
    assert output.end == whole

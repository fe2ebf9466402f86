"""The columns of the access log against a plain-Python writer of the same rule: printable ASCII as it is,
what separates columns and everything else as JSON escapes it."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastrpc._core.access_buffer import AccessBuffer

LONGEST = 256
CHARACTERS = 'ab0~ \\"\t\n\x00\x1f\x7f\x80é漢👩\u2028'


def escaped(character: str, special: str) -> str:
    if " " <= character < "\x7f" and character not in (special, "\\"):
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at] << 8 | units[at + 1]:04x}" for at in range(0, len(units), 2))


def line_of(name: str, *, as_json: bool) -> str:
    buffer = AccessBuffer()
    buffer.note(0, None, "", "tools/call", name, b"1", 200, "ok", 1, 2)
    return buffer.take(as_json).decode("ascii")


texts = st.text(st.sampled_from(CHARACTERS), min_size=1, max_size=60)


@settings(max_examples=800, deadline=None)
@given(texts)
@example("a" * 15 + "\\")
@example("a" * 16 + " ")
@example("a" * 31 + "é" + "b" * 16)
def test_a_name_is_one_column_and_one_string(name: str) -> None:
    assert len(name.encode()) <= LONGEST
    columns = line_of(name, as_json=False).split(" ")
    assert columns[4] == "".join(escaped(character, " ") for character in name)
    text = line_of(name, as_json=True)
    assert json.loads(text)["name"] == name
    assert f'"name":"{"".join(escaped(character, chr(34)) for character in name)}"' in text


@pytest.mark.parametrize("special", [" ", "\\", "\x1f", "\x7f", "\x80", "é"])
@pytest.mark.parametrize("at", range(40))
def test_what_is_escaped_is_found_wherever_it_is(special: str, at: int) -> None:
    name = "x" * at + special + "y" * 20
    expected = "x" * at + escaped(special, " ") + "y" * 20
    assert line_of(name, as_json=False).split(" ")[4] == expected

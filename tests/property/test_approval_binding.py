"""What an approval is bound to: of two calls that differ in anything that could run, neither runs by the
other's approval; two spellings of one call are one."""

from __future__ import annotations

import json
import struct
import unicodedata
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc import Server
from fastrpc.guard.approvals.binding import Binding, indented, shown, tagged
from fastrpc.guard.approvals.canonical import Unbindable, canonical

CALL: dict[str, Any] = {
    "caller": "ada#1",
    "server": "shop",
    "kind": "tool",
    "name": "wipe",
    "policy": "p1",
    "arguments": {"a": 1, "b": [1.5, "x"]},
    "schema": {"type": "object"},
}
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(min_value=2**53 - 3, max_value=2**53 + 3),
    st.floats(),
    st.text(st.characters(exclude_categories=())),  # lone surrogates, too
    st.sampled_from(["$integer", "$float", "$object", "e\u0301", "\u00e9", "1", "1.0", "true", "null"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.text(max_size=4) | SCALARS.filter(lambda key: isinstance(key, str)), inner, max_size=3
        )
    ),
    max_leaves=6,
)


def digest(arguments: Any) -> bytes:
    return Binding(**{**CALL, "arguments": {"value": arguments}}).digest


def exactly(value: Any) -> Any:
    """A value as one that equals another only if Python could tell neither apart."""
    if isinstance(value, dict):
        return ("dict", frozenset((key, exactly(each)) for key, each in value.items()))
    if isinstance(value, list):
        return ("list", tuple(map(exactly, value)))
    if isinstance(value, float):
        return ("float", struct.pack(">d", value))
    return (type(value).__name__, repr(value))


@settings(max_examples=500, deadline=None)
@given(VALUES, VALUES)
def test_two_values_have_one_digest_only_if_they_are_the_same(one: Any, other: Any) -> None:
    assert (digest(one) == digest(other)) == (exactly(one) == exactly(other))


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_a_value_that_comes_back_through_json_keeps_its_digest(value: Any) -> None:
    again = json.loads(json.dumps(value))
    if exactly(again) == exactly(value):
        assert digest(again) == digest(value)


PAIRS: list[tuple[Any, Any]] = [
    (1, 1.0),
    (1, True),
    (0, False),
    (0, None),
    (0.0, -0.0),
    (1, "1"),
    (2**53, 2**53 + 1),
    (2**53, float(2**53)),
    (10**30, 10**30 + 1),
    (1e300, 1e301),
    (0.1, 0.1 + 2**-55),
    (float("nan"), "nan"),
    (float("inf"), float("-inf")),
    (float("inf"), {"$float": "inf"}),
    ("e\u0301", "\u00e9"),
    ("\ufb01", "fi"),
    ("a", "a\u200b"),
    ("a", "a "),
    ("\ud800", "\ud801"),
    ("\ud800", {"$text": "d800"}),
    ("\U00010000", "\ud800"),
    ("", None),
    ([], {}),
    ([], None),
    ([[]], [[], []]),
    (["a", "b"], ["b", "a"]),
    (["a", "b"], ["a,b"]),
    ({"a": 1}, {"a": 1, "b": None}),
    ({"a": {"b": 1}}, {"a.b": 1}),
    ({"$integer": "0x1"}, 1),
    ({"$object": [["a", 1]]}, {"a": 1}),
    ({"": 1}, {}),
    ({"\u00e9": 1}, {"e\u0301": 1}),
    (b"a", "a"),
    ((1,), [1]),
    ({1}, [1]),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_a_pair_that_differs_in_one_thing_has_two_digests(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)
    assert digest([one]) != digest([other])
    assert digest({"k": one}) != digest({"k": other})
    assert digest(one) == digest(one)


@pytest.mark.parametrize("part", ["caller", "server", "kind", "name", "policy", "schema", "arguments"])
def test_every_part_of_a_call_is_bound(part: str) -> None:
    one = Binding(**CALL)
    other = Binding(**{**CALL, part: {"x": 1} if isinstance(CALL[part], dict) else CALL[part] + "x"})
    assert one.digest != other.digest
    assert (one.call_digest == other.call_digest) == (part in ("policy", "schema"))


def test_parts_do_not_run_into_each_other() -> None:
    one = Binding(**{**CALL, "caller": "ada", "server": "shopx"})
    other = Binding(**{**CALL, "caller": "adas", "server": "hopx"})
    assert one.digest != other.digest


class Colour(Enum):
    RED = 1


@dataclass
class Point:
    x: int


@dataclass
class Place:
    x: int


def test_objects_of_other_types_are_bound_by_their_type_and_content() -> None:
    found = [Point(1), Point(2), Place(1), {"x": 1}, Colour.RED, Path("/a"), Path("/b"), "/a", {1, 2}, {1, 3}]
    assert len({digest(each) for each in found}) == len(found)
    assert digest(Point(1)) == digest(Point(1))
    assert digest({1, 2, 3}) == digest({3, 2, 1})


def test_what_has_no_canonical_form_is_refused() -> None:
    with pytest.raises(Unbindable, match="an argument of the type object has no canonical form"):
        digest(object())
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(Unbindable, match="nested too deeply"):
        tagged(deep)


LINES = [
    '{"item":"pen","count":1}',
    '{"count":1,"item":"pen"}',
    '{ "item" : "\\u0070en", "count" : 1 }',
    '{"item":"pen"}',
    '{"item":"cap","item":"pen","count":1}',
    '{"item":"pen","count":1.0}',
]


def test_spellings_of_one_call_are_one_once_they_are_bound() -> None:
    """Key order, white space, escapes, a default that is left out, a duplicate key of which the last is
    taken."""
    app = Server("shop")

    @app.tool
    def order(item: str, count: int = 1) -> str:
        return ""

    tool = app.registries.tools.get("order")
    assert tool is not None
    found = set()
    for line in LINES:
        arguments = tool.signature.named(tool.signature.bind(json.loads(line)))
        found.add(Binding(**{**CALL, "arguments": arguments}).digest)
    assert len(found) == 1


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4))
def test_what_people_are_shown_hides_no_character(arguments: dict[str, Any]) -> None:
    text = shown(canonical(arguments))
    assert text.isprintable()
    for line in indented(text).split("\n"):
        assert line.isprintable()
    if "****" not in text and "\\ud" not in text:
        assert exactly(json.loads(text)) == exactly(json.loads(json.dumps(canonical(arguments))))


def test_a_text_that_turns_its_direction_is_shown_escaped() -> None:
    text = shown({"place": "a\u202etxt.exe\u202c\u200b"})
    assert text == '{"place": "a\\u202etxt.exe\\u202c\\u200b"}'
    assert all(unicodedata.category(each) != "Cf" for each in text)

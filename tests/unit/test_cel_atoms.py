"""The atoms of a condition: their states, what they read, and the ways to make the condition false."""

from __future__ import annotations

from typing import Any

import pytest

from fastrpc.guard import cel
from fastrpc.guard.cel.atoms import ABSENT, Atoms, text_of


def atoms_of(source: str) -> Atoms:
    return cel.compile(source, {"args": cel.map_of(cel.DYN), "caller": cel.map_of(cel.DYN)}).atoms


def ways(source: str, **args: Any) -> list[tuple[tuple[str, ...], Any]]:
    atoms, values = atoms_of(source), {"args": args}
    found = atoms.ways(values, atoms.states(values))
    return [
        (way.needs, way.example and {text_of(path): value for path, value in way.example.items()})
        for way in found
    ]


@pytest.mark.parametrize(
    ("source", "args", "expected"),
    [
        ("args.n > 10", {"n": 11}, [(("args.n <= 10",), {"args.n": 10})]),
        ("args.n >= 10", {"n": 10}, [(("args.n < 10",), {"args.n": 9})]),
        ("args.n < 10", {"n": 9}, [(("args.n >= 10",), {"args.n": 10})]),
        ("args.n <= 10", {"n": 10}, [(("args.n > 10",), {"args.n": 11})]),
        ("10 < args.n", {"n": 11}, [(("10 >= args.n",), {"args.n": 10})]),
        ("args.n > 1.5", {"n": 2.0}, [(("args.n <= 1.5",), {"args.n": 1.5})]),
        ("args.w == 'x'", {"w": "x"}, [(("args.w != 'x'",), {"args.w": "xx"})]),
        ("args.w != 'x'", {"w": "y"}, [(("args.w == 'x'",), {"args.w": "x"})]),
        ("args.w in ['x', 'yy']", {"w": "x"}, [(("!(args.w in ['x', 'yy'])",), {"args.w": "yyx"})]),
        ("'x' in args.l", {"l": ["x", "y"]}, [(("!('x' in args.l)",), {"args.l": ["y"]})]),
        ("args.w.startsWith('x')", {"w": "xy"}, [(("!args.w.startsWith('x')",), {"args.w": ""})]),
        ("has(args.w)", {"w": 1}, [(("!has(args.w)",), {"args.w": ABSENT})]),
        ("args.f", {"f": True}, [(("!args.f",), {"args.f": False})]),
        ("!args.f", {"f": False}, [(("args.f",), {"args.f": True})]),
        ("size(args.w) > 1", {"w": "xyz"}, [(("size(args.w) <= 1",), {"args.w": "x"})]),
        ("args['a b'].c == 1", {"a b": {"c": 1}}, [(("args['a b'].c != 1",), {'args["a b"].c': 2})]),
        ("args.l[0] == 1", {"l": [1, 2]}, [(("args.l[0] != 1",), {"args.l[0]": 2})]),
        ("args.w.matches('^x')", {"w": "xy"}, [(("!args.w.matches('^x')",), {"args.w": "^x"})]),
        ("args.a + 1 > 2", {"a": 2}, [(("args.a + 1 <= 2",), None)]),
        ("args.a / args.b > 1", {"a": 1, "b": 0}, [(("args.a / args.b <= 1",), None)]),
        ("true", {}, []),
        ("1 < 2", {}, []),
        ("args.n == 3 || args.n != 3", {"n": 3}, []),
    ],
)
def test_one_atom(source: str, args: dict[str, Any], expected: list[Any]) -> None:
    assert ways(source, **args) == expected


def test_each_part_of_an_and_is_enough_and_all_of_an_or_are_needed() -> None:
    assert [needs for needs, _ in ways("args.a > 1 && args.b", a=2, b=True)] == [
        ("args.a <= 1",),
        ("!args.b",),
    ]
    assert [needs for needs, _ in ways("args.a > 1 || args.b", a=2, b=True)] == [("args.a <= 1", "!args.b")]
    assert [needs for needs, _ in ways("args.a > 1 || args.b", a=2, b=False)] == [("args.a <= 1",)]
    assert [needs for needs, _ in ways("args.c ? args.a > 1 : args.b", a=2, b=True, c=True)] == [
        ("args.a <= 1",)
    ]


def test_a_way_says_what_other_atoms_of_the_same_value_need_too() -> None:
    assert ways("args.n > 10 || args.n == 5", n=11) == [(("args.n <= 10", "args.n != 5"), {"args.n": 10})]


def test_what_is_said_twice_is_one_atom() -> None:
    atoms = atoms_of("args.a > 1 && args.b || args.a > 1 && args.c")
    assert [atom.text for atom in atoms.atoms] == ["args.a > 1", "args.b", "args.c"]


def test_states_are_true_false_or_the_words_of_an_error() -> None:
    atoms = atoms_of("args.a > 1 && args.b / 0 > 1 || args.c")
    assert atoms.states({"args": {"a": 2, "b": 1, "c": 7}}) == [
        True,
        "error: /: division by zero",
        "error: this is neither true nor false",
    ]
    assert atoms.states({}) == ["error: args: it is not there"] * 3


@pytest.mark.parametrize(
    ("source", "states", "expected"),
    [
        ("args.a || args.b", ["error", True], True),
        ("args.a || args.b", ["error", False], "error"),
        ("args.a && args.b", ["error", False], False),
        ("args.a && args.b", [True, "error"], "error"),
        ("!args.a", ["error"], "error"),
        ("!args.a", [False], True),
        ("args.a ? args.b : args.c", ["error", True, True], "error"),
        ("args.a ? args.b : args.c", [False, "error", True], True),
    ],
)
def test_the_outcome_is_what_an_evaluation_would_find(source: str, states: list[Any], expected: Any) -> None:
    assert atoms_of(source).outcome(states) == expected


def test_only_what_is_read_is_taken_from_the_values() -> None:
    atoms = atoms_of("args.o.mode == 'x' && size(args.l) > 1 && caller.class == 'a' && has(args.none)")
    values = {
        "args": {"o": {"mode": "x", "key": 1}, "l": [1, 2], "pin": 7},
        "caller": {"class": "a", "name": "ada"},
    }
    assert atoms.read(values) == {"args": {"o": {"mode": "x"}, "l": [1, 2]}, "caller": {"class": "a"}}
    assert atoms_of("size(args) > 1").read(values) == {"args": values["args"]}
    assert atoms_of("size(args.o) > 1 || args.o.mode == 'x'").read(values) == {
        "args": {"o": values["args"]["o"]}
    }
    assert values["args"] == {"o": {"mode": "x", "key": 1}, "l": [1, 2], "pin": 7}


def test_without_values_only_atoms_that_share_nothing_are_named() -> None:
    atoms = atoms_of("args.a > 1 && args.b")
    assert [way.needs for way in atoms.ways(None, [True, True])] == [("args.a <= 1",), ("!args.b",)]
    assert atoms_of("args.a > 1 || args.a < 0").ways(None, [True, False]) == []


def test_a_rule_of_many_parts_is_explained_in_bounded_work() -> None:
    source = " || ".join(f"args.a{number} > {number}" for number in range(60))
    assert ways(source, **{f"a{number}": 100 for number in range(60)}) == []

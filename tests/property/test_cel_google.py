"""Rules against CEL's implementation in C++ by Google: an expression has the same value, or fails in both.

Where the two differ on purpose is in the table of `fastrpc.guard.cel`. What is generated here avoids these
differences.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, event, example, given, settings
from test_cel_text import VALUES, VARIABLES, expressions

from fastrpc.guard.cel import EvaluationError, RuleError, RuleTypeError, compile

cel: Any = pytest.importorskip(
    "cel_expr_python.cel",
    reason="no CEL to compare with: pip install cel-expr-python (CPython 3.11 and newer)",
)

FAILED = "failed"
REFUSED = "refused"
ENVIRONMENT = cel.NewEnv(variables=dict.fromkeys(VARIABLES, cel.Type.DYN))
FAR = 2.0**53
END = 2.0**63


def exact(value: Any) -> Any:
    """A value whose types count: 1, 1.0 and true differ."""
    if isinstance(value, list):
        return [exact(each) for each in value]
    if isinstance(value, dict):
        return {key: exact(each) for key, each in value.items()}
    return type(value).__name__, value


def here(source: str, given_values: dict[str, Any]) -> Any:
    try:
        return exact(compile(source, VARIABLES).evaluate(given_values))
    except RuleError:
        return REFUSED
    except EvaluationError:
        return FAILED


def of_google(source: str, given_values: dict[str, Any], *, checks: bool = False) -> Any:
    """`checks`: types are checked before the evaluation."""
    try:
        program = ENVIRONMENT.compile(source, disable_check=not checks)
    except Exception:
        return REFUSED
    try:
        found = program.eval(data=given_values)
    except Exception:
        return FAILED
    return FAILED if found.type() == cel.Type.ERROR else exact(found.plain_value())


@pytest.mark.long
@settings(max_examples=600, deadline=None)
@given(source=expressions(), values_of=VALUES)
@example(source="(1 / j > 0) || b", values_of={"j": 0, "b": True})
@example(source="li.all(e, 1 / e < 0)", values_of={"li": [0, 1]})
@example(source="li.exists(e, 1 / e > 0)", values_of={"li": [0, 1]})
@example(source="li.exists_one(e, 1 / e > 0)", values_of={"li": [0, 1]})
def test_an_expression_has_the_value_that_it_has_in_googles_engine(
    source: str, values_of: dict[str, Any]
) -> None:
    try:
        compile(source, VARIABLES)
    except RuleTypeError:
        event("refused at load")
        assume(False)
    mine = here(source, values_of)
    event("fails" if mine == FAILED else "has a value")
    assert mine == of_google(source, values_of), (source, values_of)


@pytest.mark.parametrize(
    ("source", "values_of"),
    [
        *((f"i {operator} d", {"i": 2**63 - 1, "d": END}) for operator in ("<", "<=", ">", ">=", "==", "!=")),
        *((f"d {operator} i", {"i": 2**63 - 1, "d": END}) for operator in ("<", "<=", ">", ">=", "==", "!=")),
        *((f"i {operator} d", {"i": -(2**63), "d": -END}) for operator in ("<", "<=", ">", ">=", "==", "!=")),
        *((f"i {operator} d", {"i": 2**63 - 1, "d": END + 4096}) for operator in ("<", ">", "==")),
        *((f"i {operator} d", {"i": -(2**63), "d": -END - 4096}) for operator in ("<", ">", "==")),
        *((f"i {operator} d", {"i": 2**53 + 1, "d": FAR}) for operator in ("<", ">", "==")),
        ("d in li", {"li": [2**63 - 1], "d": END}),
        ("d in li", {"li": [2**53 + 1], "d": FAR}),
        ("[i] == [d]", {"i": 2**63 - 1, "d": END}),
        ("x == m", {"x": {"a": 2**63 - 1}, "m": {"a": END}}),
        ("d < 1.0", {"d": float("nan")}),
        ("i < d", {"i": 1, "d": float("nan")}),
        ("i < d", {"i": 1, "d": float("inf")}),
        ("i + 1", {"i": 2**63 - 1}),
        ("-i", {"i": -(2**63)}),
        ("i / -1", {"i": -(2**63)}),
        ("-7 / j", {"j": 2}),
        ("-7 % j", {"j": 3}),
        ("int(d)", {"d": END}),
        ("int(d)", {"d": -END - 4096}),
        ("int(d)", {"d": -1.9}),
        ("b == i", {"i": 1, "b": True}),
        ("[b] == [i]", {"i": 1, "b": True}),
        ("n == i", {"i": 0, "n": None}),
        ("i && b", {"i": 0, "b": False}),
        ("i && b", {"i": 0, "b": True}),
        ("b < !b", {"b": False}),
        ("m.a.b", {"m": {"a": {"b": 1}}}),
        ("m.a", {"m": {}}),
        ("size(s)", {"s": "é😀"}),
        ("{1: 2}[d]", {"d": 1.0}),
        ("d in {1: 2}", {"d": 1.0}),
        ('{s: 1, "a": 2}', {"s": "a"}),
        ("string(b)", {"b": True}),
        ("string(d)", {"d": 1e30}),
        ('double("1e999")', {}),
        ("matches(s, 'a+')", {"s": "baa"}),
        *(("ls[x]", {"ls": ["a", "b"], "x": index}) for index in (0.0, -0.0, 1.0, 0.5, 2.0, -1.0, True, "0")),
        *(("ls[x]", {"ls": ["a"], "x": index}) for index in (float("nan"), float("inf"), END, None)),
    ],
)
def test_listed_expressions_have_the_values_of_googles_engine(source: str, values_of: dict[str, Any]) -> None:
    """Among them those of CEL's conformance tests about ints and doubles at 2**63 and an index of 0.0."""
    mine = here(source, values_of)
    assert mine != REFUSED
    assert mine == of_google(source, values_of)


@pytest.mark.parametrize(
    "source", ['1 == "1"', '1 + "1" == 2', '"a" < 1', "[1, 2][0.0]", "!1", "1 == 1 && 2"]
)
def test_what_types_forbid_is_refused_at_load_as_in_googles_engine(source: str) -> None:
    assert here(source, {}) == REFUSED
    assert of_google(source, {}, checks=True) == REFUSED


@pytest.mark.parametrize(
    ("source", "values_of", "mine", "google"),
    [
        ("x", {"x": 2**64 + 1}, 2**64 + 1, FAILED),
        ('{"a": 1, "a": 2}', {}, REFUSED, FAILED),
        ('{true: "a"}[true]', {}, REFUSED, "a"),
        ("s.matches(t)", {"s": "a", "t": "a"}, REFUSED, True),
        ("1u == x", {"x": 1}, REFUSED, True),
        ("b'a' == x", {"x": 1}, REFUSED, False),
        ("type(x) == int", {"x": 1}, REFUSED, True),
    ],
)
def test_what_differs_on_purpose_is_what_the_table_says(
    source: str, values_of: dict[str, Any], mine: Any, google: Any
) -> None:
    """When an implementation changes, the table in the docstring of `fastrpc.guard.cel` does."""
    assert here(source, values_of) == (mine if mine == REFUSED else exact(mine))
    assert of_google(source, values_of) == (google if google == FAILED else exact(google))

"""Rules against CEL's implementation in Rust: an expression has the same value, or fails in both.

Where the two differ on purpose is in the table of `fastrpc.guard.cel`; what is generated here stays clear of
that, or is distinguished in `agree`.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, event, example, given, settings
from test_cel_text import VALUES, VARIABLES, expressions

from fastrpc.guard.cel import EvaluationError, RuleError, RuleTypeError, compile

cel: Any = pytest.importorskip(
    "cel", reason="no CEL to compare with: pip install common-expression-language (CPython 3.11 and newer)"
)

FAILED = "failed"


def exact(value: Any) -> Any:
    """A value whose types count: 1, 1.0 and true differ."""
    if isinstance(value, list):
        return [exact(each) for each in value]
    if isinstance(value, dict):
        return {key: exact(each) for key, each in value.items()}
    return type(value).__name__, value


def of_rust(source: str, given_values: dict[str, Any]) -> Any:
    program = cel.compile(source)
    try:
        return exact(program.execute(given_values))
    except Exception:
        return FAILED


def agree(source: str, mine: Any, rust: Any) -> bool:
    if mine == rust:
        return True
    # An element of `all` and `exists` that fails does not matter when another one decides: CEL says so, the
    # implementation in Rust stops at it.
    return rust == FAILED and (".all(" in source or ".exists(" in source)


@pytest.mark.long
@settings(max_examples=600, deadline=None)
@given(source=expressions(), values_of=VALUES)
@example(source="(1 / j > 0) || b", values_of={"j": 0, "b": True})
@example(source="b && (1 / j > 0)", values_of={"j": 0, "b": False})
@example(source="(1 / j > 0) && b", values_of={"j": 0, "b": True})
@example(source="-7 / j", values_of={"j": 2})
@example(source="-7 % j", values_of={"j": 3})
@example(source="i + 1", values_of={"i": 2**63 - 1})
@example(source="i == d", values_of={"i": 1, "d": 1.0})
@example(source="i == d", values_of={"i": 2**53 + 1, "d": 2.0**53})
@example(source="i < d", values_of={"i": 2**63 - 1, "d": 2.0**63})
@example(source="b == i", values_of={"i": 1, "b": True})
@example(source="[b] == [i]", values_of={"i": 1, "b": True})
@example(source="n == i", values_of={"i": 0, "n": None})
@example(source="i && b", values_of={"i": 0, "b": False})
@example(source="i && b", values_of={"i": 0, "b": True})
@example(source="m.a.b", values_of={"m": {"a": {"b": 1}}})
@example(source="b < !b", values_of={"b": False})
def test_an_expression_has_the_value_that_it_has_in_rust(source: str, values_of: dict[str, Any]) -> None:
    try:
        expression = compile(source, VARIABLES)
    except RuleTypeError:
        event("refused at load")
        assume(False)
        raise
    try:
        mine = exact(expression.evaluate(values_of))
    except EvaluationError:
        mine = FAILED
    event("fails" if mine == FAILED else "has a value")
    rust = of_rust(source, values_of)
    assert agree(source, mine, rust), (source, values_of, mine, rust)


REFUSED = "refused"
NAN = float("nan")


@pytest.mark.parametrize(
    ("source", "values_of", "mine", "rust"),
    [
        ("x == 18446744073709551616.0", {"x": 2**64 + 1}, False, True),
        ("x", {"x": 2**64 + 1}, 2**64 + 1, float(2**64)),
        ("d < 1.0", {"d": NAN}, False, FAILED),
        ("size(s)", {"s": "é"}, 1, 2),
        ("li.all(e, 1 / e < 0)", {"li": [0, 1]}, False, FAILED),
        ("li.exists(e, 1 / e > 0)", {"li": [0, 1]}, True, FAILED),
        ("-i", {"i": -(2**63)}, FAILED, -(2**63)),
        ('1 == "1"', {}, REFUSED, False),
        ('1 + "1" == 2 || true', {}, REFUSED, True),
        ('{"a": 1, "a": 2}', {}, REFUSED, {"a": 2}),
        ('{s: 1, "a": 2}', {"s": "a"}, FAILED, {"a": 2}),
        ('{true: "a"}[true]', {}, REFUSED, "a"),
        ("{1: 2}[d]", {"d": 1.0}, 2, FAILED),
        ("d in {1: 2}", {"d": 1.0}, True, FAILED),
        ("matches(s, 'a')", {"s": "a"}, True, FAILED),
        ("s.matches(t)", {"s": "a", "t": "a"}, REFUSED, True),
        ("string(b)", {"b": True}, "true", FAILED),
        ("string(d)", {"d": 1e30}, "1e+30", "1" + "0" * 30),
        ("1u == x", {"x": 1}, REFUSED, True),
        ("b'a' == x", {"x": 1}, REFUSED, False),
        ("type(x) == int", {"x": 1}, REFUSED, True),
    ],
)
def test_what_differs_on_purpose_is_what_the_table_says(
    source: str, values_of: dict[str, Any], mine: Any, rust: Any
) -> None:
    """When an implementation changes, the table in the docstring of `fastrpc.guard.cel` does."""
    try:
        found = compile(source, VARIABLES).evaluate(values_of)
    except RuleError:
        found = REFUSED
    except EvaluationError:
        found = FAILED
    assert exact(found) == exact(mine)
    assert of_rust(source, values_of) == (FAILED if rust == FAILED else exact(rust))

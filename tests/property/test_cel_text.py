"""Whatever a rule's source and its values are, nothing but `RuleError` and `EvaluationError` is raised."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fastrpc.guard.cel import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    STRING,
    EvaluationError,
    RuleError,
    compile,
    list_of,
    map_of,
    type_of_schema,
)
from fastrpc.guard.cel.expression import Expression

TEXTS = st.text("ab/.1", max_size=4)
SMALL = st.integers(-5, 5)
INTS = st.one_of(SMALL, st.sampled_from([2**31, 2**53 + 1, 2**62, 2**63 - 1, -(2**63) + 1]))
DOUBLES = st.integers(-20, 20).map(lambda number: number / 4)
SCALARS = st.one_of(TEXTS, INTS, DOUBLES, st.booleans(), st.none())
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
VALUES = st.fixed_dictionaries(
    {
        "s": TEXTS,
        "t": TEXTS,
        "i": INTS,
        "j": SMALL,
        "d": DOUBLES,
        "b": st.booleans(),
        "n": st.none(),
        "li": st.lists(INTS, max_size=4),
        "ls": st.lists(TEXTS, max_size=4),
        "m": st.dictionaries(st.sampled_from(["a", "b", "c"]), JSON, max_size=3),
        "x": JSON,
    }
)
VARIABLES = dict.fromkeys(["s", "t", "i", "j", "d", "b", "n", "li", "ls", "m", "x"], DYN)
LEAVES = {
    "text": ["s", "t", '"a"', "'ab'", 'r"/."', '"""b"""', "''"],
    "int": ["i", "j", "0", "1", "-3", "0x1F", "9223372036854775807"],
    "double": ["d", "0.5", "-2.0", "1e3", ".25"],
    "list": ["li", "ls", "[]"],
    "map": ["m", "{}"],
    "bool": ["b", "true", "false", 's == "a"', "has(m.a)", "m.a == 1", "x == i"],
    "element": ["e > 0", "e % 2 == 0", "10 / e > 1", "e == j", "e in li", "true"],
    "any": ["null", "n", "x", "m.a", 'm["b"]', "x.a", "x[0]"],
}
FORMS = {
    "text": ["(<text> + <text>)", "string(<int>)", "(<bool> ? <text> : <text>)", "ls[<int>]"],
    "int": [
        *(f"(<int> {operator} <int>)" for operator in "+-*/%"),
        "<text>.size()",
        "size(<list>)",
        "int(<double>)",
        "int(<text>)",
        "li[<int>]",
        "-j",
    ],
    "double": ["(<double> + <double>)", "(<double> * <double>)", "(<double> / 4.0)", "double(j)", "-d"],
    "list": [
        "[<any>, <any>]",
        "[<text>]",
        "(<list> + <list>)",
        "li.filter(e, <element>)",
        "li.map(e, <int>)",
        "li.map(e, e * 2)",
        "li.map(e, <element>, e)",
    ],
    "map": ['{"a": <any>, "b": <any>}'],
    "element": ["<bool>", "<element> && <bool>"],
    "bool": [
        "(<bool> && <bool>)",
        "(<bool> || <bool>)",
        "(<bool> && <bool> && <bool>)",
        "(<any> || <bool>)",
        "!<bool>",
        "(<bool> ? <bool> : <bool>)",
        *(f"(<int> {operator} <int>)" for operator in ("==", "<", ">=")),
        *(f"(<int> {operator} <double>)" for operator in ("!=", "<=", ">")),
        *(f"(<text> {operator} <text>)" for operator in ("==", "<", ">=")),
        "(<any> == <any>)",
        "(<any> != <any>)",
        "(<any> < <any>)",
        "(<any> in <list>)",
        "(<text> in <map>)",
        *(f"<text>.{method}(<text>)" for method in ("startsWith", "endsWith", "contains")),
        *(f'<text>.matches("{pattern}")' for pattern in ("a", "^a", "[ab]+$", "a.b")),
        *(f"li.{macro}(e, <element>)" for macro in ("all", "exists", "exists_one")),
        *(f'm.{macro}(k, m[k] == 1 || k == "a")' for macro in ("all", "exists", "exists_one")),
    ],
    "any": ["<text>", "<int>", "<double>", "<bool>", "<list>", "<map>"],
}
MOST_LEVELS = 4


@st.composite
def expressions(draw: Any, kind: str = "any") -> str:
    """Sources: a form of the kind, each of whose holes is filled with one of its own kind."""

    def filled(kind: str, levels: int) -> str:
        form = draw(st.sampled_from(LEAVES[kind] + (FORMS[kind] * 2 if levels else [])))
        return re.sub("<([a-z]+)>", lambda hole: filled(hole[1], levels - 1), form)

    return filled(kind, MOST_LEVELS)


# --- any text ---------------------------------------------------------------------------------------------

TYPES = {
    "s": STRING,
    "t": STRING,
    "i": INT,
    "j": INT,
    "d": DOUBLE,
    "b": BOOL,
    "n": DYN,
    "li": list_of(INT),
    "ls": list_of(STRING),
    "m": map_of(DYN),
    "x": DYN,
}
VALUE_PIECES = """s i d b li m x a e 0 1 -1 1.5 .5 1e9 0x1f 1u "a" 'b' r'c' " ' true false null in"""
OPERATOR_PIECES = """== != < <= > >= && || ! + - * / % ? : . , ( ) [ ] { } // & | = # é \ud800 \\ \'\'\'"""
NAME_PIECES = "has size int double string matches all exists exists_one filter map startsWith timestamp"
PIECES = st.sampled_from(
    [*f"{VALUE_PIECES} {OPERATOR_PIECES} {NAME_PIECES}".split(), "\n", "\t", '"""', "9223372036854775808"]
)
SOURCES = st.one_of(
    st.text(max_size=60),
    st.lists(PIECES, max_size=30).map(" ".join),
    st.lists(PIECES, max_size=30).map("".join),
    st.builds("{}{}{}".format, st.lists(PIECES, max_size=3).map(" ".join), expressions(), PIECES),
    st.builds(str.__mul__, PIECES, st.integers(1, 5000)),
)
ANYTHING = st.recursive(
    st.one_of(
        SCALARS,
        st.text(max_size=20),
        st.floats(),
        st.integers(),
        st.sampled_from([2**63, -(2**63), 2**64, 10**400, "\ud800", "a" * 2000, float("nan"), float("inf")]),
    ),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4),
    max_leaves=10,
)
ANY_VALUES = st.fixed_dictionaries({}, optional=dict.fromkeys(VARIABLES, ANYTHING))


def loaded(source: str, variables: dict[str, Any]) -> Expression | None:
    try:
        return compile(source, variables)
    except RuleError as error:
        fault = error
    lines = source.split("\n")
    assert 1 <= fault.line <= len(lines)
    assert 1 <= fault.column <= len(lines[fault.line - 1]) + 1
    assert 0 < len(fault.message) < 1000
    return None


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(source=SOURCES, values_of=ANY_VALUES)
@example(source="(" * 4000, values_of={})
@example(source="!" * 4000, values_of={})
@example(source="a." * 2000, values_of={})
@example(source="x[" * 2000, values_of={})
@example(source="true?" * 800, values_of={})
@example(source="{1:" * 1000, values_of={})
@example(source="x.all(e," * 500, values_of={})
@example(source="x.matches('(" + "a?" * 1000 + ")')", values_of={"x": "a" * 1000})
def test_no_source_makes_anything_but_a_rule_error(source: str, values_of: dict[str, Any]) -> None:
    for variables in (VARIABLES, TYPES, {}):
        expression = loaded(source, variables)
        if expression is not None:
            with contextlib.suppress(EvaluationError):
                expression.evaluate(values_of)


@pytest.mark.long
@settings(max_examples=400, deadline=None)
@given(source=expressions(), values_of=ANY_VALUES)
@example(source="x == x", values_of={"x": float("nan")})
@example(source="d * 2.0", values_of={"d": 10**400})
@example(source="string(x)", values_of={"x": 10**5000})
@example(source="x.matches('a')", values_of={"x": "\ud800"})
def test_no_values_make_anything_but_an_evaluation_error(source: str, values_of: dict[str, Any]) -> None:
    """And what is explained is what was evaluated."""
    for variables in (VARIABLES, TYPES):
        expression = loaded(source, variables)
        if expression is None:
            continue
        with contextlib.suppress(EvaluationError):
            expression.evaluate(values_of)
        with contextlib.suppress(EvaluationError):
            assert expression.test(values_of) in (True, False)
        for text, _ in expression.explain(values_of):
            assert text.rstrip("…") in source


@settings(max_examples=300, deadline=None)
@given(source=expressions("bool"), values_of=VALUES)
def test_a_declared_type_changes_no_value(source: str, values_of: dict[str, Any]) -> None:
    declared, undeclared = loaded(source, TYPES), loaded(source, VARIABLES)
    if declared is None or undeclared is None:
        return
    assert declared.variables == undeclared.variables
    assert outcome(declared, values_of) == outcome(undeclared, values_of)


def outcome(expression: Expression, values_of: dict[str, Any]) -> str:
    try:
        return repr(expression.evaluate(values_of))
    except EvaluationError as error:
        return f"error: {error}"


KEYWORDS = (
    "type",
    "properties",
    "items",
    "enum",
    "const",
    "anyOf",
    "required",
    "additionalProperties",
    "$ref",
)
SCHEMAS = st.recursive(
    st.sampled_from(["string", "object", "type", "null", "array", 1, True, None, "#/a", "#"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*KEYWORDS, "a"]), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(schema=SCHEMAS)
def test_any_schema_has_a_type(schema: Any) -> None:
    loaded("x.a.b == 1", {"x": type_of_schema(schema)})

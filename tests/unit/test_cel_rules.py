"""Rules that are loaded: their values, what they read, what an evaluation may take and what is reported of
it."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from fastrpc.guard.cel import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    STRING,
    EvaluationError,
    compile,
    list_of,
    nullable,
    struct,
)
from fastrpc.guard.cel.expression import Expression

ARGUMENTS = struct(
    {
        "file_path": STRING,
        "limit": INT,
        "ratio": DOUBLE,
        "tags": list_of(STRING),
        "note": nullable(STRING),
        "force": BOOL,
    },
    label="the tool Write",
    noun="argument",
    optional=["limit", "note"],
)
VARIABLES = {"tool": STRING, "args": ARGUMENTS, "x": DYN, "y": DYN}
VALUES = {
    "tool": "Write",
    "args": {"file_path": "/etc/passwd", "ratio": 3, "tags": ["a", "b"], "force": True},
    "x": {"n": [1, 2, 3], "s": "añb😀", "big": 2**70, "nil": None, "deep": {"k": 1.5}},
    "y": 0,
}


def rule(source: str) -> Expression:
    return compile(source, VARIABLES)


def value(source: str, **changed: Any) -> Any:
    return rule(source).evaluate({**VALUES, **changed})


def failure(source: str, **changed: Any) -> str:
    with pytest.raises(EvaluationError) as raised:
        value(source, **changed)
    return str(raised.value)


# --- values -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ('tool == "Write" && args.file_path.startsWith("/etc/")', True),
        ("'a' + \"b\" + '''c\n'd'''", "abc\n'd"),
        (r'r"\d" + "\\d" + "\x41\u00e9\U0001F600\101\t"', "\\d\\dAé😀A\t"),
        ("[1, 2,] + [0x10]", [1, 2, 16]),
        ('{"a": 1, "b": [true, null],}', {"a": 1, "b": [True, None]}),
        ("{1: 'one'}[x.n[0]]", "one"),
        ("-9223372036854775808", -(2**63)),
        ("1 + 2 * 3 - 4 / 2 % 3", 5),
        ("-7 / 2 == -3 && -7 % 3 == -1 && 7 % -3 == 1", True),
        ("1.0 / 0.0 > 1e308 && -1.0 / 0.0 < 0.0 && 1.0 / -0.0 < 0.0", True),
        ("0.0 / 0.0 == 0.0 / 0.0 || 0.0 / 0.0 < 1.0", False),
        ("x.n[1] == 2.0 && 2 in x.n && 2.0 in x.n && !(true in x.n)", True),
        ('"a" < "b" && false < true && 1 < 1.5', True),
        ('args["file_path"] == args.file_path', True),
        ('"s" in x && !("t" in x) && has(x.s) && !has(x.t) && has(x.nil)', True),
        ("size(x.s) == 4 && x.s.size() == 4 && size(x) == 5 && x.n.size() == 3", True),
        ('"a.b".contains(".") && "ab".endsWith("b") && "".startsWith("")', True),
        (r'tool.matches("^W.*e$") && matches(tool, r"rit") && !tool.matches("w")', True),
        ('tool in ["Read", "Write"] ? "file" : "other"', "file"),
        ("y == 0 ? 1 : y > 0 ? 2 : 3", 1),
        ('[int("-5"), int(1.9), int(-1.9), int(3)]', [-5, 1, -1, 3]),
        ('[double("1.5"), double(" 1".size()), double("-inf")]', [1.5, 2.0, float("-inf")]),
        ('[string(1), string(1.5), string(2.0), string(true), string("s")]', ["1", "1.5", "2", "true", "s"]),
        ("x.n.all(e, e > 0) && x.n.exists(e, e == 2) && x.n.exists_one(e, e == 2)", True),
        ("x.n.filter(e, e > 1).map(e, e * 10)", [20, 30]),
        ("x.n.map(e, e > 1, [e])", [[2], [3]]),
        ("x.deep.map(k, x.deep[k])", [1.5]),
        ("x.n.map(e, x.n.filter(f, f < e))", [[], [1], [1, 2]]),
        ("x.n.map(tool, tool) == x.n && tool == 'Write'", True),
        ("args.for == 1 // a member may be called so\n", False),
        ("!!true && - -1 == 1", True),
    ],
)
def test_an_expression_has_the_value_that_cel_gives_it(source: str, wanted: Any) -> None:
    variables = {**VARIABLES, "args": ARGUMENTS._replace(is_open=True)}
    values = {**VALUES, "args": {**VALUES["args"], "for": 2}}  # type: ignore[dict-item]
    found = compile(source, variables).evaluate(values)
    assert found == wanted
    assert type(found) is type(wanted)


def test_a_number_of_a_schema_is_a_double_where_one_calculates() -> None:
    """JSON writes 1.0 as 1, too. With a double, 2**53 + 1 is compared as the double next to it."""
    assert value("args.ratio / 2.0") == 1.5
    assert value("args.ratio == 9007199254740993", args={"ratio": 2**53 + 1})
    assert not value("args.ratio == 9007199254740992", args={"ratio": 2**53 + 1})
    assert value("args.ratio == 9007199254740992.0", args={"ratio": 2**53 + 1})


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("x < y", False),
        ("x >= y", True),
        ("y <= x", True),
        ("y > x", False),
        ("x == y", True),
        ("x != y", False),
        ("y in [x]", True),
        ("x < 9223372036854777857.0", True),
        ("x + 0 == 9223372036854775807", True),
    ],
)
def test_the_largest_int_is_compared_with_a_double_as_a_double(source: str, wanted: bool) -> None:
    """CEL's conformance tests: comparisons, `not_lt_dyn_int_big_lossy_double` and others."""
    assert value(source, x=2**63 - 1, y=2.0**63) is wanted


def test_a_double_that_is_an_int_is_an_index_of_a_list() -> None:
    """CEL's conformance tests: lists, `zero_based_double` and `zero_based_double_error`."""
    assert [value("x.n[y]", y=index) for index in (0.0, -0.0, 2.0)] == [1, 1, 3]
    for index in (0.1, float("nan"), float("inf")):
        assert failure("x.n[y]", y=index) == "the index of a list is an int, not a double"
    assert "none with this index" in failure("x.n[y]", y=3.0)


@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**64 + 5, 10**400])
def test_an_int_of_any_size_is_compared_exactly_and_never_wraps(number: int) -> None:
    assert value("y == x", x=number, y=number)
    assert not value("y == x", x=number, y=number - 2**64)
    assert value("x > 9223372036854775807 || x < -9223372036854775807", x=number)
    assert value("x in [y]", x=number, y=number)
    assert not value("x == 1e300", x=number)
    assert value("int(x) == x && (x < 0 || x > 5.5)", x=number)
    for source in ("x + 0", "x - 0", "x * 1", "x / 1", "x + x"):
        assert "64 bits" in failure(source, x=number)


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        ("1 / y == 1 && false", False),
        ("false && 1 / y == 1", False),
        ("1 / y == 1 || true", True),
        ("true || 1 / y == 1", True),
        ("y && false", False),
        ("y || true", True),
        ("1 / y == 1 && true && false", False),
        ("true && 1 / y == 1 && false", False),
        ("false || x.nothing || true", True),
        ("x.n.exists(e, 1 / (e - 1) == 1)", True),
        ("x.n.all(e, 1 / (e - 1) == 1)", False),
        ("(1 / y == 1 || 1 / y == 2) || true", True),
    ],
)
def test_an_operand_that_fails_does_not_matter_where_another_one_decides(source: str, wanted: bool) -> None:
    assert value(source) is wanted


@pytest.mark.parametrize(
    "source",
    [
        "1 / y == 1 && true",
        "true && 1 / y == 1",
        "1 / y == 1 || false",
        "false || 1 / y == 1",
        "y && true",
        "true && y",
        "1 / y == 1 && 1 / y == 1 && true",
        "x.n.all(e, 1 / (e - 1) >= 0)",
        "x.n.exists(e, 1 / (e - 1) < 0)",
        "x.n.exists_one(e, 1 / (e - 1) == 1)",
        "x.n.filter(e, e)",
    ],
)
def test_an_operand_that_fails_matters_where_no_other_one_decides(source: str) -> None:
    failure(source)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("args.limit > 1", "args.limit: it is not there"),
        ("x.deep.nothing", "x.deep.nothing: it is not there"),
        ("x.s.length", "x.s.length: a string has no members"),
        ("has(x.s.length)", "has(x.s.length): a string has no members"),
        ("x['n'].k", "x['n'].k: a list has no members"),
        ("x.n[3]", "the list has 3 elements, none with this index"),
        ("x.n[-1]", "the list has 3 elements, none with this index"),
        ("x.n[x.deep.k]", "the index of a list is an int, not a double"),
        ("x[y]", "an int: the map has no such key"),
        ("x[tool]", "Write: the map has no such key"),
        ("y[y]", "an int has no elements"),
        ("1 / y", "/: division by zero"),
        ("1 % y", "%: division by zero"),
        ("9223372036854775807 + 1", "the result has more than 64 bits"),
        ("x.n + 1 == x.n", ""),
        ("x.s + y", "a string + an int: there is no such operation"),
        ("y + 1.5", "an int + a double: there is no such operation"),
        ("x.deep.k % x.deep.k", "a double % a double: there is no such operation"),
        ("x.s < y", "a string < an int: they have no order"),
        ("x.n < x.n", "a list < a list: they have no order"),
        ("-x.s", "-: expected a number, not a string"),
        ("!y", "!: expected a bool, not an int"),
        ("y ? 1 : 2", "?: expected a bool, not an int"),
        ("y && true", "&&: expected a bool, not an int"),
        ("1 in x.s", "in: expected a list or a map, not a string"),
        ("y.contains('a')", "contains: expected a string, not an int"),
        ("tool.startsWith(x.nil)", "startsWith: expected a string, not null"),
        ("tool.endsWith(y)", "endsWith: expected a string, not an int"),
        ("y.matches('a')", "matches: expected a string, not an int"),
        ("size(y)", "size: an int has none"),
        ("int('1_0')", "int: a string that is not an int"),
        ("int(' 1')", "int: a string that is not an int"),
        ("int('٣')", "int: a string that is not an int"),
        ("int(x.nil)", "int: null that is not an int"),
        ("int('9223372036854775808')", "the result has more than 64 bits"),
        ("int(1e30)", "int: the double is beyond 64 bits"),
        ("double('one')", "double: the string is not a number"),
        ("double(x.n)", "double: a list is not a number"),
        ("string(x.n)", "string: expected a string, a number or a bool, not a list"),
        ("y.all(e, true)", "all: expected a list or a map, not an int"),
        ("x.n.all(e, e)", "all: expected a bool, not an int"),
        ("{x.s: 1, x.s: 2}", "the map has two entries with the same key"),
        ("{x.nil: 1}", "the key of a map is a string or an int, not null"),
    ],
)
def test_what_has_no_value_says_why(source: str, message: str) -> None:
    if message:
        assert failure(source) == message


def test_a_variable_that_is_not_handed_over_is_an_evaluation_error() -> None:
    with pytest.raises(EvaluationError, match="tool: it is not there"):
        rule("tool == 'x'").evaluate({})
    with pytest.raises(EvaluationError, match="args: it is not there"):
        rule("args.force").evaluate({})


def test_a_rule_is_true_or_false_or_an_error() -> None:
    assert rule("x").test({"x": True}) is True
    assert rule("args.force").test({"args": {"force": False}}) is False
    for wrong in (1, None, "true", [], 1.0):
        with pytest.raises(EvaluationError, match="the rule: expected a bool"):
            rule("x").test({"x": wrong})


def test_true_is_no_key_where_python_takes_it_for_one() -> None:
    assert not value("y in {1: 2}", y=True)
    assert failure("{1: 2}[y]", y=True) == "a bool: the map has no such key"
    assert value("1.0 in {1: 2} && {1: 2}[y] == 2", y=1.0)
    assert not value("y in x || x.n in x", y=None)


def test_null_is_equal_to_nothing_else() -> None:
    assert value("args.note == null", args={"note": None})
    assert not value("args.note == null", args={"note": ""})
    assert value("x != null && x != y", x=False)


class Odd:
    """A value that is not JSON, and fails whatever is done with it."""

    def __getattr__(self, name: str) -> Any:
        raise ZeroDivisionError

    def __eq__(self, other: object) -> bool:
        raise ZeroDivisionError

    __hash__ = None  # type: ignore[assignment]


class OddText(str):
    def startswith(self, *_: Any) -> bool:
        raise ZeroDivisionError


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)


@pytest.mark.parametrize("odd", [Odd(), OddText("a"), b"a", {1, 2}, ENDLESS, "\ud800", object], ids=range(7))
@pytest.mark.parametrize(
    "source",
    [
        "x == y",
        "x == x",
        "x != 'a'",
        "x in [y]",
        "x in ['a']",
        "y in x",
        "x.a",
        "has(x.a)",
        "x[0]",
        "x['a']",
        "x < y",
        "x + x",
        "-x",
        "!x",
        "size(x)",
        "int(x)",
        "double(x)",
        "string(x)",
        "x.startsWith('a')",
        "x.matches('a')",
        "x.all(e, e == x)",
        "x.map(e, e == 1)",
        "{x: 1}",
        "x ? 1 : 2",
        "x && true",
    ],
)
def test_no_value_makes_anything_but_an_evaluation_error(source: str, odd: Any) -> None:
    expression = rule(source)
    for values in ({"x": odd, "y": 1}, {"x": 1, "y": odd}, {"x": [odd], "y": odd}, {"x": {"a": odd}, "y": 1}):
        with contextlib.suppress(EvaluationError):
            expression.evaluate(values)
        expression.explain(values)


def test_a_subclass_of_a_plain_type_counts_as_that_type() -> None:
    class Name(str):
        pass

    assert value("x == 'a' && x in ['a'] && x.startsWith('a') && size(x) == 1", x=Name("a"))
    assert value("x == y && x[0] == 1", x=(1, 2), y=[1, 2])


# --- what it reads, and its type --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "members", "whole"),
    [
        ("tool == 'a'", {"tool": set()}, {"tool"}),
        ("args.file_path == args['note']", {"args": {"file_path", "note"}}, set()),
        ("has(args.note) && 'limit' in args", {"args": {"note", "limit"}}, set()),
        ("size(args) > 1", {"args": set()}, {"args"}),
        ("x.a.b.c == x['d'].e", {"x": {"a", "d"}}, set()),
        ("x[tool]", {"x": set(), "tool": set()}, {"x", "tool"}),
        ("args.tags.exists(x, x == 'a')", {"args": {"tags"}}, set()),
        ("[1].all(tool, x.n == tool)", {"x": {"n"}}, set()),
        ("x.all(y, y.a == 1 && has(y.b))", {"x": set()}, {"x"}),
        ("1 == 1", {}, set()),
    ],
)
def test_an_expression_knows_what_it_reads(
    source: str, members: dict[str, set[str]], whole: set[str]
) -> None:
    expression = rule(source)
    assert expression.variables == set(members)
    assert {name: expression.members(name) for name in members} == members
    assert expression.whole == whole
    assert expression.members("something_else") == frozenset()
    assert expression.source == source


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ("1 == 2", "bool"),
        ("args.force", "bool"),
        ("x", "dyn"),
        ("x.n[0] + 1", "dyn"),
        ("1 + 1", "int"),
        ("args.ratio * 2.0", "double"),
        ("size(tool)", "int"),
        ("tool + 'a'", "string"),
        ("args.tags", "list"),
        ("args.tags[0]", "string"),
        ("args.tags.map(t, size(t))[0]", "int"),
        ("args.tags.filter(t, true)[0]", "string"),
        ("{'a': 1}.a", "int"),
        ("null", "null"),
        ("args.force ? 1 : 2", "int"),
        ("args.force ? 1 : 'a'", "dyn"),
    ],
)
def test_an_expression_knows_its_type(source: str, kind: str) -> None:
    assert rule(source).type.kind == kind


# --- bounds -----------------------------------------------------------------------------------------------


class Counted(list[Any]):
    """A list that counts how many of its elements were looked at."""

    seen = 0

    def __iter__(self) -> Iterator[Any]:
        for each in super().__iter__():
            Counted.seen += 1
            yield each


@pytest.mark.parametrize(
    "source",
    [
        "x.all(a, x.all(b, x.all(c, true)))",
        "x.exists(a, x.exists(b, a == b && false))",
        "x.map(a, x.map(b, x.map(c, a)))",
        "x.filter(a, x == x)",
        "x.exists(a, 'no' in x)",
        "x.map(a, x + x)",
        "x.exists_one(a, x.exists_one(b, x.exists_one(c, true)))",
        "x.all(a, x.all(b, x.all(c, true))) || true",
        "true && x.all(a, x.all(b, x.all(c, true)))",
    ],
)
def test_an_evaluation_ends_after_its_steps(source: str) -> None:
    Counted.seen = 0
    assert failure(source, x=Counted(range(2000))) == "the rule takes more than 100,000 steps"
    assert Counted.seen <= 200_000  # a comparison looks at two elements in a step


def test_every_evaluation_has_all_its_steps() -> None:
    expression = rule("x.all(a, a >= 0)")
    for _ in range(5):
        assert expression.evaluate({"x": range_of(20_000)}) is True


def range_of(length: int) -> list[int]:
    return list(range(length))


def test_what_is_common_takes_no_steps() -> None:
    source = " || ".join(['tool == "a" || args.file_path.startsWith("b")'] * 50) + " || true"
    assert value(source) is True


def test_a_string_that_is_put_together_is_bounded() -> None:
    assert "1,000,000 characters" in failure("x + x", x="a" * 600_000)
    assert value("size(x + x)", x="a" * 400_000) == 800_000
    growing = "[1, 2, 3, 4].map(a, x + x)"
    assert "steps" in failure(f"{growing}.map(b, {growing})", x="a" * 400_000)


def test_a_large_argument_can_be_searched() -> None:
    large = "a" * 16_000_000 + "b"
    assert value("x.contains('b') && x.endsWith('b') && x.matches('b$') && x != 'c'", x=large)


@pytest.mark.parametrize(
    "condition",
    [
        "!x.contains('b')",
        "!x.matches('b')",
        "x == args",
        "x <= args",
        "x.startsWith(args)",
        "x.endsWith(args)",
        "x in [args]",
    ],
)
def test_what_reads_a_long_string_again_and_again_takes_steps(condition: str) -> None:
    long, again = "a" * 1_000_000, "".join(["a"] * 1_000_000)
    variables = {"x": DYN, "y": DYN, "args": DYN}
    expression = compile(f"y.all(e, {condition})", variables)
    assert expression.evaluate({"x": long, "args": again, "y": [1]}) is True
    with pytest.raises(EvaluationError, match="steps"):
        expression.evaluate({"x": long, "args": again, "y": range_of(1000)})


@pytest.mark.parametrize(
    ("text", "part", "most"),
    [
        ("a" * 1_000, "a" * 97 + "ba", 4_000),
        ("a" * 29_000, "a" * 97 + "ba", 100),
        ("\U0001f600" * 120_000, "\U0001f600" * 500 + "b" + "\U0001f600" * 500, 400),
    ],
)
def test_a_search_costs_what_the_worst_pair_of_texts_takes(text: str, part: str, most: int) -> None:
    """CPython compares up to the whole of a short part at each character."""
    expression = compile("y.exists(e, x.contains(e))", VARIABLES)
    assert expression.evaluate({"x": text, "y": [part]}) is False
    with pytest.raises(EvaluationError, match="steps"):
        expression.evaluate({"x": text, "y": [part] * most})


def test_a_pattern_is_charged_for_octets() -> None:
    expression = compile("y.exists(e, x.matches('(x+x+)+y'))", VARIABLES)
    for character in ("x", "\u202e", "\U0001f600"):
        text = character * (400_000 // len(character.encode()))
        assert expression.evaluate({"x": text, "y": [0]}) is False
        with pytest.raises(EvaluationError, match="steps"):
            expression.evaluate({"x": text, "y": [0] * 100})


# --- what is reported of an evaluation ----------------------------------------------------------------------


def test_an_explanation_has_what_was_read_compared_and_called_in_that_order() -> None:
    found = rule('tool == "Write" && args.file_path.startsWith("/etc/") || x.n.size() > 5').explain(VALUES)
    assert found == [
        ("tool", "Write"),
        ('tool == "Write"', True),
        ("args.file_path", "/etc/passwd"),
        ('args.file_path.startsWith("/etc/")', True),
    ]


def test_an_explanation_ends_where_the_evaluation_does() -> None:
    assert rule('tool == "Read" && args.force').explain(VALUES) == [
        ("tool", "Write"),
        ('tool == "Read"', False),
    ]


def test_an_explanation_says_what_failed() -> None:
    assert rule("args.limit > 5 || args.force").explain(VALUES) == [
        ("args.limit", "error: args.limit: it is not there"),
        ("args.limit > 5", "error: args.limit: it is not there"),
        ("args.force", True),
    ]


def test_an_explanation_is_short() -> None:
    values = {"x": {"a" * 100: 1}, "y": "b" * 500}
    assert rule("x == y").explain(values) == [
        ("x", "a map of 1"),
        ("y", "b" * 79 + "…"),
        ("x == y", False),
    ]
    assert rule("x > y").explain({"x": 10**400, "y": 0})[0] == ("x", "an int of 1,329 bits")
    many = rule("x.all(e, e >= 0)").explain({"x": range_of(500)})
    assert len(many) == 20
    assert many[:5] == [("x", "a list of 500"), ("e", 0), ("e >= 0", True), ("e", 1), ("e", 2)]


def test_an_explanation_tells_true_from_one() -> None:
    found = rule("x.all(e, e == 1 || true)").explain({"x": [1, True, 1.0]})
    assert [type(seen) for text, seen in found if text == "e"] == [int, bool, float]


# --- what it costs to have it -----------------------------------------------------------------------------


def test_re2_is_imported_by_a_rule_that_has_a_pattern_and_by_no_other() -> None:
    code = (
        "import sys; from fastrpc.guard.cel import compile, STRING; "
        "compile('t == \"a\"', {'t': STRING}); assert 're2' not in sys.modules; "
        "compile('t.matches(\"a\")', {'t': STRING}); assert 're2' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)

"""What is wrong with a rule is said when it is loaded: the words, the line and the column."""

from __future__ import annotations

import sys
from typing import Any

import pytest

from fastrpc.errors import FastrpcError
from fastrpc.guard.cel import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    STRING,
    RuleError,
    RuleSyntaxError,
    RuleTypeError,
    compile,
    list_of,
    map_of,
    nullable,
    one_of,
    struct,
)

ARGUMENTS = struct(
    {
        "file_path": STRING,
        "limit": INT,
        "ratio": DOUBLE,
        "force": BOOL,
        "tags": list_of(STRING),
        "mode": one_of(["read", "write"]),
        "note": nullable(STRING),
        "headers": map_of(STRING),
        "options": struct({"depth": INT}),
    },
    label="the tool Write",
    noun="argument",
)
VARIABLES = {"tool": STRING, "args": ARGUMENTS, "x": DYN}


def fault(source: str, kind: type[RuleError]) -> RuleError:
    with pytest.raises(RuleError) as raised:
        compile(source, VARIABLES)
    assert type(raised.value) is kind, raised.value
    return raised.value


@pytest.mark.parametrize(
    ("source", "column", "message"),
    [
        ("", 1, "expected a value, not the end"),
        ("1 +", 4, "expected a value, not the end"),
        ("tool tool", 6, "expected an operator or the end, not tool"),
        ("(1", 3, "expected ), not the end"),
        ("[1 2]", 4, "expected a comma or ], not 2"),
        ("{1 2}", 4, "expected :, not 2"),
        ('{"a": 1 2}', 9, "expected a comma or }, not 2"),
        ("x.", 3, "expected the name of a member, not the end"),
        ("x.1", 2, "expected an operator or the end, not .1"),
        ("x.in", 3, 'in is a reserved word: write ["in"] instead of .in'),
        ("true ? 1", 9, "expected :, not the end"),
        ("size(1,)", 8, "expected a value, not )"),
        ("tool & x", 6, "'&': there is no such character in a rule; did you mean &&?"),
        ("tool = x", 6, "'=': there is no such character in a rule; did you mean ==?"),
        ("tool == ‘a’", 9, "'‘': there is no such character in a rule"),
        ("if == 1", 1, "if: no variable has this name"),
        ("in == 1", 1, "in: no variable has this name"),
        ('tool == "a', 9, 'this string does not end: where is its "?'),
        ("tool == 'a\nb'", 9, "this string does not end: where is its '?"),
        ("tool == '''a''", 9, "this string does not end: where is its '''?"),
        (r'tool == "\d"', 10, r'\d: there is no such escape; a backslash is written \\ or r"\"'),
        (r'tool == "a\ud800"', 11, r"\ud800: no character has that code"),
        (r'tool == "\U00110000"', 10, r"\U00110000: no character has that code"),
        (r'tool == "\x4"', 10, r'\x: there is no such escape; a backslash is written \\ or r"\"'),
        ('b"a" == x', 1, "rules have no bytes: write a string, without the b"),
        ('rr"a" == x', 1, "there is no such prefix of a string: rr"),
        ("1u == x", 1, "rules have no unsigned ints: write 1"),
        ("12a", 1, "this number is followed by a letter"),
        ("0x", 1, "this number is followed by a letter"),
        ("x == 9223372036854775808", 6, "this int has more than 64 bits"),
        ("x == -9223372036854775809", 6, "this int has more than 64 bits"),
        ("1e999", 1, "this double is too large"),
        ("has(x)", 1, "has() asks for one member: has(a.b)"),
        ("has(x['a'])", 1, "has() asks for one member: has(a.b)"),
        ("has(x.a, x.b)", 1, "has() asks for one member: has(a.b)"),
        ("x.all(e)", 3, "all() is written all(name, condition)"),
        ("x.map(e, 1, 2, 3)", 3, "map() is written map(name, value)"),
        ("x.all(1, true)", 7, "the first argument of all() is the name of a variable, such as all(x, …)"),
        ("x\n  == \n  )", 3, "expected a value, not )"),
        ("(" * 65 + "1" + ")" * 65, 65, "a rule has at most 64 levels, one in another"),
        ("!" * 65 + "true", 2, "a rule has at most 64 levels, one in another"),
        ("1" + "+1" * 64, 128, "a rule has at most 64 levels, one in another"),
        ("x" + ".a" * 64, 129, "a rule has at most 64 levels, one in another"),
        ("[" * 65, 65, "a rule has at most 64 levels, one in another"),
        ("1" * 4097, 1, "a rule has at most 4,096 characters, this one has 4,097"),
    ],
)
def test_what_is_no_expression_is_refused(source: str, column: int, message: str) -> None:
    error = fault(source, RuleSyntaxError)
    assert (error.message, error.column) == (message, column)
    assert error.line == (3 if "\n  )" in source else 1)
    assert str(error) == f"line {error.line}, column {column}: {message}"


@pytest.mark.parametrize(
    ("source", "column", "message"),
    [
        ("tol == 'a'", 1, "tol: there is no such variable (did you mean tool?)"),
        ("anything", 1, "anything: there is no such variable"),
        (
            "args.file_pth == 'a'",
            6,
            "args.file_pth: the tool Write has no such argument (did you mean file_path?)",
        ),
        (
            "args['file_pth'] == 'a'",
            6,
            "args.file_pth: the tool Write has no such argument (did you mean file_path?)",
        ),
        ("has(args.forse)", 10, "args.forse: the tool Write has no such argument (did you mean force?)"),
        ("'forse' in args", 1, "args.forse: the tool Write has no such argument (did you mean force?)"),
        ("args.options.dept == 1", 14, "args.options.dept: there is no such member (did you mean depth?)"),
        ("tool.name == 'a'", 6, "tool.name: a string has no members"),
        ("args.tags['a']", 11, "args.tags.a: a list has no members"),
        ("args.tags[1.5]", 11, "the index of a list: expected an int, not a double"),
        ("args.headers[true]", 14, "the key of a map: expected a string or an int or a double, not a bool"),
        ("tool[0]", 6, "tool[int]: a string has no elements"),
        ("tool == 1", 6, "a string == an int: they are never equal"),
        ("args.force != 'true'", 12, "a bool != a string: they are never equal"),
        ("args.tags == [1]", 11, "a list == a list: they are never equal"),
        ("tool == null", 6, "a string == null: they are never equal; has(a.b) tests whether it exists"),
        ("tool < 1", 6, "a string < an int: they have no order"),
        ("args.tags < args.tags", 11, "a list < a list: they have no order"),
        ("args.mode == 'wirte'", 14, "'wirte': args.mode is never that (did you mean write?)"),
        ("'wirte' != args.mode", 1, "'wirte': args.mode is never that (did you mean write?)"),
        ("args.mode in ['read', 'wirte']", 23, "'wirte': args.mode is never that (did you mean write?)"),
        ("tool && true", 1, "&&: expected a bool, not a string"),
        ("true || args.limit", 9, "||: expected a bool, not an int"),
        ("!tool", 2, "!: expected a bool, not a string"),
        ("-tool", 2, "-: expected an int or a double, not a string"),
        ("tool ? 1 : 2", 1, "the condition before ?: expected a bool, not a string"),
        ("1 + 1.0", 3, "an int + a double: there is no such operation; double() makes a double of an int"),
        ("1.5 % 1.5", 5, "a double % a double: there is no such operation"),
        ("tool + 1", 6, "a string + an int: there is no such operation"),
        ("tool * 2", 6, "a string * an int: there is no such operation"),
        ("x + args.options", 3, "any value + a map: there is no such operation"),
        ("'a' in tool", 5, "in: expected a list or a map, not a string; write tool.contains(…)"),
        ("1 in args.limit", 3, "in: expected a list or a map, not an int"),
        ("1 in args.tags", 3, "an int in a list whose elements are never that"),
        ("true in args.headers", 1, "the key of a map: expected a string or an int or a double, not a bool"),
        ("{true: 1}", 2, "the key of a map: expected a string or an int, not a bool"),
        ('{"a": 1, "a": 2}', 10, '"a": the map has this key already'),
        ("sise(tool)", 1, "sise(): there is no such function (did you mean size?)"),
        ("tool.startWith('a')", 6, "startWith(): there is no such method (did you mean startsWith?)"),
        ("tool.foo()", 6, "foo(): there is no such method"),
        ("x.exist(e, true)", 3, "exist(): there is no such method (did you mean exists?)"),
        ("timestamp(tool)", 1, "timestamp() is a part of CEL that rules do not have"),
        ("startsWith(tool, 'a')", 1, "startsWith() is a method: write value.startsWith(…)"),
        ("all(x, true)", 1, "all() is a method: write value.all(…)"),
        ("tool.int()", 6, "int() is a function: write int(value)"),
        ("size()", 1, "size() takes 1 argument, 0 are given"),
        ("tool.size(1)", 6, "size() takes no arguments, 1 is given"),
        ("tool.startsWith('a', 'b')", 6, "startsWith() takes 1 argument, 2 are given"),
        ("matches(tool)", 1, "matches() takes 2 arguments, 1 is given"),
        ("size(1)", 6, "size(): expected a string or a list or a map, not an int"),
        ("tool.contains(1)", 15, "contains(): expected a string, not an int"),
        ("args.limit.startsWith('1')", 1, "startsWith(): expected a string, not an int"),
        ("int(true)", 5, "int(): expected an int or a double or a string, not a bool"),
        ("tool.matches('(')", 14, "the pattern is not valid RE2: missing ): ("),
        (
            "tool.matches(tool)",
            14,
            "matches() takes its pattern as a literal, which is compiled at load",
        ),
        ("tool.matches('a{1001}')", 14, "the pattern is not valid RE2: invalid repetition size: {1001}"),
        ("tool.all(e, true)", 6, "all(): expected a list or a map, not a string"),
        ("args.tags.all(e, e)", 18, "the condition of all(): expected a bool, not a string"),
        ("args.tags.map(e, e, e)", 18, "the condition of map(): expected a bool, not a string"),
        ("args.tags.all(e, e > 1)", 20, "a string > an int: they have no order"),
        ("args.tags.all(e, true) && e == 'a'", 27, "e: there is no such variable"),
        ("args.options.all(k, k == 1)", 23, "a string == an int: they are never equal"),
    ],
)
def test_what_no_values_allow_is_refused(source: str, column: int, message: str) -> None:
    error = fault(source, RuleTypeError)
    assert (error.message, error.line, error.column) == (message, 1, column)


def test_lines_and_columns_count_characters_from_one() -> None:
    error = fault('tool == "é😀"\n  && // then\n  args.forse', RuleTypeError)
    assert (error.line, error.column) == (3, 8)


def test_a_rule_error_is_a_value_error_and_one_of_fastrpc() -> None:
    assert issubclass(RuleSyntaxError, RuleError)
    assert issubclass(RuleTypeError, RuleError)
    assert issubclass(RuleError, ValueError)
    assert issubclass(RuleError, FastrpcError)


def test_an_error_quotes_no_more_than_an_excerpt() -> None:
    name = "a" * 3000
    for source in (f"{name} == 1", f"args.{name}", f'"{name}" + 1', f"{name}()", f"tool {name}"):
        error = fault(source, RuleSyntaxError if source.startswith("tool ") else RuleTypeError)
        assert len(error.message) < 700


@pytest.mark.parametrize(
    "source",
    [
        "args.limit == 1.0",
        "1 < args.ratio && args.ratio <= 2.5",
        "args.note == null && args.note != 'a'",
        "args.note.startsWith('a')",
        "x == 1 || x == 'a' || x == null",
        "x.a.b.c[1]['d'].e",
        "args.headers.anything == 'a'",
        "args.tags == [] && args.tags != ['a']",
        "args.headers == {} && args.options != {'depth': 1}",
        "args.mode == tool",
        "x + 1 > x * 2.0",
        "x.startsWith(x) && x.all(e, e)",
        "!" * 63 + "true",
        "(" * 63 + "1" + ")" * 63,
        " && ".join(["true"] * 400),
        " || ".join(["false"] * 400),
        "1" + "+1" * 63,
    ],
)
def test_what_some_values_allow_is_not_refused(source: str) -> None:
    compile(source, VARIABLES)


@pytest.mark.parametrize("source", ["(" * 60 + "true" + ")" * 60, "1" + "+1" * 60, "x" + ".a" * 60])
def test_a_rule_that_the_stack_has_no_room_for_is_refused(source: str) -> None:
    """The levels are bounded, yet the caller may have used up the stack."""

    def load(below: int) -> Any:
        return load(below - 1) if below else compile(source, {"x": DYN})

    for left in range(150, 250, 10):
        try:
            load(sys.getrecursionlimit() - left)
        except RuleSyntaxError as error:
            refusal = error
        except RecursionError:  # of `load` itself
            pass
    assert refusal.message == "there is no room left on the stack for a rule of so many levels"


def test_without_re2_a_pattern_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)
    error = fault("tool.matches('a')", RuleTypeError)
    assert error.message == "matches() needs google-re2: pip install google-re2"

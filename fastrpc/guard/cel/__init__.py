"""Rules: a subset of CEL, checked when the policy is loaded, then a Python function of about a microsecond.

    rule = compile('tool == "Deploy" && args.target.startsWith("prod")', {"tool": STRING, "args": arguments})
    rule.test({"tool": "Deploy", "args": {"target": "production"}})    # True

`compile` raises `RuleError` for a source that is not a rule: `RuleSyntaxError` or `RuleTypeError`, with line,
column and the nearest name. The types of the variables are declared; those of a tool's arguments are read
from its schema (`type_of_schema`). An evaluation raises `EvaluationError` and no other exception: then the
guard denies.

Supported: literals of int, double, string (raw and triple-quoted, too), bool, null, lists and maps; the
operators ``== != < <= > >= in && || ! + - * / %`` and ``? :``; ``a.b``, ``a[b]``, ``has(a.b)``; the functions
``size int double string matches``; the methods ``startsWith endsWith contains matches size``; the macros
``all exists exists_one filter map``; comments; and, beyond CEL, functions about command lines for bash:
``shellReads shellParses shellPrograms shellCommands`` (`fastrpc.guard.shell`). Not supported: unsigned ints,
bytes, times, messages, ``type()``, optional values, custom functions.

Bounded: 4,096 characters and 64 levels of a source; 100,000 steps of an evaluation (`values.MOST_STEPS`), and
1,000,000 characters of a string that it puts together. ``matches`` takes time linear in the text (RE2).

An int and a double are compared as doubles, as the engines of CEL do: 2**63 - 1 equals 2.0**63.

Where it differs from CEL (the conformance tests and Google's engine in C++), and CEL from its implementation
in Rust. Both engines are compared with it in the tests:

==========================  ============================  ==============================================
what                        here                          CEL (Rust, where it differs from CEL)
==========================  ============================  ==============================================
ints beyond 64 bits         compared exactly; a result    do not exist (become doubles)
                            beyond them is an error
an int where a double is    a double in arithmetic, as    does not exist
declared                    JSON writes 1.0 as 1
NaN < 1.0                   false                         false (an error)
-(-9223372036854775808)     an error                      an error (wraps)
size("é")                   1, characters                 1 (2, bytes)
an element that fails, in   does not matter if another    as here (an error)
``all`` and ``exists``      one decides
``1 == "1"``, ``1 + "1"``   refused at load               refused if types are checked (not checked)
lists of several types      allowed                       refused if types are checked (allowed)
a key twice                 an error                      an error (the last one counts)
keys of maps                strings and ints              bools and unsigned ints, too
1.0 where 1 is a key        finds it                      finds it (an error)
``matches``                 with a literal pattern        with any pattern (as a method only)
``string(true)``            "true"                        "true" (an error)
``string(1e30)``            "1e+30"                       "1e+30" (all its digits)
order of a map's keys       that of the value             any
==========================  ============================  ==============================================

Compiled code decides most rules about arguments for a gate: `screening.py`, `_core/call_gate.pyx`.
"""

from __future__ import annotations

from fastrpc.guard.cel.errors import EvaluationError, RuleError, RuleSyntaxError, RuleTypeError
from fastrpc.guard.cel.types import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    NULL,
    STRING,
    Type,
    choices_in,
    list_of,
    map_of,
    nullable,
    one_of,
    struct,
    type_of_schema,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from fastrpc.guard.cel.expression import Expression

__all__ = [
    "BOOL",
    "DOUBLE",
    "DYN",
    "INT",
    "NULL",
    "STRING",
    "EvaluationError",
    "RuleError",
    "RuleSyntaxError",
    "RuleTypeError",
    "Type",
    "choices_in",
    "compile",
    "list_of",
    "map_of",
    "nullable",
    "one_of",
    "struct",
    "type_of_schema",
]


def compile(source: str, variables: Mapping[str, Type], choices: frozenset[str] = frozenset()) -> Expression:
    """Return the expression of a source whose variables have these types; raise `RuleError`. `choices`: the
    arguments that may be members of enums (`choices_in`); the expression sees their values.

    It need not be a rule: the caller checks that its `type` is a bool.
    """
    from fastrpc.guard.cel.expression import Expression  # imported only if there are rules

    try:
        return Expression(source, variables, choices)
    except RecursionError:  # the levels are bounded, but the caller may have used up the stack
        raise RuleSyntaxError("there is no room left on the stack for a rule of so many levels") from None

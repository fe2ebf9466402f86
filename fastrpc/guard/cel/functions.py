"""The functions and methods of rules, each with its signature and implementation.

The checker and the compiler use every function that is added here. The one exception is ``matches``: RE2
compiles its pattern, a literal, when the rule is loaded (`compiled_pattern`), so it takes time linear in the
text. google-re2 is imported only for that; tree-sitter only for rules about shell command lines.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any, NamedTuple

from fastrpc.guard.cel.errors import EvaluationError
from fastrpc.guard.cel.types import BOOL, DOUBLE, INT, STRING, WORDS, Type, list_of
from fastrpc.guard.cel.values import (
    LARGEST_INT,
    SHORT_TEXT,
    SMALLEST_INT,
    Frame,
    double_of,
    kind_of,
    limited,
    read_text,
    search_text,
    spend,
    text_of,
    words_of,
)

OCTETS_A_STEP = 400
"""Octets of UTF-8 that a pattern match processes in one step."""


class Function(NamedTuple):
    """`parameters`: the kinds of types that each accepts; a method's first parameter is the operand before
    the dot. `load` imports what the function needs when a rule that calls it is loaded."""

    parameters: tuple[tuple[str, ...], ...]
    result: Type
    run: Callable[..., Any]
    load: Callable[[], object] | None = None


def at_an_end(doing: str, test: Callable[[str, str], bool]) -> Callable[[Frame, Any, Any], bool]:
    """Return what ``startsWith`` or ``endsWith`` does."""

    def run(frame: Frame, text: Any, part: Any) -> bool:
        if type(text) is str and type(part) is str:
            if len(part) > SHORT_TEXT:
                read_text(frame, part)
            return test(text, part)
        return test(text_of(text, doing), text_of(part, doing))

    return run


def contains(frame: Frame, text: Any, part: Any) -> bool:
    text, part = text_of(text, "contains"), text_of(part, "contains")
    search_text(frame, text, part)
    return part in text


def size(frame: Frame, value: Any) -> int:
    """Return the number of characters of a string, elements of a list, or members of a map."""
    if kind_of(value) not in SIZED:
        raise EvaluationError(f"size: {words_of(value)} has none")
    return len(value)


def to_int(frame: Frame, value: Any) -> int:
    kind = kind_of(value)
    if kind == "int":
        return int(value)
    if kind == "double":
        if SMALLEST_INT < value < LARGEST_INT:
            return int(value)
        raise EvaluationError("int: the double is beyond 64 bits")
    if kind != "string" or not INT_TEXT.fullmatch(value):
        raise EvaluationError(f"int: {WORDS[kind]} that is not an int")
    return limited(int(value))


INT_TEXT = re.compile(r"[+-]?[0-9]{1,40}")
DOUBLE_TEXT = re.compile(
    r"[+-]?(?:[0-9]+(?:\.[0-9]*)?(?:e[+-]?[0-9]+)?|\.[0-9]+(?:e[+-]?[0-9]+)?|inf|infinity|nan)", re.I | re.A
)


def to_double(frame: Frame, value: Any) -> float:
    kind = kind_of(value)
    if kind == "string":
        if len(value) > 1000 or not DOUBLE_TEXT.fullmatch(value):
            raise EvaluationError("double: the string is not a number")
    elif kind not in ("int", "double"):
        raise EvaluationError(f"double: {WORDS[kind]} is not a number")
    return double_of(value)


def to_string(frame: Frame, value: Any) -> str:
    kind = kind_of(value)
    if kind == "string":
        return str(value)
    if kind == "bool":
        return "true" if value else "false"
    if kind == "int":
        if value.bit_length() > 4096:
            raise EvaluationError("string: the int is too large")
        return str(int(value))
    if kind == "double":
        return "NaN" if value != value else repr(float(value)).removesuffix(".0")
    raise EvaluationError(f"string: expected a string, a number or a bool, not {WORDS[kind]}")


def compiled_pattern(pattern: str) -> Any:
    """Return RE2's compiled pattern; raise ValueError with its message, ImportError without google-re2."""
    re2 = importlib.import_module("re2")
    options = re2.Options()
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(pattern.encode(), options)
    except re2.error as error:
        reason = error.args[0] if error.args else ""
        raise ValueError(
            reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        ) from None


def matches(frame: Frame, pattern: Any, text: Any) -> bool:
    """Whether a compiled pattern matches a part of the text."""
    text = text_of(text, "matches")
    try:
        octets = text.encode()
    except UnicodeEncodeError:
        raise EvaluationError("matches: the text has half of a surrogate pair") from None
    if len(octets) >= OCTETS_A_STEP:
        spend(frame, len(octets) // OCTETS_A_STEP)
    return pattern.search(octets) is not None


# --- shell command lines ----------------------------------------------------------------------------------

SHELL_NEEDS = "tree-sitter and tree-sitter-bash: pip install -U 'fastrpc-mcp[guard]'"


def load_shell() -> None:
    """Raise ImportError without tree-sitter, ValueError for versions of it that do not fit together."""
    from fastrpc.guard.shell.parser import load

    load()
    importlib.import_module("fastrpc.guard.shell.harmless")  # otherwise the first call would build its tables


def shell_reads(frame: Frame, line: Any) -> bool:
    from fastrpc.guard.shell.harmless import only_reads

    return only_reads(shell_line(frame, line, "shellReads"))


def shell_parses(frame: Frame, line: Any) -> bool:
    from fastrpc.guard.shell.parser import commands

    return commands(shell_line(frame, line, "shellParses")) is not None


def shell_programs(frame: Frame, line: Any) -> list[str]:
    """Return the programs that a line runs, at least one."""
    return [command[0].text for command in known_commands(frame, line, "shellPrograms")]


def shell_commands(frame: Frame, line: Any) -> list[str]:
    """Return the commands that a line runs, at least one, as words that are quoted where necessary."""
    from shlex import quote

    return [
        " ".join(word.written if word.is_pattern else quote(word.text) for word in command)
        for command in known_commands(frame, line, "shellCommands")
    ]


def known_commands(frame: Frame, line: Any, doing: str) -> Any:
    """Return the commands of a line. If they are not known for certain, raise an error: an empty list would
    make ``all`` true, an incomplete one ``exists`` false."""
    from fastrpc.guard.shell.parser import commands

    found = commands(shell_line(frame, line, doing))
    if found is None:
        raise EvaluationError(f"{doing}: the command line is not understood")
    return found


def shell_line(frame: Frame, line: Any, doing: str) -> str:
    """Return a value that must be a string; charge for parsing it as a command line."""
    from fastrpc.guard.shell.lexer import LONGEST_LINE

    text = text_of(line, doing)
    spend(frame, 50 + min(len(text), LONGEST_LINE))
    return text


TEXT = ("string",)
SIZED = ("string", "list", "map")
SIZE = Function((("string", "list", "map", "struct"),), INT, size)
FUNCTIONS = {
    "size": SIZE,
    "matches": Function((TEXT, TEXT), BOOL, matches),
    "int": Function((("int", "double", "string"),), INT, to_int),
    "double": Function((("int", "double", "string"),), DOUBLE, to_double),
    "string": Function((("string", "int", "double", "bool"),), STRING, to_string),
    "shellReads": Function((TEXT,), BOOL, shell_reads, load_shell),
    "shellParses": Function((TEXT,), BOOL, shell_parses, load_shell),
    "shellPrograms": Function((TEXT,), list_of(STRING), shell_programs, load_shell),
    "shellCommands": Function((TEXT,), list_of(STRING), shell_commands, load_shell),
}
METHODS = {
    "startsWith": Function((TEXT, TEXT), BOOL, at_an_end("startsWith", str.startswith)),
    "endsWith": Function((TEXT, TEXT), BOOL, at_an_end("endsWith", str.endswith)),
    "contains": Function((TEXT, TEXT), BOOL, contains),
    "matches": FUNCTIONS["matches"],
    "size": SIZE,
}
NOT_THERE = frozenset(("bool", "bytes", "duration", "dyn", "timestamp", "type", "uint"))
"""Functions of CEL that rules do not have."""

"""Real bash gets from a line exactly the words that `fastrpc.guard.shell` says, if it says any.

bash runs in an empty folder, with a PATH that leads nowhere: every program is unknown to it, and its handler
for that prints the words. Each line runs twice, once with programs that end well and once with such that
fail: then whatever is behind ``&&`` or ``||`` has run.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st

from fastrpc.guard.shell.parser import commands

BASH = shutil.which("bash") or pytest.skip("no bash", allow_module_level=True)
HANDLER = """
exec 3>&1
command_not_found_handle() {{
    set -- "${{@//$'\\n'/$'\\2'}}"
    printf '%s\\0' "$@" $'\\1' >&3
    return {code}
}}
PATH=/dev/null
eval -- "$1"
"""
"""Newlines are replaced, at which bash would divide what it writes: programs of a pipeline print at once."""
KNOWN = (
    *("a", "b", "-c", "--d=e", "1", "2", "/x/y", "=", "x~", "!", "%", "^", "]", ",", ":", "@", "+", "a#"),
    *("'a b'", "''", "'$x'", "'\n'", "'ü'", "'*'", "'#'"),
    *('"a b"', '""', '"a\\"b"', '"a\\\\"', '"a\\nb"', '"a$"'),
    *("\\a", "\\ ", "\\\\", "\\'", '\\"', "\\$", "\\*", "\\~", "\\;", "\\#"),
    *("a*", "a?", "a[b]"),
)
UNKNOWN = (
    *("*", "?", "[a]", "~", "~root", "#", "a=~", "a:~", "a[1]=", "{", "}", "{a,b}", ")", "("),
    *("$x", "`", "$(", "$'a'", "'", '"', "\\", "\\\n", "ü", "\r"),
)
PIECES = st.sampled_from(KNOWN * 9 + UNKNOWN)
WORDS = st.lists(PIECES, min_size=1, max_size=3).map("".join)
ENDS = st.sampled_from(
    ("", "", " ", " 2>&1", " >/dev/null", " 2>/dev/null ", " > /dev/null", " 2 >/dev/null") * 6
    + ("2>&1", " >x", " <x")
)
OPERATORS = (" | ", " && ", " || ", "; ", "\n", ";", "|", "&&", "||", " # c\n", "\n\n", " |\n", "&&\n")
OTHERS = ("&", " & ", ";;", "|&", "\\\n", " <<a\n", ";#", "\n;")
BETWEEN = st.sampled_from(OPERATORS * 5 + OTHERS)
NAMES = st.sampled_from(
    ("p", "q", "'p'", '"p q"', "p\\ q", "p_1") * 9 + ("p#", "p=1", "time", "!", "p*", "%p")
)
COMMANDS = st.tuples(
    NAMES, st.lists(st.tuples(st.sampled_from((" ", "  ", "\t")), WORDS), max_size=3), ENDS
).map(lambda parts: parts[0] + "".join(blank + word for blank, word in parts[1]) + parts[2])
LINES = st.tuples(COMMANDS, st.lists(st.tuples(BETWEEN, COMMANDS), max_size=3)).map(
    lambda parts: parts[0] + "".join(operator + command for operator, command in parts[1])
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("empty")


def seen_by_bash(line: str, folder: Path) -> Iterator[tuple[str, ...]]:
    for code in (0, 1):
        done = subprocess.run(
            [BASH, "-c", HANDLER.format(code=code), "bash", line],
            cwd=folder,
            env={"HOME": "/home/of/somebody", "LC_ALL": "C.UTF-8"},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=30,
        )
        for printed in done.stdout.decode().split("\1\0")[:-1]:
            yield tuple(printed.replace("\2", "\n").split("\0")[:-1])


@settings(max_examples=300, deadline=None)
@given(line=LINES)
@example(line="p a=b x~ HEAD~1 '~' \\~")
@example(line="p \\\\a '\\\\' \"\\\\ \\x\" a\\ b")
@example(line="p a* b?c x[y] \"*\"* '[a]'")
@example(line="p 2>&1 a 2 >/dev/null 3")
@example(line="p a#b '#' # c\nq # d")
@example(line="p | q && r || s; t\n\nu")
@example(line="%p")
def test_bash_gets_the_words_that_the_parser_says(line: str, folder: Path) -> None:
    found = commands(line)
    event("understood" if found is not None else "not understood")
    if found is not None:
        assert set(seen_by_bash(line, folder)) == {tuple(word.text for word in command) for command in found}
    assert not list(folder.iterdir())

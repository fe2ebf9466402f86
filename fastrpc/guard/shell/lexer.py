"""Reads the simple commands of a line for bash, word for word as bash does, or refuses the line.

It supports commands of literal words (bare, with backslashes, in single and double quotes), joined by ``|``,
``&&``, ``||``, ``;`` and newlines; the redirections of `REDIRECTION`; comments; and patterns (``src/*.py``)
whose first character is literal, so that they cannot expand to an option. For a line with anything else the
result is `None`: expansions, assignments, other redirections, here-documents, functions, compound commands,
``&``, words that are reserved at the start of a command, invisible characters.

Pure, and linear in the line: 0.4 µs a character, measured on a busy machine. `parser` compares the result
with tree-sitter's.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LONGEST_LINE = 2000
"""Characters."""
MOST_COMMANDS = 50

PIECE = re.compile(
    r"""
      (?P<bare>     [A-Za-z0-9_@%+=:,./^!~\#\]-]+ )
    | \\ (?P<escaped> [ -~] )
    | ' (?P<single> [^']* ) '
    | " (?P<double> (?: [^"\\$`] | \\[^\n] | \$(?=") )* ) "
    | (?P<pattern>  [*?\[] )
    """,
    re.VERBOSE,
)
"""A part of a word. A ``$`` before the closing quote is literal: ``"end$"``."""
ESCAPED_IN_QUOTES = re.compile(r'\\([$`"\\])')
REDIRECTION = re.compile(r"(?:2>&1|[12]?>[ ]?/dev/null)(?=[ \t\n;|&]|\Z)")
OPERATOR = re.compile(r"&&|\|\|?|;|\n")
KEYWORDS = "! case coproc do done elif else esac fi for function if in select then time until while"
RESERVED = frozenset(KEYWORDS.split())
"""Words that are not programs at the beginning of a command, besides those with brackets and braces."""


class Word(NamedTuple):
    """A word: its source, and its value in bash. `is_pattern`: it may expand to the names of files."""

    written: str
    text: str
    is_pattern: bool


Command = list[Word]
"""A simple command: its first word is the program."""
WORD, PROGRAM, OPERATORS, REDIRECTS, COMMENT = "word", "program", "operator", "redirection", "comment"


class Part(NamedTuple):
    """A part of a line, from `start` to `end`: of which kind, and its value in bash."""

    kind: str
    start: int
    end: int
    text: str


def read(line: str) -> list[Command] | None:
    """Return the commands of a line in their order, at least one; None if it is not understood."""
    reader = _reader_of(line)
    return None if reader is None else reader.commands


def parts(line: str) -> list[Part] | None:
    """Return what a line consists of, besides spaces, in its order; None if it is not understood."""
    reader = _reader_of(line)
    return None if reader is None else reader.parts


def _reader_of(line: str) -> _CommandReader | None:
    if len(line) > LONGEST_LINE or not _is_plain(line):
        return None
    reader = _CommandReader(line)
    return reader if reader.read() else None


def _is_plain(line: str) -> bool:
    if not line.replace("\n", " ").replace("\t", " ").isprintable():
        return False
    # In some character sets of other languages a backslash may be the second half of a character.
    return line.isascii() or "\\" not in line


class _CommandReader:
    def __init__(self, line: str) -> None:
        self.line = line
        self.at = 0
        self.commands: list[Command] = []
        self.command: Command = []
        self.parts: list[Part] = []
        self.is_joined = False
        """Whether the last operator must be followed by a command."""

    def read(self) -> bool:
        line, known = self.line, True
        while known and self.at < len(line):
            first = line[self.at]
            if first in " \t":
                self.at += 1
            elif first in "|&;\n":
                known = self.operator()
            elif first == "#":
                end = line.find("\n", self.at)
                self.pass_to(end if end >= 0 else len(line), COMMENT)
            else:
                known = (first in "12>" and self.redirection()) or self.word()
        self.end_command()
        return known and bool(self.commands) and not self.is_joined and len(self.commands) <= MOST_COMMANDS

    def pass_to(self, end: int, kind: str) -> None:
        self.parts.append(Part(kind, self.at, end, self.line[self.at : end]))
        self.at = end

    def operator(self) -> bool:
        found = OPERATOR.match(self.line, self.at)
        if found is None or not (self.command or found[0] == "\n"):
            return False
        self.pass_to(found.end(), OPERATORS)
        if self.command:
            self.end_command()
            self.is_joined = found[0] not in (";", "\n")
        return True

    def end_command(self) -> None:
        if self.command:
            self.commands.append(self.command)
            self.command = []

    def redirection(self) -> bool:
        found = REDIRECTION.match(self.line, self.at)
        if found is None or not self.command:
            return False
        self.pass_to(found.end(), REDIRECTS)
        return True

    def word(self) -> bool:
        start, text, first_pattern = self.at, "", -1
        while (piece := PIECE.match(self.line, self.at)) is not None:
            kind, part = piece.lastgroup, piece[piece.lastgroup or 0]
            if kind == "bare" and _has_tilde(text, part):
                return False
            if kind == "pattern" and first_pattern < 0:
                first_pattern = len(text)
            text += ESCAPED_IN_QUOTES.sub(r"\1", part) if kind == "double" else part
            self.at = piece.end()
        if self.at == start or self.line[self.at : self.at + 1] not in ("", *" \t\n;|&"):
            return False
        is_pattern = first_pattern >= 0
        if is_pattern and (first_pattern == 0 or text[0] == "-"):  # it may expand to an option
            return False
        if not self.command and (is_pattern or not _is_program(text)):
            return False
        self.parts.append(Part(WORD if self.command else PROGRAM, start, self.at, text))
        self.command.append(Word(self.line[start : self.at], text, is_pattern))
        self.is_joined = False
        return True


def _is_program(name: str) -> bool:
    """Whether a word at the beginning of a command is a program's name, not a keyword, assignment or job."""
    return bool(name) and name not in RESERVED and "=" not in name and name[0] != "%"


def _has_tilde(before: str, part: str) -> bool:
    """Whether an unquoted part may contain a tilde that expands to a folder, as at a word's beginning."""
    return "=~" in part or ":~" in part or (part[0] == "~" and (not before or before[-1] in "=:"))

"""Variables in the texts of a configuration: what is replaced, what stays, and what is refused.

``${VAR}`` and ``${VAR:-default}`` are those of Claude Code, ``${env:VAR}``, ``${userHome}`` and ``${/}`` of
VS Code and Cursor, ``{env:VAR}`` of opencode, ``$VAR`` of Gemini CLI. A default may hold others with braces;
it is read to the first brace that closes it, and looked up only where it is used. Whatever else begins so
(``${input:…}``, ``${workspaceFolder}``, ``{file:…}``, a missing end) is an error: no server is started with a
text that its author meant to be replaced. One pass; the value of a variable is not searched for variables.

A dollar without braces may be an ordinary character of a password. It begins a variable if that variable is
set, or is the whole text, or its name has only capitals; in the script of ``sh -c`` it belongs to the shell.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from fastrpc.errors import InvalidConfig

NAME = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)")
BEGIN = re.compile(r"\$\{|\{(?=(?:env|file):)")
PLAIN = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
CAPITALS = re.compile(r"[A-Z_][A-Z0-9_]+")
SCRIPT = re.compile(r"-[A-Za-z]*c")
"""An option that the script of a shell follows."""
SHOWN = re.compile(
    r"\$?\{ ?(?:(?:input|command|config|file|workspaceFolder):[\w./~-]*"
    r"|\{ ?\w+(?:\.\w+)*|(?:env:|ENV:)?\w*(?::-)?) ?\}?"
)
"""What an error shows of a variable."""
DEEPEST = 32
LONGEST_SHOWN = 60
OF_EDITORS = (
    "workspaceFolder",
    "workspaceFolderBasename",
    "workspaceRoot",
    "file",
    "fileDirname",
    "__dirname",
)
"""What editors replace by paths of theirs."""


def expanded(text: str, known: Mapping[str, str]) -> str:
    """Return a text with its variables replaced. Raises InvalidConfig for a variable without a value, and for
    what is no variable: a brace that is not closed, or too deep a nesting."""
    return _VariableReader(text, known).read() if "$" in text or "{" in text else text


def expanded_arguments(arguments: list[str], known: Mapping[str, str], own: Collection[str]) -> Iterator[str]:
    """Yield the arguments of a command, replaced as by `expanded`. In the script of a shell, and where they
    name one of the command's `own` variables, dollars without braces stay. Raises InvalidConfig."""
    before = ""
    for argument in arguments:
        is_script = SCRIPT.fullmatch(before) is not None
        yield _VariableReader(argument, known, own, reads_plain=not is_script).read()
        before = argument


@dataclass(eq=False)
class _VariableReader:
    """Reads one text from the front. `reads_plain`: whether a dollar without braces begins a variable."""

    text: str
    known: Mapping[str, str]
    own: Collection[str] = ()
    reads_plain: bool = True
    at: int = 0

    def read(self) -> str:
        return self._until("", True, 0)

    def _until(self, end: str, is_used: bool, depth: int) -> str:
        """Return the text before an end, and move past it. `end` "": the end of the text. A variable whose
        value is not used need not be set."""
        text, parts = self.text, []
        while True:
            begin = BEGIN.search(text, self.at)
            found = -1 if begin is None else begin.start()
            close = text.find(end, self.at) if end else len(text)
            if close >= 0 and not 0 <= found < close:
                parts.append(self._literal(close, depth))
                self.at = close + len(end)
                return "".join(parts)
            if found < 0:
                raise InvalidConfig(f"{_shown(text, self.at)}: the closing brace is missing")
            parts.append(self._literal(found, depth))
            self.at = found
            parts.append(self._variable(is_used, depth + 1))

    def _literal(self, end: int, depth: int) -> str:
        """Return the text up to an end, in which variables have no braces. A default has none of them."""
        piece = self.text[self.at : end]
        if depth or not self.reads_plain or "$" not in piece:
            return piece
        return PLAIN.sub(self._plain, piece)

    def _plain(self, found: re.Match[str]) -> str:
        written, name = found[0], found[1]
        if name in self.own:
            return written
        value = self.known.get(name)
        if value is not None:
            return value
        if CAPITALS.fullmatch(name):
            literal = f"what is no variable is written ${{{name}:-{written}}}"
            raise InvalidConfig(f"{written}: the environment variable {name} is not set ({literal})")
        if written == self.text:  # it may be a password, which no error shows
            raise InvalidConfig("$…: this environment variable is not set (what is none: ${NONE:-$…})")
        return written

    def _variable(self, is_used: bool, depth: int) -> str:
        """Return the value of the variable at this position, and move past it."""
        text, begin = self.text, self.at
        if depth > DEEPEST:
            raise InvalidConfig(f"more than {DEEPEST} variables inside one another")
        if text.startswith("${/}", begin):
            self.at += len("${/}")
            return os.sep
        inside = text.index("{", begin) + 1
        name = NAME.match(text, inside)
        after = "" if name is None else text[name.end() : name.end() + 2]
        if name is None or not (after[:1] == "}" or after == ":-"):
            raise InvalidConfig(f"{_shown(text, begin)}: {_why(text[inside:])}")
        value = self.known.get(name[1])
        if after == ":-":
            self.at = name.end() + 2
            default = self._until("}", is_used and not value, depth)
            return value or default
        self.at = name.end() + 1
        if value is None and name[0] == "userHome":
            value = os.path.expanduser("~")
        if value is None and is_used:
            why = " (it is an editor's; write the path)" if name[0] in OF_EDITORS else ""
            raise InvalidConfig(
                f"{text[begin : self.at]}: the environment variable {name[1]} is not set{why}"
            )
        return value or ""


def _shown(text: str, begin: int) -> str:
    """Return what begins at a place, as far as an error shows it: a name, or what an editor asks for.
    The rest may be a default in any spelling, and defaults may be secret."""
    begin = max((each.start() for each in BEGIN.finditer(text) if each.start() <= begin), default=0)
    found = SHOWN.match(text, begin)
    if found is None:
        return "…"
    shown = found[0] if found[0].endswith("}") or found.end() == len(text) else f"{found[0]}…"
    return shown if len(shown) <= LONGEST_SHOWN else f"{shown[:LONGEST_SHOWN]}…"


def _why(rest: str) -> str:
    """Return what is wrong with the text after the brace."""
    if rest.startswith("input:"):
        return "is a question to a person, which only VS Code asks; write ${VAR}, and set that variable"
    if rest.startswith(("command:", "config:", "workspaceFolder:")):
        return "is replaced only by an editor; write its value, or ${VAR}"
    if rest.startswith("file:"):
        return "files are not read; write ${VAR}, and set that variable"
    return "expected ${VAR}, ${VAR:-default} or ${env:VAR}"

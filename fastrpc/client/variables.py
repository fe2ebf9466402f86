"""``${…}`` in the texts of a configuration: what stands for a variable, and what is refused.

``${VAR}`` and ``${VAR:-default}`` are those of Claude Code, ``${env:VAR}``, ``${userHome}`` and ``${/}`` of
VS Code and Cursor. A default may hold others; it is read to the first brace that closes it, and looked up
only where it is used. Whatever else begins so (``${input:…}``, ``${workspaceFolder}``, a missing end) is an
error: no server is started with a text that somebody meant to be replaced. One pass; what a variable contains
is not read again.
"""

from __future__ import annotations

import os
import re

from fastrpc.errors import InvalidConfig

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = re.compile(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)")
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
    """Return a text with its variables replaced. Raises InvalidConfig for one that is not set and has no
    default, and for what is no variable."""
    return text if "${" not in text else _Reader(text, known).read()


class _Reader:
    """Reads one text from the front."""

    def __init__(self, text: str, known: Mapping[str, str]) -> None:
        self._text = text
        self._known = known
        self._at = 0

    def read(self) -> str:
        return self._until("", True, 0)

    def _until(self, end: str, is_used: bool, depth: int) -> str:
        """Return what stands before an end, "" for that of the text, and go behind it. Of what is not used no
        variable has to be set."""
        text, parts = self._text, []
        while True:
            found = text.find("${", self._at)
            close = text.find(end, self._at) if end else len(text)
            if close >= 0 and not 0 <= found < close:
                parts.append(text[self._at : close])
                self._at = close + len(end)
                return "".join(parts)
            if found < 0:
                raise InvalidConfig(f"{_shown(text, self._at)}: the closing brace is missing")
            parts.append(text[self._at : found])
            self._at = found
            parts.append(self._variable(is_used, depth + 1))

    def _variable(self, is_used: bool, depth: int) -> str:
        """Return the value of the variable that stands here, and go behind it."""
        text, begin = self._text, self._at
        if depth > DEEPEST:
            raise InvalidConfig(f"more than {DEEPEST} variables inside one another")
        if text.startswith("${/}", begin):
            self._at += len("${/}")
            return os.sep
        name = NAME.match(text, begin + 2)
        after = "" if name is None else text[name.end() : name.end() + 2]
        if name is None or not (after[:1] == "}" or after == ":-"):
            raise InvalidConfig(f"{_shown(text, begin)}: {_why(text[begin + 2 :])}")
        value = self._known.get(name[1])
        if after == ":-":
            self._at = name.end() + 2
            default = self._until("}", is_used and not value, depth)
            return value or default
        self._at = name.end() + 1
        if value is None and name[0] == "userHome":
            value = os.path.expanduser("~")
        if value is None and is_used:
            why = " (it is an editor's; write the path)" if name[0] in OF_EDITORS else ""
            raise InvalidConfig(
                f"{text[begin : self._at]}: the environment variable {name[1]} is not set{why}"
            )
        return value or ""


def _shown(text: str, begin: int) -> str:
    """Return what stands at a place, as far as an error shows it: not the default, which may be secret."""
    begin = max(0, text.rfind("${", 0, begin + 2))
    close = text.find("}", begin)
    shown = text[begin : len(text) if close < 0 else close + 1]
    return (shown.partition(":-")[0] + ":-…" if ":-" in shown else shown)[:LONGEST_SHOWN]


def _why(rest: str) -> str:
    """Return what is wrong with the text behind ``${``."""
    if rest.startswith("input:"):
        return "asks a person, which only VS Code does; write ${VAR}, and set that variable"
    if rest.startswith(("command:", "config:", "workspaceFolder:")):
        return "is replaced by an editor alone; write its value, or ${VAR}"
    return "expected ${VAR}, ${VAR:-default} or ${env:VAR}"

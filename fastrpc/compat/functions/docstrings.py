"""Descriptions of parameters in docstrings, as FastMCP reads them: Google's, NumPy's, Sphinx's notation.

FastMCP reads docstrings with the library griffe; this reads the same of them (a property test compares both),
without it: importing it takes longer than starting a server. The description of a tool is the text before
the first section. Which sections count depends on the FastMCP that is installed: none in 2, one that
describes parameters in 3 and 4.0, any from 4.1 on; 4.2 counts a heading of no known name no longer. A
docstring without a section costs some microseconds.
"""

from __future__ import annotations

import inspect
import re

from fastrpc.compat.dialect import installed_release
from fastrpc.definitions.handler import clean_docstring

_GOOGLE_PARAMETERS = frozenset(["args", "arguments", "params", "parameters"])
_GOOGLE_SECTIONS = frozenset(
    [
        "keyword args",
        "keyword arguments",
        "other args",
        "other arguments",
        "other params",
        "other parameters",
        "type args",
        "type arguments",
        "type params",
        "type parameters",
        "raises",
        "exceptions",
        "returns",
        "yields",
        "receives",
        "examples",
        "attributes",
        "functions",
        "methods",
        "classes",
        "type aliases",
        "modules",
        "warns",
        "warnings",
    ]
)
_FREE_FORM = frozenset(["returns", "yields", "receives", "examples"])
"""Sections that have a content whatever is in them; the others consist of lines with a colon."""

_NUMPY_SECTIONS = frozenset(
    [
        "deprecated",
        "parameters",
        "other parameters",
        "type parameters",
        "returns",
        "yields",
        "receives",
        "raises",
        "warns",
        "examples",
        "attributes",
        "functions",
        "methods",
        "classes",
        "type aliases",
        "modules",
    ]
)
ADMONITIONS = frozenset(
    [
        "attention",
        "caution",
        "danger",
        "error",
        "example",
        "hint",
        "important",
        "note",
        "notes",
        "raise",
        "references",
        "return",
        "see-also",
        "tip",
        "todo",
        "warning",
        "yield",
    ]
)
"""Headings that FastMCP 4.2 counts as sections, beside the known ones."""

_SPHINX_PARAMETERS = ("param", "parameter", "arg", "argument", "key", "keyword")
_SPHINX_SECTIONS = ("var", "ivar", "cvar", "return", "raise", "except")
_SPHINX_TYPES = ("type", "vartype", "rtype")

_HEADING = re.compile(r"(\w[\s\w-]*):(\s+\S.*)?\s*")
_NAMES = re.compile(r"\*{0,2}[_a-z][_a-z0-9]*(?:,\s\*{0,2}[_a-z][_a-z0-9]*)*", re.IGNORECASE)


class _Reading:
    """What is read of a docstring in one notation.

    `description` is the first text outside of sections. `kinds` are the names of the sections; that of a
    heading that is no known section has a colon after it.
    """

    def __init__(self) -> None:
        self.description: str | None = None
        self.parameters: dict[str, str] = {}
        self.kinds: list[str] = []
        self._text: list[str] = []

    def add_text(self, line: str) -> None:
        self._text.append(line)

    def add_heading(self, name: str) -> None:
        """A section begins whose name is none of the known ones."""
        self.kinds.append(name.replace(" ", "-") + ":")

    def end_text(self) -> None:
        """A section begins, or the docstring ends."""
        if self.description is None and any(self._text):
            self.description = "\n".join(self._text).rstrip("\n")
        self._text = []

    def is_structured(self, version: tuple[int, ...]) -> bool:
        """Whether FastMCP of this version splits the docstring."""
        if self.parameters:
            return version >= (3, 0)
        if version < (4, 1):
            return False
        return any(
            not kind.endswith(":") or version < (4, 2) or kind[:-1] in ADMONITIONS for kind in self.kinds
        )


def read_docstring(text: str | None) -> tuple[str | None, dict[str, str]]:
    """Return the description in a docstring, and the descriptions of parameters by name."""
    clean = clean_docstring(text)
    if clean is None:
        return None, {}
    version = installed_release("fastmcp")
    if version >= (3, 0):
        lines = inspect.cleandoc(clean.rstrip()).split("\n")
        for read in (_google, _numpy, _sphinx):
            found = read(lines)
            if found.is_structured(version):
                return found.description or None, found.parameters
    return clean, {}


def _is_empty(line: str) -> bool:
    return not line or line.isspace()


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


# --- Google's notation ------------------------------------------------------------------------------------


def _google(lines: list[str]) -> _Reading:
    """``Args:``, and below it, indented, ``name (type): text``; lines that are indented more continue it."""
    found = _Reading()
    is_fenced = False
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip(" ").startswith("```"):
            is_fenced = not is_fenced
        elif not is_fenced and ":" in line:
            heading = _HEADING.fullmatch(line)
            end = at if heading is None else _end_of_section(lines, at, heading[1].lower())
            if heading is not None and end > at:
                found.end_text()
                _read_google_section(found, heading[1].lower(), lines[at + 1 : end])
                at = end
                continue
        found.add_text(line)
        at += 1
    found.end_text()
    return found


def _end_of_section(lines: list[str], at: int, name: str) -> int:
    """Return where the section of a heading ends; `at` if it is none.

    An empty line comes before it, and an indented one after it; after a known name that may be the one
    after the next: then the section is empty.
    """
    if at > 0 and not _is_empty(lines[at - 1]):
        return at
    if _is_indented(lines, at + 1):
        return _end_of_block(lines, at + 1)
    is_known = name in _GOOGLE_SECTIONS or name in _GOOGLE_PARAMETERS
    if is_known and _is_indented(lines, at + 2) and not _is_empty(lines[at + 1]):
        return at + 1
    return at


def _is_indented(lines: list[str], at: int) -> bool:
    return at < len(lines) and lines[at].startswith(" ") and not _is_empty(lines[at])


def _end_of_block(lines: list[str], at: int) -> int:
    """Return where the lines end that are indented as much as the one at `at`."""
    indent = " " * _indent(lines[at])
    while at < len(lines) and (lines[at].startswith(indent) or _is_empty(lines[at])):
        at += 1
    return at


def _read_google_section(found: _Reading, name: str, block: list[str]) -> None:
    if not block:
        return
    if name in _GOOGLE_PARAMETERS:
        entries = _google_entries(block)
        found.parameters.update(entries)
        if entries:
            found.kinds.append(name)
    elif name not in _GOOGLE_SECTIONS:
        found.add_heading(name)
    elif name in _FREE_FORM or _google_entries(block):
        found.kinds.append(name)


def _google_entries(block: list[str]) -> dict[str, str]:
    """Return the texts of a block by name. Those that go on keep what they are indented by beyond a step."""
    indent = _indent(block[0])
    items: list[list[str]] = []
    for line in block:
        depth = _indent(line)
        if _is_empty(line):
            items[-1].append("")
        elif depth == indent:
            items.append([line[indent:]])
        else:
            items[-1].append(line[min(depth, 2 * indent) :])
    found = {}
    for item in items:
        name, colon, text = item[0].partition(":")
        if colon:
            if "(" in name and name.endswith(")"):
                name = name.partition("(")[0].strip()
            found[name] = "\n".join([text.lstrip(), *item[1:]]).rstrip("\n")
    return found


# --- NumPy's notation -------------------------------------------------------------------------------------


def _numpy(lines: list[str]) -> _Reading:
    """``Parameters`` underlined by dashes, then ``name : type`` with indented text below."""
    found = _Reading()
    is_fenced = is_admonition = False
    at = 0
    while at < len(lines):
        line = lines[at]
        if line.lstrip(" ").startswith("```"):
            is_fenced = not is_fenced
        elif not is_fenced and _is_underlined(lines, at):
            if not is_admonition:
                found.end_text()
            name = line.lower()
            is_admonition = name not in _NUMPY_SECTIONS
            if is_admonition:
                found.add_heading(name[:-1] if name in ("notes", "warnings") else name)
                at += 2
            else:
                at = _read_numpy_section(found, name, lines, at + 2)
            continue
        if not is_admonition:
            found.add_text("" if _is_empty(line) and not is_fenced else line)
        at += 1
    if not is_admonition:
        found.end_text()
    return found


def _is_underlined(lines: list[str], at: int) -> bool:
    if _is_empty(lines[at]) or at + 1 == len(lines):
        return False
    below = lines[at + 1]
    return "-" in below and _is_empty(below.replace("-", ""))


def _read_numpy_section(found: _Reading, name: str, lines: list[str], at: int) -> int:
    """Read a section from line `at` on; return where it ends."""
    items: list[list[str]] = []
    while at < len(lines):
        line = lines[at]
        if _is_empty(line):
            if items:
                items[-1].append("")
        elif items and line.startswith(" "):
            items[-1].append(line[min(_indent(line), 4) :])
        elif items and _is_underlined(lines, at):
            break
        else:
            items.append([line])
        at += 1
    if name != "parameters":
        if items:
            found.kinds.append(name)
        return at
    for item in items:
        names = _NAMES.match(item[0])
        if names is not None:
            text = "\n".join(item[1:]).rstrip()
            found.parameters.update(dict.fromkeys(names[0].split(", "), text))
    if found.parameters:
        found.kinds.append(name)
    return at


# --- Sphinx's notation ------------------------------------------------------------------------------------


def _sphinx(lines: list[str]) -> _Reading:
    """``:param type name: text``."""
    found = _Reading()
    at = 0
    while at < len(lines):
        line = lines[at]
        field = line[1:] if line.startswith(":") else ""
        is_type = field.startswith(_SPHINX_TYPES)
        if not (is_type or field.startswith((*_SPHINX_PARAMETERS, *_SPHINX_SECTIONS))):
            found.add_text(line)
            at += 1
            continue
        end = at + 1
        while end < len(lines) and not lines[end].startswith(":"):
            end += 1
        if not is_type:
            _read_sphinx_field(found, "\n".join(lines[at:end]))
        at = end
    while found._text and _is_empty(found._text[0]):
        del found._text[0]
    found.end_text()
    return found


def _read_sphinx_field(found: _Reading, text: str) -> None:
    parts = inspect.cleandoc(text).rstrip("\n").split(":", 2)
    if len(parts) < 3:
        return
    words = parts[1].split(" ")
    if not words[0].startswith(_SPHINX_PARAMETERS):
        if len(words) == 2 or words[0].startswith("return"):
            found.kinds.append(words[0])
    elif len(words) > 1:
        found.parameters.setdefault(words[-1], parts[2].strip())
        found.kinds.append("param")

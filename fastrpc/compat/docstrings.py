"""Descriptions of parameters in docstrings, as FastMCP reads them: Google's, NumPy's, Sphinx's notation.

The description is then what stands before the first section. FastMCP 2 leaves each docstring as it is, 3 to
4.1 one that describes no parameter, 4.2 only one without any section: the version that is installed counts,
4.1 where none is. Reads lines, without a library; a docstring without a section costs a microsecond.
"""

from __future__ import annotations

import os
import sys
from functools import cache

from fastrpc.definitions.handler import clean_docstring

_SECTIONS = ("args:", "arguments:", "params:", "parameters:", "keyword args:", "keyword arguments:")
_OTHER_SECTIONS = frozenset(
    [
        "attention",
        "attributes",
        "caution",
        "classes",
        "danger",
        "error",
        "example",
        "examples",
        "exceptions",
        "functions",
        "hint",
        "important",
        "methods",
        "modules",
        "note",
        "notes",
        "raise",
        "raises",
        "receives",
        "references",
        "return",
        "returns",
        "see-also",
        "tip",
        "todo",
        "warning",
        "warnings",
        "warns",
        "yield",
        "yields",
    ]
)
"""Names of sections of Google's and NumPy's notation that describe no parameter."""
_FIELDS = frozenset(
    ["except", "exception", "raise", "raises", "return", "returns", "rtype", "type", "var", "vartype"]
)
"""The same for Sphinx's."""

LATEST_KNOWN = (4, 1)


@cache
def installed_version() -> tuple[int, int]:
    """Return the version of the FastMCP that the interpreter would import, `LATEST_KNOWN` without one."""
    for place in sys.path:
        try:
            names = os.listdir(place or ".")
        except OSError:
            continue
        for name in names:
            if name.startswith(("fastmcp-", "fastmcp_slim-")) and name.endswith(".dist-info"):
                major, _, rest = name.partition("-")[2].partition(".")
                minor = rest.partition(".")[0]
                if major.isdigit() and minor.isdigit():
                    return int(major), int(minor)
    return LATEST_KNOWN


def read_docstring(text: str | None) -> tuple[str | None, dict[str, str]]:
    """Return the description in a docstring, and the descriptions of parameters by name."""
    clean = clean_docstring(text)
    if clean is None:
        return None, {}
    lines = clean.splitlines()
    for read, has_other in ((_google, _has_google), (_numpy, _has_numpy), (_sphinx, _has_sphinx)):
        at, found = read(lines)
        if at == len(lines) or not (found or has_other(lines)):
            continue
        version = installed_version()
        if version >= (4, 2) or (found and version >= (3, 0)):
            return "\n".join(lines[:at]).strip() or None, found
    return clean, {}


def _has_google(lines: list[str]) -> bool:
    """Whether there is a section, in Google's notation, that describes no parameter."""
    return any(
        line.endswith(":")
        and line[:-1].lower() in _OTHER_SECTIONS
        and not (at and lines[at - 1].strip())
        and bool(_block_below(lines, at))
        for at, line in enumerate(lines)
    )


def _has_numpy(lines: list[str]) -> bool:
    return any(_is_underlined(lines, at) and lines[at].lower() in _OTHER_SECTIONS for at in range(len(lines)))


def _has_sphinx(lines: list[str]) -> bool:
    return any(
        line.startswith(":") and line[1:].partition(":")[0].partition(" ")[0] in _FIELDS for line in lines
    )


def _google(lines: list[str]) -> tuple[int, dict[str, str]]:
    """``Args:``, and below it ``name (type): text``, indented; lines that are indented more go on."""
    found: dict[str, str] = {}
    start = None
    for at, line in enumerate(lines):
        is_header = line.lower() in _SECTIONS and bool(_block_below(lines, at))
        begins = at > 0 and not lines[at - 1].strip()
        if start is None and begins and line.endswith(":") and _is_header(line) and _block_below(lines, at):
            start = at
        if is_header and begins:
            found.update(_entries(_block_below(lines, at)))
    return (len(lines) if start is None else start), found


def _is_header(line: str) -> bool:
    return not line[:1].isspace() and len(line) < 60


def _block_below(lines: list[str], at: int) -> list[str]:
    """Return the indented lines that follow a header."""
    block = []
    for line in lines[at + 1 :]:
        if line.strip() and not line[:1].isspace():
            break
        block.append(line)
    return block if any(line.strip() for line in block[:1]) else []


def _entries(block: list[str]) -> dict[str, str]:
    margin = min((_indent(line) for line in block if line.strip()), default=0)
    found: dict[str, str] = {}
    name = None
    for line in block:
        if not line.strip():
            continue
        if _indent(line) > margin:
            if name is not None:
                found[name] = f"{found[name]}\n{line.strip()}".strip()
            continue
        head, colon, text = line.strip().partition(":")
        name = head.partition("(")[0].strip().lstrip("*")
        if not colon or not name.isidentifier():
            name = None
        else:
            found[name] = text.strip()
    return found


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _numpy(lines: list[str]) -> tuple[int, dict[str, str]]:
    """``Parameters`` underlined by dashes, then ``name : type`` with indented text below."""
    found: dict[str, str] = {}
    start = next((at for at in range(len(lines) - 1) if _is_underlined(lines, at)), len(lines))
    if start == len(lines):
        return start, found
    for at in range(start, len(lines) - 1):
        if not _is_underlined(lines, at) or lines[at].lower() not in ("parameters", "other parameters"):
            continue
        end = next((end for end in range(at + 2, len(lines)) if _is_underlined(lines, end)), len(lines))
        names: list[str] = []
        for line in lines[at + 2 : end]:
            if line.strip() and not line[:1].isspace():
                names = [name.strip().lstrip("*") for name in line.partition(":")[0].split(",")]
            elif line.strip():
                for name in names:
                    found[name] = f"{found.get(name, '')}\n{line.strip()}".strip()
    return start, found


def _is_underlined(lines: list[str], at: int) -> bool:
    return (
        bool(lines[at].strip())
        and at + 1 < len(lines)
        and len(lines[at + 1]) > 2
        and not lines[at + 1].strip("-")
    )


def _sphinx(lines: list[str]) -> tuple[int, dict[str, str]]:
    """``:param type name: text``."""
    found: dict[str, str] = {}
    start = len(lines)
    name = None
    for at, line in enumerate(lines):
        if line.startswith(":"):
            start = min(start, at)
            field, _, text = line[1:].partition(":")
            kind, *words = field.split()
            name = words[-1] if kind in ("param", "parameter", "arg", "argument") and words else None
            if name is not None:
                found[name] = text.strip()
        elif name is not None and line[:1].isspace():
            found[name] = f"{found[name]}\n{line.strip()}".strip()
    return start, found

"""Parses a TOML file, and finds the line of each of its keys.

The standard library's parser returns no positions. The lines are found by scanning the text: a key of an
inline table or of an array has the line of the key before it. They are only used in errors.
"""

from __future__ import annotations

import re
import sys
from typing import Any

from fastrpc.errors import Reworded
from fastrpc.guard.policy.sections import GuardConfigError, Lines

_KEY = r"""[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*'"""
_HEADER = re.compile(rf"\s*(\[\[?)\s*((?:{_KEY})(?:\s*\.\s*(?:{_KEY}))*)\s*\]")
_ASSIGNMENT = re.compile(rf"\s*((?:{_KEY})(?:\s*\.\s*(?:{_KEY}))*)\s*=")
_PART = re.compile(_KEY)


def parse(file: str, source: str) -> tuple[dict[str, Any], Lines]:
    """Return the content of a TOML text, and the line of each path. Raises GuardConfigError."""
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        try:
            import tomli as tomllib  # type: ignore[import-not-found]
        except ImportError:
            raise GuardConfigError(
                f'{file}: TOML needs the package tomli on this Python: pip install "fastrpc-mcp[guard]"'
            ) from None
    with Reworded(tomllib.TOMLDecodeError, GuardConfigError, f"{file}: not TOML: "):
        return tomllib.loads(source), lines_of(source)


def lines_of(source: str) -> Lines:
    """Return the line of each table and key, by its path."""
    found: Lines = {}
    counts: dict[tuple[str | int, ...], int] = {}
    table: tuple[str | int, ...] = ()
    for number, line in enumerate(source.splitlines(), 1):
        header = _HEADER.match(line)
        if header is not None:
            table = _parts(header[2])
            if header[1] == "[[":
                counts[table] = counts.get(table, -1) + 1
                table = (*table, counts[table])
            else:
                table = _below_arrays(table, counts)
            for size in range(1, len(table) + 1):
                found.setdefault(table[:size], number)
            continue
        key = _ASSIGNMENT.match(line)
        if key is not None:
            path = (*table, *_parts(key[1]))
            for size in range(len(table) + 1, len(path) + 1):
                found.setdefault(path[:size], number)
    return found


def _parts(text: str) -> tuple[str | int, ...]:
    return tuple(part.strip("\"'") for part in _PART.findall(text))


def _below_arrays(
    table: tuple[str | int, ...], counts: dict[tuple[str | int, ...], int]
) -> tuple[str | int, ...]:
    """Return the path of a table, which may be inside the last table of an array."""
    for size in range(len(table) - 1, 0, -1):
        if table[:size] in counts:
            return (*table[:size], counts[table[:size]], *table[size:])
    return table

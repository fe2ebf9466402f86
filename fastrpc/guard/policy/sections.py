"""Reads the tables of a configuration strictly: each key must be known, each value of the right kind.

A mistake is a `GuardConfigError` with the file, the line, the path of the key, and the expected and the
actual value; for an unknown key, with the most similar known one. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fastrpc.errors import UsageError, suggestion

Lines = dict[tuple[str | int, ...], int]

LONGEST_SHOWN = 60


class GuardConfigError(UsageError):
    """A configuration of the guard that cannot be used. `line` is that of the mistake, 0 if it is unknown."""

    def __init__(self, message: str, line: int = 0) -> None:
        super().__init__(message)
        self.line = line


class Section:
    """One table. `path` is its path from the root; `lines` maps paths to their lines."""

    def __init__(self, file: str, table: Any, lines: Lines, path: tuple[str | int, ...] = ()) -> None:
        self._file = file
        self._lines = lines
        self.path = path
        if not isinstance(table, dict):
            raise self.error((), f"expected a table, got {shown(table)}")
        self._table = table
        self._taken: set[str] = set()

    def error(self, keys: Iterable[str | int], message: str) -> GuardConfigError:
        """Return the error about a key below this table."""
        path = (*self.path, *keys)
        line = next(
            (self._lines[path[:size]] for size in range(len(path), 0, -1) if path[:size] in self._lines), 0
        )
        where = f"{self._file}, line {line}" if line else self._file
        name = ""  # as people write it: ``rules[2].when``
        for each in path:
            name += f"[{each}]" if isinstance(each, int) else f".{each}" if name else each
        return GuardConfigError(f"{where}: {name}: {message}" if name else f"{where}: {message}", line)

    def written(self, key: str) -> Any:
        """Return the value of a key as it is written, None if it does not exist."""
        return self._table.get(key)

    def take(self, key: str, convert: Callable[[Any], Any], default: Any = None) -> Any:
        """Return the value of a key, converted by `convert`, which raises ValueError with the mistake."""
        self._taken.add(key)
        if key not in self._table:
            return default
        try:
            return convert(self._table[key])
        except ValueError as error:
            raise self.error([key], str(error)) from None

    def needed(self, key: str, convert: Callable[[Any], Any]) -> Any:
        """Return the converted value of a required key."""
        if key not in self._table:
            raise self.error([], f"{key} is missing")
        return self.take(key, convert)

    def table(self, key: str) -> Section:
        """Return the table of a key, an empty one if it does not exist."""
        self._taken.add(key)
        return Section(self._file, self._table.get(key, {}), self._lines, (*self.path, key))

    def section(self, key: str) -> Section | None:
        """Return the table of a key, None if it does not exist."""
        found = self.table(key)
        return found if key in self._table else None

    def named_sections(self, key: str) -> Iterator[tuple[str, Section]]:
        """Return the tables in the table of a key, by name."""
        outer = self.table(key)
        for name in outer._table:
            yield name, outer.table(name)

    def list_of_sections(self, key: str) -> list[Section]:
        """Return the tables in the array of a key."""
        self._taken.add(key)
        found = self._table.get(key, [])
        if not isinstance(found, list):
            raise self.error([key], f"expected an array of tables, got {shown(found)}")
        return [
            Section(self._file, each, self._lines, (*self.path, key, number))
            for number, each in enumerate(found)
        ]

    def items(self) -> Iterator[tuple[str, Any]]:
        """Return all keys and values of a table whose keys are arbitrary names."""
        self._taken.update(self._table)
        return iter(self._table.items())

    def end(self) -> None:
        """Raise GuardConfigError for a key that has not been read."""
        for key in self._table:
            if key not in self._taken:
                hint = suggestion(key, self._taken) or f"; there are {', '.join(sorted(self._taken))}"
                raise self.error([key], f"no such key{hint}")


def shown(value: Any) -> str:
    """Return a value in the form for errors; the code that writes the error masks secrets."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"


# --- kinds of values --------------------------------------------------------------------------------------


def text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"expected a text, got {shown(value)}")
    return value


def texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise ValueError(f"expected an array of texts, got {shown(value)}")
    return tuple(value)


def flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"expected true or false, got {shown(value)}")
    return value


def seconds(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 366 * 86400:
        raise ValueError(f"expected a number of seconds above 0, got {shown(value)}")
    return float(value)


def days(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e6:
        raise ValueError(f"expected a number of days above 0, got {shown(value)}")
    return float(value)


def one_of(*choices: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if value not in choices:
            hint = suggestion(value, choices) if isinstance(value, str) else ""
            raise ValueError(f"expected {', '.join(choices[:-1])} or {choices[-1]}, got {shown(value)}{hint}")
        return str(value)

    return convert


_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}\Z")


def name(value: Any) -> str:
    if not isinstance(value, str) or not _NAME.match(value):
        raise ValueError(f"expected a name of letters, digits, '_', '.', '@' and '-', got {shown(value)}")
    return value

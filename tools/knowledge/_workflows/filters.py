"""The operators, filters and tests of expressions. The size of each result is bounded, since the next one may
enlarge it; none accepts the `%` of Python's texts, or an unlimited number of digits."""

from __future__ import annotations

import json
import math

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LARGEST = 256 * 1024
LARGEST_NUMBER = 2**63
MOST_DIGITS = 20
JINJAS_TESTS = (
    "boolean", "defined", "eq", "false", "ge", "gt", "in", "le", "lt", "mapping", "ne", "none", "number",
    "string", "true", "undefined", "==", "!=", "<", "<=", ">", ">=",
)  # fmt: skip


def operation(operator: str, left: Any, right: Any) -> Any:
    """Return the value of an operator. Raises TypeError, ValueError and ArithmeticError."""
    if operator == "+" and type(left) is type(right) and isinstance(left, str | list):
        if len(left) + len(right) > LARGEST:
            raise ValueError(f"+: expected at most {LARGEST:,} characters or members")
        return left + right
    for value in (left, right):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{operator}: expected numbers, got {type(value).__name__}")
    value = _OPERATORS[operator](left, right)
    if not math.isfinite(value) or abs(value) >= LARGEST_NUMBER:
        raise ValueError(f"{operator}: expected a number below 2^63")
    return value


_OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": lambda left, right: left / right,
    "//": lambda left, right: left // right,
    "%": lambda left, right: left % right,
}


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {type(value).__name__}")
    return value


def _list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {type(value).__name__}")
    return value


def _end(value: Any, at: int) -> Any:
    if not isinstance(value, list | str):
        raise TypeError(f"expected a list or a text, got {type(value).__name__}")
    return value[at] if value else None


def _default(value: Any, instead: Any = "") -> Any:
    from jinja2 import Undefined

    return instead if value is None or isinstance(value, Undefined) else value


def _joined(value: Any, separator: str = "") -> str:
    parts = [each if isinstance(each, str) else json.dumps(each) for each in _list(value)]
    if sum(map(len, parts)) + len(_text(separator)) * len(parts) > LARGEST:
        raise ValueError(f"join: expected at most {LARGEST:,} characters")
    return separator.join(parts)


def _number(kind: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def convert(value: Any) -> Any:
        if not isinstance(value, str | int | float) or (isinstance(value, str) and len(value) > 100):
            raise TypeError(f"expected a number, got {type(value).__name__}")
        return kind(value)

    return convert


def _rounded(value: Any, digits: Any = 0) -> Any:
    if type(digits) is not int or abs(digits) > MOST_DIGITS:
        raise ValueError(f"round: expected at most {MOST_DIGITS} digits")
    return round(operation("+", value, 0), digits)


def _unique(value: Any) -> list[Any]:
    kept = {json.dumps(each, sort_keys=True): each for each in reversed(_list(value))}
    return list(reversed(kept.values()))


def _bounded(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def filtered(*arguments: Any) -> Any:
        value = function(*arguments)
        if isinstance(value, str | list) and len(value) > LARGEST:
            raise ValueError(f"{name}: expected at most {LARGEST:,} characters or members")
        return value

    return filtered


TESTS: dict[str, Callable[[Any], bool]] = {
    "even": lambda value: bool(operation("%", value, 2) == 0),
    "odd": lambda value: bool(operation("%", value, 2) == 1),
}
_FILTERS: dict[str, Callable[..., Any]] = {
    "abs": lambda value: abs(operation("+", value, 0)),
    "default": _default,
    "first": lambda value: _end(value, 0),
    "float": _number(float),
    "int": _number(int),
    "join": _joined,
    "json": lambda value: json.dumps(value, ensure_ascii=False),
    "last": lambda value: _end(value, -1),
    "length": len,
    "lower": lambda value: _text(value).lower(),
    "max": lambda value: max(_list(value)),
    "min": lambda value: min(_list(value)),
    "round": _rounded,
    "sort": lambda value: sorted(_list(value)),
    "sum": lambda value: operation("+", sum(_list(value)), 0),
    "trim": lambda value: _text(value).strip(),
    "unique": _unique,
    "upper": lambda value: _text(value).upper(),
}
FILTERS = {name: _bounded(name, function) for name, function in _FILTERS.items()}

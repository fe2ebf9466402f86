"""The numbers of a list's items as a browser shows them. They depend on the start, the direction, the items'
own numbers, and the style: letters, Roman numerals or digits."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

NUMBER = re.compile(r"[+-]?\d{1,6}")
STYLE = re.compile(r"(lower|upper)-?(alpha|latin|roman)", re.IGNORECASE)
ROMAN = tuple(
    zip(
        (1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1),
        ("M", "CM", "D", "CD", "C", "XC", "L", "XL", "X", "IX", "V", "IV", "I"),
        strict=True,
    )
)


def number(text: str | None) -> int | None:
    """Return the number in an attribute, if it has one."""
    match = NUMBER.fullmatch((text or "").strip())
    return int(match[0]) if match else None


class Numbering:
    """Counts the items of an `ol`. `kind` is empty for digits."""

    def __init__(self, element: Any) -> None:
        self.kind = _kind_of(element)
        self._step = 1 if element.get("reversed") is None else -1
        start = number(element.get("start"))
        if start is None:
            start = 1 if self._step > 0 else sum(1 for _ in element.iterchildren("li"))
        self.start = self._next = start
        self._items = 0

    def take(self, item: Any) -> tuple[int, bool]:
        """Return the number of the next item, and whether it differs from the one that follows from the
        first."""
        given = number(item.get("value")) if item is not None else None
        value = self._next if given is None else given
        expected = self.start + self._items
        self._next = value + self._step
        self._items += 1
        return value, value != expected

    def label(self, value: int) -> str:
        return f"{KINDS[self.kind](value)}." if self.kind and value > 0 else f"{value}."


def _kind_of(element: Any) -> str:
    kind = (element.get("type") or "").strip()
    if kind in KINDS:
        return kind
    match = STYLE.search(f"{element.get('style') or ''} {element.get('class') or ''}")
    if match is None:
        return ""
    kind = "i" if match[2].lower() == "roman" else "a"
    return kind.upper() if match[1].lower() == "upper" else kind


def _letters(value: int) -> str:
    letters = ""
    while value > 0:
        value, letter = divmod(value - 1, 26)
        letters = chr(ord("a") + letter) + letters
    return letters


def _roman(value: int) -> str:
    if value >= 4000:
        return str(value)
    numeral = ""
    for worth, sign in ROMAN:
        count, value = divmod(value, worth)
        numeral += sign * count
    return numeral


KINDS: dict[str, Callable[[int], str]] = {
    "a": _letters,
    "A": lambda value: _letters(value).upper(),
    "i": lambda value: _roman(value).lower(),
    "I": _roman,
}

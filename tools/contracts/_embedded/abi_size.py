"""Says whether ABI-encoded bytes stand for no more values than they have words.

Arrays and texts are named by where they begin, and any number of arrays may name the same one: 20 kB that a
contract returns can stand for millions of values, which would be a decoder's time and memory. An encoder uses
each word once. Costs one step for each value that is not of fixed size, and never more than there are words.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Entry = dict[str, Any]

ARRAY = re.compile(r"(.*)\[([0-9]{0,9})\]\Z")


class _TooMuch(Exception):
    """It stands for more values than it has words."""


class _TooShort(Exception):
    """It ends before its values do: a decoder sees that, too, and no later."""


def is_plain(parameters: list[Entry], data: bytes) -> bool:
    try:
        _Count(data).members(parameters, 0)
    except _TooShort:
        return True
    except (_TooMuch, RecursionError):
        return False
    return True


class _Count:
    """Counts down the words that values may still use: each once as a value or length, once as an offset."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = 2 * (len(data) // 32 + 8)

    def members(self, parameters: list[Entry], at: int) -> None:
        """The members of a tuple that begins there."""
        head = at
        for each in parameters:
            words = fixed_words(each)
            self._take(words or 1)
            if words is None:
                self._elsewhere(each, at + self._word(head))
            head += 32 * (words or 1)

    def _elsewhere(self, parameter: Entry, at: int) -> None:
        """A value of no fixed size, which begins there."""
        kind = str(parameter["type"])
        if array := ARRAY.match(kind):
            item = {**parameter, "type": array[1]}
            if array[2]:
                self._items(item, int(array[2]), at)
            else:
                self._items(item, self._word(at), at + 32)
        elif kind == "tuple":
            self.members(parameter.get("components", []), at)
        else:  # bytes or a text
            self._take(1 + self._word(at) // 32)

    def _items(self, item: Entry, count: int, at: int) -> None:
        words = fixed_words(item)
        self._take(count * (words or 1))
        if words is None:
            for number in range(count):
                self._elsewhere(item, at + self._word(at + 32 * number))

    def _take(self, words: int) -> None:
        self._left -= words
        if self._left < 0:
            raise _TooMuch

    def _word(self, at: int) -> int:
        if at + 32 > len(self._data):
            raise _TooShort
        return int.from_bytes(self._data[at : at + 32], "big")


def fixed_words(parameter: Entry) -> int | None:
    """The words of a value of this type; None where that is not fixed."""
    kind = str(parameter["type"])
    if array := ARRAY.match(kind):
        each = fixed_words({**parameter, "type": array[1]})
        return None if each is None or not array[2] else int(array[2]) * each
    if kind == "tuple":
        members = [fixed_words(each) for each in parameter.get("components", [])]
        return None if None in members else sum(each or 0 for each in members)
    return None if kind in ("bytes", "string") else 1

"""Which types an ABI may have, and whether encoded bytes encode more values than they have words.

Arrays and texts are encoded by the offset at which they begin, and any number of arrays may have the same
offset. So 20 kB that a contract returns can encode millions of values, and cost a decoder that much time and
memory. An encoder uses each word once. And eth-abi's time doubles for each tuple around the values: 31 tuples
around one integer take hours. Costs one step for each value of variable size, and never more steps than there
are words.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Entry = dict[str, Any]

MOST_LEVELS = 32
"""The depth of nested arrays and tuples."""
MOST_MEMBERS = 1_000
"""Elementary types in one parameter."""
MOST_STEPS = 65_536
"""Steps of decoding, half a second. A word outside of tuples is one step; each tuple around it doubles
that."""
ARRAY = re.compile(r"(.*)\[((?:[1-9][0-9]{0,8})?)\]\Z")
_SIZES = "|".join(str(bits) for bits in range(8, 257, 8))
_ELEMENTARY = re.compile(
    rf"address|bool|string|function|bytes(?:[1-9]|[12][0-9]|3[0-2])?|u?int(?:{_SIZES})", re.ASCII
)


def is_known(parameter: Entry) -> bool:
    """Whether the type exists, in Solidity or Vyper, and has a size that contracts use."""
    return 0 < _members(parameter, MOST_LEVELS) <= MOST_MEMBERS


def _members(parameter: Entry, levels: int) -> int:
    """The number of elementary types in a parameter; 0 if the type does not exist, or is nested deeper."""
    kind = str(parameter["type"])
    while levels and (array := ARRAY.match(kind)):
        kind = array[1]
        levels -= 1
    if kind != "tuple":
        return 1 if _ELEMENTARY.fullmatch(kind) else 0
    inner = [_members(each, levels - 1) for each in parameter.get("components", [])] if levels else []
    return 0 if 0 in inner else sum(inner)


def steps_of(parameters: list[Entry], data: bytes) -> int:
    """The number of steps to decode the bytes, of known types."""
    return (len(data) // 32 + 1) << max(map(_tuples_around, parameters), default=0)


def _tuples_around(parameter: Entry) -> int:
    """The number of tuples around the innermost value."""
    if not str(parameter["type"]).startswith("tuple"):
        return 0
    return 1 + max(map(_tuples_around, parameter["components"]))


class _TooMuch(Exception):
    """The bytes encode more values than they have words."""


class _TooShort(Exception):
    """The bytes end before their values do; a decoder detects that too, and no later."""


def is_plain(parameters: list[Entry], data: bytes) -> bool:
    """Whether the bytes, of known types, encode no more values than they have room for, and are quickly
    decoded."""
    if steps_of(parameters, data) > MOST_STEPS:
        return False
    try:
        _Count(data).members(parameters, 0)
    except _TooShort:
        return True
    except _TooMuch:
        return False
    return True


class _Count:
    """Counts down the words that values may still use: each once as a value or length, once as an offset."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._left = 2 * (len(data) // 32 + 8)

    def members(self, parameters: list[Entry], at: int) -> None:
        """The members of a tuple that begins at this offset."""
        head = at
        for each in parameters:
            words = fixed_words(each)
            self._take(words or 1)
            if words is None:
                self._elsewhere(each, at + self._word(head))
            head += 32 * (words or 1)

    def _elsewhere(self, parameter: Entry, at: int) -> None:
        """A value of variable size that begins at this offset."""
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
    """The number of words of a value of this type; None if it is variable."""
    kind = str(parameter["type"])
    if array := ARRAY.match(kind):
        each = fixed_words({**parameter, "type": array[1]})
        return None if each is None or not array[2] else int(array[2]) * each
    if kind == "tuple":
        members = [fixed_words(each) for each in parameter.get("components", [])]
        return None if None in members else sum(each or 0 for each in members)
    return None if kind in ("bytes", "string") else 1

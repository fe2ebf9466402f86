"""The standard library's reading of a line, as strict as simdjson's, for what simdjson cannot decide.

Two callers, both rare: a line with a number that simdjson refuses (an integer beyond 64 bits, a real
beyond a double, or plain rubbish) is read here whole; and a broken line is read here once more to say
what is wrong and at which byte. `json` alone is too lenient: it takes UTF-16, NaN, lone surrogates and
integers of any length. Costs the import of `json` (7 ms) once, then about 10 ms a megabyte. The caller
has checked the nesting.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

MAX_DIGITS = 4300  # of an integer: where Python's own conversion stops, and a quadratic cost with it
LONG_INTEGER = re.compile(rb"(?<!\d)\d{%d}" % (MAX_DIGITS + 1))  # looked for once a run, or it is quadratic
HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
GUARDED = ("name", "arguments", "_meta")


class Broken(Exception):
    """The line is no JSON. Its text says what is wrong and, where that is known, at which byte."""


class Reading:
    """What a line holds: its `value`; of an object the `pairs` as they came, duplicates and all; and
    whether its params hold a guarded name twice."""

    def __init__(self, line: bytes) -> None:
        """Read a line. Raises `Broken`."""
        self.pairs: list[tuple[str, Any]] = []
        self._repeating: list[dict[str, Any]] = []
        # Looked at once for the whole line, so that a long array costs no call for each element.
        self._may_hold_half_pairs = HALF_PAIR.search(line) is not None
        text = _decode(line)
        decoder = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_constant=_constant,
            parse_int=_integer if LONG_INTEGER.search(line) else None,
            parse_float=_real,
        )
        try:
            self.value: Any = decoder.decode(text)
        except json.JSONDecodeError as error:
            raise Broken(f"{_phrase(error.msg)} at byte {len(text[: error.pos].encode())}") from None
        except RecursionError:
            raise Broken("nested too deep") from None
        except ValueError:  # where the interpreter's own limit is set lower
            raise Broken("an integer of too many digits") from None
        if self._may_hold_half_pairs:
            _refuse_half_pairs(self.value)

    @property
    def params_repeat(self) -> bool:
        params = self.value.get("params")
        return any(params is members for members in self._repeating)

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Note an object; the outermost one comes last."""
        if self._may_hold_half_pairs:
            for name, value in pairs:
                _refuse_half_pairs(name)
                _refuse_half_pairs(value)
        members = dict(pairs)
        if len(members) < len(pairs):
            names = [name for name, _ in pairs]
            if any(names.count(name) > 1 for name in GUARDED):
                self._repeating.append(members)
        self.pairs = pairs
        return members


def explain(line: bytes, too_deep: bool) -> str:
    """Return what is wrong with a line that was refused, and at which byte."""
    if too_deep:
        return f"more than 128 levels of nesting at byte {_too_deep_at(line)}"
    try:
        Reading(line)
    except Broken as broken:
        return str(broken)
    return "not valid JSON"


def _too_deep_at(line: bytes) -> int:
    """Return the byte where the 129th level opens."""
    level = 0
    quoted = escaped = False
    for at, byte in enumerate(line):
        if quoted:
            if escaped:
                escaped = False
            elif byte == 0x5C:
                escaped = True
            elif byte == 0x22:
                quoted = False
        elif byte == 0x22:
            quoted = True
        elif byte in b"[{":
            level += 1
            if level > 128:
                return at
        elif byte in b"]}":
            level -= 1
    return len(line)


def _decode(line: bytes) -> str:
    if line.startswith(b"\xef\xbb\xbf"):
        raise Broken("a byte order mark at byte 0")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Broken(f"not UTF-8 at byte {error.start}") from None


def _constant(name: str) -> NoReturn:
    raise Broken(f"{name} is no JSON number")


def _integer(text: str) -> int:
    if len(text.lstrip("-")) > MAX_DIGITS:
        raise Broken(f"an integer of more than {MAX_DIGITS} digits")
    return int(text)


def _real(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise Broken("a number beyond the range of a double")
    return number


def _refuse_half_pairs(value: Any) -> None:
    """Refuse a lone surrogate in a string, or in one inside an array; objects have been looked at."""
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise Broken("a \\u escape of half a surrogate pair")
    elif isinstance(value, list):
        for element in value:
            _refuse_half_pairs(element)


def _phrase(complaint: str) -> str:
    """The standard library's complaint, without the hint that names a line and column."""
    return complaint[0].lower() + complaint[1:]

"""Ids, times and the JSON of audit records. Secrets are masked here, before anything is written.

A record is a flat dict of the caller's: strings, numbers, booleans, None, and small dicts such as those of
`salted_hash`. Encoding never fails: what JSON does not have is written as text, what is too long is cut.
Values under a name that says secret (``password``, ``token_id``) are masked whole; other strings go through
`fastrpc.redaction`, which knows secrets by their place, those of the environment, and those it was told. A
value without a secret is remembered as long as no secret is added, since most come again: a record takes
4.5 µs then. Whoever makes many records that are alike can have the fields that come again made JSON once
(`fields_json`). What is to be hashed rather than written is left to the caller.
"""

from __future__ import annotations

import os
import re
from hashlib import sha256
from sys import getsizeof
from time import gmtime, strftime
from typing import Any

import orjson

from fastrpc._core.audit_lines import ALPHABET, identifier
from fastrpc.quotas import size_of
from fastrpc.redaction import MASK, NAMES, hidden, masked, secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    Record = Mapping[str, Any]

RESERVED = frozenset(("seq", "prev", "id", "kind", "signature"))
"""Names that a record may not have: they are the log's own."""
LONGEST_LINE = 64 * 1024
LONGEST_TEXT = 1000
"""Characters of a string in a record that would be a longer line."""
RECORD_BYTES = 2048
"""About what a record takes besides its texts and what is nested in it."""

_PAIRS = tuple(first + second for first in ALPHABET for second in ALPHABET)
SECRET_NAME = re.compile(NAMES, re.IGNORECASE)


class SaltedHash(dict[str, str]):
    """What `salted_hash` returns: it is written as it is."""


class Quoted(dict[str, Any]):
    """Arguments that a record quotes, masked as whoever approves calls sees them (`guard.shell.masking`): in
    them nothing more is masked, since that could hide what would have run."""


def salted_hash(data: bytes) -> SaltedHash:
    """Return a hash of arguments or of a result for a record: with the salt, whoever has the data can show
    that it is this; without the data nobody can try what it may have been, since each record has a salt of
    its own."""
    salt = os.urandom(16)
    return SaltedHash(salt=salt.hex(), sha256=sha256(salt + data).hexdigest())


def memory_of(record: Record, most: int) -> int:
    """Return about how many bytes a record takes in memory; a number above `most` if it is more."""
    size = RECORD_BYTES
    for value in record.values():
        kind = type(value)
        if kind is str:
            size += getsizeof(value)
        elif kind not in _PLAIN:
            size += size_of(value, most)
    return size


class Ids:
    """Makes ids in the order of time: ``audit_`` and 26 characters as a ULID has them. Of these 10 are the
    milliseconds since 1970, 8 random for each log, and 8 count. Not thread-safe."""

    def __init__(self) -> None:
        self._random = "".join(_PAIRS[byte] for byte in os.urandom(4))
        self._milliseconds = -1
        self.count = 0
        self._head = ""

    def next(self, milliseconds: int) -> str:
        """Return the next id. One for an earlier time, after the clock was set back, has the last one's."""
        return identifier(*self.reserve(milliseconds, 1))

    def reserve(self, milliseconds: int, count: int) -> tuple[str, int]:
        """Return how the next ids begin, and what the first of them counts."""
        if milliseconds > self._milliseconds:
            self._milliseconds = milliseconds
            self._head = f"audit_{base32(milliseconds, 5)}{self._random}"
        first = self.count + 1
        self.count += count
        return self._head, first


def base32(number: int, pairs: int) -> str:
    """Return a number in base 32, as so many pairs of characters."""
    return "".join(_PAIRS[number >> 10 * place & 1023] for place in range(pairs - 1, -1, -1))


def new_chain_id(milliseconds: int) -> str:
    """Return the id of a new chain: 10 characters of time and 6 random ones."""
    return base32(milliseconds, 5) + base32(int.from_bytes(os.urandom(4), "big") & 0x3FFFFFFF, 3)


_second = (-1, "")


def rfc3339(milliseconds: int) -> str:
    """Return a time as RFC 3339 has it, in UTC with milliseconds: ``2026-04-22T10:15:23.847Z``."""
    global _second
    seconds, rest = divmod(milliseconds, 1000)
    known, text = _second
    if seconds != known:
        text = strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))
        _second = seconds, text
    return f"{text}.{rest:03d}Z"


def encoded(identifier: str, milliseconds: int, record: Record) -> bytes:
    """Return the fields of a record as JSON, without the brace that opens it. `milliseconds` is its time,
    unless it has one."""
    try:
        _forget_if_stale()
        if record and "time" not in record and _is_clean(record):
            head = f'"id":"{identifier}","time":"{rfc3339(milliseconds)}",'
            line = head.encode() + orjson.dumps(record)[1:]
        else:
            fields: dict[str, Any] = {"id": identifier, "time": rfc3339(milliseconds)}
            for name, value in record.items():
                fields[name] = _cleaned(name, value)
            line = orjson.dumps(fields)[1:]
        if len(line) <= LONGEST_LINE:
            return line
    except Exception:  # a key that is no text, lone surrogates, a number beyond 64 bits, a class, …
        pass
    return _encoded_anyway(identifier, milliseconds, record)


def fields_json(record: Record) -> str:
    """Return fields as JSON without the braces, masked as in `encoded`; to be made anew when `secrets_seen`
    returns another number."""
    head = len(f'"id":"","time":"{rfc3339(0)}",')
    return encoded("", 0, record)[head:-1].decode()


def secrets_seen() -> int:
    """Return a number that is another one when there are other secrets than at the last call."""
    _forget_if_stale()
    return _times_stale


# --- secrets ----------------------------------------------------------------------------------------------

_clean: set[str] = set()
"""Values without secrets."""
_clean_with: tuple[int, str] = (0, "")
"""How many secrets there were then, and the last of them."""
_times_stale = 0
_harmless: set[str] = set()
"""Names of fields that name no secret."""
_PLAIN = frozenset((int, float, bool, type(None), SaltedHash))
LONGEST_REMEMBERED = 100
MOST_REMEMBERED = 4000


def _is_clean(record: Record) -> bool:
    """Return whether a record can be written as it is: nothing is to be masked in it, and nothing nested."""
    for name, value in record.items():
        kind = type(value)
        if kind is str:
            if (value not in _clean and not _is_clean_text(value)) or name not in _harmless:
                return False
        elif kind not in _PLAIN:
            return False
    return True


def _is_clean_text(text: str) -> bool:
    is_clean = masked(text) == text
    if is_clean and len(text) <= LONGEST_REMEMBERED:
        if len(_clean) >= MOST_REMEMBERED:
            _clean.clear()
        _clean.add(text)
    return is_clean


def _forget_if_stale() -> None:
    """Forget what was clean, if there are other secrets now."""
    global _clean_with, _times_stale
    now = (len(hidden), next(reversed(hidden))) if hidden else (0, "")
    if now != _clean_with or not secrets.are_current():
        _clean.clear()
        _clean_with = now
        _times_stale += 1


def _cleaned(name: str, value: Any) -> Any:
    kind = type(value)
    if kind is str:
        return MASK if _names_secret(name) else masked(value)
    if kind is dict:
        return {inner: _cleaned(inner, each) for inner, each in value.items()}
    if kind is list or kind is tuple:
        return [_cleaned(name, each) for each in value]
    return value


def _names_secret(name: str) -> bool:
    if name in _harmless:
        return False
    if SECRET_NAME.search(name):
        return True
    if len(_harmless) >= MOST_REMEMBERED:
        _harmless.clear()
    _harmless.add(name)
    return False


# --- what JSON does not have ------------------------------------------------------------------------------


def _encoded_anyway(identifier: str, milliseconds: int, record: Record) -> bytes:
    """Encode a record that orjson does not take, or whose line would be too long."""
    fields: dict[str, Any] = {"id": identifier, "time": rfc3339(milliseconds)}
    try:
        for name, value in record.items():
            fields[_text(name)] = _plain(_text(name), value, 3)
        line = orjson.dumps(fields)
        if len(line) <= LONGEST_LINE:
            return line[1:]
        why = f"{len(line):,} bytes"
    except Exception as error:  # of a class's own methods
        why = _text(f"{type(error).__name__}: {error}")
    kept = {"id": identifier, "time": rfc3339(milliseconds), "unwritable": masked(why)}
    return orjson.dumps(kept)[1:]


def _plain(name: str, value: Any, depth: int, masks: bool = True) -> Any:
    masks = masks and type(value) is not Quoted
    if value is None or isinstance(value, bool | float):
        return value
    if isinstance(value, int):
        return int(value) if -(2**63) <= value < 2**64 else _text(value)
    if isinstance(value, dict) and depth:
        return {_text(inner): _plain(_text(inner), each, depth - 1, masks) for inner, each in value.items()}
    if isinstance(value, list | tuple) and depth:
        return [_plain(name, each, depth - 1, masks) for each in value]
    if not masks:
        return _text(value)
    return MASK if _names_secret(name) else masked(_text(value))


def _text(value: Any) -> str:
    text = value if isinstance(value, str) else str(value)
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"

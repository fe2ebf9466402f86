"""Ids, times and the JSON of audit records. Secrets are masked here, before anything is written.

A record is a flat dict: strings, numbers, booleans, None, and small dicts such as those of `salted_hash`.
Encoding never fails: a value that JSON does not have is written as text, a long one is truncated. Values
under the name of a secret (``password``, ``token_id``) are masked completely; other strings are masked by
`fastrpc.redaction`, which recognises secrets by their context, those of the environment, and registered ones.
Values without a secret are cached until a secret is added, since most values recur: a record then takes 4.5
µs. Code that makes many similar records can encode their common fields once (`fields_json`). The calling code
decides what is hashed instead of written.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from hashlib import sha256
from sys import getsizeof
from time import gmtime, strftime
from typing import Any

import orjson

from fastrpc._core.audit_lines import ALPHABET, identifier
from fastrpc.quotas import size_of
from fastrpc.redaction import MASK, NAMES, hidden, masked, secrets

Record = Mapping[str, Any]

RESERVED = frozenset(("seq", "prev", "id", "kind", "signature"))
"""Names that a record may not have: the log uses them."""
LONGEST_LINE = 64 * 1024
LONGEST_TEXT = 1000
"""Characters to which strings are truncated in a record whose line would be too long."""
RECORD_BYTES = 2048
"""The approximate memory of a record besides its texts and nested values."""

_PAIRS = tuple(first + second for first in ALPHABET for second in ALPHABET)
SECRET_NAME = re.compile(NAMES, re.IGNORECASE)


class SaltedHash(dict[str, str]):
    """The result of `salted_hash`, which is written unchanged."""


class Quoted(dict[str, Any]):
    """Arguments that a record quotes, masked as for approvers (`guard.shell.masking`). Nothing more is masked
    in them, since that could hide what would have run."""


def salted_hash(data: bytes) -> SaltedHash:
    """Return a hash of arguments or of a result for a record. With the salt, a person who has the data can
    prove that the record is about it. Each record has its own salt, so guesses cannot be precomputed."""
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
    """Makes ids in the order of time: ``audit_`` and 26 characters like a ULID. 10 of them are milliseconds
    since 1970, 8 are random for each log, and 8 are a counter. Not thread-safe."""

    def __init__(self) -> None:
        self._random = "".join(_PAIRS[byte] for byte in os.urandom(4))
        self._milliseconds = -1
        self.count = 0
        self._head = ""

    def next(self, milliseconds: int) -> str:
        """Return the next id. If the clock was set back, the id has the time of the last one."""
        return identifier(*self.reserve(milliseconds, 1))

    def reserve(self, milliseconds: int, count: int) -> tuple[str, int]:
        """Return the common beginning of the next ids, and the counter of the first."""
        if milliseconds > self._milliseconds:
            self._milliseconds = milliseconds
            self._head = f"audit_{base32(milliseconds, 5)}{self._random}"
        first = self.count + 1
        self.count += count
        return self._head, first


def base32(number: int, pairs: int) -> str:
    """Return a number in base 32, as `pairs` pairs of characters."""
    return "".join(_PAIRS[number >> 10 * place & 1023] for place in range(pairs - 1, -1, -1))


def new_chain_id(milliseconds: int) -> str:
    """Return the id of a new chain: 10 characters of time and 6 random ones."""
    return base32(milliseconds, 5) + base32(int.from_bytes(os.urandom(4), "big") & 0x3FFFFFFF, 3)


_second = (-1, "")


def rfc3339(milliseconds: int) -> str:
    """Return a time in the form of RFC 3339, in UTC with milliseconds: ``2026-04-22T10:15:23.847Z``."""
    global _second
    seconds, rest = divmod(milliseconds, 1000)
    known, text = _second
    if seconds != known:
        text = strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))
        _second = seconds, text
    return f"{text}.{rest:03d}Z"


def encoded(identifier: str, milliseconds: int, record: Record) -> bytes:
    """Return the fields of a record as JSON, without the opening brace. `milliseconds` is its time, unless
    the record has one."""
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
    except Exception:  # a key other than a text, lone surrogates, a number beyond 64 bits, a class, …
        pass
    return _encoded_anyway(identifier, milliseconds, record)


def fields_json(record: Record) -> str:
    """Return fields as JSON without the braces, masked as in `encoded`. Call it again when `secrets_seen`
    returns another number."""
    head = len(f'"id":"","time":"{rfc3339(0)}",')
    return encoded("", 0, record)[head:-1].decode()


def secrets_seen() -> int:
    """Return a number that changes when the known secrets change."""
    _forget_if_stale()
    return _times_stale


# --- secrets ----------------------------------------------------------------------------------------------

_clean: set[str] = set()
"""Values without secrets."""
_clean_with: tuple[int, str] = (0, "")
"""The number of secrets when `_clean` was filled, and the last of them."""
_times_stale = 0
_harmless: set[str] = set()
"""Names of fields that do not contain secrets."""
_PLAIN = frozenset((int, float, bool, type(None), SaltedHash))
LONGEST_REMEMBERED = 100
MOST_REMEMBERED = 4000


def _is_clean(record: Record) -> bool:
    """Return whether a record can be written unchanged: it has no secrets and no nested values."""
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
    """Clear the cache of clean values if the secrets have changed."""
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
    """Encode a record that orjson refuses, or whose line would be too long."""
    fields: dict[str, Any] = {"id": identifier, "time": rfc3339(milliseconds)}
    try:
        for name, value in record.items():
            fields[_text(name)] = _plain(_text(name), value, 3)
        line = orjson.dumps(fields)
        if len(line) <= LONGEST_LINE:
            return line[1:]
        why = f"{len(line):,} bytes"
    except Exception as error:  # raised by methods of a value's class
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


def fields_of(line: bytes) -> dict[str, Any]:
    """Return the fields of a line of the log; {} for one that is not a JSON object."""
    try:
        fields = orjson.loads(line)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}

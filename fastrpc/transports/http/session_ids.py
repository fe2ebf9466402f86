"""Ids of sessions over HTTP, and the worker to which an id belongs.

Without a shared key an id is 256 random bits, 128 over SSE, after the number of the worker that has the
session. A process that serves alone has no number. The number is not secret: with another one, a request goes
to a worker without that session. A sealed id (`session_seals`) may come from another machine: it belongs to
the worker that its checksum names, and a worker makes only ids that belong to it.
"""

from __future__ import annotations

import re
import secrets
from zlib import crc32

_number, _count = 0, 1
_prefix = ""
STREAM_STEP = 256
"""More than the workers that a server can have."""
NUMBERED = re.compile(rb"([0-9]{1,3})\.")


def be_worker(number: int, count: int) -> None:
    """Have all ids of this process belong to this worker of `count` from now on."""
    global _number, _count, _prefix
    _number, _count = number, count
    _prefix = f"{number}."


def new_id() -> str:
    return f"{_prefix}{secrets.token_urlsafe(32)}"


def new_hex_id() -> str:
    """Return an id of 128 random bits, but for the worker's number the text of a UUID: programs for the
    official SDK read the id of an SSE stream so."""
    return f"{_prefix}{secrets.token_hex(16)}"


def belongs_here(id: bytes) -> bool:
    """Whether a sealed id belongs to this process."""
    return crc32(id) % _count == _number


def first_stream() -> int:
    """Return the number after which the streams of a sealed session are numbered, in steps of `STREAM_STEP`:
    it says which worker has a stream, and no other process uses it."""
    return secrets.randbits(40) * STREAM_STEP + _number


def worker_of_stream(last_event_id: bytes) -> int | None:
    """Return the number of the worker that has the stream of an event; None for the standalone stream."""
    number = last_event_id.partition(b"-")[0]
    if not number.isdigit() or len(number) > 20 or number == b"0":
        return None
    return int(number) % STREAM_STEP


def is_sealed(id: str) -> bool:
    """Whether an id has the form of a sealed one."""
    return id.count(".") == 2


def worker_of(id: bytes, count: int) -> int | None:
    """Return the number of the worker, of `count`, to which an id belongs; None if no worker's."""
    if id.count(b".") == 2:  # a sealed one
        return crc32(id) % count
    match = NUMBERED.match(id)
    return None if match is None else int(match[1])

"""Ids of sessions over HTTP: 256 random bits, 128 over SSE, after the number of the worker that has the
session.

A process that serves alone has no number. The number is not secret: with another one, a request goes to a
worker without that session.
"""

from __future__ import annotations

import re
import secrets

_prefix = ""
NUMBERED = re.compile(rb"([0-9]{1,3})\.")


def be_worker(number: int) -> None:
    """Prefix all ids of this process with this worker's number from now on."""
    global _prefix
    _prefix = f"{number}."


def new_id() -> str:
    return f"{_prefix}{secrets.token_urlsafe(32)}"


def new_hex_id() -> str:
    """Return an id of 128 random bits, but for the worker's number the text of a UUID: programs for the
    official SDK read the id of an SSE stream so."""
    return f"{_prefix}{secrets.token_hex(16)}"


def worker_of(id: bytes) -> int | None:
    """Return the number of the worker that has made an id; None if it has no number."""
    match = NUMBERED.match(id)
    return None if match is None else int(match[1])

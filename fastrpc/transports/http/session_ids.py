"""Ids of sessions over HTTP: 256 random bits, after the number of the worker that has the session.

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


def worker_of(id: bytes) -> int | None:
    """Return the number of the worker that has made an id; None if it has no number."""
    match = NUMBERED.match(id)
    return None if match is None else int(match[1])

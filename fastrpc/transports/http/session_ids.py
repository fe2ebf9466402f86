"""Ids of sessions over HTTP: 256 random bits, behind the number of the worker that keeps the session.

A process that serves alone has no number. The number is no secret; whoever changes it asks a worker that
knows no such session.
"""

from __future__ import annotations

import re
import secrets

_prefix = ""
NUMBERED = re.compile(rb"([0-9]{1,3})\.")


def be_worker(number: int) -> None:
    """Put this worker's number in front of all ids that are made in this process from now on."""
    global _prefix
    _prefix = f"{number}."


def new_id() -> str:
    return f"{_prefix}{secrets.token_urlsafe(32)}"


def worker_of(id: bytes) -> int | None:
    """Return the number of the worker that has made an id; None if it names none."""
    match = NUMBERED.match(id)
    return None if match is None else int(match[1])

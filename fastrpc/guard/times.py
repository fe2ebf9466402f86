"""Times in the form that the guard shows, RFC 3339 in UTC to the second, and durations such as ``12h``.
Pure."""

from __future__ import annotations

import re
from time import gmtime, strftime

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
"""The seconds of each unit."""
_DURATION = re.compile(r"([0-9]{1,9})([smhdw])\Z")


def rfc3339(seconds: float) -> str:
    """Return seconds since 1970 as text: ``2026-04-22T10:15:23Z``."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(seconds))


def rfc3339_or_none(seconds: float | None) -> str | None:
    """Return `rfc3339` of a time, None for None."""
    return None if seconds is None else rfc3339(seconds)


def seconds_in(text: str) -> int | None:
    """Return the seconds of a duration such as ``90m``, ``12h`` or ``30d``; None if it is not one."""
    found = _DURATION.match(text)
    return None if found is None else int(found[1]) * SECONDS[found[2]]

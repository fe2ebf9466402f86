"""Times in the form that the guard shows: RFC 3339, in UTC, to the second. Pure."""

from __future__ import annotations

from time import gmtime, strftime


def rfc3339(seconds: float) -> str:
    """Return seconds since 1970 as text: ``2026-04-22T10:15:23Z``."""
    return strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(seconds))


def rfc3339_or_none(seconds: float | None) -> str | None:
    """Return `rfc3339` of a time, None for None."""
    return None if seconds is None else rfc3339(seconds)

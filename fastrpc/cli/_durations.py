"""Durations on a command line in seconds, and times as they are printed. Pure."""

from __future__ import annotations

from datetime import datetime, timezone

MOST_SECONDS = 1e9


def time_limit(text: str) -> float:
    """Return the value of an option such as ``--timeout``. Raises ArgumentTypeError."""
    from argparse import ArgumentTypeError

    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds < MOST_SECONDS:
        raise ArgumentTypeError(f"expected a number of seconds above 0, got {text!r}")
    return seconds


def waiting_time(text: str) -> float:
    """Return the seconds of an option such as ``--drain-seconds``, 0 or more. Raises ArgumentTypeError."""
    from argparse import ArgumentTypeError

    from fastrpc.errors import Reworded
    from fastrpc.settings import parse_seconds

    with Reworded(ValueError, ArgumentTypeError, "", f", got {text!r}"):
        return parse_seconds(text)


def minute(seconds: float | None) -> str:
    """Return seconds since 1970 for a table, in UTC."""
    if seconds is None:
        return "-"
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M")

"""Days and months of UTC: the number of the current one, which only grows, and when it ends. Pure."""

from __future__ import annotations

from calendar import timegm
from time import gmtime

DAY_SECONDS = 86_400


def day_of(seconds: float) -> int:
    """Return the number of the day, 0 for 1 January 1970, at a time in seconds since then."""
    return int(seconds // DAY_SECONDS)


def month_of(seconds: float) -> int:
    """Return the number of the month, 0 for January 1970."""
    found = gmtime(seconds)
    return (found.tm_year - 1970) * 12 + found.tm_mon - 1


def number_of(period: str, seconds: float) -> int:
    """Return the number of the ``day`` or ``month``."""
    return day_of(seconds) if period == "day" else month_of(seconds)


def ends_at(period: str, number: int) -> int:
    """Return when a ``day`` or ``month`` ends, in seconds since 1970."""
    if period == "day":
        return (number + 1) * DAY_SECONDS
    year, month = divmod(number + 1, 12)
    return timegm((1970 + year, month + 1, 1, 0, 0, 0))

"""Times as people write them for the guard, such as ``90m`` or ``2027-12-31``, and as it shows them: by
RFC 3339, in UTC, to the second. Pure."""

from __future__ import annotations

import re
from datetime import datetime, timezone
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
    """Return the seconds of a duration; None if the text is not a duration."""
    found = _DURATION.match(text)
    return None if found is None else int(found[1]) * SECONDS[found[2]]


def seconds_until(text: str, now: float) -> float:
    """Return the seconds from `now`, in seconds since 1970, until the end of a duration or of a day, in UTC.
    Raises ValueError for another text, and for a time that is over."""
    given = seconds_in(text)
    if given is not None:
        seconds = float(given)
    else:
        try:
            day = datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=timezone.utc)
        except ValueError:
            raise ValueError(
                f"expected a time such as 30d, or a date such as 2027-12-31, got {text!r:.80}"
            ) from None
        seconds = day.timestamp() + SECONDS["d"] - now
    if seconds <= 0:
        raise ValueError(f"{text} is over")
    return seconds

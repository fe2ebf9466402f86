"""Durations on a command line: a number and a unit, such as ``90m``, ``12h`` or ``30d``. Pure."""

from __future__ import annotations

import re

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 7 * 86400}
"""By unit."""
_DURATION = re.compile(r"([0-9]{1,9})([smhdw])\Z")


def seconds_in(text: str) -> int | None:
    """Return the seconds of a duration; None for a text that is none."""
    found = _DURATION.match(text)
    return None if found is None else int(found[1]) * SECONDS[found[2]]

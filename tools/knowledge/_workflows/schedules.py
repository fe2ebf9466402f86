"""The times of cron expressions that have passed while no server ran."""

from __future__ import annotations

from datetime import datetime, timezone

MOST_MISSED = 100
"""The most times that are returned, the last ones."""


def missed(expression: str, zone: str | None, last: str | None, now: datetime | None = None) -> list[str]:
    """Return the times of an expression since the last one for which a run was begun, the newest last."""
    from zoneinfo import ZoneInfo

    from croniter import croniter

    if last is None:
        return []
    place = ZoneInfo(zone) if zone else timezone.utc
    since = datetime.fromisoformat(last)
    before = croniter(expression, (now or datetime.now(timezone.utc)).astimezone(place))
    times: list[str] = []
    while len(times) < MOST_MISSED and (at := before.get_prev(datetime)) > since:
        times.append(at.isoformat())
    return times[::-1]

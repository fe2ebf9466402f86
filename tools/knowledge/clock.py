"""The tool datetime.now: the time in a time zone, and the day of the week.

Time zones come from the machine, or from `tzdata` if it has none (`zoneinfo`); an unknown zone is an error
that names it.
"""

from __future__ import annotations

from typing import TypedDict

from fastrpc import ToolError, tool

from ._answers import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated
else:
    from fastrpc.typing_forms import Annotated

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
"""Not strftime's, which depend on the machine's locale."""


class Now(TypedDict):
    """The time, ISO 8601 to the second with the offset from UTC; the day of the week; the time zone."""

    time: str
    weekday: str
    timezone: str


@tool(name="datetime.now", effect="read", run="thread")
def now(timezone: Annotated[str, "An IANA name, as Europe/Berlin"] = "UTC") -> Now:
    """Tell the time and the day of the week in a time zone."""
    from datetime import datetime
    from zoneinfo import ZoneInfo

    try:
        zone = ZoneInfo(timezone)
    except (LookupError, ValueError, OSError):  # unknown; an invalid name, as ../x; a folder, as Europe
        raise ToolError(
            f"timezone: expected an IANA name, as Europe/Berlin; got {timezone[:60]!r}."
        ) from None
    moment = datetime.now(zone)
    shown = Now(time=moment.isoformat(timespec="seconds"), weekday=DAYS[moment.weekday()], timezone=timezone)
    text = f"{shown['time']}, {shown['weekday']} ({timezone})"
    return answer(text, shown)

"""The tool insights.query: how often tools were called, failed and were refused, and how much was remembered.

An observer counts calls in memory. It writes the counts to the store every few seconds, before insights.query
reads them, and when serving ends. An owner's callers read the counts of that owner alone.
"""

from __future__ import annotations

import time
from threading import Lock
from typing import TypedDict

from fastrpc import Context, Image, ToolError, tool
from fastrpc.callers import current_user, owner_of

from . import _readers, _store
from ._answers import answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated, Any, Literal

    from fastrpc import CallRecord, Server

    from ._store.call_counts import Key
else:
    from fastrpc.typing_forms import Annotated, Literal

DAY = 86_400
FLUSH_SECONDS = 10.0
MOST_PERIODS = 400
DEFAULT_DAYS = {"day": 14, "week": 84, "month": 365}
MOST_KEYS = 10_000
"""Keys that are counted between two writes to the store; further names count as unknown."""
LONGEST_NAME = 128
NO_ERRORS = ("ok", "refused", "input_required", "cancelled")
UNKNOWN = "(unknown)"


class Period(TypedDict):
    """A day, or the first day of a week or a month (UTC), and the count."""

    start: str
    number: int


class Insights(TypedDict):
    """A metric over time."""

    metric: str
    by: str
    total: int
    periods: list[Period]


@tool(name="insights.query", effect="read", run="thread")
def query(
    ctx: Context,
    metric: Literal["calls", "errors", "refusals", "entries", "documents"],
    by: Literal["day", "week", "month"] = "day",
    since: Annotated[str, "A date: 2026-05-01"] = "",
    until: Annotated[str, "A date, itself not counted"] = "",
    tool: Annotated[str, "Only calls of this tool"] = "",
    chart: Annotated[bool, "A chart beside the table"] = False,
) -> Insights:
    """Count calls of tools, errors, refusals, entries or documents, by day, week or month (UTC)."""
    from ._store import call_counts

    if tool and metric in ("entries", "documents"):
        raise ToolError(f"tool: expected nothing where metric is {metric}.")
    end = _time("until", until) if until else time.time() + 1
    start = _time("since", since) if since else end - DEFAULT_DAYS[by] * DAY
    if start >= end:
        raise ToolError(f"since: expected a date before {until or 'now'}, got {since:.40}.")
    reader, database = _readers.reader_of(ctx), _store.current().database
    COUNTER.flush()
    if metric == "entries":
        found = call_counts.of_entries(database, reader, start, end)
    elif metric == "documents":
        found = call_counts.of_documents(database, reader, start, end)
    else:
        found = call_counts.of_calls(database, reader.owner, metric, start, end, tool)
    periods: dict[str, int] = {}
    for at, number in found:
        name = _period(at, by)
        periods[name] = periods.get(name, 0) + number
    if len(periods) > MOST_PERIODS:
        raise ToolError(
            f"by: {len(periods):,} periods; expected at most {MOST_PERIODS}: ask by week or month."
        )
    total = sum(periods.values())
    lines = [f"{metric}{f' of {tool:.60}' if tool else ''} by {by}: {total:,}"]
    lines += [f"{name}  {number:>8,}" for name, number in periods.items()]
    content: list[Any] = ["\n".join(lines)]
    if chart and periods:
        content.append(Image(_svg(periods).encode(), "image/svg+xml"))
    shown = [Period(start=name, number=number) for name, number in periods.items()]
    return answer(content, Insights(metric=metric, by=by, total=total, periods=shown))


def attach(server: Server) -> None:
    """Count the calls of a server."""
    server.observe(COUNTER)


class Counter:
    """Counts calls in memory until `flush` writes them to the store."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._counted: dict[Key, list[int]] = {}
        self._flushed_at = time.monotonic()

    def __call__(self, records: list[CallRecord]) -> None:
        for record in records:
            if record.kind != "tool":
                continue
            is_known = record.outcome != "unknown" and len(self._counted) < MOST_KEYS
            name = record.name[:LONGEST_NAME] if is_known else UNKNOWN
            hour = int(record.started_at) // 3600 * 3600
            owner = owner_of(record.principal or current_user())
            with self._lock:
                row = self._counted.setdefault((owner, name, hour), [0, 0, 0])
                row[0] += 1
                row[1] += record.outcome not in NO_ERRORS
                row[2] += record.outcome == "refused"
        if time.monotonic() - self._flushed_at > FLUSH_SECONDS:
            self.flush()

    def at_end(self) -> None:
        """Write the counts when serving has ended."""
        self.flush()

    def flush(self) -> None:
        """Write the counts to the store. Raises StorageError; the counts then stay in memory."""
        from ._store import call_counts

        with self._lock:
            self._flushed_at = time.monotonic()
            if self._counted:
                call_counts.add(_store.current().database, self._counted)
                self._counted = {}


COUNTER = Counter()


def _time(name: str, text: str) -> float:
    from datetime import datetime, timezone

    try:
        return datetime.strptime(text, "%Y-%m-%d").replace(tzinfo=timezone.utc).timestamp()
    except ValueError:
        raise ToolError(f"{name}: expected a date such as 2026-05-01, got {text:.40}.") from None


def _period(at: int, by: str) -> str:
    from datetime import datetime, timedelta, timezone

    day = datetime.fromtimestamp(at, timezone.utc).date()
    if by == "week":
        day -= timedelta(days=day.weekday())
    return f"{day:%Y-%m}-01" if by == "month" else str(day)


def _svg(periods: dict[str, int]) -> str:
    """Return a chart of bars; its only texts are dates and numbers."""
    most, width = max(max(periods.values()), 1), 600 / len(periods)
    bars = "".join(
        f'<rect x="{at * width + 20:.1f}" y="{170 - 150 * number / most:.1f}" width="{width * 0.8:.1f}" '
        f'height="{150 * number / most:.1f}"><title>{name}: {number:,}</title></rect>'
        for at, (name, number) in enumerate(periods.items())
    )
    names = list(periods)
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 200" font-family="sans-serif" '
        f'font-size="12"><g fill="#36c">{bars}</g><text x="20" y="14">{most:,}</text>'
        f'<text x="20" y="190">{names[0]}</text>'
        f'<text x="620" y="190" text-anchor="end">{names[-1]}</text></svg>'
    )

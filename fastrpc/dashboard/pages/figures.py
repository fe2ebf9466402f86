"""Figures of the calls: how many, how long, errors and refusals, of the last hour, day or week, for all or
for one tool or caller. Charts are images that a route of these pages draws; the same figures are in a table.

The source is the audit log, which is counted once (`fastrpc.dashboard.counting`), in a separate process: a
page that is opened has it go on where it ended.
"""

from __future__ import annotations

from functools import cached_property
from time import gmtime, strftime, time
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from fastrpc.dashboard.charts import Chart, ChartLine, text_of
from fastrpc.dashboard.counting import (
    CALLS,
    ERRORS,
    FORMAT,
    REFUSALS,
    SPANS,
    Counts,
    added,
    percentile,
)
from fastrpc.dashboard.log_jobs import LogJob
from fastrpc.dashboard.rendering import environment
from fastrpc.dashboard.view import Page, PageError, PageRoute
from fastrpc.guard.approvals.display import visible_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.dashboard.charts import Value
    from fastrpc.dashboard.language import Language
    from fastrpc.dashboard.view import PageView

FRESH_SECONDS = 5.0
"""After how long the log is counted again."""
WAIT_SECONDS = 1.5
"""How long a page waits for that."""
MOST_NAMES = 20
"""Tools, and callers, in the tables; the ones with the most calls."""
LONGEST_NAME = 60


class Figure(NamedTuple):
    """The calls of some seconds; `percentile`s are in milliseconds, None without calls."""

    label: str
    counts: Counts
    seconds: float

    @property
    def calls(self) -> int:
        return int(self.counts[CALLS])

    @property
    def errors(self) -> int:
        return int(self.counts[ERRORS])

    @property
    def refusals(self) -> int:
        return int(self.counts[REFUSALS])

    @property
    def rate(self) -> float:
        """Calls per second."""
        return self.calls / self.seconds

    @property
    def p50(self) -> Value:
        return percentile(self.counts, 0.5)

    @property
    def p99(self) -> Value:
        return percentile(self.counts, 0.99)


class Figures:
    """The figures of a span, for a tool and a caller, "" for all."""

    def __init__(self, state: dict[str, Any], span: str, tool: str, caller: str) -> None:
        self._state = state
        self.as_of = float(state.get("as_of", 0.0))
        self.span, self.tool, self.caller = span, tool, caller
        self.step, self._slots = SPANS[span]
        last = int(self.as_of) // self.step
        self._first = last - self._slots + 1
        rows = state.get("rows", {}).get(span, [])
        self._rows = [row for row in rows if self._first <= row[0] <= last]
        self._wanted = [
            row for row in self._rows if (not tool or row[1] == tool) and (not caller or row[2] == caller)
        ]

    @property
    def total(self) -> Figure:
        return Figure("", added(row[3:] for row in self._wanted), self._slots * self.step)

    @cached_property
    def over_time(self) -> list[Figure]:
        """The figures of each slot, the oldest first. The last slot may not have ended."""
        rows: dict[int, list[Counts]] = {}
        for row in self._wanted:
            rows.setdefault(row[0], []).append(row[3:])
        form = "%m-%d %H:%M" if self.span == "week" else "%H:%M"
        found = []
        for slot in range(self._first, self._first + self._slots):
            begun = slot * self.step
            seconds = min(float(self.step), max(1.0, self.as_of - begun))
            label = strftime(form, gmtime(begun))
            found.append(Figure(label, added(rows.get(slot, ())), seconds))
        return found

    def by(self, column: int, most: int = MOST_NAMES) -> list[Figure]:
        """Return the figures by tool (column 1) or caller (2), most calls first, of so many of them."""
        rows: dict[str, list[Counts]] = {}
        for row in self._wanted:
            rows.setdefault(row[column], []).append(row[3:])
        found = [Figure(name, added(each), self._slots * self.step) for name, each in rows.items()]
        return sorted(found, key=lambda each: (-each.calls, each.label))[:most]

    def of(self, column: int, name: str) -> Figures:
        """Return the figures of one tool (column 1) or caller (2) of these."""
        return Figures(self._state, self.span, *((name, self.caller) if column == 1 else (self.tool, name)))

    def names(self, column: int) -> list[str]:
        """Return all tools, or callers, of the span."""
        return sorted({row[column] for row in self._rows if row[column]})


class Drawing(NamedTuple):
    """A chart: its title with the unit, and its lines: a name, and a value of each slot."""

    title: Callable[[Language], str]
    lines: Callable[[Language], list[tuple[str, Callable[[Figure], Value]]]]


CHARTS = {
    "calls": Drawing(
        lambda language: language.text("Calls per second"),
        lambda language: [(language.text("calls/s"), lambda each: each.rate)],
    ),
    "failures": Drawing(
        lambda language: language.text("Errors and refusals per second"),
        lambda language: [
            (language.text("errors/s"), lambda each: each.errors / each.seconds),
            (language.text("refusals/s"), lambda each: each.refusals / each.seconds),
        ],
    ),
    "times": Drawing(
        lambda language: language.text("Duration of a call, in milliseconds"),
        lambda _: [("p50", lambda each: each.p50), ("p99", lambda each: each.p99)],
    ),
}


def chosen(view: PageView) -> tuple[str, str, str]:
    """Return the span, the tool and the caller that a query names, "" for all tools and callers."""
    query = view.query
    span = query.get("span", "hour")
    return span if span in SPANS else "hour", query.get("tool", ""), query.get("caller", "")


def counted(view: PageView, *, counts: bool) -> dict[str, Any]:
    """Return what was counted; before that, count what is new. Raises PageError."""
    job = LogJob("count", view.log.folder)
    try:
        state = job.state()
        if counts and not 0 <= time() - state.get("as_of", 0.0) <= FRESH_SECONDS:
            job.start({}, WAIT_SECONDS)
            state = job.state()
    except OSError as error:
        raise PageError(str(error), 503) from None
    return state if state.get("format", FORMAT) == FORMAT else {}


def spans_of(language: Language) -> dict[str, str]:
    """Return the titles of the spans, by their names."""
    return {
        "hour": language.text("Last hour"),
        "day": language.text("Last day"),
        "week": language.text("Last week"),
    }


def figures(view: PageView) -> Response:
    span, tool, caller = chosen(view)
    state = counted(view, counts=True)
    found = Figures(state, span, tool, caller)
    language = view.language
    return view.page(
        "figures.html",
        figures=found,
        state=state,
        spans=spans_of(language),
        charts={name: (each.title(language), _label(view, found, name)) for name, each in CHARTS.items()},
        query=lambda **others: urlencode({"span": span, "tool": tool, "caller": caller} | others),
        shown=shown_name,
        number=number_of,
    )


def shown_name(name: str) -> str:
    """Return the name of a tool or a caller with every character visible, cut after `LONGEST_NAME`."""
    text = visible_name(name)
    return text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…"


def number_of(value: Value) -> str:
    """Return a value as a text, a dash for None."""
    return "–" if value is None else text_of(value)


def _label(view: PageView, found: Figures, name: str) -> str:
    drawing = CHARTS[name]
    return label_of(view.language, drawing.title(view.language), _lines(view, found, name))


def _lines(view: PageView, found: Figures, name: str) -> list[ChartLine]:
    return [
        ChartLine(words, [value_of(each) for each in found.over_time])
        for words, value_of in CHARTS[name].lines(view.language)
    ]


def highest_and_latest(values: list[Value]) -> tuple[str, str]:
    """Return the highest and the latest of the values that there are, as texts."""
    known = [value for value in values if value is not None]
    return (number_of(max(known)), number_of(known[-1])) if known else ("–", "–")


def label_of(language: Language, title: str, lines: list[ChartLine]) -> str:
    """Return what a chart shows, in words: its title, and the highest and the latest value of each line."""
    parts = []
    for line in lines:
        highest, latest = highest_and_latest(line.values)
        values = {"line": line.name, "highest": highest, "latest": latest}
        parts.append(language.text("{line}: highest {highest}, latest {latest}", **values))
    return "; ".join([title, *parts])


def image(view: PageView, label: str, lines: list[ChartLine], times: list[str]) -> Response:
    """Return a chart as an image, in the theme that the query names."""
    theme = "dark" if view.query.get("theme") == "dark" else "light"
    drawn = Chart(label, lines, times, theme, view.language.direction)
    made = environment().get_template("chart.svg").render(chart=drawn)
    return Response(made, media_type="image/svg+xml")


def chart(view: PageView) -> Response:
    """A chart as an image."""
    name = str(view.request.path_params["id"])
    if name not in CHARTS:
        raise PageError("There is no such chart.", 404)
    found = Figures(counted(view, counts=False), *chosen(view))
    times = [each.label for each in found.over_time]
    return image(view, _label(view, found, name), _lines(view, found, name), times)


PAGES = [
    Page(
        [
            PageRoute("GET", "/figures", figures),
            PageRoute("GET", "/figures/{id}.svg", chart),
        ],
        title="Figures",
        order=31,
        is_there=lambda sources: sources.log is not None,
    )
]

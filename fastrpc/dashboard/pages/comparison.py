"""Figures of several tools, or of several callers, in one chart. A filter chooses which ones; at first they
are those with the most calls. The same values are in a table beside it, with the mark of each line, and in
one over time.

The source is that of the page of figures (`fastrpc.dashboard.pages.figures`).
"""

from __future__ import annotations

from typing import NamedTuple
from urllib.parse import urlencode

from fastrpc.dashboard.charts import MOST_LINES, SIGNS, ChartLine
from fastrpc.dashboard.pages.figures import (
    Figures,
    chosen,
    counted,
    highest_and_latest,
    image,
    label_of,
    number_of,
    shown_name,
    spans_of,
)
from fastrpc.dashboard.rendering import short
from fastrpc.dashboard.view import Page, PageRoute

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.responses import Response

    from fastrpc.dashboard.charts import Value
    from fastrpc.dashboard.language import Language
    from fastrpc.dashboard.pages.figures import Figure
    from fastrpc.dashboard.view import PageView

PREFIX = "with:"
"""The names of the boxes of the filter begin so; a name of a tool or a caller follows."""
COLUMNS = {"tool": 1, "caller": 2}
MOST_CHOICES = 40
"""How many names the filter offers: the ones with the most calls."""
MOST_AT_FIRST = 4
LONGEST_NAME = 20
"""Characters of a name in the chart."""
MEASURES: dict[str, tuple[Callable[[Language], str], Callable[[Figure], Value]]] = {
    "calls": (lambda language: language.text("Calls per second"), lambda each: each.rate),
    "errors": (lambda language: language.text("Errors per second"), lambda each: each.errors / each.seconds),
    "refusals": (
        lambda language: language.text("Refusals per second"),
        lambda each: each.refusals / each.seconds,
    ),
    "p50": (lambda language: language.text("p50, in milliseconds"), lambda each: each.p50),
    "p99": (lambda language: language.text("p99, in milliseconds"), lambda each: each.p99),
}


class ComparedLine(NamedTuple):
    """A line of the chart: the name of its tool or caller, "" for the others together; the sign of its
    marks; its figures of the whole span, and its values over time."""

    name: str
    sign: str
    total: Figure
    values: list[Value]

    @property
    def highest_and_latest(self) -> tuple[str, str]:
        return highest_and_latest(self.values)


class Comparison:
    """The lines that a query asks for, by a measure: if `by` is ``tool``, one for each tool, with the calls
    of one caller or of all; if it is ``caller``, one for each caller, with the calls of one tool or of
    all."""

    def __init__(self, view: PageView, *, counts: bool) -> None:
        query = view.query
        self.by = query.get("by", "tool") if query.get("by") in COLUMNS else "tool"
        self.measure = query.get("measure", "calls") if query.get("measure") in MEASURES else "calls"
        self.language = view.language
        span, tool, caller = chosen(view)
        self.state = counted(view, counts=counts)
        of = (span, "", caller) if self.by == "tool" else (span, tool, "")
        self.figures = Figures(self.state, *of)
        column = COLUMNS[self.by]
        self.choices = [each.label for each in self.figures.by(column, MOST_CHOICES) if each.label]
        asked = [name.removeprefix(PREFIX) for name in query if name.startswith(PREFIX)]
        known = set(self.figures.names(column))
        self.asked = [name for name in asked if name in known]
        self.choices += [name for name in self.asked if name not in self.choices]
        self.names = self.asked[:MOST_LINES] or self.choices[:MOST_AT_FIRST]
        self.lines = [self._line(at, name) for at, name in enumerate(self.names)]

    def _line(self, at: int, name: str) -> ComparedLine:
        found = self.figures.of(COLUMNS[self.by], name)
        value_of = MEASURES[self.measure][1]
        return ComparedLine(name, SIGNS[at], found.total, [value_of(each) for each in found.over_time])

    @property
    def times(self) -> list[str]:
        return [each.label for each in self.figures.over_time]

    @property
    def title(self) -> str:
        by = self.language.text("by tool") if self.by == "tool" else self.language.text("by caller")
        return f"{MEASURES[self.measure][0](self.language)}, {by}"

    @property
    def chart_lines(self) -> list[ChartLine]:
        return [ChartLine(short(line.name, LONGEST_NAME), line.values) for line in self.lines]

    @property
    def label(self) -> str:
        return label_of(self.language, self.title, self.chart_lines)

    def query(self, **others: str) -> str:
        """Return the query of this comparison, with other values for some names."""
        known = {"span": self.figures.span, "by": self.by, "measure": self.measure}
        known |= {"tool": self.figures.tool, "caller": self.figures.caller}
        boxes = {f"{PREFIX}{name}": "yes" for name in self.asked}
        return urlencode(known | boxes | others)


def comparison(view: PageView) -> Response:
    found = Comparison(view, counts=True)
    return view.page(
        "comparison.html",
        found=found,
        figures=found.figures,
        state=found.state,
        spans=spans_of(view.language),
        measures={name: title(view.language) for name, (title, _) in MEASURES.items()},
        shown=shown_name,
        number=number_of,
        most=MOST_LINES,
    )


def chart(view: PageView) -> Response:
    """The chart as an image."""
    found = Comparison(view, counts=False)
    return image(view, found.label, found.chart_lines, found.times)


PAGES = [
    Page(
        [
            PageRoute("GET", "/comparison", comparison),
            PageRoute("GET", "/comparison.svg", chart),
        ],
        order=32,
    )
]

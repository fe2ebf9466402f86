"""A chart of lines over time: where its lines, ticks and labels are, for the template `chart.svg`. Pure.

Time goes in the direction of the language: to the right, or to the left. Lines have their names above them,
and differ by their dashes and the shapes of their marks, not by colour alone.
"""

from __future__ import annotations

from math import floor, log10
from typing import NamedTuple

WIDTH, HEIGHT = 420, 230
START, END, TOP, BOTTOM = 56, 12, 34, 30
"""The margins: at the scale's side, at the other side, for the names of the lines, and for the times."""
TICKS = 4
ROW, COLUMNS = 20, 2
"""The height of a row of names, and how many names it has."""
DASHES = ("none", "6 3", "2 3", "10 4", "8 3 2 3", "14 3")
MARKS = ("", "M-4-4h8v8h-8z", "M0-5L5 4H-5z", "M0-5L5 0 0 5-5 0z", "M-4-4L4 4M-4 4L4-4", "M-5 0H5M0-5V5")
"""The shapes of the marks on a line: none, square, triangle, diamond, cross, plus."""
SIGNS = ("–", "■", "▲", "◆", "✕", "+")
"""The marks as characters, for a table of the same lines."""
MOST_LINES = len(DASHES)
MARKED = 8
"""How many marks a line has, at most."""
COLOURS = {
    "light": {"card": "#ffffff", "text": "#1b2028", "soft": "#566070", "grid": "#d5dae1"},
    "dark": {"card": "#1d2129", "text": "#e7eaf0", "soft": "#a7b0bf", "grid": "#363d49"},
}
STROKES = {
    "light": ("#0a58ca", "#a61b2b", "#1b2028", "#8a5a00", "#00725a", "#8e3b7e"),
    "dark": ("#8ab6ff", "#ff9aa5", "#e7eaf0", "#e69f00", "#3ccca0", "#dd9bcf"),
}

Value = float | None


class ChartLine(NamedTuple):
    """A line with its name: a value for each time, None where there is none."""

    name: str
    values: list[Value]


class DrawnLine(NamedTuple):
    """A line as it is drawn. `at` is where its name begins, and `row` the height of the name's line; `marks`
    are the places of its marks, `mark` is their shape, "" if there are none."""

    name: str
    path: str
    stroke: str
    dash: str
    at: float
    row: float
    mark: str
    marks: list[tuple[float, float]]


class Chart:
    """A chart of `MOST_LINES` lines at most. `times` are the labels of the slots; each line has one value for
    each slot. Screen readers read `label`, which describes the chart."""

    def __init__(
        self, label: str, lines: list[ChartLine], times: list[str], theme: str, direction: str
    ) -> None:
        self.label = label
        self._rows_height = ROW * (-(-len(lines) // COLUMNS) - 1) if lines else 0
        self.width, self.height = WIDTH, HEIGHT + self._rows_height
        self.colours = COLOURS[theme]
        self._is_mirrored = direction == "rtl"
        self._count = len(times)
        most = max((value for line in lines for value in line.values if value is not None), default=0.0)
        step = step_for(most)
        self._top = step * max(1, -(-most // step))
        self.ticks = [
            (self._y(step * number), text_of(step * number)) for number in range(round(self._top / step) + 1)
        ]
        places = sorted({round(number * (self._count - 1) / TICKS) for number in range(TICKS + 1)})
        self.times = [(self._x(place), times[place]) for place in places]
        self.start = self._across(START - 6)
        self.ends = self._across(START), self._across(WIDTH - END)
        self.anchor = "start" if self._is_mirrored else "end"
        self.name_anchor = "end" if self._is_mirrored else "start"
        self.lines = [self._drawn(line, at, theme) for at, line in enumerate(lines)]

    def _drawn(self, line: ChartLine, at: int, theme: str) -> DrawnLine:
        row, column = divmod(at, COLUMNS)
        place = START + column * (WIDTH - START - END) / COLUMNS
        return DrawnLine(
            line.name,
            self._path(line.values),
            STROKES[theme][at],
            DASHES[at],
            place,
            14 + row * ROW,
            MARKS[at],
            self._marks(line.values, at) if MARKS[at] else [],
        )

    def _marks(self, values: list[Value], at: int) -> list[tuple[float, float]]:
        """Return where the marks of a line are: other ones than those of the lines beside it, if there are
        enough values."""
        known = [(place, value) for place, value in enumerate(values) if value is not None]
        step = max(1, len(known) // MARKED)
        begin = at * step // MOST_LINES
        return [(self._x(place), self._y(value)) for place, value in known[begin::step]]

    def _across(self, x: float) -> float:
        return WIDTH - x if self._is_mirrored else x

    def across(self, x: float) -> float:
        """Return a distance from the side at which a line of text begins, from the left."""
        return round(self._across(x), 1)

    def _x(self, place: int) -> float:
        return round(self._across(START + place * (WIDTH - START - END) / max(1, self._count - 1)), 1)

    def _y(self, value: float) -> float:
        return round(self.height - BOTTOM - value / self._top * (HEIGHT - TOP - BOTTOM), 1)

    def _path(self, values: list[Value]) -> str:
        """Return a path through the values, with gaps where there are none; one alone is a short line."""
        parts = []
        around = [None, *values, None]
        for place, (before, value, after) in enumerate(zip(around, values, around[2:], strict=False)):
            if value is None:
                continue
            x, y = self._x(place), self._y(value)
            if before is None and after is None:
                parts.append(f"M{x - 2:.1f} {y}h4")
            else:
                parts.append(f"{'M' if before is None else 'L'}{x} {y}")
        return "".join(parts)


def step_for(most: float) -> float:
    """Return the distance of the ticks of a scale: 1, 2 or 5 times a power of ten."""
    if most <= 0:
        return 1.0
    rough = most / TICKS
    power: float = 10.0 ** floor(log10(rough))
    return next(power * each for each in (1, 2, 5, 10) if power * each >= rough)


def text_of(value: float) -> str:
    """Return a number with three digits that count."""
    return f"{float(f'{value:.3g}'):,.10g}"

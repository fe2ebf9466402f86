"""Bar charts as SVG: what a reader sees at a glance, on a light page and on a dark one.

Costs nothing but string building; knows nothing of benchmarks. Every bar carries its name and its value, so
that no legend is needed; what cannot be drawn is a word in the bar's place. Colours follow the reader's
scheme, and a background of their own keeps them legible on any page.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 760
NAMES = 190  # where bars begin
RIGHT = 90  # behind the longest bar, for its value
ROW, BAR, GAP = 22, 14, 10
TITLE_LETTERS = 76

STYLE = """
  .page { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e } .grid { stroke: #d8dee4 }
  .first { fill: #0b66c3 } .second { fill: #57606a } .other { fill: #b1bac4 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .text { fill: #e6edf3 } .quiet { fill: #9198a1 } .grid { stroke: #2a313a }
    .first { fill: #4493f8 } .second { fill: #8b949e } .other { fill: #444c56 }
  }
  text { font: 12px system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif }
  .title { font-size: 15px; font-weight: 600 } .strong { font-weight: 600 }
"""


@dataclass(frozen=True)
class Bar:
    """One value, as long as it is and as it is written; or the word that says why there is none."""

    name: str
    value: float | None
    shown: str
    kind: str = "other"  # first, second or other: how much it stands out


@dataclass(frozen=True)
class Group:
    """Bars that belong together, under a heading or none."""

    heading: str
    bars: Sequence[Bar]


@dataclass(frozen=True)
class Chart:
    """What is seen, how it was measured, and the bars."""

    title: str
    note: str
    unit: str  # of the axis
    groups: Sequence[Group]
    own_scales: bool = False  # each group is measured by its own longest bar, from zero, without an axis


@dataclass(frozen=True)
class Scale:
    """Where a value lies between the left end and the longest bar's: a logarithmic axis, or one from zero."""

    least: float
    most: float
    logarithmic: bool = True

    def place(self, value: float) -> float:
        if self.logarithmic:
            share = math.log(max(value, self.least) / self.least) / math.log(self.most / self.least)
        else:
            share = value / self.most
        return NAMES + share * (WIDTH - NAMES - RIGHT)

    def ticks(self) -> list[float]:
        """The powers of ten on the axis; with fewer than three of them, twice and five times them too."""
        powers = range(math.floor(math.log10(self.least)), math.ceil(math.log10(self.most)) + 1)
        steps = (1,) if self.most / self.least >= 200 else (1, 2, 5)
        marks = [float(f"{step}e{power}") for power in powers for step in steps]
        return [mark for mark in marks if self.least <= mark <= self.most]


def values_of(groups: Sequence[Group]) -> list[float]:
    return [bar.value for group in groups for bar in group.bars if bar.value is not None and bar.value > 0]


def log_scale(groups: Sequence[Group]) -> Scale:
    """From half of the least value, rounded down, so that the shortest bar is still one."""
    values = values_of(groups) or [1.0]
    power = 10.0 ** math.floor(math.log10(min(values) / 2))
    least = max(power * step for step in (1, 2, 5) if power * step <= min(values) / 2)
    return Scale(least, max(values))


def svg(chart: Chart) -> str:
    """Return the picture as a document of its own."""
    lines = textwrap.wrap(chart.title, TITLE_LETTERS)
    heading = [text(16, 33 + 19 * number, line, "text title") for number, line in enumerate(lines)]
    heading.append(text(16, 33 + 19 * len(lines), chart.note, "quiet"))
    top = height = 45.0 + 19 * len(lines)
    shared = log_scale(chart.groups)
    bars: list[str] = []
    for group in chart.groups:
        scale = Scale(0, max(values_of([group]), default=1.0), False) if chart.own_scales else shared
        if group.heading:
            height += GAP + 14
            bars.append(text(16, height, group.heading, "text strong"))
            height += 4
        for bar in group.bars:
            bars += drawn(bar, scale, height)
            height += ROW
    grid = [] if chart.own_scales else axis(shared, chart.unit, top, height)
    height += 12 if chart.own_scales else 34
    size = f'viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    page = f'<rect class="page" width="{WIDTH}" height="{height:g}" rx="6"/>'
    title = f"<title>{escape(chart.title)}</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", page, *grid, *heading, *bars, "</svg>", ""])


def text(x: float, y: float, words: str, style: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(words)}</text>'


def drawn(bar: Bar, scale: Scale, y: float) -> list[str]:
    strong = " strong" if bar.kind == "first" else ""
    baseline = y + ROW / 2 + 4
    parts = [text(NAMES - 8, baseline, bar.name, f"text{strong}", "end")]
    if bar.value is None:
        return [*parts, text(NAMES + 6, baseline, bar.shown, "quiet")]
    end = scale.place(bar.value)
    parts.append(
        f'<rect class="{bar.kind}" x="{NAMES}" y="{y + (ROW - BAR) / 2:.1f}" '
        f'width="{max(end - NAMES, 1):.1f}" height="{BAR}" rx="2"/>'
    )
    return [*parts, text(max(end, NAMES + 1) + 6, baseline, bar.shown, f"text{strong}")]


def axis(scale: Scale, unit: str, top: float, bottom: float) -> list[str]:
    parts = [text(NAMES - 30, bottom + 18, unit, "quiet", "end")]
    for tick in scale.ticks():
        x = scale.place(tick)
        parts.append(
            f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top:.1f}" y2="{bottom + 4:.1f}"/>'
            + text(x, bottom + 18, f"{tick:,g}" if tick < 1e6 else f"{tick / 1e6:g} M", "quiet", "middle")
        )
    return parts

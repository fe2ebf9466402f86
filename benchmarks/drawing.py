"""Bar charts as SVG: what a reader sees at a glance, on a light page and on a dark one.

Costs nothing but string building; knows nothing of benchmarks. Every bar begins at zero, is as long as its
value, and carries its name and its value: neither axis nor legend is needed. What cannot be drawn is a word
in the bar's place. Colours follow the reader's scheme, and a background of their own keeps them legible.
"""

from __future__ import annotations

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
  .page { fill: #ffffff } .text { fill: #1f2328 } .quiet { fill: #59636e }
  .first { fill: #0b66c3 } .second { fill: #57606a } .other { fill: #b1bac4 }
  @media (prefers-color-scheme: dark) {
    .page { fill: #0d1117 } .text { fill: #e6edf3 } .quiet { fill: #9198a1 }
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
    groups: Sequence[Group]
    own_scales: bool = False  # the longest bar of each group is as long as the page, not that of all


def longest(groups: Sequence[Group]) -> float:
    return max((bar.value for group in groups for bar in group.bars if bar.value is not None), default=1.0)


def svg(chart: Chart) -> str:
    """Return the picture as a document of its own."""
    lines = textwrap.wrap(chart.title, TITLE_LETTERS)
    heading = [text(16, 33 + 19 * number, line, "text title") for number, line in enumerate(lines)]
    heading.append(text(16, 33 + 19 * len(lines), chart.note, "quiet"))
    height = 45.0 + 19 * len(lines)
    bars: list[str] = []
    for group in chart.groups:
        most = longest([group] if chart.own_scales else chart.groups)
        if group.heading:
            height += GAP + 14
            bars.append(text(16, height, group.heading, "text strong"))
            height += 4
        for bar in group.bars:
            bars += drawn(bar, most, height)
            height += ROW
    height += 12
    size = f'viewBox="0 0 {WIDTH} {height:g}" width="{WIDTH}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    page = f'<rect class="page" width="{WIDTH}" height="{height:g}" rx="6"/>'
    title = f"<title>{escape(chart.title)}</title>"
    return "\n".join([head, title, f"<style>{STYLE}</style>", page, *heading, *bars, "</svg>", ""])


def text(x: float, y: float, words: str, style: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{style}" text-anchor="{anchor}">{escape(words)}</text>'


def drawn(bar: Bar, most: float, y: float) -> list[str]:
    strong = " strong" if bar.kind == "first" else ""
    baseline = y + ROW / 2 + 4
    parts = [text(NAMES - 8, baseline, bar.name, f"text{strong}", "end")]
    if bar.value is None:
        return [*parts, text(NAMES + 6, baseline, bar.shown, "quiet")]
    end = NAMES + bar.value / most * (WIDTH - NAMES - RIGHT)
    parts.append(
        f'<rect class="{bar.kind}" x="{NAMES}" y="{y + (ROW - BAR) / 2:.1f}" '
        f'width="{max(end - NAMES, 1):.1f}" height="{BAR}" rx="2"/>'
    )
    return [*parts, text(max(end, NAMES + 1) + 6, baseline, bar.shown, f"text{strong}")]

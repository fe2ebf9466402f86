"""Renders the table of public servers in docs/compat.md from the recorded results.

The text between the markers of the page is written here, and checked by `tests/meta/test_swap_page.py`.
"""

from __future__ import annotations

import json
import os
import statistics
from typing import Any

from support import marked_page

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, "results.json")
PAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", "compat.md")
BEGIN, END = "<!-- swap -->", "<!-- /swap -->"
SAME, BY_CHOICE, DIFFERENT, NOT_STARTED = "same", "by choice", "different", "does not start"
VERDICTS = {
    SAME: "identical",
    BY_CHOICE: "intended differences",
    DIFFERENT: "other differences",
    NOT_STARTED: "does not start",
}
MEASURES = {"start_ms": "start", "list_ms": "lists", "call_ms": "call", "rss_mb": "memory"}


def results() -> list[dict[str, Any]]:
    try:
        with open(RESULTS, encoding="utf-8") as file:
            found: list[dict[str, Any]] = json.load(file)
    except FileNotFoundError:
        return []
    return found


def render() -> None:
    """Write what the results give into the page."""
    marked_page.fill(PAGE, BEGIN, END, body(results()))


def filled(page: str, outcomes: list[dict[str, Any]]) -> str:
    return marked_page.filled(page, BEGIN, END, body(outcomes))


def body(outcomes: list[dict[str, Any]]) -> str:
    """The summary, the table by framework, that of the choices that were met, and that of all servers."""
    parts = [summary(outcomes), by_framework(outcomes), choices(outcomes), servers(outcomes)]
    return "\n\n".join(part for part in parts if part)


def summary(outcomes: list[dict[str, Any]]) -> str:
    tried = [one for one in outcomes if one["verdict"] in VERDICTS]
    count = {name: sum(one["verdict"] == name for one in tried) for name in VERDICTS}
    requests = sum(one["requests"] for one in tried)
    listed = sum(sum(one["counts"].values()) for one in tried)
    started = len(tried) - count[NOT_STARTED]
    text = (
        f"The comparison has {len(tried)} servers with {listed:,} tools, resources and prompts, "
        f"and {requests} requests. "
        f"With swapped imports {started} of them start. For clients {count[SAME]} of these are identical, "
        f"{count[BY_CHOICE]} have only intended differences, and {count[DIFFERENT]} also others."
    )
    ratios = [ratio for ratio in (ratio_text(tried, name) for name in MEASURES) if ratio]
    return f"{text} Medians of the ratio of swapped to original: {', '.join(ratios)}." if ratios else text


def ratio_text(outcomes: list[dict[str, Any]], measure: str) -> str:
    found = [
        one["swapped"][measure] / one["original"][measure]
        for one in outcomes
        if one.get("swapped", {}).get(measure) and one.get("original", {}).get(measure)
    ]
    return f"{MEASURES[measure]} {statistics.median(found):.2f}×" if found else ""


def by_framework(outcomes: list[dict[str, Any]]) -> str:
    lines = [row(["written for", "servers", *VERDICTS.values()]), row(["---"] * (2 + len(VERDICTS)))]
    for framework in sorted({one["framework"] for one in outcomes}):
        of_it = [one for one in outcomes if one["framework"] == framework and one["verdict"] in VERDICTS]
        counts = [str(sum(one["verdict"] == name for one in of_it)) for name in VERDICTS]
        lines.append(row([framework, str(len(of_it)), *counts]))
    return "\n".join(lines)


def choices(outcomes: list[dict[str, Any]]) -> str:
    """What differs by choice, in the words of `fastrpc.swap.comparison`, the most usual first."""
    met: dict[str, int] = {}
    for one in outcomes:
        for reason in one.get("choices", {}):
            met[reason] = met.get(reason, 0) + 1
    lines = [row(["intended difference", "servers"]), row(["---"] * 2)]
    for reason, number in sorted(met.items(), key=lambda each: (-each[1], each[0])):
        lines.append(row([reason, str(number)]))
    return "\n".join(lines) if met else ""


def servers(outcomes: list[dict[str, Any]]) -> str:
    head = ["server", "written for", "swapped", "start, ms", "call, ms", "memory, MB"]
    lines = [row(head), row(["---"] * len(head))]
    for one in sorted(outcomes, key=lambda each: each["name"]):
        lines.append(row([one["package"].replace("==", " "), one["framework"], came_of(one), *figures(one)]))
    return "\n".join(lines)


def came_of(outcome: dict[str, Any]) -> str:
    text = VERDICTS.get(outcome["verdict"], outcome["verdict"])
    if outcome.get("failure"):
        return f"{text}: `{cell(outcome['failure'])}`"
    kinds = [f"{number} × {kind}" for kind, number in outcome.get("kinds", {}).items()]
    return f"{text}: {', '.join(kinds)}" if kinds else text


def figures(outcome: dict[str, Any]) -> list[str]:
    if "swapped" not in outcome:
        return ["", "", ""]
    found = []
    for name, digits in (("start_ms", 0), ("call_ms", 2), ("rss_mb", 0)):
        pair = [outcome[side].get(name) for side in ("original", "swapped")]
        found.append("" if None in pair else " → ".join(f"{each:,.{digits}f}" for each in pair))
    return found


def cell(text: str) -> str:
    """A text as it fits a cell of a table."""
    return " ".join(text.replace("|", "\\|").replace("`", "'").split())[:160]


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"

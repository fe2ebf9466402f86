"""Renders docs/interop.md from the recorded results: a cell for each server, transport and version.

What is between the markers of the page is written here, and checked by `tests/meta/test_interop_page.py`.
"""

from __future__ import annotations

import json
import os
from typing import Any

from support import marked_page

HERE = os.path.dirname(os.path.abspath(__file__))
RESULTS = os.path.join(HERE, "results.json")
PAGE = os.path.join(os.path.dirname(os.path.dirname(HERE)), "docs", "interop.md")
BEGIN, END = "<!-- interop -->", "<!-- /interop -->"
NOTE = "note: "


def results() -> list[dict[str, Any]]:
    with open(RESULTS, encoding="utf-8") as file:
        found: list[dict[str, Any]] = json.load(file)
    return found


def render() -> None:
    """Write what the results give into the page."""
    marked_page.fill(PAGE, BEGIN, END, body(results()))


def filled(page: str, outcomes: list[dict[str, Any]]) -> str:
    return marked_page.filled(page, BEGIN, END, body(outcomes))


def body(outcomes: list[dict[str, Any]]) -> str:
    """The table of all runs, its notes, and a table of what was done with each server."""
    versions = list(dict.fromkeys(one["version"] for one in outcomes))
    notes: list[str] = []
    lines = [row(["server", "of", "transport", *versions]), row(["---"] * (3 + len(versions)))]
    last = ""
    for key, runs in grouped(outcomes, "server", "package", "transport").items():
        server, package, transport = key
        cells = {run["version"]: cell(run, notes) for run in runs}
        named = [server, package] if f"{server} {package}" != last else ["", ""]
        last = f"{server} {package}"
        lines.append(row([*named, transport, *(cells.get(version, "") for version in versions)]))
    shown = "\n".join(f"{number}. {note}." for number, note in enumerate(notes, 1))
    spoken = [run for run in outcomes if run["came_of_it"] == "spoken"]
    steps = [found for run in spoken for found in run["steps"].values()]
    well = steps.count("ok")
    missing = steps.count("not offered")
    failing = sum(found.startswith("FAILED") for found in steps)
    noted = len(steps) - well - missing - failing
    count = (
        f"{len(spoken)} sessions, {well:,} steps as expected, {noted} explained by a note, {failing} failing."
    )
    return "\n\n".join([count, "\n".join(lines), shown, done_with(outcomes)])


def cell(run: dict[str, Any], notes: list[str]) -> str:
    if run["came_of_it"] == "refused":
        return "refused"
    if run["came_of_it"] != "spoken":
        return f"{run['came_of_it']} {run['detail']:.60}".strip()
    found = [each for each in run["steps"].values() if each != "not offered"]
    numbers = []
    for each in found:
        if each.startswith(NOTE):
            text = each.removeprefix(NOTE)
            if text not in notes:
                notes.append(text)
            numbers.append(notes.index(text) + 1)
    marks = "".join(f" [{number}]" for number in sorted(set(numbers)))
    return f"{found.count('ok')} of {len(found)}{marks}"


def done_with(outcomes: list[dict[str, Any]]) -> str:
    """Which steps were taken with which server, in any of its sessions."""
    lines = [row(["server", "SDK", "steps"]), row(["---"] * 3)]
    for (server, _, sdk), runs in grouped(outcomes, "server", "package", "sdk").items():
        names = dict.fromkeys(
            name for run in runs for name, found in run["steps"].items() if found != "not offered"
        )
        lines.append(row([server, sdk, ", ".join(names)]))
    return "\n".join(lines)


def grouped(outcomes: list[dict[str, Any]], *members: str) -> dict[tuple[str, ...], list[dict[str, Any]]]:
    found: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for one in outcomes:
        found.setdefault(tuple(one[member] for member in members), []).append(one)
    return found


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"

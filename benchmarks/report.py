"""Renders what people read from the run of record: tables in two READMEs, and the charts.

    python benchmarks/report.py            # write them (make bench-report)
    python benchmarks/report.py --check    # write nothing; fail when one is not what the record gives

The record is `results/record.json`, which `run.py --record` writes. A table stands between
`<!-- report:NAME -->` and `<!-- /report -->`; whatever is typed in there is lost. Costs no measurement, and
the same record always gives the same files.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable
from typing import Any

import drawing
from pictures import CHARTS, charts_of
from record import PEER_ROWS, Record, count, short

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)
RECORD = os.path.join(HERE, "results", "record.json")
END = "<!-- /report -->"


class Broken(Exception):
    """A document or a record that cannot be used; the message says which and why."""


# ------------------------------------------------------------------------------------------ tables


def table(headings: list[str], lines: list[list[str]]) -> str:
    rows = [headings, ["---"] * len(headings), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


def figures(record: Record) -> str:
    """The README's own table: fastrpc beside the C reference and every SDK."""
    columns = ("W1", "W2", "W8", "memory", "eof", "-32700")
    headings = ["", "one call, µs", "calls/s", "start, ms", "memory, MB", "answers at EOF", "-32700"]
    lines = []
    for peer in ("fastrpc", "c", *sorted(record.others(), key=lambda peer: -record.figure("W2", peer))):
        name = record.label(peer)
        cells = [record.cell(column, peer) for column in columns]
        lines.append([f"**{name}**", *cells] if peer == "fastrpc" else [name, *cells])
    return "\n\n".join([table(headings, lines), *record.reasons(columns), how_taken(record)])


def how_taken(record: Record) -> str:
    return (
        f"Small `echo` calls over stdio, both processes on one core, {record.machine()}: "
        "p50 of one call at a time; calls a second with 256 in flight; spawn to the answer of `initialize`; "
        "peak memory; answers to 72 calls when the input ends right behind them; "
        "is a broken line answered with -32700. "
        f"Medians of {count(record.rounds, 'round')}, taken {record.day}."
    )


def summary(record: Record) -> str:
    """Which bars hold, which are missed, and where there is no verdict: plain sentences."""
    judged = [verdict for verdict in record.verdicts() if verdict.bar is not None]
    aimed = [verdict for verdict in record.verdicts() if verdict.goal is not None]
    held = [verdict for verdict in judged if verdict.holds]
    missed = [f"{verdict.name} ({verdict.distance()})" for verdict in judged if not verdict.holds]
    reached = [verdict.name for verdict in aimed if verdict.reached]
    beyond = [f"{each.name} ({each.value}, for {each.goal})" for each in aimed if not each.reached]
    lines = [
        f"Taken {record.day} at commit {record.commit}, {record.machine()}, "
        f"load {short(record.hardware['load_before'])} when it began, {record.python}, "
        f"{count(record.rounds, 'round')}; fastrpc: {record.source}.",
        f"**{len(held)} of {len(judged)} bars hold.** Missed: {listed(missed)}.",
        f"**{len(reached)} of {len(aimed)} figures to go for are reached**: {listed(reached)}. "
        f"Not: {listed(beyond)}.",
    ]
    if without := record.without_figure("fastrpc"):
        lines.append(f"Without a verdict: {'; '.join(without)}.")
    return "\n\n".join(lines)


def listed(words: list[str]) -> str:
    return ", ".join(words) or "none"


def bars(record: Record) -> str:
    """Every row of fastrpc, with what it is taken to."""
    headings = ["row", "what", "fastrpc", "taken to", "ratio", "bar", "go for", "verdict"]
    return table(headings, [line for name in record.rows for line in bar_lines(record, name)])


def bar_lines(record: Record, name: str) -> list[list[str]]:
    entry = record.entries.get((name, "fastrpc"))
    if entry is None:
        return []
    title = str(entry["title"])
    if "figure" not in entry:
        return [[name, title, record.cell(name, "fastrpc"), "", "", "", "", "no verdict"]]
    ratio = entry.get("ratio")
    lines = [
        [
            name,
            title,
            record.with_unit(entry),
            record.base_cell(name, entry),
            spread(ratio) if ratio else "",
            *record.verdict(entry).cells(),
        ]
    ]
    for times in entry.get("times_sdks", ()):
        which = "the best SDK" if times["which"] == "best" else times["which"]
        verdict = record.sdk_verdict(name, times)
        taken_to = f"{record.label(times['peer'], name)} {record.cell(name, times['peer'])}"
        lines.append([name, f"times better than {which}", "", taken_to, spread(times), *verdict.cells()])
    return lines


def spread(values: dict[str, float]) -> str:
    if values["least"] == values["most"]:
        return short(values["median"])
    return f"{short(values['median'])} ({short(values['least'])} to {short(values['most'])})"


def peers(record: Record) -> str:
    """Every server in the rows that SDKs take part in."""
    columns = [name for name in PEER_ROWS if name in record.rows or name in ("memory", "-32700")]
    headings = ["server", *(PEER_ROWS[name] for name in columns)]
    lines = [[record.label(peer), *(record.cell(name, peer) for name in columns)] for peer in record.peers]
    return "\n\n".join([table(headings, lines), *record.reasons(columns)])


def charts(record: Record) -> str:
    return "\n".join(f"![{CHARTS[name](record).title}](charts/{name}.svg)" for name in charts_of(record))


# --------------------------------------------------------------------------------------- documents

Block = Callable[[Record], str]
DOCUMENTS: dict[str, dict[str, Block]] = {
    "README.md": {"figures": figures},
    "benchmarks/README.md": {"summary": summary, "bars": bars, "peers": peers, "charts": charts},
}


def filled(document: str, name: str, body: str) -> str:
    """Put a rendered block between its markers. Raises Broken."""
    begin = f"<!-- report:{name} -->"
    head, found, rest = document.partition(begin)
    _, ended, tail = rest.partition(END)
    if not found or not ended or begin in tail:
        raise Broken(f"expected {begin} once, and {END} behind it")
    return f"{head}{begin}\n{body}\n{END}{tail}"


def rendered(record: Record, repository: str) -> dict[str, str]:
    """All files that the record gives, by their path. Raises Broken."""
    files = {}
    for path, blocks in DOCUMENTS.items():
        try:
            with open(os.path.join(repository, path), encoding="utf-8") as file:
                document = file.read()
            for name, block in blocks.items():
                document = filled(document, name, block(record))
        except (OSError, Broken) as problem:
            raise Broken(f"{path}: {problem}") from None
        files[path] = document
    for name, chart in charts_of(record).items():
        files[f"benchmarks/charts/{name}.svg"] = drawing.svg(chart(record))
    return files


def text_of(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except FileNotFoundError:
        return ""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Render the tables and charts of the run of record.")
    parser.add_argument("--check", action="store_true", help="write nothing, fail when a file differs")
    parser.add_argument("--record", default=RECORD, help="the results file")
    parser.add_argument("--repository", default=REPOSITORY, help="where the documents lie")
    given = parser.parse_args(arguments)
    try:
        with open(given.record, encoding="utf-8") as file:
            document: dict[str, Any] = json.load(file)
        files = rendered(Record(document), given.repository)
    except (OSError, ValueError, Broken) as problem:
        print(f"report.py: {problem}", file=sys.stderr)
        return 1
    changed = [path for path, text in files.items() if text_of(os.path.join(given.repository, path)) != text]
    outcome = "is not what the record gives; run make bench-report" if given.check else "written"
    for path in changed:
        print(f"{path}: {outcome}")
        if not given.check:
            target = os.path.join(given.repository, path)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(target, "w", encoding="utf-8") as file:
                file.write(files[path])
    return 1 if given.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())

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
from collections import Counter
from collections.abc import Callable
from typing import Any

import drawing
from pictures import CHARTS, charts_of
from record import NONE, NOT_YET, PEER_ROWS, Record, Run, Verdict, count, short
from roster import A_COROUTINE, A_FUNCTION, ASYNC, CLIENT_SDKS, LOAD_CLIENT, ORIGINAL, WRITTEN
from workloads import ROWS
from workloads.w12 import OVER_HTTP, SHAPES
from workloads.w17 import SERVERS as SWAPPED_SERVERS

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)
RECORD = os.path.join(HERE, "results", "record.json")
END = "<!-- /report -->"
MOST_NAMES = 30
"""Rows of one workload that are named one by one in a sentence."""
TITLES = {row.name: row.title for row in ROWS}


class Broken(Exception):
    """A document or a record that cannot be used; the message says which and why."""


# ------------------------------------------------------------------------------------------ tables


def table(headings: list[str], lines: list[list[str]]) -> str:
    rows = [headings, ["---"] * len(headings), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows)


# The lines of the README's table: the peer, and what is said instead of its name.
IN_SHORT = (
    ("fastrpc", "**fastrpc**"),
    (ASYNC, "**fastrpc**, the tool an `async def`"),
    ("c", ""),
    ("rmcp-pipes", ""),
    ("mcp", ""),
    ("fastmcp", ""),
)


def figures(record: Record) -> str:
    """The README's own table: fastrpc beside the C reference and the SDKs that most people come from."""
    columns = ("W1", "W2", "W8", "memory")
    headings = ["server", "one call, µs", "calls a second", "start, ms", "memory, MB"]
    lines = [
        [name or record.label(peer), *(record.cell(column, peer) for column in columns)]
        for peer, name in IN_SHORT
    ]
    runs = record.runs_of(columns)
    how = (
        f"Small `echo` calls over stdio, both processes on one core, {runs[0].machine}: median time of one "
        "call at a time; calls a second with 256 in flight; time to the first answer; peak memory. "
        f"{when_taken(runs)}"
    )
    reasons = record.reasons(columns, dict(IN_SHORT))
    return "\n\n".join([table(headings, lines), *reasons, how])


def by_kind(others: list[str]) -> list[str]:
    """fastrpc's plain tool before those of a kind with it, then its coroutine before those of that kind."""
    of = {each: [peer for peer in others if WRITTEN.get(peer) == each] for each in (A_FUNCTION, A_COROUTINE)}
    return ["fastrpc", *of[A_FUNCTION], ASYNC, *of[A_COROUTINE]]


def kind(peer: str) -> str:
    return WRITTEN.get(peer, NONE)


def when_taken(runs: list[Run]) -> str:
    rounds = sorted({run.rounds for run in runs})
    number = count(rounds[0], "round") if len(rounds) == 1 else f"{rounds[0]} to {count(rounds[-1], 'round')}"
    return f"Medians of {number}, taken {' and '.join(dict.fromkeys(run.day for run in runs))}."


# The columns of W12's table: the peer over stdio, the one over HTTP, and whose echo stands in its first line.
SHAPE_PEERS = (("mcp", "mcp", "mcp-plain"), ("fastmcp", "", ""), ("rmcp-pipes", "rmcp", "rmcp-pipes"))


def shapes(record: Record) -> str:
    """What a tool costs as people write it: W12, fastrpc beside the SDKs that serve the same source."""
    names = [record.label(over_stdio) for over_stdio, _, _ in SHAPE_PEERS]
    lines = [shape_line(record, "echo, plain", "W2", [plain for _, _, plain in SHAPE_PEERS])]
    over_stdio, over_http = ([each[at] for each in SHAPE_PEERS] for at in (0, 1))
    lines += [shape_line(record, shape.title, f"W12-{name}", over_stdio) for name, shape in SHAPES.items()]
    plain_over_http = [plain if plain == "mcp-plain" else over for _, over, plain in SHAPE_PEERS]
    lines.append(shape_line(record, "over HTTP: echo, plain", "W11", plain_over_http))
    for name in OVER_HTTP:
        lines.append(shape_line(record, f"over HTTP: {SHAPES[name].title}", f"W12-http-{name}", over_http))
    columns = [f"W12-{name}" for name in SHAPES] + [f"W12-http-{name}" for name in OVER_HTTP]
    text = (
        "Calls a second with 256 in flight, both processes on one core; over HTTP with 64 connections and a "
        "core for each process. The third column is the ratio to fastrpc's plain `echo` in the same rounds, "
        "and the calls a second of that `echo`. Every server runs the same source, a plain function "
        f"or a coroutine as in fastrpc; {NONE}: the SDK does not have this feature, or its answer differs. "
        f"{when_taken(record.runs_of(columns))}"
    )
    headings = ["tool or request", "fastrpc", "ratio to its plain echo", *names]
    return "\n\n".join([table(headings, lines), *record.reasons(columns), text])


def shape_line(record: Record, title: str, row: str, others: list[str]) -> list[str]:
    if row not in record.rows:
        return [title, NOT_YET, "", *("" for _ in others)]
    ratio = record.entries.get((row, "fastrpc"), {}).get("ratio", {}) if row.startswith("W12") else {}
    of_plain = f"{short(ratio['median'])}× of {record.cell(row, ratio['to'])}" if ratio else ""
    return [title, record.cell(row, "fastrpc"), of_plain, *(record.cell(row, peer) for peer in others)]


def summary(record: Record) -> str:
    """Which bars hold, which are missed, and where there is no verdict: plain sentences."""
    judged = [verdict for verdict in record.verdicts() if verdict.bar is not None]
    aimed = [verdict for verdict in record.verdicts() if verdict.goal is not None]
    held = [verdict for verdict in judged if verdict.holds]
    missed = [f"{verdict.name} ({verdict.distance()})" for verdict in judged if not verdict.holds]
    reached = [verdict.name for verdict in aimed if verdict.reached]
    beyond = [f"{each.name} ({each.value}, for {each.goal})" for each in aimed if not each.reached]
    first, *later = record.runs
    lines = [
        f"Taken {circumstances(first)}; fastrpc: {record.source}.",
        *(f"Later: {listed(gathered(in_order(record, run)))}, taken {circumstances(run)}." for run in later),
        f"**{len(held)} of {len(judged)} bars hold.** Missed: {listed(missed)}.",
        f"**{len(reached)} of {len(aimed)} goals are reached**: {listed(gathered(reached))}. "
        f"Not: {listed(beyond)}.",
    ]
    if without := record.without_figure("fastrpc"):
        lines.append(f"Without a verdict: {'; '.join(without)}.")
    if absent := [row.name for row in ROWS if row.name not in record.rows]:
        lines.append(f"Not measured yet: {listed(gathered(absent))}.")
    return "\n\n".join(lines)


def circumstances(run: Run) -> str:
    return (
        f"{run.day} at commit {run.commit}, {run.machine}, load {short(run.load)} when it began, "
        f"{run.python}, {count(run.rounds, 'round')}"
    )


def gathered(names: list[str]) -> list[str]:
    """Name the rows of a workload together where there are many of them: nobody reads seventy names."""
    rows = Counter(name.partition("-")[0] for name in names)
    together = {
        workload: f"{many} rows of {workload}" for workload, many in rows.items() if many > MOST_NAMES
    }
    return list(dict.fromkeys(together.get(name.partition("-")[0], name) for name in names))


def in_order(record: Record, run: Run) -> list[str]:
    return [name for name in record.rows if name in run.rows]


def listed(words: list[str]) -> str:
    return ", ".join(words) or "none"


def bars(record: Record) -> str:
    """Every row of fastrpc, with the figure that it is compared with."""
    headings = ["row", "what", "fastrpc", "compared with", "ratio", "bar", "goal", "verdict"]
    lines = [line for name in record.rows for line in bar_lines(record, name)]
    return table(headings, lines + slowest_lines(record))


def title_of(name: str, entry: dict[str, Any]) -> str:
    """The title of a row as its workload has it today, else as the record has it."""
    return TITLES.get(name) or str(entry["title"])


def bar_lines(record: Record, name: str) -> list[list[str]]:
    entry = record.entries.get((name, "fastrpc"))
    if entry is None:
        return []
    title = title_of(name, entry)
    if "figure" not in entry:
        return [[name, title, record.cell(name, "fastrpc"), "", "", "", "", "no verdict"]]
    ratio = entry.get("ratio")
    first = [
        name,
        title,
        record.with_unit(entry),
        record.base_cell(name, entry),
        spread(ratio) if ratio else "",
        *record.verdict(entry).cells(),
    ]
    return [first, *times_lines(record, name, name, entry), *coroutine_lines(record, name)]


def guarded(record: Record) -> str:
    """What the guard costs (W15), for its own page."""
    lines = []
    for name in record.rows:
        if name.startswith("W15"):
            for _, title, measured, taken_to, ratio, bar, _, verdict in bar_lines(record, name):
                lines.append([title, measured, taken_to, ratio, bar, verdict])
    runs = record.runs_of(tuple(name for name in record.rows if name.startswith("W15")))
    how = "; ".join(f"Taken {circumstances(run)}" for run in runs)
    return f"{table(['what', 'measured', 'compared with', 'ratio', 'bar', 'verdict'], lines)}\n\n{how}."


def coroutine_lines(record: Record, name: str) -> list[list[str]]:
    """fastrpc's coroutine in the row, beside the SDKs whose tools are coroutines."""
    entry = record.entries.get((name, ASYNC))
    if entry is None:
        return []
    label, title = f"{name} async", f"{title_of(name, entry)}, a coroutine"
    if "figure" not in entry:
        return [[label, title, record.cell(name, ASYNC), "", "", "", "", "no verdict"]]
    ratio = entry.get("ratio")
    taken_to = [record.base_cell(name, entry), spread(ratio) if ratio else ""]
    first = [label, title, record.with_unit(entry), *taken_to, "", "", ""]
    return [first, *times_lines(record, name, label, entry)]


def times_lines(record: Record, name: str, label: str, entry: dict[str, Any]) -> list[list[str]]:
    """How many times better than SDKs fastrpc is in this row."""
    lines = []
    for times in entry.get("times_sdks", ()):
        which = "the best SDK" if times["which"] == "best" else times["which"]
        verdict = record.sdk_verdict(label, times)
        taken_to = f"{record.label(times['peer'], name)} {record.cell(name, times['peer'])}"
        lines.append([label, f"times better than {which}", "", taken_to, spread(times), *verdict.cells()])
    return lines


def slowest_lines(record: Record) -> list[list[str]]:
    """Whether every shape of W12 is ahead of the best SDK's echo: it is when the slowest is."""
    lines = []
    for name, times in record.slowest_shapes():
        slowest, echo, best = times["slowest"], times["echo"], times["peer"]
        ours = record.with_unit(record.entries[slowest, "fastrpc"])
        taken_to = f"{record.label(best, echo)} {record.cell(echo, best)}"
        what = f"the slowest shape, {slowest}, to the best SDK's echo ({echo})"
        cells = record.sdk_verdict(name, times).cells()
        lines.append([name, what, ours, taken_to, spread(times), *cells])
    return lines


def spread(values: dict[str, float]) -> str:
    if values["least"] == values["most"]:
        return short(values["median"])
    return f"{short(values['median'])} ({short(values['least'])} to {short(values['most'])})"


def peers(record: Record) -> str:
    """Every server in the rows that SDKs take part in, like beside like."""
    columns = [name for name in PEER_ROWS if name in record.rows or name in ("memory", "-32700")]
    headings = ["server", "echo", *(PEER_ROWS[name] for name in columns)]
    others = [peer for peer in record.peers if peer not in ("fastrpc", ASYNC)]
    lines = [
        [record.label(peer), kind(peer), *(record.cell(name, peer) for name in columns)]
        for peer in by_kind(others)
    ]
    return "\n\n".join([table(headings, lines), *record.reasons(columns)])


# The lines of W13's table: whose client, what is said behind its name, and which rows it is taken from.
CLIENTS = (
    (LOAD_CLIENT, "", "async"),
    ("fastrpc", ", no event loop", "sync"),
    ("fastrpc", ", in an event loop", "async"),
    *((sdk, "", "async") for sdk in CLIENT_SDKS),
)


def clients(record: Record) -> str:
    """What a call costs in an agent's loop: W13, each client before the same server."""
    headings = ["client", "event loop", "one call, µs", "p99, µs", "to the C load client", "faster than mcp"]
    headings += ["256 at once, calls/s", "to mcp's", "in memory, µs", "in memory, 256 at once, calls/s"]
    lines = [client_line(record, peer, how, kind) for peer, how, kind in CLIENTS]
    columns = [name for name in record.rows if name.startswith("W13")]
    return "\n\n".join([table(headings, lines), *record.reasons(columns)])


def client_line(record: Record, peer: str, how: str, kind: str) -> list[str]:
    one, in_memory = f"W13-{kind}", f"W13-memory-{kind}"
    many = ["W13-256", "W13-memory-256"] if kind == "async" else ["", ""]
    entry = record.entries.get((one, peer), {})
    tail = short(entry["p99"]) if "p99" in entry else NONE
    to_load_client = f"{short(entry['ratio']['median'])}×" if "ratio" in entry else NONE
    if "judged" in entry:
        to_load_client = beside_its_bar(record.verdict(entry))
    at_once, at_once_in_memory = (record.cell(name, peer) for name in many)
    return [
        f"**{record.label(peer)}**{how}" if peer == "fastrpc" else record.label(peer),
        str(entry.get("loop", NONE)),
        record.cell(one, peer),
        tail,
        to_load_client,
        times_mcp(record, one, peer),
        at_once,
        times_mcp(record, many[0], peer),
        record.cell(in_memory, peer),
        at_once_in_memory,
    ]


def times_mcp(record: Record, row: str, peer: str) -> str:
    """How many times better than the official client, beside the bar where there is one."""
    for times in record.entries.get((row, peer), {}).get("times_sdks", ()):
        if times["which"] == "mcp":
            return beside_its_bar(record.sdk_verdict(row, times))
    return NONE


def beside_its_bar(verdict: Verdict) -> str:
    bar, _, came_of_it = verdict.cells()
    return f"{verdict.value} ({bar}: {came_of_it})" if bar else verdict.value


# The columns of W17's table: the figure of a report, "" for the row's own, and what it is divided by.
SWAPPED_FIGURES = (("start_ms", 1), ("list_ms", 1), ("", 1000), ("rss_mb", 1))


def swapped(record: Record) -> str:
    """What published servers cost on their own framework and with their imports swapped: W17."""
    headings = ["server", "start, ms", "lists, ms", "a call, ms", "memory, MB"]
    lines = []
    for name, server in SWAPPED_SERVERS.items():
        pair = [record.entries.get((f"W17-{name}", peer), {}) for peer in (ORIGINAL, "fastrpc")]
        lines.append([server, *(before_and_after(pair, *of) for of in SWAPPED_FIGURES)])
    columns = [name for name in record.rows if name.startswith("W17")]
    return "\n\n".join([table(headings, lines), *record.reasons(columns)])


def before_and_after(pair: list[dict[str, Any]], field: str, divisor: int) -> str:
    """Two figures and their ratio: ``12 → 3 (0.25×)``. `field` is "" for the row's own figure."""
    if not all("figure" in entry for entry in pair):
        return NOT_YET
    found = [entry[field] if field else entry["figure"]["median"] for entry in pair]
    before, after = (value / divisor for value in found)
    return f"{short(before)} → {short(after)} ({short(after / before)}×)"


def charts(record: Record) -> str:
    return "\n".join(f"![{CHARTS[name](record).title}](charts/{name}.svg)" for name in charts_of(record))


# --------------------------------------------------------------------------------------- documents

Block = Callable[[Record], str]
DOCUMENTS: dict[str, dict[str, Block]] = {
    "README.md": {"figures": figures},
    "benchmarks/README.md": {
        "summary": summary,
        "shapes": shapes,
        "bars": bars,
        "clients": clients,
        "swapped": swapped,
        "peers": peers,
        "charts": charts,
    },
    "docs/guard.md": {"guard": guarded},
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

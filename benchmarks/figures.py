"""From the reports of single runs to a line of the table: medians, spreads, ratios taken round by round."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from roster import ASYNC, SDKS, WRITTEN, Peer
from workloads.row import Result, Row

Runs = Mapping[str, Sequence[Result]]


def spread(values: Sequence[float]) -> Result:
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def usable(runs: Sequence[Result]) -> bool:
    return bool(runs) and not any("void" in run for run in runs)


def ratios(row: Row, runs: Sequence[Result], base: Sequence[Result]) -> list[float]:
    """Round by round, as far as both took part: SDKs may be in the first rounds only."""
    return [mine[row.figure] / theirs[row.figure] for mine, theirs in zip(runs, base, strict=False)]


def summary(row: Row, peer: Peer, all_runs: Runs) -> Result:
    """One peer's line; of fastrpc also whether its bars hold."""
    runs, base = all_runs[peer.name], all_runs.get(row.base, [])
    entry: Result = {"row": row.name, "title": row.title, "peer": peer.name, "unit": row.unit}
    entry |= {"measured": row.figure, "less_is_better": row.less_is_better, "runs": runs}
    if peer.missing:
        return {**entry, "missing": peer.missing}
    if void := next((run["void"] for run in runs if "void" in run), ""):
        return {**entry, "void": void}
    entry["figure"] = spread([run[row.figure] for run in runs])
    for name in dict.fromkeys([*(column.name for column in row.columns), "answer_bytes", "start_ms"]):
        if all(name in run for run in runs):
            entry[name] = middle([run[name] for run in runs])
    if usable(base) and peer.name != row.base:
        entry["ratio"] = {**spread(ratios(row, runs, base)), "to": row.base}
        if row.base == "bare" and not peer.from_wheel:
            entry["no_verdict"] = "start-up counts from a wheel only"
        elif peer.name == "fastrpc" and row.limit is None:
            entry |= {"judged": "ratio", **verdict(row, entry["ratio"]["median"], row.bar)}
    if peer.name == "fastrpc" and row.limit is not None:
        entry |= {"judged": "figure", **verdict(row, entry["figure"]["median"], row.limit)}
    if times := advantages(row, peer.name, all_runs):
        entry["times_sdks"] = times
    return entry


def verdict(row: Row, value: float, bar: float | None) -> Result:
    """Whether a ratio or a figure keeps to its bar, and whether it gets where we want to be."""
    entry: Result = {}
    for name, bound, held in (("bar", bar, "holds"), ("goal", row.goal, "reached")):
        if bound is not None:
            entry[name] = bound
            entry[held] = value <= bound if row.less_is_better else value >= bound
    return entry


def middle(values: Sequence[float | str]) -> float | str:
    """The median, or of words the different ones."""
    numbers = [value for value in values if not isinstance(value, str)]
    return statistics.median(numbers) if numbers else " or ".join(sorted({str(value) for value in values}))


def alike(row: Row, ours: str) -> list[str]:
    """The SDKs whose echo is written as ours is; in W12 and W13 all: not echo is compared."""
    return [name for name in SDKS if row.workload in ("W12", "W13") or WRITTEN[name] == WRITTEN[ours]]


def advantages(row: Row, ours: str, all_runs: Runs) -> list[Result]:
    """How many times better fastrpc's plain echo, or its coroutine, is than those of SDKs that took part."""
    bars = {"fastrpc": row.times_sdks, ASYNC: row.async_times_sdks}.get(ours, {})
    if not bars or not usable(all_runs.get(ours, [])):
        return []
    times: dict[str, Result] = {}
    for name in alike(row, ours):
        if usable(all_runs.get(name, [])):
            found = ratios(row, all_runs[ours], all_runs[name])
            times[name] = spread([1 / ratio for ratio in found] if row.less_is_better else found)
    entries = []
    for which, bar in bars.items():
        names = [name for name in times if which == "best" or name.removesuffix("-plain") == which]
        if names:
            name = min(names, key=lambda name: float(times[name]["median"]))
            goal = row.sdk_goals.get(which) if ours == "fastrpc" else None
            entries.append({"which": which, "peer": name, **times[name], **at_least(times[name], bar, goal)})
    return entries


def at_least(times: Result, bar: float | None, goal: float | None) -> Result:
    """Whether fastrpc is so many times better."""
    entry: Result = {}
    for name, bound, held in (("bar", bar, "holds"), ("goal", goal, "reached")):
        if bound is not None:
            entry |= {name: bound, held: times["median"] >= bound}
    return entry


def slim(entry: Result) -> Result:
    """An entry without what its single runs reported besides the figure: what a results file commits."""
    name = entry["measured"]
    kept = {key: rounded(value) for key, value in entry.items() if key != "runs"}
    return {**kept, "rounds": [rounded(run[name]) for run in entry["runs"] if name in run]}


def rounded(value: Any) -> Any:
    """Floats to five significant digits, at any depth: more is noise."""
    if isinstance(value, float):
        return float(f"{value:.5g}")
    if isinstance(value, dict):
        return {key: rounded(each) for key, each in value.items()}
    return [rounded(each) for each in value] if isinstance(value, list) else value


# ------------------------------------------------------------------------------------------- table


def number(value: float | str) -> str:
    """Three significant digits, or all of them before the point; words as they are."""
    if isinstance(value, str):
        return value
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table(rows: Sequence[Row], entries: Sequence[Result]) -> str:
    """The rows as text: one block a workload."""
    return "\n\n".join("\n".join(block(row, entries)) for row in rows)


def block(row: Row, entries: Sequence[Result]) -> list[str]:
    headings = (
        "median",
        "least",
        "most",
        *(column.heading for column in row.columns),
        "ratio",
        "least",
        "most",
    )
    lines = [f"{row.name}: {row.title} ({row.unit})"]
    lines.append(f"  {'peer':<12}" + "".join(f"{heading:>11}" for heading in headings) + "  bar")
    for entry in entries:
        if entry["row"] == row.name:
            lines.append(line(row, entry))
            lines += [advantage(row, each) for each in entry.get("times_sdks", ())]
    return lines


def line(row: Row, entry: Result) -> str:
    peer = f"  {entry['peer']:<12}"
    if "figure" not in entry:
        return f"{peer} " + (f"void: {entry['void']}" if "void" in entry else str(entry["missing"]))
    cells = [number(entry["figure"][key]) for key in ("median", "least", "most")]
    for column in row.columns:
        value = entry.get(column.name, "")
        cells.append(number(value if isinstance(value, str) else value / column.divisor))
    ratio = entry.get("ratio")
    cells += [f"{ratio[key]:.3f}" for key in ("median", "least", "most")] if ratio else ["", "", ""]
    said = f"  {entry['no_verdict']}" if "no_verdict" in entry else ""
    if "bar" in entry:
        bar = f"{entry['bar']:g}" + (f" {row.unit}" if row.limit is not None else "")
        said = f"  {'<=' if row.less_is_better else '>='} {bar} {word(entry['holds'])}"
    return (peer + "".join(f" {cell:>10}" for cell in cells) + said).rstrip()


def advantage(row: Row, times: Result) -> str:
    which = f"the best SDK here, {times['peer']}" if times["which"] == "best" else times["peer"]
    figures = f"{number(times['median'])} ({number(times['least'])} to {number(times['most'])})"
    said = f"  >= {times['bar']:g} {word(times['holds'])}" if "bar" in times else ""
    return f"    times better than {which}: {figures}{said}"


def word(holds: bool) -> str:
    return "holds" if holds else "MISSED"

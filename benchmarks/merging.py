"""Keeps the run of record when some of its rows are measured anew.

A row is taken over whole, all of its servers from one run: ratios are never taken between runs. What was not
measured this time stays as it was, with the run that it is of; its comparisons with SDKs are made again from
the rounds that are kept, by the bars of today. Measures nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from figures import advantages, rounded
from workloads.row import Result, Row

# What a document says of the run that it is of.
OF_A_RUN = ("created", "commit", "changed_files", "machine", "versions", "options", "took_seconds")


def merged(old: Result, new: Result, rows: Mapping[str, Row]) -> Result:
    """Return the record with the rows of a new run in place of its own; `rows`: the suite, in order.

    Rows that the suite has no longer are dropped. `later` lists the runs behind the first, each with the
    names of its rows; the rest is of the run whose facts stand at the top.
    """
    fresh = {entry["row"] for entry in new["rows"]}
    kept = [entry for entry in old["rows"] if entry["row"] in rows and entry["row"] not in fresh]
    if not kept:
        return new
    remaining = dict.fromkeys(entry["row"] for entry in kept)
    runs: list[Result] = []
    for run in [run_of(old, first_rows(old)), *old.get("later", ())]:
        if left := [name for name in run["rows"] if name in remaining]:
            runs.append({**run, "rows": left})
    runs.append(run_of(new, [name for name in rows if name in fresh]))
    entries = sorted([*rejudged(kept, rows), *new["rows"]], key=lambda entry: list(rows).index(entry["row"]))
    versions = {name: value for run in reversed(runs) for name, value in run["versions"].items()}
    first = {name: value for name, value in runs[0].items() if name != "rows"}
    return {**first, "versions": versions, "later": runs[1:], "rows": entries}


def run_of(document: Result, rows: list[str]) -> Result:
    return {name: document[name] for name in OF_A_RUN if name in document} | {"rows": rows}


def first_rows(document: Result) -> list[str]:
    """The rows of the run at the top."""
    later = {name for run in document.get("later", ()) for name in run["rows"]}
    return [name for name in dict.fromkeys(entry["row"] for entry in document["rows"]) if name not in later]


def rejudged(entries: list[Result], rows: Mapping[str, Row]) -> list[Result]:
    """Entries of a record, with fastrpc's compared with SDKs' from the figures of their rounds."""
    by_row: dict[str, dict[str, list[Any]]] = {}
    for entry in entries:
        row = rows[entry["row"]]
        runs = [{row.figure: value} for value in entry.get("rounds", ())]
        by_row.setdefault(row.name, {})[entry["peer"]] = [] if "void" in entry else runs
    found = []
    for entry in entries:
        ours, all_runs = entry["peer"], by_row[entry["row"]]
        kept = {name: value for name, value in entry.items() if name != "times_sdks"}
        if times := advantages(rows[entry["row"]], ours, all_runs):
            kept["times_sdks"] = rounded(times)
        found.append(kept)
    return found


def lost(old: Result, new: Result) -> list[str]:
    """Which servers a row of the record would lose, one sentence for each row."""
    fresh: dict[str, set[str]] = {}
    for entry in new["rows"]:
        if "figure" in entry:
            fresh.setdefault(entry["row"], set()).add(entry["peer"])
    gone: dict[str, list[str]] = {}
    for entry in old["rows"]:
        if entry["row"] in fresh and "figure" in entry and entry["peer"] not in fresh[entry["row"]]:
            gone.setdefault(entry["row"], []).append(entry["peer"])
    return [
        f"{row} was measured without {', '.join(peers)}, which the record had" for row, peers in gone.items()
    ]

"""Keeps the speed: measures fastrpc against the C reference and fails when a figure has got worse.

    python benchmarks/guard.py --python VENV/bin/python   compare with the run of record (`make bench-guard`)

A figure is a ratio, or the figure itself where nothing is to be compared with: memory. It fails when it
misses a bar that the committed one held, or is over 25 % worse than the committed one, and does so in each
of three repetitions and in the best rounds of all of them: noise stops nobody, a real loss does. (Other
programs only ever add time, and more of it to a server that needs more of the processor's caches: the best
round of each is what they cost by themselves.) The record may be of another machine, so what has failed so
far is measured in turns with the recorded commit, built here: what that one does not reach here either is no
loss. A bar that the committed figure misses is shown as missed and cannot fail before it has been held once;
of a row that the record lacks only the bar is asked.
A server behind the guard (W14-guarded, W15) is taken to the same one without. Over HTTP (W11-cpu) fastrpc is
taken to the plain Python loop, since no SDK is built here. Takes two minutes where nothing fails. Search in
the knowledge toolset is guarded by `knowledge_guard.py`.
`FASTRPC_GUARD_PLANT=N` slows the measured tool, or client, down by N µs a call: for the guard's own test.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import replace

import build
import roster
from figures import summary, usable
from recorded import commits_in, python_with
from run import RECORD, run_rows
from workloads import ROWS
from workloads.row import Options, Result, Row

GUARDED = ("W1", "W2", "W3", "W3-256", "W4-64k", "W4-1m", "W7", "W8", "W8-serve", "W8-list")
GUARDED += ("W9", "W9-loop", "W9-calls", "W9-serve", "W9-serve-loop", "W11-cpu")
GUARDED += ("W12-context", "W12-coroutine", "W12-guard")  # to the plain echo of the same server
GUARDED += ("W13-sync", "W13-async")  # to the load client before the same server
GUARDED += ("W14", "W14-guarded")  # to the same server without the proxy; to the proxy without the guard
GUARDED += ("W15-one", "W15-256", "W15-rules")  # to the same server without the guard
MOST_ROUNDS = {"W13-sync": 3, "W13-async": 3}  # a run of it starts two Pythons
# A run of these starts a server that opens an audit log.
MOST_ROUNDS |= {"W14-guarded": 3, "W15-one": 3, "W15-256": 3, "W15-rules": 3}
REPETITIONS = 3
WORSE = 1.25
PLANT = "FASTRPC_GUARD_PLANT"


def complaint(entry: Result, committed: Result | None) -> str:
    """Say what is wrong with one figure of fastrpc; the empty string if nothing is."""
    if "void" in entry or "missing" in entry:
        return str(entry.get("void") or entry["missing"])
    figure = figure_of(entry)
    if committed is None:  # a row that is newer than the record
        return f"{figure:.3f} misses the bar of {entry['bar']:g}" if entry.get("holds") is False else ""
    before, less_is_better = committed["figure"], committed["less_is_better"]
    limit = before * WORSE if less_is_better else before / WORSE
    if before and ((figure > limit) if less_is_better else (figure < limit)):
        return f"{figure:.3f} is over 25 % worse than the committed {before:.3f}"
    if committed["holds"] and entry.get("holds") is False:
        return f"{figure:.3f} misses the bar of {entry['bar']:g}, which {before:.3f} did hold"
    return ""


def figure_of(entry: Result) -> float:
    """What is guarded of an entry."""
    found: float = entry.get("ratio", entry["figure"])["median"]
    return found


def options_for(row: Row, options: Options) -> Options:
    """The options, with fewer rounds where they take long."""
    most = MOST_ROUNDS.get(row.name)
    return options if most is None else replace(options, rounds=min(most, options.rounds))


def all_of(row: Row, peers: list[roster.Peer], entries: list[Result]) -> Result:
    """fastrpc's entry, of all rounds of each peer in several measurements of a row."""
    return entry_of(row, peers, rounds_of(peers, entries))


def best_of(row: Row, peers: list[roster.Peer], entries: list[Result]) -> Result:
    """fastrpc's entry, of the best round of each peer in several measurements of a row."""
    best = min if row.less_is_better else max
    runs = rounds_of(peers, entries)
    for name, each in runs.items():
        if usable(each):
            runs[name] = [best(each, key=lambda run: float(run[row.figure]))]
    return entry_of(row, peers, runs)


def rounds_of(peers: list[roster.Peer], entries: list[Result]) -> dict[str, list[Result]]:
    """The rounds of each peer in several measurements of a row."""
    return {
        peer.name: [run for entry in entries if entry["peer"] == peer.name for run in entry["runs"]]
        for peer in peers
    }


def entry_of(row: Row, peers: list[roster.Peer], runs: dict[str, list[Result]]) -> Result:
    """fastrpc's entry, of these rounds."""
    return summary(row, next(peer for peer in peers if peer.name == "fastrpc"), runs)


def guard(
    rows: list[Row], peers: list[roster.Peer], options: Options, committed: dict[str, Result]
) -> list[Row]:
    """Measure, and again what has failed; return the rows that were never right."""
    measured: list[Result] = []
    for repetition in range(1, REPETITIONS + 1):
        latest = [entry for row in rows for entry in run_rows([row], peers, options_for(row, options))]
        measured += latest
        failed = []
        for row in rows:
            entry = next(each for each in latest if each["row"] == row.name and each["peer"] == "fastrpc")
            said = judge(row.name, entry, committed.get(row.name))
            if said and repetition > 1:
                best = best_of(row, peers, [each for each in measured if each["row"] == row.name])
                said = judge("  best rounds", best, committed.get(row.name))
            if said:
                failed.append(row)
        rows = failed
        if not rows:
            break
        print(f"repetition {repetition} of {REPETITIONS}: {', '.join(row.name for row in rows)} failed")
    return rows


def slower_than_recorded(
    row: Row, peers: list[roster.Peer], recorded: list[roster.Peer], options: Options
) -> bool:
    """Whether a row is worse than with the recorded commit, the two taken in turns on this machine: in the
    median of all rounds, and in the best ones."""
    now: list[Result] = []
    then: list[Result] = []
    for _ in range(REPETITIONS):
        now += run_rows([row], peers, options_for(row, options))
        then += run_rows([row], recorded, options_for(row, options))
    said = []
    for label, chosen in (("all rounds", all_of), ("best rounds", best_of)):
        before = chosen(row, recorded, then)
        if "figure" not in before:
            print(
                f"{row.name}: the recorded commit does not do this: {before.get('void') or before['missing']}"
            )
            return True
        figure, holds = figure_of(before), before.get("holds") is True
        print(f"{row.name}: the recorded commit has {figure:.3f} on this machine")
        here = {"figure": figure, "holds": holds, "less_is_better": row.less_is_better}
        said.append(judge(f"  {label}", chosen(row, peers, now), here))
    return all(said)


def slower_here(rows: list[Row], peers: list[roster.Peer], options: Options) -> bool:
    """Whether a row that is worse than its record is so on the same machine too."""
    commits, slower = commits_in(RECORD), False
    for row in rows:
        if row.name not in commits:
            slower = True
            continue
        try:
            python = python_with(commits[row.name], roster.REPOSITORY)
        except build.CannotBuild as problem:
            print(f"{row.name}: cannot be compared with the recorded commit: {problem}")
            slower = True
            continue
        names = [name for name in (row.base, "fastrpc") if name]
        taking_part = [peer for peer in peers if peer.name in names]
        recorded = [roster.peer_of(name, python) for name in names]
        slower |= slower_than_recorded(row, taking_part, recorded, options)
    return slower


def judge(label: str, entry: Result, committed: Result | None) -> str:
    """Print a figure and what is wrong with it, and return that."""
    said = complaint(entry, committed)
    shown = f"{figure_of(entry):.3f}" if "figure" in entry else "-"
    print(f"{label:<13} {shown:>8}  {said or 'ok' + missed(entry)}", flush=True)
    return said


def missed(entry: Result) -> str:
    return f", though the bar is {entry['bar']:g}" if entry.get("holds") is False else ""


def committed_figures(rows: list[Row]) -> dict[str, Result]:
    """What the run of record says of fastrpc, by row."""
    less_is_better = {row.name: row.less_is_better for row in rows}
    with open(RECORD, encoding="utf-8") as file:
        entries = json.load(file)["rows"]
    return {
        entry["row"]: {
            "figure": figure_of(entry),
            "holds": entry.get("holds") is True,
            "less_is_better": less_is_better[entry["row"]],
        }
        for entry in entries
        if entry["peer"] == "fastrpc" and entry["row"] in less_is_better and "figure" in entry
    }


def planted(peer: roster.Peer) -> roster.Peer:
    """The peer with a tool that wastes time, if the guard's own test asks for it."""
    if os.environ.get(PLANT) and peer.name == "fastrpc":
        python = peer.commands[roster.ECHO][0]
        slow = [python, os.path.join(roster.SERVERS, "planted.py"), os.environ[PLANT]]
        peer.commands[roster.ECHO] = slow
        peer.commands |= {roster.shaped(shape): slow for shape in roster.SHAPES}
        if roster.HTTP in peer.commands:
            peer.commands[roster.HTTP] += ["--planted", os.environ[PLANT]]
        for guarded in (roster.GUARDED, roster.GUARDED_RULES):
            if guarded in peer.commands:
                echo, late = os.path.join(roster.SERVERS, "echo.py"), planted_file(slow)
                peer.commands[guarded] = [late if part == echo else part for part in peer.commands[guarded]]
        for asked in (roster.CLIENT, roster.CLIENT_SYNC):
            peer.commands[asked] = [*peer.commands[asked], "--planted", os.environ[PLANT]]
    return peer


def planted_file(slow: list[str]) -> str:
    """A file with the planted tool for `fastrpc serve`, which has arguments of its own."""
    path = os.path.join(roster.WORK, "planted_echo.py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(
            f"import runpy, sys\nsys.argv.append({slow[-1]!r})\napp = runpy.run_path({slow[1]!r})['app']\n"
        )
    return path


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Fail when fastrpc has become slower.")
    parser.add_argument("--only", default="", help="rows, by name")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3)
    parser.add_argument("--python", default=sys.executable, help="what runs fastrpc; W8 needs a wheel's")
    parser.add_argument("--record-only", action="store_true", help="do not build the recorded commits")
    given = parser.parse_args(arguments)
    wanted = given.only.split(",") if given.only else GUARDED
    rows = [row for row in ROWS if row.name in wanted]
    build.build("client")
    build.build("server")
    names = ("c", roster.PLAIN, "fastrpc", "bare", roster.LOAD_CLIENT)
    peers = [planted(roster.peer_of(name, given.python)) for name in names]
    if not all(peer.from_wheel for peer in peers):
        rows = [row for row in rows if row.base != "bare"]
        print("W8 is left out: start-up counts from a wheel only (--python)")
    floor = roster.peer_of("python-loop", given.python)
    if roster.HTTP in floor.commands:
        floor.commands = {roster.HTTP: floor.commands[roster.HTTP]}  # elsewhere nothing is taken to it
        peers.append(floor)
    else:
        rows = [row for row in rows if row.server != roster.HTTP]
        print("W11 is left out: this Python lacks fastrpc's extra http (--python)")
    if not roster.has_guard(given.python):
        guarded = (roster.GUARDED, roster.GUARDED_RULES, roster.PROXY_GUARDED)
        rows = [row for row in rows if row.server not in guarded]
        print("W14-guarded and W15 are left out: this Python lacks fastrpc's extra guard (--python)")
    if (os.cpu_count() or 1) < 2:
        rows = [row for row in rows if row.cores == 1]
    options = Options(given.rounds, given.seconds, starts=5, python=given.python)
    failed = guard(rows, peers, options, committed_figures(rows))
    if not failed or not (given.record_only or slower_here(failed, peers, options)):
        return 0
    print("guard.py: fastrpc has become slower; see above", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())

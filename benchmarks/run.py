"""Measures servers and clients against each other: paired rounds, medians, spreads, ratios; table and JSON.

Peers take turns (A B A B …) so that what the machine does besides hits all of them; a ratio is taken
within a round and never across rounds. One wrong answer voids a run, one void run voids its row.
Takes about a second a run: rows x peers x rounds. Absolute figures hold for the moment and the machine.

    python benchmarks/run.py                                       our own servers, all rows, five rounds
    python benchmarks/run.py --peers all                           and every SDK that is built here
    python benchmarks/run.py --only W1,W2 --peers c,fastrpc --rounds 3 --seconds 0.3

What is measured stands in `workloads/`, who is measured in `roster.py`, how it is summed up in `figures.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import time

import build
import roster
from figures import slim, summary, table
from merging import lost, merged
from roster import Peer
from workloads import ROWS
from workloads.row import Options, Result, Row

LATEST = os.path.join(roster.HERE, "results", "latest.json")
RECORD = os.path.join(roster.HERE, "results", "record.json")
GROUPS = {"own": roster.OWN, "sdks": roster.SDKS, "all": (*roster.OWN, *roster.SDKS)}


def run_rows(rows: list[Row], peers: list[Peer], options: Options) -> list[Result]:
    """Measure all rows in paired rounds and return one entry for each row and peer, in that order."""
    entries: list[Result] = []
    parts = {row.name: [peer for peer in peers if takes_part(peer, row)] for row in rows}
    progress = Progress(options.rounds * sum(map(len, parts.values())))
    for row in rows:
        present = parts[row.name]
        runs: dict[str, list[Result]] = {peer.name: [] for peer in present}
        for number in range(options.rounds):
            for peer in present:
                progress.step(f"{row.name} {peer.name}")
                if is_due(peer, row, number) and not any("void" in run for run in runs[peer.name]):
                    runs[peer.name].append(row.measure(row, peer, options))
        entries += [summary(row, peer, runs) for peer in present]
    progress.end()
    return entries


def takes_part(peer: Peer, row: Row) -> bool:
    """Whether a row is of this peer; SDKs, and what stands only beside them, have rows of their own."""
    beside_sdks = peer.name == roster.ASYNC or peer.name in roster.SDKS
    return row.server in peer.commands and (row.with_sdks or not beside_sdks)


def is_due(peer: Peer, row: Row, number: int) -> bool:
    """Whether a peer runs in the round of this number, from 0."""
    rounds = row.sdk_rounds if peer.name in roster.SDKS else None
    return not peer.missing and (rounds is None or number < rounds)


class Progress:
    """One line on a terminal's stderr, nothing elsewhere."""

    def __init__(self, steps: int) -> None:
        self.steps = steps
        self.done = 0
        self.shown = sys.stderr.isatty()

    def step(self, what: str) -> None:
        if self.shown:
            filled = 30 * self.done // max(self.steps, 1)
            bar = "#" * filled + "." * (30 - filled)
            print(f"\r[{bar}] {self.done}/{self.steps} {what:<24}", end="", file=sys.stderr, flush=True)
        self.done += 1

    def end(self) -> None:
        if self.shown:
            print("\r" + " " * 78 + "\r", end="", file=sys.stderr, flush=True)


# ----------------------------------------------------------------------------------------- report


def machine() -> Result:
    """What the figures depend on, without the machine's name."""
    processor = platform.processor() or platform.machine()
    if os.path.exists("/proc/cpuinfo"):
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            for line in file:
                if line.startswith("model name"):
                    processor = line.partition(":")[2].strip()
                    break
    return {
        "processor": processor,
        "cpus": os.cpu_count(),
        "system": platform.platform(),
        "load_before": os.getloadavg()[0],
    }


def output_of(*command: str) -> str:
    """The first line that a command prints; the empty string when it cannot be had."""
    try:
        done = subprocess.run(command, cwd=roster.REPOSITORY, capture_output=True, text=True, timeout=30)
    except OSError:
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""


def write(path: str, document: Result) -> None:
    """One line an entry, so that two files can be compared."""
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    head = json.dumps({name: value for name, value in document.items() if name != "rows"}, indent=1)
    rows = ",\n  ".join(json.dumps(entry) for entry in document["rows"])
    with open(path, "w", encoding="utf-8") as file:
        file.write(head.removesuffix("\n}") + f',\n "rows": [\n  {rows}\n ]\n}}\n')


def keep(document: Result, path: str) -> None:
    """Put what was measured into the run of record."""
    if os.path.exists(path):
        with open(path, encoding="utf-8") as file:
            record: Result = json.load(file)
        for sentence in lost(record, document):
            print(f"run.py: {sentence}", file=sys.stderr)
        document = merged(record, document, {row.name: row for row in ROWS})
    write(path, document)


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    workloads = list(dict.fromkeys(row.workload for row in ROWS))
    parser = argparse.ArgumentParser(description="Measure fastrpc against other servers, in paired rounds.")
    parser.add_argument("--only", default=",".join(workloads), help=f"workloads, of {','.join(workloads)}")
    parser.add_argument("--rows", default="", help="single rows of all workloads instead: W1,W12-context")
    parser.add_argument(
        "--peers", default="own", help=f"of {','.join([*GROUPS['all'], *GROUPS])}; default: own"
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="measured time of one run")
    parser.add_argument("--starts", type=int, default=10, help="how often a run of W8 starts a server")
    parser.add_argument("--python", default=sys.executable, help="what runs fastrpc and python-loop")
    parser.add_argument("--output", default=LATEST, help="where the JSON goes")
    parser.add_argument(
        "--record",
        action="store_true",
        help="also put these rows into results/record.json, without the single runs: what is committed and "
        "reported; rows that were not measured stay there with the run that they are of",
    )
    parser.add_argument("--record-file", default=RECORD, help="another file for --record")
    options = parser.parse_args(arguments)
    options.only = chosen(parser, "--only", options.only, dict.fromkeys(workloads))
    options.rows = chosen(parser, "--rows", options.rows, dict.fromkeys(row.name for row in ROWS))
    names = chosen(parser, "--peers", options.peers, dict.fromkeys([*GROUPS["all"], *GROUPS]))
    options.peers = list(dict.fromkeys(peer for name in names for peer in GROUPS.get(name, (name,))))
    if options.rounds < 1 or options.starts < 1 or options.seconds <= 0:
        parser.error("--rounds, --starts and --seconds: expected more than 0")
    return options


def chosen(parser: argparse.ArgumentParser, option: str, given: str, known: dict[str, None]) -> list[str]:
    """The words of a list; unknown ones end the program."""
    words = [word for word in given.split(",") if word]
    if unknown := [word for word in words if word not in known]:
        parser.error(f"{option}: {', '.join(unknown)}: expected some of {', '.join(known)}")
    return words


def without_http(peers: list[Peer], rows: list[Row]) -> None:
    """Say so where fastrpc cannot be measured over HTTP."""
    lacking = any(peer.name == "fastrpc" and roster.HTTP not in peer.commands for peer in peers)
    if lacking and any(row.server == roster.HTTP for row in rows):
        print("W11 is without fastrpc: this Python lacks its extra http (--python)", file=sys.stderr)


def main(arguments: list[str] | None = None) -> int:
    given = options_of(arguments)
    try:
        build.build("client")
        build.build("server")
    except (build.CannotBuild, build.DoesNotCompile) as problem:
        print(f"run.py: {problem}", file=sys.stderr)
        return 1
    rows = [row for row in ROWS if (row.name in given.rows if given.rows else row.workload in given.only)]
    if (os.cpu_count() or 1) < 2:
        rows = [row for row in rows if row.cores == 1]
    # What ratios are taken to runs with the rest, asked for or not.
    names = set(given.peers) | {row.base for row in rows if row.base}
    peers = [roster.peer_of(name, given.python) for name in GROUPS["all"] if name in names]
    without_http(peers, rows)
    options = Options(given.rounds, given.seconds, given.starts, given.python)
    begun = time.time()
    document: Result = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun)),
        "commit": output_of("git", "rev-parse", "HEAD"),
        "changed_files": bool(output_of("git", "status", "--porcelain", ":!benchmarks/results")),
        "machine": machine(),
        "versions": {
            "python": output_of(given.python, "-c", "import sys; print(sys.version)"),
            "compiler": output_of(build.compiler(), "--version"),
            "yyjson": build.YYJSON,
            **{peer.name: peer.facts for peer in peers if peer.facts},
        },
        "options": {"rounds": options.rounds, "seconds": options.seconds, "starts": options.starts},
    }
    entries = run_rows(rows, peers, options)
    document["rows"] = entries
    document["took_seconds"] = round(time.time() - begun, 1)
    write(given.output, document)
    if given.record:
        keep({**document, "rows": [slim(entry) for entry in entries]}, given.record_file)
    print(table(rows, entries))
    rounds = "one round" if options.rounds == 1 else f"{options.rounds} rounds"
    print(f"\nratios are taken round by round; {rounds}; {os.path.relpath(given.output)}")
    return 1 if any("void" in entry for entry in entries) else 0


if __name__ == "__main__":
    sys.exit(main())

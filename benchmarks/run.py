"""Measures servers against each other: paired rounds, medians, spreads, ratios; a table and a JSON file.

Peers take turns (A B A B …) so that what the machine does besides hits all of them; a ratio is taken
within a round and never across rounds. One wrong answer voids a run, one void run voids its row.
Takes about a second a run: rows x peers x rounds. Absolute figures hold for the moment and the machine.

    python benchmarks/run.py                                       everything, five rounds
    python benchmarks/run.py --only W1,W2 --peers c,fastrpc --rounds 3 --seconds 0.3
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import build

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(HERE)
SERVERS = os.path.join(HERE, "servers")
LATEST = os.path.join(HERE, "results", "latest.json")
RUN_LIMIT_SECONDS = 180
TOOLS = 13

Result = dict[str, Any]


@dataclass(frozen=True)
class Row:
    """One line of the table for each peer: how the client is called and which of its figures decides."""

    name: str
    title: str
    client: tuple[str, ...]
    figure: str  # a field of the client's report
    unit: str
    bar: float | None  # for fastrpc: at most this ratio where less is better, at least this where more is
    base: str = "c"  # the peer that ratios are taken to
    cores: int = 1

    @property
    def workload(self) -> str:
        return self.name.partition("-")[0]

    @property
    def less_is_better(self) -> bool:
        return self.unit != "calls/s"

    @property
    def needs_thirteen(self) -> bool:
        return self.workload == "W3"


ONE_ECHO = ("--workload", "echo", "--window", "1")
ONE_LIST = ("--workload", "list", "--window", "1", "--tools", str(TOOLS))
MANY_ECHOES = ("--workload", "echo", "--window", "256")
MANY_LISTS = ("--workload", "list", "--window", "256", "--tools", str(TOOLS))
ROWS = (
    Row("W1", "echo, one at a time, one core", ONE_ECHO, "p50", "us", 1.15),
    Row("W1-two", "echo, one at a time, two cores", ONE_ECHO, "p50", "us", None, cores=2),
    Row("W2", "echo, 256 in flight", MANY_ECHOES, "calls_per_second", "calls/s", 0.85),
    Row("W3", "tools/list, one at a time", ONE_LIST, "calls_per_second", "calls/s", 1.0),
    Row("W3-256", "tools/list, 256 in flight", MANY_LISTS, "calls_per_second", "calls/s", 1.0),
    Row("W8", "spawn to the answer of initialize", ("--workload", "start"), "p50", "ms", 2.0, base="bare"),
)
PEERS = ("c", "c-ready", "fastrpc", "python-loop", "bare")


# ------------------------------------------------------------------------------------------- peers


@dataclass
class Peer:
    """A server to measure, or the reason why there is none."""

    name: str
    missing: str = ""
    python: str = sys.executable
    environment: dict[str, str] | None = None
    from_wheel: bool = True

    def command(self, row: Row) -> list[str]:
        if self.name == "c":
            return [build.build("server", offline=True)]
        if self.name == "c-ready":
            return [build.build("server", offline=True), "--ready-list"]
        if self.name == "bare":
            return [self.python, "-c", "pass"]
        if self.name == "python-loop":
            return [self.python, os.path.join(SERVERS, "python_loop.py")]
        return [self.python, os.path.join(SERVERS, "thirteen.py" if row.needs_thirteen else "echo.py")]

    def takes_part(self, row: Row) -> bool:
        if self.name == "c-ready":
            return row.needs_thirteen
        if self.name == "bare":
            return row.base == "bare"
        return True


def fastrpc_peer(python: str) -> tuple[Peer, Result]:
    """Return fastrpc as `python` imports it, from this repository where it is not installed."""
    question = "import fastrpc, os, sys; print(os.path.dirname(fastrpc.__file__), fastrpc.__version__)"
    problem = ""
    for path in (None, REPOSITORY):
        environment = dict(os.environ) if path is None else {**os.environ, "PYTHONPATH": path}
        asked = subprocess.run(
            [python, "-c", question], cwd=os.sep, env=environment, capture_output=True, text=True, timeout=60
        )
        if asked.returncode == 0:
            folder, _, version = asked.stdout.strip().rpartition(" ")
            source = "installed" if path is None else "repository, through PYTHONPATH"
            if path is None and folder.startswith(REPOSITORY) and "site-packages" not in folder:
                source = "editable install"
            peer = Peer("fastrpc", "", python, environment, from_wheel=source == "installed")
            return peer, {"version": version, "source": source}
        problem = (asked.stderr.strip().splitlines() or ["no answer"])[-1]
    return Peer("fastrpc", f"not built: {problem}", python), {}


def descriptors_differ(peer: Peer, row: Row) -> str:
    """Say how the tools that a peer lists differ from descriptors.json; the empty string when they do not."""
    requests = (
        b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
        b'"capabilities":{},"clientInfo":{"name":"run","version":"1"}}}\n'
        b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n'
        b'{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{}}\n'
    )
    done = subprocess.run(
        peer.command(row), input=requests, env=peer.environment, capture_output=True, timeout=60
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    results = [answer["result"] for answer in answers if answer.get("id") == 2 and "result" in answer]
    if not results:
        return "no answer to tools/list"
    with open(os.path.join(SERVERS, "descriptors.json"), encoding="utf-8") as file:
        wanted = {tool["name"]: essence(tool) for tool in json.load(file)}
    found = {tool["name"]: essence(tool) for tool in results[0]["tools"]}
    wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
    return f"other descriptors than descriptors.json: {', '.join(wrong)}" if wrong else ""


def essence(tool: Result) -> Result:
    """What every peer's descriptor must hold; defaults, titles and annotations are a peer's own matter."""
    schema = tool["inputSchema"]
    properties = schema.get("properties", {}).items()
    return {
        "description": tool.get("description"),
        "properties": {name: (each.get("type"), each.get("description")) for name, each in properties},
        "required": sorted(schema.get("required", [])),
    }


# ------------------------------------------------------------------------------------------- runs


def pinning(cores: int) -> list[str]:
    """The options that pin client and server: to one core, or to one each."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    usable = sorted(os.sched_getaffinity(0))
    return ["--client-cpu", str(usable[-1]), "--server-cpu", str(usable[-cores])]


def measure(row: Row, peer: Peer, seconds: float, starts: int) -> Result:
    """Run the client once. What it cannot measure comes back as {"void": reason}."""
    client = [build.build("client", offline=True), *row.client, *pinning(row.cores)]
    if row.client[1] == "start":
        client += ["--starts", str(starts)]
        if peer.name == "bare":
            client[client.index("start")] = "bare"
    else:
        client += ["--seconds", str(seconds)]
    try:
        done = subprocess.run(
            [*client, "--", *peer.command(row)],
            env=peer.environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=RUN_LIMIT_SECONDS,
        )
    except subprocess.TimeoutExpired:
        return {"void": f"not done after {RUN_LIMIT_SECONDS} s"}
    try:
        report: Result = json.loads(done.stdout)
    except ValueError:
        said = (done.stderr.strip().splitlines() or ["nothing"])[-1]
        return {"void": f"the client ended with {done.returncode} and said: {said}"}
    if "void" in report and done.stderr.strip():
        report["stderr"] = done.stderr[-2000:]
    elif report.get("exit_code"):
        report["void"] = f"the server's exit code was {report['exit_code']}"
    return report


def run_rows(rows: list[Row], peers: list[Peer], rounds: int, seconds: float, starts: int) -> list[Result]:
    """Measure all rows in paired rounds and return one entry for each row and peer, in that order."""
    entries: list[Result] = []
    progress = Progress(sum(rounds for row in rows for peer in peers if peer.takes_part(row)))
    for row in rows:
        present = [peer for peer in peers if peer.takes_part(row)]
        runs: dict[str, list[Result]] = {peer.name: [] for peer in present}
        for peer in present:
            if not peer.missing and row.needs_thirteen and (difference := descriptors_differ(peer, row)):
                runs[peer.name].append({"void": difference})
        for _ in range(rounds):
            for peer in present:
                progress.step(f"{row.name} {peer.name}")
                if not peer.missing and not any("void" in run for run in runs[peer.name]):
                    runs[peer.name].append(measure(row, peer, seconds, starts))
        entries += [summary(row, peer, runs[peer.name], runs.get(row.base, [])) for peer in present]
    progress.end()
    return entries


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


# ---------------------------------------------------------------------------------------- figures


def spread(values: list[float]) -> Result:
    return {"median": statistics.median(values), "least": min(values), "most": max(values)}


def summary(row: Row, peer: Peer, runs: list[Result], base_runs: list[Result]) -> Result:
    """One peer's line: medians of its rounds, and the ratio to the base, taken round by round."""
    entry: Result = {"row": row.name, "title": row.title, "peer": peer.name, "unit": row.unit, "runs": runs}
    if peer.missing:
        return {**entry, "missing": peer.missing}
    if void := next((run["void"] for run in runs if "void" in run), ""):
        return {**entry, "void": void}
    entry["figure"] = spread([run[row.figure] for run in runs])
    for name in ("p50", "p99", "p99_9", "server_cpu_us_per_call", "peak_rss_kb", "list_mean", "answer_bytes"):
        if all(name in run for run in runs):
            entry[name] = statistics.median(run[name] for run in runs)
    if base_runs and not any("void" in run for run in base_runs) and peer.name != row.base:
        pairs = zip(runs, base_runs, strict=True)
        entry["ratio"] = spread([run[row.figure] / base[row.figure] for run, base in pairs])
        entry["ratio"]["to"] = row.base
        if row.base == "bare" and not peer.from_wheel:
            # An editable install's import hook slows the bare Python too, and so flatters the ratio.
            entry["no_verdict"] = "start-up counts from a wheel only: --python"
        elif peer.name == "fastrpc" and row.bar is not None:
            ratio = entry["ratio"]["median"]
            entry["bar"], entry["at_most"] = row.bar, row.less_is_better
            entry["holds"] = ratio <= row.bar if row.less_is_better else ratio >= row.bar
    return entry


def number(value: float) -> str:
    """Three significant digits, or all of them before the point."""
    if value >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table(entries: list[Result]) -> str:
    """The rows as text: one block a workload."""
    figures = ("median", "least", "most", "p50", "p99", "p99.9", "CPU us", "MB", "ratio", "least", "most")
    lines: list[str] = []
    shown = ""
    for entry in entries:
        if entry["row"] != shown:
            shown = entry["row"]
            lines += ["", f"{shown}: {entry['title']} ({entry['unit']})"]
            lines.append(f"  {'peer':<12}" + "".join(f"{name:>11}" for name in figures) + "  bar")
        if "figure" not in entry:
            reason = f"void: {entry['void']}" if "void" in entry else entry["missing"]
            lines.append(f"  {entry['peer']:<12} {reason}")
            continue
        figure, ratio = entry["figure"], entry.get("ratio")
        cells = [number(figure[key]) for key in ("median", "least", "most")]
        cells += [number(entry[key]) for key in ("p50", "p99", "p99_9")]
        cells.append(number(entry["server_cpu_us_per_call"]) if "server_cpu_us_per_call" in entry else "")
        cells.append(number(entry["peak_rss_kb"] / 1024))
        cells += [f"{ratio[key]:.3f}" for key in ("median", "least", "most")] if ratio else ["", "", ""]
        verdict = f"  {entry['no_verdict']}" if "no_verdict" in entry else ""
        if "bar" in entry:
            sign = "<=" if entry["at_most"] else ">="
            verdict = f"  {sign} {entry['bar']} {'holds' if entry['holds'] else 'MISSED'}"
        lines.append((f"  {entry['peer']:<12}" + "".join(f"{cell:>11}" for cell in cells) + verdict).rstrip())
    return "\n".join(lines[1:])


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
        done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=30)
    except OSError:
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""


def options_of(arguments: list[str] | None) -> argparse.Namespace:
    workloads = list(dict.fromkeys(row.workload for row in ROWS))
    parser = argparse.ArgumentParser(description="Measure fastrpc against other servers, in paired rounds.")
    parser.add_argument("--only", default=",".join(workloads), help=f"workloads, of {','.join(workloads)}")
    parser.add_argument("--peers", default=",".join(PEERS), help=f"servers, of {','.join(PEERS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="measured time of one run")
    parser.add_argument("--starts", type=int, default=10, help="how often a run of W8 starts a server")
    parser.add_argument("--python", default=sys.executable, help="what runs fastrpc and python-loop")
    parser.add_argument("--output", default=LATEST, help="where the JSON goes")
    options = parser.parse_args(arguments)
    for name, known in (("only", workloads), ("peers", list(PEERS))):
        chosen = [word for word in getattr(options, name).split(",") if word]
        if unknown := [word for word in chosen if word not in known]:
            parser.error(f"--{name}: {', '.join(unknown)}: expected some of {', '.join(known)}")
        setattr(options, name, chosen)
    if options.rounds < 1 or options.starts < 1 or options.seconds <= 0:
        parser.error("--rounds, --starts and --seconds: expected more than 0")
    return options


def main(arguments: list[str] | None = None) -> int:
    options = options_of(arguments)
    try:
        build.build("client")
        build.build("server")
    except (build.CannotBuild, build.DoesNotCompile) as problem:
        print(f"run.py: {problem}", file=sys.stderr)
        return 1
    fastrpc, fastrpc_facts = fastrpc_peer(options.python)
    rows = [row for row in ROWS if row.workload in options.only]
    if (os.cpu_count() or 1) < 2:
        rows = [row for row in rows if row.cores == 1]
    # What ratios are taken to runs with the rest, asked for or not.
    names = set(options.peers) | {row.base for row in rows}
    own = {"fastrpc": fastrpc}
    peers = [own.get(name) or Peer(name, python=options.python) for name in PEERS if name in names]
    begun = time.time()
    document: Result = {
        "created": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(begun)),
        "commit": output_of("git", "rev-parse", "HEAD"),
        "changed_files": bool(output_of("git", "status", "--porcelain")),
        "machine": machine(),
        "versions": {
            "python": output_of(options.python, "-c", "import sys; print(sys.version)"),
            "compiler": output_of(build.compiler(), "--version"),
            "yyjson": build.YYJSON,
            "fastrpc": fastrpc_facts,
        },
        "options": {"rounds": options.rounds, "seconds": options.seconds, "starts": options.starts},
    }
    entries = run_rows(rows, peers, options.rounds, options.seconds, options.starts)
    document["rows"] = entries
    document["took_seconds"] = round(time.time() - begun, 1)
    os.makedirs(os.path.dirname(os.path.abspath(options.output)), exist_ok=True)
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(document, file, indent=1)
        file.write("\n")
    print(table(entries))
    print(f"\nratios are taken round by round; {options.rounds} rounds; {os.path.relpath(options.output)}")
    return 1 if any("void" in entry for entry in entries) else 0


if __name__ == "__main__":
    sys.exit(main())

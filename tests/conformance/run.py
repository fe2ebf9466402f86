"""Runs the protocol's official conformance suite against the fixture server, over HTTP.

    python tests/conformance/run.py            everything (`make conformance`)
    python tests/conformance/run.py --record   and write what came of it down for docs/conformance.md

A run is one call of the suite against a server process of its own, on a port that the system chooses. Both
requirement sets and the four dated suites go to `fastrpc serve --http`, the requirement sets again to two
workers and to the plain ASGI application under stock uvicorn. There is no list of expected failures. A run
fails if a scenario that counts fails, warns, shows nothing or is not run at all, and if its server does not
end well or has written a traceback. In the requirement sets, what the suite does not score (extensions, what
is pending, what was added after a release) is shown and fails nothing; a dated suite counts what is pending.

Needs npm: the suite and the Node that it needs come from the lock file beside this, once, into a cache
folder. Takes about half a minute then. Everything is written to that folder.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from support.http_server import HttpProcess  # noqa: E402

REPOSITORY = os.path.dirname(os.path.dirname(HERE))
FIXTURE = os.path.join(HERE, "server.py")
CACHE = os.path.join(REPOSITORY, ".cache")
RECORD = os.path.join(REPOSITORY, "docs", "conformance-results.md")
SUITE = "@modelcontextprotocol/conformance"

INSTALL_SECONDS = 300
STOP_SECONDS = 15
RUN_SECONDS = 120
SCENARIO_MS = 15_000

SERVERS = {
    "fastrpc serve": [
        *("-m", "fastrpc", "serve", "--http", "127.0.0.1:0", "--no-auth", "--log-level", "warning"),
        FIXTURE,
    ],
    "two workers": [
        *("-m", "fastrpc", "serve", "--http", "127.0.0.1:0", "--no-auth", "--workers", "2"),
        FIXTURE,
    ],
    "plain ASGI": [os.path.abspath(__file__), "--plain-asgi"],
}
PLAIN_ENDS = (0, -signal.SIGTERM)
"""Stock uvicorn stops in order, and then sends itself the signal again that it was stopped by."""


class Broken(Exception):
    """What keeps a run from being one: no npm, a server that does not start, a suite that does not end."""


@dataclass
class Run:
    server: str
    kind: str
    """`requirements` or `suite`."""
    version: str
    may_warn: bool = False
    """With several workers, a tool that changes the lists changes those of its own worker (a SHOULD)."""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.version}, {self.server}"

    @property
    def selection(self) -> list[str]:
        if self.kind == "requirements":
            return ["--requirements", self.version]
        return ["--suite", "all", "--spec-version", self.version]


RUNS = [
    *(Run("fastrpc serve", "requirements", version) for version in ("2025-11-25", "2026-07-28")),
    *(
        Run("fastrpc serve", "suite", version)
        for version in ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
    ),
    *(
        Run(server, "requirements", version, may_warn=server == "two workers")
        for server in ("two workers", "plain ASGI")
        for version in ("2025-11-25", "2026-07-28")
    ),
]


@dataclass
class Scenario:
    name: str
    kind: str = ""
    """Why it does not count: extension, pending or added-after-release; empty if it does."""
    passed: int = 0
    warned: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    was_run: bool = False
    may_warn: bool = False

    @property
    def is_well(self) -> bool:
        return self.was_run and self.passed > 0 and not self.failed and (self.may_warn or not self.warned)

    def complaints(self) -> list[str]:
        """Say what is wrong."""
        if not self.was_run:
            return ["was not run"]
        found = [*self.failed, *(f"warning: {warning}" for warning in self.warned)]
        return found if found or self.passed else ["no check was made"]


@dataclass
class Outcome:
    run: Run
    scenarios: list[Scenario]
    faults: list[str]
    """What is wrong besides the scenarios: with the server's end, or with the suite itself."""
    seconds: float = 0.0

    @property
    def counting(self) -> list[Scenario]:
        return [scenario for scenario in self.scenarios if not scenario.kind]

    @property
    def unscored(self) -> list[Scenario]:
        return [scenario for scenario in self.scenarios if scenario.kind]

    @property
    def is_well(self) -> bool:
        return bool(self.counting) and not self.faults and all(one.is_well for one in self.counting)


# ------------------------------------------------------------------------------------------ the suite


class Suite:
    """The suite, as it was installed into the cache folder."""

    def __init__(self) -> None:
        lock = os.path.join(HERE, "package-lock.json")
        with open(lock, "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()[:12]
        self.folder = os.path.join(CACHE, f"conformance-{digest}")
        modules = os.path.join(self.folder, "node_modules")
        self.node = os.path.join(modules, ".bin", "node")
        self.program = os.path.join(modules, *SUITE.split("/"), "dist", "index.js")
        with open(lock, encoding="utf-8") as file:
            self.version = json.load(file)["packages"][f"node_modules/{SUITE}"]["version"]

    def install(self) -> None:
        """Install what the lock file names, unless that has been done."""
        if os.path.exists(os.path.join(self.folder, "installed")):
            return
        npm = shutil.which("npm")
        if npm is None:
            raise Broken("npm is not installed; it comes with Node")
        os.makedirs(self.folder, exist_ok=True)
        for name in ("package.json", "package-lock.json"):
            shutil.copy(os.path.join(HERE, name), self.folder)
        # Node comes as a locked package of its own: no script of any package has to run.
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        done = finished(command, INSTALL_SECONDS, cwd=self.folder)
        if done.returncode != 0 or not os.path.exists(self.node):
            raise Broken(f"npm could not install the suite:\n{done.stdout}{done.stderr}")
        with open(os.path.join(self.folder, "installed"), "w", encoding="utf-8") as file:
            file.write(self.version + "\n")

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return finished([self.node, self.program, *arguments], RUN_SECONDS, cwd=self.folder)

    def scenarios(self, run: Run) -> dict[str, Scenario]:
        """Return the scenarios for servers that belong to a run, in their order."""
        selection = [part for part in run.selection if part not in ("--suite", "all")]
        done = self.call("list", "--server", *selection)
        scenarios: dict[str, Scenario] = {}
        section = ""
        for line in done.stdout.splitlines():
            entry = re.match(r"\s+- (\S+)(?: \[([^\]]+)\])?$", line)
            if entry is None:
                section = line.strip() or section
                continue
            name, mark = entry.groups()
            if section.startswith("Server scenarios"):
                scenarios[name] = Scenario(name)
            elif section.startswith(("extension", "pending", "added-after-release")) and mark == "server":
                scenarios[name] = Scenario(name, section.split()[0])
        if done.returncode != 0 or not scenarios:
            raise Broken(f"the suite does not list its scenarios:\n{done.stdout}{done.stderr}")
        return scenarios


def finished(command: list[str], seconds: float, cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end. Raises Broken if that takes too long."""
    try:
        return subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise Broken(f"{' '.join(command[:3])} … took over {seconds:.0f} s") from error


# ----------------------------------------------------------------------------------------- the server


class Fixture(HttpProcess):
    """The fixture server in a process of its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        environment = {key: value for key, value in os.environ.items() if not key.startswith("FASTRPC_")}
        environment["PYTHONPATH"] = REPOSITORY
        super().__init__(command=(sys.executable, *SERVERS[name]), environment=environment)
        # By name: what the suite tests of DNS rebinding is for `localhost`.
        self.url = f"http://localhost:{self.port}/mcp"

    def faults_at_end(self) -> list[str]:
        """Ask it to end; return what is wrong with how it did."""
        try:
            code = self.stop(seconds=STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.close()
            return [f"the server did not end within {STOP_SECONDS} s"]
        said = self.stdout + self.stderr
        orderly = PLAIN_ENDS if self._name == "plain ASGI" else (0,)
        faults = [] if code in orderly else [f"the server ended with {code}:\n{said[-2000:]}"]
        if "Traceback" in said:
            faults.append(f"the server has written a traceback:\n{said[-4000:]}")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
            faults.append("the server has left processes behind")
        return faults


@contextlib.contextmanager
def fixture(name: str) -> Iterator[Fixture]:
    try:
        server = Fixture(name)
    except AssertionError as error:
        raise Broken(f"the server did not start: {error}") from None
    with server:
        yield server


def serve_plain_asgi() -> None:
    """Serve the fixture under uvicorn as anybody would: none of our connection class, nor of our loop."""
    import importlib.util

    import uvicorn

    found = importlib.util.spec_from_file_location("conformance_fixture", FIXTURE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.modules[found.name] = module
    found.loader.exec_module(module)
    listening = socket.create_server(("127.0.0.1", 0))
    sys.stderr.write(f"serving at http://127.0.0.1:{listening.getsockname()[1]}\n")
    sys.stderr.flush()
    config = uvicorn.Config(
        module.app.asgi(auth=None), http="h11", loop="asyncio", log_level="error", timeout_graceful_shutdown=2
    )
    uvicorn.Server(config).run(sockets=[listening])


# --------------------------------------------------------------------------------------------- a run


def outcome_of(run: Run, suite: Suite) -> Outcome:
    """Run the suite once."""
    scenarios = suite.scenarios(run)
    results = os.path.join(suite.folder, "results", re.sub(r"[^\w.-]+", "-", run.name))
    shutil.rmtree(results, ignore_errors=True)
    began = time.monotonic()
    with fixture(run.server) as server:
        selection = [*run.selection, "--timeout", str(SCENARIO_MS), "-o", results]
        done = suite.call("server", "--url", server.url, *selection)
        seconds = time.monotonic() - began
        faults = server.faults_at_end()
    with open(os.path.join(results, "output.txt"), "w", encoding="utf-8") as file:
        file.write(done.stdout + done.stderr)
    for folder in sorted(os.listdir(results)):
        name = re.match(r"server-(.+?)-\d{4}-\d\d-\d\dT[\d-]+Z$", folder)
        if name is None:
            continue
        scenario = scenarios.setdefault(name[1], Scenario(name[1]))
        scenario.was_run = True
        with open(os.path.join(results, folder, "checks.json"), encoding="utf-8") as file:
            count(scenario, json.load(file))
        scenario.may_warn = run.may_warn
    if done.returncode != 0 and all(one.is_well for one in scenarios.values()):
        faults.append(f"the suite ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return Outcome(run, list(scenarios.values()), faults, seconds)


def count(scenario: Scenario, checks: list[dict[str, Any]]) -> None:
    for check in checks:
        status = check["status"]
        if status == "SUCCESS":
            scenario.passed += 1
        elif status in ("FAILURE", "WARNING"):
            why = check.get("errorMessage") or check.get("description") or ""
            (scenario.failed if status == "FAILURE" else scenario.warned).append(f"{check['id']}: {why}")


# ---------------------------------------------------------------------------------------- what is shown

HEAD = ("run", "scenarios", "checks", "failing", "not scored", "")


def row_of(outcome: Outcome) -> tuple[str, ...]:
    well = [scenario for scenario in outcome.counting if scenario.is_well]
    passed = sum(scenario.passed for scenario in outcome.counting)
    failing = sum(max(len(one.failed) + len(one.warned), not one.is_well) for one in outcome.counting)
    others = [scenario for scenario in outcome.unscored if scenario.is_well]
    return (
        outcome.run.name,
        f"{len(well)} of {len(outcome.counting)}",
        f"{passed} of {passed + failing}",
        str(len(outcome.counting) - len(well)),
        f"{len(others)} of {len(outcome.unscored)}" if outcome.unscored else "",
        "passed" if outcome.is_well else "FAILED",
    )


def table(outcomes: list[Outcome]) -> str:
    rows = [HEAD, *map(row_of, outcomes)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEAD))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    ]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def details(outcome: Outcome) -> Iterator[str]:
    """Say what is wrong in a run, and what is not scored."""
    yield from outcome.faults
    for scenario in outcome.counting:
        if not scenario.is_well:
            yield f"FAILED {scenario.name}"
            yield from (f"    {complaint}" for complaint in scenario.complaints())
        elif scenario.warned:
            yield from (f"{scenario.name}: {complaint}" for complaint in scenario.complaints())
    for kind in sorted({scenario.kind for scenario in outcome.unscored}):
        same = [scenario for scenario in outcome.unscored if scenario.kind == kind]
        well = [scenario.name for scenario in same if scenario.is_well]
        rest = [scenario.name for scenario in same if not scenario.is_well]
        if well:
            yield f"not scored ({kind}), passing: {', '.join(well)}"
        if rest:
            yield f"not scored ({kind}), not passing: {', '.join(rest)}"


def write_results(outcomes: list[Outcome], suite: Suite) -> str:
    """Write all of it as JSON into the cache folder; return the path."""
    path = os.path.join(suite.folder, "results.json")
    found = {
        "suite": suite.version,
        "runs": [
            {
                "run": outcome.run.name,
                "passed": outcome.is_well,
                "faults": outcome.faults,
                "scenarios": [vars(scenario) for scenario in outcome.scenarios],
            }
            for outcome in outcomes
        ],
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(found, file, indent=1)
    return path


def write_record(outcomes: list[Outcome], suite: Suite) -> None:
    """Write the tables that docs/conformance.md points at."""
    lines = [
        "<!-- Written by `python tests/conformance/run.py --record`: not to be edited. -->",
        "# Conformance: the results",
        "",
        f"{SUITE} {suite.version}, no expected failures.",
        "",
        "| run | scenarios passed | checks passed | not scored, passed | |",
        "|---|---|---|---|---|",
    ]
    for row in map(row_of, outcomes):
        lines.append(f"| {row[0]} | {row[1]} | {row[2]} | {row[4] or '-'} | {row[5]} |")
    lines += ["", "What is run, shown and not scored:", "", "| run | scenario | why not scored | checks | |"]
    lines.append("|---|---|---|---|---|")
    for outcome in outcomes:
        for one in outcome.unscored if outcome.run.server == "fastrpc serve" else ():
            checks = f"{one.passed} of {one.passed + len(one.failed) + len(one.warned)}"
            state = "passed" if one.is_well else "not passing"
            lines.append(f"| {outcome.run.version} | {one.name} | {one.kind} | {checks} | {state} |")
    with open(RECORD, "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", metavar="TEXT", default="", help="the runs in whose name this stands")
    parser.add_argument("--record", action="store_true", help="write docs/conformance-results.md")
    parser.add_argument("--plain-asgi", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain_asgi:
        serve_plain_asgi()
        return 0
    runs = [run for run in RUNS if options.only in run.name]
    if not runs or (options.record and len(runs) != len(RUNS)):
        parser.error("--only names no run" if not runs else "--record is for all runs")
    outcomes = []
    try:
        suite = Suite()
        suite.install()
        print(f"{SUITE} {suite.version}, {len(runs)} runs, no expected failures")
        for run in runs:
            outcome = outcome_of(run, suite)
            outcomes.append(outcome)
            print(f"\n{run.name}: {'passed' if outcome.is_well else 'FAILED'} in {outcome.seconds:.1f} s")
            for line in details(outcome):
                print(f"  {line}", flush=True)
    except Broken as broken:
        print(f"conformance: {broken}", file=sys.stderr)
        return 1
    print(f"\n{table(outcomes)}\n\neach check: {os.path.relpath(write_results(outcomes, suite))}")
    if options.record:
        write_record(outcomes, suite)
    return 0 if all(outcome.is_well for outcome in outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())

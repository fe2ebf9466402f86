"""Runs the protocol's official conformance suite over HTTP: its clients against a server of ours, a client of
ours against its servers.

    python tests/conformance/run.py            everything (`make conformance`)
    python tests/conformance/run.py --record   and write the result of it down for docs/conformance.md

A run of a server is one call of the suite against a separate server process, on a port that the system
chooses. Both requirement sets and the four dated suites go to `fastrpc serve --http`, the requirement sets
again to two workers and to the plain ASGI application under stock uvicorn. The runs of clients are those of
`client_runs`. There is no list of expected failures. A run fails if a scenario that counts fails, warns,
shows nothing or is not run at all, and if its server or client does not end well or has written a traceback.
In the requirement sets, what the suite does not score (what is pending, what was added after a release) is
shown and fails nothing, but for the extension for tasks, which counts; a dated suite counts what is pending.

Needs npm: see `suite`. Takes about three minutes then. Everything is written to the cache folder.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))

from conformance import client_runs  # noqa: E402
from conformance.suite import REPOSITORY, SUITE, Broken, Outcome, Run, Scenario, Suite, count  # noqa: E402
from support.http_server import HttpProcess  # noqa: E402

FIXTURE = os.path.join(HERE, "server.py")
RECORD = os.path.join(REPOSITORY, "docs", "conformance-results.md")

STOP_SECONDS = 60
SCENARIO_MS = 60_000

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
    *client_runs.RUNS,
]


# ----------------------------------------------------------------------------------------- the server


class Fixture(HttpProcess):
    """The fixture server in a separate process."""

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
    """Run the suite once against a server."""
    scenarios = suite.scenarios(run)
    results = suite.results_of(run)
    began = time.monotonic()
    with fixture(run.party) as server:
        all_of_it = ["--suite", "all"] if run.kind == "suite" else []
        selection = [*all_of_it, *run.selection, "--timeout", str(SCENARIO_MS), "-o", results]
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
        count(scenario, os.path.join(results, folder))
        scenario.may_warn = run.may_warn
    if done.returncode != 0 and all(one.is_well for one in scenarios.values()):
        faults.append(f"the suite ended with {done.returncode}:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return Outcome(run, list(scenarios.values()), faults, seconds)


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
        for one in outcome.unscored if outcome.run.party == "fastrpc serve" else ():
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
            outcome = (client_runs.outcome_of if run.leg == "client" else outcome_of)(run, suite)
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

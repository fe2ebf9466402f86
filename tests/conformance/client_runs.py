"""The conformance suite's scenarios for clients, held against `client.py`.

`Client` is `fastrpc.Client` at the URL of the suite's server, which finds out the version by itself; `proxied
Client` is one before a proxy of that URL, in the version of the run. The dated suites are run: each holds all
that its requirement set wants of a client, at the same version of the protocol, and what was added later.
Those of `EXTENSIONS` are a separate run.

Each scenario is a separate call of the suite: only such a call says how the client's process has ended. As
many run at once as there are processors.
"""

from __future__ import annotations

import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from conformance.suite import HERE, Outcome, Run, Scenario, Suite, count

PROGRAM = [sys.executable, os.path.join(HERE, "client.py")]
CLIENTS = {"Client": PROGRAM, "proxied Client": [*PROGRAM, "--proxy"]}

SCENARIO_MS = 60_000

EXTENSIONS = ("auth/client-credentials-basic", "auth/client-credentials-jwt")
"""The scenarios of extensions that are spoken. No dated suite has them."""

RUNS = [
    *(
        Run("Client", "suite", version, "client")
        for version in ("2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28")
    ),
    Run("Client", "extension", "2026-07-28", "client"),
    *(Run("proxied Client", "suite", version, "client") for version in ("2025-11-25", "2026-07-28")),
]


def outcome_of(run: Run, suite: Suite) -> Outcome:
    """Run all scenarios of a version against a client."""
    if run.kind == "extension":
        scenarios = [Scenario(name) for name in EXTENSIONS]
    else:
        scenarios = list(suite.scenarios(run).values())
    results = suite.results_of(run)
    began = time.monotonic()
    with ThreadPoolExecutor(os.cpu_count()) as threads:
        for ended in [threads.submit(run_one, scenario, run, suite, results) for scenario in scenarios]:
            ended.result()
    return Outcome(run, scenarios, [], time.monotonic() - began)


def run_one(scenario: Scenario, run: Run, suite: Suite, results: str) -> None:
    """Run a scenario. What keeps it from ending well is one of its failures."""
    folder = os.path.join(results, scenario.name)
    done = suite.call(
        *("client", "--command", " ".join(CLIENTS[run.party]), "--scenario", scenario.name),
        *("--spec-version", run.version, "--timeout", str(SCENARIO_MS), "-o", folder),
        *(["--force"] if run.kind == "extension" else []),
    )
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "output.txt"), "w", encoding="utf-8") as file:
        file.write(done.stdout + done.stderr)
    for found, _, files in os.walk(folder):
        if "checks.json" in files:
            count(scenario, found)
            with open(os.path.join(found, "stderr.txt"), encoding="utf-8") as file:
                said = file.read()
            if "Traceback" in said:
                scenario.failed.append(f"the client has written a traceback:\n{said[-2000:]}")
    if done.returncode != 0 and scenario.is_well:
        scenario.failed.append(f"the suite ended with {done.returncode}:\n{done.stdout}{done.stderr}"[:4000])

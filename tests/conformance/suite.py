"""The conformance suite as it is installed, and what a run of it is and has shown.

The suite and the Node that it needs come from the lock file beside this, once, by npm, into a cache folder,
into which everything is written. How servers are started is left to `run`, how clients are to `client_runs`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(REPOSITORY, ".cache")
SUITE = "@modelcontextprotocol/conformance"

INSTALL_SECONDS = 300
RUN_SECONDS = 600

TASKS = (
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-status-notifications",
    "tasks-wire-fields",
)
"""The scenarios of the extension for tasks: they count, although no requirement set has them."""
SKIPPED_BY_THE_SUITE = ("tasks-status-notifications",)
"""What this version of the suite always skips: it observes another channel than the extension's. As soon as a
version checks something there, the scenario counts."""


class Broken(Exception):
    """What keeps a run from being one: no npm, a server that does not start, a suite that does not end."""


@dataclass
class Run:
    party: str
    """What is tested: one of our servers or clients."""
    kind: str
    """`requirements` or `suite`."""
    version: str
    leg: str = "server"
    """`server` or `client`."""
    may_warn: bool = False
    """With several workers, a tool that changes the lists changes those of its own worker (a SHOULD)."""

    @property
    def name(self) -> str:
        return f"{self.kind} {self.version}, {self.party}"

    @property
    def has_tasks(self) -> bool:
        """Whether the run has the scenarios of tasks."""
        return (self.leg, self.kind, self.version) == ("server", "requirements", "2026-07-28")

    @property
    def selection(self) -> list[str]:
        return ["--requirements" if self.kind == "requirements" else "--spec-version", self.version]


@dataclass
class Scenario:
    name: str
    kind: str = ""
    """Why it does not count: extension, pending or added-after-release; empty if it does."""
    passed: int = 0
    warned: list[str] = field(default_factory=list)
    failed: list[str] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    was_run: bool = False
    may_warn: bool = False

    @property
    def is_well(self) -> bool:
        is_whole = self.passed > 0 and not (self.name in TASKS and self.skipped)
        return self.was_run and is_whole and not self.failed and (self.may_warn or not self.warned)

    def complaints(self) -> list[str]:
        """Say what is wrong."""
        if not self.was_run:
            return ["was not run"]
        found = [*self.failed, *(f"warning: {warning}" for warning in self.warned)]
        found += [f"skipped: {check}" for check in self.skipped if self.name in TASKS]
        return found if found or self.passed else ["no check was made"]


@dataclass
class Outcome:
    run: Run
    scenarios: list[Scenario]
    faults: list[str]
    """What is wrong besides the scenarios: with a server's end, or with the suite itself."""
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
        # Node comes as a separate locked package: no script of any package has to run.
        command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        done = finished(command, INSTALL_SECONDS, cwd=self.folder)
        if done.returncode != 0 or not os.path.exists(self.node):
            raise Broken(f"npm could not install the suite:\n{done.stdout}{done.stderr}")
        with open(os.path.join(self.folder, "installed"), "w", encoding="utf-8") as file:
            file.write(self.version + "\n")

    def call(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return finished([self.node, self.program, *arguments], RUN_SECONDS, cwd=self.folder)

    def scenarios(self, run: Run) -> dict[str, Scenario]:
        """Return the scenarios that belong to a run, in their order."""
        done = self.call("list", f"--{run.leg}", *run.selection)
        scenarios: dict[str, Scenario] = {}
        section = ""
        for line in done.stdout.splitlines():
            entry = re.match(r"\s+- (\S+)(?: \[([^\]]+)\])?$", line)
            if entry is None:
                section = line.strip() or section
                continue
            name, mark = entry.groups()
            if section.startswith(f"{run.leg.capitalize()} scenarios"):
                scenarios[name] = Scenario(name)
            elif section.startswith(("extension", "pending", "added-after-release")) and mark == run.leg:
                scenarios[name] = Scenario(name, "" if name in TASKS else section.split()[0])
        if done.returncode != 0 or not scenarios:
            raise Broken(f"the suite does not list its scenarios:\n{done.stdout}{done.stderr}")
        if run.has_tasks:
            for name in TASKS:
                scenarios.setdefault(name, Scenario(name))  # one that the suite does not list was not run
        return scenarios

    def results_of(self, run: Run) -> str:
        """Return the folder for the results of a run, emptied."""
        results = os.path.join(self.folder, "results", re.sub(r"[^\w.-]+", "-", run.name))
        shutil.rmtree(results, ignore_errors=True)
        os.makedirs(results)
        return results


def finished(command: list[str], seconds: float, cwd: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a program to its end. Raises Broken if that takes too long."""
    try:
        return subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, timeout=seconds, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired as error:
        raise Broken(f"{' '.join(command[:3])} … took over {seconds:.0f} s") from error


def count(scenario: Scenario, folder: str) -> None:
    """Count the checks that the suite has written into a folder."""
    with open(os.path.join(folder, "checks.json"), encoding="utf-8") as file:
        checks: list[dict[str, Any]] = json.load(file)
    scenario.was_run = True
    for check in checks:
        status = check["status"]
        if status == "SUCCESS":
            scenario.passed += 1
        elif status in ("FAILURE", "WARNING", "SKIPPED"):
            why = check.get("errorMessage") or check.get("description") or ""
            found = {"FAILURE": scenario.failed, "WARNING": scenario.warned}.get(status, scenario.skipped)
            found.append(f"{check['id']}: {why}")
    if scenario.name in SKIPPED_BY_THE_SUITE and scenario.skipped and len(scenario.skipped) == len(checks):
        scenario.kind = "skipped by the suite"

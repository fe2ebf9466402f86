"""One line of the table for each peer, and the load client that most of them are taken with.

A row's `measure` makes one run against one peer and returns the client's report; what cannot be measured
comes back as {"void": reason}, never as a figure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import build
from roster import ECHO, Peer

RUN_LIMIT_SECONDS = 180

Result = dict[str, Any]


@dataclass(frozen=True)
class Options:
    """How long and how often, for all rows of a run, and which Python runs fastrpc."""

    rounds: int = 5
    seconds: float = 0.5
    starts: int = 10
    python: str = sys.executable


@dataclass(frozen=True)
class Column:
    """One further figure of a row: its heading, its name in the reports, and what it is divided by."""

    heading: str
    name: str
    divisor: float = 1.0


LOAD_COLUMNS = (
    Column("p50", "p50"),
    Column("p99", "p99"),
    Column("p99.9", "p99_9"),
    Column("CPU us", "server_cpu_us_per_call"),
    Column("MB", "peak_rss_kb", 1024),
)


@dataclass(frozen=True)
class Row:
    """What is measured, which of the report's figures decides, and what is asked of fastrpc."""

    name: str
    title: str
    measure: Callable[[Row, Peer, Options], Result]
    figure: str  # a field of the report
    unit: str
    less_is_better: bool = True
    client: tuple[str, ...] = ()  # how the load client is called
    bar: float | None = None  # for fastrpc's ratio: at most this where less is better, at least where more is
    limit: float | None = None  # for fastrpc's figure itself, in the same sense
    goal: float | None = None  # beyond the bar or limit, and of the same figure: where we want to be
    base: str = "c"  # the peer that ratios are taken to; empty: none are
    times_sdks: Mapping[str, float | None] = field(default_factory=dict)  # at least so many times better
    sdk_goals: Mapping[str, float] = field(default_factory=dict)
    async_times_sdks: Mapping[str, float | None] = field(default_factory=dict)  # the same of its coroutine
    sdks: bool = False  # whether SDKs take part although fastrpc is not held to be better
    sdk_rounds: int | None = None  # in how many rounds SDKs take part, the first ones; None: in all
    server: str = ECHO  # what a peer must serve to take part
    cores: int = 1
    columns: tuple[Column, ...] = LOAD_COLUMNS

    @property
    def workload(self) -> str:
        return self.name.partition("-")[0]

    @property
    def with_sdks(self) -> bool:
        return self.sdks or bool(self.times_sdks)


def pinning(cores: int) -> list[str]:
    """The options that pin client and server: to one core, or to one each."""
    if not hasattr(os, "sched_getaffinity"):
        return []
    usable = sorted(os.sched_getaffinity(0))
    return ["--client-cpu", str(usable[-1]), "--server-cpu", str(usable[-cores])]


def load(row: Row, peer: Peer, options: Options) -> Result:
    """Put the row's load on the peer for as long as the options say."""
    return run_client(row, peer, ["--seconds", str(options.seconds), "--warm-up", str(peer.warm_up)])


def run_client(row: Row, peer: Peer, more: list[str]) -> Result:
    """Run the load client once."""
    client = [build.build("client", offline=True), *row.client, *pinning(row.cores), *more]
    return report_of([*client, "--", *peer.commands[row.server]], peer)


def report_of(command: Sequence[str], server: Peer) -> Result:
    """Run a client, its server in the folder and the environment of this peer; return what it reports."""
    try:
        done = subprocess.run(
            command,
            cwd=server.folder,
            env=server.environment,
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

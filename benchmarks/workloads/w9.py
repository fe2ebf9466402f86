"""W9: what a server costs that mostly waits: a client has a dozen of them open all day.

Resident memory right behind the answer of `initialize`; behind the first call of an async tool, when a
server of Python has its event loop; and how it grows over 1,000,000 calls of `echo`, 256 in flight, the
first tenth left out. Memory comes in pages, so a growth below half a byte a call is none: the smallest
object that could be forgotten has sixteen. The rows named serve are of `fastrpc serve`: behind `initialize`,
idle with its tools and its event loop, and over 200,000 lists of those tools.
"""

from __future__ import annotations

from roster import SERVE, SLEEP, Peer
from workloads.row import Column, Options, Result, Row, run_client

COLUMNS = (
    Column("start MB", "rss_start_kb", 1024),
    Column("idle MB", "rss_idle_kb", 1024),
    Column("loop MB", "rss_loop_kb", 1024),
    Column("end MB", "rss_end_kb", 1024),
    Column("peak MB", "peak_rss_kb", 1024),
)


def measure(row: Row, peer: Peer, options: Options) -> Result:
    report = run_client(row, peer, [])
    if "void" in report:
        return report
    return {**report, "start_mb": report["rss_start_kb"] / 1024, "loop_mb": report["rss_loop_kb"] / 1024}


CALLS = "--workload memory --ms 1 --sleepers 1 --window 256 --calls"
LISTS = "--workload memory --sleepers 0 --tools 13 --window 256 --calls"


def row(
    name: str,
    title: str,
    figure: str,
    unit: str,
    calls: int,
    limit: float,
    goal: float | None = None,
    server: str = SLEEP,
) -> Row:
    client = f"{CALLS if server == SLEEP else LISTS} {calls}"
    return Row(
        name,
        title,
        measure,
        figure,
        unit,
        client=tuple(client.split()),
        limit=limit,
        goal=goal,
        base="",  # growth may be 0: no ratios
        server=server,
        columns=COLUMNS,
    )


ROWS = (
    row("W9", "memory after initialize", "start_mb", "MB", 1000, 16.0, 11.0),
    row("W9-loop", "memory with the event loop", "loop_mb", "MB", 1000, 32.0, 24.0),
    row("W9-calls", "growth over 1,000,000 calls", "growth_bytes_per_call", "bytes/call", 1_000_000, 0.5),
    row("W9-serve", "`fastrpc serve`: memory after initialize", "start_mb", "MB", 1000, 16.0, 11.0, SERVE),
    row("W9-serve-loop", "`fastrpc serve`: memory when idle", "loop_mb", "MB", 1000, 32.0, 24.0, SERVE),
    row(
        "W9-serve-lists",
        "`fastrpc serve`: growth over 200,000 lists",
        "growth_bytes_per_call",
        "bytes/call",
        200_000,
        0.5,
        server=SERVE,
    ),
)

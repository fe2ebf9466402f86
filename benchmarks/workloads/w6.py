"""W6: a slow tool must not delay a fast one.

64 calls of `sleep(10)` are sent at once, and beside them one `echo` after the other, each sent when the last
has been answered, until the last sleeper is back; then the next round begins. The figure is the p99 of those
echoes, all rounds together; beside it stands how long a round took, which is 10 ms where all sleep at the
same time. `W6-sync` is the same with a function that blocks its thread: the threads' number then decides
how long a round takes, but the echo must not wait for it.
"""

from __future__ import annotations

from roster import SLEEP, SLEEP_SYNC
from workloads.row import Column, Row, load

COLUMNS = (
    Column("p50", "p50"),
    Column("p99.9", "p99_9"),
    Column("max", "max"),
    Column("wall ms", "wall_ms"),
    Column("MB", "peak_rss_kb", 1024),
)


def row(name: str, title: str, tool: str) -> Row:
    return Row(
        name,
        title,
        load,
        "p99",
        "us",
        client=("--workload", "sleepers", "--sleepers", "64", "--ms", "10", "--tool", tool),
        limit=5000.0,
        goal=500.0,
        times_sdks={"best": 1.0},
        async_times_sdks={"best": 1.0},
        server=tool,
        columns=COLUMNS,
    )


ROWS = (
    row("W6", "echo during 64 sleeping calls, p99", SLEEP),
    row("W6-sync", "echo during 64 calls that block a thread, p99", SLEEP_SYNC),
)

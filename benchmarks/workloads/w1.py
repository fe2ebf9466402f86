"""W1: a model that calls one small tool and waits for it: what a call costs when nothing else goes on.

One `echo` at a time. On one core the figure is the CPU time that both sides need, and steady; on two cores
it is mostly how fast the system wakes an idle one, the same for everybody, and only a tendency.
"""

from __future__ import annotations

from workloads.row import Row, load

CLIENT = ("--workload", "echo", "--window", "1")
ROWS = (
    Row(
        "W1",
        "echo, one at a time, one core",
        load,
        "p50",
        "us",
        client=CLIENT,
        bar=1.15,
        goal=1.03,
        times_sdks={"best": 1.0},
        async_times_sdks={"best": 1.0},
    ),
    Row(
        "W1-two",
        "echo, one at a time, two cores",
        load,
        "p50",
        "us",
        client=CLIENT,
        goal=0.5,
        cores=2,
        sdks=True,
    ),
)

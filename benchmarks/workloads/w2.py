"""W2: an agent that has much to do at once: how many small calls a server takes in a second.

256 calls of `echo` are in flight all the time, both processes on one core, so that it is CPU time a call.
"""

from __future__ import annotations

from workloads.row import Row, load

CLIENT = ("--workload", "echo", "--window", "256")
ROWS = (
    Row(
        "W2",
        "echo, 256 in flight",
        load,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=CLIENT,
        bar=0.85,
        goal=1.1,
        times_sdks={"best": 40.0, "mcp": 1500.0},
        sdk_goals={"best": 60.0, "mcp": 2500.0},
        async_times_sdks={"best": 1.0, "mcp": None},
    ),
)

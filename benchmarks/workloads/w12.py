"""W12: what a tool costs as people write it: `echo` with a `Context`, as a coroutine, behind a hook.

256 calls are in flight, both processes on one core, as in W2. A ratio is to the plain `echo` of the same
server, in the same round: what the shape costs, whatever the machine. `W12-http-…` is the same over HTTP, in
stateless requests by 64 connections, a core each, as in W11.
"""

from __future__ import annotations

from roster import PLAIN, shaped, shaped_over_http
from workloads.row import Row, load
from workloads.w2 import CLIENT
from workloads.w11 import client

TITLES = {
    "context": ("a Context that it does not use", 0.7),
    "progress": ("progress that nobody asked for", 0.5),
    "coroutine": ("async def that does not wait", 0.2),
    "waiting": ("async def that waits once", 0.05),
    "hook": ("an empty before hook", 0.4),
}
OVER_HTTP = {"context": (0.8, 0.9), "coroutine": (0.6, 0.8), "waiting": (0.3, 0.5), "hook": (0.7, None)}
"""The bar and the goal of each shape that has one there."""

ROWS = tuple(
    Row(
        f"W12-{shape}",
        f"echo, 256 in flight: {title}",
        load,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=CLIENT,
        bar=bar,
        goal=min(1.5 * bar, 1.0),
        base=PLAIN,
        server=shaped(shape),
    )
    for shape, (title, bar) in TITLES.items()
) + tuple(
    Row(
        f"W12-http-{shape}",
        f"echo over HTTP, 64 connections: {TITLES[shape][0]}",
        load,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=client(64),
        bar=bar,
        goal=goal,
        base=PLAIN,
        server=shaped_over_http(shape),
        cores=2,
    )
    for shape, (bar, goal) in OVER_HTTP.items()
)

"""W12: what a tool costs as people write it: `echo` with a `Context`, as a coroutine, behind a hook.

256 calls are in flight, both processes on one core, as in W2. A ratio is to the plain `echo` of the same
server, in the same round: what the shape costs, whatever the machine.
"""

from __future__ import annotations

from roster import PLAIN, shaped
from workloads.row import Row, load
from workloads.w2 import CLIENT

TITLES = {
    "context": ("a Context that it does not use", 0.7),
    "progress": ("progress that nobody asked for", 0.5),
    "coroutine": ("async def that does not wait", 0.2),
    "waiting": ("async def that waits once", 0.05),
    "hook": ("an empty before hook", 0.4),
}

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
)

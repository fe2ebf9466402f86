"""W12: what a tool costs as people write it: `echo` with a `Context`, as a coroutine, behind a hook.

256 calls are in flight, both processes on one core, as in W2. A ratio is to calls of the plain `echo` of the
same server, in the same round: what the shape costs, whatever the machine. Other requests than calls (`ping`,
a resource, a prompt), and calls that cannot be made, are taken to that `echo`, too. `W12-http-…` is
over HTTP, in stateless requests by 64 connections, a core each, as in W11.

SDKs serve the same source where they can: a plain function beside ours, a coroutine beside ours. They take
part in the first three rounds, so that all of this takes minutes.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from roster import PLAIN, Peer, shaped, shaped_over_http
from workloads.row import Options, Result, Row, load
from workloads.w2 import CLIENT
from workloads.w11 import client


class Shape(NamedTuple):
    """What is measured, the least that is asked of it, and what the load client sends and expects for it."""

    title: str
    bar: float | None
    workload: str = "echo"


SHAPES = {
    "context": Shape("echo with a Context that it does not use", 0.7),
    "progress": Shape("echo that reports progress without a progressToken", 0.5),
    "keywords": Shape("echo that takes **arguments", 0.05),
    "coroutine": Shape("echo, async def that does not wait", 0.2),
    "waiting": Shape("echo, async def that waits once", 0.05),
    "thread": Shape("echo on a worker thread", None),
    "hook": Shape("echo with an empty before hook", 0.4),
    "guard": Shape("echo with an empty guard", 0.5),
    "observe": Shape("echo with an empty observer", 0.5),
    "dict": Shape("echo that returns a dict", None, "structure"),
    "model": Shape("echo that returns a pydantic model", 0.1, "structure"),
    "texts": Shape("echo that returns two texts", 0.2, "texts"),
    "tool-error": Shape("echo that raises ToolError", 0.3, "failing"),
    "value-error": Shape("echo that raises ValueError", 0.15, "failing"),
    "misfit": Shape("echo with invalid arguments", 0.2, "misfit"),
    "unknown": Shape("an unknown tool", 0.2, "unknown"),
    "ping": Shape("ping", 0.3, "ping"),
    "resource": Shape("resources/read", 0.3, "resource"),
    "prompt": Shape("prompts/get", 0.3, "prompt"),
}
OVER_HTTP = {
    "context": (0.8, 0.9),
    "coroutine": (0.6, 0.8),
    "waiting": (0.3, 0.5),
    "hook": (0.7, None),
    "texts": (0.5, None),
    "tool-error": (0.5, None),
}
"""The bar and the goal of each shape that has one there."""
SDK_ROUNDS = 3


def measure(row: Row, peer: Peer, options: Options) -> Result:
    """Put the row's load on the peer; on the plain server always calls of echo."""
    return load(replace(row, client=CLIENT) if peer.name == PLAIN else row, peer, options)


def measure_over_http(row: Row, peer: Peer, options: Options) -> Result:
    """The same over HTTP."""
    return load(replace(row, client=client(64)) if peer.name == PLAIN else row, peer, options)


ROWS = tuple(
    Row(
        f"W12-{name}",
        f"{shape.title}, 256 in flight",
        measure,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=("--workload", shape.workload, *CLIENT[2:]),
        bar=shape.bar,
        goal=None if shape.bar is None else min(1.5 * shape.bar, 1.0),
        base=PLAIN,
        sdks=True,
        sdk_rounds=SDK_ROUNDS,
        server=shaped(name),
    )
    for name, shape in SHAPES.items()
) + tuple(
    Row(
        f"W12-http-{shape}",
        f"over HTTP, 64 connections: {SHAPES[shape].title}",
        measure_over_http,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=(*client(64), "--answer", SHAPES[shape].workload),
        bar=bar,
        goal=goal,
        base=PLAIN,
        times_sdks={"rmcp": 1.0},
        sdk_rounds=SDK_ROUNDS,
        server=shaped_over_http(shape),
        cores=2,
    )
    for shape, (bar, goal) in OVER_HTTP.items()
)

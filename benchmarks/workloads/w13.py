"""W13: an agent's loop: what a call of a tool costs the client, whose half of the way is the longer one.

Here a peer is a client, and all have the same server before them: fastrpc's `servers/echo.py`. One call of
`echo` at a time, client and server on one core, to the load client in C as in W1; and 256 at once, coroutines
that each call again when answered. All speak 2025-11-25. fastrpc's client is measured without an event loop
(`-sync`) and in one; the others have only such that need one, which is uvloop for all. A text is taken out
of every result while the clock runs, and compared when it has stopped: one that is wrong voids the row.

`W13-http-…` is the same over HTTP, in a session: the load client has as many connections as there are calls
at once. Shown, no bar.

`W13-memory-…` is each client with a server of its own package in the same process: shown, no bar. What is
measured there is client and server.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from roster import (
    CLIENT,
    CLIENT_HTTP,
    CLIENT_IN_MEMORY,
    CLIENT_SYNC,
    CLIENT_SYNC_HTTP,
    CLIENT_SYNC_IN_MEMORY,
    ECHO,
    HTTP_SESSION,
    LOAD_CLIENT,
    TOKEN,
    Peer,
    peer_of,
)
from workloads.row import Column, Options, Result, Row, load, pinning, report_of

LATENCY = (Column("p50", "p50"), Column("p90", "p90"), Column("p99", "p99"), Column("loop", "loop"))
RATE = (Column("loop", "loop"),)
OVER_HTTP = {CLIENT: CLIENT_HTTP, CLIENT_SYNC: CLIENT_SYNC_HTTP}
IN_MEMORY = (CLIENT_IN_MEMORY, CLIENT_SYNC_IN_MEMORY)
_servers: dict[str, Peer] = {}


def server_of(python: str) -> Peer:
    """The peer whose echo every client calls."""
    if python not in _servers:
        _servers[python] = peer_of("fastrpc", python)
    return _servers[python]


def measure(row: Row, peer: Peer, options: Options) -> Result:
    """Let the peer's client call for as long as the options say."""
    server = server_of(options.python)
    over_http = row.server in OVER_HTTP.values()
    if over_http and HTTP_SESSION not in server.commands:
        return {"void": "fastrpc has no HTTP here: pip install 'fastrpc-mcp[http]'"}
    if over_http and peer.name == LOAD_CLIENT:
        client = ("--workload", "http", "--wire", "session", "--token", TOKEN)
        client += ("--connections", row.client[-1])
        return load(replace(row, client=client, server=HTTP_SESSION), server, options)
    if peer.name == LOAD_CLIENT:
        return load(replace(row, client=("--workload", "echo", *row.client), server=ECHO), server, options)
    core = pinning(row.cores)[:2]  # the client's, which its server inherits
    command = [*peer.commands[row.server], *row.client, *core]
    command += ["--seconds", str(options.seconds), "--warm-up", str(peer.warm_up)]
    if row.server not in IN_MEMORY:
        command += ["--", *server.commands[HTTP_SESSION if over_http else ECHO]]
    return report_of(command, server)


def latency(name: str, title: str, server: str, **more: Any) -> Row:
    """A row of one call at a time."""
    return Row(
        name, title, measure, "p50", "us", client=("--window", "1"), server=server, columns=LATENCY, **more
    )


def rate(name: str, title: str, server: str, **more: Any) -> Row:
    """A row of 256 calls at once."""
    return Row(
        name,
        title,
        measure,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=("--window", "256"),
        server=server,
        columns=RATE,
        **more,
    )


SHOWN: dict[str, Any] = {"base": "", "times_sdks": {"mcp": None, "fastmcp": None}}
"""Of a row without a bar."""

ROWS = (
    latency(
        "W13-sync",
        "the client: call_tool without an event loop, one at a time",
        CLIENT_SYNC,
        bar=2.5,
        goal=2.0,
        base=LOAD_CLIENT,
        times_sdks={"mcp": 40.0, "fastmcp": None},
    ),
    latency(
        "W13-async",
        "the client: call_tool in an event loop, one at a time",
        CLIENT,
        bar=6.0,
        goal=4.0,
        base=LOAD_CLIENT,
        times_sdks={"mcp": None, "fastmcp": None},
    ),
    rate(
        "W13-256",
        "the client: call_tool in an event loop, 256 at once",
        CLIENT,
        base=LOAD_CLIENT,
        times_sdks={"mcp": 100.0, "fastmcp": None},
        sdk_goals={"mcp": 200.0},
    ),
    latency(
        "W13-memory-sync",
        "the client: call_tool in memory without an event loop, one at a time",
        CLIENT_SYNC_IN_MEMORY,
        **SHOWN,
    ),
    latency("W13-memory-async", "the client: call_tool in memory, one at a time", CLIENT_IN_MEMORY, **SHOWN),
    rate("W13-memory-256", "the client: call_tool in memory, 256 at once", CLIENT_IN_MEMORY, **SHOWN),
)

ROWS += tuple(
    replace(
        row,
        name=row.name.replace("-", "-http-"),
        title=row.title.replace("the client: ", "the client over HTTP: "),
        bar=None,
        goal=None,
        times_sdks={"mcp": None, "fastmcp": None},
        sdk_goals={},
        server=OVER_HTTP[row.server],
    )
    for row in ROWS
    if row.server in OVER_HTTP
)

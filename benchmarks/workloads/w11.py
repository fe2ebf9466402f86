"""W11: the same small call over HTTP, as a service on a network gets it: Streamable HTTP, stateless, in JSON.

64 connections stay open and each has one call of `echo` on the way; client and server have a core each, so
that the server's is full. `W11-1` is one connection, both on one core: what a call costs. The wire is that of
2026-07-28. fastrpc serves as it is deployed: it asks for the token, looks at Host and Origin, and holds
Mcp-Method, Mcp-Name and the version against the body. The SDKs are as fast as they can be told to be: no
sessions, no streams, no token. The plain Python loop is uvloop, httptools and `json` and checks nothing.

`W11-cpu` is the server's CPU time a call under that load: what the guard looks at, since calls a second over
two cores depend on who else wants one of them. `W11-session` is the same load in sessions of 2025-11-25,
which is what most clients send: one for each connection, taken to fastrpc's own stateless request.
`W11-log` is the load of W11 with an access log, taken to fastrpc without one.
`W11-asgi` is fastrpc as an ASGI application in another's uvicorn: shown, no bar.
"""

from __future__ import annotations

from dataclasses import replace

from roster import HTTP, HTTP_ASGI, HTTP_LOG, HTTP_SESSION, HTTP_WARM_UP_SECONDS, PLAIN, TOKEN, Peer
from workloads.row import Options, Result, Row, load


def measure(row: Row, peer: Peer, options: Options) -> Result:
    return load(row, replace(peer, warm_up=HTTP_WARM_UP_SECONDS.get(peer.name, peer.warm_up)), options)


def measure_in_sessions(row: Row, peer: Peer, options: Options) -> Result:
    """Put the load on in sessions; on the plain server, which the ratio is to, in stateless requests."""
    wire = "modern" if peer.name == PLAIN else "session"
    return load(replace(row, client=(*row.client, "--wire", wire)), peer, options)


def client(connections: int) -> tuple[str, ...]:
    return ("--workload", "http", "--connections", str(connections), "--token", TOKEN)


ROWS = (
    Row(
        "W11",
        "echo over HTTP, 64 connections, a core each",
        measure,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=client(64),
        base="python-loop",
        times_sdks={"mcp": 20.0, "rmcp": 1.3},
        sdk_goals={"mcp": 30.0, "rmcp": 2.0},
        async_times_sdks={"best": 1.0, "mcp": 20.0},
        server=HTTP,
        cores=2,
    ),
    Row(
        "W11-cpu",
        "the same: CPU time of the server",
        measure,
        "server_cpu_us_per_call",
        "us/call",
        client=client(64),
        bar=0.9,
        base="python-loop",
        server=HTTP,
        cores=2,
    ),
    Row(
        "W11-1",
        "echo over HTTP, one connection, one core",
        measure,
        "p50",
        "us",
        client=client(1),
        base="python-loop",
        sdks=True,
        server=HTTP,
    ),
    Row(
        "W11-session",
        "echo over HTTP in sessions of 2025-11-25, 64 connections, compared with stateless requests",
        measure_in_sessions,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=client(64),
        bar=0.8,
        goal=0.9,
        base=PLAIN,
        server=HTTP_SESSION,
        cores=2,
    ),
    Row(
        "W11-log",
        "echo over HTTP with an access log, 64 connections, compared with none",
        measure,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=client(64),
        bar=0.95,
        base=PLAIN,
        server=HTTP_LOG,
        cores=2,
    ),
    Row(
        "W11-asgi",
        "echo over HTTP, 64 connections, an ASGI application in another's uvicorn",
        measure,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=client(64),
        base="",
        server=HTTP_ASGI,
        cores=2,
    ),
)

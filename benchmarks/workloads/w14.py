"""W14: a call through the proxy, to a server behind it, beside the same call without the proxy.

One `echo` at a time over stdio, client, proxy and server on one core: what the way through one more process
costs. `W14-64` is the same with 64 on the way. `W14-http` is one connection over HTTP to the proxy, behind
which the server is a child process. That server is the one that answers directly. `W14-guarded` is the proxy
behind the guard's policy that `W15` has, with its audit log, compared with the proxy without one.
"""

from __future__ import annotations

from roster import PLAIN, PROXY, PROXY_GUARDED, PROXY_HTTP, TOKEN
from workloads.row import Row, load
from workloads.w15 import measure

ROWS = (
    Row(
        "W14",
        "echo through the proxy over stdio, one at a time, compared with a direct connection",
        load,
        "p50",
        "us",
        client=("--workload", "echo", "--window", "1"),
        bar=3.0,
        goal=2.2,
        base=PLAIN,
        server=PROXY,
    ),
    Row(
        "W14-64",
        "echo through the proxy over stdio, 64 in flight, compared with a direct connection",
        load,
        "calls_per_second",
        "calls/s",
        less_is_better=False,
        client=("--workload", "echo", "--window", "64"),
        base=PLAIN,
        server=PROXY,
    ),
    Row(
        "W14-http",
        "echo through the proxy over HTTP, one connection, compared with a direct connection",
        load,
        "p50",
        "us",
        client=("--workload", "http", "--connections", "1", "--token", TOKEN),
        bar=3.0,
        goal=2.2,
        base=PLAIN,
        server=PROXY_HTTP,
    ),
    Row(
        "W14-guarded",
        "echo through a guarded proxy over stdio, one at a time, compared with the proxy without a guard",
        measure,
        "p50",
        "us",
        client=("--workload", "echo", "--window", "1"),
        bar=1.3,
        base=PLAIN,
        server=PROXY_GUARDED,
    ),
)

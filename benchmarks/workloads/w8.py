"""W8: a desktop client starts a dozen servers: from spawn to the answer of `initialize`, and of `tools/list`.

The server is started anew each time, from a warm cache. `W8` starts a file that imports nothing but fastrpc,
`W8-serve` the command `fastrpc serve`; `W8-list` starts that too and waits for the list of its tools
as well; `W8-http` starts `fastrpc serve --http` and waits until `GET /readyz` is answered: shown, no bar.
Ratios are to `python -c pass`, spawn to exit, of the same Python: less than that no Python server can need.
They get a verdict only for fastrpc from a wheel: the import hook of an editable install slows the bare Python
too, and so flatters the ratio.
"""

from __future__ import annotations

import statistics

from roster import START, START_HTTP, START_LIST, START_SERVE, Peer
from workloads.row import Column, Options, Result, Row, run_client
from workloads.w3 import TOOLS

LIST_COLUMNS = (Column("initialize", "initialize_ms"), Column("MB", "peak_rss_kb", 1024))


def measure(row: Row, peer: Peer, options: Options) -> Result:
    workload = "bare" if peer.name == row.base else "http-start" if row.server == START_HTTP else "start"
    starts = str(min(options.starts, peer.most_starts))
    return run_client(row, peer, ["--workload", workload, "--starts", starts])


def measure_list(row: Row, peer: Peer, options: Options) -> Result:
    """Start the client for every start of the server: of several it tells only the mean to the list."""
    if peer.name == row.base:
        report = measure(row, peer, options)
        return report if "void" in report else {**report, "list_ms": report["p50"]}
    reports: list[Result] = []
    for _ in range(min(options.starts, peer.most_starts)):
        reports.append(run_client(row, peer, ["--workload", "start", "--starts", "1", "--tools", str(TOOLS)]))
        if "void" in reports[-1]:
            return reports[-1]
    return {
        **reports[-1],
        "starts": len(reports),
        "initialize_ms": statistics.median(report["p50"] for report in reports),
        "list_ms": statistics.median(report["list_mean"] for report in reports),
    }


ROWS = (
    Row(
        "W8",
        "process start to the response to initialize",
        measure,
        "p50",
        "ms",
        bar=2.0,
        goal=1.2,
        base="bare",
        sdks=True,
        server=START,
    ),
    Row(
        "W8-serve",
        "`fastrpc serve`: process start to the response to initialize",
        measure,
        "p50",
        "ms",
        bar=2.0,
        goal=1.2,
        base="bare",
        server=START_SERVE,
    ),
    Row(
        "W8-list",
        "`fastrpc serve`: process start to the response to tools/list, thirteen tools",
        measure_list,
        "list_ms",
        "ms",
        bar=5.0,
        goal=2.0,
        base="bare",
        server=START_LIST,
        columns=LIST_COLUMNS,
    ),
    Row(
        "W8-http",
        "`fastrpc serve --http`: process start to the response to /readyz",
        measure,
        "p50",
        "ms",
        base="bare",
        server=START_HTTP,
    ),
)

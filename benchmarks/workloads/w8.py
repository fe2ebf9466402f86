"""W8: a desktop client starts a dozen servers: from spawn to the answer of `initialize`.

The server is started anew each time, from a warm cache, and asked for its tools as well (`list_mean` in the
JSON). Ratios are to `python -c pass`, spawn to exit, of the same Python: less than that no Python server
can need. It gets a verdict only for fastrpc from a wheel: the import hook of an editable install slows the
bare Python too, and so flatters the ratio.
"""

from __future__ import annotations

from roster import START, Peer
from workloads.row import Options, Result, Row, run_client


def measure(row: Row, peer: Peer, options: Options) -> Result:
    workload = "bare" if peer.name == row.base else "start"
    starts = str(min(options.starts, peer.most_starts))
    return run_client(row, peer, ["--workload", workload, "--starts", starts])


ROWS = (
    Row(
        "W8",
        "spawn to the answer of initialize",
        measure,
        "p50",
        "ms",
        bar=2.0,
        base="bare",
        sdks=True,
        server=START,
    ),
)

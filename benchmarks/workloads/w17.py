"""W17: a published server that someone else has written, with its imports swapped, beside itself as it is.

Ten servers of `tests/swap/servers.toml`, written for every framework that `fastrpc.compat` serves, each in
the environment that `make swap` installs for it. A run starts the server, reads its lists, sends its first
request thirty-one times and reads its peak memory; the call is the row's figure, start, lists and memory
stand beside it. Where the server's own work is most of a call, so it is in the ratio. Nothing is installed
here: a server that is not there voids its row, and says so.
"""

from __future__ import annotations

import os
import shlex
import sys

from roster import ORIGINAL, REPOSITORY, SWAPPED, Peer, command_line
from workloads.row import Column, Options, Result, Row, report_of

TIMING = os.path.join(REPOSITORY, "tests", "swap", "timing.py")
SERVERS = {
    "git": "mcp-server-git",
    "time": "mcp-server-time",
    "fetch": "mcp-server-fetch",
    "sqlite": "mcp-server-sqlite",
    "duckdb": "mcp-server-duckdb",
    "calculator": "mcp-server-calculator",
    "aws-documentation": "awslabs-aws-documentation-mcp-server",
    "duckduckgo": "duckduckgo-mcp-server",
    "nixos": "mcp-nixos",
    "word": "office-word-mcp-server",
}
"""By the name of the row."""
COLUMNS = (Column("start ms", "start_ms"), Column("lists ms", "list_ms"), Column("MB", "rss_mb"))


def measure(row: Row, peer: Peer, options: Options) -> Result:
    """Run the server once, on its own framework or by this Python's ``fastrpc swap --run``."""
    command = [sys.executable, TIMING, *row.client]
    if peer.name != ORIGINAL:
        command += ["--fastrpc", shlex.join(command_line(options.python))]
    return report_of(command, peer)


ROWS = tuple(
    Row(
        f"W17-{name}",
        f"{server} with swapped imports: one call",
        measure,
        "call_us",
        "us",
        client=(server,),
        bar=1.0,
        base=ORIGINAL,
        server=SWAPPED,
        columns=COLUMNS,
    )
    for name, server in SERVERS.items()
)

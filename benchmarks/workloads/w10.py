"""W10: the wire of 2026-07-28: no handshake, and an envelope of 190 bytes in `_meta` of every request.

W1 and W2 again, once on each wire, with the same server one after the other. The figure is how fast the
newer wire is, measured by the older one: 1 is equally fast. A client sends the same envelope every time.
"""

from __future__ import annotations

from dataclasses import replace

from roster import STATELESS, Peer
from workloads.row import Column, Options, Result, Row, load

COLUMNS = (
    Column("p50", "p50"),
    Column("older", "older_p50"),
    Column("calls/s", "calls_per_second"),
    Column("older", "older_calls_per_second"),
    Column("CPU us", "server_cpu_us_per_call"),
)


def measure(row: Row, peer: Peer, options: Options) -> Result:
    older = load(row, peer, options)
    newer = load(replace(row, client=(*row.client, "--wire", "modern")), peer, options)
    for report in (older, newer):
        if "void" in report:
            return report
    return {
        **newer,
        "older_p50": older["p50"],
        "older_calls_per_second": older["calls_per_second"],
        "of_older": newer["calls_per_second"] / older["calls_per_second"],
    }


def row(name: str, title: str, window: int) -> Row:
    return Row(
        name,
        title,
        measure,
        "of_older",
        "of the older wire",
        less_is_better=False,
        client=("--workload", "echo", "--window", str(window)),
        limit=0.85,
        server=STATELESS,
        columns=COLUMNS,
    )


ROWS = (
    row("W10", "echo in protocol version 2026-07-28, one at a time", 1),
    row("W10-256", "echo in protocol version 2026-07-28, 256 in flight", 256),
)

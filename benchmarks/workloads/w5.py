"""W5: what grows, and how: the size of a message, the number of calls in flight.

Sizes: `echo` of 100 bytes to 16 MB, one at a time. The server's input pipe holds 4 KB, so no read brings
more: whoever starts to search or to copy from the beginning with each piece shows as time per byte that
grows. The bar is on 16 MB against 1 MB: sixteen times the bytes in at most twenty times the time.

In flight: 100, 1,000 and 10,000 calls that sleep for 100 ms are sent at once. What is counted is the time
beyond those 100 ms, divided by the calls; the peak of memory stands beside it.
"""

from __future__ import annotations

from roster import SLEEP, Peer
from workloads.row import Column, Options, Result, Row, load

SIZES = {"100": 100, "1k": 1000, "10k": 10_000, "100k": 100_000, "1m": 1_000_000, "16m": 16_000_000}
PIECES = ("--workload", "echo", "--letters", "ascii", "--piece", "4096", "--size")
COLUMNS = (Column("wall ms", "wall_ms"), Column("MB", "peak_rss_kb", 1024))


def grow(row: Row, peer: Peer, options: Options) -> Result:
    """How many times longer 16 MB take than 1 MB."""
    small, large = (load(size_row(name), peer, options) for name in ("1m", "16m"))
    for report in (small, large):
        if "void" in report:
            return report
    return {**large, "growth": large["p50"] / small["p50"]}


def size_row(name: str) -> Row:
    size = SIZES[name]
    return Row(
        f"W5-{name}",
        f"echo of {size:,} bytes in pieces of 4 KB",
        load,
        "ns_per_byte",
        "ns/byte",
        client=(*PIECES, str(size)),
    )


def flight_row(calls: int) -> Row:
    return Row(
        f"W5-flight-{calls}",
        f"{calls:,} calls in flight",
        load,
        "us_per_sleeper",
        "us/call",
        client=("--workload", "sleepers", "--ms", "100", "--sleepers", str(calls)),
        base="",
        server=SLEEP,
        columns=COLUMNS,
    )


ROWS = (
    *map(size_row, SIZES),
    Row("W5-growth", "time of 16 MB to that of 1 MB", grow, "growth", "times", limit=20.0, base=""),
    *map(flight_row, (100, 1000, 10_000)),
)

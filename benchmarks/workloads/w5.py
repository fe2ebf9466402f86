"""W5: what grows, and how: the size of a message, the number of calls in flight, the number of tools.

Sizes: `echo` of 100 bytes to 16 MB, one at a time. The server's input pipe holds 4 KB, so no read brings
more: whoever starts to search or to copy from the beginning with each piece shows as time per byte that
grows. The bar is on 16 MB against 1 MB: sixteen times the bytes in at most twenty times the time.

In flight: 100, 1,000 and 10,000 calls that sleep for 100 ms are sent at once. What is counted is the time
beyond those 100 ms, divided by the calls; the peak of memory stands beside it.

Tools: servers of 10, 100 and 1,000 tools. A call (256 in flight) must cost the same whatever their number,
and a list the same for each of its tools: both are bounded to 1.25 times, which is noise. Fastrpc only.
"""

from __future__ import annotations

from dataclasses import replace

from roster import MANY_TOOLS, SLEEP, Peer, many
from workloads.row import Column, Options, Result, Row, load, run_client

SIZES = {"100": 100, "1k": 1000, "10k": 10_000, "100k": 100_000, "1m": 1_000_000, "16m": 16_000_000}
PIECES = ("--workload", "echo", "--letters", "ascii", "--piece", "4096", "--size")
COLUMNS = (Column("wall ms", "wall_ms"), Column("MB", "peak_rss_kb", 1024))
TOOL_COLUMNS = (
    Column("list us", "list_us"),
    Column("ns/tool", "list_ns_per_tool"),
    Column("start ms", "start_ms"),
    Column("MB", "peak_rss_kb", 1024),
)
FLAT = 1.25


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


def measure_tools(row: Row, peer: Peer, options: Options) -> Result:
    """One server after the other: calls, lists, starts."""
    tools = int(row.server.rpartition("-")[2])
    calls = load(replace(row, client=("--workload", "echo", "--window", "256")), peer, options)
    lists = load(replace(row, client=("--workload", "list", "--tools", str(tools))), peer, options)
    starts = run_client(row, peer, ["--workload", "start", "--starts", str(options.starts)])
    for report in (calls, lists, starts):
        if "void" in report:
            return report
    return {
        **calls,
        "us_per_call": 1e6 / calls["calls_per_second"],
        "list_us": lists["p50"],
        "list_ns_per_tool": lists["p50"] * 1000 / tools,
        "start_ms": starts["p50"],
    }


def tools_growth(row: Row, peer: Peer, options: Options) -> Result:
    """How a figure of 1,000 tools compares with that of 10, or of 100 where that says more."""
    figure, least = ("list_ns_per_tool", 100) if row.name == "W5-tools-list" else ("us_per_call", 10)
    few, most = (measure_tools(tools_row(tools), peer, options) for tools in (least, MANY_TOOLS[-1]))
    for report in (few, most):
        if "void" in report:
            return report
    return {**most, "growth": most[figure] / few[figure]}


def tools_row(tools: int) -> Row:
    return Row(
        f"W5-tools-{tools}",
        f"echo, 256 in flight, on a server of {tools:,} tools",
        measure_tools,
        "us_per_call",
        "us/call",
        base="",
        server=many(tools),
        columns=TOOL_COLUMNS,
    )


def tools_growth_row(name: str, title: str) -> Row:
    return Row(
        name,
        title,
        tools_growth,
        "growth",
        "times",
        limit=FLAT,
        base="",
        server=many(MANY_TOOLS[-1]),
        columns=TOOL_COLUMNS,
    )


ROWS = (
    *map(size_row, SIZES),
    Row("W5-growth", "time for 16 MB, compared with 1 MB", grow, "growth", "times", limit=20.0, base=""),
    *map(flight_row, (100, 1000, 10_000)),
    *map(tools_row, MANY_TOOLS),
    tools_growth_row("W5-tools-call", "a call with 1,000 tools, compared with 10 tools"),
    tools_growth_row("W5-tools-list", "list time per tool with 1,000 tools, compared with 100"),
)

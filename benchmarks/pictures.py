"""What each chart shows, and the sentence above it: all of it from the run of record."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from drawing import Bar, Chart, Group
from record import NONE, Record, short
from roster import ASYNC, CLIENT_SDKS, LOAD_CLIENT

KINDS = {"fastrpc": "first", ASYNC: "first", "c": "second", "bare": "second", LOAD_CLIENT: "second"}
ONE_CORE = "both processes on one core"
SIZES = {"100": "100 bytes", "1k": "1 kB", "10k": "10 kB", "100k": "100 kB", "1m": "1 MB", "16m": "16 MB"}


def bar(record: Record, row: str, peer: str, name: str = "", unit: str = "") -> Bar:
    value = record.value(row, peer)
    kind = KINDS.get(peer, "other")
    label = name or record.label(peer, row)
    if isinstance(value, str):
        return Bar(label, None, "took no part" if value == NONE else value, kind)
    return Bar(label, value, f"{short(value)} {unit}".strip(), kind)


def ranked(record: Record, row: str, peers: Iterable[str], descending: bool = False) -> Group:
    """Best first; who has no figure comes last."""
    bars = [bar(record, row, peer) for peer in peers]
    missing = float("-inf") if descending else float("inf")
    bars.sort(key=lambda bar: missing if bar.value is None else bar.value, reverse=descending)
    return Group("", bars)


def best(record: Record, row: str, descending: bool = False) -> tuple[str, str]:
    """The best SDK's name and figure."""
    found = [(record.value(row, peer), peer) for peer in record.others() if peer != "python-loop"]
    values = [(value, peer) for value, peer in found if not isinstance(value, str)]
    if not values:
        return "no SDK here", NONE
    value, peer = max(values) if descending else min(values)
    return record.label(peer, row), short(value)


def latency(record: Record) -> Chart:
    ours, (name, value) = record.cell("W1", "fastrpc"), best(record, "W1")
    return Chart(
        f"Time of one call: fastrpc {ours} µs, the C reference {record.cell('W1', 'c')} µs, "
        f"the fastest SDK, {name}, {value} µs",
        f"Small echo calls over stdio, one at a time, {ONE_CORE}; median, µs; shorter is better",
        [ranked(record, "W1", record.peers)],
    )


def throughput(record: Record) -> Chart:
    ours, (name, value) = record.cell("W2", "fastrpc"), best(record, "W2", descending=True)
    return Chart(
        f"Calls a second: fastrpc {ours}, the C reference {record.cell('W2', 'c')}, "
        f"the fastest SDK, {name}, {value}",
        f"Small echo calls over stdio, 256 in flight, {ONE_CORE}; calls a second; longer is better",
        [ranked(record, "W2", record.peers, descending=True)],
    )


def http(record: Record) -> Chart:
    ours, bare, official = (record.cell("W11", peer) for peer in ("fastrpc", "python-loop", "mcp"))
    name, value = best(record, "W11", descending=True)
    present = [peer for peer in record.peers if ("W11", peer) in record.entries]
    return Chart(
        f"Calls a second over HTTP: fastrpc {ours}, a loop in plain Python {bare}, the fastest SDK, {name}, "
        f"{value}, the official Python SDK {official}",
        "Small echo calls, 64 connections, a core for each side; calls a second; longer is better",
        [ranked(record, "W11", present, descending=True)],
    )


def start(record: Record) -> Chart:
    ours, bare, official = (record.cell("W8", peer) for peer in ("fastrpc", "bare", "mcp"))
    return Chart(
        f"Time to start: fastrpc {ours} ms, Python without a program {bare} ms, the official Python SDK "
        f"{official} ms",
        "From starting the process to the answer to initialize, files cached; ms; shorter is better",
        [ranked(record, "W8", [*record.peers, "bare"])],
    )


def memory(record: Record) -> Chart:
    ours, official = (record.cell("memory", peer) for peer in ("fastrpc", "mcp"))
    return Chart(
        f"Memory: fastrpc {ours} MB, the official Python SDK {official} MB",
        "Peak resident memory of the server while it answers small echo calls; MB; shorter is better",
        [ranked(record, "memory", record.peers)],
    )


def sizes(record: Record) -> Chart:
    peers = [peer for peer in ("fastrpc", "c", "python-loop") if peer in record.peers]
    groups = [
        Group(words, [bar(record, f"W5-{name}", peer) for peer in peers]) for name, words in SIZES.items()
    ]
    return Chart(
        "Time by size of the message, ns a byte",
        f"Echo calls in pieces of 4 KB, {ONE_CORE}; shorter is better; a scale a size, from zero",
        groups,
        own_scales=True,
    )


def flight(record: Record) -> Chart:
    counts = (100, 1000, 10_000)
    few, many = (record.cell(f"W5-flight-{calls}", "fastrpc") for calls in (counts[0], counts[-1]))
    groups = [
        Group(
            f"{calls:,} calls in flight",
            [bar(record, f"W5-flight-{calls}", peer) for peer in ("fastrpc", "c") if peer in record.peers],
        )
        for calls in counts
    ]
    return Chart(
        f"Time of a call by calls in flight: fastrpc takes {few} µs with 100, {many} µs with 10,000",
        "Calls of sleep(100) sent at once: time beyond the 100 ms; µs a call; shorter is better",
        groups,
    )


def tools(record: Record) -> Chart:
    counts = (10, 100, 1000)
    figures = (
        ("one call, 256 in flight", "us_per_call", "µs"),
        ("tools/list, by tool", "list_ns_per_tool", "ns"),
        ("spawn to the answer of initialize", "start_ms", "ms"),
        ("peak memory", "peak_rss_kb", "MB"),
    )
    groups = []
    for heading, field, unit in figures:
        bars = []
        for number in counts:
            row = f"W5-tools-{number}"
            entry = record.entries.get((row, "fastrpc"), {})
            found = entry.get("figure", {}).get("median") if field == "us_per_call" else entry.get(field)
            name = f"{number:,} tools"
            if found is None:
                bars.append(Bar(name, None, record.cell(row, "fastrpc"), "first"))
            else:
                value = found / 1024 if unit == "MB" else found
                bars.append(Bar(name, value, f"{short(value)} {unit}", "first"))
        groups.append(Group(heading, bars))
    return Chart(
        "Time of a call, of a list and of the start, and memory, by number of tools",
        f"fastrpc, {ONE_CORE}; shorter is better; a scale a group, from zero",
        groups,
        own_scales=True,
    )


def clients(record: Record) -> Chart:
    ours, official = (record.cell("W13-async", peer) for peer in ("fastrpc", "mcp"))
    without, load_client = record.cell("W13-sync", "fastrpc"), record.cell("W13-async", LOAD_CLIENT)
    bars = [
        bar(record, "W13-async", LOAD_CLIENT),
        bar(record, "W13-sync", "fastrpc", "fastrpc, no event loop"),
        bar(record, "W13-async", "fastrpc", "fastrpc, in an event loop"),
        *(bar(record, "W13-async", sdk) for sdk in CLIENT_SDKS),
    ]
    return Chart(
        f"Time of a call by client: fastrpc's {without} µs without an event loop and {ours} µs in one, "
        f"the official client {official} µs, a client in C {load_client} µs",
        f"Small echo calls of one server over stdio, {ONE_CORE}; median, µs; shorter is better",
        [Group("", bars)],
    )


CHARTS: dict[str, Callable[[Record], Chart]] = {
    "latency": latency,
    "throughput": throughput,
    "http": http,
    "start": start,
    "memory": memory,
    "sizes": sizes,
    "flight": flight,
    "tools": tools,
    "clients": clients,
}


def charts_of(record: Record) -> dict[str, Callable[[Record], Chart]]:
    """All that the record can show; one that is older than a workload has nothing of it."""
    rows = {"http": "W11", "clients": "W13-async"}
    return {name: chart for name, chart in CHARTS.items() if rows.get(name, "W1") in {*record.rows, "W1"}}

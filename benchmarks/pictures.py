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


def ratio(record: Record, row: str) -> str:
    """Fastrpc's ratio to what the row is taken to."""
    found = record.entries.get((row, "fastrpc"), {}).get("ratio")
    return short(found["median"]) if found else NONE


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
        f"One call at a time: fastrpc answers in {ours} µs, {ratio(record, 'W1')} times the C reference's; "
        f"the fastest SDK, {name}, in {value} µs",
        f"W1: p50 of a small echo, {ONE_CORE}; µs, logarithmic; shorter is better",
        "µs",
        [ranked(record, "W1", record.peers)],
    )


def throughput(record: Record) -> Chart:
    ours, (name, value) = record.cell("W2", "fastrpc"), best(record, "W2", descending=True)
    return Chart(
        f"Many calls at once: fastrpc takes {ours} a second, {ratio(record, 'W2')} times what the C "
        f"reference takes; the best SDK, {name}, takes {value}",
        f"W2: small echo calls a second, 256 in flight, {ONE_CORE}; logarithmic; longer is better",
        "calls/s",
        [ranked(record, "W2", record.peers, descending=True)],
    )


def http(record: Record) -> Chart:
    ours, official = (record.cell("W11", peer) for peer in ("fastrpc", "mcp"))
    name, value = best(record, "W11", descending=True)
    present = [peer for peer in record.peers if ("W11", peer) in record.entries]
    return Chart(
        f"Over HTTP: fastrpc takes {ours} calls a second, {ratio(record, 'W11')} times what plain Python "
        f"takes; the best SDK, {name}, takes {value}, the official Python SDK {official}",
        "W11: small echo calls a second, 64 connections, a core each; logarithmic; longer is better",
        "calls/s",
        [ranked(record, "W11", present, descending=True)],
    )


def start(record: Record) -> Chart:
    ours, bare, official = (record.cell("W8", peer) for peer in ("fastrpc", "bare", "mcp"))
    return Chart(
        f"Start: fastrpc answers initialize {ours} ms after its spawn, when Python alone takes {bare} ms; "
        f"the official Python SDK {official} ms",
        "W8: spawn to the answer of initialize, warm cache; ms, logarithmic; shorter is better",
        "ms",
        [ranked(record, "W8", [*record.peers, "bare"])],
    )


def memory(record: Record) -> Chart:
    ours, official = (record.cell("memory", peer) for peer in ("fastrpc", "mcp"))
    return Chart(
        f"Memory: fastrpc peaks at {ours} MB with its event loop; the official Python SDK at {official} MB",
        "Peak resident memory of the server in W1; MB, logarithmic; shorter is better",
        "MB",
        [ranked(record, "memory", record.peers)],
    )


def sizes(record: Record) -> Chart:
    peers = [peer for peer in ("fastrpc", "c", "python-loop") if peer in record.peers]
    groups = [
        Group(words, [bar(record, f"W5-{name}", peer) for peer in peers]) for name, words in SIZES.items()
    ]
    ours, reference = (record.cell("W5-growth", peer) for peer in ("fastrpc", "c"))
    return Chart(
        f"Growth with the size of a message: 16 MB take fastrpc {ours} times as long as 1 MB, "
        f"the C reference {reference} times",
        f"W5: echo, fed in pieces of 4 KB, {ONE_CORE}; ns a byte, logarithmic; shorter is better",
        "ns/byte",
        groups,
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
        f"Growth with calls in flight: with 100 of them a call costs fastrpc {few} µs, with 10,000 {many} µs",
        "W5: calls of sleep(100) sent at once; time beyond the 100 ms, µs a call, logarithmic",
        "µs/call",
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
    growth = record.cell("W5-tools-call", "fastrpc")
    return Chart(
        f"Growth with the number of tools: with 1,000 a call takes fastrpc {growth} times as long as with 10",
        f"W5: 10, 100 and 1,000 tools, {ONE_CORE}; each group has its own scale, from zero",
        "",
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
        f"Clients before one server: a call costs fastrpc's {without} µs without an event loop and {ours} µs "
        f"in one, the official one {official} µs; C takes {load_client} µs",
        f"W13: p50 of a small echo, {ONE_CORE}; µs, logarithmic; shorter is better",
        "µs",
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

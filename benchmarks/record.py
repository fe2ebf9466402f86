"""The run of record, as a reader asks for it: figures, cells of a table, verdicts, names.

Whatever is not there is a word: `not built`, `void`, or a dash where a server took no part. Never a number.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from roster import ASYNC, LOAD_CLIENT, ORIGINAL, PLAIN, SDKS

Entry = dict[str, Any]
NONE = "–"
NOT_YET = "not measured yet"

# How servers are called, behind them the version.
NAMES = {
    "c": ("C reference", ""),
    "c-ready": ("C, bytes ready", ""),
    "fastrpc": ("fastrpc", ""),
    ASYNC: ("fastrpc", "async"),
    PLAIN: ("fastrpc", "plain echo"),
    "python-loop": ("plain Python loop", ""),
    "bare": ("python -c pass", ""),
    LOAD_CLIENT: ("C load client", ""),
    ORIGINAL: ("its own framework", ""),
    "mcp": ("mcp", "(Python)"),
    "mcp-plain": ("mcp", "(Python), plain"),
    "fastmcp": ("fastmcp", "(Python)"),
    "ts-v1": ("TypeScript sdk", ""),
    "ts-v2": ("TypeScript server", ""),
    "rmcp": ("rmcp", "stdio (Rust)"),
    "rmcp-pipes": ("rmcp", "pipes (Rust)"),
    "tower-mcp": ("tower-mcp", "(Rust)"),
    "go-sdk": ("go-sdk", "(Go)"),
    "mcp-go": ("mcp-go", "(Go)"),
}
# The rows of the table of all servers; two are a further figure of a row.
PEER_ROWS = {
    "W1": "W1 µs",
    "W1-two": "W1-two µs",
    "W2": "W2 calls/s",
    "W4": "W4 calls/s",
    "W4-64k": "W4-64k MB/s",
    "W4-1m": "W4-1m MB/s",
    "W6": "W6 p99 µs",
    "W8": "W8 ms",
    "memory": "MB",
    "W11": "W11 calls/s",
    "W11-1": "W11-1 µs",
    "eof": "answers after the end of input, of 72",
    "-32700": "error -32700",
}
FURTHER = {"memory": ("W1", "peak_rss_kb", 1024), "-32700": ("eof", "parse_error", 1)}
# Behind a figure; what the row's title says anyway is left out.
UNITS = {"us": " µs", "us/call": " µs/call", "times": "×", "of the older wire": "×", "answers": ""}


def short(value: float) -> str:
    """Three significant digits: 4.65 M, 82.5 k, 412, 5.35."""
    if abs(value) >= 999_500:
        return f"{value / 1e6:.3g} M" if abs(value) < 999.5e6 else f"{value / 1e6:,.0f} M"
    if abs(value) >= 9_995:
        return f"{value / 1e3:.3g} k" if abs(value) < 99_950 else f"{value / 1e3:.0f} k"
    if abs(value) >= 999.5:
        return f"{float(f'{value:.3g}'):,.0f}"
    return f"{value:.3g}"


def count(number: int, word: str) -> str:
    return f"one {word}" if number == 1 else f"{number} {word}s"


def unit_of(entry: Entry) -> str:
    return UNITS.get(entry["unit"], f" {entry['unit']}")


@dataclass(frozen=True)
class Run:
    """One of the runs that a record is of."""

    day: str
    commit: str
    machine: str
    load: float
    python: str
    rounds: int
    rows: frozenset[str]

    @staticmethod
    def of(document: Entry, rows: frozenset[str]) -> Run:
        hardware = document["machine"]
        changed = " with files changed" if document.get("changed_files") else ""
        return Run(
            str(document["created"]).partition("T")[0],
            f"`{str(document['commit'])[:10] or 'unknown'}`{changed}",
            f"{hardware['processor']}, {count(hardware['cpus'], 'core')}",
            hardware["load_before"],
            "CPython " + str(document["versions"]["python"]).partition(" ")[0],
            document["options"]["rounds"],
            rows,
        )


@dataclass(frozen=True)
class Verdict:
    """One figure beside its bar and what to go for, each written with its unit."""

    name: str
    value: str
    less_is_better: bool
    bar: str | None = None
    goal: str | None = None
    holds: bool = False
    reached: bool = False
    silence: str = ""  # why there is none

    def distance(self) -> str:
        return f"{self.value}, {'at most' if self.less_is_better else 'at least'} {self.bar}"

    def cells(self) -> list[str]:
        """The bar, what to go for, and what came of them."""
        if self.silence:
            return ["", "", "none"]
        sign = "≤" if self.less_is_better else "≥"
        words = [] if self.bar is None else ["holds" if self.holds else "**missed**"]
        if self.reached:
            words.append("reached")
        bounds = [f"{sign} {bound}" if bound else "" for bound in (self.bar, self.goal)]
        return [*bounds, ", ".join(words)]


class Record:
    """A results file. What it lacks is said where it is asked for."""

    def __init__(self, document: Entry) -> None:
        self.entries: dict[tuple[str, str], Entry] = {}
        for entry in document["rows"]:
            self.entries[entry["row"], entry["peer"]] = entry
        self.rows = list(dict.fromkeys(row for row, _ in self.entries))
        present = {peer for _, peer in self.entries}
        order = [peer for peer in ("fastrpc", *NAMES) if peer in present]
        beside = ("bare", "c-ready", PLAIN, LOAD_CLIENT, ORIGINAL)
        self.peers = list(dict.fromkeys(peer for peer in order if peer not in beside))
        self.versions: Entry = document["versions"]
        later = document.get("later", ())
        first = frozenset(self.rows).difference(*(run["rows"] for run in later))
        self.runs = [Run.of(document, first), *(Run.of(run, frozenset(run["rows"])) for run in later)]
        ours = self.versions.get("fastrpc", {})
        self.source = f"{ours.get('version', '?')}, {ours.get('source', '?')}"

    def runs_of(self, columns: Any) -> list[Run]:
        """The runs that these columns are of; of nothing that was measured, all."""
        names = {FURTHER.get(column, (column,))[0] for column in columns}
        return [run for run in self.runs if run.rows & names] or self.runs

    def others(self) -> list[str]:
        """Everybody but fastrpc, the C reference and what serves no calls."""
        return [peer for peer in self.peers if peer not in ("fastrpc", ASYNC, "c")]

    def label(self, peer: str, row: str = "") -> str:
        """The name with the version of the SDK, as short as it says enough; over HTTP there is no stdio."""
        name, more = NAMES.get(peer, (peer, ""))
        if row.startswith(("W11", "W12-http")):
            more = more.removeprefix("stdio ")
        facts = {} if peer in ("fastrpc", ASYNC, PLAIN) else self.versions.get(peer, {})
        version = ".".join(str(facts.get("version", "")).split(".")[:2])
        return " ".join(word for word in (name, version, more) if word).replace(" ,", ",")

    # ------------------------------------------------------------------------------------- figures

    def figure(self, row: str, peer: str) -> float:
        """The median, or 0 where there is none."""
        found = self.value(row, peer)
        return found if isinstance(found, float) else 0.0

    def value(self, row: str, peer: str) -> float | str:
        """The median of a row or a further figure; the word for it where there is none."""
        name, field, divisor = FURTHER.get(row, (row, "", 1))
        entry = self.entries.get((name, peer))
        if entry is None:
            return NOT_YET if peer == ASYNC and name in self.rows else NONE
        if "missing" in entry:
            return "not built"
        if "void" in entry:
            return "void"
        found = entry.get(field, NONE) if field else entry["figure"]["median"]
        return found if isinstance(found, str) else float(found) / divisor

    def cell(self, row: str, peer: str) -> str:
        found = self.value(row, peer)
        return found if isinstance(found, str) else short(found)

    def reasons(self, columns: Any, peers: Collection[str] | None = None) -> list[str]:
        """Why there are cells without a figure, one sentence for each reason; of these peers, or of all."""
        said: dict[str, None] = {}
        names = {FURTHER.get(column, (column,))[0] for column in columns}
        for (row, peer), entry in self.entries.items():
            if row not in names or (peers is not None and peer not in peers):
                continue
            if "missing" in entry:
                said[f"{self.label(peer)}: {entry['missing']}."] = None
            elif "void" in entry:
                said[f"{self.label(peer)}, {row}: void, {entry['void']}."] = None
        return ["  \n".join(said)] if said else []

    def base_cell(self, row: str, entry: Entry) -> str:
        base = entry.get("ratio", {}).get("to", "")
        return f"{self.label(base, row)} {self.cell(row, base)}" if base else ""

    def with_unit(self, entry: Entry) -> str:
        return short(entry["figure"]["median"]) + unit_of(entry)

    # ------------------------------------------------------------------------------------ verdicts

    def verdicts(self) -> list[Verdict]:
        """All that is asked of fastrpc and has an answer."""
        found = []
        for (row, peer), entry in self.entries.items():
            if peer == "fastrpc" and "figure" in entry:
                found.append(self.verdict(entry))
            if peer in ("fastrpc", ASYNC) and "figure" in entry:
                name = f"{row} async" if peer == ASYNC else row
                found += [self.sdk_verdict(name, times) for times in entry.get("times_sdks", ())]
        return found + [self.sdk_verdict(row, times) for row, times in self.slowest_shapes()]

    def slowest_shapes(self) -> list[tuple[str, Entry]]:
        """The slowest of W12 beside the best SDK's echo, however that is written; only what is measured."""
        found: list[tuple[str, Entry]] = []
        shapes = [name for name in self.rows if name.startswith("W12-") and self.figure(name, "fastrpc")]
        over_http = [name for name in shapes if name.startswith("W12-http-")]
        over_stdio = [name for name in shapes if name not in over_http]
        for row, shapes, echo in (("W12", over_stdio, "W2"), ("W12-http", over_http, "W11")):
            sdks = [peer for peer in SDKS if self.figure(echo, peer)]
            if sdks and shapes:
                best = max(sdks, key=lambda peer: self.figure(echo, peer))
                slowest = min(shapes, key=lambda name: self.figure(name, "fastrpc"))
                times = self.figure(slowest, "fastrpc") / self.figure(echo, best)
                about = {"which": "best", "peer": best, "slowest": slowest, "echo": echo}
                spread = dict.fromkeys(("median", "least", "most"), times)
                found.append((row, {**about, **spread, "bar": 1.0, "holds": times >= 1.0}))
        return found

    def verdict(self, entry: Entry) -> Verdict:
        """Of the ratio, or of the figure itself where that is what is bounded."""
        of_ratio = entry.get("judged") == "ratio"
        value = f"{short(entry['ratio']['median'])}×" if of_ratio else self.with_unit(entry)
        unit = "×" if of_ratio else unit_of(entry)
        return self._verdict(str(entry["row"]), value, entry, bool(entry["less_is_better"]), unit)

    def sdk_verdict(self, row: str, times: Entry) -> Verdict:
        which = "the best SDK" if times["which"] == "best" else times["which"]
        return self._verdict(f"{row} against {which}", f"{short(times['median'])}×", times, False, "×")

    def _verdict(self, name: str, value: str, entry: Entry, less_is_better: bool, unit: str) -> Verdict:
        bar, goal = (f"{entry[key]:,g}{unit}" if key in entry else None for key in ("bar", "goal"))
        return Verdict(
            name,
            value,
            less_is_better,
            bar,
            goal,
            bool(entry.get("holds")),
            bool(entry.get("reached")),
            str(entry.get("no_verdict", "")),
        )

    def without_figure(self, peer: str) -> list[str]:
        """The rows that can have no verdict, by the reason why."""
        found: dict[str, list[str]] = {}
        for (row, name), entry in self.entries.items():
            reason = entry.get("no_verdict") or entry.get("missing") or entry.get("void")
            if name == peer and reason:
                found.setdefault(str(reason), []).append(row)
        return [f"{', '.join(rows)} ({reason})" for reason, rows in found.items()]

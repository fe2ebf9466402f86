"""Calls, errors by outcome, p50 and p99 of each tool, resource and prompt: counted by an observer, printed to
standard error on SIGUSR1 and at the end of serving (`fastrpc serve --stats`).

Durations are kept in histograms of a fixed size, so a quantile costs 5 KB and is at most 3.2 % off. At most
`MOST_NAMES` names have a separate row; the calls of further ones are counted together, and so are those
of unknown names. Costs about a microsecond a call, on the thread of the observers; imported on demand. When
serving begins and ends is left to `Server.print_statistics`.
"""

from __future__ import annotations

import os
import signal
from array import array
from math import ceil, frexp
from threading import Lock, Thread

from fastrpc import diagnostics, forks
from fastrpc._core import signal_pipe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fastrpc._core.recorder import CallRecord
    from fastrpc.telemetry.observers import Observers

LOWEST = -4  # 2 ** -4 µs: shorter durations count as that
HIGHEST = 36  # 2 ** 36 µs, 19 hours: longer ones count as that
STEPS = 16
"""Buckets of equal width between a power of two and the next: half of one is 1/32 of the lower power."""

MOST_NAMES = 200
MOST_UNPROVEN = 32
"""The number of names that may have a row before a call has reached their function or guard."""
LONGEST_NAME = 48
PROVES_NOTHING = frozenset(("unknown", "invalid", "protocol_error"))
"""Outcomes that do not prove that a name exists: a caller could invent any number of names."""
NO_ERRORS = frozenset(("ok", "input_required"))
KINDS = ("tool", "resource", "prompt", "completion")
UNKNOWN = "(unknown)"
OTHERS = "(others)"

SIGNAL = getattr(signal, "SIGUSR1", 0)
JOIN_SECONDS = 2.0


class Histogram:
    """Durations in microseconds, log-linear: `STEPS` buckets for each power of two (as HdrHistogram does)."""

    def __init__(self) -> None:
        self.count = 0
        self.lowest = float("inf")
        self.highest = 0.0
        self._counts = array("Q", bytes(8 * STEPS * (HIGHEST - LOWEST)))

    def add(self, duration_us: float) -> None:
        fraction, exponent = frexp(duration_us)  # 0.5 <= fraction < 1
        at = (exponent - 1 - LOWEST) * STEPS + int((fraction - 0.5) * 2 * STEPS)
        counts = self._counts
        if duration_us <= 0 or at < 0:
            at = 0
        elif at >= len(counts):
            at = len(counts) - 1
        counts[at] += 1
        self.count += 1
        if duration_us < self.lowest:
            self.lowest = duration_us
        if duration_us > self.highest:
            self.highest = duration_us

    def include(self, other: Histogram) -> None:
        """Count the durations of another histogram in."""
        for at, count in enumerate(other._counts):
            self._counts[at] += count
        self.count += other.count
        self.lowest, self.highest = min(self.lowest, other.lowest), max(self.highest, other.highest)

    def quantile(self, share: float) -> float:
        """Return the duration that a `share` (0 to 1) of all does not exceed, 0 if there is none: the middle
        of its bucket, within the shortest and the longest duration."""
        if self.count == 0:
            return 0.0
        left = max(1, ceil(share * self.count))
        at = -1
        while left > 0:
            at += 1
            left -= self._counts[at]
        power, step = divmod(at, STEPS)
        middle = 2.0 ** (LOWEST + power) * (1 + (step + 0.5) / STEPS)
        return float(min(max(middle, self.lowest), self.highest))


class Row:
    """The calls of one name."""

    def __init__(self) -> None:
        self.durations = Histogram()
        self.outcomes: dict[str, int] = {}
        self.proven = False

    @property
    def errors(self) -> int:
        return sum(count for outcome, count in self.outcomes.items() if outcome not in NO_ERRORS)


class Statistics:
    """Counts the records of calls, as an observer, and shows them as a table. Thread-safe."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._rows: dict[tuple[str, str], Row] = {}
        self._unproven = 0

    def take(self, records: Sequence[CallRecord]) -> None:
        """Count a batch of records in."""
        with self._lock:
            for record in records:
                outcome = record.outcome
                row = self._rows.get((record.kind, record.name))
                if row is None or (not row.proven and outcome not in PROVES_NOTHING):
                    row = self._row_of(record.kind, record.name, outcome)
                row.outcomes[outcome] = row.outcomes.get(outcome, 0) + 1
                row.durations.add(record.total_us)

    def _row_of(self, kind: str, name: str, outcome: str) -> Row:
        """Return the row of a name that has none yet, or that this call proves to exist."""
        row = self._rows.get((kind, name))
        if row is not None:
            row.proven = True
            self._unproven -= 1
            return row
        proven = outcome not in PROVES_NOTHING
        if outcome == "unknown":
            return self._shared_row(kind, UNKNOWN)
        if len(self._rows) >= MOST_NAMES or not (proven or self._unproven < MOST_UNPROVEN):
            return self._shared_row(kind, OTHERS)
        row = self._rows[kind, name] = Row()
        row.proven = proven
        self._unproven += not proven
        return row

    def _shared_row(self, kind: str, name: str) -> Row:
        row = self._rows.get((kind, name))
        if row is None:
            row = self._rows[kind, name] = Row()
            row.proven = True
        return row

    def table(self) -> str:
        """Return a table of all calls so far: kinds in their order, the names that are called most first."""
        with self._lock:
            rows = sorted(
                self._rows.items(), key=lambda item: (KINDS.index(item[0][0]), -item[1].durations.count)
            )
            lines = [_cells(kind, name, row) for (kind, name), row in rows]
        if not lines:
            return ""
        return _aligned([("kind", "name", "calls", "errors", "p50", "p99", "not ok"), *lines])

    def durations_of(self, tools: Iterable[str]) -> Histogram:
        """Return the durations of all calls of some tools so far."""
        found = Histogram()
        with self._lock:
            for name in tools:
                row = self._rows.get(("tool", name))
                if row is not None:
                    found.include(row.durations)
        return found

    @property
    def calls(self) -> int:
        with self._lock:
            return sum(row.durations.count for row in self._rows.values())


def _cells(kind: str, name: str, row: Row) -> tuple[str, ...]:
    failed = sorted(
        ((outcome, count) for outcome, count in row.outcomes.items() if outcome != "ok"),
        key=lambda item: -item[1],
    )
    return (
        kind,
        diagnostics.shown(name, LONGEST_NAME),
        f"{row.durations.count:,}",
        f"{row.errors:,}",
        duration_text(row.durations.quantile(0.5)),
        duration_text(row.durations.quantile(0.99)),
        ", ".join(f"{count:,} {outcome}" for outcome, count in failed),
    )


def _aligned(rows: list[tuple[str, ...]]) -> str:
    """Return rows with columns of equal width: words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if 2 <= at <= 5 else cell.ljust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def duration_text(duration_us: float) -> str:
    """Return a duration with three digits that count, and its unit."""
    for unit, size in (("µs", 1.0), ("ms", 1e3), ("s", 1e6)):
        scaled = duration_us / size
        if scaled < 999.5 or unit == "s":
            break
    digits = 2 if scaled < 9.995 else 1 if scaled < 99.95 else 0
    return f"{scaled:.{digits}f} {unit}"


class StatisticsPrinter:
    """Prints the statistics of one server while this process serves: on SIGUSR1, and at the end.

    A separate thread waits for the signal, so printing holds up no answer. In a child process that a
    handler forks the signal is no longer the server's, and nothing is printed. Where there is no SIGUSR1 only
    `end` prints.
    """

    def __init__(self, observers: Observers) -> None:
        """Begin. Raises OSError if there is no descriptor left for a pipe."""
        self._observers = observers
        self.statistics = Statistics()
        self._over = False
        self._generation = forks.generation
        observers.add(self.statistics.take)
        forks.in_child(signal_pipe.forget)
        self._pipe = signal_pipe.catch(SIGNAL)
        self._thread = Thread(target=self._wait, name="fastrpc-statistics", daemon=True)
        self._thread.start()

    def _wait(self) -> None:
        while True:
            os.read(self._pipe, 1024)  # several signals while one table was printed are one
            if self._over:
                return
            self.write("calls so far")

    def write(self, title: str) -> None:
        """Drain the observers, and print. Bounded in time."""
        self._observers.drain()
        dropped = self._observers.recorder.dropped
        text = f"fastrpc: {title}: {self.statistics.calls:,} (process {os.getpid()})"
        if dropped:
            text += f"; {dropped:,} more were dropped, uncounted"
        table = self.statistics.table()
        diagnostics.write_text(f"{text}\n{table}\n" if table else f"{text}\n")

    def end(self) -> None:
        """The server has ended: print a last time, and restore the signal's handler."""
        if self._over or self._generation != forks.generation:
            return
        self._over = True
        signal_pipe.wake()
        self._thread.join(JOIN_SECONDS)
        self.write("calls")
        self._observers.remove(self.statistics.take)
        signal_pipe.release()
        forks.forget(signal_pipe.forget)

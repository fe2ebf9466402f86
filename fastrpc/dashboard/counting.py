"""Counts the calls of an audit log for charts: once for each record, in the process of a job.

The state has how far each segment was read, and for each span (`SPANS`) rows of a slot of time, a tool and a
caller: calls, errors, refusals, and how often each duration came. Durations are counted in classes that are
9 % wide, so that any rows can be added, and a percentile is right within 5 %. The work goes on where it
ended; what is older than a span is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from math import log2
from time import monotonic, time
from typing import Any, NamedTuple

import orjson

from fastrpc.guard.audit import segments
from fastrpc.guard.audit.reading import milliseconds_of
from fastrpc.regular_files import open_regular

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.dashboard.log_jobs import LogJob


class Span(NamedTuple):
    """A span of time in slots of `step` seconds."""

    step: int
    slots: int

    @property
    def seconds(self) -> int:
        return self.step * self.slots


SPANS = {"hour": Span(60, 60), "day": Span(900, 96), "week": Span(3600, 168)}
FORMAT = 1
"""The number of the form of the state; the log is counted anew if it is another one."""
CLASSES = 8
"""Classes of durations for each doubling."""
CALLS, ERRORS, REFUSALS, DURATIONS = range(4)
MOST_PAIRS = 300
"""Tools and callers that are counted by themselves in a slot; further ones are counted together."""
LONGEST_NAME = 200
PART = 1024 * 1024
WRITE_SECONDS = 2.0
Counts = list[Any]
"""Calls, errors, refusals, and a dict of the classes of durations with how many calls are in each."""


class Slots:
    """The counts of each span, by slot, tool and caller. `now` is in seconds since 1970."""

    def __init__(self, rows: dict[str, list[list[Any]]], now: float) -> None:
        self._spans: dict[str, dict[int, dict[tuple[str, str], Counts]]] = {name: {} for name in SPANS}
        self._first = {name: int(now) // span.step - span.slots + 1 for name, span in SPANS.items()}
        for name, found in rows.items():
            for slot, tool, caller, calls, errors, refusals, durations in found:
                if slot >= self._first[name]:
                    pairs = self._spans[name].setdefault(slot, {})
                    counted = {int(each): count for each, count in durations.items()}
                    pairs[tool, caller] = [calls, errors, refusals, counted]

    def add(self, line: bytes) -> None:
        """Count a line, if it is the outcome of a call."""
        try:
            record = orjson.loads(line)
            tool, outcome = record["tool"], record["outcome"]
            milliseconds = milliseconds_of(record["id"])
        except (ValueError, KeyError, TypeError):
            return
        if record.get("category") != "mcp_server" or outcome == "begun" or milliseconds is None:
            return
        pair = _name(tool), _name(record.get("actor"))
        is_refused = record.get("decision") == "deny"
        duration = None if is_refused else class_of(record.get("total_us"))
        for name, span in SPANS.items():
            slot = milliseconds // 1000 // span.step
            if slot < self._first[name]:
                continue
            pairs = self._spans[name].setdefault(slot, {})
            if pair not in pairs and len(pairs) >= MOST_PAIRS:
                pair = "", ""
            counts = pairs.setdefault(pair, [0, 0, 0, {}])
            counts[CALLS] += 1
            counts[ERRORS] += not is_refused and outcome != "ok"
            counts[REFUSALS] += is_refused
            if duration is not None:
                counts[DURATIONS][duration] = counts[DURATIONS].get(duration, 0) + 1

    def rows(self) -> dict[str, list[list[Any]]]:
        """Return the counts as JSON has them."""
        return {
            name: [
                [slot, *pair, *counts]
                for slot, pairs in sorted(slots.items())
                for pair, counts in pairs.items()
            ]
            for name, slots in self._spans.items()
        }


def _name(value: Any) -> str:
    text = value if isinstance(value, str) else orjson.dumps(value).decode()
    return text[:LONGEST_NAME]


def class_of(microseconds: Any) -> int | None:
    """Return the class of a duration, None for what is no number."""
    if isinstance(microseconds, bool) or not isinstance(microseconds, int | float):
        return None
    return int(log2(max(1.0, microseconds)) * CLASSES)


def added(rows: Iterable[Counts]) -> Counts:
    """Return the sum of counts."""
    found: Counts = [0, 0, 0, {}]
    for row in rows:
        for each in (CALLS, ERRORS, REFUSALS):
            found[each] += row[each]
        for key, count in row[DURATIONS].items():
            found[DURATIONS][int(key)] = found[DURATIONS].get(int(key), 0) + count
    return found


def percentile(counts: Counts, share: float) -> float | None:
    """Return the duration, in milliseconds, that a share of the calls did not exceed; None without calls."""
    left = share * sum(counts[DURATIONS].values())
    for each in sorted(counts[DURATIONS]):
        left -= counts[DURATIONS][each]
        if left <= 0:
            middle: float = 2 ** ((each + 0.5) / CLASSES) / 1000
            return middle
    return None


# --- the work ---------------------------------------------------------------------------------------------


def work(job: LogJob, arguments: dict[str, Any]) -> None:
    """Count what was added to the log since the last time. Raises OSError."""
    state, now = job.state(), time()
    if state.get("format") != FORMAT:
        state = {}
    at: dict[str, int] = state.get("at", {})
    slots = Slots(state.get("rows", {}), now)
    names = segments.names_in(job.folder)[::-1]
    at = {name.file: at.get(name.file, 0) for name in names}
    written = monotonic()

    def write(*, is_whole: bool) -> None:
        is_whole = is_whole or bool(state.get("is_whole"))
        known = {"format": FORMAT, "at": at, "as_of": now, "is_whole": is_whole}
        job.write({**known, "rows": slots.rows()})

    oldest = now - max(span.seconds for span in SPANS.values())
    for name in names:
        for part, end in _parts(os.path.join(job.folder, name.file), at[name.file], oldest):
            for line in part.split(b"\n"):
                slots.add(line)
            at[name.file] = end
            if monotonic() - written > WRITE_SECONDS:
                write(is_whole=False)
                written = monotonic()
    write(is_whole=True)


def _parts(path: str, at: int, oldest: float) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines of a segment from an offset on, with the offset of their end; nothing of a segment
    that was not changed since a time, or that retention has removed."""
    try:
        descriptor = open_regular(path, follow=False)
    except OSError:
        return
    try:
        facts = os.fstat(descriptor)
        if facts.st_mtime < oldest:
            return
        while at < facts.st_size:
            part, newline, _ = os.pread(descriptor, PART, at).rpartition(b"\n")
            if not newline:
                return  # an incomplete line at the end
            at += len(part) + 1
            yield part, at
    finally:
        os.close(descriptor)

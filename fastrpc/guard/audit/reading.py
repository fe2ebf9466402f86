"""Reads an audit log while processes write it: records by their fields and times, from either end, or by id.

The lines of all segments are merged by the time at which they were written. That time is in a record's id;
its field `time` may be earlier, such as that of the call. Within a chain it only grows, so a place in a
segment is found by bisection: what a page of records costs depends on what it shows, not on how long the log
is, unless few records match. Takes no lock and writes nothing. Yields what can be read of a damaged log;
`verify` reports the damage.
"""

from __future__ import annotations

import json
import os
import re
from collections import deque
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from heapq import heappop, heappush
from itertools import islice, takewhile
from time import sleep
from typing import Any, NamedTuple

from fastrpc import globs
from fastrpc._core.audit_lines import ALPHABET
from fastrpc.guard.audit import segments
from fastrpc.guard.audit.records import fields_of as fields_of
from fastrpc.guard.audit.records import rfc3339
from fastrpc.guard.times import seconds_in
from fastrpc.regular_files import open_regular

Record = dict[str, Any]
Entry = tuple[str, bytes]
"""The time of a line, and the line without its newline."""
Matches = Callable[[bytes], bool]

FOLDER = "audit"
"""The name of the default folder in the state folder."""
FIELDS = {
    "category": "category",
    "caller": "actor",
    "tool": "tool",
    "outcome": "outcome",
    "risk": "risk",
    "rule": "rule",
    "approval": "approval",
    "task": "task",
}
"""What records can be searched by, and the field of a record that has it."""
BLOCK = 64 * 1024
SLACK_MILLISECONDS = 2000
"""By how much the times of files, and of their names, may differ from those of their records."""
FIRST, PROBE = 16 * 1024, 256 * 1024
"""Bytes in which a record is searched, at the beginning of a segment and in it: more than a line has."""
PAUSE_AFTER, PAUSE_SECONDS = 200, 0.001
"""After how many lines an `UnhurriedFilter` pauses, and for how long."""
LATEST, AFTER_CHAINS = "9", "~"
"""A time after that of every record, and what is after the name of every chain."""


class Place(NamedTuple):
    """A line's place in the order of a log: its time, its chain, and its number in the chain."""

    time: str
    chain: str
    sequence: int

    def __str__(self) -> str:
        return f"{self.time}_{self.chain}_{self.sequence}"

    @classmethod
    def read(cls, text: str) -> Place | None:
        """Return the place that `str` has written, None for another text."""
        found = re.fullmatch(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)_([0-9A-Z]{16})_(\d{1,18})", text)
        return None if found is None else cls(found[1], found[2], int(found[3]))


# --- which records ----------------------------------------------------------------------------------------


def time_of(text: str) -> str:
    """Return a time that a person has written, in the form of records: RFC 3339, or how long ago; "" for "".
    Raises ValueError."""
    if not text:
        return ""
    ago = seconds_in(text)
    try:
        if ago is not None:
            found = datetime.now(timezone.utc) - timedelta(seconds=ago)
        else:
            found = datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text))
            if found.tzinfo is None:
                found = found.replace(tzinfo=timezone.utc)
            found = found.astimezone(timezone.utc)
    except (ValueError, OverflowError):
        words = f"expected RFC 3339 such as 2026-04-22T10:15:23Z, or 2h, got {text!r:.80}"
        raise ValueError(words) from None
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class RecordFilter:
    """Which lines are wanted. `wanted` has globs by the names of `FIELDS`; `since` and `until` are times in
    the form of records, "" for none. Without globs, the log's lines about missing records are wanted, too."""

    def __init__(self, wanted: dict[str, str], since: str = "", until: str = "") -> None:
        self.since, self.until = since, until
        self._wanted = [(FIELDS[name], glob) for name, glob in wanted.items()]
        plain = (glob for glob in wanted.values() if glob.isascii() and not _SIGN.search(glob))
        self._texts = [json.dumps(glob)[1:-1].encode() for glob in plain]

    def __call__(self, line: bytes) -> bool:
        if line.isascii() and not all(text in line for text in self._texts):
            return False  # without parsing it
        fields = fields_of(line)
        if fields.get("kind") in ("segment", "checkpoint") or (self._wanted and "kind" in fields):
            return False
        time = str(fields.get("time", ""))
        if time < self.since or (self.until and time >= self.until):
            return False
        return all(_is_like(fields.get(name), glob) for name, glob in self._wanted)


class UnhurriedFilter(RecordFilter):
    """A filter that pauses after some lines: the process that reads may serve calls at the same time."""

    _number = 0

    def __call__(self, line: bytes) -> bool:
        self._number += 1
        if self._number % PAUSE_AFTER == 0:
            sleep(PAUSE_SECONDS)
        return super().__call__(line)


_SIGN = re.compile(r"[*?]")


def _is_like(value: Any, glob: str) -> bool:
    """Return whether a value, or one of its members, matches: an actor may be an object."""
    if isinstance(value, dict):
        return any(_is_like(each, glob) for each in value.values())
    return value is not None and globs.matches(str(value), glob)


# --- in the order of time ---------------------------------------------------------------------------------


def entries(folder: str, matches: Matches, since: str = "") -> Iterator[Entry]:
    """Yield the matching lines of all segments in the order of time. A segment is opened when its first line
    may be the next one. Segments that have not been written after `since` are skipped."""
    names = (name for name in segments.names_in(folder) if not since or _changed(folder, name) >= since)
    waiting = deque((_earliest(name), name) for name in names)
    heap: list[tuple[str, int, bytes, Iterator[bytes]]] = []
    count = 0
    while waiting or heap:
        while waiting and (not heap or heap[0][0] >= waiting[0][0]):
            _push(heap, count, _lines(folder, waiting.popleft()[1]), matches)
            count += 1
        if heap:
            time, number, line, rest = heappop(heap)
            yield time, line
            _push(heap, number, rest, matches)


def _push(
    heap: list[tuple[str, int, bytes, Iterator[bytes]]],
    number: int,
    lines: Iterator[bytes],
    matches: Matches,
) -> None:
    for line in lines:
        if matches(line):
            heappush(heap, (moment_of(line), number, line, lines))
            return


def moment_of(line: bytes) -> str:
    """Return when a line was written."""
    found = _ID.search(line, 0, 160)
    if found is not None:
        return rfc3339(_milliseconds(found[1]))
    return str(fields_of(line).get("time", ""))


_ID = re.compile(rb'"id":"audit_([0-9A-Z]{10})[0-9A-Z]*"')


def milliseconds_of(identifier: str) -> int | None:
    """Return when the record with an id was written, in milliseconds since 1970; None for another text."""
    found = re.fullmatch(r"audit_([0-9A-Z]{10})[0-9A-Z]*", identifier)
    return None if found is None else _milliseconds(found[1].encode())


def _milliseconds(digits: bytes) -> int:
    found = 0
    for character in digits.decode():
        found = found * 32 + max(0, ALPHABET.find(character))
    return min(found, 253402300799999)  # the year 9999


def _earliest(name: segments.SegmentName) -> str:
    """Return a time that no record of a segment precedes, "" if its name has no time. The name has the time
    at which the segment was begun; records may have waited for it."""
    try:
        begun = datetime.strptime(name.time, "%Y%m%dT%H%M%S.%fZ").replace(tzinfo=timezone.utc)
    except ValueError:
        return ""
    return rfc3339(int(begun.timestamp() * 1000) - SLACK_MILLISECONDS)


def _changed(folder: str, name: segments.SegmentName) -> str:
    """Return the latest time at which a segment may have been changed: file times may be coarse. Return "" if
    retention has removed the segment meanwhile."""
    try:
        changed = os.stat(os.path.join(folder, name.file)).st_mtime
    except OSError:
        return ""
    return rfc3339(int(changed * 1000) + SLACK_MILLISECONDS)


def _lines(folder: str, name: segments.SegmentName) -> Iterator[bytes]:
    """Yield the whole lines of a segment; none if retention has dropped it meanwhile."""
    try:
        descriptor = open_regular(os.path.join(folder, name.file), follow=False)
    except OSError:
        return
    with open(descriptor, "rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line[:-1]


# --- the newest first -------------------------------------------------------------------------------------


def newest(folder: str, before: Place | None = None) -> Iterator[tuple[Place, bytes]]:
    """Yield the lines of all segments, the newest first, from the one before a place on. A segment is opened
    when its last line may be the next one. Each line is at the same place in every reading."""
    limit = before or Place(LATEST, "", 0)
    changed = ((_changed(folder, name), name) for name in segments.names_in(folder))
    waiting = deque(sorted(((last, name) for last, name in changed if last), reverse=True))
    heap: list[tuple[_Later, int, bytes, Iterator[tuple[Place, bytes]]]] = []

    def push(number: int, lines: Iterator[tuple[Place, bytes]]) -> None:
        for place, line in lines:
            heappush(heap, (_Later(*place), number, line, lines))
            return

    while waiting or heap:
        while waiting and (not heap or heap[0][0].time <= waiting[0][0]):
            push(len(waiting), _placed(folder, waiting.popleft()[1], limit))
        if not heap:
            break
        first, number, line, rest = heappop(heap)
        yield first, line
        other = Place(*heap[0][0]) if heap else Place("", "", 0)
        unopened = waiting[0][0] if waiting else ""
        for place, line in rest:
            if place <= other or place.time <= unopened:
                heappush(heap, (_Later(*place), number, line, rest))
                break
            yield place, line  # most lines follow one of the same segment


class _Later(Place):
    """A place in a heap, of which the latest comes first."""

    def __lt__(self, other: tuple[Any, ...]) -> bool:
        return tuple(self) > tuple(other)


def _placed(folder: str, name: segments.SegmentName, limit: Place) -> Iterator[tuple[Place, bytes]]:
    """Yield the lines of a segment before a place, the last one first, each with its place. A line of the log
    itself may be later than the record after it: it gets that one's time."""
    time = LATEST
    try:
        known, moment = b"", ""
        for line in _lines_backwards(os.path.join(folder, name.file), limit.time):
            found = _BEGIN.match(line)
            if found is None:
                moment = moment_of(line)
            elif found[2] != known:
                known, moment = found[2], rfc3339(_milliseconds(found[2]))
            time = min(time, moment or time)
            found = found or _SEQUENCE.match(line)
            place = Place(time, name.chain, int(found[1]) if found else 0)
            if place < limit:
                yield place, line
    except OSError:
        return  # retention has removed it meanwhile


_SEQUENCE = re.compile(rb'\{"seq":(\d{1,18}),')


def _lines_backwards(path: str, until: str = LATEST) -> Iterator[bytes]:
    """Yield the whole lines of a file, the last one first; without those at the end that were written after a
    time, except some. Raises OSError."""
    descriptor = open_regular(path, follow=False)
    try:
        at = os.fstat(descriptor).st_size
        if until < LATEST:
            at = _end_of(descriptor, at, until)
        rest = b""
        is_end = True
        while at:
            size = min(BLOCK, at)
            at -= size
            first, *lines = (os.pread(descriptor, size, at) + rest).split(b"\n")
            if lines and is_end:
                lines.pop()  # empty, or an incomplete line
                is_end = False
            yield from reversed(lines)
            rest = first
        if rest and not is_end:
            yield rest
    finally:
        os.close(descriptor)


def _end_of(descriptor: int, size: int, until: str) -> int:
    """Return an offset after all lines that were not written after a time, by bisection. What the times of
    the log's own lines are is not looked at: records may have waited for long when one was written."""
    low, high = 0, size
    if (_first_time(os.pread(descriptor, FIRST, 0)) or "") > until:
        return 0
    while high - low > BLOCK:
        middle = (low + high) // 2
        if _first_after(descriptor, middle) > until:
            high = middle
        else:
            low = middle
    found = os.pread(descriptor, PROBE, high).find(b"\n")
    return size if found < 0 else high + found + 1


def _first_after(descriptor: int, at: int) -> str:
    """Return when the first record was written that begins after an offset."""
    found = _first_time(os.pread(descriptor, FIRST, at).partition(b"\n")[2])
    return found or _first_time(os.pread(descriptor, PROBE, at).partition(b"\n")[2]) or LATEST


def _first_time(data: bytes) -> str | None:
    """Return when the first record was written that begins in some bytes of a segment."""
    found = _BEGIN.search(data)
    return None if found is None else rfc3339(_milliseconds(found[2]))


_BEGIN = re.compile(rb'(?m)^\{"seq":(\d{1,18}),"prev":"\w{64}","id":"audit_([0-9A-Z]{10})')


def latest(folder: str, count: int, matches: Matches) -> list[Entry]:
    """Return the latest matching lines, in the order of time, read from the ends of the segments."""
    found = ((place.time, line) for place, line in newest(folder) if matches(line))
    return list(islice(found, max(0, count)))[::-1]


class FoundRecords(NamedTuple):
    """What a part of a log has. `next`: the place at which to go on, None at the end of the log.
    `is_cut`: it was not read further, so that there may be more."""

    entries: list[tuple[Place, bytes]]
    next: Place | None
    is_cut: bool


def page(
    folder: str, wanted: RecordFilter, count: int, before: Place | None = None, most_lines: int = 200_000
) -> FoundRecords:
    """Return the newest lines that a filter wants, before a place; at most `count`, after having read at most
    `most_lines`. `until` holds for the time at which a record was written."""
    if before is None and wanted.until:
        before = Place(wanted.until, "", 0)
    found: list[tuple[Place, bytes]] = []
    lines = takewhile(lambda entry: entry[0].time >= wanted.since, newest(folder, before))
    for number, (place, line) in enumerate(lines):
        if number == most_lines or len(found) > count:
            break
        before = place
        if wanted(line):
            found.append((place, line))
    else:
        if len(found) <= count:
            return FoundRecords(found, None, False)
    if len(found) > count:
        return FoundRecords(found[:count], found[count - 1][0], False)
    return FoundRecords(found, before, True)


def record_of(folder: str, identifier: str) -> bytes | None:
    """Return the line of a record, None if the log does not have it. Reads the lines of about its time."""
    milliseconds = milliseconds_of(identifier)
    if milliseconds is None:
        return None
    time = rfc3339(milliseconds)
    needle = json.dumps(identifier).encode()
    for place, line in newest(folder, Place(time, AFTER_CHAINS, 0)):
        if place.time < time:
            return None
        if needle in line and fields_of(line).get("id") == identifier:
            return line
    return None


# --- what is added ----------------------------------------------------------------------------------------


class Follower:
    """Returns the lines that are added to a folder."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._at: dict[str, int] = {}
        self._look(is_first=True)

    def added(self) -> list[Entry]:
        """Return the lines since the last time, in the order of time."""
        return sorted(self._look(), key=lambda entry: entry[0])

    def _look(self, *, is_first: bool = False) -> list[Entry]:
        found: list[Entry] = []
        names = [name.file for name in segments.names_in(self._folder)]
        for gone in self._at.keys() - set(names):
            del self._at[gone]
        for file in names:
            try:
                descriptor = open_regular(os.path.join(self._folder, file), follow=False)
            except OSError:
                continue
            try:
                size, at = os.fstat(descriptor).st_size, self._at.get(file, 0)
                if is_first or size <= at:
                    self._at[file] = size if is_first else at
                    continue
                whole = os.pread(descriptor, size - at, at).rpartition(b"\n")[0]
            finally:
                os.close(descriptor)
            self._at[file] = at + len(whole) + (1 if whole else 0)
            lines = whole.split(b"\n") if whole else []
            found += [(moment_of(line), line) for line in lines]
        return found

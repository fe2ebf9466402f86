"""Writes the chain of one process: makes chunks of lines from records, and writes each to disk.

    writer.items.extend(…)
    while writer.fill():
        writer.commit()     # again after OSError: nothing is lost or written twice

A chunk has at most about 4 MiB and takes one fsync. Its content is final: after a failure the same bytes are
written again, after the last whole line in the file. When a segment has reached its size, a checkpoint closes
it and the chain continues in the next one. The first line of a chain states where the other chains in the
folder ended at that time (``beside``), and is signed at once: an attacker who truncates or removes one of
them must rewrite the later ones too, which takes the key. `log` calls the writer, on one thread.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from time import monotonic, sleep
from typing import Any, NamedTuple

import orjson

from fastrpc import diagnostics
from fastrpc._core.audit_lines import CallFields
from fastrpc.guard.audit import segments
from fastrpc.guard.audit.chain import AuditChain
from fastrpc.guard.audit.records import Record, encoded, new_chain_id, rfc3339
from fastrpc.guard.audit.signing import Signer

Then = Callable[[str, Exception | None], object]
Item = tuple[str, int, Record | CallFields, Then | None]
"""A record: its id, its time in milliseconds, the record, and what to call when it is on disk. Or the
records of many calls: the beginning of their ids, their time, the records, and None."""

FORMAT = 1
CHUNK = 4 * 1024 * 1024
RECORDS_IN_A_ROW, YIELD_SECONDS = 32, 0.00005
"""After encoding this many records the GIL is released for this time: otherwise calls would wait for it."""
MOST_BESIDE = 32
"""How many other chains, the latest, the first line of a chain names."""


class SegmentLimits(NamedTuple):
    """The lines or seconds after which a checkpoint is written, and the approximate size of a segment."""

    checkpoint_records: int
    checkpoint_seconds: float
    segment_bytes: int


@dataclass(eq=False, repr=False)
class Writer:
    """The writer of a chain. `items` are the records not yet in a chunk; `now` returns milliseconds."""

    path: str
    signer: Signer
    now: Callable[[], int]
    limits: SegmentLimits

    def __post_init__(self) -> None:
        self._started = self.now()
        self.chain = AuditChain(new_chain_id(self._started), self.signer)
        self.number = 0
        """The number of the segment, from 1."""
        self.items: deque[Item] = deque()
        self._thens: list[tuple[Then, str]] = []
        self._checkpoints: list[bytes] = []
        """The checkpoints in the chunk."""
        self._in_chunk = 0
        """How many records are in the chunk."""
        self._lines: list[bytes] = []
        self._size = 0
        self._position = 0
        """The offset of the next line in the segment."""
        self._chunk = b""
        """The bytes that are not yet in the file."""
        self._unsynced = b""
        self._segment: segments.OpenSegment | None = None
        self.name = ""
        """The current segment's."""
        self._is_closing = False
        """Whether the chunk closes the segment."""
        self._last_time = 0
        self._checkpoint_at = 0.0

    # --- making chunks ------------------------------------------------------------------------------------

    def fill(self) -> bool:
        """Make a chunk of the available records, unless there is a chunk; return whether there is one now."""
        if self._chunk or self._unsynced:
            return True
        items = self.items
        while items and self._size < CHUNK and not self._is_closing:
            identifier, time, record, then = items[0]
            if isinstance(record, CallFields):
                self._put_calls(record, identifier, rfc3339(time))
                if not record.count:
                    items.popleft()
                continue
            self._put(encoded(identifier, time, record))
            items.popleft()
            self._in_chunk += 1
            if self._in_chunk % RECORDS_IN_A_ROW == 0:
                sleep(YIELD_SECONDS)
            if then is not None:
                self._thens.append((then, identifier))
        self._chunk = self._unsynced = b"".join(self._lines)
        self._lines.clear()
        self._size = 0
        return bool(self._chunk)

    def note(self, kind: str, **fields: Any) -> None:
        """Add a line of the log itself, after the last line of the chunk."""
        self._put(orjson.dumps({"kind": kind, "time": rfc3339(self.now()), **fields})[1:])

    def checkpoint(self, closes: str = "") -> None:
        """Add a checkpoint. `closes`: ``chain`` at the end, ``segment`` if the next one is about to begin."""
        if not self.name:
            self._begin_segment()
        elif self._segment is not None and self._segment.is_gone():
            diagnostics.write("error", f"the audit log: {self.name} was removed while it was written")
            closes = closes or "segment"  # the next segment holds its hash
        line = self.chain.checkpoint(self.number, rfc3339(self.now()), closes)
        self._append(line)
        self._checkpoints.append(line[:-1])
        self._is_closing = closes != ""

    def seconds_to_checkpoint(self) -> float:
        """Return the time until a checkpoint is due; -1 if there are no lines for one."""
        return max(0.0, self._checkpoint_at - monotonic()) if self.chain.pending else -1

    def _put(self, fields: bytes) -> None:
        self._begin_line()
        self._append(self.chain.line(fields))
        self._end_line()

    def _put_calls(self, calls: CallFields, head: str, time: str) -> None:
        """Add lines of calls, up to the next checkpoint. Their ids begin with `head`."""
        self._begin_line()
        before = calls.count
        most = max(1, self.limits.checkpoint_records - self.chain.pending)
        room = max(1, self.limits.segment_bytes - self._position)
        self._append(self.chain.calls(calls, head, time, most, room))
        self._in_chunk += before - calls.count
        self._end_line()

    def _begin_line(self) -> None:
        if not self.name:
            self._begin_segment()
        if not self.chain.pending:
            self._checkpoint_at = monotonic() + self.limits.checkpoint_seconds

    def _end_line(self) -> None:
        if self._position >= self.limits.segment_bytes:
            self.checkpoint("segment")
        elif self.chain.pending >= self.limits.checkpoint_records:
            self.checkpoint()

    def _append(self, line: bytes) -> None:
        self._lines.append(line)
        self._size += len(line)
        self._position += len(line)

    def _begin_segment(self) -> None:
        self.number += 1
        self._last_time = max(self.now(), self._last_time)  # names must sort by time
        time = rfc3339(self._last_time)
        self.name = segments.name_of(time, self.chain.identifier, self.number)
        self._position = 0
        self._checkpoint_at = monotonic() + self.limits.checkpoint_seconds
        fields: dict[str, Any] = {
            "kind": "segment",
            "format": FORMAT,
            "chain": self.chain.identifier,
            "segment": self.number,
            "time": time,
            "started": rfc3339(self._started),
            "pid": os.getpid(),
            "host": os.uname().nodename,
            "key": self.signer.key,
        }
        if self.number == 1:
            fields["beside"] = beside(self.path, self.chain.identifier)
        self._append(self.chain.line(orjson.dumps(fields)[1:]))
        if self.number == 1:
            self.checkpoint()  # every chain is signed, including its statement about other chains

    # --- writing chunks -----------------------------------------------------------------------------------

    def commit(self) -> None:
        """Write the chunk to disk. Raises OSError; the next call continues where this one has failed."""
        if self._segment is None:
            self._segment = segments.OpenSegment(self.path, self.name)
        segment = self._segment
        while self._chunk:
            self._chunk = self._chunk[segment.write(self._chunk) :]
        try:
            segment.sync()
        except OSError:
            segment.size -= len(self._unsynced)  # the next `write` truncates what follows
            self._chunk = self._unsynced
            raise
        self._unsynced = b""
        if self._is_closing:
            self.end_segment()

    def end_segment(self) -> None:
        """Close the file. What has not been written is lost."""
        if self._segment is not None:
            self._segment.close()
        self._segment = None
        self.name = ""
        self._is_closing = False

    def take_done(self) -> tuple[int, list[tuple[Then, str]], list[bytes]]:
        """Return the number of records, the callbacks and the checkpoints of the chunk that is on disk."""
        done = self._in_chunk, self._thens, self._checkpoints
        self._in_chunk, self._thens, self._checkpoints = 0, [], []
        return done

    def forget_thens(self) -> list[tuple[Then, str]]:
        """Remove and return the callbacks of all records that are not on disk."""
        thens = self._thens + [
            (then, identifier) for identifier, _, _, then in self.items if then is not None
        ]
        self._thens = []
        self.items = deque((identifier, time, record, None) for identifier, time, record, _ in self.items)
        return thens

    def let_go(self) -> None:
        """In a forked child, close the file: the chain belongs to the parent."""
        if self._segment is not None:
            self._segment.let_go()

    @property
    def unwritten(self) -> int:
        """The number of records that are not on disk."""
        waiting = (each[2].count if isinstance(each[2], CallFields) else 1 for each in self.items)
        return sum(waiting) + self._in_chunk


def beside(path: str, own: str) -> list[dict[str, Any]]:
    """Return where the other chains in a folder end: the last whole lines of their segments. Unreadable
    segments are left out: `verify` reports them."""
    chains: dict[str, list[segments.SegmentName]] = {}
    try:
        for name in segments.names_in(path):
            if name.chain != own:
                chains.setdefault(name.chain, []).append(name)
    except OSError:
        return []
    found = []
    latest = [sorted(names, key=lambda name: -name.number) for names in chains.values()]
    for names in sorted(latest, key=lambda names: names[0])[-MOST_BESIDE:]:
        for name in names:  # a new segment has no line yet
            try:
                line = segments.last_line(os.path.join(path, name.file))[1]
                sequence = orjson.loads(line)["seq"]
            except (OSError, ValueError, KeyError, TypeError):
                continue
            found.append({"chain": name.chain, "seq": sequence, "sha256": sha256(line).hexdigest()})
            break
    return found

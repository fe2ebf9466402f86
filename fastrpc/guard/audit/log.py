"""`AuditLog`: takes records from any thread, and writes them on a separate thread.

`append` puts a record into a bounded queue and only waits for a lock: 2 µs. The thread (`writer`) gathers
records for 2 ms, writes them and calls fsync: a record is on disk within 5 ms, if the disk is fast enough.
The thread starts with the first record and sleeps while there are none.

`append_all` takes many records at once, after the responses. While the queue is full (of records or of their
bytes), it waits at most 2 s: calls come faster than the disk accepts their records, and wait for it.

If the queue is still full, or the disk is, the mode decides. ``group``: records that do not fit are counted,
and a line of the log states how many are missing (``gap``). ``strict``: `append` raises `AuditUnavailable`,
so that the call is refused; and `append_durably` returns a future that is done when the record is on disk, so
that no response is sent earlier (one fsync for all that wait). In both modes, accepted records are kept and
written when there is room; a line states that they were late (``delayed``).

A forked child does not use its parent's log: its first record begins a new chain (`fastrpc.forks`).
"""

from __future__ import annotations

import atexit
import os
from collections import deque
from contextlib import suppress
from functools import partial
from threading import Lock, Thread
from time import monotonic, sleep, time_ns

from fastrpc import diagnostics, forks
from fastrpc._core.audit_lines import CallFields
from fastrpc.errors import FastrpcError
from fastrpc.guard.audit import private_folder
from fastrpc.guard.audit.delivery import Delivery, Target
from fastrpc.guard.audit.records import RESERVED, Ids, Record, memory_of, rfc3339
from fastrpc.guard.audit.retention import Retention
from fastrpc.guard.audit.signing import Signer
from fastrpc.guard.audit.writer import Item, SegmentLimits, Then, Writer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from concurrent.futures import Future
    from typing import Any


MODES = ("group", "strict")
KEY_FILE = "signing-key.pem"
"""The file in the log's folder, unless another one is given."""
GATHER_SECONDS = 0.002
PATIENCE_SECONDS, PAUSE_SECONDS = 2.0, 0.001
"""How long `append_all` waits for room in the queue, and the interval at which it checks."""
PAUSES = 25
"""How many times the thread checks the queue before it sleeps until it is woken."""
RETRY_SECONDS = (0.05, 1.0)
"""The pause after the first failed write, and the maximum."""
CLOSE_SECONDS = 5.0
MOST_BYTES = 128 * 1024 * 1024
"""The memory limit of records that are not on disk."""
RETENTION_SECONDS = 3600.0
"""The interval at which old segments are dropped, besides when a new one begins."""


class AuditUnavailable(FastrpcError):
    """The audit log cannot take a record, or could not write it: in mode ``strict`` the call is refused."""

    outcome = "refused"


class AuditLog:
    """The audit log of this process, in a folder that others may share.

    `mode` is ``group`` or ``strict``. `key_file` holds the signing key, by default ``signing-key.pem`` in the
    folder; it is created if it does not exist. A checkpoint is written after `checkpoint_records` lines or
    `checkpoint_seconds`, and sent to all `targets` (`delivery.Target`). A segment has about `segment_bytes`.
    Segments older than `keep_days` are dropped, and the oldest ones while all together take more than
    `keep_bytes` (`retention`). At most about `queue_records` wait for the writing thread, and all records
    that are not on disk take at most about `queue_bytes` of memory.

    Raises OSError if the folder cannot be used, ValueError for an invalid key and for an unknown mode.
    """

    def __init__(
        self,
        folder: str,
        *,
        mode: str = "group",
        key_file: str | None = None,
        checkpoint_records: int = 1000,
        checkpoint_seconds: float = 10.0,
        segment_bytes: int = 64 * 1024 * 1024,
        targets: Iterable[Target] = (),
        keep_days: float | None = None,
        keep_bytes: int | None = None,
        queue_records: int = 65536,
        queue_bytes: int = MOST_BYTES,
    ) -> None:
        if mode not in MODES:
            raise ValueError(f"mode: expected one of {', '.join(MODES)}, got {mode!r:.80}")
        if min(checkpoint_records, segment_bytes, queue_records) < 1:
            raise ValueError("checkpoint_records, segment_bytes and queue_records: expected at least 1")
        self.folder = os.path.abspath(folder)
        self.mode = mode
        os.close(private_folder.opened(self.folder))
        self._signer = Signer(key_file or os.path.join(self.folder, KEY_FILE))
        self._limits = SegmentLimits(checkpoint_records, checkpoint_seconds, segment_bytes)
        self._deliveries = [Delivery(target) for target in targets]
        self._retention = Retention(self.folder, self._signer, keep_days, keep_bytes)
        self._capacity = queue_records
        self._most_bytes = queue_bytes
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Reset to a log without records and without a thread: at the start, and in a forked child."""
        self._lock = Lock()
        self._bell = Lock()
        self._bell.acquire()
        self._ids = Ids()
        self._queue: deque[Item] = deque()
        self._queued = 0
        """How many records are in the queue."""
        self._bytes = self._taken_bytes = 0
        """The memory of all records that are not on disk, and of those that the thread has taken."""
        self._is_parked = False
        """Whether the thread sleeps until it is woken."""
        self._gap: dict[str, Any] = {}
        """The fields of the line about records that are missing after the accepted ones."""
        self._failure = ""
        """Why the last attempt to write has failed; empty if it has succeeded."""
        self._is_closing = False
        self._gives_up_at = 0.0
        self._is_patient = True
        """Whether `append_all` may wait for room: its last wait was not in vain."""
        self._thread: Thread | None = None
        self._writer: Writer | None = None
        self._written = 0
        self._all_lost = 0
        self._gaps: list[dict[str, Any]] = []
        """The fields of the lines to write about missing records."""
        self._delayed: dict[str, Any] = {}
        """The fields of the line to write about late records."""

    # --- appending ----------------------------------------------------------------------------------------

    def append(self, record: Record, then: Then | None = None) -> str:
        """Take a record, which now belongs to the log, and return its id. Thread-safe.

        The log's thread calls ``then(id, None)`` when the record is on disk, and ``then(id, error)`` with an
        `AuditUnavailable` when it is not written, or late; it must be quick.

        Raises ValueError for a field with a reserved name, and AuditUnavailable in mode ``strict`` if the
        record cannot be taken; the log counts it as missing.
        """
        if not record.keys().isdisjoint(RESERVED):
            raise ValueError(f"the names {', '.join(sorted(RESERVED))} are the audit log's own")
        now = _now()
        size = memory_of(record, self._most_bytes)
        with self._lock:
            identifier = self._ids.next(now)
            if self._takes_records():
                self._accept((identifier, now, record, then), size)
                return identifier
            reason = self._lose(now, self._failure or "the queue is full")
        error = AuditUnavailable(f"the audit log cannot take a record: {reason}")
        if self.mode == "strict":
            raise error
        if then is not None:
            then(identifier, error)
        return identifier

    def append_all(self, records: Iterable[Record | CallFields]) -> None:
        """Take many records, as `append` does: single ones, or those of many calls. Records that cannot be
        taken are counted. Waits for room, at most `PATIENCE_SECONDS` while the disk is slow. Thread-safe."""
        for record in records:
            self._wait_for_room()
            if not isinstance(record, CallFields):
                with suppress(AuditUnavailable):
                    self.append(record)
                continue
            now = _now()
            with self._lock:
                head, record.first = self._ids.reserve(now, record.count)
                if self._takes_records():
                    self._accept((head, now, record, None), record.memory, record.count)
                else:
                    self._lose(now, self._failure or "the queue is full", record.count)
                    self._wake()

    def _takes_records(self) -> bool:
        return self._has_room() and not (self._failure and self.mode == "strict")

    def _has_room(self) -> bool:
        return self._queued < self._capacity and self._bytes < self._most_bytes

    def _accept(self, item: Item, size: int, records: int = 1) -> None:
        """Queue an item of `records` records, which take `size` bytes. The lock is held."""
        self._queue.append(item)
        self._queued += records
        self._bytes += size
        self._wake()

    def _take_queue(self) -> deque[Item]:
        """Remove and return the content of the queue. The lock is held."""
        taken, self._queue, self._queued = self._queue, deque(), 0
        self._taken_bytes = self._bytes
        return taken

    def _release(self) -> None:
        """Release the memory of the records that the thread has taken. The lock is held."""
        self._bytes -= self._taken_bytes
        self._taken_bytes = 0

    def _wait_for_room(self) -> None:
        """Wait while the queue is full and the disk accepts records. After a wait in vain, do not wait again
        until there has been room."""
        until = monotonic() + PATIENCE_SECONDS
        while not self._has_room() and self._is_patient and not self._failure:
            self._is_patient = monotonic() < until
            sleep(PAUSE_SECONDS)
        self._is_patient = self._is_patient or self._has_room()

    def append_durably(self, record: Record) -> Future[str]:
        """Take a record as `append` does. The future's result is its id once it is on disk, or its exception
        AuditUnavailable. In an event loop: ``await asyncio.wrap_future(log.append_durably(record))``."""
        from concurrent.futures import Future  # imports logging; mode ``group`` does not need it

        future: Future[str] = Future()
        self.append(record, partial(_settle, future))
        return future

    def state_lost(self, records: int, reason: str) -> None:
        """Have the log state that `records` records are missing, which were never appended. Thread-safe."""
        with self._lock:
            self._ids.count += records
            self._lose(_now(), reason, records)
            self._wake()

    def _lose(self, now: int, reason: str, records: int = 1) -> str:
        """Count records that will not be written. The lock is held."""
        gap = self._gap
        if not gap:
            gap.update(lost=0, reason=reason, since=now)
        gap["lost"] += records
        gap["until"] = now
        self._all_lost += records
        return reason

    def flush(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until all records accepted so far are on disk; False if that takes longer."""
        with self._lock:
            accepted = self._ids.count - self._all_lost
        until = monotonic() + seconds
        while self._written < accepted:
            if monotonic() >= until:
                return False
            sleep(0.001)
        return True

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """End the chain: write the remaining records, sign them, and send the checkpoint to the targets. What
        cannot be written within `seconds` is lost, which is logged. A later record begins another chain."""
        with self._lock:
            thread = self._thread
            if thread is not None:
                self._is_closing = True
                self._gives_up_at = monotonic() + seconds
                self._wake()
        if thread is not None:
            thread.join(seconds + 1.0)
        atexit.unregister(self.close)
        for delivery in self._deliveries:
            delivery.close()

    def status(self) -> dict[str, Any]:
        """Return the state of the log, for people and pages."""
        writer = self._writer
        return {
            "folder": self.folder,
            "mode": self.mode,
            "key": self._signer.key,
            "failure": self._failure,
            "written": self._written,
            "waiting": self._ids.count - self._all_lost - self._written,
            "lost": self._all_lost,
            "chain": writer.chain.identifier if writer else None,
            "segment": writer.name if writer else None,
            "targets": [delivery.status() for delivery in self._deliveries],
        }

    def _start(self) -> None:
        """Start the thread, which begins a chain. The lock is held."""
        self._is_closing = False
        self._thread = Thread(target=self._run, name="fastrpc-audit", daemon=True)
        try:
            self._thread.start()
        except RuntimeError as error:  # the interpreter is ending, or there are too many threads
            self._thread = None
            count = self._queued
            self._take_queue()
            self._release()
            self._lose(_now(), "no thread can be started", count)
            diagnostics.write("error", f"the audit log: {count} records are lost: {error}")
            return
        forks.forget(self._in_child)
        forks.in_child(self._in_child)
        atexit.register(self.close)

    def _in_child(self) -> None:
        writer = self._writer
        if writer is not None:
            writer.let_go()
        self._begin_anew()
        for delivery in self._deliveries:
            delivery.begin_anew()

    # --- writing ------------------------------------------------------------------------------------------

    def _run(self) -> None:
        while True:
            writer = self._writer = Writer(self.folder, self._signer, _now, self._limits)
            try:
                self._write_all(writer)
            except Exception as error:  # a bug: the chain's content is unknown now; begin another one
                diagnostics.write("error", "the audit log: a chain has ended by a bug in fastrpc", error)
                self._abandon(writer, "a bug in fastrpc")
                sleep(RETRY_SECONDS[1])
            writer.end_segment()
            with self._lock:
                if self._is_closing and not self._queue:
                    self._thread = self._writer = None
                    forks.forget(self._in_child)
                    return

    def _write_all(self, writer: Writer) -> None:
        """Write records as one chain, until the log is closed."""
        number = 0
        retention_at = 0.0
        while self._gather(writer):
            if not self._commit_all(writer):
                return
            if writer.seconds_to_checkpoint() == 0:
                writer.checkpoint()
                if not self._commit_all(writer):
                    return
            if number != writer.number or monotonic() >= retention_at:
                number = writer.number
                retention_at = monotonic() + RETENTION_SECONDS
                self._retention.start(writer.name)
        if writer.number:
            writer.checkpoint("chain")
            self._commit_all(writer)

    def _gather(self, writer: Writer) -> bool:
        """Wait until there are records, or a checkpoint is due, and pass them to the writer. Return False
        when the log is closed and everything is written."""
        pauses = 0
        while True:
            if self.mode == "group" and not self._is_closing:
                sleep(GATHER_SECONDS)
            with self._lock:
                if self._queue or self._gap:
                    writer.items = self._take_queue()
                    self._state_lost()
                    return True
                if self._is_closing:
                    return False
                seconds = writer.seconds_to_checkpoint()
                if seconds == 0:
                    return True
                sleeps = self._is_parked = self.mode == "strict" or pauses >= PAUSES
            pauses += 1
            if sleeps:
                self._sleep(seconds)

    def _state_lost(self) -> None:
        """Have the log state, after all accepted records, how many are missing. The lock is held."""
        if self._gap:
            since, until = rfc3339(self._gap["since"]), rfc3339(self._gap["until"])
            self._gaps.append({**self._gap, "since": since, "until": until})
            self._gap = {}

    def _sleep(self, seconds: float) -> None:
        """Sleep until a record arrives, at most for `seconds`; -1: without limit."""
        self._bell.acquire(timeout=seconds)
        with self._lock:
            if self._is_parked:  # timeout
                self._is_parked = False
            else:  # woken, perhaps only after the timeout
                self._bell.acquire(blocking=False)

    def _wake(self) -> None:
        """Wake the thread if it sleeps, or start it. The lock is held."""
        if self._is_parked:
            self._is_parked = False
            self._bell.release()
        elif self._thread is None:
            self._start()

    def _commit_all(self, writer: Writer) -> bool:
        """Write everything that the writer has to disk, and the lines about late and missing records. False
        if the log is closed before that is possible."""
        while True:
            while writer.fill():
                if not self._commit(writer):
                    return False
            if self._delayed:
                writer.note("delayed", **self._delayed)
                self._delayed = {}
            elif self._gaps:
                writer.note("gap", **self._gaps.pop(0))
            else:
                return True

    def _commit(self, writer: Writer) -> bool:
        """Write one chunk to disk, with as many attempts as necessary. False if the log is closed before."""
        pause, longest = RETRY_SECONDS
        while True:
            try:
                writer.commit()
                break
            except OSError as error:
                self._fail(writer, error)
            if self._is_closing and monotonic() >= self._gives_up_at:
                self._abandon(writer, self._failure)
                return False
            sleep(pause)
            pause = min(2 * pause, longest)
        records, thens, checkpoints = writer.take_done()
        if not writer.items:
            with self._lock:
                self._release()
        self._written += records
        if self._failure:
            self._recover()
        for then, identifier in thens:
            _call(then, identifier, None)
        for line in checkpoints:
            for delivery in self._deliveries:
                delivery.put(line)
        return True

    # --- failures -----------------------------------------------------------------------------------------

    def _fail(self, writer: Writer, error: OSError) -> None:
        """The disk accepts nothing. In mode ``strict``, fail all waiting records, and take none until the
        disk accepts data again."""
        if self._failure:
            return
        reason = error.strerror or str(error)
        with self._lock:
            self._failure = reason
            if self.mode == "strict":
                writer.items.extend(self._take_queue())
        self._delayed = {"records": writer.unwritten, "reason": reason, "since": rfc3339(_now())}
        what = "calls are refused" if self.mode == "strict" else "records wait in memory"
        diagnostics.write("error", f"the audit log cannot be written, {what}: {error}")
        if self.mode == "strict":
            self._tell(writer, reason)

    def _recover(self) -> None:
        with self._lock:
            self._failure = ""
            if self.mode == "strict":  # nothing was accepted meanwhile: new records follow the gap
                self._state_lost()
        self._delayed["until"] = rfc3339(_now())
        diagnostics.write("warning", "the audit log can be written again")

    def _tell(self, writer: Writer, reason: str) -> None:
        """Call the `then` of each record of the writer with the error that it is not on disk."""
        error = AuditUnavailable(f"the audit log could not write the record: {reason}")
        for then, identifier in writer.forget_thens():
            _call(then, identifier, error)

    def _abandon(self, writer: Writer, reason: str) -> None:
        with self._lock:
            writer.items.extend(self._take_queue())
            count = writer.unwritten
            if not self._is_closing:
                self._lose(_now(), reason, count)  # the next chain states it
            else:
                self._all_lost += count
                self._gap = {}
                self._gaps.clear()
            self._failure = ""
            self._delayed = {}
            self._release()
        if count:
            diagnostics.write("error", f"the audit log: {count} records are lost: {reason}")
        self._tell(writer, reason)
        writer.items.clear()


def _now() -> int:
    return time_ns() // 1_000_000


def _settle(future: Future[str], identifier: str, error: Exception | None) -> None:
    if not future.set_running_or_notify_cancel():
        return
    if error is None:
        future.set_result(identifier)
    else:
        future.set_exception(error)


def _call(then: Then, identifier: str, error: Exception | None) -> None:
    try:
        then(identifier, error)
    except Exception as failure:  # for example that an event loop is closed
        diagnostics.write("error", "a callback after an audit record has failed", failure)

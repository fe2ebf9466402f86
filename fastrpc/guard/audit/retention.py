"""Drops the oldest segments of an audit log, and records each, to distinguish it from a missing one.

A line of ``dropped.jsonl`` names the dropped lines and their chain, the Merkle root of the last checkpoint
and the hash of the last line, signed as checkpoints are. So a copy of the segment elsewhere can still be
verified. The line is on disk before the segment is removed. A segment that a process still writes is never
dropped. This runs on a separate thread, when a segment begins and every hour. It reads the beginning and the
end of the segments that it drops.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from threading import Thread
from time import time, time_ns

import orjson

from fastrpc import diagnostics
from fastrpc.guard.audit import private_folder, segments
from fastrpc.guard.audit.chain import signed
from fastrpc.guard.audit.records import fields_of, rfc3339
from fastrpc.guard.audit.signing import Signer

FILE = "dropped.jsonl"
DAY_SECONDS = 86400


@dataclass(eq=False, repr=False)
class Retention:
    """Which segments are kept: those that were written within `keep_days`, and of these the latest that take
    no more than `keep_bytes`; None: all."""

    path: str
    signer: Signer
    keep_days: float | None
    keep_bytes: int | None

    def start(self, in_use: str) -> None:
        """Drop old segments on a thread. `in_use` is the segment that this process writes."""
        if self.keep_days is None and self.keep_bytes is None:
            return
        with suppress(RuntimeError):  # the interpreter is ending: another process will do it
            Thread(target=self._run, args=(in_use,), name="fastrpc-audit-retention", daemon=True).start()

    def _run(self, in_use: str) -> None:
        try:
            self.apply(in_use)
        except Exception as error:
            diagnostics.write("warning", f"old audit segments could not be removed: {error}")

    def apply(self, in_use: str = "") -> list[str]:
        """Drop old segments; return their names. Raises OSError."""
        with private_folder.log_in(self.path, FILE) as (directory, descriptor):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return []  # another process does it
            return [
                name.file
                for name, why in self._surplus()
                if self._drop(name, why, descriptor, directory, in_use)
            ]

    def _surplus(self) -> list[tuple[segments.SegmentName, str]]:
        """Return the segments to drop, the oldest first, each with the reason."""
        names = segments.names_in(self.path)
        facts = {name: os.stat(os.path.join(self.path, name.file)) for name in names}
        size = sum(each.st_size for each in facts.values())
        oldest = time() - DAY_SECONDS * self.keep_days if self.keep_days is not None else 0.0
        found = []
        for name in names:
            if facts[name].st_mtime < oldest:
                found.append((name, "keep_days"))
            elif self.keep_bytes is not None and size > self.keep_bytes:
                found.append((name, "keep_bytes"))
            else:
                continue
            size -= facts[name].st_size
        return found

    def _drop(
        self, name: segments.SegmentName, why: str, descriptor: int, directory: int, in_use: str
    ) -> bool:
        path = os.path.join(self.path, name.file)
        first, last, is_written = segments.last_line(path)
        if is_written or name.file == in_use:
            return False
        private_folder.append(self._remains(name, why, first, last), descriptor, FILE)
        os.unlink(name.file, dir_fd=directory)
        return True

    def _remains(self, name: segments.SegmentName, why: str, first: bytes, last: bytes) -> bytes:
        """Return the line about a dropped segment. If the segment ends without a checkpoint, because its
        process was killed, there is no root; the hash of its last line covers all lines."""
        begin, end = fields_of(first), fields_of(last)
        fields = {
            "kind": "dropped",
            "time": rfc3339(time_ns() // 1_000_000),
            "file": name.file,
            "chain": name.chain,
            "segment": name.number,
            "from": begin.get("seq"),
            "to": end.get("seq"),
            "root": end.get("root"),
            "sha256": sha256(last).hexdigest(),
            "closes": end.get("closes"),
            "reason": why,
            "key": self.signer.key,
        }
        return signed(orjson.dumps(fields)[:-1], self.signer)

"""`Export`: the records of a search as a download; a person has one at a time, and it is bounded in time.

A lock on a file in the folder `dashboard` of the state folder is held while an export is sent, so the limit
applies to all processes of a host that serve pages. A download that takes longer than `MOST_SECONDS`, because
the log is long or the browser reads slowly, is broken off: the connection is closed before its end, so that
the browser reports a failed download, not a complete file.
"""

from __future__ import annotations

import fcntl
import os
from asyncio import TimeoutError as LateError  # TimeoutError itself, except in Python 3.10
from asyncio import wait_for
from hashlib import sha256
from time import monotonic

from starlette.responses import StreamingResponse

from fastrpc import diagnostics
from fastrpc.dashboard.log_jobs import FOLDER
from fastrpc.errors import FastrpcError
from fastrpc.guard.audit import private_folder, reading
from fastrpc.regular_files import open_regular
from fastrpc.settings import STATE_DIR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import BinaryIO

    from starlette.types import Receive, Scope, Send

MOST_SECONDS = 600.0
PART_BYTES = 256 * 1024
"""The size of the parts in which an export is sent."""


class ExportRuns(FastrpcError):
    """An export of the same person is being sent."""


class _BrokenOff(FastrpcError):
    """The time of an export is over, or its browser has gone."""


class _BoundedFilter(reading.UnhurriedFilter):
    """A filter that raises _BrokenOff from the time `deadline` (`monotonic`) on."""

    deadline = 0.0

    def __call__(self, line: bytes) -> bool:
        if monotonic() >= self.deadline:
            raise _BrokenOff
        return super().__call__(line)


class Export(StreamingResponse):
    """The lines of a log in the order of time, as JSON lines. `wanted` has globs by the names of
    `reading.FIELDS`, `since` and `until` are times in the form of records. Raises ExportRuns if the person
    has one already, and OSError if the lock cannot be taken."""

    def __init__(self, folder: str, person: str, wanted: dict[str, str], since: str, until: str) -> None:
        self._lock = _locked(person)
        self._person = person
        self._filter = _BoundedFilter(wanted, since, until)
        lines = (line for _, line in reading.entries(folder, self._filter, since))
        name = {"content-disposition": 'attachment; filename="audit.jsonl"'}
        super().__init__(_parts(lines), media_type="application/jsonl", headers=name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._filter.deadline = monotonic() + MOST_SECONDS
        try:
            await wait_for(super().__call__(scope, receive, send), MOST_SECONDS)
        except (LateError, _BrokenOff):  # without a last part, the server closes the connection
            said = f"an export of the audit log was broken off after {MOST_SECONDS:.0f} s"
            diagnostics.write("warning", f"{said}: {self._person}")
        finally:
            self._filter.deadline = 0.0  # a thread that reads still ends with the next line
            self._lock.close()


def _locked(person: str) -> BinaryIO:
    """Return the file with the lock of a person's exports. Raises ExportRuns and OSError."""
    place = os.path.join(STATE_DIR.read(), FOLDER)
    os.close(private_folder.opened(place))
    name = f"export-{sha256(person.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}.lock"
    file: BinaryIO = open(open_regular(os.path.join(place, name), os.O_RDWR | os.O_CREAT, follow=False), "rb")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise ExportRuns("an export of this person is being sent") from None
    return file


def _parts(lines: Iterator[bytes]) -> Iterator[bytes]:
    part = bytearray()
    for line in lines:
        part += line + b"\n"
        if len(part) >= PART_BYTES:
            yield bytes(part)
            part.clear()
    yield bytes(part)

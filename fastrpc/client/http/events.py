"""An incremental parser of server-sent events (WHATWG HTML, 9.2: server-sent events). No I/O.

Bytes go in as they arrive, complete events come out. A line ends with CR, LF or CRLF, and may be split
anywhere. The memory for an unfinished event is bounded, whatever it is made of. Each byte is searched once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

BYTE_ORDER_MARK = b"\xef\xbb\xbf"
LONGEST_NAME = 4 * 1024
"""Bytes of an event's type, and of its id, which is sent back in a header."""


class TooLong(ValueError):
    """An event is longer than the limit."""


class ServerSentEvent(NamedTuple):
    """One event: its type (``message`` by default), its data, and its id, or None."""

    kind: str
    data: str
    id: str | None


class Events:
    """The parser's state for one stream. `last_id` and `retry_seconds` are the last values, or None."""

    def __init__(self, limit: int) -> None:
        self.last_id: str | None = None
        self.retry_seconds: float | None = None
        self._limit = limit
        self._rest = bytearray()
        self._searched = 0
        self._begun = False
        self._after_cr = False
        self._kind = ""
        self._data = bytearray()
        self._id: str | None = None

    @property
    def unfinished(self) -> int:
        """The bytes that are kept of an event that is not complete."""
        return len(self._rest) + len(self._data)

    def begin_anew(self) -> None:
        """Discard an incomplete event: a new connection sends it again."""
        self._rest.clear()
        self._searched = 0
        self._begun = self._after_cr = False
        self._kind, self._id = "", None
        self._data.clear()

    def feed(self, piece: bytes) -> Iterator[ServerSentEvent]:
        """Parse a chunk of the stream; yield the events that it completes. Raises TooLong."""
        for line in self._lines(piece):
            if line:
                self._field(line)
                continue
            event = self._dispatch()
            if event is not None:
                yield event

    def _lines(self, piece: bytes) -> Iterator[bytes]:
        rest = self._rest
        rest += piece
        if not self._begun and len(rest) >= len(BYTE_ORDER_MARK):
            self._begun = True
            if rest.startswith(BYTE_ORDER_MARK):
                del rest[: len(BYTE_ORDER_MARK)]
        start = 0
        lf = -1
        while True:
            if self._after_cr and start < len(rest):
                self._after_cr = False
                if rest[start] == 10:
                    start += 1
            search = max(start, self._searched)
            if lf < search:  # or it would be searched again after each CR
                lf = rest.find(b"\n", search)
                lf = len(rest) if lf < 0 else lf
            cr = rest.find(b"\r", search, lf)
            end = cr if cr >= 0 else lf
            if end == len(rest):
                break
            self._after_cr = end == cr
            line = bytes(rest[start:end])
            start = end + 1
            yield line
        del rest[:start]
        self._searched = len(rest)
        self._check(self.unfinished)

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if name == b"data":
            self._data += value
            self._data += b"\n"
            self._check(len(self._data))
        elif name == b"event":
            self._kind = _name(value)
        elif name == b"id" and b"\0" not in value:
            self._id = _name(value)
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_seconds = int(value) / 1000

    def _dispatch(self) -> ServerSentEvent | None:
        """End an event. An event without data is dropped, but its id is stored."""
        kind, data, id = self._kind or "message", self._data, self._id
        self._kind, self._data, self._id = "", bytearray(), None
        if id is not None:
            self.last_id = id or None
        if data.count(b"\n") == len(data):
            return None
        del data[-1]
        return ServerSentEvent(kind, data.decode("utf-8", "replace"), id)

    def _check(self, size: int) -> None:
        if size > self._limit:
            raise TooLong(f"an event is longer than {self._limit} bytes")


def _name(value: bytes) -> str:
    if len(value) > LONGEST_NAME:
        raise TooLong(f"an event's type or id is longer than {LONGEST_NAME} bytes")
    return value.decode("utf-8", "replace")

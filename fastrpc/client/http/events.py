"""An incremental parser of server-sent events (WHATWG HTML, 9.2: server-sent events). No I/O.

Bytes go in as they arrive, complete events come out. A line ends with CR, LF or CRLF, and may be split
anywhere. The memory for an unfinished event is bounded. Each byte is searched once.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class TooLong(ValueError):
    """An event is longer than the limit."""


class Event:
    """One event: its type (``message`` by default), its data, and its id, or None."""

    __slots__ = ("data", "id", "kind")

    def __init__(self, kind: str, data: str, id: str | None) -> None:
        self.kind = kind
        self.data = data
        self.id = id


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
        self._data: list[bytes] = []
        self._length = 0
        self._id: str | None = None

    def begin_anew(self) -> None:
        """Discard an incomplete event: a new connection sends it again."""
        self._rest.clear()
        self._searched = 0
        self._begun = self._after_cr = False
        self._kind, self._data, self._length, self._id = "", [], 0, None

    def feed(self, piece: bytes) -> Iterator[Event]:
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
        while True:
            if self._after_cr and start < len(rest):
                self._after_cr = False
                if rest[start] == 10:
                    start += 1
            search = max(start, self._searched)
            lf = rest.find(b"\n", search)
            cr = rest.find(b"\r", search, lf if lf >= 0 else len(rest))
            end = cr if cr >= 0 else lf
            if end < 0:
                break
            self._after_cr = end == cr
            line = bytes(rest[start:end])
            start = end + 1
            yield line
        del rest[:start]
        self._searched = len(rest)
        if len(rest) + self._length > self._limit:
            raise TooLong(f"an event is longer than {self._limit} bytes")

    def _field(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value[1:] if value.startswith(b" ") else value
        if name == b"data":
            self._data.append(value)
            self._length += len(value) + 1
            if self._length > self._limit:
                raise TooLong(f"an event is longer than {self._limit} bytes")
        elif name == b"event":
            self._kind = value.decode("utf-8", "replace")
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_seconds = int(value) / 1000

    def _dispatch(self) -> Event | None:
        """End an event. An event without data is dropped, but its id is stored."""
        kind, data, id = self._kind or "message", self._data, self._id
        self._kind, self._data, self._length, self._id = "", [], 0, None
        if id is not None:
            self.last_id = id or None
        if not any(data):
            return None
        return Event(kind, b"\n".join(data).decode("utf-8", "replace"), id)

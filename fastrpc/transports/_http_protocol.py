"""The connection class that uvicorn is given: the straight way in front, and the limits that uvicorn lacks.

A likely request that has come whole is answered at once (`_http_hot`). All others go on to uvicorn's own class
and the ASGI application as if this one were not there. One timer for all connections closes those that
are slow: with a head, with a body, or with reading their answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    from asyncio import Transport
    from typing import Any

    from fastrpc.transports._http_hot import HotPath

LONGEST_HEAD = 64 * 1024


class Protocol(HttpToolsProtocol):
    """One connection. `hot` is set on a subclass, by whoever serves."""

    hot: HotPath

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__(*values, **options)
        self._between = True  # no request has begun that uvicorn has to end
        self._held = b""

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        head = [b"%b: %b\r\n" % pair for pair in self.server_state.default_headers]
        self._head = (
            b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n" + b"".join(head) + b"content-length: "
        )

    def data_received(self, data: bytes) -> None:
        if self._between and self._answer(data):
            return
        super().data_received(data)

    def _answer(self, data: bytes) -> bool:
        """Answer a likely request; True if there is nothing to do any more with what has come."""
        if self._held:
            data = self._held + data
            self._held = b""
        end = data.find(b"\r\n\r\n")
        if end > 0 and (self.cycle is None or self.cycle.response_complete):
            head = self.hot.head(data[:end])
            if head is not None:
                missing = end + 4 + head.length - len(data)
                if missing > 0:
                    self._held = data
                    return True
                if missing == 0:
                    answer = self.hot.answer(head, data[end + 4 :])
                    if answer is not None:
                        self._unset_keepalive_if_required()
                        self.transport.write(b"%b%d\r\n\r\n%b" % (self._head, len(answer) - 1, answer[:-1]))
                        return True
        self._between = False
        super().data_received(data)
        return True

    def on_message_complete(self) -> None:
        super().on_message_complete()
        self._between = True

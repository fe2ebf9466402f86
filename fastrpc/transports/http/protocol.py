"""The connection class of the server: the fast path before uvicorn's parser.

A request that the fast path supports is answered when it is complete (`hot_path`), or when its call has
ended; pipelined requests wait. All others are passed to uvicorn's own class and the ASGI application, within
the limits of `BoundedConnection`.
"""

from __future__ import annotations

from time import monotonic
from typing import TYPE_CHECKING

from fastrpc.transports.http import connections
from fastrpc.transports.http.bounded_connection import BODY, CALL, IDLE, BoundedConnection
from fastrpc.transports.http.request import PENDING_KEY

if TYPE_CHECKING:
    from typing import Any

    from fastrpc.transports.http.hot_path import HotPath
    from fastrpc.transports.http.pending_response import PendingResponse

MOST_HELD = 64 * 1024
"""Bytes; a longer body that is not complete yet takes the regular path."""

SLICE_SECONDS = 0.001
"""Seconds for which pipelined requests are answered before other connections have their turn."""


class Protocol(BoundedConnection):
    """One connection. `hot` is set on a subclass, by the server."""

    hot: HotPath | None = None

    def __init__(self, *values: Any, **options: Any) -> None:
        super().__init__(*values, **options)
        self._held: list[bytes] = []  # of a request for the fast path, until its body is complete
        self._missing = 0
        self._rest = b""  # requests that were received and have to wait
        self._pending: PendingResponse | None = None  # of a request that the fast path has begun,
        self._pending_data = b""  # and the request's bytes
        self._handed_over: PendingResponse | None = None  # whose request the application takes over

    def connection_lost(self, exc: Exception | None) -> None:
        self._rest = b""
        super().connection_lost(exc)
        pending = self._take_pending()
        if pending is not None:
            pending.client_gone()

    @property
    def _receives_body(self) -> bool:
        return self._phase == BODY or self._missing > 0

    @property
    def eviction_class(self) -> int | None:
        found = super().eviction_class
        return None if self._rest and found != connections.UNREAD else found

    def data_received(self, data: bytes) -> None:
        if self._rest:
            self._rest += data
        elif self._phase <= IDLE and self.hot is not None:
            self._answer(self.hot, data)
        else:
            self._feed(data)

    def _answer(self, hot: HotPath, data: bytes) -> None:
        """Answer the requests that the fast path supports; the rest takes the regular path."""
        if self._missing > 0:
            self._missing -= len(data)
            self._count += len(data)
            self._held.append(data)
            if self._missing > 0:
                return
            data = self._take_held()
        begin, size = 0, len(data)
        began = 0.0
        while True:
            running = self._running
            if running is not None and not running.response_complete:
                break  # an earlier request has no response yet
            if self.flow.write_paused:
                self._pause_requests(data[begin:])
                return
            end = data.find(b"\r\n\r\n", begin)
            head = hot.head(data[begin:end]) if end > 0 else None
            if head is None:
                break
            after = end + 4 + head.length
            if after > size:
                if head.length > MOST_HELD:
                    break
                self._hold(data[begin:], after - size)
                return
            body = data[end + 4 : after]
            answer = hot.answer(head, body, self.server_state.default_headers, self.client)
            if answer is None:
                break
            if not isinstance(answer, bytes):
                self._await(answer, data[begin:after])
                if after < size:
                    self._feed(data[after:])
                return
            self._phase = IDLE
            self.since = self.monitor.now
            self.transport.write(answer)
            if after == size:
                return
            begin = after
            moment = monotonic()
            began = began or moment
            if moment - began > SLICE_SECONDS:
                self._pause_requests(data[begin:])
                self.loop.call_soon(self._go_on)
                return
        self._feed(data[begin:] if begin else data)

    def _pause_requests(self, data: bytes) -> None:
        """Keep requests for later, and stop reading: the client does not read, or others have their turn."""
        self._rest = data
        self.flow.pause_reading()

    def _go_on(self) -> None:
        data, self._rest = self._rest, b""
        if data and not self.transport.is_closing():
            self.flow.resume_reading()
            self.data_received(data)

    def _hold(self, data: bytes, missing: int) -> None:
        self._held.append(data)
        self._missing = missing
        self._count = len(data)
        self._body_deadline = None
        self.since = self.monitor.now

    def _take_held(self) -> bytes:
        data = b"".join(self._held)
        self._held.clear()
        self._missing = 0
        return data

    def _await(self, pending: PendingResponse, data: bytes) -> None:
        """Wait for the response to a request that the fast path has begun."""
        self._pending = pending
        self._pending_data = data
        self._phase = CALL
        if pending.waits and not self._takes_long(pending):
            pending.on_message(self._on_pending_message)
        else:
            self._hand_over()

    def _takes_long(self, pending: PendingResponse) -> bool:
        """Whether a keep-alive comment is due before the next check but one."""
        return pending.seconds < 2 * self.monitor.every

    def _on_pending_message(self) -> None:
        """The response has come, or a message that the application has to stream."""
        pending, hot = self._pending, self.hot
        assert pending is not None
        assert hot is not None
        answer = pending.answer()
        if answer is None:
            hot.context.copy().run(self._hand_over)  # not in the context of the call
            return
        self._take_pending()
        self._enter(IDLE)
        headers = self.server_state.default_headers
        self.transport.write(hot.response(*answer, headers, pending.path, self.client))

    def _take_pending(self) -> PendingResponse | None:
        pending, self._pending = self._pending, None
        self._pending_data = b""
        return pending

    def _hand_over(self) -> None:
        """Have the application take over the request with the pending response."""
        data = self._pending_data
        pending = self._take_pending()
        assert pending is not None
        pending.on_message(None)
        self._phase = IDLE
        self._handed_over = pending
        self._feed(data)

    def _feed(self, data: bytes) -> None:
        """Pass data to uvicorn's parser, with the pending request that it belongs to."""
        if self._phase == CALL:
            self._hand_over()
        super().data_received(data)

    def on_headers_complete(self) -> None:
        if self._handed_over is not None:
            self.scope[PENDING_KEY] = self._handed_over  # type: ignore[literal-required]
            self._handed_over = None
        super().on_headers_complete()

    def _check_wait(self, now: float) -> None:
        super()._check_wait(now)
        if self._pending is not None and self._takes_long(self._pending):
            self._hand_over()

    def shutdown(self) -> None:
        begun = self._take_held() if self._missing > 0 else self._rest
        self._rest = b""
        if begun:  # calls in flight have the grace period
            self.flow.resume_reading()
            self._feed(begun)
        if self._phase == CALL:
            self._hand_over()
        super().shutdown()

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._rest:
            self.loop.call_soon(self._go_on)

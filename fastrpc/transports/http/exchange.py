"""One POST and its own connection: queues the response, and the messages that precede it.

An exchange is reused after its response. Independent of HTTP: its reader decides how messages are sent. The
queue is bounded. Costs two objects a request, and none if an exchange is reused.
"""

from __future__ import annotations

from asyncio import get_running_loop
from collections import defaultdict, deque

from fastrpc import forks
from fastrpc._core import http_body
from fastrpc.transports.http.request import error_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable
    from typing import Any, Protocol

    from fastrpc.errors import ProtocolError
    from fastrpc.quotas import Share
    from fastrpc.transports.interfaces import (
        Connect,
        RequestInFlight,
        ServedBatch,
        ServedDispatcher,
        ServedRuntime,
    )

    class HoldsAnswers(Protocol):
        """A session (`fastrpc.transports.http.sessions`)."""

        @property
        def delivery(self) -> Future[None] | None:
            """Done when what was set may be answered; None if it may be at once."""


ANSWER, MESSAGE, DROPPED, STOPPED, PAUSED = "answer", "message", "dropped", "stopped", "paused"
SILENT = "silent"
"""The kinds of items: the response; a message before it; no response, because the client has cancelled; an
error, because the server or session ends; the client is to disconnect and resume later; no response, because
a batch, which was read in several turns, has no request."""

ENDS = (ANSWER, DROPPED, STOPPED, SILENT)

UNREAD_LIMIT = 4 * 1024 * 1024
"""Bytes in the queue; beyond this, messages are dropped, but not the response."""

LARGEST_KEPT = 64 * 1024
"""Bytes; a connection's buffers keep the size of its longest message, so it is not reused after a longer
one."""
SMALL = 4 * 1024
IDLE_EXCHANGES = 256
PARSED_GROWTH = 16
"""What a message may take in the buffers that read it, in bytes for each byte of the message."""


class Waiter:
    """Lets one coroutine wait, with a timeout, until `wake` is called, which does nothing if none waits."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: Future[bool] | None = None

    async def wait(self, seconds: float) -> bool:
        """Wait for `wake`; return False on timeout."""
        self.wake()  # a second waiter replaces the first, which must not wait forever
        waiting = self._waiting = self._loop.create_future()
        timer = self._loop.call_later(seconds, self.wake, False)
        try:
            woken: bool = await waiting
            return woken
        finally:
            timer.cancel()

    def wake(self, woken: bool = True) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(woken)


class Exchange:
    """A connection for one request, or one batch, at a time."""

    def __init__(self, dispatcher: ServedDispatcher, loop: AbstractEventLoop) -> None:
        self.dispatcher = dispatcher
        self.connection = dispatcher.connection
        self.connection.flush = self._flush
        self.connection.notify = lambda line: self.put(MESSAGE, line)
        self.connection.call_in_loop = lambda function: function()
        dispatcher.requests.on_dropped = lambda: self._end_without_answer(DROPPED)
        dispatcher.requests.on_batch_read = lambda: self._end_without_answer(SILENT)
        dispatcher.outbound.on_paused = lambda: self.put(PAUSED, b"")
        dispatcher.loop_runs(loop)
        self.connection.generation = forks.generation
        self.waiter = Waiter(loop)
        self.wake: Callable[[], object] = self.waiter.wake
        """Called when an item is added to the queue."""
        self.on_end: Callable[[Exchange], object] | None = None
        """Called when the request is no longer in flight."""
        self.overflowed = False
        """Whether messages were dropped."""
        self.reusable = True
        self.largest = SMALL
        """Bytes of its largest message, or `SMALL`."""
        self._take: Callable[[str, bytes], object] | None = None
        self._items: deque[tuple[str, bytes]] = deque()
        self._waiting_bytes = 0
        self.in_flight = False
        """Whether a request of this exchange is in flight."""
        self.holder: HoldsAnswers | None = None
        """What may have to be delivered elsewhere before this answers."""
        self.share: Share | None = None
        """What the body of that request takes of the total, until `close`, as the buffers that read it."""

    def receive(self, body: bytes, entry: Any = None) -> bytes | None:
        """Handle a message; return its response if it is available at once and no message precedes it.

        `entry` is its entry in the access log, if there is one (`access`).
        """
        self.in_flight = True
        self.connection.flush = None  # what is written now is returned below
        before = self.connection.output.total
        try:
            self.connection.receive(body)
        except Exception as error:
            self.dispatcher.responses.line_failed(body, before, error)
        finally:
            self.connection.flush = self._flush
        return self._received(body)

    def receive_expected(self, body: bytes, method: bytes, name: bytes) -> bytes | None:
        """As `receive`, if the body is what the head announces (`http_body.receive_named`): in 2026-07-28 a
        call of `name`, or a list; without `method` any request in a session except `initialize`.

        Return b"", without any effect, if it is anything else.
        """
        connection = self.connection
        flush = connection.flush
        self.in_flight = True
        connection.flush = None
        before = connection.output.total
        try:
            if method:
                taken = http_body.receive_named(connection, body, method, name)
            else:
                taken = http_body.receive_in_session(connection, body)
        except Exception as error:
            taken = True
            self.dispatcher.responses.line_failed(body, before, error)
        finally:
            connection.flush = flush
        if taken:
            return self._received(body)
        self.in_flight = False
        return b""

    def _received(self, body: bytes) -> bytes | None:
        """Return the response to the message just received, as `receive` does."""
        if self.connection.generation != forks.generation:
            forks.leave()
        answer: bytes = self.connection.output.take()
        if len(body) > self.largest or len(answer) > self.largest:
            self._has_grown(max(len(body), len(answer)))
        if answer and not self._items and (self.holder is None or self.holder.delivery is None):
            self.in_flight = False
            return answer
        if answer:
            self.put(ANSWER, answer)
        else:
            self.in_flight = self._has_requests()
        if len(body) > LARGEST_KEPT:  # the call may wait for long
            http_body.drop_line(self.connection)
        return None

    def _has_grown(self, size: int) -> None:
        self.largest = size
        self.reusable = self.reusable and size <= LARGEST_KEPT

    @property
    def kept_bytes(self) -> int:
        """About how much memory its buffers have, which stay as large as they were once used."""
        return PARSED_GROWTH * self.largest

    def next(self) -> tuple[str, bytes] | None:
        """Remove the next item, its kind and its line, from the queue; None if it is empty (see `waiter`)."""
        if not self._items:
            return None
        kind, line = self._items.popleft()
        self._waiting_bytes -= len(line)
        return kind, line

    def peek(self) -> tuple[str, bytes] | None:
        """Return the next item, and leave it in the queue."""
        return self._items[0] if self._items else None

    @property
    def waits(self) -> bool:
        """Whether items are queued, or a request of this exchange is in flight."""
        return bool(self._items) or self.in_flight

    def _has_requests(self) -> bool:
        own = self.dispatcher
        found: list[RequestInFlight | ServedBatch] = [*own.requests.in_flight.values(), *own.requests.batches]
        return bool(self.connection.listening) or any(each.dispatcher is own for each in found)

    def hand_over(self, take: Callable[[str, bytes], object] | None) -> None:
        """Pass all queued and later items to a function; None: queue them for `next`."""
        self._take = take
        while take is not None and (item := self.next()) is not None:
            take(*item)

    def interrupt(self, error: ProtocolError) -> None:
        """Cancel the calls in flight, and answer their requests with an error."""
        self.reusable = False
        own, requests = self.dispatcher, self.dispatcher.requests
        requests.on_dropped = None
        for batch in [each for each in requests.batches if each.dispatcher is own]:
            batch.stop(error)
        lines = []
        for request in [each for each in requests.in_flight.values() if each.dispatcher is own]:
            line = error_line(error, request.id)
            if request.batch is None:
                lines.append(line)
            else:
                request.batch.answers.append(line)
            requests.interrupt(request)
        for line in lines:
            self.put(STOPPED, line)

    def close(self) -> None:
        """Cancel the calls in flight without an answer (MCP 2026-07-28: closing the stream cancels)."""
        dispatcher, connection = self.dispatcher, self.connection
        self.reusable = False
        self.share = self.holder = None
        dispatcher.requests.on_dropped = None
        self._take = lambda kind, line: None  # the client has disconnected
        self._items.clear()
        if dispatcher.main is dispatcher:
            dispatcher.close()
        # A reference cycle that holds buffers, and the next garbage collection may be far off.
        dispatcher.outbound.on_paused = dispatcher.requests.on_batch_read = None
        connection.flush = connection.notify = connection.dispatcher = connection.delegate = None
        connection.call_in_loop = None  # type: ignore[assignment]  # nothing can be posted from here on

    def put(self, kind: str, line: bytes) -> None:
        """Add an item to the queue, or pass it to the function of `hand_over`; an answer may be held."""
        if kind == ANSWER and self.holder is not None and self.holder.delivery is not None:
            self.in_flight = True
            self.holder.delivery.add_done_callback(lambda delivery: self._put(ANSWER, line))
        else:
            self._put(kind, line)

    def _put(self, kind: str, line: bytes) -> None:
        if kind in ENDS:
            self.in_flight = False
            on_end, self.on_end = self.on_end, None
            if on_end is not None:
                on_end(self)
        if self._take is not None:
            self._take(kind, line)
            return
        if self._waiting_bytes > UNREAD_LIMIT:
            self.overflowed = True
            self.reusable = False
        if not self.overflowed or kind in ENDS:
            self._items.append((kind, line))
            self._waiting_bytes += len(line)
        self.wake()

    def _flush(self) -> None:
        """The connection has written an answer."""
        answer: bytes = self.connection.output.take()
        if len(answer) > self.largest:
            self._has_grown(len(answer))
        if answer:
            self.put(ANSWER, answer)

    def _end_without_answer(self, kind: str) -> None:
        """End the exchange after a cancelled call, or a batch without a request, unless it has others."""
        if self.in_flight and not self._has_requests():
            self.put(kind, b"")


class ExchangePool:
    """The exchanges of requests without a session: those in flight, and idle ones for later requests.

    `connect` returns a new dispatcher. `running` has those of sessions, too: the shutdown waits for them.
    """

    def __init__(self, connect: Connect) -> None:
        self.make: Callable[..., Exchange] = Exchange
        self.running: set[Exchange] = set()
        """Exchanges whose request is in flight."""
        self.runtime: ServedRuntime | None = None
        """The server's, once a request has come."""
        self.closed = False
        """Whether the server shuts down: no exchange is reused."""
        self._connect = connect
        self._idle: defaultdict[str | None, list[Exchange]] = defaultdict(
            list
        )  # by the version of the session wire

    def new(self) -> Exchange:
        """Return an exchange with a new main connection."""
        dispatcher = self._connect()
        self.runtime = dispatcher.runtime
        return self.make(dispatcher, get_running_loop())

    def take(self, principal: str, version: str | None = None) -> Exchange:
        """Return an exchange for one request without a session; `version` if it is not of 2026-07-28."""
        idle = self._idle[version]
        exchange = idle.pop() if idle else self.new()
        if version is not None and exchange.dispatcher.session.version is None:
            exchange.dispatcher.adopt_version(version)
        exchange.dispatcher.principal = principal
        return exchange

    def put_back(self, exchange: Exchange) -> None:
        """Reuse the exchange of such a request, which is over."""
        self.running.discard(exchange)
        idle = self._idle[exchange.dispatcher.session.version]
        if exchange.reusable and not self.closed and len(idle) < IDLE_EXCHANGES:
            exchange.hand_over(None)
            idle.append(exchange)
        else:
            exchange.close()

    def begin(self, exchange: Exchange, share: Share | None = None) -> None:
        """Note that a request without a session is in flight. `share`: what its body takes."""
        if exchange.in_flight:
            exchange.share = share
        self.running.add(exchange)

    def begin_in_session(self, exchange: Exchange, share: Share | None = None) -> None:
        """Note that a request of a session is in flight; one that is over may still have items to send."""
        if exchange.in_flight:
            exchange.share = share
            self.running.add(exchange)
            exchange.on_end = self.running.discard

    def close(self) -> None:
        """Close the idle exchanges."""
        for idle in self._idle.values():
            while idle:
                idle.pop().close()

"""One POST on its way through a connection of its own: its answer, and what is said before that.

An exchange is used again when it is over. Knows nothing of HTTP: its reader decides how messages are sent.
What nobody reads is kept up to a limit. Costs two objects a request, and none where one is used again.
"""

from __future__ import annotations

from collections import deque

from fastrpc import forks
from fastrpc.transports.http.request import error_line

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable
    from typing import Any

    from fastrpc.errors import ProtocolError

ANSWER, MESSAGE, DROPPED, STOPPED, PAUSED = "answer", "message", "dropped", "stopped", "paused"
SILENT = "silent"
"""What an exchange says: its answer; a message before that; that there is no answer, since the client has
cancelled; an error, since the server ends; that the client shall come back later for the rest; and that
there is nothing to answer in a batch, which took a while to read."""

ENDS = (ANSWER, DROPPED, STOPPED, SILENT)

UNREAD_LIMIT = 4 * 1024 * 1024
"""Bytes that wait for a reader; behind them messages are left out, answers are not."""

LARGEST_KEPT = 64 * 1024
"""A connection keeps room for the longest message that it has read or written; beyond this, which it begins
with, it is not used again."""


class Waiter:
    """Lets one coroutine wait, with a timeout, until `wake` is called, which does nothing if none waits."""

    __slots__ = ("_loop", "_waiting")

    def __init__(self, loop: AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: Future[bool] | None = None

    def wake(self) -> None:
        self._end(True)

    async def wait(self, seconds: float) -> bool:
        """Wait for `wake`; return False on timeout."""
        self._end(True)  # a second waiter replaces the first, which must not wait forever
        waiting = self._waiting = self._loop.create_future()
        timer = self._loop.call_later(seconds, self._end, False)
        try:
            woken: bool = await waiting
            return woken
        finally:
            timer.cancel()

    def _end(self, woken: bool) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_result(woken)


class Exchange:
    """A connection for one request, or one batch, at a time."""

    def __init__(self, dispatcher: Any, loop: AbstractEventLoop) -> None:
        self.dispatcher = dispatcher
        self.connection = dispatcher.connection
        self.connection.flush = self._flush
        self.connection.tell = self._tell
        self.connection.call_in_loop = lambda function: function()
        dispatcher.on_dropped = self._dropped
        dispatcher.on_paused = lambda: self.put(PAUSED, b"")
        dispatcher.on_batch_read = self._batch_read
        dispatcher.loop_runs(loop)
        self.connection.generation = forks.generation
        self.waiter = Waiter(loop)
        self.wake: Callable[[], object] = self.waiter.wake
        """Called when something is said that waits to be read."""
        self.on_end: Callable[[Exchange], object] | None = None
        """Called when a request that was in flight is over."""
        self.overflown = False
        """Whether something had to be left out."""
        self.reusable = True
        self._take: Callable[[str, bytes], object] | None = None
        self._items: deque[tuple[str, bytes]] = deque()
        self._waiting_bytes = 0
        self.owes = False
        """Whether a request of its own is in flight."""

    def receive(self, body: bytes, entry: Any = None) -> bytes | None:
        """Take a message; return its answer if it is there at once and nothing else was said.

        `entry` is that of the access log, for those who keep one (`access`).
        """
        self.owes = True
        self.connection.flush = None  # what is written now is the answer at once
        try:
            self.connection.receive(body)
        finally:
            self.connection.flush = self._flush
        return self._received(body)

    def receive_expected(self, body: bytes, method: bytes, name: bytes) -> bytes | None:
        """As `receive`, of what the head says the body is (`Connection.receive_named`): of 2026-07-28 a call
        of `name` or a list; without a `method` any request of a session but a handshake.

        Return b"" if it is something else; then nothing has happened.
        """
        connection = self.connection
        flush = connection.flush
        self.owes = True
        connection.flush = None
        try:
            if method:
                taken = connection.receive_named(body, method, name)
            else:
                taken = connection.receive_in_session(body)
        finally:
            connection.flush = flush
        if taken:
            return self._received(body)
        self.owes = False
        return b""

    def _received(self, body: bytes) -> bytes | None:
        """A message has been taken: return its answer, as `receive` does."""
        if self.connection.generation != forks.generation:
            forks.leave()
        answer: bytes = self.connection.output.take()
        if len(body) > LARGEST_KEPT or len(answer) > LARGEST_KEPT:
            self.reusable = False
        if answer and not self._items:
            self.owes = False
            return answer
        if answer:
            self.put(ANSWER, answer)
        else:
            self.owes = self._has_requests()
        return None

    def next(self) -> tuple[str, bytes] | None:
        """Return the next message, its kind and its line; None if there is none yet (`waiter` is woken)."""
        if not self._items:
            return None
        kind, line = self._items.popleft()
        self._waiting_bytes -= len(line)
        return kind, line

    def peek(self) -> tuple[str, bytes] | None:
        """Return what `next` would."""
        return self._items[0] if self._items else None

    @property
    def waits(self) -> bool:
        """Whether there is something to wait for: said and not read, or a request of its own in flight."""
        return bool(self._items) or self.owes

    def _has_requests(self) -> bool:
        mine = self.dispatcher
        for request in mine.in_flight.values():
            if request.dispatcher is mine:
                return True
        return bool(mine.listening or self._batches())

    def _batches(self) -> list[Any]:
        """Return the batches that came this way and are still being read."""
        mine = self.dispatcher
        return [batch for batch in mine.batches if batch.dispatcher is mine]

    def _requests(self) -> list[Any]:
        """Return the requests in flight that came this way, and by no other connection of the session."""
        mine = self.dispatcher
        return [request for request in mine.in_flight.values() if request.dispatcher is mine]

    def hand_over(self, take: Callable[[str, bytes], object] | None) -> None:
        """Have all that is said and not read yet, now and later, go to a function; None: to `next`."""
        self._take = take
        while take is not None and self._items:
            item = self.next()
            if item is not None:
                take(*item)

    def interrupt(self, error: ProtocolError) -> None:
        """Stop what is in flight; all of it is answered with an error."""
        self.reusable = False
        self.dispatcher.on_dropped = None
        for batch in self._batches():
            batch.stop(error)
        lines = []
        for request in self._requests():
            line = error_line(error, request.id)
            if request.batch is None:
                lines.append(line)
            else:
                request.batch.answers.append(line)
            self.dispatcher.interrupt(request)
        for line in lines:
            self.put(STOPPED, line)

    def close(self) -> None:
        """Stop what is in flight; nothing more is said (MCP 2026-07-28: closing the stream cancels)."""
        dispatcher, connection = self.dispatcher, self.connection
        self.reusable = False
        dispatcher.on_dropped = None
        self._take = _ignore
        self._items.clear()
        if dispatcher.main is dispatcher:
            dispatcher.close()
        # They hold each other, and room to read and write; a collection may be far off.
        dispatcher.on_paused = dispatcher.on_batch_read = None
        connection.flush = connection.tell = connection.call_in_loop = connection.dispatcher = None

    def put(self, kind: str, line: bytes) -> None:
        """Say something."""
        if kind in ENDS:
            self.owes = False
            on_end, self.on_end = self.on_end, None
            if on_end is not None:
                on_end(self)
        if self._take is not None:
            self._take(kind, line)
            return
        if self._waiting_bytes > UNREAD_LIMIT:
            self.overflown = True
            self.reusable = False
        if not self.overflown or kind in ENDS:
            self._items.append((kind, line))
            self._waiting_bytes += len(line)
        self.wake()

    def _flush(self) -> None:
        """The connection has written an answer."""
        answer: bytes = self.connection.output.take()
        if len(answer) > LARGEST_KEPT:
            self.reusable = False
        if answer:
            self.put(ANSWER, answer)

    def _tell(self, line: bytes) -> None:
        self.put(MESSAGE, line)

    def _dropped(self) -> None:
        """A call was cancelled: there is no answer, unless the rest of a batch still makes one."""
        if self.owes and not self._has_requests():
            self.put(DROPPED, b"")

    def _batch_read(self) -> None:
        """A batch was read in several turns; without a request in it nothing else would end the exchange."""
        if self.owes and not self._has_requests():
            self.put(SILENT, b"")


def _ignore(kind: str, line: bytes) -> None:
    """What is said to somebody who has gone."""

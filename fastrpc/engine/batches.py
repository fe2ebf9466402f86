"""Batches: several messages in one array (JSON-RPC 2.0, section 6; in MCP only version 2025-03-26).

The number of elements is limited, and checked before any is parsed. Elements are read in order, for at most a
millisecond at a time, so that the event loop can serve others in between; before there is a loop there are no
others. The responses are sent together, after the last. What an element means is left to the dispatcher.
"""

from __future__ import annotations

from time import monotonic

from fastrpc._core.message import Message
from fastrpc.errors import BatchTooLarge, InvalidRequest
from fastrpc.protocol.versions import BATCHES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.engine.interfaces import DispatcherProtocol
    from fastrpc.errors import ProtocolError

TURN_SECONDS = 0.001


def take_batch(dispatcher: DispatcherProtocol, message: Message, outer: Batch | None) -> None:
    """Read a batch element by element; its answers go out together (MCP 2025-03-26)."""
    most = dispatcher.runtime.max_batch
    if outer is not None or dispatcher.session.version not in BATCHES:
        error = InvalidRequest("Invalid request: batches are part of protocol version 2025-03-26 only")
        dispatcher.responses.put_error(b"null", error, outer)
    elif message.batch_size > most:
        dispatcher.responses.put_error(b"null", BatchTooLarge(message.batch_size, most))
    else:
        batch = Batch(dispatcher, message.elements())
        dispatcher.requests.batches.add(batch)
        batch.read()


class Batch:
    """One batch: the elements that are not read yet, and the responses that are pending."""

    def __init__(self, dispatcher: DispatcherProtocol, elements: list[bytes]) -> None:
        self.dispatcher = dispatcher
        self.answers: list[bytes] = []
        self.owed = 1
        """The number of pending responses, plus one while elements are being read."""
        elements.reverse()
        self._unread = elements
        self._element = Message()
        self._turns = 0
        self._in_turn = False
        self._over = False
        self._cancelled: set[bytes] = set()
        self._refusal: ProtocolError | None = None
        """The error for requests that were not read before the batch was stopped; None until then."""

    def read(self) -> None:
        """Read elements for one time slice, and schedule the rest on the loop."""
        if self._over:
            return
        loop = self.dispatcher.connection.loop
        self._turns += 1
        self._read_until(None if loop is None else monotonic() + TURN_SECONDS)
        if self._unread and loop is not None:
            loop.call_soon(self.read)
        else:
            self._end()

    def _read_until(self, deadline: float | None) -> None:
        self._in_turn = True
        try:
            while self._unread:
                element = self._unread.pop()
                before = len(self.answers)
                try:
                    self._element.read(element)
                    self.dispatcher.dispatch(self._element, self)
                except Exception as error:
                    self.dispatcher.responses.line_failed(element, before, error, self)
                if deadline is not None and monotonic() > deadline:
                    break
        finally:
            self._in_turn = False

    def _end(self) -> None:
        self._over = True
        self.dispatcher.requests.batch_read(self, self._turns > 1)

    def cancel(self, key: bytes) -> None:
        """Note that a request was cancelled, which may be among the elements not read yet.

        A cancellation inside the batch can only refer to an earlier element.
        """
        if not self._in_turn:
            self._cancelled.add(key)

    def admits(self, id: bytes, key: bytes) -> bool:
        """Whether a request is to be served: not if it was cancelled, or the batch was stopped."""
        if self._refusal is not None:
            self.dispatcher.responses.put_error(id, self._refusal, self)
            return False
        return key not in self._cancelled

    def settle(self) -> None:
        """Something that the batch waits for has ended; send the responses if it was the last."""
        self.owed -= 1
        if self.owed == 0 and self.answers:
            connection = self.dispatcher.connection
            connection.output.line(b"[" + b",".join(self.answers) + b"]")
            connection.wrote()

    def stop(self, error: ProtocolError) -> None:
        """Answer all unread requests with an error, now."""
        if not self._over:
            self._refusal = error
            self._read_until(None)
            self._end()

    def abandon(self) -> None:
        """Stop reading: there is no client to answer."""
        self._over = True
        self._unread.clear()

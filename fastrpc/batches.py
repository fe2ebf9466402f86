"""Batches (JSON-RPC 2.0, section 6; of MCP in version 2025-03-26 alone): several messages in one array.

How many is bounded, and counted before any is made. They are read in order, in turns of a millisecond, so
that an event loop serves everything else between them; before there is a loop nothing else is there to be
served. The answers go out together, when the last has come. What an element means is the dispatcher's affair.
"""

from __future__ import annotations

from time import monotonic

from fastrpc._core.message import Message

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.engine.interfaces import Dispatcher
    from fastrpc.errors import ProtocolError

TURN_SECONDS = 0.001


class Batch:
    """One batch: its elements that have not been read, and the answers that it still owes."""

    __slots__ = (
        "_cancelled",
        "_element",
        "_in_turn",
        "_over",
        "_refusal",
        "_turns",
        "_unread",
        "answers",
        "dispatcher",
        "owed",
    )

    def __init__(self, dispatcher: Dispatcher, elements: list[bytes]) -> None:
        self.dispatcher = dispatcher
        self.answers: list[bytes] = []
        self.owed = 1
        """How many answers are still to come, and one for the reading of the batch itself."""
        elements.reverse()
        self._unread = elements
        self._element = Message()
        self._turns = 0
        self._in_turn = False
        self._over = False
        self._cancelled: set[bytes] = set()
        self._refusal: ProtocolError | None = None

    def read(self) -> None:
        """Read elements for one turn, and have the loop call again for the others."""
        if self._over:
            return
        loop = self.dispatcher.loop
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
                self._element.read(self._unread.pop())
                self.dispatcher.dispatch(self._element, self)
                if deadline is not None and monotonic() > deadline:
                    break
        finally:
            self._in_turn = False

    def _end(self) -> None:
        self._over = True
        self.dispatcher.batch_read(self, self._turns > 1)

    def cancel(self, key: bytes) -> None:
        """Note that a request has been cancelled which may be among those not read yet.

        A cancellation that is an element itself can only mean an earlier one.
        """
        if not self._in_turn:
            self._cancelled.add(key)

    def is_cancelled(self, key: bytes) -> bool:
        return key in self._cancelled

    @property
    def refusal(self) -> ProtocolError | None:
        """The error that requests are answered with, once the batch has been stopped."""
        return self._refusal

    def stop(self, error: ProtocolError) -> None:
        """Answer all requests that have not been read yet with an error, now."""
        if not self._over:
            self._refusal = error
            self._read_until(None)
            self._end()

    def abandon(self) -> None:
        """Read no more: nobody is left to be answered."""
        self._over = True
        self._unread.clear()

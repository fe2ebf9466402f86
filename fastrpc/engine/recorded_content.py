"""Has the records of calls carry what the client has sent and what it was answered, for who asks for that.

The dispatcher of a connection of a server with such an observer (`Server.observe`): a request keeps the line
that has brought it, and its answer until it is recorded. What the connection answers by itself carries
content without this (`Connection.finish`). Costs a copy of the line for each request that comes to the
dispatcher. Imported only where an observer wants content; the observer decides what happens to it.
"""

from __future__ import annotations

from fastrpc._core.recorder import DecidedLine, line_read_by, ticks
from fastrpc.engine.dispatcher import Dispatcher
from fastrpc.engine.request import Request
from fastrpc.engine.responses import ResponseWriter
from fastrpc.engine.results import error_object

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self

    from fastrpc._core.message import Message
    from fastrpc.engine.batches import Batch
    from fastrpc.engine.call import Call
    from fastrpc.errors import ProtocolError


class RecordedRequest(Request):
    """A request with its line; `answered` is its result or its error as JSON text, None before that."""

    __slots__ = ("answered", "line")
    answered: bytes | None
    line: bytes

    @classmethod
    def of(cls, dispatcher: Any, message: Message, batch: Batch | None) -> Self:
        found = super().of(dispatcher, message, batch)
        stated = dispatcher.connection.stated
        line = line_read_by(message)
        found.line = line if stated is None else DecidedLine(line, stated)
        found.answered = None
        return found

    def take_decided(self, decided: object) -> None:
        if decided is not None:
            self.line = DecidedLine(bytes(self.line), decided)

    @property
    def content(self) -> tuple[bytes | None, ...]:  # type: ignore[override]
        return self.line, self.answered


class RecordedResponses(ResponseWriter):
    """Responses whose records have content."""

    __slots__ = ()

    def answer(self, request: Any, result: bytes) -> None:
        request.answered = result
        super().answer(request, result)

    def refuse(self, request: Any, error: ProtocolError) -> None:
        self._keep_error(request, error)
        super().refuse(request, error)

    @staticmethod
    def _keep_error(request: Any, error: ProtocolError) -> None:
        request.answered = error_object(error.code, error.message, error.data)

    def call_returned(self, call: Call, result: Any) -> None:
        """Answer without the fast path for a text: the answer is needed as bytes."""
        call.request.returned = ticks()
        self.answer_encoded(call, result)


class RecordingDispatcher(Dispatcher):
    """A dispatcher whose records have content."""

    request_type = RecordedRequest
    responses_type = RecordedResponses

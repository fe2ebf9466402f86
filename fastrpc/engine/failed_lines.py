"""A message whose handling has raised, where nothing is meant to: it is logged, and answered by its id.

What handlers raise is answered where they are called. This is for everything else that a connection calls on
the way: a trace, a gate, a transport, fastrpc itself. The readers of a connection call it, and go on with the
next message.
"""

from __future__ import annotations

from fastrpc import forks, tracebacks
from fastrpc._core.message import Message
from fastrpc.engine.messages import key_of
from fastrpc.errors import InternalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.engine.batches import Batch
    from fastrpc.engine.interfaces import ResponsesProtocol
    from fastrpc.engine.request import Request


def answer(
    responses: ResponsesProtocol, line: bytes, before: int, error: BaseException, batch: Batch | None
) -> None:
    """Log the failure, and answer the request in `line`, unless that has happened since so many bytes were
    written (of a batch: since it had so many answers), or happens later."""
    connection = responses.connection
    forks.leave_if_forked(connection.generation, error)
    tracebacks.report("a message failed inside fastrpc", error)
    now = connection.output.total if batch is None else len(batch.answers)
    message = Message()
    message.read(line.strip())
    id = message.id
    if now != before or message.kind != "request" or id is None:
        return
    key = key_of(id)
    if key not in connection.in_flight and key not in connection.listening:
        responses.put_error(id, _response_error(), batch)


def end(responses: ResponsesProtocol, request: Request, before: int, error: BaseException) -> None:
    """The same for a call whose function has ended, and which is in flight unless it has been answered."""
    tracebacks.report("a call could not be answered", error)
    if request.key in responses.requests.in_flight:
        if request.batch is not None or responses.connection.output.total == before:
            responses.put_error(request.id, _response_error(), request.batch)
        responses.requests.forget(request)


def _response_error() -> InternalError:
    return InternalError("Internal error; see the server's log")

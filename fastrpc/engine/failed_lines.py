"""A message whose handling has raised, where nothing is meant to: it is logged, and answered by its id.

What handlers raise is answered where they are called. This is for everything else that a connection calls on
the way: a trace, a gate, a transport, fastrpc itself. The readers of a connection call it, and go on with the
next message.
"""

from __future__ import annotations

from fastrpc import tracebacks
from fastrpc._core.message import Message
from fastrpc.engine.messages import key_of
from fastrpc.errors import InternalError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.engine.interfaces import DispatcherProtocol
    from fastrpc.engine.request import Request


def answer(
    dispatcher: DispatcherProtocol, line: bytes, before: int, error: BaseException, batch: Any
) -> None:
    """Log the failure, and answer the request in `line`, unless that has happened since so many bytes were
    written (of a batch: since it had so many answers), or happens later."""
    dispatcher.leave_if_forked(error)
    tracebacks.report("a message failed inside fastrpc", error)
    now = dispatcher.connection.output.total if batch is None else len(batch.answers)
    message = Message()
    message.read(line.strip())
    id = message.id
    if now != before or message.kind != "request" or id is None:
        return
    key = key_of(id)
    if key not in dispatcher.in_flight and key not in dispatcher.listening:
        dispatcher.answer_error(id, _response_error(), batch)


def end(dispatcher: DispatcherProtocol, request: Request, before: int, error: BaseException) -> None:
    """The same for a call whose function has ended, and which is in flight unless it has been answered."""
    tracebacks.report("a call could not be answered", error)
    if request.key in dispatcher.in_flight:
        if request.batch is not None or dispatcher.connection.output.total == before:
            dispatcher.answer_error(request.id, _response_error(), request.batch)
        dispatcher.forget(request)


def _response_error() -> InternalError:
    return InternalError("Internal error; see the server's log")

"""The state of a call's upstream request, and the errors that may end it. No I/O."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from fastrpc.errors import InternalError, InvalidParams, ProtocolError, ToolError
from fastrpc.quotas import size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Any

    from fastrpc.context import Context

RESOURCE_NOT_FOUND = -32002
REFUSED = InternalError.code
"""The code for an error that has none (JSON-RPC 2.0, 5.1: internal error)."""


class UpstreamError(ProtocolError):
    """An error response of the upstream server, forwarded unchanged."""

    def __init__(self, code: object, message: object, data: Any) -> None:
        super().__init__(str(message or "the upstream server gave no reason"), data)
        self.code = code if type(code) is int else REFUSED

    def says_not_found(self, uri: str) -> bool:
        """Whether it means that there is no such resource, in any protocol version."""
        of_uri = isinstance(self.data, dict) and self.data.get("uri") == uri
        return self.code == RESOURCE_NOT_FOUND or (self.code == InvalidParams.code and of_uri)


class SessionGone(ToolError):
    """The session has expired. The upstream server has not processed the request, which may be sent again."""


class LoginFailed(ToolError):
    """A login at the server is missing, or has not led to a token that it accepts."""


class UnreadableAnswer(ToolError):
    """The upstream server's answer is none, or its result is not that of the method."""


MOST_QUESTIONS = 64
MOST_QUESTION_BYTES = 16 * 1024 * 1024
"""Requests of the server that wait during one call, and their memory."""
ASKED: dict[str, Any] = {}
"""In place of a result: the server has sent requests, which must be answered first."""


@dataclass(slots=True, eq=False, repr=False)
class CallOrigin:
    """The call to which a pending request belongs: its context, or None, and the server's requests meanwhile.

    `future` gets the result, the error, or `ASKED` when there are `questions`. `asking`: the id of the one
    that is passed on, and the task that waits for its answer.
    """

    context: Context | None
    future: asyncio.Future[dict[str, Any]]
    questions: deque[dict[str, Any]] = field(default_factory=deque)
    asking: tuple[str | int, asyncio.Task[dict[str, Any]]] | None = None

    def ask(self, question: dict[str, Any]) -> bool:
        """Add a request of the server. Return False if too many wait, or too large ones."""
        size = sum(size_of(each, MOST_QUESTION_BYTES) for each in (*self.questions, question))
        if len(self.questions) >= MOST_QUESTIONS or size > MOST_QUESTION_BYTES:
            return False
        self.questions.append(question)
        if not self.future.done():
            self.future.set_result(ASKED)
        return True

    def withdraw(self, id: Any, said: dict[str, Any]) -> bool:
        """End a question that the server has cancelled, and `said` why. Return whether this call has it."""
        for question in self.questions:
            if question["id"] == id:
                self.questions.remove(question)
                return True
        if self.asking is None or self.asking[0] != id:
            return False
        self.asking[1].cancel(said)  # it comes to where the task waits
        self.asking = None
        return True

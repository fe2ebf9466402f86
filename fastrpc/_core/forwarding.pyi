"""Forwards tool calls to an upstream server as bytes."""

from collections.abc import Callable
from typing import Any

from fastrpc._core.client_request import AnswerSink, PendingRequest
from fastrpc._core.client_stream import ClientStream
from fastrpc._core.pending import ConnectionCall
from fastrpc._core.plan import CallForwarder
from fastrpc.errors import ClientError

class ForwardedCall(ConnectionCall):
    """A call whose answer comes from the upstream server."""

    def break_off(self, error: BaseException) -> None: ...
    def cancel(self, said: dict[str, Any] | None = None) -> None:
        """The client has cancelled, or is gone: cancel the upstream request and answer nothing. `said`: the
        client's reason, and what else goes on."""

class UpstreamRoute(AnswerSink):
    """Where calls of one upstream server are sent: `stream`, None while it is not connected. `version` is
    that of its session."""

    stream: ClientStream | None
    version: str | None
    def __init__(
        self,
        result_of: Callable[[dict[str, Any]], Any],
        error_of: Callable[[ClientError], Exception],
        carried_of: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> None: ...
    def promote(self, request: PendingRequest) -> None:
        """Go on with a forwarded call as an ordinary one, which has a Context. Its function is called with
        the upstream request in the place of the arguments."""

class ToolForwarder(CallForwarder):
    """Forwards calls of one tool, which the upstream server knows as `name`."""

    def __init__(self, route: UpstreamRoute, name: str) -> None: ...

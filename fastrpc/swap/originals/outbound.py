"""The stream on which a ServerSession of the SDK's 1.x sends messages: fastrpc's outbound channel."""

from __future__ import annotations

import asyncio
from weakref import ref

from fastrpc.compat.lowlevel.own_methods import current
from fastrpc.errors import FastrpcError
from fastrpc.proxy.entries import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NOT_SUPPORTED = -32600
"""The code of the SDK's own clients for a request of the server that they do not support."""


class OutboundStream:
    """Sends what a session writes; the client's response to a request is put where the session waits for
    it."""

    def __init__(self, dispatcher: Any, types: Any) -> None:
        self._dispatcher = ref(dispatcher)
        self._types = types
        self._asking: set[asyncio.Task[None]] = set()
        self.session: Any = None

    async def send(self, message: Any) -> None:
        """Send a SessionMessage: a notification at once, a request as one of the running call."""
        sent = message.message.root
        if isinstance(sent, self._types.JSONRPCRequest):
            task = asyncio.ensure_future(self._ask(sent.id, sent.method, sent.params or {}))
            self._asking.add(task)
            task.add_done_callback(self._asking.discard)
        elif isinstance(sent, self._types.JSONRPCNotification):
            self._notify(sent.method, sent.params)

    async def aclose(self) -> None:
        """Does nothing: the connection is the transport's."""

    def _notify(self, method: str, params: dict[str, Any] | None) -> None:
        call = current.get(None)
        if call is not None and not call.ended and call._channel is not None:
            request: Any = call._channel.request
            request.notify_client(method, params)
            return
        dispatcher = self._dispatcher()
        if dispatcher is not None:
            dispatcher.outbound.post(lambda: dispatcher.outbound.notify(method, params))

    async def _ask(self, id: Any, method: str, params: dict[str, Any]) -> None:
        call = current.get(None)
        try:
            if call is None:
                raise FastrpcError(f"{method}: no call is running, to which the request could belong")
            result = await ask(call, method, params)
            response = self._types.JSONRPCResponse(jsonrpc="2.0", id=id, result=result)
        except FastrpcError as error:
            problem = self._types.ErrorData(
                code=getattr(error, "code", NOT_SUPPORTED),
                message=str(error),
                data=getattr(error, "data", None),
            )
            response = self._types.JSONRPCError(jsonrpc="2.0", id=id, error=problem)
        waiting = self.session._response_streams.get(id)
        if waiting is not None:
            waiting.send_nowait(response)

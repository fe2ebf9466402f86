"""Sends what an original sends to its client on fastrpc's outbound channel, as part of the running call if
there is one.

`OutboundStream` is the stream on which a ServerSession of the SDK's 1.x sends messages; the channels of 2.x
are in `sdk2`.
"""

from __future__ import annotations

import asyncio
from weakref import ref

from fastrpc.compat.lowlevel.own_methods import current
from fastrpc.errors import FastrpcError
from fastrpc.proxy.entries import ask

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NOT_SUPPORTED = -32600
"""The code of the SDK's own clients for a request of the server that they do not support."""


def is_running(call: Any) -> bool:
    """Whether a call can still send something to its client."""
    return not call.ended and call._channel is not None


def notify(call: Any, dispatcher: Any, method: str, params: Mapping[str, Any] | None) -> None:
    """Send a notification as one of a call, if that is running, else as one of a connection, if that is
    open: `call` and `dispatcher` may be None."""
    if call is not None and is_running(call):
        call._channel.request.notify_client(method, params)
    elif dispatcher is not None:
        dispatcher.outbound.post(lambda: dispatcher.outbound.notify(method, params))


async def ask_client(call: Any, method: str, params: Mapping[str, Any] | None) -> Any:
    """Return the client's result for a request of a call. Raises FastrpcError, also if there is no call."""
    if call is None:
        raise FastrpcError(f"{method}: no call is running, to which the request could belong")
    return await ask(call, method, dict(params or {}))


def code_and_data(error: FastrpcError) -> tuple[int, Any]:
    """Return the code and the data by which an original's handler learns of an error of `ask_client`."""
    return getattr(error, "code", NOT_SUPPORTED), getattr(error, "data", None)


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
        notify(current.get(None), self._dispatcher(), method, params)

    async def _ask(self, id: Any, method: str, params: dict[str, Any]) -> None:
        try:
            result = await ask_client(current.get(None), method, params)
            response = self._types.JSONRPCResponse(jsonrpc="2.0", id=id, result=result)
        except FastrpcError as error:
            code, data = code_and_data(error)
            problem = self._types.ErrorData(code=code, message=str(error), data=data)
            response = self._types.JSONRPCError(jsonrpc="2.0", id=id, error=problem)
        waiting = self.session._response_streams.get(id)
        if waiting is not None:
            waiting.send_nowait(response)

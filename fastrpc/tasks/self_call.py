"""`SelfCall`: one call of a tool that the server makes to itself for a principal, for a task or a person.

It has a separate connection, in memory, and the wire of 2026-07-28: guard, hooks, limits and audit see it
as a client's call, and a call that asks its client ends with its questions and its state, so nothing of it is
kept in memory. Used in the event loop that serves.
"""

from __future__ import annotations

from json import dumps, loads

from fastrpc.engine.messages import TASK
from fastrpc.protocol.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    HOP_KEYS,
    LOG_KEY,
    STATELESS,
    TASKS_EXTENSION,
    VERSION_KEY,
)
from fastrpc.transports.base import Connections
from fastrpc.transports.memory import MemoryTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from fastrpc._core.connection import Connection
    from fastrpc.engine.ports import HeldTask

    class TaskServer(Protocol):
        """The part of `fastrpc.Server` that tasks need."""

        name: str

        @property
        def runtime(self) -> Any: ...
        def connect(self) -> Any:
            """Return the dispatcher of a new connection."""

    class CallListener(Protocol):
        """Receives what a call sends."""

        def notified(self, message: dict[str, Any]) -> object:
            """The call has reported progress, or logged something."""

        def returned(self, result: str) -> object:
            """The call has ended with a result, as JSON."""

        def refused(self, error: str) -> object:
            """The call has ended with a JSON-RPC error, as JSON."""


PROGRESS_TOKEN = "task"
_RESULT = b'{"jsonrpc":"2.0","id":1,"result":'
_ERROR = b'{"jsonrpc":"2.0","id":1,"error":'


class SelfCall:
    """A call, from `begin` to its end: `listener` then hears of it, unless it was cancelled before."""

    def __init__(
        self,
        server: TaskServer,
        principal: str,
        params: dict[str, Any],
        listener: CallListener,
        task: HeldTask | None,
    ) -> None:
        self._server = server
        self._listener: CallListener | None = listener
        self._transport: MemoryTransport | None = None
        self._principal = principal
        self._params = params
        self._task = task
        self._message = b""
        """The call, as long as it is prepared and not sent."""

    def prepare(self) -> None:
        """Do what can be done before the call may begin. Runs no code of the server's user."""
        if self._listener is None or self._transport is not None:
            return
        self._transport = MemoryTransport(self._receive)
        self._transport.connect(Connections(self._connect), self._principal)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": self._params}
        self._message = dumps(message, separators=(",", ":")).encode("utf-8", "surrogatepass")

    def begin(self) -> None:
        """Send the call, unless it has been sent or cancelled. It may have ended when this returns."""
        self.prepare()
        message, self._message = self._message, b""
        if message and self._listener is not None and self._transport is not None:
            self._transport.send(message)

    def cancel(self) -> None:
        """End the call, unless it has ended. `listener` hears no more of it."""
        if self._listener is not None:
            self._end()

    def _end(self) -> None:
        self._listener = None
        if self._transport is not None:
            self._transport.disconnect()

    def _connect(self) -> Connection:
        dispatcher = self._server.connect()
        dispatcher.makes_tasks = False
        dispatcher.call_task = self._task
        connection: Connection = dispatcher.connection
        if self._task is not None:
            connection.stated = {TASK: self._task}
        return connection

    def _receive(self, line: bytes) -> None:
        listener = self._listener
        if listener is None:
            return
        if line.startswith((_RESULT, _ERROR)):
            self._end()
            if line.startswith(_RESULT):
                listener.returned(line[len(_RESULT) : -1].decode())
            else:
                listener.refused(line[len(_ERROR) : -1].decode())
        else:
            listener.notified(loads(line))


def params_of(request: Any) -> dict[str, Any]:
    """Return the params of the call that is made for a request's: without what belongs to the client's
    connection, and without the extension, with which the call would become a task."""
    capabilities = dict(request.client_capabilities)
    extensions = capabilities.pop("extensions", None) or {}
    capabilities["extensions"] = {key: value for key, value in extensions.items() if key != TASKS_EXTENSION}
    found = {"name": request.params["name"], "arguments": request.params.get("arguments") or {}}
    if request.version == STATELESS:
        found |= {
            key: request.params[key] for key in ("inputResponses", "requestState") if key in request.params
        }
    found["_meta"] = {
        **{key: value for key, value in request.meta.items() if key not in HOP_KEYS},
        VERSION_KEY: STATELESS,
        CLIENT_KEY: request.client_info,
        CAPABILITIES_KEY: capabilities,
        "progressToken": PROGRESS_TOKEN,
    }
    if LOG_KEY in request.meta:
        found["_meta"][LOG_KEY] = request.meta[LOG_KEY]
    return found

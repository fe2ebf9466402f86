"""The client side of a connection to an MCP server: what is common to all transports.

Requests are sent with ids of this connection. Results, errors, progress and the server's own requests are
routed to the pending request that they belong to. `ProcessClient` connects to a child process over pipes,
`fastrpc.proxy.remote` to a server over HTTP. What to request, and when, is decided by `fastrpc.proxy`.
"""

from __future__ import annotations

import asyncio
import json

from fastrpc import diagnostics
from fastrpc.errors import FastrpcError, ProtocolError, ToolError
from fastrpc.json_encoding import to_json
from fastrpc.protocol.versions import LATEST_LEGACY, LEGACY_VERSIONS
from fastrpc.proxy.requests import REFUSED, PendingRequest, RemoteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    from fastrpc.context import Context

    class Owner(Protocol):
        """Receives the events of a connection."""

        def on_notification(self, method: str, params: dict[str, Any], context: Context | None) -> object:
            """Handle a notification. `context` is that of the call to which it most probably belongs."""

        def on_end(self, client: UpstreamClient, reason: str) -> object:
            """Handle the end of the connection."""

        def relist(self) -> object:
            """List everything again: the server may have changed without a notification."""

        def schema_of(self, tool: str) -> dict[str, Any]:
            """Return the input schema of a tool of the server; empty if the tool is not known."""

        async def ask(self, context: Context, method: str, params: dict[str, Any]) -> dict[str, Any]:
            """Put a request of the server to the client of a call, and return the client's result.

            Raises ToolError and ProtocolError.
            """


METHOD_NOT_FOUND = -32601


class UpstreamClient:
    """A connection to an MCP server. Subclasses implement the methods that depend on the transport."""

    stateless = False
    """Whether the server speaks the stateless protocol (2026-07-28), which returns input requests in results.
    """

    def __init__(self, owner: Owner, initialize_params: dict[str, Any]) -> None:
        self.owner = owner
        self.initialize_params = initialize_params
        """Our side of the handshake: ``clientInfo`` and ``capabilities``."""
        self.loop = asyncio.get_running_loop()
        self.ended: str | None = None
        """Why the connection has ended; None while it is open."""
        self._pending: dict[int, PendingRequest] = {}
        self._watched: set[str] = set()
        self._last_id = 0

    # --- implemented by transports --------------------------------------------------------------------

    async def initialize(self) -> dict[str, Any]:
        """Initialize the connection, and return the server's InitializeResult or DiscoverResult. Raises
        ToolError, RemoteError and ValueError."""
        return await self.handshake(LATEST_LEGACY)

    def send_request(self, pending: PendingRequest, message: dict[str, Any]) -> None:
        """Send a request."""
        raise NotImplementedError

    def withdraw(self, pending: PendingRequest) -> None:
        """Cancel a request whose caller no longer waits."""
        raise NotImplementedError

    async def send(self, message: dict[str, Any], pending: PendingRequest | None = None) -> None:
        """Send a notification, or the response to a request that the server sent during `pending`. Raises
        ToolError."""
        raise NotImplementedError

    async def watch(self, uris: set[str]) -> None:
        """Subscribe to changes of these resources; those already subscribed to are skipped."""
        for uri in uris - self._watched:
            self._watched.add(uri)
            try:
                await self.request("resources/subscribe", {"uri": uri})
            except FastrpcError as error:
                diagnostics.write(
                    "warning", f"the server behind will not tell of changes of {uri:.200}: {error}"
                )

    def check_tool(self, entry: dict[str, Any]) -> None:
        """Raise ValueError for a tool that cannot be called over this transport."""

    async def leave(self) -> None:
        """Close the connection, within a second."""
        raise NotImplementedError

    # --- requests -------------------------------------------------------------------------------------

    async def handshake(self, version: str) -> dict[str, Any]:
        """Run the `initialize` handshake (MCP up to 2025-11-25: lifecycle). Raises ValueError for an unknown
        version."""
        found = await self.request("initialize", {"protocolVersion": version, **self.initialize_params})
        if found["protocolVersion"] not in LEGACY_VERSIONS:
            raise ValueError(f"it speaks protocol {found['protocolVersion']!r:.40}, which is not known here")
        self.set_version(found["protocolVersion"])
        await self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        if "logging" in found["capabilities"]:  # levels are filtered for each client here
            try:
                await self.request("logging/setLevel", {"level": "debug"})
            except RemoteError as error:
                diagnostics.write("warning", f"the server behind will not tell all that it logs: {error}")
        return found

    def set_version(self, version: str) -> None:
        """Store the protocol version that the handshake chose."""

    async def request(
        self, method: str, params: dict[str, Any] | None = None, context: Context | None = None
    ) -> dict[str, Any]:
        """Send a request and return its result. `context` is that of the call that needs it.

        Progress and the server's own requests go to that call's client. Raises RemoteError, and ToolError if
        the connection ends first. Cancelling the caller cancels the request.
        """
        if self.ended is not None:
            raise ToolError(f"the server behind this one is gone: {self.ended}")
        self._last_id += 1
        id = self._last_id
        params = dict(params or {})
        if context is not None and context.wants_progress:
            params["_meta"] = {**params.get("_meta", {}), "progressToken": id}
        pending = self._pending[id] = PendingRequest(id, method, context)
        try:
            self.send_request(pending, {"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            return await self._result_of(pending)
        finally:
            if self._pending.pop(id, None) is not None:
                self.withdraw(pending)

    async def _result_of(self, pending: PendingRequest) -> dict[str, Any]:
        """Wait for the result. Requests that the server sends meanwhile are answered in the task of the call,
        which InputRequired may leave (MCP 2026-07-28)."""
        while True:
            kind, value = await pending.events.get()
            if kind == "result":
                found: dict[str, Any] = value
                return found
            if kind == "error":
                raise value
            await self._answer(pending, value)

    async def _answer(self, pending: PendingRequest, question: dict[str, Any]) -> None:
        """Put a request of the server to the call's client, and send the answer back."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": question["id"]}
        try:
            assert pending.context is not None
            params = question.get("params") or {}
            answer["result"] = await self.owner.ask(pending.context, question["method"], params)
        except (ToolError, ProtocolError) as error:
            answer["error"] = {"code": REFUSED, "message": str(error)}
        await self.send(answer, pending)

    # --- incoming messages ----------------------------------------------------------------------------

    def on_message(self, message: Any, of: PendingRequest | None = None) -> None:
        """Handle an incoming message. `of`: the request to which it belongs, if the transport knows it."""
        if not isinstance(message, dict):
            diagnostics.write("warning", f"the server behind sent no message: {message!r:.100}")
        elif "method" not in message:
            self._on_response(message)
        elif "id" in message:
            self._on_request(message, of)
        else:
            params = message.get("params")
            self._on_notification(str(message["method"]), params if isinstance(params, dict) else {}, of)

    def is_pending(self, pending: PendingRequest) -> bool:
        return pending.id in self._pending

    def fail(self, pending: PendingRequest, error: Exception) -> None:
        """End a pending request with an error."""
        if self._pending.pop(pending.id, None) is not None:
            pending.events.put_nowait(("error", error))

    def _on_response(self, message: dict[str, Any]) -> None:
        id = message.get("id")
        pending = self._pending.pop(id, None) if type(id) is int else None
        if pending is None:
            return  # cancelled meanwhile, or not a request of ours
        result = message.get("result")
        if isinstance(result, dict):
            pending.events.put_nowait(("result", result))
        else:
            pending.events.put_nowait(("error", RemoteError(message.get("error"))))

    def _on_request(self, message: dict[str, Any], of: PendingRequest | None) -> None:
        """Handle a request of the server: it goes to the call it names, or else to the latest call."""
        if message["method"] == "ping":
            self.send_nowait({"jsonrpc": "2.0", "id": message["id"], "result": {}})
            return
        for pending in reversed(self._pending.values()) if of is None else (of,):
            if pending.context is not None:
                pending.events.put_nowait(("question", message))
                return
        error = {"code": METHOD_NOT_FOUND, "message": "no call is in flight: there is no client to ask"}
        self.send_nowait({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def send_nowait(self, message: dict[str, Any]) -> None:
        """Send a notification or a response without waiting."""
        raise NotImplementedError

    def _on_notification(self, method: str, params: dict[str, Any], of: PendingRequest | None) -> None:
        if method == "notifications/progress":
            token = params.get("progressToken")
            pending = self._pending.get(token) if type(token) is int else None
            if pending is not None and pending.context is not None:
                self._progress(pending.context, params)
            return
        if of is not None and of.context is not None:
            self.owner.on_notification(method, params, of.context)
            return
        contexts = [pending.context for pending in self._pending.values() if pending.context is not None]
        self.owner.on_notification(method, params, contexts[-1] if contexts else None)

    def _progress(self, context: Context, params: dict[str, Any]) -> None:
        try:
            context.progress(params["progress"], params.get("total"), params.get("message"))
        except (KeyError, TypeError, ValueError) as error:
            diagnostics.write("warning", f"the server behind sent a broken progress report: {error!r}")

    # --- closing --------------------------------------------------------------------------------------

    def end(self, reason: str) -> None:
        """The connection has ended: fail all pending requests."""
        if self.expire(reason):
            self.fail_all(reason)

    def expire(self, reason: str) -> bool:
        """Refuse new requests; pending ones may still be answered. Return False if this was done before."""
        if self.ended is not None:
            return False
        self.ended = reason
        self.owner.on_end(self, reason)
        return True

    def fail_all(self, reason: str) -> None:
        """Fail all pending requests."""
        for pending in list(self._pending.values()):
            error = f"the server behind this one is gone: {reason}; the next call starts it again"
            self.fail(pending, ToolError(error))


class ProcessClient(UpstreamClient):
    """A connection to a child process, in the latest version that has an `initialize` handshake."""

    def __init__(
        self,
        owner: Owner,
        initialize_params: dict[str, Any],
        command: Sequence[str],
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
    ) -> None:
        """Start the process. Raises ProgramError."""
        from fastrpc.processes.pipes import Pipes

        super().__init__(owner, initialize_params)
        self._pipes = Pipes(command, cwd=cwd, env=env, on_line=self._on_line, on_end=self.end)

    def send_request(self, pending: PendingRequest, message: dict[str, Any]) -> None:
        self.send_nowait(message)

    def withdraw(self, pending: PendingRequest) -> None:
        params = {"requestId": pending.id}
        self.send_nowait({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def send(self, message: dict[str, Any], pending: PendingRequest | None = None) -> None:
        self.send_nowait(message)

    def send_nowait(self, message: dict[str, Any]) -> None:
        self._pipes.write(to_json(message) + b"\n")

    def _on_line(self, line: bytes) -> None:
        """Handle a line. A line that is not JSON is logged and skipped (MCP: stdio transport)."""
        try:
            message = json.loads(line)
        except ValueError:
            message = line
        self.on_message(message)

    async def leave(self) -> None:
        await self._pipes.leave()

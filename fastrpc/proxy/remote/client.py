"""A connection to a server over HTTP: finds out which protocol version and transport it supports.

The order is that of MCP 2026-07-28 (versioning: backwards compatibility). First `server/discover`: a valid
result selects the stateless transport. Any other answer leads to `initialize`. If `initialize` is refused
with status 400, 404 or 405, a GET is tried: an `endpoint` event selects HTTP+SSE. Each transport is a module
of its own.
"""

from __future__ import annotations

import asyncio

from fastrpc import diagnostics
from fastrpc.errors import ToolError
from fastrpc.protocol.versions import LATEST_LEGACY, LEGACY_VERSIONS, MODERN, SERVER_KEY
from fastrpc.proxy.remote.wire import Refused, Wire
from fastrpc.proxy.requests import RemoteError
from fastrpc.proxy.upstream import UpstreamClient

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from fastrpc.proxy.remote.address import Remote
    from fastrpc.proxy.remote.transport import Transport
    from fastrpc.proxy.requests import PendingRequest
    from fastrpc.proxy.upstream import Owner

PROBE_SECONDS = 5.0
"""Seconds that a server may take to answer `server/discover`; after that it is treated as a session server.
"""
LEAVE_SECONDS = 1.0

UNSUPPORTED_VERSION = -32022
NO_LEGACY_HTTP = (400, 404, 405)
"""Statuses of a refused `initialize` after which HTTP+SSE is tried."""


class HttpClient(UpstreamClient):
    """A connection to a server at a URL."""

    def __init__(self, owner: Owner, initialize_params: dict[str, Any], remote: Remote) -> None:
        super().__init__(owner, initialize_params)
        self._wire = Wire(remote)
        self._remote = remote
        self._transport: Transport | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        if remote.is_open_to_listeners:
            diagnostics.write(
                "warning", f"{remote.shown}: what opens it goes over the network in the clear: use https"
            )

    # --- connecting -----------------------------------------------------------------------------------

    async def initialize(self) -> dict[str, Any]:
        wanted = self._remote.protocol_version
        if wanted in (None, MODERN):
            found = await self._discover()
            if found is not None:
                return found
            if wanted == MODERN:
                raise ToolError(f"it does not speak {MODERN}")
        return await self._initialize(wanted or LATEST_LEGACY)

    async def _discover(self) -> dict[str, Any] | None:
        """Return the DiscoverResult of a server of 2026-07-28; None for any other server."""
        from fastrpc.proxy.remote.stateless import StatelessTransport

        self._transport = transport = StatelessTransport(self, self._wire)
        try:
            found = await asyncio.wait_for(self._send_discover(), PROBE_SECONDS)
        except (asyncio.TimeoutError, RemoteError):
            return None
        except Refused as error:
            if error.status in (401, 403, 429) or error.status >= 500:
                raise
            return None
        supported = found.get("supportedVersions")
        if not isinstance(supported, list) or MODERN not in supported:
            return None
        self.stateless = True
        found["serverInfo"] = (found.get("_meta") or {}).get(SERVER_KEY)
        await transport.begin(found["capabilities"])
        return found

    async def _send_discover(self) -> dict[str, Any]:
        try:
            return await self.request("server/discover")
        except RemoteError as error:
            data = error.data if isinstance(error.data, dict) else {}
            supported = data.get("supported")
            if error.code != UNSUPPORTED_VERSION or not isinstance(supported, list):
                raise
            if MODERN in supported:  # the version it has just refused: try again once
                return await self.request("server/discover")
            if any(version in LEGACY_VERSIONS for version in supported):
                raise
            shown = ", ".join(str(version)[:20] for version in supported[:8])
            raise ToolError(f"it speaks protocol {shown}, which is not known here") from None

    async def _initialize(self, version: str) -> dict[str, Any]:
        from fastrpc.proxy.remote.session import SessionTransport

        self._transport = SessionTransport(self, self._wire)
        try:
            return await self.handshake(version)
        except (Refused, RemoteError) as refusal:
            if refusal.status not in NO_LEGACY_HTTP:
                raise
            return await self._initialize_sse(version, refusal)

    async def _initialize_sse(self, version: str, refusal: Exception) -> dict[str, Any]:
        """Try HTTP+SSE (MCP 2024-11-05). If that fails too, raise the first refusal."""
        from fastrpc.proxy.remote.sse import SseTransport

        self._transport = transport = SseTransport(self, self._wire)
        if not await transport.open():
            raise refusal
        return await self.handshake(version)

    def set_version(self, version: str) -> None:
        if self._transport is not None:
            self._transport.set_version(version)

    # --- requests -------------------------------------------------------------------------------------

    def on_message(self, message: Any, of: PendingRequest | None = None) -> None:
        error = message.get("error") if isinstance(message, dict) else None
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            error["message"] = self._remote.hide(error["message"])
        super().on_message(message, of)

    @property
    def transport(self) -> Transport:
        assert self._transport is not None
        return self._transport

    def send_request(self, pending: PendingRequest, message: dict[str, Any]) -> None:
        self.transport.send_request(pending, message)

    def withdraw(self, pending: PendingRequest) -> None:
        self.transport.withdraw(pending)

    async def send(self, message: dict[str, Any], pending: PendingRequest | None = None) -> None:
        await self.transport.send(message, pending)

    def send_nowait(self, message: dict[str, Any]) -> None:
        self.spawn(self._send_quietly(message))

    async def _send_quietly(self, message: dict[str, Any]) -> None:
        try:
            await self.send(message)
        except ToolError as error:
            diagnostics.write("info", f"the server behind was not told: {error}")

    async def watch(self, uris: set[str]) -> None:
        if self.stateless:
            await self.transport.watch(uris)
        else:
            await super().watch(uris)

    def check_tool(self, entry: dict[str, Any]) -> None:
        if self.stateless:
            from fastrpc.proxy.remote.stateless import check_marks

            check_marks(entry["inputSchema"])

    def relist(self) -> None:
        """List everything again: the server may have changed without a notification."""
        self.owner.relist()

    def schema_of(self, tool: str) -> dict[str, Any]:
        """Return the input schema of a tool of the server; empty if the tool is not known."""
        return self.owner.schema_of(tool)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that is cancelled when the connection is closed."""
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- closing --------------------------------------------------------------------------------------

    async def leave(self) -> None:
        if self.ended is not None:  # let pending requests finish with their own errors
            deadline = self.loop.time() + LEAVE_SECONDS
            while self._pending and self.loop.time() < deadline:
                await asyncio.sleep(0.01)
        self.fail_all(self.ended or "it is left")
        try:
            await asyncio.wait_for(self._leave(), LEAVE_SECONDS)
        except (asyncio.TimeoutError, ToolError):
            pass  # the server notices that the connection has closed

    async def _leave(self) -> None:
        try:
            if self._transport is not None:
                await self._transport.leave()
        finally:
            tasks = [task for task in self._tasks if task is not asyncio.current_task()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._wire.close()

"""A server that is spoken to over HTTP: which era and transport it knows is found out, then used.

As MCP 2026-07-28 says (versioning: backwards compatibility): `server/discover` first; an answer of that era
decides for it. Anything else that no error explains: `initialize`; where that is refused with 400, 404 or
405, a GET, whose stream is HTTP+SSE if its first event says so. Each transport is a module of its own.
"""

from __future__ import annotations

import asyncio

from fastrpc import log
from fastrpc.errors import ToolError
from fastrpc.proxy.peer import Peer
from fastrpc.proxy.remote.wire import Refused, Wire
from fastrpc.proxy.requests import RemoteError
from fastrpc.versions import LATEST_LEGACY, LEGACY_VERSIONS, MODERN, SERVER_KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from typing import Any

    from fastrpc.proxy.peer import Owner
    from fastrpc.proxy.remote.address import Remote
    from fastrpc.proxy.remote.transport import Transport
    from fastrpc.proxy.requests import Asked

PROBE_SECONDS = 5.0
"""How long a server may take to say whether it knows 2026-07-28; then it is taken not to."""
LEAVE_SECONDS = 1.0

UNSUPPORTED_VERSION = -32022
NO_LEGACY_HTTP = (400, 404, 405)
"""Statuses of `initialize` after which an older transport is tried."""


class HttpPeer(Peer):
    """A server at a URL."""

    def __init__(self, owner: Owner, told: dict[str, Any], remote: Remote) -> None:
        super().__init__(owner, told)
        self._wire = Wire(remote)
        self._remote = remote
        self._transport: Transport | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        if remote.is_open_to_listeners:
            log.write(
                "warning", f"{remote.shown}: what opens it goes over the network in the clear: use https"
            )

    # --- the beginning --------------------------------------------------------------------------------

    async def introduce(self) -> dict[str, Any]:
        wanted = self._remote.protocol_version
        if wanted in (None, MODERN):
            found = await self._discover()
            if found is not None:
                return found
            if wanted == MODERN:
                raise ToolError(f"it does not speak {MODERN}")
        return await self._initialize(wanted or LATEST_LEGACY)

    async def _discover(self) -> dict[str, Any] | None:
        """Return what a server of 2026-07-28 says of itself; None if it is none."""
        from fastrpc.proxy.remote.stateless import StatelessTransport

        self._transport = transport = StatelessTransport(self, self._wire)
        try:
            found = await asyncio.wait_for(self._ask_what_it_is(), PROBE_SECONDS)
        except (asyncio.TimeoutError, RemoteError):
            return None
        except Refused as error:
            if error.status in (401, 403, 429) or error.status >= 500:
                raise
            return None
        supported = found.get("supportedVersions")
        if not isinstance(supported, list) or MODERN not in supported:
            return None
        self.modern = True
        found["serverInfo"] = (found.get("_meta") or {}).get(SERVER_KEY)
        await transport.begin(found["capabilities"])
        return found

    async def _ask_what_it_is(self) -> dict[str, Any]:
        try:
            return await self.request("server/discover")
        except RemoteError as error:
            data = error.data if isinstance(error.data, dict) else {}
            supported = data.get("supported")
            if error.code != UNSUPPORTED_VERSION or not isinstance(supported, list):
                raise
            if MODERN in supported:  # what it has just refused: it may think better of it
                return await self.request("server/discover")
            if any(version in LEGACY_VERSIONS for version in supported):
                raise
            shown = ", ".join(str(version)[:20] for version in supported[:8])
            raise ToolError(f"it speaks protocol {shown}, which is not known here") from None

    async def _initialize(self, version: str) -> dict[str, Any]:
        from fastrpc.proxy.remote.session import SessionTransport

        self._transport = SessionTransport(self, self._wire)
        try:
            return await self.shake_hands(version)
        except (Refused, RemoteError) as refusal:
            if refusal.status not in NO_LEGACY_HTTP:
                raise
            return await self._initialize_old(version, refusal)

    async def _initialize_old(self, version: str, refusal: Exception) -> dict[str, Any]:
        """Try HTTP+SSE (MCP 2024-11-05). If it is not that either, the first refusal counts."""
        from fastrpc.proxy.remote.sse import SseTransport

        self._transport = transport = SseTransport(self, self._wire)
        if not await transport.open():
            raise refusal
        return await self.shake_hands(version)

    def agreed(self, version: str) -> None:
        if self._transport is not None:
            self._transport.agreed(version)

    # --- asking ---------------------------------------------------------------------------------------

    def take(self, message: Any, of: Asked | None = None) -> None:
        error = message.get("error") if isinstance(message, dict) else None
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            error["message"] = self._remote.hide(error["message"])
        super().take(message, of)

    @property
    def transport(self) -> Transport:
        assert self._transport is not None
        return self._transport

    def put(self, asked: Asked, message: dict[str, Any]) -> None:
        self.transport.put(asked, message)

    def withdraw(self, asked: Asked) -> None:
        self.transport.withdraw(asked)

    async def tell(self, message: dict[str, Any], asked: Asked | None = None) -> None:
        await self.transport.tell(message, asked)

    def tell_soon(self, message: dict[str, Any]) -> None:
        self.spawn(self._tell_quietly(message))

    async def _tell_quietly(self, message: dict[str, Any]) -> None:
        try:
            await self.tell(message)
        except ToolError as error:
            log.write("info", f"the server behind was not told: {error}")

    async def watch(self, uris: set[str]) -> None:
        if self.modern:
            await self.transport.watch(uris)
        else:
            await super().watch(uris)

    def check_tool(self, entry: dict[str, Any]) -> None:
        if self.modern:
            from fastrpc.proxy.remote.stateless import check_marks

            check_marks(entry["inputSchema"])

    def list_anew(self) -> None:
        """What the server offers may have changed without a word of it."""
        self.owner.list_anew()

    def schema_of(self, tool: str) -> dict[str, Any]:
        """Return the input schema of one of the server's tools; empty if it is not known."""
        return self.owner.schema_of(tool)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run something for as long as the conversation lasts."""
        task = self.loop.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # --- the end --------------------------------------------------------------------------------------

    async def leave(self) -> None:
        if self.ended is not None:  # what is on its way finds out what becomes of it
            deadline = self.loop.time() + LEAVE_SECONDS
            while self._waiting and self.loop.time() < deadline:
                await asyncio.sleep(0.01)
        self.fail_all(self.ended or "it is left")
        try:
            await asyncio.wait_for(self._leave(), LEAVE_SECONDS)
        except (asyncio.TimeoutError, ToolError):
            pass  # the server finds out by itself

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

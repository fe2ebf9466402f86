"""The client's half of a conversation with an MCP server: what is the same over every transport.

Requests go out under ids of our own; what comes back is handed to whoever asked: results, errors, progress,
and the questions that the server asks meanwhile. `ChildPeer` speaks with a child process over its pipes;
`fastrpc.proxy.remote` has the one that speaks over HTTP. What is done with all that is left to
`fastrpc.proxy`.
"""

from __future__ import annotations

import asyncio
import json

from fastrpc import log
from fastrpc.errors import FastrpcError, ProtocolError, ToolError
from fastrpc.proxy.requests import REFUSED, Asked, RemoteError
from fastrpc.results import to_json
from fastrpc.versions import LATEST_LEGACY, LEGACY_VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Protocol

    from fastrpc.context import Context

    class Owner(Protocol):
        """Whom a peer tells what happens."""

        def heard(self, method: str, params: dict[str, Any], context: Context | None) -> object:
            """The server says something by itself; `context` is the call's that it most likely belongs to."""

        def ended(self, peer: Peer, reason: str) -> object:
            """The server is gone."""

        def list_anew(self) -> object:
            """The server may have changed without a word of it."""

        def schema_of(self, tool: str) -> dict[str, Any]:
            """The input schema of one of the server's tools; empty if it is not known."""

        async def ask(self, context: Context, method: str, params: dict[str, Any]) -> dict[str, Any]:
            """Put a question of the server's to the client of a call, and return that client's answer."""


METHOD_NOT_FOUND = -32601


class Peer:
    """A server that is spoken to. A subclass knows the transport: the methods only named here are its own."""

    modern = False
    """Whether it speaks 2026-07-28, and asks by results instead of requests."""

    def __init__(self, owner: Owner, told: dict[str, Any]) -> None:
        self.owner = owner
        self.told = told
        """What the server is told of us: ``clientInfo`` and ``capabilities``."""
        self.loop = asyncio.get_running_loop()
        self.ended: str | None = None
        """Why it is gone; None while it can be spoken to."""
        self._waiting: dict[int, Asked] = {}
        self._watched: set[str] = set()
        self._last_id = 0

    # --- what the transport does ----------------------------------------------------------------------

    async def introduce(self) -> dict[str, Any]:
        """Begin the conversation, and return what the server said of itself: its InitializeResult."""
        return await self.shake_hands(LATEST_LEGACY)

    def put(self, asked: Asked, message: dict[str, Any]) -> None:
        """Send a request."""
        raise NotImplementedError

    def withdraw(self, asked: Asked) -> None:
        """The answer to a request is not waited for any more."""
        raise NotImplementedError

    async def tell(self, message: dict[str, Any], asked: Asked | None = None) -> None:
        """Send a notification, or an answer to what the server has asked during a request."""
        raise NotImplementedError

    async def watch(self, uris: set[str]) -> None:
        """Have the server tell when these resources change, those of before among them."""
        for uri in uris - self._watched:
            self._watched.add(uri)
            try:
                await self.request("resources/subscribe", {"uri": uri})
            except FastrpcError as error:
                log.write("warning", f"the server behind will not tell of changes of {uri:.200}: {error}")

    def check_tool(self, entry: dict[str, Any]) -> None:
        """Raise ValueError for a tool that cannot be called over this transport."""

    async def leave(self) -> None:
        """End the conversation. Bounded to a second."""
        raise NotImplementedError

    # --- asking ---------------------------------------------------------------------------------------

    async def shake_hands(self, version: str) -> dict[str, Any]:
        """Initialize a session (MCP up to 2025-11-25: lifecycle). Raises ValueError for a version unknown."""
        found = await self.request("initialize", {"protocolVersion": version, **self.told})
        if found["protocolVersion"] not in LEGACY_VERSIONS:
            raise ValueError(f"it speaks protocol {found['protocolVersion']!r:.40}, which is not known here")
        self.agreed(found["protocolVersion"])
        await self.tell({"jsonrpc": "2.0", "method": "notifications/initialized"})
        if "logging" in found["capabilities"]:  # each client's own level is judged here
            try:
                await self.request("logging/setLevel", {"level": "debug"})
            except RemoteError as error:
                log.write("warning", f"the server behind will not tell all that it logs: {error}")
        return found

    def agreed(self, version: str) -> None:
        """The handshake has chosen a version."""

    async def request(
        self, method: str, params: dict[str, Any] | None = None, context: Context | None = None
    ) -> dict[str, Any]:
        """Ask, and return the result. `context` is that of the call for which it is asked.

        Progress and questions go to that call's client. Raises RemoteError, and ToolError if the server
        ends before it has answered. A cancelled caller cancels the request.
        """
        if self.ended is not None:
            raise ToolError(f"the server behind this one is gone: {self.ended}")
        self._last_id += 1
        id = self._last_id
        params = dict(params or {})
        if context is not None and context.wants_progress:
            params["_meta"] = {**params.get("_meta", {}), "progressToken": id}
        asked = self._waiting[id] = Asked(id, method, context)
        try:
            self.put(asked, {"jsonrpc": "2.0", "id": id, "method": method, "params": params})
            return await self._result_of(asked)
        finally:
            if self._waiting.pop(id, None) is not None:
                self.withdraw(asked)

    async def _result_of(self, asked: Asked) -> dict[str, Any]:
        """Wait for the result; what the server wants to know on the way is asked in the call's own task,
        which a question may leave for good (MCP 2026-07-28)."""
        while True:
            kind, value = await asked.events.get()
            if kind == "result":
                found: dict[str, Any] = value
                return found
            if kind == "error":
                raise value
            await self._answer(asked, value)

    async def _answer(self, asked: Asked, question: dict[str, Any]) -> None:
        """Put a question of the server's to the call's client, and send back what that says."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": question["id"]}
        try:
            assert asked.context is not None
            params = question.get("params") or {}
            answer["result"] = await self.owner.ask(asked.context, question["method"], params)
        except (ToolError, ProtocolError) as error:
            answer["error"] = {"code": REFUSED, "message": str(error)}
        await self.tell(answer, asked)

    # --- what the server says -------------------------------------------------------------------------

    def take(self, message: Any, of: Asked | None = None) -> None:
        """Take a message. `of`: the request that it came along with, where the transport knows it."""
        if not isinstance(message, dict):
            log.write("warning", f"the server behind sent no message: {message!r:.100}")
        elif "method" not in message:
            self._answered(message)
        elif "id" in message:
            self._asked(message, of)
        else:
            params = message.get("params")
            self._told(str(message["method"]), params if isinstance(params, dict) else {}, of)

    def waits_for(self, asked: Asked) -> bool:
        return asked.id in self._waiting

    def fail(self, asked: Asked, error: Exception) -> None:
        """A request will not be answered."""
        if self._waiting.pop(asked.id, None) is not None:
            asked.events.put_nowait(("error", error))

    def _answered(self, message: dict[str, Any]) -> None:
        id = message.get("id")
        asked = self._waiting.pop(id, None) if type(id) is int else None
        if asked is None:
            return  # cancelled meanwhile, or nothing that we asked
        result = message.get("result")
        if isinstance(result, dict):
            asked.events.put_nowait(("result", result))
        else:
            asked.events.put_nowait(("error", RemoteError(message.get("error"))))

    def _asked(self, message: dict[str, Any], of: Asked | None) -> None:
        """The server asks: if it is not said for which call, whoever called it last is most likely meant."""
        if message["method"] == "ping":
            self.tell_soon({"jsonrpc": "2.0", "id": message["id"], "result": {}})
            return
        for asked in reversed(self._waiting.values()) if of is None else (of,):
            if asked.context is not None:
                asked.events.put_nowait(("question", message))
                return
        error = {"code": METHOD_NOT_FOUND, "message": "no call is in flight: there is no client to ask"}
        self.tell_soon({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def tell_soon(self, message: dict[str, Any]) -> None:
        """Send a notification or an answer, without waiting."""
        raise NotImplementedError

    def _told(self, method: str, params: dict[str, Any], of: Asked | None) -> None:
        if method == "notifications/progress":
            token = params.get("progressToken")
            asked = self._waiting.get(token) if type(token) is int else None
            if asked is not None and asked.context is not None:
                self._progress(asked.context, params)
            return
        if of is not None and of.context is not None:
            self.owner.heard(method, params, of.context)
            return
        contexts = [asked.context for asked in self._waiting.values() if asked.context is not None]
        self.owner.heard(method, params, contexts[-1] if contexts else None)

    def _progress(self, context: Context, params: dict[str, Any]) -> None:
        try:
            context.progress(params["progress"], params.get("total"), params.get("message"))
        except (KeyError, TypeError, ValueError) as error:
            log.write("warning", f"the server behind sent a broken progress report: {error!r}")

    # --- the end --------------------------------------------------------------------------------------

    def end(self, reason: str) -> None:
        """The server is gone: what waits for it fails."""
        if self.expire(reason):
            self.fail_all(reason)

    def expire(self, reason: str) -> bool:
        """Nothing more can be asked, though what was asked may still be answered. False if it was so
        before."""
        if self.ended is not None:
            return False
        self.ended = reason
        self.owner.ended(self, reason)
        return True

    def fail_all(self, reason: str) -> None:
        """What still waits for an answer gets none."""
        for asked in list(self._waiting.values()):
            error = f"the server behind this one is gone: {reason}; the next call starts it again"
            self.fail(asked, ToolError(error))


class ChildPeer(Peer):
    """A server that runs as a child process. It is spoken to in the latest version that has a handshake."""

    def __init__(
        self,
        owner: Owner,
        told: dict[str, Any],
        command: Sequence[str],
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
    ) -> None:
        """Start it. Raises ProgramError."""
        from fastrpc.processes.pipes import Pipes

        super().__init__(owner, told)
        self._pipes = Pipes(command, cwd=cwd, env=env, on_line=self._heard, on_end=self.end)

    def put(self, asked: Asked, message: dict[str, Any]) -> None:
        self.tell_soon(message)

    def withdraw(self, asked: Asked) -> None:
        params = {"requestId": asked.id}
        self.tell_soon({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})

    async def tell(self, message: dict[str, Any], asked: Asked | None = None) -> None:
        self.tell_soon(message)

    def tell_soon(self, message: dict[str, Any]) -> None:
        self._pipes.write(to_json(message) + b"\n")

    def _heard(self, line: bytes) -> None:
        """Take a line; what is no message is logged and skipped, as clients do."""
        try:
            message = json.loads(line)
        except ValueError:
            message = line
        self.take(message)

    async def leave(self) -> None:
        await self._pipes.leave()

"""The client's half of a conversation with an MCP server that runs as a child process.

Requests go out under ids of our own; what comes back is handed to whoever asked: results, errors, progress,
and the questions that the server asks meanwhile. It speaks the latest version that has a handshake. What is
done with all that is left to `fastrpc.proxy`.
"""

from __future__ import annotations

import asyncio
import json

from fastrpc import log
from fastrpc._process_pipes import Pipes
from fastrpc.errors import ProtocolError, ToolError
from fastrpc.results import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence
    from typing import Any

    from fastrpc.context import Context

    Ask = Callable[[Context, str, dict[str, Any]], Awaitable[dict[str, Any]]]

METHOD_NOT_FOUND = -32601
REFUSED = -32603


class RemoteError(ProtocolError):
    """An error with which the server behind has answered, passed on as it is."""

    def __init__(self, error: Any) -> None:
        error = error if isinstance(error, dict) else {}
        super().__init__(str(error.get("message", "the server behind gave no reason")), error.get("data"))
        code = error.get("code")
        self.code = code if type(code) is int else REFUSED


class _Asked:
    """A request that is not answered yet. `events` are its result, its error, and questions on the way."""

    __slots__ = ("context", "events")

    def __init__(self, context: Context | None) -> None:
        self.context = context
        self.events: asyncio.Queue[tuple[str, Any]] = asyncio.Queue()


class Peer:
    """A server that runs. `on_notification` gets what it says by itself, `on_end` why it is gone.

    `ask` puts a question of the server's to the client of a call, and returns that client's answer.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        cwd: str | None,
        env: Mapping[str, str] | None,
        on_notification: Callable[[str, dict[str, Any], Context | None], object],
        on_end: Callable[[str], object],
        ask: Ask,
    ) -> None:
        """Start it. Raises ProgramError."""
        self.ended: str | None = None
        """Why it is gone; None while it runs."""
        self._on_notification = on_notification
        self._on_end = on_end
        self._ask = ask
        self._waiting: dict[int, _Asked] = {}
        self._last_id = 0
        self._pipes = Pipes(command, cwd=cwd, env=env, on_line=self._heard, on_end=self._end)
        self.loop = self._pipes.loop

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
        asked = self._waiting[id] = _Asked(context)
        self._send({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
        try:
            return await self._result_of(asked)
        finally:
            if self._waiting.pop(id, None) is not None:
                self.notify("notifications/cancelled", {"requestId": id})

    async def _result_of(self, asked: _Asked) -> dict[str, Any]:
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

    async def _answer(self, asked: _Asked, question: dict[str, Any]) -> None:
        """Put a question of the server's to the call's client, and send back what that says."""
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": question["id"]}
        try:
            assert asked.context is not None
            params = question.get("params") or {}
            answer["result"] = await self._ask(asked.context, question["method"], params)
        except (ToolError, ProtocolError) as error:
            answer["error"] = {"code": REFUSED, "message": str(error)}
        self._send(answer)

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        self._send({"jsonrpc": "2.0", "method": method, **({} if params is None else {"params": params})})

    def _send(self, message: dict[str, Any]) -> None:
        self._pipes.write(to_json(message) + b"\n")

    # --- what the server says -------------------------------------------------------------------------

    def _heard(self, line: bytes) -> None:
        """Take a line; what is no message is logged and skipped, as clients do."""
        try:
            message = json.loads(line)
        except ValueError:
            message = None
        if not isinstance(message, dict):
            log.write("warning", f"the server behind wrote no message: {line[:100]!r}")
        elif "method" not in message:
            self._answered(message)
        elif "id" in message:
            self._asked(message)
        else:
            params = message.get("params")
            self._told(str(message["method"]), params if isinstance(params, dict) else {})

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

    def _asked(self, message: dict[str, Any]) -> None:
        """The server asks: whoever called it last is most likely meant."""
        if message["method"] == "ping":
            self._send({"jsonrpc": "2.0", "id": message["id"], "result": {}})
            return
        for asked in reversed(self._waiting.values()):
            if asked.context is not None:
                asked.events.put_nowait(("question", message))
                return
        error = {"code": METHOD_NOT_FOUND, "message": "no call is in flight: there is no client to ask"}
        self._send({"jsonrpc": "2.0", "id": message["id"], "error": error})

    def _told(self, method: str, params: dict[str, Any]) -> None:
        if method == "notifications/progress":
            token = params.get("progressToken")
            asked = self._waiting.get(token) if type(token) is int else None
            if asked is not None and asked.context is not None:
                self._progress(asked.context, params)
            return
        contexts = [asked.context for asked in self._waiting.values() if asked.context is not None]
        self._on_notification(method, params, contexts[-1] if contexts else None)

    def _progress(self, context: Context, params: dict[str, Any]) -> None:
        try:
            context.progress(params["progress"], params.get("total"), params.get("message"))
        except (KeyError, TypeError, ValueError) as error:
            log.write("warning", f"the server behind sent a broken progress report: {error!r}")

    # --- the end --------------------------------------------------------------------------------------

    def _end(self, reason: str) -> None:
        self.ended = reason
        waiting, self._waiting = self._waiting, {}
        for asked in waiting.values():
            error = ToolError(f"the server behind this one is gone: {reason}; the next call starts it again")
            asked.events.put_nowait(("error", error))
        self._on_end(reason)

    async def leave(self) -> None:
        """End it. Bounded to a second."""
        await self._pipes.leave()

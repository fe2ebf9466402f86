"""An in-memory client for tests of tools, and of fastrpc itself.

        async def test_counts_words():
            async with Client(app) as client:
                result = await client.call("word_count", text="two words")
                assert result.text == "2"

The server is the real one, with parser and encoder; only the pipes are missing. A test is the same for every
protocol version: the client handles what differs.
"""

from __future__ import annotations

import asyncio
import json

from fastrpc.errors import FastrpcError
from fastrpc.protocol.versions import (
    CAPABILITIES_KEY,
    CLIENT_KEY,
    LATEST_LEGACY,
    LOG_KEY,
    MODERN,
    SERVER_KEY,
    VERSION_KEY,
)
from fastrpc.testing.answers import Answers
from fastrpc.testing.listening import Listening
from fastrpc.testing.results import CallResult, CompletionResult, PromptResult, ReadResult, RemoteError
from fastrpc.transports.base import Connections
from fastrpc.transports.memory import MemoryTransport

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from types import TracebackType
    from typing import Any, ClassVar, Protocol, TypeAlias, TypeVar

    from fastrpc.options import Action, LogLevel, Root
    from fastrpc.server import Server

    Given = TypeVar("Given")
    Handler: TypeAlias = Given | Callable[[dict[str, Any]], Given | Awaitable[Given]]
    """An answer, or a function of the request's params that returns it, synchronous or not."""
    Elicited = dict[str, Any] | bool | Action | None
    Sampled = str | dict[str, Any] | list[dict[str, Any]]
    Roots = Sequence[str | Root]

    class Watcher(Protocol):
        """Sees every line in both directions, with its newline."""

        def sent(self, data: bytes) -> object: ...
        def received(self, data: bytes) -> object: ...


__all__ = [
    "CallResult",
    "Client",
    "CompletionResult",
    "Listening",
    "PromptResult",
    "ReadResult",
    "RemoteError",
]

CLIENT_INFO = {"name": "fastrpc.testing", "version": "1"}
MOST_ROUNDS = 16
"""Rounds of input requests in one call before the client gives up (MCP 2026-07-28: InputRequiredResult)."""


class Client:
    """A client of `server` in this event loop, using protocol `version`. Use it with ``async with``.

    `on_elicit`, `on_sample` and `roots` answer the server's requests in any version: each is a value, or a
    function of the request's params, synchronous or not. `on_elicit` returns the filled-in form as a dict,
    True to accept a form without fields, False to decline, None to cancel; `on_sample` a text, a content
    block or a whole CreateMessageResult; `roots` a list of URIs or of ``{"uri", "name"}``. An exception of a
    handler is raised by the pending call; a RemoteError is sent to the server as an error response.
    `capabilities` replaces the capabilities that follow from the handlers. `log_level` is the minimum level
    of log messages.

    `notifications` holds everything received; `logs` and `progress` hold the params of those two kinds;
    `questions` holds the server's requests. `info` is the result of `initialize` or `server/discover`.
    """

    watch: ClassVar[Callable[[Client], Watcher | None] | None] = None
    """Called with each new client; what it returns sees every line. For test suites."""

    def __init__(
        self,
        server: Server,
        *,
        version: str = LATEST_LEGACY,
        capabilities: dict[str, Any] | None = None,
        on_elicit: Handler[Elicited] = None,
        on_sample: Handler[Sampled] | None = None,
        roots: Handler[Roots] | None = None,
        log_level: LogLevel | None = None,
    ) -> None:
        self.version = version
        self.notifications: list[dict[str, Any]] = []
        self.logs: list[dict[str, Any]] = []
        self.progress: list[dict[str, Any]] = []
        self.questions: list[dict[str, Any]] = []
        self.listening: list[Listening] = []
        self.info: dict[str, Any] = {}
        self.log_level: LogLevel | None = log_level
        self._answers = Answers(on_elicit, on_sample, roots)
        self.capabilities = self._answers.capabilities(version) if capabilities is None else capabilities
        self._server = server
        self._last_id = 0
        self._pending: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._progress: dict[int, Callable[[dict[str, Any]], object]] = {}
        self._answering: dict[str | int, asyncio.Task[None]] = {}
        self._subscribed: dict[str, Listening] = {}
        self._transport: MemoryTransport | None = None
        self._watcher = None if Client.watch is None else Client.watch(self)

    async def __aenter__(self) -> Client:
        transport = MemoryTransport(self._receive)
        await transport.start(Connections(lambda: self._server.connect().connection))
        self._transport = transport
        if self.version == MODERN:
            self.info = await self.request("server/discover")
            return self
        self.info = await self.request(
            "initialize",
            {"protocolVersion": self.version, "capabilities": self.capabilities, "clientInfo": CLIENT_INFO},
        )
        self.version = self.info["protocolVersion"]
        self.notify("notifications/initialized")
        if self.log_level is not None:
            await self.set_level(self.log_level)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._transport is not None:
            self._transport.disconnect()
        for future in self._pending.values():
            future.cancel()
        for task in self._answering.values():
            task.cancel()
        await self._server.runtime.leave()

    @property
    def server_info(self) -> dict[str, Any]:
        """The server's name, version and so on (MCP: Implementation)."""
        found: dict[str, Any] = self.info.get("serverInfo") or self.info["_meta"][SERVER_KEY]
        return found

    # --- messages -------------------------------------------------------------------------------------

    async def request(self, method: str, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send a request and return its result, which may be an InputRequiredResult. Raises RemoteError."""
        return await self.begin(method, params)[1]

    def begin(
        self, method: str, params: dict[str, Any] | None = None
    ) -> tuple[int, asyncio.Future[dict[str, Any]]]:
        """Send a request; return its id and a future with its result."""
        self._last_id += 1
        id = self._last_id
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._pending[id] = future
        self._send({"jsonrpc": "2.0", "id": id, "method": method, "params": self._with_envelope(params)})
        return id, future

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params or {}})

    def cancel(self, id: int) -> None:
        """Cancel a pending request; its future is cancelled too."""
        self.notify("notifications/cancelled", {"requestId": id})
        self._pending.pop(id).cancel()

    async def ping(self) -> None:
        """Send a ping, in versions that have it. Raises RemoteError in others."""
        await self.request("ping")

    # --- tools, resources, prompts --------------------------------------------------------------------

    async def tools(self) -> list[dict[str, Any]]:
        """Return the descriptors of all tools, from all pages. Raises RemoteError."""
        return await self._all("tools/list", "tools")

    async def call(
        self, tool: str, /, on_progress: Callable[[dict[str, Any]], object] | None = None, **arguments: object
    ) -> CallResult:
        """Call a tool. `on_progress` receives each progress notification. Raises RemoteError for a protocol
        error."""
        params = {"name": tool, "arguments": arguments}
        return CallResult(await self._complete("tools/call", params, on_progress))

    async def resources(self) -> list[dict[str, Any]]:
        """Return the descriptors of all resources, from all pages. Raises RemoteError."""
        return await self._all("resources/list", "resources")

    async def templates(self) -> list[dict[str, Any]]:
        """Return the descriptors of all resource templates, from all pages. Raises RemoteError."""
        return await self._all("resources/templates/list", "resourceTemplates")

    async def read(self, uri: str) -> ReadResult:
        """Read a resource. Raises RemoteError, also if it does not exist."""
        return ReadResult(await self._complete("resources/read", {"uri": uri}))

    async def prompts(self) -> list[dict[str, Any]]:
        """Return the descriptors of all prompts, from all pages. Raises RemoteError."""
        return await self._all("prompts/list", "prompts")

    async def prompt(self, name: str, /, **arguments: object) -> PromptResult:
        """Get a prompt. Arguments are strings in MCP; other values are sent as JSON text. Raises
        RemoteError."""
        texts = {
            key: value if isinstance(value, str) else json.dumps(value) for key, value in arguments.items()
        }
        return PromptResult(await self._complete("prompts/get", {"name": name, "arguments": texts}))

    async def complete(
        self,
        ref: str | dict[str, Any],
        argument: str,
        value: str = "",
        context: dict[str, str] | None = None,
    ) -> CompletionResult:
        """Return completions for an argument of a prompt (`ref` is its name) or a variable of a resource
        template (`ref` is the template). `context`: the arguments that are already known. Raises
        RemoteError."""
        if isinstance(ref, str):
            is_address = "://" in ref
            kind, member = ("ref/resource", "uri") if is_address else ("ref/prompt", "name")
            ref = {"type": kind, member: ref}
        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": value}}
        if context is not None:
            params["context"] = {"arguments": context}
        return CompletionResult(await self.request("completion/complete", params))

    # --- notifications --------------------------------------------------------------------------------

    async def set_level(self, level: LogLevel) -> None:
        """Set the minimum level of log messages, from the next request on. Raises RemoteError."""
        self.log_level = level
        if self.version != MODERN:
            await self.request("logging/setLevel", {"level": level})

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Sequence[str] = (),
    ) -> Listening:
        """Receive notifications of changed lists, and of changes of the resources `uris`::

        async with client.listen(tools=True) as changes:
            ...
            await changes.next()
        """
        wanted: dict[str, Any] = {}
        for name, value in (("tools", tools), ("prompts", prompts), ("resources", resources)):
            if value:
                wanted[f"{name}ListChanged"] = True
        if uris:
            wanted["resourceSubscriptions"] = list(uris)
        return Listening(self, wanted)

    async def subscribe(self, uri: str) -> None:
        """Subscribe to changes of a resource, which then appear in `notifications`. Raises RemoteError."""
        if self.version != MODERN:
            await self.request("resources/subscribe", {"uri": uri})
        elif uri not in self._subscribed:
            self._subscribed[uri] = await self.listen(uris=[uri]).__aenter__()

    async def unsubscribe(self, uri: str) -> None:
        """End a subscription to a resource. Raises RemoteError."""
        if self.version != MODERN:
            await self.request("resources/unsubscribe", {"uri": uri})
        elif uri in self._subscribed:
            await self._subscribed.pop(uri).__aexit__(None, None, None)

    def set_roots(self, roots: Handler[Roots]) -> None:
        """Change the roots, and notify the server in versions that have the notification."""
        self._answers.roots = roots
        if self.version != MODERN:
            self.notify("notifications/roots/list_changed")

    # --- internal -------------------------------------------------------------------------------------

    async def _all(self, method: str, member: str) -> list[dict[str, Any]]:
        result = await self.request(method)
        found: list[dict[str, Any]] = result[member]
        while "nextCursor" in result:
            result = await self.request(method, {"cursor": result["nextCursor"]})
            found += result[member]
        return found

    async def _complete(
        self,
        method: str,
        params: dict[str, Any],
        on_progress: Callable[[dict[str, Any]], object] | None = None,
    ) -> dict[str, Any]:
        """Return a request's result; answer input requests and send it again as often as needed. Raises
        RemoteError."""
        asked = params
        for _ in range(MOST_ROUNDS):
            result = await self._request_with_progress(method, asked, on_progress)
            if result.get("resultType") != "input_required":
                return result
            asked = dict(params)
            if "inputRequests" in result:
                asked["inputResponses"] = {
                    key: await self._answer(question) for key, question in result["inputRequests"].items()
                }
            if "requestState" in result:
                asked["requestState"] = result["requestState"]
        raise FastrpcError(f"{method}: still asks after {MOST_ROUNDS} rounds")

    async def _request_with_progress(
        self, method: str, params: dict[str, Any], on_progress: Callable[[dict[str, Any]], object] | None
    ) -> dict[str, Any]:
        if on_progress is None:
            return await self.request(method, params)
        token = self._last_id + 1
        self._progress[token] = on_progress
        try:
            return await self.request(method, {**params, "_meta": {"progressToken": token}})
        finally:
            del self._progress[token]

    def _with_envelope(self, params: dict[str, Any] | None) -> dict[str, Any]:
        params = dict(params or {})
        if self.version == MODERN:
            meta = {VERSION_KEY: MODERN, CAPABILITIES_KEY: self.capabilities, CLIENT_KEY: CLIENT_INFO}
            if self.log_level is not None:
                meta[LOG_KEY] = self.log_level
            params["_meta"] = {**meta, **params.get("_meta", {})}
        return params

    def _send(self, message: dict[str, Any]) -> None:
        if self._transport is None:
            raise RuntimeError("use the client with 'async with'")
        line = json.dumps(message).encode()
        if self._watcher is not None:
            self._watcher.sent(line + b"\n")
        self._transport.send(line)

    def _receive(self, line: bytes) -> None:
        if self._watcher is not None:
            self._watcher.received(line + b"\n")
        message = json.loads(line)
        if "method" not in message:
            self._take_answer(message)
        elif "id" in message:
            self._answering[message["id"]] = asyncio.ensure_future(self._reply(message))
        else:
            self._take_notification(message)

    def _take_answer(self, message: dict[str, Any]) -> None:
        future = self._pending.pop(message["id"], None)
        if future is None or future.done():
            return
        if "error" in message:
            future.set_exception(RemoteError(message["error"]))
        else:
            future.set_result(message["result"])

    def _take_notification(self, message: dict[str, Any]) -> None:
        self.notifications.append(message)
        method, params = message["method"], message.get("params", {})
        if method == "notifications/message":
            self.logs.append(params)
        elif method == "notifications/progress":
            self.progress.append(params)
            if params["progressToken"] in self._progress:
                self._progress[params["progressToken"]](params)
        elif method == "notifications/cancelled" and params.get("requestId") in self._answering:
            self._answering.pop(params["requestId"]).cancel()
        for listening in self.listening:
            listening.take(message)

    async def _answer(self, question: dict[str, Any]) -> dict[str, Any]:
        """Return the result for a request of the server."""
        params = question.get("params", {})
        if question["method"] != "ping":
            self.questions.append({"method": question["method"], "params": params})
        return await self._answers.answer(question["method"], params)

    async def _reply(self, request: dict[str, Any]) -> None:
        """Answer a request of the server. An exception of a handler also fails the pending calls."""
        reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
        try:
            reply["result"] = await self._answer(request)
        except RemoteError as error:
            reply["error"] = {"code": error.code, "message": error.message}
            if error.data is not None:
                reply["error"]["data"] = error.data
        except Exception as error:
            reply["error"] = {"code": -32603, "message": f"{type(error).__name__}: {error}"}
            for future in self._pending.values():
                if not future.done():
                    future.set_exception(error)
        finally:
            self._answering.pop(request["id"], None)
        self._send(reply)

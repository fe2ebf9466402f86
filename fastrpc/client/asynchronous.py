"""`AsyncClient`: an MCP client in an event loop, the base class of `fastrpc.Client`.

Compiled code makes a tool call (`fastrpc._core.tool_call`), which costs one object and no task. Everything
else goes through `fastrpc.client.session`.
"""

from __future__ import annotations

import asyncio
import json

from fastrpc import diagnostics
from fastrpc._core.call_result import CallResult
from fastrpc._core.client_stream import ClientStream
from fastrpc._core.tool_call import ToolCall, ToolCaller
from fastrpc.client.handlers import Handlers
from fastrpc.client.listening import Listening
from fastrpc.client.output_schemas import OutputSchemas
from fastrpc.client.results import CompletionResult, Described, PromptResult, ReadResult, entries_of
from fastrpc.client.session import Session
from fastrpc.client.targets import transport_of
from fastrpc.errors import ArgumentError, ConnectionLost, RemoteError, SessionExpired, excerpt
from fastrpc.json_encoding import UnencodableResult, to_json
from fastrpc.protocol.followed_pages import FollowedPages
from fastrpc.protocol.versions import SERVER_KEY, STATELESS, TASKS_EXTENSION, VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from typing import Any

    from typing_extensions import Self, Unpack

    from fastrpc.client.handlers import Elicited, Handler, OnNotification, Roots, Sampled
    from fastrpc.client.options import RequestOptions, TargetOptions
    from fastrpc.client.targets import Target
    from fastrpc.client.tasks import RemoteTask
    from fastrpc.client.transport import ConnectionTransport
    from fastrpc.options import LogLevel

TIMEOUT_SECONDS = 600.0
MAX_SECONDS = 3600.0
START_SECONDS = 30.0


class ServerFacts:
    """What a client knows of its server: the version, and what the server says of itself in `info`."""

    @property
    def _session(self) -> Session:
        raise NotImplementedError

    @property
    def version(self) -> str:
        """The protocol version in use."""
        return self._session.version

    @property
    def info(self) -> dict[str, Any]:
        """The result of `initialize` or `server/discover`."""
        return self._session.info

    @property
    def server_info(self) -> dict[str, Any]:
        """The server's name, version and so on (MCP: Implementation)."""
        meta = self.info.get("_meta")
        found = meta.get(SERVER_KEY) if isinstance(meta, dict) else None
        if found is None:
            found = self.info.get("serverInfo")
        return found if isinstance(found, dict) else {}

    @property
    def server_capabilities(self) -> dict[str, Any]:
        """The server's capabilities (MCP: ServerCapabilities)."""
        found = self.info.get("capabilities")
        return found if isinstance(found, dict) else {}

    @property
    def instructions(self) -> str | None:
        """The server's instructions for its use."""
        found = self.info.get("instructions")
        return found if isinstance(found, str) else None


class AsyncClient(ToolCaller, ServerFacts):
    """A client of one MCP server, in one event loop: see `fastrpc.Client`."""

    takes_any_type = False
    """Whether results of other types than MCP's are returned as they are: extensions define some."""

    def __init__(
        self,
        target: Target,
        *,
        version: str | None = None,
        timeout_seconds: float | None = None,
        max_seconds: float = MAX_SECONDS,
        start_seconds: float = START_SECONDS,
        restart: bool = False,
        on_elicit: Handler[Elicited] = None,
        on_sample: Handler[Sampled] | None = None,
        roots: Handler[Roots] | None = None,
        on_log: OnNotification | None = None,
        on_progress: OnNotification | None = None,
        on_notification: OnNotification | None = None,
        log_level: LogLevel | None = None,
        capabilities: dict[str, Any] | None = None,
        client_info: dict[str, Any] | None = None,
        **options: Unpack[TargetOptions],
    ) -> None:
        if version is not None and version not in VERSIONS:
            raise ValueError(f"version: expected one of {', '.join(VERSIONS)}, got {version!r:.80}")
        self._make_transport = transport_of(target, dict(options))
        self._wanted_version = version
        self._handlers = Handlers(on_elicit, on_sample, roots, on_log, on_progress, on_notification)
        self._capabilities = capabilities
        self._client_info = client_info
        self._log_level = log_level
        self._start_seconds = start_seconds
        self._timeout_seconds = TIMEOUT_SECONDS if timeout_seconds is None else timeout_seconds
        self._max_seconds = max_seconds
        self._sends_tokens = on_progress is not None or bool(timeout_seconds)
        self._restart = restart
        self._output_schemas = OutputSchemas()
        self._subscribed: dict[str, Listening] = {}
        self._log = diagnostics.Once("warning")
        self._session_or_none: Session | None = None
        self._transport: ConnectionTransport | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._is_open = False
        self.exit_code: int | None = None
        """The exit code of the server process after `close`; negative for a signal, None for no process."""
        self._is_wanted = False
        """Whether a lost connection may be restored."""

    # --- connecting and closing -------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *exception: object) -> None:
        await self.close()

    async def connect(self) -> None:
        """Connect to the server and negotiate the version. Raises ClientError."""
        self._is_wanted = True
        self._loop = asyncio.get_running_loop()
        self._stream = ClientStream()
        self._session_or_none = session = self._new_session(self._stream)
        self._transport = self._make_transport()
        try:
            await self._transport.open(self._stream, self._on_lost)
            self._stream.attach(self._loop)
            await session.begin(self._wanted_version, self._start_seconds, self._transport)
            if self._log_level is not None and (
                session.version == STATELESS or "logging" in self.server_capabilities
            ):  # a server without the capability has no such method
                await session.set_log_level(self._log_level)
        except BaseException as error:
            await self._leave(ConnectionLost(str(error)))
            raise
        self._is_open = True

    def _new_session(self, stream: ClientStream) -> Session:
        if self._client_info is None:
            from fastrpc.version import __version__

            self._client_info = {"name": "fastrpc", "version": __version__}
        return Session(
            stream,
            self._handlers,
            client_info=self._client_info,
            capabilities=self._capabilities,
            timeout_seconds=self._timeout_seconds,
            max_seconds=self._max_seconds,
            sends_tokens=self._sends_tokens,
            takes_any_type=self.takes_any_type,
        )

    def _on_lost(self, error: ConnectionLost) -> None:
        self._is_open = False
        self._session.on_lost(error)

    async def close(self) -> None:
        """Close the connection, and end the server if this client has started it. Pending requests fail."""
        self._is_wanted = False
        if (connecting := self._connecting) is not None:
            connecting.cancel()
            await asyncio.wait({connecting})
        await self._leave(ConnectionLost("the client is closed"))

    async def _leave(self, reason: ConnectionLost) -> None:
        """Close the connection, and fail the pending requests with this error."""
        self._is_open = False
        session, transport = self._session_or_none, self._transport
        self._transport = None
        if session is None:
            return
        await session.end()
        session.on_lost(reason)
        session.fail_pending()
        if transport is not None:
            await transport.close()
            self.exit_code = getattr(transport, "exit_code", None)

    async def _open_again(self) -> None:
        """Restore a lost connection, if `restart` allows it. Raises ClientError."""
        if self._session.lost is None:
            return
        if not self._restart or not self._is_wanted:
            raise self._session.lost_again()
        if self._connecting is None:
            self._connecting = self._loop.create_task(self._reconnect())
        connecting = self._connecting
        await asyncio.wait({connecting})
        if connecting.cancelled():
            raise ConnectionLost("the client is closed")
        connecting.result()

    async def _reconnect(self) -> None:
        try:
            await self._session.drain()
            await self._leave(ConnectionLost("the connection to the server is lost"))
            await self.connect()
        finally:
            self._connecting = None

    @property
    def _session(self) -> Session:
        if self._session_or_none is None:
            raise RuntimeError("use the client with 'async with', or connect() first")
        return self._session_or_none

    @property
    def is_connected(self) -> bool:
        """Whether the connection is open, as far as is known."""
        return self._is_open and self._session.lost is None

    # --- any request or notification --------------------------------------------------------------------

    async def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        timeout_seconds: float | None = None,
        on_progress: OnNotification | None = None,
    ) -> dict[str, Any]:
        """Send any request and return its result, which may be an InputRequiredResult. Raises ClientError."""
        if not self._is_open:
            await self._open_again()
        options: RequestOptions = {"timeout_seconds": timeout_seconds, "on_progress": on_progress}
        try:
            found: dict[str, Any] = await self._session.request(method, params, **options)
        except SessionExpired:
            await self._open_again()
            found = await self._session.request(method, params, **options)
        return found

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification. Raises ConnectionLost."""
        self._session.notify(method, params)

    async def flush(self) -> None:
        """Wait until all notifications have been sent. Over HTTP each is a request."""
        if self._transport is not None:
            await self._transport.flush()

    async def ping(self) -> None:
        """Send a ping; in 2026-07-28, which has no ping, `server/discover`. Raises ClientError."""
        await self.request("server/discover" if self.version == STATELESS else "ping")

    # --- tools ------------------------------------------------------------------------------------------

    async def _finish_call(self, call: ToolCall) -> Any:
        """Finish a call on its rare ways, and return its result: send it after reconnecting, send it again
        after an error that allows that, or answer the input requests of its result. Raises ClientError."""
        if call.error is not None and not self.may_call_again(call.error):
            raise call.error
        return await self._complete_call(
            call.name, call.arguments, call.as_type, call.value, call.timeout_seconds, None, None
        )

    def may_call_again(self, error: BaseException) -> bool:
        """Whether the server has not processed a failed call, and the call is to be sent again."""
        if isinstance(error, SessionExpired):
            return self._restart
        return isinstance(error, RemoteError) and self._session.is_mismatch(error)

    async def _complete_call(
        self,
        name: str,
        arguments: dict[str, Any] | None,
        as_type: Any,
        result: Any,
        timeout_seconds: float | None,
        on_progress: OnNotification | None,
        meta: dict[str, Any] | None,
    ) -> Any:
        """Send tools/call, have the handlers answer what the server asks, and return the result, or its value
        (`_value_of`). `result`: the InputRequiredResult that was received already. Raises ClientError."""
        params: dict[str, Any] = {"name": name, "arguments": arguments or {}}
        if meta is not None:
            params["_meta"] = meta
        found = await self._complete(
            "tools/call",
            params,
            result,
            timeout_seconds=timeout_seconds,
            on_progress=on_progress,
            is_call=True,
            may_be_task=self._declares_tasks,
        )
        if self._declares_tasks and type(found) is not CallResult and not self.takes_any_type:
            from fastrpc.client.tasks import end_of_call

            found = await end_of_call(self, name, found, timeout_seconds)
        return self._value_of(name, found, as_type)

    @property
    def _declares_tasks(self) -> bool:
        """Whether any call may be answered by a task: the option `capabilities` says so."""
        extensions = (self._capabilities or {}).get("extensions")
        return isinstance(extensions, dict) and TASKS_EXTENSION in extensions

    async def _call_as_task(
        self,
        name: str,
        arguments: dict[str, Any] | None,
        task: bool,
        ttl_ms: int | None,
        as_type: Any,
        timeout_seconds: float | None,
        on_progress: OnNotification | None,
        meta: dict[str, Any] | None,
    ) -> RemoteTask:
        """Make a call of `call_tool` that asks for a task. Raises ClientError."""
        if not task:
            raise TypeError("ttl_ms: only with task=True")
        if as_type is not None:
            raise TypeError("as_type: with task=True, give it to the task's wait()")
        from fastrpc.client.tasks import call_as_task

        return await call_as_task(self, name, arguments, ttl_ms, timeout_seconds, on_progress, meta)

    def task(self, id: str) -> RemoteTask:
        """Return a task by its id, to wait for it or to cancel it, also after a restart of the client.
        Nothing is sent: its `status` is "" until the task is read. Raises ValueError for what is not an
        id."""
        from fastrpc.client.tasks import RemoteTask

        if not isinstance(id, str) or not id:
            raise ValueError(f"id: expected the id of a task, got {id!r:.80}")
        return RemoteTask(self, {"taskId": id})

    async def tasks(self) -> list[RemoteTask]:
        """Return the caller's tasks, from all pages (MCP 2025-11-25; 2026-07-28 has no list). Raises
        ClientError, TasksUnsupported among them."""
        from fastrpc.client.tasks import list_tasks

        return await list_tasks(self)

    def _value_of(self, name: str, result: CallResult, as_type: Any) -> Any:
        """Validate a result against its output schema; return it, or its value. Raises ClientError."""
        if name in self._output_schemas:
            self._output_schemas.check(name, result)
        if as_type is None:
            return result
        from fastrpc.client.typed_values import value_of

        return value_of(result, as_type)

    async def _complete(
        self, method: str, params: dict[str, Any], found: Any = None, **options: Unpack[RequestOptions]
    ) -> Any:
        """Return the complete result of a request whose results may request input. Raises ClientError."""
        if not self._is_open:
            await self._open_again()
        try:
            return await self._session.complete(method, params, found, **options)
        except SessionExpired:
            await self._open_again()
        return await self._session.complete(method, params, **options)

    async def list_tools(self) -> list[Described]:
        """Return the descriptors of all tools, from all pages. Raises ClientError."""
        return [entry async for entry in self.iter_tools()]

    async def iter_tools(self) -> AsyncIterator[Described]:
        """Yield the descriptors of the tools, page by page. From then on, results are validated against the
        output schemas of these tools."""
        async for tool in self._entries("tools/list", "tools"):
            self._output_schemas.learn(tool)
            yield tool

    # --- resources, prompts -----------------------------------------------------------------------------

    async def list_resources(self) -> list[Described]:
        """Return the descriptors of all resources, from all pages. Raises ClientError."""
        return [entry async for entry in self.iter_resources()]

    def iter_resources(self) -> AsyncIterator[Described]:
        """Yield the descriptors of the resources, page by page."""
        return self._entries("resources/list", "resources")

    async def list_resource_templates(self) -> list[Described]:
        """Return the descriptors of all resource templates, from all pages. Raises ClientError."""
        return [entry async for entry in self.iter_resource_templates()]

    def iter_resource_templates(self) -> AsyncIterator[Described]:
        """Yield the descriptors of the resource templates, page by page."""
        return self._entries("resources/templates/list", "resourceTemplates")

    async def read_resource(self, uri: str, *, timeout_seconds: float | None = None) -> ReadResult:
        """Read a resource. Raises ClientError, RemoteError if it does not exist."""
        return ReadResult(
            await self._complete("resources/read", {"uri": uri}, timeout_seconds=timeout_seconds)
        )

    async def list_prompts(self) -> list[Described]:
        """Return the descriptors of all prompts, from all pages. Raises ClientError."""
        return [entry async for entry in self.iter_prompts()]

    def iter_prompts(self) -> AsyncIterator[Described]:
        """Yield the descriptors of the prompts, page by page."""
        return self._entries("prompts/list", "prompts")

    async def get_prompt(
        self, name: str, arguments: dict[str, Any] | None = None, *, timeout_seconds: float | None = None
    ) -> PromptResult:
        """Get a prompt. Arguments are strings in MCP; other values are sent as JSON text, those that are
        texts in JSON (dates, enums) as these, and None is left out. Raises ClientError, and ArgumentError for
        a value without JSON."""
        texts = {key: _text_of(key, value) for key, value in (arguments or {}).items() if value is not None}
        params = {"name": name, "arguments": texts}
        return PromptResult(await self._complete("prompts/get", params, timeout_seconds=timeout_seconds))

    async def complete(
        self,
        ref: str | dict[str, Any],
        argument: str,
        value: str = "",
        context: dict[str, str] | None = None,
    ) -> CompletionResult:
        """Return completions for an argument of a prompt (`ref` is its name) or a variable of a resource
        template (`ref` is the template). `context`: the arguments that are known. Raises ClientError."""
        if isinstance(ref, str):
            is_uri = "://" in ref
            kind, member = ("ref/resource", "uri") if is_uri else ("ref/prompt", "name")
            ref = {"type": kind, member: ref}
        params: dict[str, Any] = {"ref": ref, "argument": {"name": argument, "value": value}}
        if context is not None:
            params["context"] = {"arguments": context}
        return CompletionResult(await self.request("completion/complete", params))

    async def _entries(self, method: str, member: str) -> AsyncIterator[Described]:
        """Yield the entries of a list, as far as it is followed (`FollowedPages`). Raises ClientError."""
        pages = FollowedPages(method, "the server", self._max_seconds)
        async for page in pages.read_by(self.request):
            for entry in entries_of(
                method, page, member, lambda text: self._log.write(f"the server's {text}")
            ):
                yield Described(entry)

    # --- notifications ----------------------------------------------------------------------------------

    async def set_log_level(self, level: LogLevel) -> None:
        """Set the minimum level of log messages, from the next request on. Raises ClientError."""
        self._log_level = level
        await self._session.set_log_level(level)

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
            async for change in changes:
                ...
        """
        wanted: dict[str, Any] = {}
        for name, value in (("tools", tools), ("prompts", prompts), ("resources", resources)):
            if value:
                wanted[f"{name}ListChanged"] = True
        if uris:
            wanted["resourceSubscriptions"] = list(uris)
        return Listening(self._session, wanted)

    async def subscribe(self, uri: str) -> None:
        """Subscribe to changes of a resource; `on_notification` is called for them. Raises ClientError."""
        if self.version != STATELESS:
            await self.request("resources/subscribe", {"uri": uri})
        elif uri not in self._subscribed:
            self._subscribed[uri] = await self.listen(uris=[uri]).__aenter__()

    async def unsubscribe(self, uri: str) -> None:
        """End a subscription to a resource. Raises ClientError."""
        if self.version != STATELESS:
            await self.request("resources/unsubscribe", {"uri": uri})
        elif uri in self._subscribed:
            await self._subscribed.pop(uri).__aexit__(None, None, None)

    def set_roots(self, roots: Handler[Roots]) -> None:
        """Change the roots, and notify the server in versions that have the notification."""
        self._handlers.roots = roots
        if self.version != STATELESS:
            self.notify("notifications/roots/list_changed")


def _text_of(name: str, value: Any) -> str:
    """Return an argument of a prompt as the text that it is sent as."""
    try:
        if isinstance(value, str):
            value.encode()
            return value
        text = to_json(value).decode()
    except (UnencodableResult, UnicodeEncodeError):
        raise ArgumentError(
            f"arguments.{excerpt(name)}: expected a text or a value with JSON, got {type(value).__name__}"
        ) from None
    return json.loads(text) if text.startswith('"') else text

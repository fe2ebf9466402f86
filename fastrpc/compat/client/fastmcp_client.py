"""`Client`: the client of FastMCP, on `fastrpc.Client`.

    async with Client("server.py") as client:
        result = await client.call_tool("word_count", {"text": "two words"})
        print(result.data)

The client owns the session of one connection (`fastrpc.compat.client.sessions`). The session returns results
as MCP defines them; the client's methods return their content. docs/compat.md has the table.
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass

from fastrpc._core.call_result import CallResult
from fastrpc.compat.calls import not_offered
from fastrpc.compat.client import callbacks
from fastrpc.compat.client.endpoints import endpoint_of
from fastrpc.compat.client.sessions import ClientSession, seconds_of
from fastrpc.compat.client.shapes import Shapes, plain_of
from fastrpc.compat.errors import tool_error
from fastrpc.compat.field_types import ModelType
from fastrpc.compat.models import dumped, typed
from fastrpc.errors import FastrpcError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from datetime import timedelta
    from types import TracebackType
    from typing import Any, Literal

    from fastrpc.compat.client.extensions import ClientExtension
    from fastrpc.options import LogLevel

    Limit = timedelta | float | None

MODES = {"auto": None, "legacy": LATEST_SESSION_VERSION, STATELESS: STATELESS}
"""The protocol version that a mode pins."""
MOST_PAGES = 250


@dataclass
class CallToolResult:
    """The result of a tool: its `content`; its `structured_content`, and that as a value: `data`. A tool of
    which the result is one text alone has that as `data`."""

    content: list[Any]
    structured_content: dict[str, Any] | None
    meta: dict[str, Any] | None
    data: Any = None
    is_error: bool = False


class ElicitResult(ModelType):
    """The answer to an elicitation: `action` (``accept``, ``decline``, ``cancel``) and `content`."""

    def __init__(self, action: Literal["accept", "decline", "cancel"], content: Any = None) -> None:
        self.action = action
        self.content = content


class MessageHandler:
    """Handles the server's notifications: override the methods for those of interest."""

    async def __call__(self, message: Any) -> None:
        await self.dispatch(message)

    async def dispatch(self, message: Any) -> None:
        """Call the methods for a message."""
        message = getattr(message, "root", message)
        await self.on_message(message)
        await self.on_notification(message)
        hook = _HOOKS.get(message.method)
        if hook is not None:
            await getattr(self, hook)(message)

    async def on_message(self, message: Any) -> None:
        """Any message."""

    async def on_notification(self, message: Any) -> None:
        """Any notification."""

    async def on_cancelled(self, message: Any) -> None:
        """``notifications/cancelled``."""

    async def on_progress(self, message: Any) -> None:
        """``notifications/progress``."""

    async def on_logging_message(self, message: Any) -> None:
        """``notifications/message``."""

    async def on_tool_list_changed(self, message: Any) -> None:
        """``notifications/tools/list_changed``."""

    async def on_resource_list_changed(self, message: Any) -> None:
        """``notifications/resources/list_changed``."""

    async def on_prompt_list_changed(self, message: Any) -> None:
        """``notifications/prompts/list_changed``."""

    async def on_resource_updated(self, message: Any) -> None:
        """``notifications/resources/updated``."""


_HOOKS = {
    "notifications/cancelled": "on_cancelled",
    "notifications/message": "on_logging_message",
    "notifications/progress": "on_progress",
    "notifications/prompts/list_changed": "on_prompt_list_changed",
    "notifications/resources/list_changed": "on_resource_list_changed",
    "notifications/resources/updated": "on_resource_updated",
    "notifications/tools/list_changed": "on_tool_list_changed",
}


class Client:
    """A client of one server, with the methods of FastMCP's class.

    `transport`: a FastMCP or Server object, the path of a .py or .js file, an http URL, a dict of
    ``mcpServers``, or one of FastMCP's transports for a command or a URL. `auth` is a bearer token. Time
    limits are seconds or a timedelta, by default none. The client may be entered several times; the
    connection ends with the last block.

    Methods raise ToolError for a tool that fails, McpError for an error of the server, for the end of the
    connection and for a time limit, RuntimeError without a connection and for one that cannot be made.
    Each list is a request: `cache` and `cache_mode` have no effect, nor has `input_required_max_rounds`.
    Raises ValueError for another `transport` or `mode`, NotOffered for what is not offered.
    """

    def __class_getitem__(cls, transport: Any) -> type[Client]:
        """``Client[FastMCPTransport]`` is for type checkers."""
        return cls

    @classmethod
    def generate_name(cls, name: str | None = None) -> str:
        """Return a name that no other client has."""
        return "-".join([cls.__name__, *([] if name is None else [name]), os.urandom(2).hex()])

    def __init__(
        self,
        transport: Any,
        name: str | None = None,
        roots: Any = None,
        sampling_handler: Callable[..., Any] | None = None,
        sampling_capabilities: Any = None,
        elicitation_handler: Callable[..., Any] | None = None,
        log_handler: Callable[..., Any] | None = None,
        message_handler: Callable[..., Any] | None = None,
        progress_handler: Callable[..., Any] | None = None,
        timeout: Limit = None,
        auto_initialize: bool = True,
        init_timeout: Limit = None,
        client_info: Any = None,
        auth: Any = None,
        verify: Literal[True] | None = None,
        mode: str = "auto",
        prior_discover: object = None,
        input_required_max_rounds: int = 10,
        cache: object = None,
        extensions: Iterable[ClientExtension] | None = None,
        result_claims: object = None,
    ) -> None:
        _refuse(
            verify=verify not in (None, True),
            prior_discover=prior_discover is not None,
            result_claims=result_claims is not None,
        )
        if mode not in MODES:
            raise ValueError(f"mode: expected one of {', '.join(MODES)}, got {mode!r:.40}")
        self.name = name or self.generate_name()
        self.mode = mode
        self.auto_initialize = auto_initialize
        self.transport = transport
        self._auth = auth
        self._endpoint = endpoint_of(transport, auth)
        self._progress_handler = progress_handler
        self._init_seconds = seconds_of(init_timeout)
        self._options: dict[str, Any] = {
            "read_timeout_seconds": timeout,
            "logging_callback": log_handler,
            "message_handler": message_handler,
            "client_info": client_info,
            "log_level": "debug" if log_handler is not None else None,
        }
        if extensions:
            from fastrpc.compat.client.extensions import Extensions

            self._options["extensions"] = Extensions(extensions)
        if roots is not None:
            self.set_roots(roots)
        if sampling_handler is not None:
            self.set_sampling_callback(sampling_handler, sampling_capabilities)
        if elicitation_handler is not None:
            self.set_elicitation_callback(elicitation_handler)
        self._begin()

    def _begin(self) -> None:
        self._session: ClientSession | None = None
        self._entered = 0
        self._lock = asyncio.Lock()
        self._shapes: dict[str, Shapes | None] = {}

    # --- handlers, before the connection is made ------------------------------------------------------

    def set_roots(self, roots: Any) -> None:
        """Set the roots: a list of URIs or of Roots, or a function of the context that returns one."""
        self._options["list_roots_callback"] = lambda context: _roots_from(roots, context)

    def set_sampling_callback(
        self, sampling_callback: Callable[..., Any], sampling_capabilities: Any = None
    ) -> None:
        """Set the handler of sampling requests, ``handler(messages, params, context)``, which returns a text
        or a CreateMessageResult."""
        self._options["sampling_callback"] = lambda context, params: _sampled(
            sampling_callback, context, params
        )
        self._options["sampling_capabilities"] = sampling_capabilities

    def set_elicitation_callback(self, elicitation_callback: Callable[..., Any]) -> None:
        """Set the handler of elicitations, ``handler(message, response_type, params, context)``: it returns
        an instance of `response_type`, a dict, a value, or an ElicitResult."""
        self._options["elicitation_callback"] = lambda context, params: _elicited(
            elicitation_callback, context, params
        )

    # --- the connection -------------------------------------------------------------------------------

    async def __aenter__(self) -> Client:
        async with self._lock:
            if self._session is None:
                session = ClientSession(self._endpoint, **self._options)
                if self.auto_initialize:
                    await self._connect(session, self._init_seconds)
                self._session = session
            self._entered += 1
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        async with self._lock:
            self._entered = max(self._entered - 1, 0)
            if not self._entered:
                await self._leave()

    async def close(self) -> None:
        """End the connection, in whichever block it is in use."""
        async with self._lock:
            self._entered = 0
            await self._leave()

    async def _leave(self) -> None:
        session, self._session = self._session, None
        self._shapes.clear()
        if session is not None:
            await session.close()

    async def _connect(self, session: ClientSession, seconds: float | None) -> None:
        try:
            await session.connect(MODES[self.mode], seconds)
        except (FastrpcError, OSError) as error:
            raise RuntimeError(f"Client failed to connect: {error}") from error

    async def initialize(self, timeout: Limit = None) -> Any:
        """Connect, where `auto_initialize` is off. Return the InitializeResult."""
        await self._connect(self.session, seconds_of(timeout) or self._init_seconds)
        return self.initialize_result

    def new(self) -> Client:
        """Return a client with the same options that is not connected."""
        import copy

        found = copy.copy(self)
        found._endpoint = endpoint_of(self.transport, self._auth)
        found._options = dict(self._options)
        found._begin()
        return found

    def is_connected(self) -> bool:
        """Whether the client is connected."""
        return self._session is not None

    @property
    def session(self) -> ClientSession:
        """The session. Raises RuntimeError without a connection."""
        if self._session is None:
            raise RuntimeError("Client is not connected: use it with 'async with client:'")
        return self._session

    @property
    def initialize_result(self) -> Any:
        """The InitializeResult, None without a connection. In 2026-07-28 it has what `server/discover` has
        told of the same."""
        return None if self._session is None else self._session.initialize_result

    @property
    def protocol_version(self) -> str | None:
        """The protocol version, None without a connection."""
        return None if self._session is None else self._session.protocol_version

    @property
    def server_info(self) -> Any:
        """The server's Implementation, None without a connection."""
        return None if self._session is None else self._session.server_info

    @property
    def server_capabilities(self) -> Any:
        """The ServerCapabilities, None without a connection."""
        return None if self._session is None else self._session.server_capabilities

    @property
    def instructions(self) -> str | None:
        """What the server says about how to use it."""
        return None if self._session is None else self._session.instructions

    # --- tools ----------------------------------------------------------------------------------------

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        version: str | None = None,
        timeout: Limit = None,
        progress_handler: Callable[..., Any] | None = None,
        raise_on_error: bool = True,
        meta: dict[str, Any] | None = None,
        task: Literal[False] = False,
        task_id: str | None = None,
        ttl: int | None = None,
    ) -> CallToolResult:
        """Call a tool. Raises ToolError for a tool that fails, unless `raise_on_error` is False."""
        _refuse(task=task)
        progress_handler = progress_handler or self._progress_handler
        meta = _with_version(meta, version)
        result = await self.session.call(name, arguments, timeout, progress_handler, meta)
        if not isinstance(result, CallResult):
            result = CallResult(dumped(await self.session.finished(result, name, timeout)))
        texts = [part["text"] for part in result.content if part.get("type") == "text"]
        if result.is_error and raise_on_error:
            raise tool_error(texts[0] if texts else f"Tool {name!r} returned an error")
        structured, data = result.structured, None
        if structured is not None and not result.is_error:
            data = await self._data_of(name, structured, result.meta)
        elif not result.is_error and len(texts) == len(result.content) == 1:
            data = texts[0]
        content = typed("CallToolResult", result.raw).content
        return CallToolResult(content, structured, result.raw.get("_meta"), data, result.is_error)

    async def _data_of(self, name: str, structured: Any, meta: dict[str, Any]) -> Any:
        """Return structured content as the value that the tool has returned. Lists the tools, once."""
        if name not in self._shapes:
            self._shapes[name] = None
            for tool in await self.list_tools():
                raw = dumped(tool)
                schema = raw.get("outputSchema")
                self._shapes[raw["name"]] = Shapes(schema) if schema else None
        shapes = self._shapes[name]
        found = structured if shapes is None else shapes.value(structured)
        marks = meta.get("fastmcp")
        is_wrapped = shapes is not None and shapes.is_wrapped
        if is_wrapped or (isinstance(marks, dict) and marks.get("wrap_result")):
            return found.get("result") if isinstance(found, dict) else getattr(found, "result", None)
        return found

    async def call_tool_mcp(
        self,
        name: str,
        arguments: dict[str, Any],
        progress_handler: Callable[..., Any] | None = None,
        timeout: Limit = None,
        meta: dict[str, Any] | None = None,
    ) -> Any:
        """Call a tool and return the CallToolResult of the protocol."""
        return await self.session.call_tool(
            name,
            arguments,
            read_timeout_seconds=timeout,
            progress_callback=progress_handler or self._progress_handler,
            meta=meta,
        )

    async def list_tools_mcp(self, *, cursor: str | None = None, cache_mode: str = "use") -> Any:
        """Return one page of the tools."""
        return await self.session.list_tools(cursor)

    async def list_tools(self, max_pages: int = MOST_PAGES, *, cache_mode: str = "use") -> list[Any]:
        """Return the descriptors of all tools."""
        return await self._all(self.session.list_tools, ("tools",), max_pages)

    # --- resources, prompts ---------------------------------------------------------------------------

    async def list_resources_mcp(self, *, cursor: str | None = None, cache_mode: str = "use") -> Any:
        """Return one page of the resources."""
        return await self.session.list_resources(cursor)

    async def list_resources(self, max_pages: int = MOST_PAGES) -> list[Any]:
        """Return the descriptors of all resources."""
        return await self._all(self.session.list_resources, ("resources",), max_pages)

    async def list_resource_templates_mcp(self, *, cursor: str | None = None, cache_mode: str = "use") -> Any:
        """Return one page of the resource templates."""
        return await self.session.list_resource_templates(cursor)

    async def list_resource_templates(self, max_pages: int = MOST_PAGES) -> list[Any]:
        """Return the descriptors of all resource templates."""
        return await self._all(
            self.session.list_resource_templates, ("resourceTemplates", "resource_templates"), max_pages
        )

    async def read_resource_mcp(self, uri: Any, meta: dict[str, Any] | None = None) -> Any:
        """Read a resource and return the ReadResourceResult."""
        return await self.session.read_resource(uri, meta=meta)

    async def read_resource(
        self,
        uri: Any,
        *,
        version: str | None = None,
        meta: dict[str, Any] | None = None,
        task: Literal[False] = False,
        task_id: str | None = None,
        ttl: int | None = None,
    ) -> list[Any]:
        """Return the contents of a resource."""
        _refuse(task=task)
        found = await self.read_resource_mcp(uri, _with_version(meta, version))
        contents: list[Any] = found.contents
        return contents

    async def list_prompts_mcp(self, *, cursor: str | None = None, cache_mode: str = "use") -> Any:
        """Return one page of the prompts."""
        return await self.session.list_prompts(cursor)

    async def list_prompts(self, max_pages: int = MOST_PAGES) -> list[Any]:
        """Return the descriptors of all prompts."""
        return await self._all(self.session.list_prompts, ("prompts",), max_pages)

    async def get_prompt_mcp(
        self, name: str, arguments: dict[str, Any] | None = None, meta: dict[str, Any] | None = None
    ) -> Any:
        """Get a prompt and return the GetPromptResult."""
        return await self.session.get_prompt(name, arguments, meta=meta)

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        version: str | None = None,
        meta: dict[str, Any] | None = None,
        task: Literal[False] = False,
        task_id: str | None = None,
        ttl: int | None = None,
    ) -> Any:
        """Get a prompt. Arguments that are no texts are sent as JSON."""
        _refuse(task=task)
        return await self.get_prompt_mcp(name, arguments, _with_version(meta, version))

    async def complete_mcp(
        self, ref: Any, argument: dict[str, str], context_arguments: dict[str, Any] | None = None
    ) -> Any:
        """Return a CompleteResult for an argument of a prompt or a template."""
        return await self.session.complete(ref, argument, context_arguments)

    async def complete(
        self, ref: Any, argument: dict[str, str], context_arguments: dict[str, Any] | None = None
    ) -> Any:
        """Return a Completion for an argument of a prompt or a template."""
        return (await self.complete_mcp(ref, argument, context_arguments)).completion

    async def _all(
        self, page: Callable[[str | None], Awaitable[Any]], member: tuple[str, ...], most: int
    ) -> list[Any]:
        """Return the entries of all pages. Raises RuntimeError for more pages than `most`."""
        found: list[Any] = []
        cursor: str | None = None
        for _ in range(most):
            result = await page(cursor)
            found += _read(result, *member)
            cursor = _read(result, "next_cursor", "nextCursor")
            if cursor is None:
                return found
        raise RuntimeError(f"{member[0]}: the list has more than {most} pages")

    # --- everything else ------------------------------------------------------------------------------

    async def ping(self) -> bool:
        """Send a ping; in 2026-07-28, which has none, ask the server who it is. Return True."""
        await self.session.send_ping()
        return True

    async def cancel(self, request_id: str | int, reason: str | None = None) -> None:
        """Cancel the request with this id. Cancelling the task that waits for it does the same."""
        await self.session.send_cancelled(request_id, reason)

    async def progress(
        self,
        progress_token: str | int,
        progress: float,
        total: float | None = None,
        message: str | None = None,
    ) -> None:
        """Send a progress notification."""
        await self.session.send_progress_notification(progress_token, progress, total, message)

    async def set_logging_level(self, level: LogLevel) -> None:
        """Set the minimum level of log messages, in any version."""
        await self.session.set_logging_level(level)

    async def send_roots_list_changed(self) -> None:
        """Notify the server that the roots have changed."""
        await self.session.send_roots_list_changed()

    if not TYPE_CHECKING:  # type checkers should report an unknown name

        def __getattr__(self, name: str) -> Any:
            words = next((words for part, words in _ALTERNATIVES.items() if part in name), None)
            raise not_offered("Client", name, {} if words is None else {name: words})


_ALTERNATIVES = {
    "prior_discover": "the server is asked when the client connects",
    "result_claims": "an extension has them: extensions=[…]",
    "skill": "skills are an extension of the protocol that fastrpc does not have",
    "task": "tasks are an extension of the protocol that fastrpc does not have: a call ends with its result",
    "verify": "SSL_CERT_FILE names certificates to trust",
}


def _refuse(**is_given: bool) -> None:
    """Raise NotOffered for the first option that is given: it would be ignored."""
    for name, given in is_given.items():
        if given:
            raise not_offered("Client", name, _ALTERNATIVES)


def _read(result: Any, *spellings: str) -> Any:
    """Return a member, which the version of the SDK that is installed spells in one of these ways."""
    for name in spellings:
        if hasattr(result, name):
            return getattr(result, name)
    raise AttributeError(f"{type(result).__name__} has no {spellings[0]}")


def _with_version(meta: dict[str, Any] | None, version: str | None) -> dict[str, Any] | None:
    if version is None:
        return meta
    found = dict(meta or {})
    return {**found, "fastmcp": {**found.get("fastmcp", {}), "version": version}}


async def _roots_from(roots: Any, context: Any) -> Any:
    """Return a ListRootsResult."""
    found = await callbacks.awaited(roots(context) if callable(roots) else roots)
    return {"roots": [dumped(root) if hasattr(root, "model_dump") else {"uri": str(root)} for root in found]}


async def _sampled(handler: Callable[..., Any], context: Any, params: Any) -> Any:
    """Return a CreateMessageResult."""
    found = await callbacks.awaited(handler(params.messages, params, context))
    if not isinstance(found, str):
        return found
    return {"role": "assistant", "model": "fastrpc", "content": {"type": "text", "text": found}}


async def _elicited(handler: Callable[..., Any], context: Any, params: Any) -> Any:
    """Return an ElicitResult: an answer without an action is one that accepts. A value is that of a form with
    the one field ``value``."""
    schema = dumped(params).get("requestedSchema") or {}
    members = schema.get("properties") or {}
    wanted = Shapes(schema).type() if members else None
    found = await callbacks.awaited(handler(params.message, wanted, params, context))
    action, content = "accept", found
    if hasattr(found, "action"):
        action, content = found.action, found.content
    content = plain_of(dumped(content))
    if content is not None and not isinstance(content, dict):
        if list(members) != ["value"]:
            raise ValueError(f"elicitation_handler: expected an object, got {content!r:.80}")
        content = {"value": content}
    return {"action": action, "content": content}

"""`ClientSession` and what leads to one: the client's side of the official SDK, on `fastrpc.Client`.

    async with stdio_client(StdioServerParameters(command="python", args=["server.py"])) as (read, write):
        async with ClientSession(read, write) as session:
            await session.initialize()
            result = await session.call_tool("word_count", {"text": "two words"})

The two streams are one `ClientEndpoint` and carry nothing: the session connects when it is initialized, and a
server is started then. Results are objects (`fastrpc.compat.models`).
"""

from __future__ import annotations

import asyncio
import os
import sys
from shutil import which

from fastrpc._core.call_result import CallResult
from fastrpc.client.output_schemas import OutputSchemas
from fastrpc.compat.client import callbacks
from fastrpc.compat.client.endpoints import ClientEndpoint, address, command, headers_of
from fastrpc.compat.errors import NotOffered, translated
from fastrpc.compat.models import dumped, typed
from fastrpc.errors import ClientError, InvalidAnswer
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from datetime import timedelta
    from types import TracebackType
    from typing import Any

    from fastrpc.client.asynchronous import AsyncClient
    from fastrpc.compat.client.endpoints import StdioServerParameters
    from fastrpc.compat.client.extensions import Extensions
    from fastrpc.options import LogLevel

NO_LIMIT_SECONDS = 0.0
START_SECONDS = 600.0
"""The handshake's time limit where none was given: a server may have to be downloaded first."""


def seconds_of(limit: timedelta | float | None) -> float | None:
    """Return a time limit in seconds: 1.x of the SDK takes a timedelta."""
    if limit is None or isinstance(limit, (int, float)):
        return limit
    return limit.total_seconds()


# ------------------------------------------------------------------------------------- endpoints


class StreamsManager:
    """An async context manager that yields two streams to a server, or three values; also what a `Client` of
    the SDK 2.x takes. What leads there is made when it is entered."""

    def __init__(self, make: Callable[[], ClientEndpoint], *others: Any) -> None:
        self._make = make
        self._others = others
        self._endpoint: ClientEndpoint | None = None

    def endpoint(self) -> ClientEndpoint:
        """Return where the server is. Raises as the function that has made this."""
        return self._make()

    async def __aenter__(self) -> tuple[Any, ...]:
        found = self._endpoint = self.endpoint()
        return (found, found, *self._others)

    async def __aexit__(self, *exception: object) -> None:
        found, self._endpoint = self._endpoint, None
        if found is not None:
            await found.close()


def stdio_client(server: StdioServerParameters, errlog: Any = None) -> StreamsManager:
    """Lead to a server that is started with the session, and ended at the latest with this.

    `errlog`: where its standard error goes, ours or the null device. Entering raises FileNotFoundError if
    there is no such program, and NotOffered for another file.
    """

    def make() -> ClientEndpoint:
        program = server.command
        path = (server.env or {}).get("PATH")
        if os.path.basename(program) == program and which(program, path=path) is None:
            raise FileNotFoundError(f"there is no program {program!r} on the PATH")
        is_shown = errlog in (None, sys.stderr, sys.__stderr__)
        if not is_shown and getattr(errlog, "name", None) != os.devnull:
            raise NotOffered("fastrpc.compat: errlog is sys.stderr, or open(os.devnull, 'w') for none")
        return command(program, server.args, server.env, server.cwd, is_shown)

    return StreamsManager(make)


def streamable_http_client(
    url: str, *, http_client: Any = None, terminate_on_close: bool = True, **limits: object
) -> StreamsManager:
    """Lead to the server at a URL. Headers of `http_client` are sent; time limits are the session's.

    Entering raises ImportError without httptools, and NotOffered for an HTTP client with an ``auth`` of its
    own.
    """
    return StreamsManager(lambda: address(url, headers_of(http_client)))


def streamablehttp_client(
    url: str, headers: Mapping[str, str] | None = None, *limits: object, auth: Any = None, **others: object
) -> StreamsManager:
    """Lead to the server at a URL, as up to 1.x of the SDK: the third value returns the session's id, which
    is not known here: None. `auth` is a bearer token; time limits are the session's.

    Entering raises ImportError without httptools, and NotOffered for another `auth`.
    """
    return StreamsManager(lambda: address(url, headers, auth), lambda: None)


def sse_client(
    url: str, headers: Mapping[str, str] | None = None, *limits: object, auth: Any = None, **others: object
) -> StreamsManager:
    """Lead to a server at a URL that speaks HTTP with SSE; the transport is found out.

    Entering raises ImportError without httptools, and NotOffered for an `auth` that is no bearer token.
    """
    return StreamsManager(lambda: address(url, headers, auth))


# --------------------------------------------------------------------------------------- session


class ClientSession:
    """A session with one server, with the methods of the official SDK's class.

    Takes the streams of this module's functions. `read_timeout_seconds`: the time limit of a request, seconds
    or a timedelta, by default none. Callbacks are the SDK's. Results are checked against the output schemas
    of the tools that were listed; nothing is listed for that.

    Methods raise McpError for an error of the server, for the end of the connection and for a time limit;
    RuntimeError before `initialize`, and for a result that breaks its schema; other ClientErrors otherwise.
    """

    def __init__(
        self,
        read_stream: Any,
        write_stream: Any = None,
        read_timeout_seconds: timedelta | float | None = None,
        sampling_callback: Callable[..., Any] | None = None,
        elicitation_callback: Callable[..., Any] | None = None,
        list_roots_callback: Callable[..., Any] | None = None,
        logging_callback: Callable[..., Any] | None = None,
        message_handler: Callable[..., Any] | None = None,
        client_info: Any = None,
        *,
        log_level: LogLevel | None = None,
        sampling_capabilities: Any = None,
        extensions: Extensions | None = None,
    ) -> None:
        if not isinstance(read_stream, ClientEndpoint):
            raise NotOffered(
                "fastrpc.compat: ClientSession takes the streams of fastrpc.compat's stdio_client, "
                f"streamable_http_client and sse_client, got {type(read_stream).__name__}"
            )
        self._endpoint = read_stream
        self._read_seconds = seconds_of(read_timeout_seconds)
        self._log_level: LogLevel | None = log_level
        self._options: dict[str, Any] = {}
        capabilities: dict[str, Any] = {}
        if sampling_callback is not None:
            self._options["on_sample"] = callbacks.sampling(sampling_callback, self)
            capabilities["sampling"] = dumped(sampling_capabilities) or {}
        if elicitation_callback is not None:
            self._options["on_elicit"] = callbacks.elicitation(elicitation_callback, self)
            capabilities["elicitation"] = {"form": {}, "url": {}}
        if list_roots_callback is not None:
            self._options["roots"] = callbacks.roots(list_roots_callback, self)
            capabilities["roots"] = {"listChanged": True}
        if logging_callback is not None:
            self._options["on_log"] = callbacks.logging(logging_callback)
        if message_handler is not None:
            self._options["on_notification"] = callbacks.messages(message_handler)
        self._extensions = extensions
        if extensions is not None:
            capabilities["extensions"] = extensions.declared
            if extensions.takes_notifications:
                self._options["on_notification"] = extensions.taking(self._options.get("on_notification"))
        if client_info is not None:
            self._options["client_info"] = dumped(client_info)
        self._options["capabilities"] = capabilities
        self._hears = logging_callback is not None or message_handler is not None
        self._schemas = OutputSchemas()
        self._client_or_none: AsyncClient | None = None

    async def __aenter__(self) -> ClientSession:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the connection. A server that was started ends."""
        client, self._client_or_none = self._client_or_none, None
        if client is not None:
            await client.close()

    # --- the handshake --------------------------------------------------------------------------------

    async def initialize(self) -> Any:
        """Connect, with the handshake of the versions up to 2025-11-25. Return the InitializeResult."""
        await self.connect(LATEST_SESSION_VERSION)
        return self.initialize_result

    async def discover(self) -> Any:
        """Connect to a server that speaks 2026-07-28. Return the DiscoverResult."""
        await self.connect(STATELESS)
        return self.discover_result

    async def connect(self, version: str | None, seconds: float | None = None) -> None:
        """Connect in this version, None for the latest of both sides, unless it is connected. `seconds`: the
        time limit of the handshake."""
        if self._client_or_none is not None:
            return
        client = self._endpoint.client(
            version=version,
            timeout_seconds=self._read_seconds or NO_LIMIT_SECONDS,
            start_seconds=seconds or self._read_seconds or START_SECONDS,
            **self._options,
        )
        await _asked(client.connect())
        if self._log_level is not None and client.version == STATELESS:
            await client.set_log_level(self._log_level)  # older versions would need a request for it
        self._client_or_none = client

    @property
    def _client(self) -> AsyncClient:
        if self._client_or_none is None:
            raise RuntimeError("the session is not connected: await session.initialize() first")
        return self._client_or_none

    @property
    def protocol_version(self) -> str | None:
        """The version in use, None without a connection."""
        return None if self._client_or_none is None else self._client_or_none.version

    @property
    def initialize_result(self) -> Any:
        """The InitializeResult, None without a connection. In 2026-07-28 it has what `server/discover` has
        told of the same."""
        client = self._client_or_none
        if client is None:
            return None
        raw: dict[str, Any] = {
            **{name: client.info[name] for name in ("instructions", "_meta") if name in client.info},
            "protocolVersion": client.version,
            "capabilities": client.server_capabilities,
            "serverInfo": client.server_info or {"name": "", "version": ""},
        }
        return typed("InitializeResult", raw)

    @property
    def discover_result(self) -> Any:
        """The DiscoverResult; None in a version up to 2025-11-25, and without a connection."""
        client = self._client_or_none
        return typed("DiscoverResult", client.info) if client and client.version == STATELESS else None

    @property
    def server_info(self) -> Any:
        """The server's Implementation, None without a connection."""
        client = self._client_or_none
        return None if client is None else typed("Implementation", client.server_info)

    @property
    def server_capabilities(self) -> Any:
        """The ServerCapabilities, None without a connection."""
        client = self._client_or_none
        return None if client is None else typed("ServerCapabilities", client.server_capabilities)

    def get_server_capabilities(self) -> Any:
        """Return the ServerCapabilities, None without a connection."""
        return self.server_capabilities

    @property
    def instructions(self) -> str | None:
        """What the server says about how to use it."""
        return None if self._client_or_none is None else self._client_or_none.instructions

    # --- tools ----------------------------------------------------------------------------------------

    async def list_tools(self, cursor: str | None = None, *, params: Any = None) -> Any:
        """Return one page of the tools, a ListToolsResult."""
        raw = await self._page("tools/list", cursor, params)
        for tool in raw.get("tools", ()):
            self._schemas.learn(tool)
        return typed("ListToolsResult", raw)

    async def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        read_timeout_seconds: timedelta | float | None = None,
        progress_callback: Callable[..., Any] | None = None,
        *,
        meta: dict[str, Any] | None = None,
        **rounds: Any,
    ) -> Any:
        """Call a tool and return its CallToolResult. What the server asks for in between is answered by the
        callbacks, or by hand: with ``allow_input_required=True`` an InputRequiredResult is returned, which
        ``input_responses`` and ``request_state`` of the next call answer."""
        given = _rounds(rounds)
        if given is not None:
            params = {"name": name, "arguments": arguments or {}, **({"_meta": meta} if meta else {})}
            return await self._round("tools/call", "CallToolResult", params | given, rounds)
        result = await self.call(name, arguments, read_timeout_seconds, progress_callback, meta)
        if isinstance(result, CallResult):
            return typed("CallToolResult", result.raw)
        return await self.finished(result, name, read_timeout_seconds)

    async def finished(self, result: dict[str, Any], name: str, limit: timedelta | float | None) -> Any:
        """Ask the extensions for the CallToolResult of a result whose type only an extension knows, and
        return it. Raises RuntimeError if no extension returns one."""
        if self._extensions is not None:
            finished = await self._extensions.finished(result, self, name, seconds_of(limit))
            if finished is not None:
                return finished
        raise RuntimeError(f"{name}: the result is of type {result.get('resultType')}, which nothing claims")

    async def call(
        self,
        name: str,
        arguments: dict[str, Any] | None,
        read_timeout_seconds: timedelta | float | None,
        progress_callback: Callable[..., Any] | None,
        meta: dict[str, Any] | None,
    ) -> Any:
        """Call a tool and return our own result; the JSON of one that an extension defines."""
        result = await _asked(
            self._client.call_tool(
                name,
                arguments,
                timeout_seconds=seconds_of(read_timeout_seconds),
                on_progress=callbacks.progress(progress_callback),
                meta=meta,
            )
        )
        if self._hears or progress_callback is not None:
            # Callbacks that wait for nothing have heard all that came before the result.
            await asyncio.sleep(0)
        if isinstance(result, CallResult):
            self._check_value(name, result)
        return result

    async def validate_tool_result(self, name: str, result: Any) -> None:
        """Raise RuntimeError for a result that breaks the tool's output schema, if that was listed."""
        self._check_value(name, CallResult(dumped(result)))

    def _check_value(self, name: str, result: CallResult) -> None:
        if name not in self._schemas:
            return
        try:
            self._schemas.check(name, result)
        except InvalidAnswer as error:
            raise RuntimeError(f"Invalid structured content returned by tool {name}: {error}") from error

    # --- resources, prompts ---------------------------------------------------------------------------

    async def list_resources(self, cursor: str | None = None, *, params: Any = None) -> Any:
        """Return one page of the resources, a ListResourcesResult."""
        return typed("ListResourcesResult", await self._page("resources/list", cursor, params))

    async def list_resource_templates(self, cursor: str | None = None, *, params: Any = None) -> Any:
        """Return one page of the templates, a ListResourceTemplatesResult."""
        raw = await self._page("resources/templates/list", cursor, params)
        return typed("ListResourceTemplatesResult", raw)

    async def read_resource(self, uri: Any, *, meta: dict[str, Any] | None = None, **rounds: Any) -> Any:
        """Read a resource and return a ReadResourceResult; `rounds` as in `call_tool`."""
        given = _rounds(rounds)
        if given is not None:
            params = {"uri": str(uri), **({"_meta": meta} if meta else {})}
            return await self._round("resources/read", "ReadResourceResult", params | given, rounds)
        if meta is None:
            return typed("ReadResourceResult", (await _asked(self._client.read_resource(str(uri)))).raw)
        raw = await self._request("resources/read", {"uri": str(uri), "_meta": meta})
        return typed("ReadResourceResult", raw)

    async def subscribe_resource(self, uri: Any) -> Any:
        """Subscribe to changes of a resource, of which the message handler hears."""
        await _asked(self._client.subscribe(str(uri)))
        return typed("EmptyResult", {})

    async def unsubscribe_resource(self, uri: Any) -> Any:
        """End a subscription to a resource."""
        await _asked(self._client.unsubscribe(str(uri)))
        return typed("EmptyResult", {})

    async def list_prompts(self, cursor: str | None = None, *, params: Any = None) -> Any:
        """Return one page of the prompts, a ListPromptsResult."""
        return typed("ListPromptsResult", await self._page("prompts/list", cursor, params))

    async def get_prompt(
        self,
        name: str,
        arguments: dict[str, str] | None = None,
        *,
        meta: dict[str, Any] | None = None,
        **rounds: Any,
    ) -> Any:
        """Get a prompt and return a GetPromptResult; `rounds` as in `call_tool`."""
        given = _rounds(rounds)
        if given is not None:
            params = {"name": name, "arguments": arguments or {}, **({"_meta": meta} if meta else {})}
            return await self._round("prompts/get", "GetPromptResult", params | given, rounds)
        if meta is None:
            return typed("GetPromptResult", (await _asked(self._client.get_prompt(name, arguments))).raw)
        params = {"name": name, "arguments": arguments or {}, "_meta": meta}
        return typed("GetPromptResult", await self._request("prompts/get", params))

    async def complete(
        self, ref: Any, argument: dict[str, str], context_arguments: dict[str, str] | None = None
    ) -> Any:
        """Return completions for an argument, a CompleteResult."""
        found = await _asked(
            self._client.complete(
                dumped(ref), argument["name"], argument.get("value", ""), context_arguments or None
            )
        )
        return typed("CompleteResult", found.raw)

    # --- everything else ------------------------------------------------------------------------------

    async def send_ping(self, **options: object) -> Any:
        """Send a ping; in 2026-07-28, which has none, ask the server who it is."""
        await _asked(self._client.ping())
        return typed("EmptyResult", {})

    async def set_logging_level(self, level: LogLevel, **options: object) -> Any:
        """Set the minimum level of log messages."""
        await _asked(self._client.set_log_level(level))
        return typed("EmptyResult", {})

    async def send_progress_notification(
        self,
        progress_token: str | int,
        progress: float,
        total: float | None = None,
        message: str | None = None,
        **options: object,
    ) -> None:
        """Send a progress notification."""
        params = {"progressToken": progress_token, "progress": progress, "total": total, "message": message}
        given = {name: value for name, value in params.items() if value is not None}
        self._client.notify("notifications/progress", given)

    async def send_cancelled(self, request_id: str | int, reason: str | None = None) -> None:
        """Notify the server that the client does not wait for the request with this id any more."""
        given = {} if reason is None else {"reason": reason}
        self._client.notify("notifications/cancelled", {"requestId": request_id, **given})

    async def send_roots_list_changed(self) -> None:
        """Notify the server that the roots have changed."""
        self._client.notify("notifications/roots/list_changed")

    async def send_notification(self, notification: Any, *others: object) -> None:
        """Send a notification, an object of the protocol."""
        message = dumped(notification)
        self._client.notify(message["method"], message.get("params"))

    async def send_request(
        self,
        request: Any,
        result_type: Any,
        request_read_timeout_seconds: timedelta | float | None = None,
        metadata: object = None,
        progress_callback: Callable[..., Any] | None = None,
    ) -> Any:
        """Send a request, an object of the protocol, and return its result as a pydantic model or by a
        TypeAdapter."""
        message = dumped(request)
        raw = await self._request(
            message["method"],
            message.get("params"),
            timeout_seconds=seconds_of(request_read_timeout_seconds),
            on_progress=callbacks.progress(progress_callback),
        )
        validate = getattr(result_type, "model_validate", None) or result_type.validate_python
        return validate(raw)

    async def _page(self, method: str, cursor: str | None, params: Any) -> dict[str, Any]:
        """Return one page of a list."""
        given = dumped(params) or {}
        if cursor is not None:
            given = {**given, "cursor": cursor}
        return await self._request(method, given)

    async def _round(self, method: str, kind: str, params: dict[str, Any], options: dict[str, Any]) -> Any:
        """Send a request that its caller may have to repeat, and return its result. Raises RuntimeError for
        one of a type that the caller does not allow."""
        raw = await self._request(method, params)
        found = raw.get("resultType", "complete")
        if found == "complete":
            return typed(kind, raw)
        if found == "input_required":
            if not options.get("allow_input_required"):
                raise RuntimeError(f"{method}: the server requires input; give allow_input_required=True")
            return typed("InputRequiredResult", raw)
        if not options.get("allow_claimed"):
            raise RuntimeError(f"{method}: the result is of type {found}; give allow_claimed=True")
        claimed = None if self._extensions is None else self._extensions.claimed(raw)
        return typed("Result", raw) if claimed is None else claimed

    async def _request(self, method: str, params: dict[str, Any] | None, **options: Any) -> dict[str, Any]:
        raw: dict[str, Any] = await _asked(self._client.request(method, params, **options))
        return raw


async def _asked(answer: Awaitable[Any]) -> Any:
    """Await a request. Raises the error that the SDK has for it."""
    try:
        return await answer
    except ClientError as error:
        raise translated(error) from error


def _rounds(options: dict[str, Any]) -> dict[str, Any] | None:
    """Return the params that answer input requests by hand; None if the callbacks answer them.
    Raises TypeError for an unknown option."""
    for name in options:
        if name not in ("input_responses", "request_state", "allow_input_required", "allow_claimed"):
            raise TypeError(f"{name}: no such option")
    if not any(value for value in options.values()):
        return None
    found = {}
    if options.get("input_responses") is not None:
        answers = options["input_responses"].items()
        found["inputResponses"] = {key: dumped(answer) for key, answer in answers}
    if options.get("request_state") is not None:
        found["requestState"] = options["request_state"]
    return found

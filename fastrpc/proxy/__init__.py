"""Proxies one upstream MCP server: a child process, or a server at an HTTP URL.

`Server.proxy(command)` and `Server.proxy(url)` create the proxy. It connects to the upstream server lazily:
the first request that depends on the upstream's features, including the first client's `initialize`, waits
for the connection. Over pipes the proxy negotiates the latest version that has an `initialize` handshake;
over HTTP, the latest version that the upstream supports. It declares the capabilities of the first client.
Entries, results, progress, cancellation, log messages, client requests (elicitation, sampling) and change
notifications are forwarded unchanged. When the upstream connection ends, calls in flight fail and the next
call reconnects. A call costs two more pipe transfers, or one HTTP request.
"""

from __future__ import annotations

import asyncio
from time import monotonic, time

from fastrpc import diagnostics
from fastrpc._core.forwarding import UpstreamRoute
from fastrpc.client.results import input_requests_of
from fastrpc.definitions.completion import key_of
from fastrpc.definitions.prompt import Prompt
from fastrpc.errors import (
    DefinitionError,
    FastrpcError,
    HeaderMismatch,
    InternalError,
    InvalidAnswer,
    MissingRequiredClientCapability,
    ToolError,
)
from fastrpc.protocol.versions import STATELESS
from fastrpc.proxy.entries import (
    INPUT_REQUESTS,
    PassedCompletion,
    PassedInputRequest,
    PassedPrompt,
    PassedResource,
    PassedTemplate,
    PassedTool,
    ask,
    contents_of,
    tool_result_of,
)
from fastrpc.proxy.hop import (
    ELICITED,
    OWN_NOTIFICATIONS,
    elicited,
    log,
    pass_on,
    server_info_of,
    with_carried_meta,
)
from fastrpc.proxy.lists import read_list
from fastrpc.proxy.requests import LoginFailed, SessionGone, UpstreamError
from fastrpc.proxy.start_limit import Late, in_time
from fastrpc.proxy.subscriptions import UpstreamSubscriptions
from fastrpc.proxy.upstream import translated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    from fastrpc._core.client_request import PendingRequest
    from fastrpc.content import Received
    from fastrpc.context import Context
    from fastrpc.definitions.registry import Registries, Registry
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request
    from fastrpc.engine.runtime import Runtime
    from fastrpc.proxy.targets import UpstreamTarget
    from fastrpc.proxy.upstream import UpstreamClient

    class ProxyServer(Protocol):
        """The part of `Server` that the proxy needs: the server whose features come from the upstream."""

        name: str
        version: str
        registries: Registries

        @property
        def runtime(self) -> Runtime:
            """The runtime that all connections of this server share."""

        def resource_updated(self, uri: str, rest: dict[str, Any] | None) -> None:
            """Notify subscribed clients that a resource has changed, with other members of the params."""

        def _runtimes(self) -> list[Runtime]:
            """The runtimes in which clients see what this server has."""


START_SECONDS = 30.0
"""Seconds that the upstream server may take to start, initialize and list its features; later, for a list."""
RETRY_SECONDS = 5.0
"""Seconds after a failed start during which the proxy does not try again."""
LONGEST_RETRY_SECONDS = 60.0
"""Upper bound, in seconds, of the back-off between reconnection attempts to a server at a URL."""
LOGIN_PAUSE_SECONDS = 60.0
"""After a login that failed a request may begin another one only after so long: each opens the browser."""

NEVER = float("-inf")

FREE = ("ping", "logging/setLevel")
"""Methods whose answers do not depend on the upstream's features."""
INTRODUCTIONS = ("initialize", "server/discover")

PASSED = ("elicitation", "sampling")
"""Client capabilities that the proxy declares to the upstream when its own client has declared them."""

INPUT_REQUIRED = "input_required"
MOST_ROUNDS = 64
"""Rounds of input requests in one call before the proxy gives up."""


class _Complete(Exception):
    """Carries a complete result out of `Context.once`, which would otherwise store it."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


# ----------------------------------------------------------------------------- the upstream server

_LISTS: dict[str, tuple[str, str, str, Any]] = {
    "tools": ("tools/list", "tools", "name", PassedTool),
    "resources": ("resources/list", "resources", "uri", PassedResource),
    "templates": ("resources/templates/list", "resourceTemplates", "uriTemplate", PassedTemplate),
    "prompts": ("prompts/list", "prompts", "name", PassedPrompt),
}
"""For each registry: its list method, the result member with the entries, the member that is the key, and the
entry class."""

_CAPABILITY = {"templates": "resources"}

_CHANGES = {
    "notifications/tools/list_changed": ("tools",),
    "notifications/resources/list_changed": ("resources", "templates"),
    "notifications/prompts/list_changed": ("prompts",),
}


class DeferredRequest:
    """A request that is deferred until the upstream's features are known. It stands in for the request's
    call."""

    def __init__(self, dispatcher: Dispatcher, request: Request) -> None:
        self.dispatcher = dispatcher
        self.request = request
        self.over = False

    def cancel(self, said: dict[str, Any] | None = None) -> None:
        self.over = True
        self.request.call = None
        self.dispatcher.responses.call_dropped(self)  # type: ignore[arg-type]

    def resume(self) -> None:
        if not self.over:
            self.over = True
            self.dispatcher.resume(self.request)


def proxy_of(make: Any, where: Iterable[str] | str, options: dict[str, Any]) -> tuple[Any, UpstreamServer]:
    """Return the server that `Server.proxy` makes, and its upstream. Raises DefinitionError."""
    from fastrpc.proxy.targets import target_of

    start_seconds = options.pop("start_seconds", START_SECONDS)
    target = target_of(where if isinstance(where, str) else list(where), options)
    server = make(**{"name": target.name, **options})
    return server, UpstreamServer(server, target, start_seconds=start_seconds)


class UpstreamServer:
    """The upstream server of a proxy: connected on demand, reconnected after it has ended.

    `known`: the upstream's features are in the registry, or the last attempt to connect failed recently.
    """

    def __init__(
        self,
        server: ProxyServer,
        target: UpstreamTarget,
        *,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._server = server
        self._target = target
        self._start_seconds = start_seconds
        self.reached = False
        """Whether a connection has ever succeeded."""
        self.failure: str | None = None
        """Why the last attempt to connect failed; None if it succeeded."""
        self.reason = ""
        """The same, without the name of the server."""
        self.last_end: str | None = None
        """Why the last connection that has ended by itself has; None if none has."""
        self.last_lines: list[str] = []
        """What a server that failed to start, or has ended by itself, wrote to its standard error last."""
        self.since = time()
        """When it was last started, has failed to start, or has ended, as seconds of the epoch."""
        self.starts = 0
        """Connections that have succeeded."""
        self.on_slow: Callable[[str, float], object] | None = None
        """Called when the first attempt to connect is slow: see `start_limit.in_time`."""
        self.limit_hint = ""
        """What sets the time for that, as errors say it."""
        self.shows_itself = False
        """Whether clients receive the upstream's `serverInfo` instead of the proxy's own."""
        self._listed = False
        self._failed_at = NEVER
        self._deferred: list[DeferredRequest] = []
        self._client: UpstreamClient | None = None
        self._starting: asyncio.Task[UpstreamClient] | None = None
        self._capabilities: dict[str, Any] = {}  # capabilities of the proxy's first client
        self._raw: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in (*_LISTS, "completions")}
        self._listing: dict[str, bool] = {}  # registries being listed again; True: has changed since
        self._changed: set[str] = set()  # registries that have changed while the upstream starts
        self._tasks: set[asyncio.Task[None]] = set()
        self._retrying = False
        self._wants_login = False
        """Whether the last attempt failed because no user has logged in."""
        self._log = diagnostics.Once("warning")
        self._can_subscribe = False
        self._subscriptions = UpstreamSubscriptions(server, start_seconds, self._keep)
        self.route = UpstreamRoute(tool_result_of, translated, with_carried_meta)
        """Where the connection forwards calls of tools, while the upstream has a session over pipes."""

    @property
    def shown(self) -> str:
        """The name of the upstream in messages."""
        return self._target.shown

    @shown.setter
    def shown(self, name: str) -> None:
        self._target.shown = name

    declares_everything = False
    """The capabilities that are declared are those of the upstream, which is known by then."""

    @property
    def is_listed(self) -> bool:
        """Whether the upstream's features are in the registries, though it may have ended since."""
        return self._listed

    @property
    def is_starting(self) -> bool:
        return self._starting is not None

    @property
    def is_connected(self) -> bool:
        return self._client is not None

    @property
    def pid(self) -> int:
        """The process id of an upstream that was started and runs; else 0."""
        return 0 if self._client is None else self._client.pid

    @property
    def known(self) -> bool:
        return self._listed or self._is_pausing

    @property
    def _is_pausing(self) -> bool:
        """Whether it is too early for another attempt to connect."""
        pause = LOGIN_PAUSE_SECONDS if self._wants_login else RETRY_SECONDS
        return self.failure is not None and monotonic() < self._failed_at + pause

    @property
    def live(self) -> bool:
        """Whether there is a connection, or a task, to close."""
        return self._client is not None or self._starting is not None or bool(self._tasks)

    # --- requests that depend on the upstream's features ----------------------------------------------

    def defers(self, dispatcher: Dispatcher, request: Request) -> bool:
        """Defer a request until the upstream's features are known. Return False if it need not wait.

        Raises InternalError if the answer depends on an upstream server that cannot be started.
        """
        method = request.method
        is_planned = method == "tools/call" and request.params.get("name") in dispatcher.runtime.plans
        if method in FREE or is_planned or self._listed:
            return False
        if self.known:
            alone = dispatcher.runtime is self._server.runtime
            if alone and method not in INTRODUCTIONS:
                raise InternalError(self.failure or "")
            return False
        if method == "initialize":
            # Messages that follow are checked against this version, though this request is not answered yet.
            dispatcher.session.agree(request.params)
        if not self._deferred and self._starting is None:
            self._capabilities = request.client_capabilities
        deferred = DeferredRequest(dispatcher, request)
        self._deferred.append(deferred)
        dispatcher.requests.defer(request, deferred)
        if len(self._deferred) == 1:
            dispatcher.connection.call_in_loop(lambda: self._spawn(self._connect_and_resume()))
        return True

    async def _connect_and_resume(self) -> None:
        try:
            await self._running()
        except FastrpcError:
            pass  # logged, and kept in `failure` for later requests
        deferred, self._deferred = self._deferred, []
        for request in deferred:
            request.resume()

    # --- calls ----------------------------------------------------------------------------------------

    async def request(self, method: str, params: dict[str, Any], context: Context) -> dict[str, Any]:
        """Send a request for a call, and answer the input requests that the upstream returns.

        Raises RemoteError and ToolError.
        """
        found = await self._request(method, params, context)
        if found is not None:
            return found
        sent = dict(params)
        for number in range(MOST_ROUNDS):
            found = await self._round(number, method, sent, context)
            if found.get("resultType") != INPUT_REQUIRED:
                return found
            sent = {**params, **await self._input_responses(number, found, context)}
        raise ToolError(f"the upstream server still requests input after {MOST_ROUNDS} rounds")

    async def _request(self, method: str, params: dict[str, Any], context: Context) -> dict[str, Any] | None:
        """Send a request to a session upstream. Return None if the upstream is stateless (2026-07-28)."""
        client = await self._running()
        return None if client.stateless else await self._try(client, method, params, context)

    async def result_of(self, request: PendingRequest, context: Context) -> dict[str, Any]:
        """Return the result of a request that has been sent for a call. Raises RemoteError and ToolError."""
        if self._client is None:
            raise ToolError("the connection to the upstream server is lost")
        return await self._client.result_of(request, context)

    async def _try(
        self, client: UpstreamClient, method: str, params: dict[str, Any], context: Context
    ) -> dict[str, Any]:
        """Send a request, and once more if the upstream rejected it before processing it."""
        try:
            return await client.request(method, params, context)
        except SessionGone:
            client = await self._running()
        except UpstreamError as error:
            if error.code != HeaderMismatch.code or method != "tools/call":
                raise
            await self._list(client, "tools")  # the tool's schema has changed, and with it the headers
        return await client.request(method, params, context)

    async def _round(
        self, number: int, method: str, params: dict[str, Any], context: Context
    ) -> dict[str, Any]:
        """Send one round of a multi round-trip request (MCP 2026-07-28).

        If our own client also answers by input responses, the call runs again from its start. The upstream's
        input requests are stored in `requestState`, so that they are not sent twice.
        """

        async def send() -> dict[str, Any]:
            found = await self._try(await self._running(), method, params, context)
            if found.get("resultType") != INPUT_REQUIRED:
                raise _Complete(found)
            return {
                name: found[name] for name in ("resultType", "inputRequests", "requestState") if name in found
            }

        try:
            sent: dict[str, Any] = await context.once(f"proxy:{number}", send)
            return sent
        except _Complete as end:
            return end.result
        except UpstreamError as error:
            if error.code == MissingRequiredClientCapability.code and context.protocol_version != STATELESS:
                raise ToolError(str(error)) from None  # our client's version has no such error code
            raise

    @staticmethod
    async def _input_responses(number: int, found: dict[str, Any], context: Context) -> dict[str, Any]:
        """Forward the upstream's input requests to the client of the call; return the next round's params.

        A later round may reuse a key, so the client receives a key that includes the round's number.
        """
        try:
            requests = input_requests_of("the upstream server's answer", found) or {}
        except InvalidAnswer as error:
            raise ToolError(str(error)) from None
        input_requests, names = {}, {}
        for key, request in requests.items():
            if request["method"] not in INPUT_REQUESTS:
                raise ToolError(f"{request['method']}: the proxy does not support this input request")
            name = key if number == 0 and key != "self" else f"{number}:{key}"
            input_requests[name] = PassedInputRequest(request["method"], request.get("params") or {})
            names[name] = key
        following: dict[str, Any] = {}
        if input_requests:
            answers = await context.ask(**input_requests)
            following["inputResponses"] = {
                names[name]: answer for name, answer in answers.items() if answer is not None
            }
        if "requestState" in found:
            following["requestState"] = found["requestState"]
        return following

    async def read(self, uri: str, context: Context) -> Received | None:
        """Read a resource of the upstream; None if it does not exist. Raises RemoteError and ToolError."""
        try:
            result = await self.request("resources/read", {"uri": uri}, context)
        except UpstreamError as error:
            if error.says_not_found(uri):
                return None
            raise
        return contents_of(result)

    def watch(self, uri: str) -> None:
        """Subscribe to changes of a resource, if the upstream has it."""
        self._subscriptions.watch(uri)

    def unwatch(self, uri: str) -> None:
        """End the subscription to a resource that no client has subscribed to any more."""
        self._subscriptions.unwatch(uri)

    # --- connecting -----------------------------------------------------------------------------------

    async def start(self, capabilities: dict[str, Any]) -> None:
        """Connect if there is no connection, for a client with these capabilities. Raises ToolError; the
        reason is in `failure`, too."""
        if self._client is None and self._starting is None:
            self._capabilities = capabilities
        await self._running()

    async def _running(self) -> UpstreamClient:
        """Return the connection to the upstream, connecting if there is none. Raises ToolError."""
        loop = asyncio.get_running_loop()
        if self._client is not None and self._client.loop is not loop and self._client.loop.is_closed():
            self._client = self.route.stream = None  # belongs to a closed event loop
        if self._client is not None:
            return self._client
        if self._starting is None:
            if self._wants_login and self._is_pausing:
                raise ToolError(self.failure or "")
            self._starting = loop.create_task(self._start())
        return await asyncio.shield(self._starting)

    async def _start(self) -> UpstreamClient:
        client: UpstreamClient | None = None
        try:
            client = self._target.connect(self, self._initialize_params())
            limit = self._start_seconds + self._target.login_seconds
            on_slow = self.on_slow if self.failure is None else None
            await in_time(self._initialize(client), limit, lambda: client.awaited, on_slow)
            if client.ended is not None:
                raise ToolError(client.ended)
        except Exception as error:  # an invalid response may raise anything, and callers must not hang
            reason = self._failure_reason(client, error)
            shown = self._target.shown
            where = "" if shown in reason else f" ({shown})"
            failure = f"the upstream server{where} cannot be used: {reason}"
            diagnostics.write("info" if self.failure == failure else "error", failure)
            self.failure, self.reason = failure, reason
            self.last_lines = [] if client is None else client.last_lines
            self._failed_at = monotonic()
            self.since = time()
            self._wants_login = isinstance(error, LoginFailed)
            self._retry_in(RETRY_SECONDS)
            raise ToolError(failure) from None
        else:
            self.failure = None
            self.starts += 1
            self.since = time()
            self._wants_login = False
            self._listed = self.reached = True
            self._client = client
            if self._target.forwards:
                self.route.stream, self.route.version = client.stream, client.version
            for name in self._changed:
                self._list_again(name)
            self._subscriptions.connect(client if self._can_subscribe else None)
            return client
        finally:
            self._starting = None
            if client is not None and self._client is not client:
                await client.leave()

    def _retry_in(self, seconds: float) -> None:
        """Schedule reconnection attempts to a server at a URL, so that clients receive its changes."""
        if self._target.comes_back and not self._retrying and not self._wants_login:
            self._retrying = True
            self._spawn(self._retry(seconds))

    async def _retry(self, seconds: float) -> None:
        try:
            while self._client is None and not self._wants_login:
                await asyncio.sleep(seconds)
                try:
                    await self._running()
                except FastrpcError:
                    seconds = min(max(2 * seconds, RETRY_SECONDS), LONGEST_RETRY_SECONDS)
        finally:
            self._retrying = False

    def _failure_reason(self, client: UpstreamClient | None, error: Exception) -> str:
        if isinstance(error, Late):  # `ended` then only says that the proxy has closed it
            return f"it did not start within {self._start_seconds:g} s, waiting for {error}{self.limit_hint}"
        if client is not None and client.ended is not None:
            return client.ended
        if not isinstance(error, FastrpcError | ValueError):
            return f"invalid response: {error!r:.200}"
        return str(error) or type(error).__name__

    def _initialize_params(self) -> dict[str, Any]:
        """Return the proxy's `clientInfo`, and the capabilities that it declares for its client."""
        capabilities = {name: self._capabilities[name] for name in PASSED if name in self._capabilities}
        if "roots" in self._capabilities:
            capabilities["roots"] = {}  # without listChanged: changes of roots are not forwarded
        info = {"name": self._server.name, "version": self._server.version}
        return {"capabilities": capabilities, "clientInfo": info}

    async def _initialize(self, client: UpstreamClient) -> None:
        """Initialize the connection and list the upstream's features."""
        self._changed.clear()
        found = await client.initialize()
        offered = found["capabilities"]
        runtime = self._server.runtime
        if runtime.instructions is None and isinstance(found.get("instructions"), str):
            runtime.instructions = found["instructions"]
        if self.shows_itself:
            runtime.server_info = server_info_of(found.get("serverInfo"), runtime.server_info)
        for name in _LISTS:
            if _CAPABILITY.get(name, name) in offered:
                await self._list(client, name)
            else:
                self._replace(name, {}, dict)
        self._complete("completions" in offered)
        self._can_subscribe = bool(offered.get("resources", {}).get("subscribe"))

    async def _list(self, client: UpstreamClient, name: str) -> None:
        """Read all pages of one list, and update its registry."""
        method, member, key, make = _LISTS[name]
        # Without tools it is of no use; what was listed before stays, if it cannot be listed again.
        is_needed = name == "tools" or self._listed
        log, seconds = self._left_out, self._start_seconds
        self._changed.discard(name)
        listed = await read_list(client, method, member, key, seconds, is_needed=is_needed, log=log)
        self._replace(name, listed, lambda raw: make(self, raw))

    def _left_out(self, text: str) -> None:
        self._log.write(f"the upstream server ({self._target.shown}): {text}")

    def _complete(self, offered: bool) -> None:
        """Register a completion for each prompt argument and each template variable."""
        wanted: dict[str, dict[str, Any]] = {}
        registries = self._server.registries
        for entry in (*registries.prompts, *registries.templates) if offered else ():
            kind, member = ("prompt", "name") if isinstance(entry, Prompt) else ("resource", "uri")
            for parameter in entry.signature.parameters:
                reference = {"type": f"ref/{kind}", member: entry.key}
                wanted[key_of(entry.key, parameter.name)] = {"ref": reference, "argument": parameter.name}
        self._replace("completions", wanted, lambda raw: PassedCompletion(self, raw["ref"], raw["argument"]))

    def _replace(
        self, name: str, listed: dict[str, dict[str, Any]], make: Callable[[dict[str, Any]], Any]
    ) -> None:
        """Replace the entries of a registry that have changed."""
        registry: Registry[Any] = getattr(self._server.registries, name)
        former = self._raw[name]
        gone = [key for key, raw in former.items() if listed.get(key) != raw]
        new = []
        for key, raw in listed.items():
            if former.get(key) != raw:
                try:
                    new.append(make(raw))
                except (FastrpcError, KeyError, TypeError, ValueError) as error:
                    what = f"{registry.kind} {key!r:.80}"
                    diagnostics.write("warning", f"the upstream server: invalid {what} ignored: {error}")
        self._raw[name] = listed
        if gone or new:
            try:
                registry.replace(gone, new)
            except DefinitionError as error:
                diagnostics.write("error", f"the upstream server: its features cannot be mounted: {error}")

    # --- notifications --------------------------------------------------------------------------------

    def on_notification(self, method: str, params: dict[str, Any], context: Context | None) -> None:
        """Handle a notification from the upstream."""
        if method == "notifications/message":
            if context is not None and "data" in params:
                try:
                    log(context, params)
                except ValueError as error:
                    diagnostics.write("warning", f"the upstream server sent an invalid log message: {error}")
        elif method == ELICITED:
            if context is not None:
                elicited(context, params)
        elif method == "notifications/resources/updated":
            self._server.resource_updated(str(params.get("uri")), with_carried_meta(params))
        elif method in _CHANGES:
            for name in _CHANGES[method]:
                self._list_again(name)
        elif method not in OWN_NOTIFICATIONS:
            if context is not None:
                pass_on(context, method, params)
            else:
                for runtime in self._server._runtimes():
                    runtime.notify_clients(method, with_carried_meta(params))

    def take_notification(self, method: str, params: dict[str, Any]) -> None:
        """Pass a notification of a client on, if there is a connection, and MCP does not know it."""
        if self._client is not None and method not in OWN_NOTIFICATIONS:
            self._client.notify(method, params)

    def relist(self) -> None:
        """List everything again: notifications may have been missed while the stream was broken."""
        for name in _LISTS:
            if self._raw[name]:
                self._list_again(name)

    async def ask(self, context: Context, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Forward an elicitation or sampling request to the client of the call."""
        return await ask(context, method, params)

    def _list_again(self, name: str) -> None:
        if self._client is None:
            self._changed.add(name)
            return
        is_running = name in self._listing
        self._listing[name] = True
        if not is_running:
            self._spawn(self._follow(name))

    async def _follow(self, name: str) -> None:
        """Update a registry after a change notification, and again if another one arrives meanwhile."""
        try:
            while self._listing[name] and self._client is not None:
                self._listing[name] = False
                try:
                    await self._list(self._client, name)
                except (FastrpcError, KeyError, TypeError, ValueError) as error:
                    self._left_out(f"its {name} cannot be listed again: {error}")
            if self._raw["completions"] or name in ("prompts", "templates"):
                self._complete(bool(self._raw["completions"]))
        finally:
            del self._listing[name]

    def _spawn(self, coroutine: Any) -> None:
        self._keep(asyncio.get_running_loop().create_task(coroutine))

    def _keep(self, task: Any) -> None:
        """Hold a task until it has ended, or this ends it."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def on_end(self, client: UpstreamClient, reason: str) -> None:
        """Handle the end of the connection."""
        if self._client is client:
            self._client = self.route.stream = None
            self._subscriptions.connect(None)
            self.last_end, self.since = reason, time()
            self.last_lines = client.last_lines
            shown = self._target.shown
            diagnostics.write("warning", f"the connection to the upstream server ({shown}) is lost: {reason}")
            self._spawn(client.leave())
            self._retry_in(0.0)

    async def leave(self) -> None:
        """Close the connection, within a second; the next request reconnects."""
        client, self._client = self._client, None
        self.route.stream = None
        self._subscriptions.connect(None)
        tasks = [task for task in (*self._tasks, self._starting) if task is not None]
        for task in tasks:
            task.cancel()
        self._listed = self._retrying = False
        self._failed_at = NEVER
        if client is not None:
            await client.leave()
        await asyncio.gather(*tasks, return_exceptions=True)

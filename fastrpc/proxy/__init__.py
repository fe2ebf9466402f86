"""Proxies one upstream MCP server: a child process, or a server at an HTTP URL.

`Server.proxy` creates the proxy. It connects with the first request that depends on the upstream's features,
including the first client's `initialize`, which waits for that. Over pipes the proxy negotiates the latest
version that has an `initialize` handshake; over HTTP, the latest version that the upstream supports. It
declares the capabilities of the first client. When the upstream connection ends, calls in flight fail and the
next call reconnects. A call costs two more pipe transfers, or one HTTP request.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* when the upstream server of a proxy is connected and disconnected: `__init__.py`; what it offers:
  `features.py`, as entries: `entries.py`; where it is: `targets.py`; the input requests of a stateless one:
  `rounds.py`
* how messages reach an upstream server: `upstream.py`, on `client/session.py` and a transport of `client/`
* what a proxy has subscribed to: `subscriptions.py`
* what a proxy forwards, and what belongs to one of its connections: `hop.py`; of calls forwarded as bytes:
  `_core/carried_meta.h`
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic, time

from fastrpc import diagnostics
from fastrpc._core.forwarding import UpstreamRoute
from fastrpc.engine.requests_in_flight import DeferredRequest
from fastrpc.errors import FastrpcError, HeaderMismatch, InternalError, ToolError
from fastrpc.mounting import places_of
from fastrpc.proxy.entries import contents_of, tool_result_of
from fastrpc.proxy.features import CHANGES, UpstreamFeatures
from fastrpc.proxy.hop import (
    ELICITED,
    OWN_NOTIFICATIONS,
    elicited,
    log,
    pass_on,
    server_info_of,
    with_carried_meta,
)
from fastrpc.proxy.requests import LoginFailed, SessionGone, UpstreamError
from fastrpc.proxy.rounds import complete_result
from fastrpc.proxy.start_limit import Late, in_time
from fastrpc.proxy.subscriptions import UpstreamSubscriptions
from fastrpc.proxy.upstream import UpstreamClient, translated

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Protocol

    from fastrpc._core.client_request import PendingRequest
    from fastrpc.content import Received
    from fastrpc.context import Context
    from fastrpc.definitions.registry import Registries
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request
    from fastrpc.engine.runtime import Runtime
    from fastrpc.proxy.targets import UpstreamTarget

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


def proxy_of(make: Any, where: Iterable[str] | str, options: dict[str, Any]) -> tuple[Any, UpstreamServer]:
    """Return the server that `Server.proxy` makes, and its upstream. Raises DefinitionError."""
    from fastrpc.proxy.targets import target_of

    start_seconds = options.pop("start_seconds", START_SECONDS)
    target = target_of(where if isinstance(where, str) else list(where), options)
    server = make(**{"name": target.name, **options})
    return server, UpstreamServer(server, target, start_seconds)


class UpstreamServer:
    """The upstream server of a proxy: connected on demand, reconnected after it has ended. `known`: its
    features are in the registry, or the last attempt to connect failed recently."""

    def __init__(self, server: ProxyServer, target: UpstreamTarget, start_seconds: float) -> None:
        self._server = server
        self.target = target
        self._start_seconds = start_seconds
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
        self._failed_at = NEVER
        self._deferred: list[DeferredRequest] = []
        self._client: UpstreamClient | None = None
        self._starting: asyncio.Task[UpstreamClient] | None = None
        self._capabilities: dict[str, Any] = {}  # capabilities of the proxy's first client
        self._tasks: set[asyncio.Task[None]] = set()
        self._retrying = False
        self._wants_login = False
        """Whether the last attempt failed because no user has logged in."""
        self._can_subscribe = False
        self.features = UpstreamFeatures(server.registries, self, target, start_seconds, self._spawn)
        self.relist: Callable[[], object] = self.features.list_all_again
        self._subscriptions = subscriptions = UpstreamSubscriptions(server, start_seconds, self._keep)
        self.unwatch = subscriptions.unwatch
        self.route = UpstreamRoute(tool_result_of, translated, with_carried_meta)
        """Where the connection forwards calls of tools, while the upstream has a session over pipes."""

    declares_everything = False
    """The capabilities that are declared are those of the upstream, which is known by then."""

    @property
    def is_starting(self) -> bool:
        return self._starting is not None

    @property
    def is_connected(self) -> bool:
        return self._client is not None

    @property
    def pid(self) -> int:
        """The process id of an upstream that was started and runs; else 0."""
        return 0 if self._client is None else self._client.transport.pid

    @property
    def known(self) -> bool:
        return self.features.is_listed or self._is_pausing

    @property
    def _is_pausing(self) -> bool:
        pause = LOGIN_PAUSE_SECONDS if self._wants_login else RETRY_SECONDS
        return self.failure is not None and monotonic() < self._failed_at + pause

    @property
    def live(self) -> bool:
        """Whether there is a connection, or a task, to close."""
        return self._client is not None or self._starting is not None or bool(self._tasks)

    def defers(self, dispatcher: Dispatcher, request: Request) -> bool:
        """Defer a request until the upstream's features are known. Return False if it need not wait.

        Raises InternalError if the answer depends on an upstream server that cannot be started.
        """
        method = request.method
        is_planned = method == "tools/call" and request.params.get("name") in dispatcher.runtime.plans.tools
        if method in FREE or is_planned or self.features.is_listed:
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
        with suppress(FastrpcError):  # logged, and kept in `failure` for later requests
            await self._running()
        deferred, self._deferred = self._deferred, []
        for request in deferred:
            request.resume()

    # --- calls ----------------------------------------------------------------------------------------

    async def request(self, method: str, params: dict[str, Any], context: Context) -> dict[str, Any]:
        """Return the complete result of a request for a call. Raises RemoteError and ToolError."""
        client = await self._running()
        if not client.stateless:
            return await self._try(client, method, params, context)

        async def send(sent: dict[str, Any]) -> dict[str, Any]:
            return await self._try(await self._running(), method, sent, context)

        return await complete_result(send, params, context)

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
            await self.features.list_one(client, "tools")  # the schema has changed, and with it the headers
        return await client.request(method, params, context)

    async def read(self, uri: str, context: Context) -> Received | None:
        """Read a resource of the upstream; None if it does not exist. Raises RemoteError and ToolError."""
        try:
            result = await self.request("resources/read", {"uri": uri}, context)
        except UpstreamError as error:
            if error.says_not_found(uri):
                return None
            raise
        return contents_of(result)

    # --- connecting -----------------------------------------------------------------------------------

    async def start(self, capabilities: dict[str, Any]) -> None:
        """Connect, if need be, for a client with these capabilities. Raises ToolError, as `failure` says."""
        if self._client is None and self._starting is None:
            self._capabilities = capabilities
        await self._running()

    def connect(self, capabilities: dict[str, Any]) -> None:
        """Connect for a client with these capabilities, soon, if that has not been tried yet."""
        if not self.known and self._starting is None:
            self._spawn(_start_and_watch(self, None, capabilities))

    def watch(self, uri: str, capabilities: dict[str, Any]) -> None:
        """Subscribe to changes of a resource, if the upstream has it: connect first, if that has not been
        tried yet, for a client with these capabilities."""
        if self.known or self._subscriptions.has(uri):
            self._subscriptions.watch(uri)
        else:
            self._spawn(_start_and_watch(self, uri, capabilities))

    async def _running(self) -> UpstreamClient:
        """Return the connection to the upstream, connecting if there is none. Raises ToolError."""
        loop = asyncio.get_running_loop()
        if self._client is not None and self._client.loop is not loop and self._client.loop.is_closed():
            self._forget_client()  # belongs to a closed event loop
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
            capabilities = {name: self._capabilities[name] for name in PASSED if name in self._capabilities}
            if "roots" in self._capabilities:
                capabilities["roots"] = {}  # without listChanged: changes of roots are not forwarded
            info = {"name": self._server.name, "version": self._server.version}
            client = self.target.connect(self, {"capabilities": capabilities, "clientInfo": info})
            limit = self._start_seconds + self.target.login_seconds
            on_slow = self.on_slow if self.failure is None else None
            await in_time(self._initialize(client), limit, lambda: client.session.awaited, on_slow)
            if client.ended is not None:
                raise ToolError(client.ended)
        except Exception as error:  # an invalid response may raise anything, and callers must not hang
            reason = self._failure_reason(client, error)
            shown = self.target.shown
            where = "" if shown in reason else f" ({shown})"
            failure = f"the upstream server{where} cannot be used: {reason}"
            diagnostics.write("info" if self.failure == failure else "error", failure)
            self.failure, self.reason = failure, reason
            self.last_lines = [] if client is None else client.transport.last_lines
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
            self._client = client
            if self.target.starts:
                self.route.stream, self.route.version = client.stream, client.session.version
            self.features.connect(client)
            self._subscriptions.connect(client if self._can_subscribe else None)
            return client
        finally:
            self._starting = None
            if client is not None and self._client is not client:
                await client.leave()

    def _retry_in(self, seconds: float) -> None:
        """Schedule reconnection attempts to a server at a URL, so that clients receive its changes."""
        if not self.target.starts and not self._retrying and not self._wants_login:
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

    async def _initialize(self, client: UpstreamClient) -> None:
        found = await client.initialize()
        offered = found["capabilities"]
        runtime = self._server.runtime
        if runtime.description.instructions is None and isinstance(found.get("instructions"), str):
            runtime.description.instructions = found["instructions"]
        if self.shows_itself:
            runtime.description.info = server_info_of(found.get("serverInfo"), runtime.description.info)
        await self.features.list_all(client, offered)
        self._can_subscribe = bool(offered.get("resources", {}).get("subscribe"))

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
            _resource_updated(self, str(params.get("uri")), with_carried_meta(params))
        elif method in CHANGES:
            self.features.list_changed(method)
        elif method not in OWN_NOTIFICATIONS:
            if context is not None:
                pass_on(context, method, params)
            else:
                for runtime in self._server._runtimes():
                    runtime.announcements.notify(
                        method, with_carried_meta(params), is_heard_by_all=not self.target.starts
                    )

    def take_notification(self, method: str, params: dict[str, Any]) -> None:
        """Pass a notification of a client on, if there is a connection, and MCP does not know it."""
        if self._client is not None and method not in OWN_NOTIFICATIONS:
            self._client.notify(method, params)

    def _spawn(self, coroutine: Any) -> None:
        self._keep(asyncio.get_running_loop().create_task(coroutine))

    def _keep(self, task: Any) -> None:
        """Hold a task until it has ended, or this ends it."""
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def on_end(self, client: UpstreamClient, reason: str) -> None:
        """Handle the end of the connection."""
        if self._client is client:
            self._forget_client()
            self.last_end, self.since = reason, time()
            self.last_lines = client.transport.last_lines
            shown = self.target.shown
            diagnostics.write("warning", f"the connection to the upstream server ({shown}) is lost: {reason}")
            self._spawn(client.leave())
            self._retry_in(0.0)

    async def leave(self) -> None:
        """Close the connection, within a second; the next request reconnects."""
        client = self._client
        self._forget_client()
        tasks = [task for task in (*self._tasks, self._starting) if task is not None]
        for task in tasks:
            task.cancel()
        self.features.is_listed = self._retrying = False
        self._failed_at = NEVER
        if client is not None:
            await client.leave()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _forget_client(self) -> None:
        self._client = self.route.stream = None
        self.features.connect(None)
        self._subscriptions.connect(None)


async def _start_and_watch(upstream: UpstreamServer, uri: str | None, capabilities: dict[str, Any]) -> None:
    """Connect, and then watch a resource if a client still wants that."""
    try:
        await upstream.start(capabilities)
    except FastrpcError:
        return  # it is logged
    if uri is not None and upstream._subscriptions.is_wanted(uri):
        upstream._subscriptions.watch(uri)


def _resource_updated(upstream: UpstreamServer, uri: str, rest: dict[str, Any]) -> None:
    """Notify subscribed clients. Each process that serves them has a connection to an upstream at a URL, and
    hears this itself; of an upstream that was started here no other one does."""
    if upstream.target.starts:
        upstream._server.resource_updated(uri, rest)
    else:
        for runtime, shown in places_of(upstream._server, uri):
            runtime.announcements.take("resource_updated", shown, rest)

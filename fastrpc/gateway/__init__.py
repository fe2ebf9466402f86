"""A gateway: one server in front of all servers of a configuration, with their names before those of tools.

    server, gateway = gateway_of({"shop": {"command": "python", "args": ["shop.py"]}})

Each server is a proxy (`fastrpc.proxy`). The first list request starts all of them concurrently and waits
until each is listed or has failed. A call of an unknown tool starts the server whose prefix its name has. A
server that ends is started again by the next call; a failed one does not affect the others. A call of a known
tool does not run code of this package.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* which servers a gateway serves, and when it starts them: `__init__.py`; what it lists: `catalogue.py`, by
  which names: `names.py`, which tools are allowed and denied: `rules.py`; its file: `watched_file.py`; the
  state of its servers: `status.py`
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from time import time

from fastrpc import diagnostics
from fastrpc.engine.requests_in_flight import DeferredRequest
from fastrpc.errors import FastrpcError, InternalError
from fastrpc.gateway.catalogue import GatewayCatalogue
from fastrpc.gateway.member import CLIENT_NAME, DENIED, INVALID, GatewayMember, member_of
from fastrpc.gateway.names import prefix_of
from fastrpc.gateway.rules import Rules
from fastrpc.proxy import UpstreamServer
from fastrpc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping
    from typing import Any

    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request
    from fastrpc.server import Server

START_SECONDS = 30.0
RETRY_SECONDS = 5.0
LONGEST_RETRY_SECONDS = 300.0
"""After a failed start a server is started again, at intervals that grow from the first to the second."""

LISTS = ("tools/list", "resources/list", "resources/templates/list", "prompts/list")
OF_NAMES = {"tools/call": "tools", "prompts/get": "prompts"}
"""Methods whose target has a name, and the registry that contains it."""
OF_URIS = ("resources/read", "resources/subscribe")


def gateway_of(
    servers: Mapping[str, Any],
    *,
    name: str = "fastrpc gateway",
    rules: Rules | None = None,
    style: str = "prefix",
    start_seconds: float = START_SECONDS,
    folder: str | None = None,
) -> tuple[Server, Gateway]:
    """Return a server with the features of all `servers`, and the `Gateway` that manages them.

    `servers`: entries by name, as in ``mcpServers``. An unusable one is left out and logged. `style`: a key
    of `fastrpc.gateway.names.STYLES`. `start_seconds`: the time in which each server must start and list its
    features. `folder`: the working directory of commands whose entries have no ``cwd``.
    """
    from fastrpc.server import Server

    server = Server(name, version=__version__)
    gateway = Gateway(server, rules or Rules(), style, start_seconds, folder)
    server._upstream = gateway
    gateway.replace(servers)
    return server, gateway


def _pause(member: GatewayMember) -> float:
    """Return the seconds between a failed start and the next attempt."""
    return min(RETRY_SECONDS * 2.0 ** min(member.failures - 1, 10), LONGEST_RETRY_SECONDS)


def front_of(proxies: Mapping[str, Server], name: str) -> Server:
    """Return a server with the features of these proxies, which are given by their servers' names."""
    from fastrpc.server import Server

    server = Server(name)
    server._upstream = gateway = Gateway(server, Rules())
    for each, proxy in proxies.items():
        gateway.members[each] = gateway.adopted(GatewayMember(each, prefix_of(each, "prefix"), None, proxy))
    gateway.catalogue.members = [*gateway.members.values()]
    return server


@dataclass(eq=False)
class Gateway:
    """The servers behind a gateway. The gateway's server uses it like the upstream server of a proxy."""

    declares_everything = True
    """The features are unknown before the servers have started, and change with the configuration."""

    server: Server
    rules: Rules
    style: str = "prefix"
    start_seconds: float = START_SECONDS
    folder: str | None = None

    def __post_init__(self) -> None:
        self.members: dict[str, GatewayMember] = {}
        self.catalogue = GatewayCatalogue(self.server.registries, self.rules.shows)
        self._identity = CLIENT_NAME, f"{__version__}+{os.urandom(6).hex()}"
        self._is_shown = False
        """Whether a client has received a list."""
        self._starting = 0  # requests for which servers are being started; the lists change after the last
        self._is_stale = False
        self._capabilities: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._warned: set[str] = set()  # globs of the rules that match nothing

    # --- the configuration ----------------------------------------------------------------------------

    def replace(self, servers: Mapping[str, Any]) -> list[str]:
        """Use these servers from now on; return a text for each change. Servers with an unchanged entry
        continue; removed and changed ones are disconnected; new ones are started if a client has a list."""
        self.rules.know(servers)
        former, self.members = self.members, {}
        is_first = not former
        said, new = [], []
        for name, raw in servers.items():
            member = former.pop(name, None)
            if member is not None and member.entry == raw:
                self.members[name] = member
                continue
            said.append(f"{name} is {'new' if member is None else 'changed'}")
            if member is not None:
                self._leave(member)
            self.members[name] = member = self._member(name, raw)
            new.append(member)
        for member in former.values():
            said.append(f"{member.name} is gone")
            self._leave(member)
        self.catalogue.members = [*self.members.values()]
        if not is_first:  # else nothing is listed yet, and the server's options may still be set
            self._renew()
        if self._is_shown:
            self._start_in_background(new)
        return said

    def _member(self, name: str, raw: Any) -> GatewayMember:
        member = member_of(
            name, prefix_of(name, self.style), raw, self.start_seconds, self.folder, self._identity[1]
        )
        if member.server is not None and not self.rules.uses(name, member.prefix):
            member.server, member.unused = None, DENIED
            member.problem = "the rules allow none of its tools"
        if member.unused == INVALID:
            diagnostics.write("error", f"{name} is not used: {member.problem}")
        return self.adopted(member)

    def adopted(self, member: GatewayMember) -> GatewayMember:
        """Follow what a server offers, and return it."""
        if member.server is not None:
            member.server._hosts.append(self.server)
            member.watch(self._changed)
        return member

    def _leave(self, member: GatewayMember) -> None:
        upstream = member.upstream
        if upstream is not None and upstream.live:
            self._spawn(upstream.leave())

    def _changed(self, kind: str) -> None:
        """The features of a server have changed. While servers are being started, the lists change once."""
        self._is_stale = True
        if not self._starting:
            self._renew()

    def _renew(self) -> None:
        self._is_stale = False
        runtime = self.server.runtime
        before, runtime.loading = runtime.loading, runtime.loading or not self._is_shown
        try:
            self.catalogue.renew()
        finally:
            runtime.loading = before

    # --- requests that need servers -------------------------------------------------------------------

    def defers(self, dispatcher: Dispatcher, request: Request) -> bool:
        """Defer a request until the servers that it needs have started. Return False if it need not wait.

        Raises InternalError for a call of a server that cannot be used, and if the client is this gateway.
        """
        client: Any = request.client_info
        if request.method == "initialize":
            client = request.params.get("clientInfo")
        if isinstance(client, dict) and (client.get("name"), client.get("version")) == self._identity:
            raise InternalError("this is the gateway itself, which cannot be one of its servers")
        needed = self._needed_for(request)
        if not needed:
            self._is_shown |= request.method in LISTS
            return False
        deferred = DeferredRequest(dispatcher, request)
        dispatcher.requests.defer(request, deferred)
        self._capabilities = request.client_capabilities
        dispatcher.connection.call_in_loop(lambda: self._spawn(self._start_for(needed, deferred)))
        return True

    def _needed_for(self, request: Request) -> list[GatewayMember]:
        """Return the servers that have to be started first. Raises InternalError."""
        method, params = request.method, request.params
        registries = self.server.registries
        if method in LISTS:
            return self._untried
        if method in OF_NAMES:
            name = params.get("name")
            if not isinstance(name, str) or name in getattr(registries, OF_NAMES[method]):
                return []
            if self._is_stale:
                self._renew()
            return self._of_name(name)
        if method in OF_URIS:
            return self._of_uris([params.get("uri")])
        if method == "subscriptions/listen":
            wanted = params.get("notifications")
            uris = wanted.get("resourceSubscriptions") if isinstance(wanted, dict) else None
            return self._of_uris(uris if isinstance(uris, list) else [])
        if method == "completion/complete":
            reference = params.get("ref")
            if not isinstance(reference, dict):
                return []
            name = reference.get("name")
            if isinstance(name, str):
                return [] if name in registries.prompts else self._of_name(name)
            return [] if reference.get("uri") in registries.templates else self._untried
        return []

    @property
    def _untried(self) -> list[GatewayMember]:
        return [member for member in self.members.values() if member.is_untried]

    def _of_name(self, name: str) -> list[GatewayMember]:
        """Return the servers that may have an unknown name. Raises InternalError for one that has failed."""
        found = []
        for member in self.members.values():
            upstream = member.upstream
            if name.startswith(member.prefix) and (upstream is None or not upstream.features.is_listed):
                if member.unused == DENIED:
                    continue
                if member.failure:
                    raise InternalError(f"{member.name} cannot be used: {member.failure}")
                found.append(member)
        return found

    def _of_uris(self, uris: list[Any]) -> list[GatewayMember]:
        texts = [uri for uri in uris if isinstance(uri, str)]
        return [] if all(map(self.catalogue.has_resource, texts)) else self._untried

    # --- starting -------------------------------------------------------------------------------------

    async def _start_for(self, members: list[GatewayMember], deferred: DeferredRequest) -> None:
        """Start servers concurrently, and then serve the request that waits for them."""
        await self._start_all(members)
        deferred.resume()

    def _warn_of_rules(self) -> None:
        """Log the globs that have matched nothing, once every server is listed or has failed."""
        if self._untried or self._starting:
            return
        for text in self.rules.unused():
            if text not in self._warned:
                self._warned.add(text)
                words = "matches no tool of the servers that have started, and so does nothing"
                diagnostics.write("warning", f"allow, deny: {text:.200} {words}{self.rules.hint(text):.200}")

    async def _start(self, member: GatewayMember) -> None:
        assert member.upstream is not None
        try:
            await member.upstream.start(self._capabilities)
        except asyncio.CancelledError:
            if self.members.get(member.name) is member:
                raise
            # It was removed from the configuration: requests that wait for other servers too continue.
        except FastrpcError:  # the upstream has logged and stored it
            member.failures += 1
            self.server.watch(self._retry, RETRY_SECONDS)
        else:
            member.failures = 0

    def _retry(self) -> None:
        """Start failed servers again after a pause. If that adds tools, clients are notified."""
        failed = [each for each in self._used if each.upstream.failure is not None]
        if not failed:
            self.server.unwatch(self._retry)
        self._start_in_background([each for each in failed if time() > each.upstream.since + _pause(each)])

    def _start_in_background(self, members: list[GatewayMember]) -> None:
        for member in members:
            if member.upstream is not None and not member.upstream.is_starting:
                self._spawn(self._start(member))

    def start_untried(self) -> None:
        """Start the servers that no client has needed so far, to learn what they have. In the event loop."""
        self._spawn(self._start_all(self._untried))

    async def _start_all(self, members: list[GatewayMember]) -> None:
        self._starting += 1
        try:
            await asyncio.gather(*map(self._start, members))
        finally:
            self._starting -= 1
        if self._is_stale:
            self._renew()
        self._warn_of_rules()

    def _spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        try:
            task = asyncio.get_running_loop().create_task(coroutine)
        except RuntimeError:  # no loop runs yet, so no server has been started
            coroutine.close()
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # --- the rest of what a runtime asks its upstream ---------------------------------------------------

    def connect(self, capabilities: dict[str, Any]) -> None:
        """Start the servers for a client with these capabilities, soon, unless that has been tried."""
        if self._untried:
            self._spawn(self._start_and_watch(None, capabilities))

    def watch(self, uri: str, capabilities: dict[str, Any]) -> None:
        """Subscribe to changes of a resource at the server that has it: start the servers first, for a client
        with these capabilities, if it is not known which one has."""
        if (upstream := self._upstream_of(uri)) is not None:
            upstream.watch(uri, capabilities)
        elif self._untried:
            self._spawn(self._start_and_watch(uri, capabilities))

    async def _start_and_watch(self, uri: str | None, capabilities: dict[str, Any]) -> None:
        self._capabilities = capabilities
        await self._start_all(self._untried)
        if uri is not None and self.server.runtime.announcements.is_subscribed(uri):
            upstream = self._upstream_of(uri)
            if upstream is not None:
                upstream.watch(uri, capabilities)

    def unwatch(self, uri: str) -> None:
        """End a subscription at the server that has the resource, after the last client has ended its own."""
        if (upstream := self._upstream_of(uri)) is not None:
            upstream.unwatch(uri)

    def _upstream_of(self, uri: str) -> UpstreamServer | None:
        owner = self.catalogue.owner_of("resource", uri)
        return None if owner is None else owner.upstream

    def take_notification(self, method: str, params: dict[str, Any]) -> None:
        """Forward a client's notification to all running servers: it does not name a server."""
        for member in self._used:
            member.upstream.take_notification(method, params)

    @property
    def live(self) -> bool:
        """Whether there is a connection, or a task, to close."""
        return bool(self._tasks) or any(each.upstream.live for each in self._used)

    @property
    def _used(self) -> list[Any]:
        return [member for member in self.members.values() if member.upstream is not None]

    async def leave(self) -> None:
        """Close all connections; the next request connects again."""
        tasks = [*self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(
            *(member.upstream.leave() for member in self._used), *tasks, return_exceptions=True
        )

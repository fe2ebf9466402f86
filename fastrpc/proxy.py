"""A server whose features are those of another MCP server, which runs as a child process.

`Server.proxy(command)` makes one. The server behind is started by the first request that has to know what
it offers, the first client's `initialize` included, which waits for it. It is spoken to in the latest
version that has a handshake, with the capabilities of that client. Entries and results pass as they are, and
so do progress, cancellation, log messages, questions and changes. When it dies the calls in flight fail and
the next one starts it again. A call costs two more trips through a pipe.
"""

from __future__ import annotations

import asyncio
from time import monotonic

from fastrpc import log
from fastrpc.completion import key_of
from fastrpc.errors import DefinitionError, FastrpcError, InternalError, ToolError
from fastrpc.peer import Peer, RemoteError
from fastrpc.prompts import Prompt
from fastrpc.proxy_entries import (
    PassedCompletion,
    PassedPrompt,
    PassedResource,
    PassedTemplate,
    PassedTool,
    ask,
    contents_of,
)
from fastrpc.versions import LATEST_LEGACY, LEGACY_VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from fastrpc.catalogue import Registry
    from fastrpc.context import Context
    from fastrpc.dispatcher import Dispatcher, Request
    from fastrpc.resources import Contents
    from fastrpc.server import Server

START_SECONDS = 30.0
"""How long the server behind may take to start and tell what it offers."""
RETRY_SECONDS = 5.0
"""After a start that failed it is not tried again for so long."""
MOST_PAGES = 1000
"""Of one list: more are taken for an endless one."""

FREE = ("ping", "logging/setLevel")
"""Methods that do not depend on what is offered."""
INTRODUCTIONS = ("initialize", "server/discover")

PASSED = ("elicitation", "sampling")
"""What the server behind is told that its client can do, as that client has said it."""

RESOURCE_NOT_FOUND = -32002


def proxy(make: type[Server], command: list[str], options: dict[str, Any]) -> Server:
    """Return a server of class `make` that serves what another MCP server offers, started by `command`.

    `options`: ``cwd`` and ``env`` for the child (env: the whole of it, this process's own unless given),
    ``start_seconds``, and those of `Server`; ``name`` is the command's unless given. Raises
    DefinitionError for an empty command.
    """
    if not command or not all(isinstance(part, str) for part in command):
        raise DefinitionError(f"proxy: expected a command, a list of str, got {command!r:.80}")
    own = {name: options.pop(name) for name in ("cwd", "env", "start_seconds") if name in options}
    options.setdefault("name", command[0].rpartition("/")[2])
    server = make(**options)
    server._source = Source(server, command, **own)
    return server


# -------------------------------------------------------------------------------- the server behind

_LISTS: dict[str, tuple[str, str, str, Any]] = {
    "tools": ("tools/list", "tools", "name", PassedTool),
    "resources": ("resources/list", "resources", "uri", PassedResource),
    "templates": ("resources/templates/list", "resourceTemplates", "uriTemplate", PassedTemplate),
    "prompts": ("prompts/list", "prompts", "name", PassedPrompt),
}
"""Of each registry: the method that lists it, the member of its result, what an entry is known by."""

_CAPABILITY = {"templates": "resources"}

_CHANGES = {
    "notifications/tools/list_changed": ("tools",),
    "notifications/resources/list_changed": ("resources", "templates"),
    "notifications/prompts/list_changed": ("prompts",),
}


class _Held:
    """A request that waits until it is known what is offered. Stands where a call does."""

    def __init__(self, dispatcher: Dispatcher, request: Request) -> None:
        self.dispatcher = dispatcher
        self.request = request
        self.over = False

    def cancel(self) -> None:
        self.over = True
        self.request.call = None
        self.dispatcher.call_dropped(self)  # type: ignore[arg-type]

    def resume(self) -> None:
        if not self.over:
            self.over = True
            self.dispatcher.resume(self.request)


class Source:
    """The server behind a proxy: started when it is needed, and again when it has died.

    `known`: what it offers is in the catalogue, or cannot be had at present.
    """

    def __init__(
        self,
        server: Server,
        command: list[str],
        *,
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._server = server
        self._command = command
        self._cwd = cwd
        self._env = env
        self._start_seconds = start_seconds
        self._listed = False
        self._failure: str | None = None
        self._failed_at = 0.0
        self._held: list[_Held] = []
        self._peer: Peer | None = None
        self._starting: asyncio.Task[Peer] | None = None
        self._capabilities: dict[str, Any] = {}  # what the client behind us can do
        self._raw: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in (*_LISTS, "completions")}
        self._listing: dict[str, bool] = {}  # registries that are being listed anew; True: once more
        self._tasks: set[asyncio.Task[None]] = set()
        self._watched: set[str] = set()  # resources of whose changes some client wants to hear
        self._tells = False  # whether the server behind tells of them

    @property
    def known(self) -> bool:
        return self._listed or (self._failure is not None and monotonic() < self._failed_at + RETRY_SECONDS)

    @property
    def live(self) -> bool:
        """Whether there is something to leave."""
        return self._peer is not None or self._starting is not None

    # --- requests that have to know what is offered ---------------------------------------------------

    def holds(self, dispatcher: Dispatcher, request: Request) -> bool:
        """Take a request, and serve it again when it is known what is offered; False if it need not wait.

        Raises InternalError where the answer depends on a server behind that cannot be started.
        """
        method = request.method
        if method in FREE or (method == "tools/call" and self._knows(dispatcher, request)):
            return False
        if self._listed:
            return False
        if self.known:
            alone = dispatcher.service is self._server.service
            if alone and method not in INTRODUCTIONS:
                raise InternalError(self._failure or "")
            return False
        if method == "initialize":
            # What comes behind it on the wire is judged by it, though it is not answered yet.
            dispatcher.session.agree(request.params)
        if not self._held and self._starting is None:
            self._capabilities = request.client_capabilities
        held = _Held(dispatcher, request)
        self._held.append(held)
        dispatcher.put_off(request, held)
        if len(self._held) == 1:
            dispatcher.connection.call_in_loop(self._begin)
        return True

    @staticmethod
    def _knows(dispatcher: Dispatcher, request: Request) -> bool:
        return request.params.get("name") in dispatcher.service.plans

    def _begin(self) -> None:
        self._spawn(self._get_known())

    async def _get_known(self) -> None:
        try:
            await self._running()
        except FastrpcError:
            pass  # it is logged, and held ready for those who ask
        held, self._held = self._held, []
        for request in held:
            request.resume()

    # --- calls ----------------------------------------------------------------------------------------

    async def request(self, method: str, params: dict[str, Any], context: Context) -> dict[str, Any]:
        """Ask the server behind on behalf of a call."""
        peer = await self._running()
        return await peer.request(method, params, context)

    async def read(self, uri: str, context: Context) -> list[Contents] | None:
        """Read a resource of the server behind; None if there is none."""
        try:
            result = await self.request("resources/read", {"uri": uri}, context)
        except RemoteError as error:
            if error.code == RESOURCE_NOT_FOUND:
                return None
            raise
        return [contents_of(part) for part in result["contents"]]

    def watch(self, uri: str) -> None:
        """Have the server behind tell when a resource of its changes, from now on."""
        catalogue = self._server.catalogue
        ours = uri in catalogue.resources or any(
            found.match(uri) is not None for found in catalogue.templates
        )
        if not ours or uri in self._watched:
            return
        self._watched.add(uri)
        if self._peer is not None and self._tells:
            self._spawn(self._subscribe(self._peer, uri))

    @staticmethod
    async def _subscribe(peer: Peer, uri: str) -> None:
        try:
            await peer.request("resources/subscribe", {"uri": uri})
        except FastrpcError as error:
            log.write("warning", f"the server behind will not tell of changes of {uri:.200}: {error}")

    # --- the life of it -------------------------------------------------------------------------------

    async def _running(self) -> Peer:
        """Return the server behind, started if it does not run. Raises ToolError."""
        loop = asyncio.get_running_loop()
        if self._peer is not None and self._peer.loop is not loop and self._peer.loop.is_closed():
            self._peer = None  # of a loop that is no more
        if self._peer is not None:
            return self._peer
        if self._starting is None:
            self._starting = loop.create_task(self._start())
        return await asyncio.shield(self._starting)

    async def _start(self) -> Peer:
        peer: Peer | None = None
        try:
            peer = Peer(
                self._command,
                cwd=self._cwd,
                env=self._env,
                on_notification=self._told,
                on_end=lambda reason: self._ended(peer, reason),
                ask=ask,
            )
            await asyncio.wait_for(self._introduce(peer), self._start_seconds)
        except (FastrpcError, asyncio.TimeoutError, KeyError, TypeError, ValueError) as error:
            reason = self._reason(peer, error)
            self._failure = f"the server behind this one ({self._command[0]}) cannot be used: {reason}"
            self._failed_at = monotonic()
            log.write("error", self._failure)
            raise ToolError(self._failure) from None
        else:
            self._failure = None
            self._listed = True
            self._peer = peer
            return peer
        finally:
            self._starting = None
            if peer is not None and self._peer is not peer:
                await peer.leave()

    def _reason(self, peer: Peer | None, error: Exception) -> str:
        if peer is not None and peer.ended is not None:
            return peer.ended
        if isinstance(error, asyncio.TimeoutError):
            return f"it did not start within {self._start_seconds:g} s"
        return str(error) or type(error).__name__

    async def _introduce(self, peer: Peer) -> None:
        """Shake hands, and find out what it offers."""
        capabilities = {name: self._capabilities[name] for name in PASSED if name in self._capabilities}
        if "roots" in self._capabilities:
            capabilities["roots"] = {}  # their changes are not passed on
        found = await peer.request(
            "initialize",
            {
                "protocolVersion": LATEST_LEGACY,
                "capabilities": capabilities,
                "clientInfo": {"name": self._server.name, "version": self._server.version},
            },
        )
        if found["protocolVersion"] not in LEGACY_VERSIONS:
            raise ValueError(f"it speaks protocol {found['protocolVersion']!r:.40}, which is not known here")
        peer.notify("notifications/initialized")
        offered = found["capabilities"]
        service = self._server.service
        if service.instructions is None:
            service.instructions = found.get("instructions")
        if "logging" in offered:  # each client's own level is judged here
            await peer.request("logging/setLevel", {"level": "debug"})
        for name in _LISTS:
            if _CAPABILITY.get(name, name) in offered:
                await self._list(peer, name)
        self._complete("completions" in offered)
        self._tells = bool((offered.get("resources") or {}).get("subscribe"))
        for uri in self._watched if self._tells else ():
            await self._subscribe(peer, uri)

    async def _list(self, peer: Peer, name: str) -> None:
        """List a kind of entry, page by page, and put into the catalogue what is new."""
        method, member, key, make = _LISTS[name]
        listed: dict[str, dict[str, Any]] = {}
        params: dict[str, Any] = {}
        for _ in range(MOST_PAGES):
            try:
                result = await peer.request(method, params)
            except RemoteError as error:
                if error.code == -32601:
                    break  # resources, say, and no templates
                raise
            listed.update((raw[key], raw) for raw in result[member])
            if not result.get("nextCursor"):
                break
            params = {"cursor": result["nextCursor"]}
        self._replace(name, listed, lambda raw: make(self, raw))

    def _complete(self, offered: bool) -> None:
        """Have it complete each argument of its prompts and each variable of its templates."""
        wanted: dict[str, dict[str, Any]] = {}
        catalogue = self._server.catalogue
        for entry in (*catalogue.prompts, *catalogue.templates) if offered else ():
            kind, member = ("prompt", "name") if isinstance(entry, Prompt) else ("resource", "uri")
            for parameter in entry.signature.parameters:
                reference = {"type": f"ref/{kind}", member: entry.key}
                wanted[key_of(entry.key, parameter.name)] = {"ref": reference, "argument": parameter.name}
        self._replace("completions", wanted, lambda raw: PassedCompletion(self, raw["ref"], raw["argument"]))

    def _replace(
        self, name: str, listed: dict[str, dict[str, Any]], make: Callable[[dict[str, Any]], Any]
    ) -> None:
        """Bring a registry up to date: what has not changed stays as it is."""
        registry: Registry = getattr(self._server.catalogue, name)
        former = self._raw[name]
        gone = [key for key, raw in former.items() if listed.get(key) != raw]
        new = []
        for key, raw in listed.items():
            if former.get(key) != raw:
                try:
                    new.append(make(raw))
                except (FastrpcError, KeyError, TypeError, ValueError) as error:
                    what = f"{registry.kind} {key!r:.80}"
                    log.write("warning", f"the server behind: {what} is left out: {error}")
        self._raw[name] = listed
        if gone or new:
            try:
                registry.replace(gone, new)
            except DefinitionError as error:
                log.write("error", f"the server behind: where it is mounted, {error}")

    def _told(self, method: str, params: dict[str, Any], context: Context | None) -> None:
        """The server behind says something by itself."""
        if method == "notifications/message":
            if context is not None and "data" in params:
                try:
                    context.log(params["data"], params.get("level", "info"), params.get("logger"))
                except ValueError as error:
                    log.write("warning", f"the server behind sent a broken log message: {error}")
        elif method == "notifications/resources/updated":
            self._server.resource_updated(str(params.get("uri")))
        else:
            for name in _CHANGES.get(method, ()):
                self._list_again(name)

    def _list_again(self, name: str) -> None:
        if name in self._listing:
            self._listing[name] = True
        elif self._peer is not None:
            self._listing[name] = False
            self._spawn(self._follow(self._peer, name))

    async def _follow(self, peer: Peer, name: str) -> None:
        """A list has changed: list it anew, and once more for each change that comes meanwhile."""
        try:
            while True:
                self._listing[name] = False
                await self._list(peer, name)
                if not self._listing[name]:
                    break
            if self._raw["completions"] or name in ("prompts", "templates"):
                self._complete(bool(self._raw["completions"]))
        except (FastrpcError, KeyError, TypeError, ValueError) as error:
            log.write("warning", f"the server behind: its {name} cannot be listed: {error}")
        finally:
            del self._listing[name]

    def _spawn(self, coroutine: Any) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _ended(self, peer: Peer | None, reason: str) -> None:
        if peer is not None and self._peer is peer:
            self._peer = None
            log.write("warning", f"the server behind this one ({self._command[0]}) is gone: {reason}")

    async def leave(self) -> None:
        """End the server behind; the next client starts it again. Bounded to a second."""
        peer, self._peer = self._peer, None
        tasks = [task for task in (*self._tasks, self._starting) if task is not None]
        for task in tasks:
            task.cancel()
        self._listed = False
        self._failure = None
        if peer is not None:
            await peer.leave()
        await asyncio.gather(*tasks, return_exceptions=True)

"""A server whose features are those of another MCP server: one that runs as a child process, or over HTTP.

`Server.proxy(command)` and `Server.proxy(url)` make one. The server behind is reached by the first request
that has to know what it offers, the first client's `initialize` included, which waits for it. Over its pipes
it is spoken to in the latest version that has a handshake, over HTTP in the latest that it knows, with the
capabilities of that client. Entries and results pass as they are, and so do progress, cancellation, log
messages, questions and changes. When it is gone the calls in flight fail and the next one begins anew. A call
costs two more trips through a pipe, or a request over HTTP.
"""

from __future__ import annotations

import asyncio
from time import monotonic

from fastrpc import log
from fastrpc.completion import key_of
from fastrpc.errors import DefinitionError, FastrpcError, InternalError, ToolError
from fastrpc.prompts import Prompt
from fastrpc.proxy.entries import (
    QUESTIONS,
    PassedCompletion,
    PassedPrompt,
    PassedQuestion,
    PassedResource,
    PassedTemplate,
    PassedTool,
    ask,
    contents_of,
)
from fastrpc.proxy.requests import RemoteError, SessionGone
from fastrpc.quotas import ENTRY_BYTES, SESSION_BYTES, Quota, size_of
from fastrpc.versions import MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from fastrpc.catalogue import Catalogue, Registry
    from fastrpc.context import Context
    from fastrpc.dispatcher import Dispatcher
    from fastrpc.engine.request import Request
    from fastrpc.proxy.peer import Peer
    from fastrpc.proxy.targets import Target
    from fastrpc.service import Service
    from fastrpc.types import Contents

    class ProxyServer(Protocol):
        """A server that offers what the server behind it does: what is needed of a `Server` for that."""

        name: str
        version: str
        catalogue: Catalogue

        @property
        def service(self) -> Service:
            """What all connections of this server share."""

        def resource_updated(self, uri: str) -> None:
            """Tell those who subscribed to a resource that it has changed."""


START_SECONDS = 30.0
"""How long the server behind may take to start and tell what it offers."""
RETRY_SECONDS = 5.0
"""After a start that failed it is not tried again for so long."""
LONGEST_RETRY_SECONDS = 60.0
"""One at a URL is tried again without anybody asking, ever more seldom, but not more seldom than this."""
WATCHED_BYTES = SESSION_BYTES - 16 * 1024
"""For the URIs of resources whose changes clients want to hear of. They are kept as long as the server lives,
and told the server behind all at once, which takes no more of one session or stream."""
MOST_PAGES = 1000
"""Of one list: more are taken for an endless one."""

NEVER = float("-inf")

FREE = ("ping", "logging/setLevel")
"""Methods that do not depend on what is offered."""
INTRODUCTIONS = ("initialize", "server/discover")

PASSED = ("elicitation", "sampling")
"""What the server behind is told that its client can do, as that client has said it."""

RESOURCE_NOT_FOUND = -32002
INVALID_PARAMS = -32602
HEADER_MISMATCH = -32020
MISSING_CAPABILITY = -32021

INPUT_REQUIRED = "input_required"
MOST_ROUNDS = 64
"""How often a server may ask during one call, before it is taken for one that never ends."""

IMPLEMENTATION = ("name", "version", "title", "description", "websiteUrl", "icons")
"""What a server may say of itself."""


class _Complete(Exception):
    """A server's result that asks nothing: it is not remembered."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


def _named(info: Any, otherwise: dict[str, Any]) -> dict[str, Any]:
    """Return what a server says of itself, where it is what clients may be told (MCP: Implementation)."""
    if not isinstance(info, dict) or not all(isinstance(info.get(name), str) for name in ("name", "version")):
        return otherwise
    return {name: info[name] for name in IMPLEMENTATION if name in info}


def _tells_of_nothing(error: RemoteError, uri: str) -> bool:
    """Whether an error says that there is nothing at an address, in the words of either era."""
    data = error.data
    return error.code == RESOURCE_NOT_FOUND or (
        error.code == INVALID_PARAMS and isinstance(data, dict) and data.get("uri") == uri
    )


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
    """The server behind a proxy: reached when it is needed, and again when it has gone.

    `known`: what it offers is in the catalogue, or cannot be had at present.
    """

    def __init__(
        self,
        server: ProxyServer,
        target: Target,
        *,
        start_seconds: float = START_SECONDS,
    ) -> None:
        self._server = server
        self._target = target
        self._start_seconds = start_seconds
        self.reached = False
        """Whether it has ever said what it offers."""
        self.failure: str | None = None
        """Why it could not be used when it was tried last; None if it could."""
        self.shows_itself = False
        """Whether clients are told its name, version and so on instead of our own."""
        self._listed = False
        self._failed_at = NEVER
        self._held: list[_Held] = []
        self._peer: Peer | None = None
        self._starting: asyncio.Task[Peer] | None = None
        self._capabilities: dict[str, Any] = {}  # what the client behind us can do
        self._raw: dict[str, dict[str, dict[str, Any]]] = {name: {} for name in (*_LISTS, "completions")}
        self._listing: dict[str, bool] = {}  # registries that are being listed anew; True: once more
        self._tasks: set[asyncio.Task[None]] = set()
        self._retrying = False
        self._watched: set[str] = set()  # resources of whose changes some client wants to hear
        self._watched_quota = Quota(WATCHED_BYTES)
        self._watched_full = False
        self._tells = False  # whether the server behind tells of them

    @property
    def known(self) -> bool:
        return self._listed or (self.failure is not None and monotonic() < self._failed_at + RETRY_SECONDS)

    @property
    def live(self) -> bool:
        """Whether there is something to leave."""
        return self._peer is not None or self._starting is not None or bool(self._tasks)

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
                raise InternalError(self.failure or "")
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
        """Ask the server behind on behalf of a call, and answer what it asks itself."""
        found = await self._request(method, params, context)
        if found is not None:
            return found
        asked = dict(params)
        for number in range(MOST_ROUNDS):
            found = await self._round(number, method, asked, context)
            if found.get("resultType") != INPUT_REQUIRED:
                return found
            asked = {**params, **await self._answers(number, found, context)}
        raise ToolError(f"the server behind this one has asked {MOST_ROUNDS} times and still gives no result")

    async def _request(self, method: str, params: dict[str, Any], context: Context) -> dict[str, Any] | None:
        """Ask one that does not answer with questions. None: this one does."""
        peer = await self._running()
        return None if peer.modern else await self._try(peer, method, params, context)

    async def _try(self, peer: Peer, method: str, params: dict[str, Any], context: Context) -> dict[str, Any]:
        """Ask, and once more where the server has not looked at the request."""
        try:
            return await peer.request(method, params, context)
        except SessionGone:
            peer = await self._running()
        except RemoteError as error:
            if error.code != HEADER_MISMATCH or method != "tools/call":
                raise
            await self._list(peer, "tools")  # a tool's schema has changed, which says what the headers are
        return await peer.request(method, params, context)

    async def _round(
        self, number: int, method: str, params: dict[str, Any], context: Context
    ) -> dict[str, Any]:
        """Ask a server that may answer with questions (MCP 2026-07-28: multi round-trip requests).

        Where our own client is to carry its answers too, the call runs again from its start: what the server
        has asked is remembered with it, and not asked for twice.
        """

        async def put() -> dict[str, Any]:
            found = await self._try(await self._running(), method, params, context)
            if found.get("resultType") != INPUT_REQUIRED:
                raise _Complete(found)
            return {
                name: found[name] for name in ("resultType", "inputRequests", "requestState") if name in found
            }

        try:
            asked: dict[str, Any] = await context.once(f"proxy:{number}", put)
            return asked
        except _Complete as end:
            return end.result
        except RemoteError as error:
            if error.code == MISSING_CAPABILITY and context.protocol_version != MODERN:
                raise ToolError(str(error)) from None  # a code that our own client does not know
            raise

    @staticmethod
    async def _answers(number: int, found: dict[str, Any], context: Context) -> dict[str, Any]:
        """Put a server's questions to the client of a call, and return what the next round takes along.

        A later round may put another question under the same key: to the client it gets a key of its own.
        """
        requests: dict[str, dict[str, Any]] = found.get("inputRequests") or {}
        questions, names = {}, {}
        for key, request in requests.items():
            if request["method"] not in QUESTIONS:
                raise ToolError(f"{request['method']}: the proxy does not know this question")
            name = key if number == 0 and key != "self" else f"{number}:{key}"
            questions[name] = PassedQuestion(request["method"], request.get("params") or {})
            names[name] = key
        following: dict[str, Any] = {}
        if questions:
            answers = await context.ask(**questions)
            following["inputResponses"] = {
                names[name]: answer for name, answer in answers.items() if answer is not None
            }
        if "requestState" in found:
            following["requestState"] = found["requestState"]
        return following

    async def read(self, uri: str, context: Context) -> list[Contents] | None:
        """Read a resource of the server behind; None if there is none."""
        try:
            result = await self.request("resources/read", {"uri": uri}, context)
        except RemoteError as error:
            if _tells_of_nothing(error, uri):
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
        if not self._watched_quota.take(size_of(uri, WATCHED_BYTES) + ENTRY_BYTES):
            if not self._watched_full:
                self._watched_full = True
                log.write(
                    "warning", f"changes of {uri:.200} and others will not be told: too many are watched"
                )
            return
        self._watched.add(uri)
        if self._peer is not None and self._tells:
            self._spawn(self._peer.watch(self._watched))

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
            peer = self._target.peer(self, self._told())
            await asyncio.wait_for(self._introduce(peer), self._start_seconds)
            if peer.ended is not None:
                raise ToolError(peer.ended)
        except Exception as error:  # what it said may break anything, and nobody must wait for ever
            reason = self._reason(peer, error)
            shown = self._target.shown
            where = "" if shown in reason else f" ({shown})"
            failure = f"the server behind this one{where} cannot be used: {reason}"
            log.write("info" if self.failure == failure else "error", failure)
            self.failure = failure
            self._failed_at = monotonic()
            self._retry_in(RETRY_SECONDS)
            raise ToolError(failure) from None
        else:
            self.failure = None
            self._listed = self.reached = True
            self._peer = peer
            return peer
        finally:
            self._starting = None
            if peer is not None and self._peer is not peer:
                await peer.leave()

    def _retry_in(self, seconds: float) -> None:
        """Have one that comes back be noticed when it does, though nobody asks: clients hear of its
        changes."""
        if self._target.comes_back and not self._retrying:
            self._retrying = True
            self._spawn(self._retry(seconds))

    async def _retry(self, seconds: float) -> None:
        try:
            while self._peer is None:
                await asyncio.sleep(seconds)
                try:
                    await self._running()
                except FastrpcError:
                    seconds = min(max(2 * seconds, RETRY_SECONDS), LONGEST_RETRY_SECONDS)
        finally:
            self._retrying = False

    def _reason(self, peer: Peer | None, error: Exception) -> str:
        if isinstance(error, asyncio.TimeoutError):  # how it ended then is our doing
            return f"it did not start within {self._start_seconds:g} s"
        if peer is not None and peer.ended is not None:
            return peer.ended
        if not isinstance(error, FastrpcError | ValueError):
            return f"its answer is not what it should be: {error!r:.200}"
        return str(error) or type(error).__name__

    def _told(self) -> dict[str, Any]:
        """What the server behind is told of us, and of what the client can do."""
        capabilities = {name: self._capabilities[name] for name in PASSED if name in self._capabilities}
        if "roots" in self._capabilities:
            capabilities["roots"] = {}  # their changes are not passed on
        info = {"name": self._server.name, "version": self._server.version}
        return {"capabilities": capabilities, "clientInfo": info}

    async def _introduce(self, peer: Peer) -> None:
        """Begin the conversation, and find out what it offers."""
        found = await peer.introduce()
        offered = found["capabilities"]
        service = self._server.service
        if service.instructions is None:
            service.instructions = found.get("instructions")
        if self.shows_itself:
            service.server_info = _named(found.get("serverInfo"), service.server_info)
        for name in _LISTS:
            if _CAPABILITY.get(name, name) in offered:
                await self._list(peer, name)
            else:
                self._replace(name, {}, dict)
        self._complete("completions" in offered)
        self._tells = bool((offered.get("resources") or {}).get("subscribe"))
        if self._tells and self._watched:
            await peer.watch(self._watched)

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

        def made(raw: dict[str, Any]) -> Any:
            if name == "tools":
                peer.check_tool(raw)
            return make(self, raw)

        self._replace(name, listed, made)

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

    # --- what it says by itself -----------------------------------------------------------------------

    def heard(self, method: str, params: dict[str, Any], context: Context | None) -> None:
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

    def list_anew(self) -> None:
        """The server behind may have changed while it could not tell."""
        for name in _LISTS:
            if self._raw[name]:
                self._list_again(name)

    def schema_of(self, tool: str) -> dict[str, Any]:
        found: dict[str, Any] = self._raw["tools"].get(tool, {}).get("inputSchema") or {}
        return found

    async def ask(self, context: Context, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """Put a question to the client of a call."""
        return await ask(context, method, params)

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

    def ended(self, peer: Peer, reason: str) -> None:
        """The server behind is gone."""
        if self._peer is peer:
            self._peer = None
            log.write("warning", f"the server behind this one ({self._target.shown}) is gone: {reason}")
            self._spawn(peer.leave())
            self._retry_in(0.0)

    async def leave(self) -> None:
        """End the server behind; the next client starts it again. Bounded to a second."""
        peer, self._peer = self._peer, None
        tasks = [task for task in (*self._tasks, self._starting) if task is not None]
        for task in tasks:
            task.cancel()
        self._listed = self._retrying = False
        self._failed_at = NEVER
        if peer is not None:
            await peer.leave()
        await asyncio.gather(*tasks, return_exceptions=True)

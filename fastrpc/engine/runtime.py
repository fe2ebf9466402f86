"""What all connections of one server share: its registries, the call plans made from them, and the parts of
the engine that exist once for a server: `CallAdmission`, `ListPages`, `Monitors`, the worker threads.

Plans and lists are made at the first request that needs them and again after a registry has changed; clients
are notified of the change.
"""

from __future__ import annotations

from fastrpc import diagnostics
from fastrpc._core.connection import CallsInFlight
from fastrpc._core.plan import Plan
from fastrpc.engine.plans import context_kind_of, plan_of, vector_form_of
from fastrpc.engine.request import CALLED_BY
from fastrpc.engine.results import Results
from fastrpc.engine.visibility import VisibilityFilters
from fastrpc.json_encoding import to_json
from fastrpc.protocol.lifecycle import READY
from fastrpc.protocol.versions import known

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from fastrpc._core.recorder import Recorder
    from fastrpc.callers import Caller
    from fastrpc.definitions.handler import Handler
    from fastrpc.definitions.registry import Registries
    from fastrpc.definitions.tool import Tool
    from fastrpc.engine.admission import CallAdmission
    from fastrpc.engine.interfaces import DispatcherProtocol
    from fastrpc.engine.lifespan import ServerLifespan
    from fastrpc.engine.list_pages import ListPages
    from fastrpc.engine.ports import ApprovalGates, Features, RequestCounter, RequestWrapper, ResultEncoder
    from fastrpc.engine.request import Request
    from fastrpc.engine.server_monitors import Monitors
    from fastrpc.engine.thread_pool import ThreadPool
    from fastrpc.quotas import Quotas

scope: Callable[[Any, Any], Any] | None = None
"""Makes the outermost of what is around a handler, for those who want to know which call runs: it is handed
the handler and what is around it already (`fastrpc.running_call`)."""


class Runtime(VisibilityFilters):
    """The shared half of a server; a `Dispatcher` is the other, one for each connection."""

    def __init__(
        self,
        server: Any,
        features: Features,
        hooks: list[Any],
        guards: list[Any],
        mounts: list[Any],
        upstream: Any,
    ) -> None:
        self.server = server
        """The `Server` whose half this is, and whose options are taken over now."""
        self.features = features
        """The methods that clients may call, and what handlers may do besides."""
        super().__init__()
        self.registries: Registries = server.registries
        self.server_info: dict[str, Any] = server.info
        self.instructions: str | None = server.instructions
        self.extensions: dict[str, Any] | None = server.extensions
        self.experimental: dict[str, Any] | None = server.experimental
        self.state: Any = None  # what the lifespan gave, for `Context.state`
        self.hooks = hooks
        self.guards = guards
        """Functions that decide about each call of a tool, a resource or a prompt (`Server.guard`)."""
        self.rechecks: list[Callable[[Any], object]] = []
        """Functions that decide again about a tool's call whose arguments hooks have seen."""
        self.spending: list[Any] = []  # count what calls cost: see `RequestChannel.spend`
        self.wrapper: RequestWrapper | None = None
        """What is around the requests of this server and of those that are mounted in it."""
        self.counter: RequestCounter | None = None
        self.recorder: Recorder | None = None
        """Receives a record of each call, if there are observers of some: see `_recorder_of`."""
        self.is_observed = False
        """Whether this server itself has observers (`Server.observe`)."""
        self.honours_everything = False
        """Whether clients may listen for changes of what the server does not declare."""
        self.secret: bytes | None = None
        """The key that signs request states, made by the first (`fastrpc.client_requests.request_state`)."""
        self.mounts = mounts
        """The servers that are mounted here."""
        self.upstream = upstream
        """Where the registries' entries come from, if another server has to be asked (`fastrpc.proxy`)."""
        self.lifespan: ServerLifespan | None = None
        if server.lifespan is not None:
            from fastrpc.engine.lifespan import ServerLifespan

            enter = server.lifespan
            self.lifespan = ServerLifespan(lambda: enter(server), self)
        self.dispatchers: set[DispatcherProtocol] = set()
        self.results = Results(self.server_info)
        self.calls: CallsInFlight = CallsInFlight(server.max_in_flight)
        self.max_batch: int = server.max_batch
        self.threads: int = server.threads
        self.share: Callable[[bytes], object] | None = None
        """Sends an announcement, as JSON, to the other processes that serve the same clients. Thread-safe."""
        self.caller_of: Callable[[str], Caller] | None = None
        """Returns the caller who has a principal, if a guard knows more of them."""
        self.gates: ApprovalGates | None = None
        """Asks people for approvals that no call waits for, if a guard can."""
        self._load: Callable[[], object] | None = server.load_tools
        self._plans: dict[str, Plan] | None = None
        self._handler_plans: dict[int, tuple[Handler, Plan]] = {}
        self._pages: ListPages | None = None
        self._admission: CallAdmission | None = None
        self._monitors: Monitors | None = None
        self._thread_pool: ThreadPool | None = None
        self._quotas: Quotas | None = None
        self.loading = False
        """Whether entries are being added that no client has been shown yet: none is notified."""
        for registry in self.registries:
            registry.watchers.append(self._changed)

    def _changed(self, kind: str) -> None:
        """Something was added to a registry, or taken out of it, on whatever thread.

        All that was made from the registries is forgotten now, and again on each connection's own thread:
        what that one is making at this moment may know nothing of the change.
        """
        if self.loading:
            self._forget_everywhere(kind)
        else:
            self.announce("list_changed", kind)

    def _forget_everywhere(self, kind: str) -> None:
        self._forget(kind)
        for dispatcher in list(self.dispatchers):
            dispatcher.changes.forget_plans(lambda: self._forget(kind))

    def _forget(self, kind: str) -> None:
        if self._pages is not None:
            self._pages.forget()
        self._caller_lists = None
        if kind == "tool":
            self._plans = None
        else:
            self._handler_plans.clear()

    def take_wrappers(self, wrappers: Sequence[RequestWrapper | None]) -> None:
        """Take this server's wrapper and those of the servers that are mounted in it; None: it has none."""
        own, *mounted = wrappers
        self.wrapper = own
        for each in mounted:
            if self.wrapper is None and each is not None:
                self.wrapper = each.of_host(self.server)

    # --- lifespans and upstream servers ------------------------------------------------------------------

    def pending_lifespan(self, handler: Handler) -> ServerLifespan | None:
        """Return the lifespan that has to be entered before a handler is called; None if all have been."""
        if self.lifespan is not None or handler.origin:
            for lifespan in self._lifespans_of(handler):
                if not lifespan.entered:
                    return lifespan
        return None

    def _is_ready(self, handler: Handler) -> bool:
        """Whether a handler can be called now; its plan is made anew when that changes."""
        for lifespan in self._lifespans_of(handler):
            lifespan.watchers.add(self.forget_plans)
        holds_answers = self.recorder is not None and self.recorder.holder is not None
        return self.pending_lifespan(handler) is None and not holds_answers

    def _lifespans_of(self, handler: Handler) -> list[ServerLifespan]:
        """The lifespans that a handler needs: its server's own, and those of the servers around it."""
        found = [self.lifespan, *(server.runtime.lifespan for server, _ in handler.origin)]
        return [lifespan for lifespan in found if lifespan is not None]

    @property
    def has_upstreams(self) -> bool:
        """Whether there may be upstream servers whose features have to be listed."""
        return self.upstream is not None or bool(self.mounts)

    def defers(self, dispatcher: DispatcherProtocol, request: Request) -> bool:
        """Defer a request until the features of the upstream servers are known; False if it need not wait.
        Raises ProtocolError."""
        if self.upstream is not None and self.upstream.defers(dispatcher, request):
            return True
        return any(server.runtime.defers(dispatcher, request) for server in self.mounts)

    def watch(self, uri: str) -> None:
        """A client has subscribed to a resource: have its provider watch it; subscribe to it upstream too, if
        it is forwarded."""
        for provider in self.registries.providers:
            if provider.watch is not None:
                from fastrpc.protocol.uri_template import normal

                if (meant := normal(uri)).startswith(provider.prefix):
                    provider.watch(meant)
        if self.upstream is not None:
            self.upstream.watch(uri)
        self._watch_mounts(uri, Runtime.watch)

    def is_subscribed(self, uri: str) -> bool:
        """Whether a client of this process has subscribed to a resource."""
        from fastrpc.protocol.uri_template import normal

        meant = normal(uri)
        return any(dispatcher.changes.has_subscribed(meant) for dispatcher in list(self.dispatchers))

    def unwatch(self, uri: str) -> None:
        """A client has ended a subscription: end it upstream too, if no other client has it."""
        if self.upstream is not None:
            self.upstream.unwatch(uri)
        self._watch_mounts(uri, Runtime.unwatch)

    def _watch_mounts(self, uri: str, change: Callable[[Runtime, str], None]) -> None:
        """Change what the servers that are mounted here watch, by the URI that a resource has there."""
        for server in dict.fromkeys(self.mounts):
            for addresses in self.server._addresses_of(server, uri):
                own = addresses.there(uri)
                if own is not None:
                    change(server.runtime, own)

    def take_notification(self, method: str, params: dict[str, Any]) -> None:
        """Have a notification that is not handled here passed on to the upstream servers. No guard
        decides about notifications, so a server with guards passes none on."""
        if not self.guards:
            if self.upstream is not None:
                self.upstream.take_notification(method, params)
            for server in self.mounts:
                server.runtime.take_notification(method, params)

    async def leave(self) -> None:
        """If the last connection has closed: leave the lifespans, and log the failures that were only
        counted. Bounded in time."""
        live = list(self._live())
        if live:
            import asyncio

            for _ in range(60):  # what was cancelled may still use it
                if self.calls.count == 0:
                    break
                await asyncio.sleep(0.005)
            await asyncio.gather(*(thing.leave() for thing in live))
        if not self.dispatchers:
            diagnostics.finish()

    def _live(self) -> Iterator[Any]:
        """The lifespans and upstream servers, of mounted servers too, that can be left."""
        if not self.dispatchers:
            for thing in (self.lifespan, self.upstream):
                if thing is not None and thing.live:
                    yield thing
            for server in self.mounts:
                yield from server.runtime._live()

    # --- tools ----------------------------------------------------------------------------------------

    def load(self) -> None:
        """Load the tools that were to be loaded late, if that has not been done."""
        if self._load is not None:
            load, self._load = self._load, None
            self.loading = True
            try:
                load()
            finally:
                self.loading = False

    def process_state(self) -> tuple[str, str] | None:
        """Return the toolset, if there is one, whose tools keep something in their process, and what that is
        (docs/toolsets.md)."""
        from fastrpc.loader import process_state

        self.load()
        return process_state(self.registries.tools)

    @property
    def plans(self) -> dict[str, Plan]:
        """The call plan of each tool, by name."""
        plans = self._plans
        if plans is None:
            self.load()
            tools = self.registries.tools
            plans = {tool.name: self._plan_of(tool) for tool in tools}
            self._plans = plans | {name: plans[tool.name] for name, tool in tools.published.items()}
            return self._plans
        return plans

    def _plan_of(self, tool: Tool) -> Plan:
        """Make a tool's plan; while a lifespan has to be entered the dispatcher alone calls it."""
        around = self._around(tool, "tools/call")
        return plan_of(
            tool,
            direct=self._is_ready(tool),
            noted=bool(self.results.notes),
            guard=self._guard_of(tool),
            around=around,
            recheck=None if around is None else self._recheck_of(tool),
            recorder=self._recorder_of(tool),
            encoder=self.features.TOOL_RESULTS,
            conditional=self.classifies_calls,
        )

    def _around(self, handler: Handler, method: str) -> Any:
        """Return what is around a handler that is called by a method; None: nothing."""
        around = None
        if self.hooks or handler.origin or self.wrapper is not None:
            from fastrpc.engine import interceptors

            around = interceptors.around(handler, self, method)
        return around if scope is None else scope(handler, around)

    def _guard_of(self, handler: Handler) -> Callable[[Any], Any] | None:
        """Return the function that asks all guards of a handler; None: there are none."""
        guards = [(name, guard) for name, runtime in self.mount_path_of(handler) for guard in runtime.guards]
        if len(guards) < 2 and not handler.origin:
            return guards[0][1] if guards else None
        from fastrpc.engine.guards import guarded_by

        return guarded_by(guards) if guards else None

    def _recheck_of(self, tool: Tool) -> Callable[[Any], object] | None:
        """Return the function that has all guards decide again about changed arguments; None: none does."""
        rechecks = [(name, each) for name, runtime in self.mount_path_of(tool) for each in runtime.rechecks]
        if not rechecks:
            return None
        from fastrpc.engine.guards import rechecked_by

        return rechecked_by(rechecks)

    def _recorder_of(self, handler: Handler) -> Recorder | None:
        """Return what records a handler's calls; None: neither this server nor one that the handler was
        mounted from has observers."""
        observed = any(runtime.is_observed for _, runtime in self.mount_path_of(handler))
        return self.recorder if observed else None

    def mount_path_of(self, handler: Handler) -> Iterator[tuple[str, Runtime]]:
        """The servers through which a call comes to a handler, this one first, and what each calls it."""
        yield handler.name, self
        for server, name in handler.origin:
            yield name, server.runtime

    def server_of(self, handler: Handler) -> Any:
        """Return the server that a handler belongs to: this one, or one that is mounted there."""
        return handler.origin[-1][0] if handler.origin else self.server

    def forget_plans(self) -> None:
        """Make the plans anew, at the next call; from whatever thread."""
        self._handler_plans.clear()
        self._forget_everywhere("tool")

    def plan_for(self, handler: Handler, encoder: ResultEncoder) -> Plan:
        """Return the plan of a handler that is no tool: where it runs, by its record, and what makes its
        results. The connection can bind its arguments if they are strings, or there are none.
        """
        found = self._handler_plans.get(id(handler))
        if found is None:
            is_called = handler.kind != "completion" and not getattr(handler, "is_list", False)
            guard = self._guard_of(handler) if is_called else None
            kind = "resource" if handler.kind in ("template", "provider") else handler.kind
            around = self._around(handler, CALLED_BY.get(kind, "") if is_called else "")
            is_async = handler.is_async or (around is not None and around.is_async)
            function, parameters, context_at, keywords = vector_form_of(handler)
            if (
                not self._is_ready(handler)
                or handler.max_running is not None
                or any(kind != "str" for _, kind, _, _ in parameters or ())
            ):
                parameters = None
            plan = Plan(
                handler,
                handler.name,
                function,
                parameters and [(name, kind, default, False) for name, kind, default, _ in parameters],
                keywords=keywords if parameters else (),
                inline=handler.run == "inline" and not is_async,
                adaptive=handler.run == "auto" and handler.timeout_seconds is None and not is_async,
                is_async=is_async,
                stepped=is_async and parameters is not None,
                context_at=context_at,
                context_kind=context_kind_of(handler, guard is not None or around is not None),
                kind=kind,
                target=handler.key,
                encoder=encoder,
                guard=guard,
                around=around,
                recorder=self._recorder_of(handler),
                conditional=self.classifies_calls,
            )
            found = self._handler_plans[id(handler)] = handler, plan
        return found[1]

    def capabilities(self, version: str) -> dict[str, Any]:
        """Return what this server can do, in the form of a version: the same for each client."""
        found: dict[str, Any] = {"logging": {}, "tools": {"listChanged": True}}
        found["experimental"] = self.experimental
        found["extensions"] = self.extensions
        if self.has_resources:
            found["resources"] = {"subscribe": True, "listChanged": True}
        if self.has_prompts:
            found["prompts"] = {"listChanged": True}
        if self.has_completions:
            found["completions"] = {}
        return known("ServerCapabilities", found, version)

    def server_info_of(self, version: str) -> dict[str, Any]:
        """Return the `serverInfo` (MCP: Implementation), in the form of a version."""
        return known("Implementation", self.server_info, version)

    @property
    def has_resources(self) -> bool:
        registries = self.registries
        entries = len(registries.resources) or len(registries.templates) or len(registries.providers)
        return bool(entries) or self._declares_everything

    @property
    def has_prompts(self) -> bool:
        return bool(len(self.registries.prompts)) or self._declares_everything

    @property
    def has_completions(self) -> bool:
        """Whether anything completes: prompts and templates complete their enums by themselves."""
        registries = self.registries
        entries = len(registries.completions) or len(registries.prompts) or len(registries.templates)
        return bool(entries) or self._declares_everything

    @property
    def _declares_everything(self) -> bool:
        """Whether what is declared does not follow from the registries: they are filled later."""
        sources = (self.upstream, self.wrapper)
        return any(each is not None and bool(each.declares_everything) for each in sources)

    # --- parts that a server makes when a client first needs them: a start imports none of them ---------

    @property
    def pages(self) -> ListPages:
        if self._pages is None:
            self._pages = self._make_pages()
        return self._pages

    def _make_pages(self) -> ListPages:
        from fastrpc.engine.list_pages import ListPages

        return ListPages(self.server, self, self.results)

    @property
    def admission(self) -> CallAdmission:
        if self._admission is None:
            from fastrpc.engine.admission import CallAdmission

            self._admission = CallAdmission(self.calls, self.pending_lifespan)
        return self._admission

    @property
    def monitors(self) -> Monitors:
        if self._monitors is None:
            from fastrpc.engine.server_monitors import Monitors

            self._monitors = Monitors(self.server, self.mounts, self.dispatchers)
        return self._monitors

    @property
    def thread_pool(self) -> ThreadPool:
        if self._thread_pool is None:
            from fastrpc.engine.thread_pool import ThreadPool

            self._thread_pool = ThreadPool(self.threads)
        return self._thread_pool

    @property
    def quotas(self) -> Quotas:
        """What the clients of each caller may have this process keep."""
        if self._quotas is None:
            from fastrpc.quotas import Quotas

            self._quotas = Quotas()
        return self._quotas

    def leave_threads_behind(self) -> None:
        """End the process here if a tool still runs on a thread: the interpreter's own end would wait
        for it, or abort where it holds a lock that the end wants."""
        if self._thread_pool is not None and self._thread_pool.busy:
            self._thread_pool.leave()

    def get_ready(self) -> None:
        """Import what the first call on a thread, or with a Context, would import: the client has paused."""
        plans = self.plans.values()
        if any(not (plan.inline or plan.is_async) for plan in plans):
            self.thread_pool  # noqa: B018  # it is made where it is first asked for
        if any(plan.needs_context for plan in plans):
            from fastrpc.engine import outbound_channel  # noqa: F401

    def needs_loop(self) -> bool:
        """Whether some tool cannot be called, or something not be watched, without an event loop."""
        plans = self.plans.values()
        return (
            self.lifespan is not None
            or any(plan.is_async or not plan.inline for plan in plans)
            or self.monitors.needed
        )

    def resource_updated(self, uri: str, rest: dict[str, Any] | None = None) -> None:
        """Notify every subscribed client that a resource has changed. `rest`: other members of the params."""
        self.announce("resource_updated", uri, rest)

    def notify_resource_updated(self, uri: str, rest: dict[str, Any] | None = None) -> None:
        """Notify every subscribed client of this process."""
        for dispatcher in list(self.dispatchers):
            dispatcher.changes.resource_updated(uri, rest)

    def notify_list_changed(self, kind: str) -> None:
        """Forget what this process has made from the entries of a kind, and notify all of its clients."""
        self._forget_everywhere(kind)
        for dispatcher in list(self.dispatchers):
            dispatcher.changes.list_changed(kind)

    def lists_changed(self, concerns: Callable[[str], bool] | None = None) -> None:
        """Notify clients that filters show other entries: without `concerns` all clients of all processes,
        else those clients of this process for whose principal it returns true."""
        if concerns is None:
            self.announce("lists_changed")
        else:
            self.notify_lists_changed(concerns)

    def announce(self, change: str, *values: Any) -> None:
        """Notify the clients of this process of a change (`CHANGES`), and have the other processes notify
        theirs. Thread-safe."""
        self.take_announcement(change, *values)
        if self.share is not None:
            self.share(to_json([change, *values]))

    def take_announcement(self, change: str, *values: Any) -> None:
        """Notify the clients of this process of a change that another one has announced."""
        CHANGES[change](self, *values)

    def notify_clients(self, method: str, params: dict[str, Any]) -> None:
        """Send the clients with sessions a notification, if they are all one principal's."""
        from functools import partial

        sessions = [(each, each.session) for each in list(self.dispatchers)]
        ready = [each for each, session in sessions if session.state == READY and session.lasting]
        if len({each.principal for each in ready}) == 1:
            for dispatcher in ready:
                dispatcher.outbound.post(partial(dispatcher.outbound.notify, method, params))


CHANGES: dict[str, Callable[..., object]] = {
    "list_changed": Runtime.notify_list_changed,
    "lists_changed": Runtime.notify_lists_changed,
    "resource_updated": Runtime.notify_resource_updated,
}
"""The changes that a process announces to the others that serve the same clients: each calls this method,
which notifies its clients."""

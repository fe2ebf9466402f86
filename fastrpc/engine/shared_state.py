"""The attributes that all connections of one server share: registries, what is called around its handlers,
and how many calls are in flight. `fastrpc.engine.runtime` adds the parts of the engine, which are made of it.
"""

from __future__ import annotations

import os
import sys

from fastrpc._core.connection import CallsInFlight
from fastrpc.engine.results import Results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fastrpc._core.recorder import Recorder
    from fastrpc.callers import Caller
    from fastrpc.definitions.handler import Handler
    from fastrpc.definitions.registry import Registries
    from fastrpc.engine.lifespan import ServerLifespan
    from fastrpc.engine.ports import (
        ApprovalGates,
        Features,
        GuardForTasks,
        NotifiedDispatcher,
        RequestCounter,
        RequestWrapper,
    )
    from fastrpc.signed_texts import TextKeys


class SharedState:
    """The attributes of a server's runtime, and the servers through which a call comes to a handler."""

    def __init__(self, server: Any, features: Features) -> None:
        self.server = server
        """The `Server` whose connections share this, and whose options are taken over now."""
        self.features = features
        """The methods that clients may call, and what handlers may do besides."""
        self.registries: Registries = server.registries
        self.state: Any = None  # what the lifespan gave, for `Context.state`
        self.hooks: list[Any] = server._hooks
        self.guards: list[Any] = server._guards
        """Functions that decide about each call of a tool, a resource or a prompt (`Server.guard`)."""
        self.rechecks: list[Callable[[Any], object]] = []
        """Functions that decide again about a tool's call whose arguments hooks have seen."""
        self.spending: list[Any] = []  # count what calls cost: see `RequestChannel.spend`
        self.wrapper: RequestWrapper | None = None
        """What is around the requests of this server and of those that are mounted in it."""
        self.counter: RequestCounter | None = None
        self.recorder: Recorder | None = None
        """Receives a record of each call, if there are observers of some."""
        self.is_observed = False
        """Whether this server itself has observers (`Server.observe`)."""
        self.honours_everything = False
        """Whether clients may listen for changes of what the server does not declare."""
        self.signing_keys: TextKeys | None = None
        """What signs request states and ids of sessions, once they are needed (`fastrpc.signed_texts`)."""
        self.mounts: list[Any] = server._mounts
        """The servers that are mounted here."""
        self.upstream: Any = server._upstream
        """Where the registries' entries come from, if another server has to be asked (`fastrpc.proxy`)."""
        self.lifespan: ServerLifespan | None = None
        self.dispatchers: set[NotifiedDispatcher] = set()
        self.results = Results(server.info)
        self.calls: CallsInFlight = CallsInFlight(server.max_in_flight)
        self.max_batch: int = server.max_batch
        self.caller_of: Callable[[str], Caller] | None = None
        """Returns the caller who has a principal, if a guard knows more of them."""
        self.gates: ApprovalGates | None = None
        """Asks people for approvals that no call waits for, if a guard can."""
        self.task_guard: GuardForTasks | None = None
        """What tasks need of the guard of a policy, if there is one."""
        self.knows_callers = True
        """Whether each caller has a separate principal: not over HTTP without authentication."""
        self.makes_tasks_of_approvals = False
        """Whether calls that wait for an approval may become tasks, also of tools without the option."""
        self.loading = False
        """Whether entries are being added that no client has been shown yet: none is notified."""
        self._load: Callable[[], object] | None = server.load_tools
        self.is_sharing = False
        """Whether what this process shares with other hosts has been asked for."""
        self._shared: Any = None

    @property
    def shared(self) -> Any:
        """What this process shares with those of other hosts (`fastrpc.shared_store`), begun when it is first
        asked for; None without FASTRPC_SHARED. Raises UsageError for a setting that cannot be used."""
        if not self.is_sharing:
            # Without the module of settings no file has been read, and a start does not import it.
            may_share = "FASTRPC_SHARED" in os.environ or "fastrpc.settings" in sys.modules
            self._shared = self.server._make_part("shared_store") if may_share else None
            self.is_sharing = True
        return self._shared

    def stop_sharing(self) -> None:
        """Tell other hosts what waits to be told, within a second, and hear nothing more."""
        store, self._shared, self.is_sharing = self._shared, None, False
        if store is not None:
            store.close()

    @property
    def is_unloaded(self) -> bool:
        """Whether the tools that were to be loaded late have not been loaded yet."""
        return self._load is not None

    @property
    def expects_tasks(self) -> bool:
        """Whether calls of such tools may become tasks."""
        return bool(self.server.expects_tasks)

    def load(self) -> None:
        """Load the tools that were to be loaded late, if that has not been done."""
        if self._load is not None:
            load, self._load = self._load, None
            self.loading = True
            try:
                load()
            finally:
                self.loading = False

    def take_wrappers(self, wrappers: Sequence[RequestWrapper | None]) -> None:
        """Take this server's wrapper and those of the servers that are mounted in it; None: it has none."""
        own, *mounted = wrappers
        self.wrapper = own
        for each in mounted:
            if self.wrapper is None and each is not None:
                self.wrapper = each.of_host(self.server)

    @property
    def has_upstreams(self) -> bool:
        """Whether there may be upstream servers whose features have to be listed."""
        return self.upstream is not None or bool(self.mounts)

    def mount_path_of(self, handler: Handler) -> list[tuple[str, SharedState]]:
        """Return the servers on the way to a handler, this one first, each with its name for the handler."""
        return [(handler.name, self), *[(name, server.runtime) for server, name in handler.origin]]

    def server_of(self, handler: Handler) -> Any:
        """Return the server that a handler belongs to: this one, or one that is mounted there."""
        return handler.origin[-1][0] if handler.origin else self.server

    def lifespans_of(self, handler: Handler) -> list[ServerLifespan]:
        """Return the lifespans that a handler needs: its server's, and those of the servers around it."""
        found = [each.lifespan for _, each in self.mount_path_of(handler)]
        return [lifespan for lifespan in found if lifespan is not None]

    def pending_lifespan(self, handler: Handler) -> ServerLifespan | None:
        """Return the lifespan that has to be entered before a handler is called; None if all have been."""
        if self.lifespan is not None or handler.origin:
            for lifespan in self.lifespans_of(handler):
                if not lifespan.entered:
                    return lifespan
        return None

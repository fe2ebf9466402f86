"""What all connections of one server share: its state, and the parts of the engine that exist once for a
server, such as `CallPlans`, `CallAdmission`, `ListPages` and the worker threads.

Plans and lists are made at the first request that needs them and again after a registry has changed; clients
are notified of the change.
"""

from __future__ import annotations

from fastrpc import diagnostics
from fastrpc.engine.shared_state import SharedState
from fastrpc.engine.visibility import ServerDescription, VisibilityFilters

TYPE_CHECKING = False
if TYPE_CHECKING:
    from functools import cached_property
    from typing import Any

    from fastrpc.engine.admission import CallAdmission
    from fastrpc.engine.announcements import Announcements
    from fastrpc.engine.list_pages import ListPages
    from fastrpc.engine.plans import CallPlans
    from fastrpc.engine.ports import Features, Tasks
    from fastrpc.engine.server_monitors import Monitors
    from fastrpc.engine.thread_pool import ThreadPool
    from fastrpc.engine.upstreams import Upstreams
    from fastrpc.quotas import Quotas

    made_once = cached_property
else:

    class made_once:
        """`functools.cached_property`, which costs a start its import."""

        def __init__(self, make):
            self._make = make
            self._name = make.__name__

        def __get__(self, instance, owner):
            part = instance.__dict__[self._name] = self._make(instance)
            return part


class Runtime(SharedState):
    """The shared half of a server; a `Dispatcher` is the other, one for each connection."""

    description_type = ServerDescription

    def __init__(self, server: Any, features: Features) -> None:
        super().__init__(server, features)
        self.description = self.description_type(self)
        self.filters = VisibilityFilters(server, self.mounts)
        if server.lifespan is not None:
            from fastrpc.engine.lifespan import ServerLifespan

            enter = server.lifespan
            self.lifespan = ServerLifespan(lambda: enter(server), self._take_state)
        self._threads: int = server.threads
        for registry in self.registries:
            registry.watchers.append(self._changed)

    def _take_state(self, state: Any) -> None:
        """The lifespan has been entered, or left: take what it gave, or None."""
        self.state = state
        self.forget_plans()

    def _changed(self, kind: str) -> None:
        """Something was added to a registry, or taken out of it, on whatever thread."""
        if self.loading:
            self._forget_everywhere(kind)
        else:
            self.announcements.announce("list_changed", kind)

    def _forget_everywhere(self, kind: str) -> None:
        """Forget all that was made from the entries of a kind, now, and again on each connection's thread:
        what that one is making at this moment may be without the change."""
        self._forget(kind)
        for dispatcher in list(self.dispatchers):
            dispatcher.changes.forget_plans(lambda: self._forget(kind))

    def _forget(self, kind: str) -> None:
        if "pages" in self.__dict__:
            self.pages.forget()
        self.filters.forget()
        if "plans" in self.__dict__:
            self.plans.forget(kind)

    def forget_plans(self) -> None:
        """Make the plans anew, at the next call; from whatever thread."""
        if "plans" in self.__dict__:
            self.plans.forget()
        self._forget_everywhere("tool")

    def process_state(self) -> dict[str, list[str]]:
        """Return what tools keep in their process, each with the names of these tools (docs/toolsets.md)."""
        from fastrpc.loader import process_state

        self.load()
        return process_state(self.registries.tools)

    async def leave(self) -> None:
        """If the last connection has closed: leave the lifespans and upstream servers, and log the failures
        that were only counted. Bounded in time."""
        try:
            if "tasks" in self.__dict__ and not any(each.makes_tasks for each in list(self.dispatchers)):
                await self.tasks.leave()  # the first, since it closes the connections of the tasks' calls
        finally:
            live = list(self.upstreams.to_leave()) if self.has_upstreams or self.lifespan is not None else []
            if not self.dispatchers and "tool_processes" in self.__dict__:
                live.append(self.__dict__["tool_processes"])
            if live:
                import asyncio

                for _ in range(60):  # what was cancelled may still use it
                    if self.calls.count == 0:
                        break
                    await asyncio.sleep(0.005)
                await asyncio.gather(*(thing.leave() for thing in live))
            if not self.dispatchers:
                if self.is_sharing:
                    import asyncio

                    await asyncio.get_running_loop().run_in_executor(None, self.stop_sharing)
                diagnostics.finish()

    # --- parts that a server makes when a client first needs them: a start imports none of them ---------

    @made_once
    def plans(self) -> CallPlans:
        from fastrpc.engine.plans import CallPlans

        def use_processes() -> None:
            self.__dict__["tool_processes"] = self.server._make_part("tool_processes")

        return CallPlans(self, self.filters, self.forget_plans, use_processes)

    @made_once
    def pages(self) -> ListPages:
        from fastrpc.engine.list_pages import ListPages

        return ListPages(self.server, self.filters, self.results)

    @made_once
    def admission(self) -> CallAdmission:
        from fastrpc.engine.admission import CallAdmission

        return CallAdmission(self.calls, self.pending_lifespan)

    @made_once
    def announcements(self) -> Announcements:
        from fastrpc.engine.announcements import Announcements

        def take_task_change(*change: str) -> None:
            if "tasks" in self.__dict__:
                self.tasks.heard(*change)

        return Announcements(self.dispatchers, self.filters, self._forget_everywhere, take_task_change)

    @made_once
    def monitors(self) -> Monitors:
        from fastrpc.engine.server_monitors import Monitors

        return Monitors(self.server, self.mounts, self.dispatchers)

    @made_once
    def upstreams(self) -> Upstreams:
        from fastrpc.engine.upstreams import Upstreams

        return Upstreams(self)

    @made_once
    def tasks(self) -> Tasks:
        """The tasks of this server (`fastrpc.tasks.board`)."""
        board: Tasks = self.server._make_part("task_board")
        return board

    @made_once
    def quotas(self) -> Quotas:
        """What the clients of each caller may have this process keep."""
        from fastrpc.quotas import Quotas

        return Quotas()

    @made_once
    def thread_pool(self) -> ThreadPool:
        from fastrpc.engine.thread_pool import ThreadPool

        return ThreadPool(self._threads)

    def leave_threads_behind(self) -> None:
        """End the process here if a tool still runs on a thread: the interpreter's own end would wait
        for it, or abort where it holds a lock that the end wants."""
        if "thread_pool" in self.__dict__ and self.thread_pool.busy:
            self.thread_pool.leave()

    def get_ready(self) -> None:
        """Make what the first call on a thread would make: the client has paused."""
        if any(not (plan.inline or plan.is_async) for plan in self.plans.tools.values()):
            self.thread_pool  # noqa: B018  # it is made where it is first asked for

    def needs_loop(self) -> bool:
        """Whether some tool cannot be called, or something not be watched, without an event loop."""
        plans = self.plans.tools.values()
        return (
            self.lifespan is not None
            or any(plan.is_async or not plan.inline for plan in plans)
            or self.monitors.needed
        )

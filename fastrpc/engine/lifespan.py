"""The lifespan of a server: an async context manager that is entered before the first call, left at the end.

One task enters it, waits, and leaves it, as task groups and pools require. No call runs before it has been
entered: calls wait here, in order; lists and handshakes do not. If entering fails, every call fails, and the
traceback is logged. It is left when the transport ends, or the last in-memory client, and may be entered
again after that. A server without a lifespan does not import this.
"""

from __future__ import annotations

import asyncio

from fastrpc import diagnostics, tracebacks
from fastrpc.engine.messages import ENDED
from fastrpc.errors import FAILURES, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from fastrpc._core.plan import Plan

    class AdmittedCall(Protocol):
        """The part of a `Call` that decides when it begins."""

        state: str

        @property
        def plan(self) -> Plan: ...
        @property
        def dispatcher(self) -> Any: ...
        def start(self) -> object: ...
        def end(self, result: Any, error: BaseException | None) -> object: ...


LEAVE_SECONDS = 1.0
"""How long leaving may take; then it is cancelled."""
LAST_SECONDS = 0.1
"""How long a cancelled one may take to clean up."""


class ServerLifespan:
    """The context manager that `make` returns, entered once for all connections of a server.

    `entered`: calls may run. `changed` is called when it has been entered, with its value, and when it has
    been left, with None; then `watchers` are called, once each.
    """

    def __init__(self, make: Callable[[], Any], changed: Callable[[Any], object]) -> None:
        self.entered = False
        self.watchers: set[Callable[[], object]] = set()
        self._make = make
        self._changed = changed
        self._held: list[AdmittedCall] = []
        self._task: asyncio.Task[None] | None = None
        self._leaving: asyncio.Event | None = None
        self._ready: asyncio.Event | None = None
        self._asked = False
        self._failure: str | None = None

    @property
    def live(self) -> bool:
        """Whether there is something to leave."""
        return self._task is not None

    def hold(self, call: AdmittedCall) -> None:
        """Defer a call until the lifespan has been entered; the first call causes that."""
        self._held.append(call)
        if not self._asked:
            self._asked = True
            call.dispatcher.connection.call_in_loop(self._begin)
        elif self._failure is not None:
            call.dispatcher.connection.call_in_loop(self._refuse_soon)

    async def enter(self) -> None:
        """Enter it now, before the first call. Raises ToolError if that fails, after logging why."""
        if not self._asked:
            self._asked = True
            self._begin()
        if self._ready is not None:
            await self._ready.wait()
        if self._failure is not None:
            raise self._error()

    def _begin(self) -> None:
        self._ready = asyncio.Event()
        self._leaving = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._live(self._leaving))

    async def _live(self, leaving: asyncio.Event) -> None:
        """Enter, wait for the end, leave."""
        try:
            manager = self._make()
            if not hasattr(manager, "__aenter__"):
                raise TypeError(
                    f"lifespan: expected an async context manager, got {type(manager).__name__}; "
                    "decorate the function with contextlib.asynccontextmanager"
                )
            async with manager as value:
                self._open(value)
                await leaving.wait()
        except FAILURES as error:
            if self.entered:
                tracebacks.report("the lifespan failed at its end", error)
            else:
                tracebacks.report("the lifespan failed at its start; no call can run", error)
                text = str(error)
                self._failure = f"{type(error).__name__}: {text}" if text else type(error).__name__
                self._refuse()
                if self._ready is not None:
                    self._ready.set()
        finally:
            if self.entered:
                self._close()

    def _open(self, value: Any) -> None:
        """It has been entered: begin the calls that have waited."""
        self.entered = True
        if self._ready is not None:
            self._ready.set()
        self._notify_watchers(value)
        held, self._held = self._held, []
        for call in held:
            runtime = call.dispatcher.runtime
            if call.state == ENDED:
                runtime.calls.count -= 1
            else:
                runtime.admission.place(call)

    def _close(self) -> None:
        """It has been left: the next call enters it anew."""
        self.entered = self._asked = False
        self._task = None
        self._notify_watchers(None)

    def _notify_watchers(self, value: Any) -> None:
        self._changed(value)
        watchers, self.watchers = self.watchers, set()
        for watcher in watchers:
            watcher()

    def _refuse_soon(self) -> None:
        asyncio.get_running_loop().call_soon(self._refuse)  # the request is not in flight yet

    def _refuse(self) -> None:
        held, self._held = self._held, []
        for call in held:
            call.dispatcher.runtime.calls.count -= 1
            call.end(None, self._error())

    def _error(self) -> ToolError:
        return ToolError(f"the server could not start, its lifespan failed: {self._failure}")

    async def leave(self) -> None:
        """Leave it; what takes longer than a second is cancelled. It may be entered again afterwards."""
        task = self._task
        if task is not None and self._leaving is not None and task.get_loop() is asyncio.get_running_loop():
            self._leaving.set()
            done, _ = await asyncio.wait({task}, timeout=LEAVE_SECONDS)
            if not done:
                diagnostics.write(
                    "warning", f"the lifespan did not end within {LEAVE_SECONDS:g} s and is cancelled"
                )
                task.cancel()
                await asyncio.wait({task}, timeout=LAST_SECONDS)
        self._task = self._failure = None
        self._asked = False
        held, self._held = self._held, []  # cancelled while they waited
        for call in held:
            call.dispatcher.runtime.calls.count -= 1

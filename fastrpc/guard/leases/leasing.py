"""`Leasing`: leases shares of limits from the guard's database, on one thread of a process.

    await leasing.lease([(share, 1)])

All that wait at a moment share one transaction. A call waits at most `WAIT_SECONDS`. If the database has not
answered for that time, or an attempt has failed within the last second, it is refused at once: what calls of
this process need is not there, and is never assumed. What was asked for in vain and is granted later, later
calls use. The thread also returns what is not used, each second while there is something, and at the end of
the process.
"""

from __future__ import annotations

import asyncio
import atexit
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from threading import Lock, Thread
from time import monotonic, sleep

from fastrpc import diagnostics, forks
from fastrpc._core.rate_limiter import LeasedLimit, RateTable
from fastrpc.guard.leases.shares import BudgetShare, RateShare
from fastrpc.guard.leases.store import Change, LimitStore
from fastrpc.guard.policy.budgets import Budget, CannotCount
from fastrpc.storage.errors import StorageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from fastrpc.storage.database import Database

    AnyShare = RateShare | BudgetShare
    Need = tuple[AnyShare, int]
    Job = tuple[Sequence[Need], Future[None]]

WAIT_SECONDS = 2.0
RETRY_SECONDS = 1.0
TICK_SECONDS = 1.0
END_SECONDS = 1.0
REMOVAL_SECONDS = 3600.0
MOST_SHARES = 16_384
AT_ONCE = 64


class Leasing:
    """Leases for the guard of one process, and the processes that it forks before it leases anything."""

    def __init__(self, open_database: Callable[[], Database]) -> None:
        self._open = open_database
        self._shares: dict[str, AnyShare] = {}
        self._generation = -1
        self._starting = Lock()
        self._jobs: SimpleQueue[Job | None] = SimpleQueue()
        self._store: LimitStore | None = None
        self._busy_since = self._failed_at = 0.0
        self._trouble = ""
        self._removal_at = 0.0
        self._thread: Thread | None = None

    def rate(self, name: str, seconds: int, count: int, table: RateTable) -> LeasedLimit:
        """Return what the calls of a rate take from."""
        found = self._shares.get(name)
        if not isinstance(found, RateShare):
            found = RateShare(name, seconds, count, table)
            self._keep(name, found)
        return found.limit

    def budget(self, name: str, budget: Budget, row: int, caller: str, tool: str) -> BudgetShare:
        """Return the share of a budget of a caller, for one tool or "" for all."""
        found = self._shares.get(name)
        if not isinstance(found, BudgetShare):
            found = BudgetShare(name, row, caller, tool)
            self._keep(name, found)
        found.use(budget)
        return found

    def _keep(self, name: str, share: AnyShare) -> None:
        with self._starting:
            if len(self._shares) >= MOST_SHARES:
                self._shares = {}  # calls hold their own; the rest of a lease of others counts as used
            self._shares[name] = share

    async def lease(self, needs: Sequence[Need]) -> None:
        """Return once the database has been asked for these. Raises CannotCount."""
        now = monotonic()
        is_late = self._busy_since and now - self._busy_since > WAIT_SECONDS
        if is_late or now - self._failed_at < RETRY_SECONDS:
            raise CannotCount("the database of the guard does not answer")
        self._start()
        future: Future[None] = Future()
        self._jobs.put((needs, future))
        waiting = asyncio.wrap_future(future)
        waiting.add_done_callback(lambda each: each.cancelled() or each.exception())  # no one may wait then
        done, _ = await asyncio.wait({waiting}, timeout=WAIT_SECONDS)
        if not done:
            raise CannotCount("the database of the guard does not answer")
        waiting.result()

    # --- the thread -----------------------------------------------------------------------------------------

    def _start(self) -> None:
        if self._generation == forks.generation:
            return
        with self._starting:
            if self._generation == forks.generation:
                return
            self._generation = forks.generation
            self._jobs, self._busy_since = SimpleQueue(), 0.0
            self._thread = Thread(target=self._run, name="fastrpc-leases", daemon=True)
            self._thread.start()
            atexit.register(self._end)

    def _run(self) -> None:
        due = monotonic() + TICK_SECONDS
        while True:
            jobs, is_over = self._next_jobs(max(due - monotonic(), 0.0) if self._holds() else None)
            if jobs:
                self._serve(jobs)
            if is_over:
                self._return(at_end=True)
                sleep(0.05)
                self._return(at_end=True)
                return
            if monotonic() >= due:
                self._return()
                due = monotonic() + TICK_SECONDS

    def _holds(self) -> bool:
        return any(share.holds for share in list(self._shares.values()))

    def _next_jobs(self, seconds: float | None) -> tuple[list[Job], bool]:
        found: list[Job] = []
        try:
            job = self._jobs.get(timeout=seconds)
            while job is not None:
                found.append(job)
                if len(found) >= AT_ONCE:
                    return found, False
                job = self._jobs.get_nowait()
        except Empty:
            return found, False
        return found, True

    def _serve(self, jobs: list[Job]) -> None:
        error = self._try(lambda: self._lease([need for needs, _ in jobs for need in needs]))
        for _, future in jobs:
            if not future.set_running_or_notify_cancel():
                continue
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(CannotCount("the database of the guard does not answer"))

    def _lease(self, needs: list[Need]) -> None:
        amounts: dict[AnyShare, list[int]] = {}
        for share, amount in needs:
            amounts.setdefault(share, []).append(amount)
        now = monotonic()
        asked = [(share, share.change(each)) for share, each in amounts.items() if now >= share.denied_until]
        self._settle([(share, change) for share, change in asked if change is not None])

    def _settle(self, asked: list[tuple[AnyShare, Change]]) -> None:
        by_key = {change.key: (share, change) for share, change in asked}
        if not by_key:
            return
        if self._store is None:
            self._store = LimitStore(self._open())
        granted = self._store.settle([change for _, change in by_key.values()])
        for (share, change), each in zip(by_key.values(), granted, strict=True):
            share.take(change, each)

    def _return(self, *, at_end: bool = False) -> None:
        """Give back what is not used, and add what is owed. If that fails, the former counts as used."""
        found = [(share, share.returned(at_end=at_end)) for share in list(self._shares.values())]
        asked = [(share, change) for share, change in found if change is not None]
        if asked:
            self._try(lambda: self._settle(asked))
        if self._store is not None and monotonic() >= self._removal_at:
            self._removal_at = monotonic() + REMOVAL_SECONDS
            self._try(self._store.remove_expired)

    def _try(self, work: Callable[[], None]) -> Exception | None:
        """Do what needs the database; return why it failed, which is logged."""
        self._busy_since = monotonic()
        try:
            work()
        except Exception as error:
            self._failed_at = monotonic()
            text = str(error) if isinstance(error, StorageError) else f"leasing has failed: {error!r}"
            if text != self._trouble:
                self._trouble = text
                diagnostics.write(
                    "error",
                    f"{text}; calls that need more of a shared rate or budget are refused",
                )
            return error
        finally:
            self._busy_since = 0.0
        if self._trouble:
            self._trouble = ""
            diagnostics.write("warning", "rates and budgets are leased again")
        return None

    def _end(self) -> None:
        if self._generation == forks.generation and self._thread is not None:
            self._jobs.put(None)
            self._thread.join(END_SECONDS)

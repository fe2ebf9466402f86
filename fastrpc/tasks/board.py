"""`TaskBoard`: the tasks of one server in one process: what runs here, and what the database knows of all.

The database is opened by the first task. While calls run here, their leases are renewed, and those that were
cancelled elsewhere are ended; tasks whose process has ended are taken over: run again if their tool is
idempotent, else failed. On the thread of the event loop that serves.
"""

from __future__ import annotations

import asyncio
import time
from json import dumps, loads

from fastrpc import tracebacks
from fastrpc.client_requests.request_state import renewed
from fastrpc.errors import InternalError
from fastrpc.protocol.versions import STATELESS
from fastrpc.settings import TASKS_DATABASE
from fastrpc.storage import StorageError, UnstorableValue
from fastrpc.tasks import approvals, store, workers
from fastrpc.tasks.changes import announce
from fastrpc.tasks.placement import guards_of, leaves_guarded, leaves_to_workers
from fastrpc.tasks.record import CANCELLED, FAILED, WORKING, TaskRecord
from fastrpc.tasks.rows import TaskRows
from fastrpc.tasks.run import TaskRun
from fastrpc.tasks.self_call import params_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from fastrpc.storage.notifications import HeardChannel
    from fastrpc.tasks.run import WaitingRequest
    from fastrpc.tasks.self_call import TaskServer

LEASE_SECONDS = 15.0
TURN_SECONDS = 0.5
"""How often the rows of what runs here are looked at: a cancel of another process ends a call within twice
that."""
SWEEP_SECONDS = 5.0
"""How often leases are renewed, lost tasks taken over, and expired ones deleted."""
TTL_MS = 24 * 3600 * 1000
"""How long a task is kept whose client did not say so."""
LONGEST_TTL_MS = 30 * TTL_MS
POLL_MS = 500
AFTER_SECONDS = 1.0
"""How long a call runs before it becomes a task, if its tool does not say so and allows tasks."""
LOST_AT_ONCE = 16
LEAVE_SECONDS = 2.0
LOST = "the process that ran this task has ended; its tool is not idempotent, so it was not run again"
UNSTORABLE = "the task has ended with a text that the server's database cannot hold"


class TaskBoard:
    """The tasks of a server, and those of them that run in this process."""

    is_worker = False
    """Whether this process serves no client, but runs tasks that servers leave to it."""

    def __init__(self, server: TaskServer) -> None:
        self.server = server
        self.worker = workers.new_name(self.is_worker)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: dict[str, list[asyncio.Event]] = {}
        self._runs: dict[str, TaskRun] = {}
        self._rows = TaskRows(self._begin_turns)
        self._turns: asyncio.Task[None] | None = None
        self._listener: HeardChannel | None = None
        self._woken = asyncio.Event()
        self._tasks: set[asyncio.Task[Any]] = set()

    # --- for requests -----------------------------------------------------------------------------------

    def begin(
        self,
        principal: str,
        tool: Any,
        request: Any,
        waiting: WaitingRequest,
        ttl_ms: int | None,
    ) -> TaskRun:
        """Begin the call of a request that may become a task, or in 2025-11-25 is one."""
        now = time.time()
        may_repeat = bool(tool.annotations.get("idempotentHint") or tool.annotations.get("readOnlyHint"))
        ttl_ms = TTL_MS if ttl_ms is None else min(ttl_ms, LONGEST_TTL_MS)
        guard = self.server.runtime.task_guard
        record = TaskRecord(
            id=store.new_id(),
            owner=principal,
            server=self.server.name,
            tool=request.params["name"],
            version=request.version,
            idempotent=int(tool.resumable or may_repeat),
            created_at=now,
            updated_at=now,
            ttl_ms=ttl_ms,
            expires_at=now + ttl_ms / 1000,
            poll_ms=POLL_MS,
            worker=self.worker,
            lease_until=now + LEASE_SECONDS,
            guard=guard.place if guard is not None else "",
            caller=guard.caller(principal) if guard is not None else "",
        )
        params = params_of(request)
        required = tool.task == "required"
        after_seconds = tool.after_seconds
        if after_seconds is None:
            after_seconds = 0.0 if required else AFTER_SECONDS
        is_left = leaves_to_workers(self.server, record.tool, after_seconds)
        if is_left:
            record = record._replace(worker="", lease_until=0.0, runs=0)
        run = TaskRun(self, record, params, waiting, after_seconds, required)
        is_first = is_left or (required and not after_seconds)  # its task is created before it runs
        if request.version == STATELESS and not is_first:
            run.begin()
        else:
            run.begin_as_task(is_early=may_repeat and not is_left and tool.run == "process")
        return run

    async def read(self, id: str, owner: str) -> TaskRecord | None:
        """Return a task of an owner. Raises StorageError."""
        if not id.isalnum():  # as each id is; PostgreSQL refuses a text with U+0000
            return None
        found = await self._rows.do(store.read, id, self.server.name, owner, time.time())
        run = self._runs.get(id)
        if found is not None and run is not None and found.state == WORKING and run.message:
            return found._replace(message=store.kept_message(run.message))
        return found

    async def wait_for_change(self, record: TaskRecord) -> None:
        """Return when a task may have changed; a change by another machine is seen after a while."""
        changed = asyncio.Event()
        waiting = self._waiting.setdefault(record.id, [])
        waiting.append(changed)
        try:
            await asyncio.wait_for(changed.wait(), TURN_SECONDS)
        except asyncio.TimeoutError:
            pass
        finally:
            waiting.remove(changed)
            if not waiting and self._waiting.get(record.id) is waiting:
                del self._waiting[record.id]

    async def page(self, owner: str, limit: int, after: tuple[float, str] | None) -> list[TaskRecord]:
        """Return a page of an owner's tasks, the newest first."""
        return await self._rows.do(store.page, self.server.name, owner, time.time(), limit, after)

    async def answer(self, record: TaskRecord, responses: dict[str, Any]) -> None:
        """Take answers to a task's questions. When it has all, it goes on, in this process or in a worker."""
        now = time.time()
        is_left = leaves_to_workers(self.server, record.tool, 0.0)
        worker, until = ("", 0.0) if is_left else (self.worker, now + LEASE_SECONDS)
        found = await self._rows.do(store.answer, record.id, record.owner, responses, worker, until, now)
        if found is not None and not is_left:
            self._resume(found)
        self._announce(record.id, record.owner)

    async def cancel(self, id: str, owner: str, message: str | None = None) -> bool:
        """Cancel a task: mark it, then end its call, wherever it runs. `message`: what it says from now on.
        False: it has ended."""
        begun = None if id in self._runs else _left_behind(self.server, await self.read(id, owner))
        done = await self._rows.do(store.cancel, id, owner, time.time(), message=message)
        if done:
            run = self._runs.get(id)
            if run is not None:
                run.is_cancelled = True
                run.cancel()
            elif begun is not None:
                self._resume(begun, is_cancelled=True)
            self._announce(id, owner)
            if self.server.runtime.gates is not None:
                await approvals.withdraw(self._rows, self.server.runtime.gates, id)
        return done

    async def fail(self, record: TaskRecord, problem: str) -> None:
        """Fail a task whose questions get no answer."""
        error = _internal_error(problem)
        await self._rows.do(store.end, record.id, "", FAILED, time.time(), error=error)
        self._announce(record.id, record.owner)

    # --- for runs ---------------------------------------------------------------------------------------

    async def create(self, run: TaskRun) -> None:
        """Write the row of a run. Raises StorageError, TooManyTasks, ParamsTooLong, JournalClosed."""
        text = dumps(run.params, ensure_ascii=False, separators=(",", ":"))
        if len(text) > store.PARAMS_LIMIT:
            raise store.ParamsTooLong(len(text))
        run.record = record = run.record._replace(
            params=text, message=store.kept_message(run.message), approval=run.approval
        )
        await self._rows.insert(record, run.row_written)
        if record.worker:
            self._runs[record.id] = run

    async def note_approval(self, run: TaskRun) -> bool:
        """Write for which approval a run waits, "" if it begins: until then another process may take
        the task over. Return False if this process does not have it any more. Raises StorageError."""
        run.record = record = run.record._replace(approval=run.approval)
        values = record.id, self.worker, run.approval, run.message, time.time()
        held = await self._rows.do(store.note_approval, *values)
        self._announce(record.id, record.owner)
        return held

    def end(self, run: TaskRun, state: str, result: str = "", error: str = "") -> None:
        """Have it written how a run has ended."""
        values = {"result": result, "error": error, "message": run.message}
        ids = run.record.id, self.worker
        self._soon(self._write(run, store.end, *ids, state, time.time(), **values))

    def ask(self, run: TaskRun, questions: dict[str, Any], request_state: str) -> None:
        """Have it written what a run has asked; it is over, and another begins with the answers."""
        ids = run.record.id, self.worker
        self._soon(self._write(run, store.ask, *ids, questions, request_state, time.time()))

    def discard(self, run: TaskRun) -> None:
        """Have a task marked as cancelled whose client never learned its id."""
        self._soon(self._write(run, store.cancel, run.record.id, run.record.owner, time.time()))

    def set_message(self, run: TaskRun) -> None:
        """Have it written what a run says of itself."""
        record, message = run.record, run.message

        async def write() -> None:
            await self._rows.do(store.set_message, record.id, self.worker, message, time.time())
            self._announce(record.id, record.owner)

        self._soon(write())

    async def _write(self, run: TaskRun, change: Callable[..., object], *values: Any, **named: Any) -> None:
        """Make the last change of a run. A database that is away is tried again, until this process ends. If
        it cannot hold a value, the task fails, saying so."""
        while True:
            try:
                await self._rows.do(change, *values, **named)
                break
            except UnstorableValue:
                values = run.record.id, self.worker, FAILED, time.time()
                change, named = store.end, {"error": _internal_error(UNSTORABLE)}
            except StorageError:
                await asyncio.sleep(TURN_SECONDS)
        self.run_over(run)
        self._announce(run.record.id, run.record.owner)

    @property
    def is_busy(self) -> bool:
        """Whether a task's function runs here, or its end is to be written: not where its call waits for an
        approval, which any process can go on with."""
        return any(not run.approval for run in self._runs.values())

    def run_over(self, run: TaskRun) -> None:
        """A run has ended."""
        if self._runs.get(run.record.id) is run:
            del self._runs[run.record.id]

    def _soon(self, writing: Coroutine[Any, Any, Any]) -> None:
        """Run something that no request waits for."""
        task = asyncio.ensure_future(self._rows.logged(writing))
        self._tasks.add(task)  # the loop itself holds tasks only weakly
        task.add_done_callback(self._tasks.discard)

    async def leave(self) -> None:
        """The server is ending: end the calls, and let other processes have the tasks."""
        if self._listener is not None:
            self._listener.end()
            self._listener = None
        turns, self._turns = self._turns, None
        for each in (turns, self._rows.opening):
            if each is not None and not each.get_loop().is_closed():
                each.cancel()
                await asyncio.wait([each])
        runs, self._runs = list(self._runs.values()), {}
        for run in runs:
            run.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=LEAVE_SECONDS)
        if self._rows.is_open:
            await self._rows.logged(self._rows.do(store.release, self.worker))
            await self._rows.close()

    # --- what is done from time to time -----------------------------------------------------------------

    def _begin_turns(self) -> None:
        """The database has been opened, or is used by another event loop, since the one before was closed."""
        if self._loop is not None and self._loop.is_closed():
            self._runs.clear()
            self._tasks.clear()
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()  # of this loop
        self._turns = asyncio.ensure_future(self._take_turns())
        self._listener = self._rows.listen(lambda id, worker: self.heard(id, None, worker))

    async def _take_turns(self) -> None:
        next_sweep = 0.0
        while True:
            self._woken.clear()
            try:
                await self._take_turn()
                if time.monotonic() >= next_sweep:
                    next_sweep = time.monotonic() + SWEEP_SECONDS
                    await self._rows.logged(self._sweep())
            except Exception as error:  # without further turns, the leases of all that runs here would end
                tracebacks.report("the look at the tasks", error)
            try:
                await asyncio.wait_for(self._woken.wait(), TURN_SECONDS)
            except asyncio.TimeoutError:
                pass

    async def _take_turn(self) -> None:
        """Do what is done in each turn."""
        ids = list(self._runs)
        if ids:
            await self._rows.logged(self._end_cancelled(ids))

    async def _end_cancelled(self, ids: list[str]) -> None:
        """End the runs whose task another process has cancelled, or whose time to live is over."""
        for id in await self._rows.do(store.ended_among, ids, self.worker):
            run = self._runs.get(id)
            if run is None or run.ended or run.is_cancelled:
                continue
            record = await self.read(id, run.record.owner)
            run.is_cancelled = record is not None and record.state == CANCELLED
            run.cancel()

    async def _sweep(self) -> None:
        now = time.time()
        until = now + LEASE_SECONDS

        await self._rows.do(store.renew, self.worker, until, list(self._runs))
        await self._rows.do(store.remove_expired, now)
        server, guards = self.server.name, guards_of(self.server, self.is_worker)
        ended = [name for name in await self._rows.do(store.workers, server) if workers.has_ended(name)]
        error = _internal_error(LOST)
        for id, owner in await self._rows.do(
            store.fail_lost, server, self.worker, now, ended, LOST_AT_ONCE, error, guards
        ):
            self._announce(id, owner)
        guard, gates = self.server.runtime.task_guard, self.server.runtime.gates
        if guard is not None and not guard.is_ready:
            return
        for record in await self._rows.do(
            store.take_lost, server, self.worker, until, now, ended, LOST_AT_ONCE, guards
        ):
            self._resume(record)
        tools = list(self.server.runtime.plans.tools)
        for record in await self._rows.do(store.take_cancelled, server, tools, now, LOST_AT_ONCE, guards):
            if _is_resumable(self.server, record.tool):
                self._resume(record, is_cancelled=True)
        if gates is not None and (self.is_worker or not leaves_guarded(self.server)):
            for record in await approvals.proceeding(
                self._rows, gates, server, self.worker, until, now, guards
            ):
                self._resume(record)

    def _resume(self, record: TaskRecord, *, is_cancelled: bool = False) -> None:
        """Run a task's call again, with the answers to its questions if it has asked some. If the task is
        cancelled, its function ends what it has begun."""
        params = loads(record.params)
        if record.request_state:
            params["inputResponses"] = store.answers_of(record).responses
            params["requestState"] = renewed(self.server.runtime, record.owner, record.request_state)
        approval = record.approval
        record = record._replace(state=WORKING, worker=self.worker, questions="", answers="", approval="")
        run = self._runs[record.id] = TaskRun(self, record, params)
        run.is_cancelled = is_cancelled
        run.approval = approval
        guard = self.server.runtime.task_guard
        if guard is not None and record.caller and record.caller != guard.caller(record.owner):
            run.ended = True
            self.end(run, FAILED, error=guard.refuse(record.owner, record.tool, record.id))
        else:
            run.begin()

    # --- changes ----------------------------------------------------------------------------------------

    def listen(self) -> None:
        """Have the clients of this process be notified of changes that other processes announce."""
        self._loop = asyncio.get_running_loop()
        if not self._rows.is_open and on_other_hosts():
            self._rows.open_once_there()  # which begins to hear the processes of other hosts

    def _announce(self, id: str, owner: str) -> None:
        """A task has changed in this process: notify clients, here and in the other processes."""
        self.server.runtime.announcements.announce("task_changed", id, owner, self.worker)
        if self._listener is not None:
            self._soon(self._rows.do(announce, id, self.worker))

    def heard(self, id: str, owner: str | None, worker: str) -> None:
        """A process has announced that a task has changed; from the database, which does not name the owner,
        without an id if any may have. Thread-safe."""
        if self._loop is not None and not (owner is None and worker == self.worker):
            try:
                self._loop.call_soon_threadsafe(self._notify, id, owner, worker)
            except RuntimeError:  # the loop is closed: this server has been left
                pass

    def _notify(self, id: str, owner: str | None, worker: str) -> None:
        """Notify who waits for a change of a task, of any task without an id; `owner` is None if it is not
        known."""
        if owner is None and self._listener is None:
            return  # this server has been left meanwhile
        if self.is_worker and not worker:
            self._woken.set()  # a task may wait for a worker
        for event in self._waiting.get(id, ()):
            event.set()
        if worker != self.worker and id in self._runs:
            self._soon(self._end_cancelled([id]))
        runtime = self.server.runtime
        watching: dict[tuple[str, str], list[Any]] = {}
        for each in list(runtime.dispatchers):
            if owner in (None, each.principal):
                watched = runtime.features.watched_tasks(each.changes)
                for task in ({id} & watched) if id else watched:
                    watching.setdefault((task, each.principal), []).append(each.changes)
        for (task, principal), changes in watching.items():
            self._soon(self._notify_clients(task, principal, changes))

    async def _notify_clients(self, id: str, owner: str, watching: list[Any]) -> None:
        record = await self.read(id, owner)
        if record is not None:
            for changes in watching:
                self.server.runtime.features.task_changed(changes, record)


def _internal_error(problem: str) -> str:
    return dumps({"code": InternalError.code, "message": problem})


def on_other_hosts() -> bool:
    """Whether the database is a server, which may be away for a while, and not a file."""
    url: str = TASKS_DATABASE.read()
    return url.startswith("postgres")


def _left_behind(server: TaskServer, record: TaskRecord | None) -> TaskRecord | None:
    """Return a task if no process runs it, and its tool has to end what it has begun elsewhere."""
    if record is None or not record.is_open or not _is_resumable(server, record.tool):
        return None
    return record if workers.is_left(record, time.time()) else None


def _is_resumable(server: TaskServer, tool: str) -> bool:
    plan = server.runtime.plans.tools.get(tool)
    return plan is not None and bool(plan.tool.resumable)

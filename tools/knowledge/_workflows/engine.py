"""The persistence of runs: DBOS records each step before the next one begins, in SQLite beside the store or
in its PostgreSQL database.

DBOS is imported and started with the first run of a process, or if an ended server has left unfinished runs.
`is_any_left_behind` finds those by a locked file for each process that runs workflows. An unlocked file
belongs to a server that has ended; its runs continue in this process. Workflows run in an event loop of DBOS,
their calls in the server's loop. All functions here block; threads call them.
"""

from __future__ import annotations

import asyncio
import fcntl
import hashlib
import json
import os
from contextlib import suppress
from secrets import token_hex
from threading import Lock

from fastrpc import FastrpcError
from fastrpc.settings import STATE_DIR

from .. import _settings
from . import definition, interpreter, sampling, stepping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dbos import WorkflowStatus

    from fastrpc import Server

    from .._store.workflows import Kept
    from .definition import Workflow

LONGEST_RUN = 31 * 86_400
"""Seconds. Together with the bounds on steps, it bounds every run."""
SCHEDULES_SECONDS = 5.0
"""How often a process checks for schedules that another one has made."""
UNFINISHED = ["PENDING", "ENQUEUED", "DELAYED"]


class WorkflowsUnavailable(FastrpcError):
    """Workflows cannot run here."""


class LeftBehind(BaseException):
    """A run stops here and continues in another process. Not an Exception, which DBOS would record as the
    run's end."""


class Place:
    """Where a process runs workflows: the server, and the loop that serves. Set before the first run."""

    server: Server | None = None
    loop: asyncio.AbstractEventLoop | None = None


_starting = Lock()
_engines: list[Engine] = []
_registered: list[Any] = []
"""DBOS keeps these functions for the life of the process, so they are registered once."""


def current() -> Engine:
    """Return this process's engine, which is started if need be. Raises WorkflowsUnavailable."""
    with _starting:
        if _is_begun():
            return _engines[0]
        _engines[:] = [Engine()]
    _engines[0].catch_up()
    return _engines[0]


def new_id(workflow: str, task: str = "") -> str:
    """Return an id for a run of a workflow: the same each time for a task, by its id."""
    return f"{workflow}:{hashlib.sha256(task.encode()).hexdigest()[:16] if task else token_hex(8)}"


def is_any_left_behind() -> bool:
    """Whether a server that has ended has left unfinished runs. Fast: it tries to lock one file for each
    server."""
    return any(_left_behind())


def is_needed() -> bool:
    """Whether this process has work without a request: unfinished runs of ended servers, or, before its
    engine is started, workflows that a time or a file triggers. Fast, as `is_any_left_behind`."""
    return is_any_left_behind() or (not _is_begun() and has_triggers())


def has_triggers() -> bool:
    """Whether a workflow that a time or a file triggers was ever created."""
    return os.path.exists(_triggers_path())


def note_triggers() -> None:
    """Make servers that share the state folder check for such workflows."""
    os.makedirs(_folder(), mode=0o700, exist_ok=True)
    os.close(os.open(_triggers_path(), os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))


def _is_begun() -> bool:
    return bool(_engines) and _engines[0].pid == os.getpid()


def resume_left_behind() -> None:
    """Continue those runs in this process. Raises WorkflowsUnavailable."""
    current().resume()


class Engine:
    """DBOS, started. Raises WorkflowsUnavailable if it cannot be."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self.process = token_hex(8)
        try:
            from dbos import DBOS

            from . import serializing
        except ImportError as error:
            raise WorkflowsUnavailable(
                f'workflows need the library {error.name}: pip install "fastrpc-mcp[workflows]"'
            ) from None
        server = Place.server
        if server is None or Place.loop is None:
            raise WorkflowsUnavailable("workflows run only in a server")
        self._lock = _locked(_lock_path(self.process))
        self._resuming = Lock()
        if not _registered:
            _registered.append(DBOS.workflow(name="run")(_run))
            _registered.append(DBOS.workflow(name="scheduled")(_scheduled))
        self._run = _registered[0]
        try:
            # Callers over HTTP differ from those over stdio: their runs continue where they began.
            DBOS(
                config={
                    "name": "fastrpc-http" if server.over_http else "fastrpc-stdio",
                    "system_database_url": _url(),
                    "executor_id": self.process,
                    "application_version": "1",
                    "serializer": serializing.json_serializer(),
                    "log_level": "CRITICAL",  # else it logs each cancelled run with its traceback
                    "max_executor_threads": 64,
                    "scheduler_polling_interval_sec": SCHEDULES_SECONDS,
                }
            )
            DBOS.launch()
        except Exception as error:
            DBOS.destroy()  # so that the next call may start it again
            self._unlock()
            raise WorkflowsUnavailable(f"the database of workflows: {type(error).__name__}") from error
        self._dbos = DBOS
        server.observe(self)

    def __call__(self, records: object) -> None:
        """Calls are not observed, only the end of serving."""

    def at_end(self) -> None:
        """Leave unfinished runs to the next server when serving has ended."""
        if self.pid != os.getpid():
            return
        left = self._dbos.list_workflows(
            executor_id=self.process, status=UNFINISHED, limit=1, load_input=False
        )
        self._dbos.destroy()
        if left:
            os.close(self._lock)
        else:
            self._unlock()

    def _unlock(self) -> None:
        """Record that no unfinished runs are left."""
        os.unlink(_lock_path(self.process))
        os.close(self._lock)

    def start(self, id: str, workflow: Workflow, starter: dict[str, Any], trigger: dict[str, Any]) -> None:
        """Begin a run, unless a run with this id (`new_id`) exists. `starter` identifies the user who began
        it: `principal`, `owner` of the workflow, `caller_owner`, `caller_class`."""
        from dbos import DBOSContextSetAuth, SetWorkflowID, SetWorkflowTimeout

        with (
            SetWorkflowID(id),
            SetWorkflowTimeout(LONGEST_RUN),
            DBOSContextSetAuth(starter["owner"], []),
        ):
            self._dbos.start_workflow(self._run, workflow.json, starter, trigger)

    def begin(self, cause: str, kept: Kept, trigger: dict[str, Any]) -> str:
        """Begin a run of a workflow in the name of its creator, unless it already has a run with this cause,
        and return its id. The id contains a hash of the owner, since others may have a workflow with the same
        id that the same time or file triggers. Raises BadWorkflow."""
        found = definition.read(json.loads(kept.definition))
        run = f"{found.id}:{hashlib.sha256(kept.owner.encode()).hexdigest()[:16]}-{cause}"
        self.start(run, found, json.loads(kept.starter), trigger)
        return run

    def schedule(self, owner: str, workflow: str, trigger: dict[str, Any]) -> None:
        """From now on begin runs of a workflow only at the times of its trigger, in this and all other
        servers of the kind."""
        self.unschedule(owner, workflow)  # this also removes the time of its last run
        self._dbos.apply_schedules(
            [
                {
                    "schedule_name": _schedule_name(owner, workflow),
                    "workflow_fn": _registered[1],
                    "schedule": trigger["expression"],
                    "cron_timezone": trigger.get("timezone"),
                    "context": {"owner": owner, "workflow": workflow},
                }
            ]
        )

    def unschedule(self, owner: str, workflow: str) -> None:
        """Stop beginning runs of a workflow by its schedule."""
        self._dbos.delete_schedule(_schedule_name(owner, workflow))

    def catch_up(self) -> None:
        """Begin one run of each workflow whose times have passed while no server ran."""
        from .schedules import missed

        self._schedule_what_is_kept()
        for each in self._dbos.list_schedules():
            times = missed(each["schedule"], each["cron_timezone"], each["last_fired_at"])
            if times:
                _begin_scheduled(times[-1], each["context"], times)

    def _schedule_what_is_kept(self) -> None:
        """Make the schedules match the stored workflows: a server may have been killed, or the disk full,
        between the two writes."""
        from .. import _store
        from .._store import workflows

        assert Place.server is not None
        scheduled = {each["schedule_name"]: each for each in self._dbos.list_schedules()}
        for kept in workflows.with_trigger(_store.current().database, "cron"):
            workflow = json.loads(kept.definition)
            trigger, name = workflow["trigger"], _schedule_name(kept.owner, workflow["id"])
            known = scheduled.pop(name, None)
            is_known = known is not None and (known["schedule"], known["cron_timezone"]) == (
                trigger["expression"],
                trigger.get("timezone"),
            )
            if not is_known and json.loads(kept.starter)["over_http"] == Place.server.over_http:
                self.schedule(kept.owner, workflow["id"], trigger)
        for name in scheduled:
            self._dbos.delete_schedule(name)

    def runs(
        self, owner: str, workflow: str, state: str, limit: int, offset: int = 0
    ) -> list[dict[str, Any]]:
        """Return an owner's runs after the first `offset`, the newest first, without their results; only
        those of one workflow, or in one state, if these are not empty."""
        found = self._dbos.list_workflows(
            user=owner, workflow_id_prefix=f"{workflow}:" if workflow else None, limit=limit, sort_desc=True,
            offset=offset, status=[name for name, of in STATES.items() if of == state] if state else None,
            load_input=False, load_output=False,
        )  # fmt: skip
        return [_head(each) for each in found]

    def run(self, owner: str, id: str, most_steps: int) -> dict[str, Any] | None:
        """Return a run with its last steps, and the definition that it follows; None if the owner has none
        with this id."""
        found = self._dbos.list_workflows(workflow_ids=[id], user=owner)
        if not found:
            return None
        head = _head(found[0])
        steps = stepping.shown(self._dbos.list_workflow_steps(id), head["state"])
        if head["state"] == "running" and steps and steps[-1]["state"] == "waiting":
            head["state"] = "waiting"
        args = found[0].input["args"] if found[0].input else [{}, {}, {}]
        more = {"definition": args[0], "input": args[2], "step_count": len(steps)}
        return {**head, **more, "steps": steps[-most_steps:]}

    def cancel(self, owner: str, id: str) -> bool | None:
        """Cancel a run. False: it had ended. None: the owner has none with this id."""
        found = self._dbos.list_workflows(workflow_ids=[id], user=owner, load_input=False)
        if not found:
            return None
        if found[0].status not in UNFINISHED:
            return False
        with self._resuming:  # or `resume` would continue a run that it has listed and that is cancelled now
            self._dbos.cancel_workflow(id)
        return True

    def resume(self) -> None:
        """Continue runs of processes that have ended."""
        for process, lock in _left_behind(keep=True):
            try:
                with self._resuming:
                    for each in self._dbos.list_workflows(
                        executor_id=process, status=["PENDING"], load_input=False, load_output=False
                    ):
                        self._dbos.resume_workflow(each.workflow_id)
                os.unlink(_lock_path(process))
            finally:
                os.close(lock)


async def _run(found: dict[str, Any], starter: dict[str, Any], trigger: dict[str, Any]) -> Any:
    """Run a workflow, as DBOS calls it."""
    assert Place.server is not None
    assert Place.loop is not None
    from dbos import DBOS

    run = DBOS.workflow_id
    assert run is not None
    steps = stepping.Steps(Place.server, Place.loop, run, current().process, starter)
    try:
        return await interpreter.run(found, trigger, steps)
    except asyncio.CancelledError:  # the server ends, or DBOS has recorded that the run is cancelled
        raise LeftBehind from None
    finally:
        with suppress(RuntimeError):  # the loop is closed: the server has ended
            Place.loop.call_soon_threadsafe(sampling.close, run)


def _scheduled(at: str, context: dict[str, str]) -> None:
    """Begin a run at its time; DBOS calls this in one of the servers."""
    _begin_scheduled(at, context, [])


def _begin_scheduled(at: str, context: dict[str, str], missed: list[str]) -> None:
    from .. import _store
    from .._store import workflows

    kept = workflows.kept(_store.current().database, context["owner"], context["workflow"])
    if kept is not None and json.loads(kept.definition)["trigger"]["type"] == "cron":
        current().begin(f"cron-{at}", kept, {"at": at, "missed": missed})


def _schedule_name(owner: str, workflow: str) -> str:
    return f"{owner}/{workflow}"


STATES = {
    "PENDING": "running",
    "ENQUEUED": "queued",
    "DELAYED": "queued",
    "SUCCESS": "completed",
    "ERROR": "failed",
    "MAX_RECOVERY_ATTEMPTS_EXCEEDED": "failed",
    "CANCELLED": "cancelled",
}


def _head(found: WorkflowStatus) -> dict[str, Any]:
    """Return the facts of a run, without its steps."""
    return {
        "id": found.workflow_id,
        "workflow": found.workflow_id.partition(":")[0],
        "state": STATES[found.status],
        "started_at": (found.created_at or 0) / 1000,
        "ended_at": (found.completed_at or 0) / 1000,
        "output": found.output,
        "error": "" if found.error is None else str(found.error),
    }


def _url() -> str:
    """Return the database of runs: the store's, if it is PostgreSQL, else a SQLite file beside it."""
    from .._store.kind import KNOWLEDGE

    url: str = _settings.DATABASE.read()
    if url and not url.startswith("sqlite:"):
        return url
    path = (url.removeprefix("sqlite:///") or KNOWLEDGE.default_path).removesuffix(".sqlite3")
    path += "-runs.sqlite3"
    os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
    return f"sqlite:///{path}"


# --- the processes that run workflows on this machine -------------------------------------------------------


def _folder() -> str:
    return os.path.join(STATE_DIR.read(), "workflows")


def _triggers_path() -> str:
    """Return the path of the file that exists once a workflow was created that a time or a file triggers."""
    return _lock_path("").removesuffix(".lock") + "triggers"


def _lock_path(process: str) -> str:
    place = hashlib.sha256(_settings.DATABASE.read().encode()).hexdigest()[:8]
    over_http = Place.server is not None and Place.server.over_http
    return os.path.join(_folder(), f"{place}-{'http' if over_http else 'stdio'}-{process}.lock")


def _locked(path: str) -> int:
    """Return the descriptor of a file that this process has made and locked."""
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    file = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def _left_behind(*, keep: bool = False) -> Iterator[tuple[str, int]]:
    """Yield processes that have ended and left unfinished runs. With `keep` each stays locked, by the yielded
    descriptor."""
    beginning = os.path.basename(_lock_path("")).removesuffix(".lock")
    try:
        names = sorted(os.listdir(_folder()))
    except OSError:
        return
    for name in names:
        if not (name.startswith(beginning) and name.endswith(".lock")):
            continue
        try:
            file = os.open(os.path.join(_folder(), name), os.O_RDWR | os.O_CLOEXEC)
        except OSError:
            continue
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(file)
            continue
        if not keep:
            os.close(file)
        yield name[len(beginning) : -len(".lock")], file

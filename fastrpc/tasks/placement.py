"""Decides which tasks a server leaves to the processes of `fastrpc worker`, and which a process may run."""

from __future__ import annotations

from fastrpc.settings import TASK_WORKERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.tasks.self_call import TaskServer


def leaves_to_workers(server: TaskServer, tool: str, after_seconds: float) -> bool:
    """Whether a call that becomes a task after so long is left to workers: one that becomes a task at once,
    and about which a worker can decide as this process would. A guard that is a function (`Server.guard`)
    may count, and know callers, in the process that serves; so may that of a policy, unless `is_shared`."""
    if after_seconds > 0 or not TASK_WORKERS.read():
        return False
    runtime = server.runtime
    plan = runtime.plans.tools.get(tool)
    if plan is None or plan.guard is None:
        return plan is not None
    if not leaves_guarded(server):
        return False
    return sum(len(each.guards) for _, each in runtime.mount_path_of(plan.tool)) == 1


def leaves_guarded(server: TaskServer) -> bool:
    """Whether workers with the same guard run tasks of a guarded server."""
    guard = server.runtime.task_guard
    return bool(TASK_WORKERS.read()) and guard is not None and bool(guard.is_shared)


def guards_of(server: TaskServer, is_worker: bool) -> tuple[str, ...]:
    """Return the guards (`TaskRecord.guard`) of the tasks that a process may run. A guarded server may run
    those without a guard, which are older than its guard; a guarded worker not, since it does not know the
    callers of an unguarded server."""
    guard = server.runtime.task_guard
    if guard is None:
        return ("",)
    return (guard.place,) if is_worker else ("", guard.place)

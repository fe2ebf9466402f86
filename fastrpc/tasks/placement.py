"""Decides which tasks a server leaves to the processes of `fastrpc worker`."""

from __future__ import annotations

from fastrpc.settings import TASK_WORKERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.tasks.self_call import TaskServer


def leaves_to_workers(server: TaskServer, tool: str, after_seconds: float) -> bool:
    """Whether a call that becomes a task after so long is left to workers: one that becomes a task at once,
    and that no guard decides about. A guard has its counters and its callers in the process that serves."""
    if after_seconds > 0 or not TASK_WORKERS.read():
        return False
    plan = server.runtime.plans.tools.get(tool)
    return plan is not None and plan.guard is None

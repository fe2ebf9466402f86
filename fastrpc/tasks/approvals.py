"""Approvals for which tasks wait: withdrawn with their task, which goes on once its approval is over."""

from __future__ import annotations

from fastrpc.tasks import store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from fastrpc.engine.ports import ApprovalGates
    from fastrpc.tasks.record import TaskRecord
    from fastrpc.tasks.rows import TaskRows


async def withdraw(rows: TaskRows, gates: ApprovalGates, id: str) -> None:
    """Withdraw the approval that a cancelled task waited for. Raises StorageError."""
    approval = await rows.do(store.approval_of, id)
    if approval:
        await rows.logged(gates.withdraw(approval, "its task was cancelled"))


async def proceeding(
    rows: TaskRows,
    gates: ApprovalGates,
    server: str,
    worker: str,
    until: float,
    now: float,
    guards: Sequence[str],
) -> list[TaskRecord]:
    """Give a worker the tasks whose clients have been asked to approve the call, and others have decided, or
    no one in time; return them. Raises StorageError."""
    asked = await rows.do(store.asked_about_approvals, server, guards)
    over = await gates.over([approval for _, approval in asked]) if asked else []
    found = []
    for id, approval in asked:
        if approval in over:
            record = await rows.do(store.proceed, id, approval, worker, until, now)
            if record is not None:
                found.append(record)
    return found

"""`Gates`: approvals that no call waits for, for work that outlives its call, such as a workflow or a task.

An approval is a row of the guard's database like that of a call: approvers see it in the same lists, and
decide with the same commands and webhooks. It may wait for days. It is bound to the caller and to everything
that is shown, so the same question, asked again after a crash, has the same approval. A gate always asks,
independently of the policy. A decision is valid without a time limit. Waiting takes a coroutine and no
thread.
"""

from __future__ import annotations

from dataclasses import dataclass

from fastrpc.errors import Reworded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fastrpc.callers import Caller
    from fastrpc.guard.approvals.asking import Approvals
    from fastrpc.guard.approvals.store import Approval
    from fastrpc.guard.policy.approval_config import ApprovalConfig

    OnEvent = Callable[[str, Caller, Approval], object]

KIND = "gate"


@dataclass(eq=False)
class Gates:
    """Asks for the callers of one server; implements `fastrpc.engine.ports.ApprovalGates`. `approvals`
    returns those of calls, whose watcher the first question creates. `config`
    returns the policy's current table ``approvals``. `on_event` is called with ``asked``, ``approved``,
    ``rejected``, ``used``. For the event loop that serves. Methods also raise StorageError."""

    server: str
    approvals: Callable[[], Approvals]
    caller_of: Callable[[str], Caller]
    config: Callable[[], ApprovalConfig]
    on_event: OnEvent

    async def ask(
        self, principal: str, name: str, shown: Mapping[str, Any], *, risk: str, seconds: float
    ) -> str:
        """Ask for an approval, and return its id. Raises ApprovalError for a question that cannot be shown,
        and if too many approvals wait."""
        from fastrpc.guard.approvals.binding import Binding
        from fastrpc.guard.approvals.canonical import Unbindable
        from fastrpc.guard.approvals.store import ApprovalError, Question

        watcher, caller = await self.approvals().watcher(), self.caller_of(principal)
        config = self.config()
        with Reworded(Unbindable, ApprovalError):
            binding = Binding(
                caller=caller.principal,
                server=self.server,
                kind=KIND,
                name=name,
                arguments=shown,
                schema={},
                policy="",
            )
        question = Question(
            binding=binding,
            owner=caller.owner,
            caller_class=caller.caller_class,
            risk=risk,
            rule="",
            reason="",
            approvers=config.approvers,
            timeout_seconds=seconds,
            most_waiting=config.most_waiting,
            rejection_seconds=seconds,
        )
        asked = await watcher.run(watcher.store.ask, question)
        if asked.is_new:
            self.on_event("asked", caller, asked.approval)
        return asked.approval.id

    async def decision(self, approval_id: str) -> tuple[bool, str, str]:
        """Wait for the decision of a person or the end of the time, and return it. Raises ApprovalError for
        an unknown approval."""
        import asyncio

        from fastrpc.guard.approvals.store import APPROVED, REJECTED, USED, VOID, WAITING

        watcher = await self.approvals().watcher()
        before = await watcher.run(watcher.store.get, approval_id)
        if before.state == WAITING:
            decided = watcher.watch(approval_id)
            try:
                await asyncio.wait({decided}, timeout=max(0.0, before.expires_at - watcher.store.clock()))
            finally:
                watcher.forget(approval_id, decided)
        found = await watcher.run(watcher.store.get, approval_id)
        if found.state in (APPROVED, USED):
            used = await watcher.run(watcher.store.use, approval_id, found.digest)
            if used is not None:  # else it was used before a crash, or long ago
                self._note(("approved", "used"), used)
            return True, found.decided_by or "", found.comment or ""
        if found.state == REJECTED:
            self._note(("rejected",), found)
            return False, found.decided_by or "", found.comment or ""
        why = found.comment if found.state == VOID else None
        return False, "", why or "no decision in time"

    async def over(self, ids: list[str]) -> list[str]:
        """Return those of some approvals that no longer wait for a decision."""
        from fastrpc.guard.approvals.store import WAITING

        watcher = await self.approvals().watcher()
        states = await watcher.run(watcher.store.states, ids)
        return [id for id in ids if states.get(id) != WAITING]

    async def withdraw(self, approval_id: str, why: str) -> None:
        """Make an approval void, unless a call has used it."""
        watcher = await self.approvals().watcher()
        await watcher.run(watcher.store.withdraw, approval_id, why)

    def _note(self, events: tuple[str, ...], approval: Approval) -> None:
        caller = self.caller_of(approval.caller)
        for event in events:
            self.on_event(event, caller, approval)

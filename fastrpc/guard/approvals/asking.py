"""`Approvals`: waits until a person has approved a call, and returns the arguments that this person changed.

The approval is a row of the guard's database; approvers decide with `fastrpc approvals` or by webhook. The
server also asks, by the first of these ways that is available:

* a form at the client (MCP: elicitation), unless the risk is critical;
* a menu at the server's terminal, if the setting ASK_TERMINAL allows it;
* otherwise it holds the call for `hold_seconds` and sends progress notifications (at most `MOST_HELD` calls
  in a process), then returns a result that asks the client to call again with the same arguments.

A held call is a suspended coroutine and takes no thread. Before the call runs, the caller, the policy and the
tool's schema are checked again, and one update of the row consumes the approval (`store`). Without a database
there are only forms.
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic

from fastrpc import diagnostics
from fastrpc.callers import Caller, current_user
from fastrpc.engine.call import BecomesTask
from fastrpc.errors import Reworded, ToolError
from fastrpc.guard.approvals import at_terminal, extra_params, form
from fastrpc.guard.approvals.binding import Binding
from fastrpc.guard.approvals.canonical import Unbindable, canonical, order
from fastrpc.guard.policy import risks
from fastrpc.guard.refusals import (
    ApprovalPending,
    ApprovalRejected,
    ApprovalTimedOut,
    TooManyApprovals,
)
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc.engine.ports import HeldTask
    from fastrpc.engine.request import Request
    from fastrpc.guard.approvals.store import Approval
    from fastrpc.guard.approvals.watching import ApprovalWatcher
    from fastrpc.guard.policy.approval_config import ApprovalConfig
    from fastrpc.guard.policy.decisions import Verdict
    from fastrpc.storage.database import Database

    OnEvent = Callable[[str, "CallToApprove", "Approval"], object]

FIRST_SECONDS, PROGRESS_SECONDS = 0.1, 5.0
"""Until the first progress notification, and between two."""
MOST_HELD = 1000
"""Calls that one process holds, 10 KB each. The client of a further one has to call again at once."""
MOST_ATTEMPTS = 4
"""How often a call requests a new approval after another call has used its approval."""


@dataclass(eq=False)
class CallToApprove:
    """A call that a person has to approve. `schema` is the tool's. `check_current` is called just before the
    call runs, and raises GuardRefusal if it is no longer allowed."""

    call: CallInfo
    caller: Caller
    verdict: Verdict
    policy: str
    config: ApprovalConfig
    schema: Mapping[str, Any]
    check_current: Callable[[], None]
    void: tuple[str, ...] = ()
    """A text for each approval of the call that is void, with the reason."""
    approval: str = ""
    """The id of the approval that the call has used, if approvals are stored."""

    @property
    def version(self) -> str:
        return self.call.context.protocol_version

    def rejected(self, message: str, **data: Any) -> ApprovalRejected:
        return ApprovalRejected(message, self.version, **data)

    def rejected_by(self, approval: Approval) -> ApprovalRejected:
        why = f": {approval.comment}" if approval.comment else ""
        text = f"{self.call.name} was not approved by {approval.decided_by}{why}"
        return self.rejected(text, approval=approval.id)

    def timed_out(self, **data: Any) -> ApprovalTimedOut:
        message = f"{self.call.name} was not approved within {self.config.timeout_seconds:g} s"
        return ApprovalTimedOut(message, self.version, **data)

    def binding(self, server: str) -> Binding:
        """Raises ApprovalRejected for arguments that no person can be asked about."""
        with Reworded(Unbindable, self.rejected, f"{self.call.name} needs an approval, but "):
            return Binding(
                caller=self.caller.principal,
                server=server,
                kind=self.call.kind,
                name=self.call.name,
                arguments=self.call.arguments,
                schema=self.schema,
                policy=self.policy,
            )

    def extra_params(self) -> str:
        """Return the other params of the request in the form in which they are stored and shown. Raises
        ApprovalRejected for params that no person can be shown."""
        request = self._request
        before = f"{self.call.name} needs an approval, but of what the request says besides: "
        with Reworded(Unbindable, self.rejected, before):
            return "" if request is None else extra_params.kept(request.method, request.params)

    def say_besides(self, kept: str) -> None:
        """Have the call run with the other params that were shown, not with those of its request."""
        request = self._request
        if request is not None:
            request.params = extra_params.taken(kept, request.method, request.params)

    @property
    def task(self) -> HeldTask | None:
        """The task that the call belongs to, or may become."""
        request = self._request
        return None if request is None else request.dispatcher.call_task

    @property
    def may_become_task(self) -> bool:
        """Whether the client accepts a task for a call of a tool without the option for it."""
        request = self._request
        if request is None or self.call.kind != "tool" or self.version != STATELESS:
            return False
        dispatcher = request.dispatcher
        makes_tasks: bool = dispatcher.makes_tasks and dispatcher.runtime.makes_tasks_of_approvals
        return makes_tasks and bool(request.declares_tasks)

    async def claim(self) -> None:
        """Have the call's task begin its function in this process only. Raises ApprovalRejected."""
        if self.task is not None and not await self.task.claim():
            raise self.rejected(f"{self.call.name} does not run here: its task has ended, or runs elsewhere")

    @property
    def _request(self) -> Request | None:
        channel: Any = self.call.context._channel
        return None if channel is None else channel.request

    def check_unchanged(self, binding: Binding) -> None:
        """Raise ApprovalRejected if the arguments are no longer those that were hashed and shown: a default
        that calls share may have been changed meanwhile."""
        if self.binding(binding.server).digest != binding.digest:
            raise self.rejected(
                f"the approval of {self.call.name} is void: its arguments have changed meanwhile",
                approval=self.approval,
            )

    def confirm_at_start(self, refused: Callable[[BaseException], BaseException]) -> None:
        """Have the call refused if hooks or middleware, which run after the guard, change the approved
        arguments. `refused` is called with the refusal, and returns it."""
        approved = order(canonical(self.call.bound_arguments()))

        def confirm() -> None:
            try:
                is_same = order(canonical(self.call.bound_arguments())) == approved
            except ValueError:
                is_same = False
            if not is_same:
                error = self.rejected(
                    f"{self.call.name} does not run: a hook or middleware of the server has changed the "
                    "arguments that were approved",
                    approval=self.approval,
                )
                raise refused(error)

        self.call.confirm = confirm


class Approvals:
    """Asks about the calls of one server. `database` opens the guard's database, on a thread, at the first
    question; None: there is no database. `on_event` is called with ``asked``, ``approved``, ``rejected``,
    ``used``."""

    def __init__(
        self, server: str, database: Callable[[], Database] | None = None, on_event: OnEvent | None = None
    ) -> None:
        self._server = server
        self._open = database
        self._on_event = on_event
        self._kept: tuple[asyncio.AbstractEventLoop, ApprovalWatcher] | None = None
        self._problems = diagnostics.Once("error")

    async def __call__(self, asked: CallToApprove) -> dict[str, Any]:
        """Return the arguments, which the approver may have changed, once the call may run.

        Raises ApprovalRejected, ApprovalTimedOut, TooManyApprovals, what `check_current` raises, and
        ApprovalPending if the client has to call again.
        """
        binding = asked.binding(self._server)
        if self._open is None:
            await self._by_form_alone(asked, binding)
            return {}
        from fastrpc.storage.errors import StorageError

        try:
            return await self._by_row(await self.watcher(), asked, binding)
        except StorageError as error:
            self._problems.write(f"an approval cannot be stored: {error}")
            raise asked.rejected(f"{asked.call.name} needs an approval, which cannot be stored now") from None

    async def watcher(self) -> ApprovalWatcher:
        """Return the watcher of the running event loop, with its store. Raises StorageError."""
        from fastrpc.guard.approvals.store import ApprovalStore
        from fastrpc.guard.approvals.watching import ApprovalWatcher

        assert self._open is not None
        loop = asyncio.get_running_loop()
        if self._kept is None or self._kept[0] is not loop:
            database = await asyncio.to_thread(self._open)
            self._kept = loop, ApprovalWatcher(database, ApprovalStore(database))
        return self._kept[1]

    # --- by a row of the database ---------------------------------------------------------------------------

    async def _by_row(
        self, watcher: ApprovalWatcher, asked: CallToApprove, binding: Binding
    ) -> dict[str, Any]:
        if asked.task is not None and asked.task.approval:
            await self._still_waits(watcher, asked, asked.task.approval)
        for _ in range(MOST_ATTEMPTS):
            approval = await self._asked(watcher, asked, binding)
            if approval.state == "waiting":
                await self._decided(watcher, asked, binding, approval)
                approval = await watcher.run(watcher.store.get, approval.id)
                if approval.state_at(watcher.store.clock()) in ("waiting", "expired"):
                    raise asked.timed_out(approval=approval.id)
                self._note(approval.state, asked, approval)
            if approval.state == "rejected":
                raise asked.rejected_by(approval)
            if approval.state == "void":
                raise asked.rejected(f"{approval.id} is void: {approval.comment}", approval=approval.id)
            asked.check_current()
            await asked.claim()
            used = await watcher.run(watcher.store.use, approval.id, approval.digest)
            if used is not None:
                asked.approval = used.id
                self._note("used", asked, used)
                asked.check_unchanged(binding)
                asked.say_besides(used.extra_params)
                return dict(json.loads(used.edited_arguments)) if used.edited_arguments else {}
        raise asked.rejected(f"the approvals of {asked.call.name} were used by other calls")

    @staticmethod
    async def _still_waits(watcher: ApprovalWatcher, asked: CallToApprove, approval_id: str) -> None:
        """Raise ApprovalTimedOut or ApprovalRejected if the approval that a task waited for before, in
        another process or while its client was asked, has expired or was rejected."""
        from fastrpc.guard.approvals.store import UnknownApproval

        try:
            approval = await watcher.run(watcher.store.get, approval_id)
        except UnknownApproval:
            return
        if approval.state_at(watcher.store.clock()) == "expired":
            raise asked.timed_out(approval=approval.id)
        if approval.state == "rejected":
            raise asked.rejected_by(approval)

    async def _asked(self, watcher: ApprovalWatcher, asked: CallToApprove, binding: Binding) -> Approval:
        """Return the existing approval for the call, or a new one. Raises TooManyApprovals."""
        from fastrpc.guard.approvals.store import Question, TooManyWaiting

        config, call, caller = asked.config, asked.call, asked.caller
        question = Question(
            binding=binding,
            owner=caller.owner,
            caller_class=caller.caller_class,
            risk=asked.verdict.risk,
            rule=asked.verdict.rule,
            reason=asked.verdict.reason,
            approvers=config.approvers,
            may_edit=call.kind == "tool" and config.editable.match(call.name),
            timeout_seconds=config.timeout_seconds,
            most_waiting=config.most_waiting,
            rejection_seconds=config.valid_seconds,
            extra_params=asked.extra_params(),
        )
        try:
            found = await watcher.run(watcher.store.ask, question)
        except TooManyWaiting as error:
            raise TooManyApprovals(str(error), asked.version) from None
        asked.void = found.void
        if found.is_new:
            self._note("asked", asked, found.approval)
        return found.approval

    async def _decided(
        self, watcher: ApprovalWatcher, asked: CallToApprove, binding: Binding, approval: Approval
    ) -> None:
        """Wait until a person has decided. Raises ApprovalTimedOut, and ApprovalPending."""
        from fastrpc.guard.approvals.store import CLIENT, TERMINAL, may_approve

        left = approval.expires_at - watcher.store.clock()
        besides, seconds = approval.extra_params, asked.config.timeout_seconds
        question = form.text(asked.call, asked.verdict, binding.shown, besides, seconds)
        key = form.key_of(binding.digest, besides)
        ways: tuple[tuple[str, str, Callable[[str], Coroutine[Any, Any, bool]]], ...] = (
            (CLIENT, asked.caller.principal, lambda text: form.accepts(asked.call, key, text)),
            (TERMINAL, current_user(), at_terminal.accepts),
        )
        for channel, by, accepts in ways:
            if question is not None and may_approve(approval, by, channel):
                await self._waits(asked, approval, is_held=channel == TERMINAL)
                try:
                    await self._by_answer(watcher, asked, approval, left, accepts(question), by, channel)
                except ToolError:
                    continue  # no person can be asked there
                return
        await self._held(watcher, asked, approval, left)

    async def _by_answer(
        self,
        watcher: ApprovalWatcher,
        asked: CallToApprove,
        approval: Approval,
        left: float,
        answering: Coroutine[Any, Any, bool],
        by: str,
        channel: str,
    ) -> None:
        """Wait for the answer of one person, while others may decide. Raises what `answering` does, and
        ApprovalTimedOut."""
        from fastrpc.guard.approvals.store import ApprovalDecision, NotWaiting

        answer, others = asyncio.ensure_future(answering), watcher.watch(approval.id)
        try:
            await self._first_of(asked, approval, (answer, others), left)
            if answer.done():
                decision = ApprovalDecision(
                    answer.result(), by, channel, valid_seconds=asked.config.valid_seconds
                )
                with suppress(NotWaiting):  # another person has decided first
                    await watcher.run(watcher.store.decide, approval.id, decision)
            elif not others.done():
                raise asked.timed_out(approval=approval.id)
        finally:
            watcher.forget(approval.id, others)
            answer.cancel()
            await asyncio.gather(answer, return_exceptions=True)

    async def _held(
        self, watcher: ApprovalWatcher, asked: CallToApprove, approval: Approval, left: float
    ) -> None:
        """Hold the call. Raises BecomesTask if its client accepts a task, which then holds it, and otherwise
        ApprovalPending before the client gives up: it has to call again."""
        if asked.may_become_task:
            raise BecomesTask
        is_task = watcher.count < MOST_HELD and await self._waits(asked, approval, is_held=True)
        hold = left if is_task else min(asked.config.hold_seconds, left) if watcher.count < MOST_HELD else 0.0
        decided = watcher.watch(approval.id)
        try:
            await self._first_of(asked, approval, (decided,), hold)
            if decided.done():
                return
        finally:
            watcher.forget(approval.id, decided)
        if hold >= left:
            raise asked.timed_out(approval=approval.id)
        raise ApprovalPending(
            "".join(f"{each}. " for each in asked.void)
            + f"{approval.id} is waiting for the approval of a person. "
            f"Call {asked.call.name} again with the same arguments",
            asked.version,
            approval=approval.id,
        )

    @staticmethod
    async def _waits(asked: CallToApprove, approval: Approval, *, is_held: bool) -> bool:
        """Notify the call's task, if it has one, that it waits; return whether it is a task."""
        if asked.task is None:
            return False
        return await asked.task.waits(approval.id, waits_for(approval), is_held=is_held)

    @staticmethod
    async def _first_of(
        asked: CallToApprove, approval: Approval, futures: tuple[asyncio.Future[Any], ...], seconds: float
    ) -> None:
        """Wait at most `seconds` until one of `futures` is done, and send progress notifications."""
        began, wait = monotonic(), FIRST_SECONDS
        while (passed := monotonic() - began) < seconds:
            if passed:
                asked.call.context.progress(passed, seconds, waits_for(approval))
            limit = min(wait, seconds - passed)
            done, _ = await asyncio.wait(futures, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            if done:
                return
            wait = PROGRESS_SECONDS

    # --- without a database ---------------------------------------------------------------------------------

    async def _by_form_alone(self, asked: CallToApprove, binding: Binding) -> None:
        from fastrpc.time_limit import TimeLimit

        name, seconds = asked.call.name, asked.config.timeout_seconds
        if risks.is_critical(asked.verdict.risk) or asked.config.approvers:
            raise asked.rejected(f"{name} cannot be approved through the client that calls it")
        # a client of 2026-07-28 sends the call again with the answer, and may have changed other params
        shown: str = asked.call.context.once(form.key_of(binding.digest, ""), asked.extra_params)
        question = form.text(asked.call, asked.verdict, binding.shown, shown, seconds)
        if question is None:
            raise asked.rejected(
                f"{name} needs an approval, but its arguments are too long for a form of the client"
            )
        try:
            with TimeLimit(seconds):
                accepted = await form.accepts(asked.call, form.key_of(binding.digest, shown), question)
        except TimeoutError:
            raise asked.timed_out() from None
        except ToolError as error:
            raise asked.rejected(f"{name} needs the approval of a person: {error}") from None
        if not accepted:
            raise asked.rejected(f"The call of {name} was not approved")
        asked.check_current()
        asked.check_unchanged(binding)
        asked.say_besides(shown)

    def _note(self, event: str, asked: CallToApprove, approval: Approval) -> None:
        if self._on_event is not None:
            self._on_event(event, asked, approval)


def waits_for(approval: Approval) -> str:
    """Return the message for a client whose call waits: the approval, and who may decide."""
    who = ", ".join(approval.approvers.split("\n")) or "a person"
    if risks.is_critical(approval.risk):
        who += ", not the caller,"
    return f"waiting for the approval of {who}: {approval.id}"

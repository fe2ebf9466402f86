"""Makes the audit records of the calls that a guarded server has answered or refused.

An allowed call is recorded after its response: `CallAudit` is an observer (`Server.observe`) with
`wants_content`. It hashes, and looks up the guard's decision, on the observers' thread, so calls take no
longer; but if they come faster than they can be recorded, they wait. Calls that the guard refuses are
recorded at once, by `refused`. A record has salted hashes of the arguments as received, and of the result or
error as sent. Calls whose records are lost before they reach this observer are stated in the log as missing.
`log` writes the records.

In mode ``strict`` (`StrictCallAudit`) an allowed call is recorded twice, each time with fsync: as ``begun``
before its function is called, and with its outcome before its response is sent. A call that cannot be
recorded is refused; a response that cannot be recorded is replaced by an error. Waiting takes no thread, and
concurrent records share one fsync.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial

from fastrpc._core.audit_lines import CallLines
from fastrpc.engine.messages import CALLED_BY, TASK
from fastrpc.guard.audit.log import AuditLog, AuditUnavailable
from fastrpc.guard.audit.records import Record, SaltedHash, fields_json, salted_hash, secrets_seen
from fastrpc.guard.refusals import AuditFailed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from concurrent.futures import Future
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc._core.recorder import CallRecord, RecordBatch
    from fastrpc.callers import Caller
    from fastrpc.engine.held_answers import LetGo
    from fastrpc.engine.ports import HeldTask
    from fastrpc.guard.approvals.asking import CallToApprove
    from fastrpc.guard.approvals.store import Approval
    from fastrpc.guard.guard import CallerEntry, Guard
    from fastrpc.guard.policy.decisions import Verdict

    Content = bytes | tuple[bytes, bytes] | None

CATEGORY = "mcp_server"
APPROVALS = "approval"
LONGEST_ID = 100
"""Characters of a request's id in a record; the client chooses the id."""
MOST_DIGITS = 18
"""Digits of an id that is written as a number."""
MOST_COMMON = 4096
"""How many combinations of caller, target and outcome have their common fields cached as JSON."""


class CallAudit:
    """Records the calls of one server in `log`. `guard` must be set before the first call."""

    wants_content = may_wait = True

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self.guard: Guard
        self.durable: StrictCallAudit | None = None
        """The recorder for which the guard has calls wait."""
        self._lines = CallLines(self._unlikely)
        self._known = (-1, -1)
        """The numbers of the secrets and of the decisions for which the common fields were made."""

    @property
    def log(self) -> AuditLog:
        """The log into which it records."""
        return self._log

    def at_end(self) -> None:
        """Close the log, which signs its records: serving has ended."""
        self._log.close()

    def missed(self, count: int) -> None:
        """State in the log that `count` calls, which came too fast, have no record."""
        self._log.state_lost(count, "calls came faster than they could be recorded")

    def __call__(self, records: list[CallRecord]) -> None:
        """Record calls, except those that the guard has refused, which `refused` has recorded."""
        self._log.append_all(self._record_of(each) for each in records if each.outcome != "refused")

    def take_batch(self, batch: RecordBatch) -> None:
        """Record a batch of calls, as `__call__` does."""
        known, common = (secrets_seen(), self.guard.generation), self._lines.common
        if known != self._known or len(common) > MOST_COMMON:
            self._known = known
            common.clear()
        self._log.append_all(self._lines.fields(batch))

    def _unlikely(self, call: CallRecord) -> Record:
        """Return the record of a call, and cache the fields that it has in common with others."""
        entry = self.guard.entry(call.principal)
        if call.kind != "tool" or call.name in entry.decisions or call.outcome == "unknown":
            common = fields_json(self._common_fields(entry, call)).encode()
            self._lines.common[call.principal, call.kind, call.name, call.outcome] = common
        return self._record_of(call)

    def _common_fields(self, entry: CallerEntry, call: CallRecord) -> dict[str, Any]:
        return {
            **self._of_target(call, entry.caller, call.outcome),
            "decision": "deny" if call.outcome == "unknown" else "allow",
            **self._judged(entry, call.kind, call.name),
        }

    def _about(
        self, category: str, caller: Caller, action: str, outcome: str, target: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        return {
            "category": category,
            "actor": caller.principal,
            "class": caller.caller_class,
            "action": action,
            **(target or {}),
            "outcome": outcome,
            "policy": self.guard.policy.version,
        }

    def _of_target(
        self, call: CallRecord | CallInfo, caller: Caller, outcome: str, category: str = CATEGORY
    ) -> dict[str, Any]:
        from fastrpc.guard.audit.names import fields_of_unknown

        is_uri = call.kind == "resource"
        is_known = outcome != "unknown" if is_uri else self.guard.knows(call.kind, call.name)
        target = {"tool": call.name} if is_known else fields_of_unknown(call.name)
        return self._about(category, caller, CALLED_BY[call.kind], outcome, target)

    def _record_of(self, call: CallRecord) -> dict[str, Any]:
        fields = {
            **self._common_fields(self.guard.entry(call.principal), call),
            "request": call.id.decode("utf-8", "replace")[:LONGEST_ID],
            "arguments": _hash_of(call.arguments),
            "bind_us": round(call.bind_us, 1),
            "guard_us": round(call.guard_us, 1),
            "run_us": round(call.run_us, 1),
            "encode_us": round(call.encode_us, 1),
            "total_us": round(call.total_us, 1),
            "bytes": call.size,
            **self._decided(call),
            **_of_task(call),
        }
        if call.id.isdigit() and len(call.id) <= MOST_DIGITS:
            fields["request"] = int(call.id)
        if call.size:
            fields["result"] = _hash_of(call.answer)
        if call.trace:
            fields["trace"] = call.trace
        return fields

    def _judged(self, entry: CallerEntry, kind: str, name: str) -> dict[str, str]:
        """Return the risk and the rule for all calls of a target, {} if they differ from call to call."""
        verdict = self.guard.general_verdict(entry, kind, name)
        if verdict is None:
            return {}
        return {"risk": verdict.risk, "rule": verdict.rule} if verdict.rule else {"risk": verdict.risk}

    def _decided(self, call: CallRecord | CallInfo) -> dict[str, str]:
        """Return the guard's decision about this call in particular: risk, rule, policy, approval."""
        decided: dict[Guard, dict[str, str]] = call.decided or {}
        return decided.get(self.guard, {})

    def refused(self, call: CallInfo, caller: Caller, verdict: Verdict, error: BaseException) -> None:
        """Record a call that the guard has refused."""
        from fastrpc.guard.reasons import because

        fields = self._of_call_before(call, caller, "refused")
        approval = (getattr(error, "data", None) or {}).get("approval")
        self._append_refusal(
            {
                **fields,
                **({"approval": approval} if approval else {}),
                "decision": "deny",
                "why": getattr(error, "reason", type(error).__name__),
                "rule": verdict.rule,
                "reason": verdict.reason,
                "risk": verdict.risk,
                "because": because(self.guard.policy, call, caller, verdict, error),
            }
        )

    def request(self, request: Any, principal: str, outcome: str, answer: bytes | None) -> None:
        """Record a request that is not a call. Raises AuditFailed in mode ``strict`` if that fails."""
        import json

        caller = self.guard.entry(principal).caller
        text = json.dumps(request.params, sort_keys=True).encode("utf-8", "surrogatepass")
        fields: dict[str, Any] = {
            **self._about(CATEGORY, caller, request.method[:LONGEST_ID], outcome),
            "decision": "deny" if outcome == "refused" else "allow",
            "request": request.id.decode("utf-8", "replace")[:LONGEST_ID],
            "arguments": salted_hash(text),
            **({} if answer is None else {"result": salted_hash(answer)}),
        }
        try:
            self._log.append(fields)
        except AuditUnavailable as error:
            raise _failed(error, True, request.version) from None

    def task_refused(self, caller: Caller, tool: str, reason: str, task: str) -> None:
        """Record that the call of a task does not begin, since its principal is another caller now. `task` is
        the task's id."""
        target = {"tool": tool}
        self._append_refusal(
            {
                **self._about(CATEGORY, caller, CALLED_BY["tool"], "refused", target),
                "decision": "deny",
                "why": "not_allowed",
                "reason": reason,
                "task": task,
            }
        )

    def approval(self, event: str, asked: CallToApprove, approval: Approval) -> None:
        """Record an event of an approval: ``asked``, ``approved``, ``rejected``, ``used``."""
        about = self._of_target(asked.call, asked.caller, event, APPROVALS)
        self._append_approval({**about, **_of_task(asked.call)}, approval)

    def gate(self, event: str, caller: Caller, approval: Approval) -> None:
        """Record an event of an approval that no call waits for, as `approval` does."""
        self._append_approval(self._about(APPROVALS, caller, approval.name, event), approval)

    def _append_approval(self, about: dict[str, Any], approval: Approval) -> None:
        fields = {
            **about,
            "approval": approval.id,
            "risk": approval.risk,
            "rule": approval.rule,
            "digest": approval.digest.hex(),
            "by": approval.decided_by,
            "channel": approval.channel,
        }
        if approval.extra_params:
            fields["extra_params"] = salted_hash(approval.extra_params.encode())
        with suppress(AuditUnavailable):  # in mode strict, `begun` then refuses the call before it runs
            self._log.append(fields)

    def _append_refusal(self, fields: dict[str, Any]) -> None:
        self._log.append(fields)

    def _of_call_before(self, call: CallInfo, caller: Caller, outcome: str) -> dict[str, Any]:
        """Return the record of a call without a response yet; its bound arguments are hashed."""
        import json

        from fastrpc.guard.approvals.canonical import Unbindable, canonical

        try:
            arguments = canonical(call.arguments)
        except Unbindable:  # objects of other classes: hash their `repr`
            arguments = call.arguments
        text = json.dumps(arguments, sort_keys=True, default=repr, skipkeys=True)
        return {
            **self._of_target(call, caller, outcome),
            **_of_task(call),
            "arguments": salted_hash(text.encode("utf-8", "surrogatepass")),
        }


class StrictCallAudit(CallAudit):
    """Records calls before they run and before their responses; see the module's docstring."""

    def __init__(self, log: AuditLog) -> None:
        super().__init__(log)
        self.durable = self
        self._refusal: Future[str] | None = None
        """Done when the last recorded refusal is on disk."""

    def __call__(self, records: list[CallRecord]) -> None:
        """Record calls that were never answered, such as cancelled ones."""
        super().__call__([each for each in records if not each.size])

    def take_batch(self, batch: RecordBatch) -> None:
        self(batch.calls())

    async def begun(self, call: CallInfo) -> None:
        """Record that an allowed call is about to run; return when that is on disk. Raises AuditFailed."""
        from fastrpc.engine.held_answers import note

        entry = self.guard.entry(call.principal)
        fields = {**self._of_call_before(call, entry.caller, "begun"), "decision": "allow"}
        fields |= self._judged(entry, call.kind, call.name) | self._decided(call)
        version = call.context.protocol_version
        try:
            future = self._log.append_durably(fields)
        except AuditUnavailable as error:
            raise _failed(error, False, version) from None
        note(call, await _on_disk(future, version))

    def _append_refusal(self, fields: dict[str, Any]) -> None:
        from concurrent.futures import Future

        try:
            self._refusal = self._log.append_durably(fields)
        except AuditUnavailable as error:
            self._refusal = Future()
            self._refusal.set_exception(error)

    async def flush_refusal(self, call: CallInfo) -> None:
        """Return when the last recorded refusal, that of this call, is on disk. Raises AuditFailed."""
        if self._refusal is not None:
            await _on_disk(self._refusal, call.context.protocol_version)

    def before_answer(self, call: CallRecord, begun: str | None, let_go: LetGo) -> None:
        """Release the response of a call when its outcome is on disk. Refusals are on disk already."""
        if call.outcome == "refused":
            let_go(None)
            return
        fields = self._record_of(call)
        if begun is not None:
            fields["begun"] = begun
        try:
            self._log.append(fields, partial(_let_go, let_go, begun is not None))
        except AuditUnavailable as error:
            let_go(partial(_failed, error, begun is not None))


async def _on_disk(future: Future[str], version: str) -> str:
    """Return the id of a record when it is on disk. Raises AuditFailed."""
    from asyncio import shield, wrap_future

    try:
        return await shield(wrap_future(future))
    except AuditUnavailable as error:
        raise _failed(error, False, version) from None


def _let_go(let_go: LetGo, has_run: bool, identifier: str, error: Exception | None) -> None:
    let_go(None if error is None else partial(_failed, error, has_run))


def _failed(error: Exception, has_run: bool, version: str) -> AuditFailed:
    what = "The call has run, but is not recorded" if has_run else "The call cannot be recorded"
    return AuditFailed(f"{what}: {error}", version, has_run=has_run)


def _of_task(call: CallRecord | CallInfo) -> dict[str, str]:
    """Return the members of a record for the task as which a call runs: its id, or nothing."""
    task: HeldTask | None = (call.decided or {}).get(TASK)
    return {"task": task.named} if task is not None and task.named else {}


def _hash_of(content: Content) -> SaltedHash | str:
    if content is None:
        return "omitted"
    if isinstance(content, bytes):
        return salted_hash(content)
    salt, digest = content
    return SaltedHash(salt=salt.hex(), sha256=digest.hex())

"""Makes records of the audit log of the calls that a guarded server has answered or refused.

A call that was allowed is recorded behind its answer: `CallAudit` is an observer (`Server.observe`) that
wants content. Hashing, and looking up what the guard has decided, is done here, on the observers' thread:
nothing is added to the path of a call. What the guard refuses is recorded at once, by `refused`. A record has
salted hashes of the arguments, as the client sent them, and of the result or error, as it went out. What does
not fit between calls and this is stated in the log as missing. Writing is left to `log`.
"""

from __future__ import annotations

from fastrpc.engine.request import CALLED_BY
from fastrpc.guard.audit.records import SaltedHash, salted_hash

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc._core.recorder import CallRecord
    from fastrpc.guard.audit.log import AuditLog
    from fastrpc.guard.callers.caller import Caller
    from fastrpc.guard.guard import Guard
    from fastrpc.guard.policy.decisions import Verdict

    Content = bytes | tuple[bytes, bytes] | None

CATEGORY = "mcp_server"
LONGEST_ID = 100
"""Characters of a request's id, which its client chooses."""


class CallAudit:
    """Records the calls of one server in `log`. `guard` is to be set before the first call."""

    wants_content = True

    def __init__(self, log: AuditLog) -> None:
        self._log = log
        self.guard: Guard | None = None

    def at_end(self) -> None:
        """Sign what has been recorded: serving has ended."""
        self._log.close()

    def missed(self, count: int) -> None:
        """State that so many calls have no record: they came faster than records are taken."""
        self._log.state_lost(count, "calls came faster than they could be recorded")

    def __call__(self, records: list[CallRecord]) -> None:
        """Record calls that were not refused by the guard, which has recorded those itself."""
        for each in records:
            if each.outcome != "refused":
                self._log.append(self._record_of(each))

    def _record_of(self, call: CallRecord) -> dict[str, Any]:
        guard = self.guard
        assert guard is not None
        entry = guard.entry(call.principal)
        fields = {
            "category": CATEGORY,
            "actor": entry.caller.principal,
            "class": entry.caller.caller_class,
            "action": CALLED_BY[call.kind],
            "tool": call.name,
            "request": _id_of(call.id),
            "outcome": call.outcome,
            "decision": "deny" if call.outcome == "unknown" else "allow",
            "policy": guard.policy.version,
            "arguments": _hash_of(call.arguments),
            "bind_us": round(call.bind_us, 1),
            "guard_us": round(call.guard_us, 1),
            "run_us": round(call.run_us, 1),
            "encode_us": round(call.encode_us, 1),
            "total_us": round(call.total_us, 1),
            "bytes": call.size,
        }
        verdict = guard.general_verdict(entry, call.kind, call.name)
        if verdict is not None:
            fields["risk"] = verdict.risk
            if verdict.rule:
                fields["rule"] = verdict.rule
        if call.size:
            fields["result"] = _hash_of(call.answer)
        if call.trace:
            fields["trace"] = call.trace
        return fields

    def refused(self, call: CallInfo, caller: Caller, verdict: Verdict, error: BaseException) -> None:
        """Record a call that the guard has refused. Its arguments are hashed as they were bound."""
        import json

        assert self.guard is not None
        text = json.dumps(call.arguments, sort_keys=True, default=repr, skipkeys=True)
        self._log.append(
            {
                "category": CATEGORY,
                "actor": caller.principal,
                "class": caller.caller_class,
                "action": CALLED_BY[call.kind],
                "tool": call.name,
                "outcome": "refused",
                "decision": "deny",
                "policy": self.guard.policy.version,
                "why": getattr(error, "reason", type(error).__name__),
                "rule": verdict.rule,
                "reason": verdict.reason,
                "risk": verdict.risk,
                "arguments": salted_hash(text.encode("utf-8", "surrogatepass")),
            }
        )


def _id_of(text: bytes) -> int | str:
    """Return the id of a request; an integer as such, since text has to be searched for secrets."""
    if text.isdigit() and len(text) < 19:
        return int(text)
    return text.decode("utf-8", "replace")[:LONGEST_ID]


def _hash_of(content: Content) -> SaltedHash | str:
    if content is None:
        return "omitted"
    if isinstance(content, bytes):
        return salted_hash(content)
    salt, digest = content
    return SaltedHash(salt=salt.hex(), sha256=digest.hex())

"""The errors that a caller gets when the guard refuses a call: one class for each reason.

The codes depend on the version: see `fastrpc.protocol.refusal_codes`.
"""

from __future__ import annotations

from typing import Any

from fastrpc.errors import ProtocolError, ToolError
from fastrpc.guard.policy.config import Rate
from fastrpc.protocol.refusal_codes import SESSION_CODES, STATELESS_CODES
from fastrpc.protocol.versions import STATELESS


class GuardRefusal(ProtocolError):
    """The guard has refused a call. `reason` is a word for programs, in the error's ``data``."""

    outcome = "refused"
    reason = "not_allowed"

    def __init__(self, message: str, version: str, **data: Any) -> None:
        super().__init__(message, {"reason": self.reason, **data})
        self.code = (STATELESS_CODES if version == STATELESS else SESSION_CODES)[self.reason]


class NotAllowed(GuardRefusal):
    """The policy does not allow the call."""


class ApprovalRejected(GuardRefusal):
    """A person has rejected the call, or no person could be asked."""

    reason = "approval_rejected"


class ApprovalTimedOut(GuardRefusal):
    """No person has answered in time. For a tool this is a result with ``isError: true``, which the model
    reads, unless `has_code` is set."""

    reason = "approval_timed_out"
    has_code = False

    def answering(self, kind: str, server: Any) -> BaseException:
        return self if self.has_code or kind != "tool" else ToolError(self.message)


class ApprovalPending(GuardRefusal):
    """No person has answered yet, and the server cannot hold the call longer: the client repeats it. For a
    tool this is a result, which the model reads."""

    reason = "approval_waiting"

    def answering(self, kind: str, server: Any) -> BaseException:
        return ToolError(self.message) if kind == "tool" else self


class TooManyApprovals(GuardRefusal):
    """The maximum number of the caller's calls wait for an approval already."""

    reason = "too_many_approvals"


class BudgetExceeded(GuardRefusal):
    """A budget is used up. `budget`, `limit`, `used`, `resets_at` are in the error's ``data``."""

    reason = "budget"


class BudgetUnavailable(GuardRefusal):
    """The call cannot be counted against its budgets at present."""

    reason = "budget_unavailable"


class RateUnavailable(GuardRefusal):
    """The call cannot be counted against its rates at present. `retry_after_seconds` is in ``data``."""

    reason = "rate_unavailable"


class RateExceeded(GuardRefusal):
    """The caller calls too often. `retry_after_seconds` is in the error's ``data``; `rate` is the exceeded
    rate, and `about` the tool that it applies to, "" for all."""

    rate: Rate
    about = ""

    reason = "rate_limit"


class AuditFailed(GuardRefusal):
    """The call or its outcome cannot be recorded. `has_run`: whether it has run (in the error's ``data``)."""

    reason = "audit_unavailable"

"""The errors that a caller gets when the guard refuses a call: one class for each reason.

In the four versions with sessions the codes are -32000 to -32005, which JSON-RPC 2.0 (5.1) leaves to servers.
MCP 2026-07-28 reserves that range, so its codes are HTTP's: 403, 408, 402, 429, 503, with the same ``data``.
"""

from __future__ import annotations

from typing import Any

from fastrpc.errors import ProtocolError, ToolError
from fastrpc.guard.policy.config import Rate
from fastrpc.protocol.versions import STATELESS


class GuardRefusal(ProtocolError):
    """The guard has refused a call. `reason` is a word for programs, in the error's ``data``."""

    outcome = "refused"
    session_code = -32000
    stateless_code = 403
    reason = "not_allowed"

    def __init__(self, message: str, version: str, **data: Any) -> None:
        super().__init__(message, {"reason": self.reason, **data})
        self.code = self.stateless_code if version == STATELESS else self.session_code


class NotAllowed(GuardRefusal):
    """The policy does not allow the call."""


class ApprovalRejected(GuardRefusal):
    """A person has rejected the call, or no person could be asked."""

    session_code = -32001
    reason = "approval_rejected"


class ApprovalTimedOut(GuardRefusal):
    """No person has answered in time. For a tool this is a result with ``isError: true``, which the model
    reads, unless `has_code` is set."""

    session_code = -32002
    stateless_code = 408
    reason = "approval_timed_out"
    has_code = False

    def answering(self, kind: str, server: Any) -> BaseException:
        return self if self.has_code or kind != "tool" else ToolError(self.message)


class ApprovalPending(GuardRefusal):
    """No person has answered yet, and the server cannot hold the call longer: the client repeats it. For a
    tool this is a result, which the model reads."""

    session_code = -32002
    stateless_code = 408
    reason = "approval_waiting"

    def answering(self, kind: str, server: Any) -> BaseException:
        return ToolError(self.message) if kind == "tool" else self


class TooManyApprovals(GuardRefusal):
    """The maximum number of the caller's calls wait for an approval already."""

    session_code = -32001
    reason = "too_many_approvals"


class BudgetExceeded(GuardRefusal):
    """A budget is used up. `budget`, `limit`, `used`, `resets_at` are in the error's ``data``."""

    session_code = -32003
    stateless_code = 402
    reason = "budget"


class BudgetUnavailable(GuardRefusal):
    """The call cannot be counted against its budgets at present."""

    session_code = -32005
    stateless_code = 503
    reason = "budget_unavailable"


class RateUnavailable(GuardRefusal):
    """The call cannot be counted against its rates at present. `retry_after_seconds` is in ``data``."""

    session_code = -32005
    stateless_code = 503
    reason = "rate_unavailable"


class RateExceeded(GuardRefusal):
    """The caller calls too often. `retry_after_seconds` is in the error's ``data``; `rate` is the exceeded
    rate, and `about` the tool that it applies to, "" for all."""

    rate: Rate
    about = ""

    session_code = -32004
    stateless_code = 429
    reason = "rate_limit"


class AuditFailed(GuardRefusal):
    """The call or its outcome cannot be recorded. `has_run`: whether it has run (in the error's ``data``)."""

    session_code = -32005
    stateless_code = 503
    reason = "audit_unavailable"

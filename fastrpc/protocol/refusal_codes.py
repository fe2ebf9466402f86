"""The codes of the errors with which a guard refuses a call, by the reason in the error's ``data``.

In the four versions with sessions the codes are -32000 to -32005, which JSON-RPC 2.0 (5.1) leaves to servers.
MCP 2026-07-28 reserves that range, so its codes are HTTP's: 403, 408, 402, 429, 503, with the same ``data``.
"""

from __future__ import annotations

SESSION_CODES = {
    "not_allowed": -32000,
    "approval_rejected": -32001,
    "approval_timed_out": -32002,
    "approval_waiting": -32002,
    "too_many_approvals": -32001,
    "budget": -32003,
    "budget_unavailable": -32005,
    "rate_limit": -32004,
    "rate_unavailable": -32005,
    "audit_unavailable": -32005,
}
STATELESS_CODES = {
    "not_allowed": 403,
    "approval_rejected": 403,
    "approval_timed_out": 408,
    "approval_waiting": 408,
    "too_many_approvals": 403,
    "budget": 402,
    "budget_unavailable": 503,
    "rate_limit": 429,
    "rate_unavailable": 503,
    "audit_unavailable": 503,
}


def code_in_session(code: int, data: object) -> int:
    """Return the code that sessions have for an error of 2026-07-28 with this code and data."""
    reason = data.get("reason") if isinstance(data, dict) else None
    if isinstance(reason, str) and STATELESS_CODES.get(reason) == code:
        return SESSION_CODES[reason]
    return code

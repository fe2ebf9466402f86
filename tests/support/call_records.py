"""Records of calls of tools, as the audit log has them."""

from __future__ import annotations

from typing import Any


def call_record(tool: str, **others: Any) -> dict[str, Any]:
    """Return the record of an allowed call, with other values for some members."""
    return {
        "category": "mcp_server",
        "actor": "ada#1",
        "class": "staff",
        "action": "tools/call",
        "tool": tool,
        "outcome": "ok",
        "decision": "allow",
        "risk": "low",
        "policy": "p1",
        **others,
    }


def timed_call(tool: str, actor: Any = "ada#1", outcome: str = "ok", ms: float = 10.0) -> dict[str, Any]:
    """Return what figures count of a call: one that was denied has taken no time."""
    is_denied = outcome in ("refused", "unknown")
    return {
        "category": "mcp_server",
        "actor": actor,
        "action": "tools/call",
        "tool": tool,
        "outcome": outcome,
        "decision": "deny" if is_denied else "allow",
        **({} if is_denied else {"total_us": ms * 1000}),
    }

"""An approval as JSON, which commands print and webhooks send. Times are in UTC, in the form of RFC 3339."""

from __future__ import annotations

import json

from fastrpc.guard.times import rfc3339_or_none

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.guard.approvals.store import Approval


def described(approval: Approval, now: float) -> dict[str, Any]:
    """Return an approval as a JSON object; `now` is in seconds since 1970."""
    edited = approval.edited_arguments
    return {
        "id": approval.id,
        "state": approval.state_at(now),
        "caller": approval.caller,
        "class": approval.caller_class,
        "server": approval.server,
        "kind": approval.kind,
        "name": approval.name,
        "arguments": _parsed(approval.arguments),
        "extra_params": json.loads(approval.extra_params) if approval.extra_params else None,
        "edited": None if edited is None else json.loads(edited),
        "prefix": None if approval.prefix is None else json.loads(approval.prefix)["words"],
        "risk": approval.risk,
        "rule": approval.rule,
        "reason": approval.reason,
        "approvers": approval.approvers.split("\n") if approval.approvers else [],
        "may_edit": bool(approval.may_edit),
        "digest": approval.digest.hex(),
        "policy": approval.policy,
        "asked_at": rfc3339_or_none(approval.asked_at),
        "expires_at": rfc3339_or_none(approval.expires_at),
        "decided_at": rfc3339_or_none(approval.decided_at),
        "decided_by": approval.decided_by,
        "channel": approval.channel,
        "comment": approval.comment,
        "valid_until": rfc3339_or_none(approval.valid_until),
        "uses_left": approval.uses_left,
        "used_at": rfc3339_or_none(approval.used_at),
    }


def _parsed(arguments: str) -> Any:
    """Return stored arguments: a text, if they were too long to be stored completely."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments

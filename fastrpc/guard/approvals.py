"""Asks a person whether a call may run: through the client, by a form (MCP: elicitation).

The form shows the tool, its risk and the exact arguments that were bound. Its question is named by their
digest, so that an answer never approves other arguments than those that were shown: a client of
2026-07-28 sends the call again with the answer, and could send others. A client's form is no trust
boundary, a client without a person may answer by itself: what is critical is refused here. A call that
waits costs no thread.
"""

from __future__ import annotations

import json
from hashlib import sha256

from fastrpc.errors import ToolError
from fastrpc.guard.policy import risks
from fastrpc.guard.refusals import ApprovalRejected, ApprovalTimedOut
from fastrpc.time_limit import TimeLimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc.guard.policy.decisions import Verdict

LONGEST_SHOWN = 4000


async def by_elicitation(call: CallInfo, verdict: Verdict, seconds: float) -> None:
    """Ask through the client of the call; return if the person accepts.

    Raises ApprovalRejected if the person declines or the client cannot ask one, and ApprovalTimedOut.
    """
    version = call.context.protocol_version
    if risks.rank(verdict.risk) >= risks.rank(risks.CRITICAL):
        raise ApprovalRejected(
            f"{call.kind} {call.name} is critical: it cannot be approved through the client that calls it",
            version,
        )
    try:
        async with TimeLimit(seconds):
            key = f"approval-{digest(call)}"
            answer = await call.context.elicit(question(call, verdict, seconds), key=key)
    except TimeoutError:
        raise ApprovalTimedOut(
            f"Nobody has approved {call.name} within {seconds:g} s: it was not run", version
        ) from None
    except ToolError as error:
        raise ApprovalRejected(f"{call.name} needs the approval of a person: {error}", version) from None
    if not answer.accepted:
        raise ApprovalRejected(f"The call of {call.name} was not approved", version)


def question(call: CallInfo, verdict: Verdict, seconds: float) -> str:
    """Return what the person is asked."""
    shown = json.dumps(call.arguments, ensure_ascii=False, indent=2, default=str)
    if len(shown) > LONGEST_SHOWN:
        shown = f"{shown[:LONGEST_SHOWN]}\n… {len(shown) - LONGEST_SHOWN} more characters"
    why = f"\n{verdict.reason}" if verdict.reason else ""
    return (
        f"May the {call.kind} {call.name} run? Risk: {verdict.risk}.{why}\n{shown}\n"
        f"No answer within {seconds:g} s means no."
    )


def digest(call: CallInfo) -> str:
    """Return what identifies a call: who calls what, with which arguments."""
    facts: list[Any] = [call.principal, call.kind, call.name, call.arguments]
    return sha256(json.dumps(facts, sort_keys=True, default=repr).encode()).hexdigest()

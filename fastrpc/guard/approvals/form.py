"""Asks a person whether a call may run, by a form of the client that calls (MCP: elicitation).

The form shows the tool, its risk and the exact arguments that were bound. Its question is named by the
digest of the approval, so that an answer never approves another call than the one that was shown: a client
of 2026-07-28 sends the call again with the answer, and could send another. A client's form is no trust
boundary, since a client without a person may answer by itself: what is critical is not asked here.
"""

from __future__ import annotations

from fastrpc.guard.approvals.binding import indented
from fastrpc.guard.approvals.display import visible_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc.guard.policy.decisions import Verdict

LONGEST_SHOWN = 4000
"""Characters of a question. A longer one is not asked by a form: its beginning is not what would run."""


async def accepts(call: CallInfo, digest: bytes, question: str) -> bool:
    """Return whether the person at the client accepts. Raises ToolError for a client that cannot ask, and
    InputRequired for one of 2026-07-28 that has not been asked yet."""
    answer: Any = await call.context.elicit(question, key=f"approval-{digest.hex()}")
    return bool(answer.accepted)


def text(call: CallInfo, verdict: Verdict, shown: str, seconds: float) -> str | None:
    """Return what the person is asked; None if it is too long for that."""
    why = f"\n{verdict.reason}" if verdict.reason else ""
    question = (
        f"May the {call.kind} {visible_name(call.name)} run? Risk: {verdict.risk}.{why}\n{indented(shown)}\n"
        f"No answer within {seconds:g} s means no."
    )
    return question if len(question) <= LONGEST_SHOWN else None

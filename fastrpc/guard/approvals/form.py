"""Asks a person whether a call may run, by a form of the client that calls (MCP: elicitation).

The form shows the tool, its risk, the exact arguments that were bound and what the request says besides. Its
question is named by digests of these, so that an answer never approves another call than the one that was
shown: a client of 2026-07-28 sends the call again with the answer, and could send another. A client's form is
no trust boundary, since a client without a person may answer by itself: what is critical is not asked here.
"""

from __future__ import annotations

from hashlib import sha256

from fastrpc.guard.approvals.binding import indented
from fastrpc.guard.approvals.display import visible_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc.guard.policy.decisions import Verdict

LONGEST_SHOWN = 4000
"""Characters of a question. A longer one is not asked by a form: its beginning is not what would run."""


def key_of(digest: bytes, extra_params: str) -> str:
    """Return the name of the question about a call, of which something is shown besides its arguments."""
    besides = f"-{sha256(extra_params.encode()).hexdigest()}" if extra_params else ""
    return f"approval-{digest.hex()}{besides}"


async def accepts(call: CallInfo, key: str, question: str) -> bool:
    """Return whether the person at the client accepts. Raises ToolError for a client that cannot ask, and
    InputRequired for one of 2026-07-28 that has not been asked yet."""
    answer: Any = await call.context.elicit(question, key=key)
    return bool(answer.accepted)


def text(call: CallInfo, verdict: Verdict, shown: str, extra_params: str, seconds: float) -> str | None:
    """Return what the person is asked; None if it is too long for that."""
    why = f"\n{verdict.reason}" if verdict.reason else ""
    besides = f"The request also has:\n{indented(extra_params)}\n" if extra_params else ""
    question = (
        f"May the {call.kind} {visible_name(call.name)} run? Risk: {verdict.risk}.{why}\n{indented(shown)}\n"
        f"{besides}No answer within {seconds:g} s means no."
    )
    return question if len(question) <= LONGEST_SHOWN else None

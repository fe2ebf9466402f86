"""Asks a person whether a call may run, by a form of the calling client (MCP: elicitation).

The form shows the tool, its risk, the exact bound arguments and the other params. The key of its question
consists of digests of these, so an answer only approves the call that was shown: a client of 2026-07-28 sends
the call again with the answer, and could send a different one. A client's form is not a trust boundary, since
a client without a person may answer by itself; so critical calls are not approved by forms.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

from fastrpc._core.call_info import CallInfo
from fastrpc.guard.approvals.binding import indented
from fastrpc.guard.approvals.display import visible_name
from fastrpc.guard.policy.decisions import Verdict

LONGEST_SHOWN = 4000
"""Characters of a question. A longer one is not asked by a form, which could show only its beginning."""


def key_of(digest: bytes, extra_params: str) -> str:
    """Return the key of the question about a call with these arguments and other params."""
    besides = f"-{sha256(extra_params.encode()).hexdigest()}" if extra_params else ""
    return f"approval-{digest.hex()}{besides}"


async def accepts(call: CallInfo, key: str, question: str) -> bool:
    """Return whether the person at the client accepts. Raises ToolError for a client that cannot ask, and
    InputRequired for one of 2026-07-28 that has not been asked yet."""
    answer: Any = await call.context.elicit(question, key=key)
    return bool(answer.accepted)


def text(call: CallInfo, verdict: Verdict, shown: str, extra_params: str, seconds: float) -> str | None:
    """Return the question to the person; None if it is too long for a form."""
    why = f"\n{verdict.reason}" if verdict.reason else ""
    besides = f"The request also has:\n{indented(extra_params)}\n" if extra_params else ""
    question = (
        f"May the {call.kind} {visible_name(call.name)} run? Risk: {verdict.risk}.{why}\n{indented(shown)}\n"
        f"{besides}No answer within {seconds:g} s means no."
    )
    return question if len(question) <= LONGEST_SHOWN else None

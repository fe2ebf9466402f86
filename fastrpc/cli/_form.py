"""Answers a server's questions on the terminal of this process (MCP, client features: elicitation).

Uses the terminal only while this process is in its foreground; otherwise the question is declined.
"""

from __future__ import annotations

import asyncio

from fastrpc.terminal.device import NoTerminal
from fastrpc.terminal.line_form import FormDeclined, LineTerminal, fill_in
from fastrpc.terminal.text import plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc.cli._feedback import Feedback
    from fastrpc.client.handlers import Elicited


def terminal_form(feedback: Feedback) -> Callable[[dict[str, Any]], Awaitable[Elicited]]:
    """Return a client's `on_elicit`: it asks the person at the terminal, one question at a time, and returns
    the filled-in form, or the action with which the person refused."""
    lock = asyncio.Lock()

    async def ask(params: dict[str, Any]) -> Elicited:
        async with lock:
            feedback.wipe()
            try:
                with LineTerminal() as terminal:
                    return await fill_in(terminal, params)
            except NoTerminal as obstacle:
                asked = plain(str(params.get("message", "")))
                feedback.write(f"fastrpc: the server asks {asked!r}: {obstacle}; the question is declined")
                return "decline"
            except FormDeclined as refused:
                action: Elicited = refused.action
                return action

    return ask

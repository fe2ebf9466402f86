"""Asks on the server's terminal whether a call may run, if the server is in the foreground and
``ASK_TERMINAL=1`` allows it. The person at the terminal is the user of the process."""

from __future__ import annotations

from fastrpc.errors import Reworded, ToolError
from fastrpc.settings import ASK_TERMINAL
from fastrpc.terminal.choices import Choice

YES, NO = "Approve", "Reject"


async def accepts(question: str) -> bool:
    """Return whether the person at the terminal approves; leaving the menu means no. Raises ToolError if no
    person can be asked there."""
    if not ASK_TERMINAL.read():
        raise ToolError("ASK_TERMINAL is not set")
    try:
        from fastrpc.terminal.device import NoTerminal
        from fastrpc.terminal.dialog import ask
    except ImportError:
        raise ToolError("this system has no terminals") from None
    with Reworded(NoTerminal, ToolError):
        action, answers = await ask([Choice("May it run?", [NO, YES])], question)
    return action == "accept" and answers == [YES]

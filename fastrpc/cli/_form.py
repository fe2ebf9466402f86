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
    from typing import Any

    from fastrpc.cli._feedback import Feedback
    from fastrpc.client.handlers import Elicited


class TerminalForm:
    """Answers elicitation requests by asking the person at the terminal; `ask` is a client's `on_elicit`."""

    def __init__(self, feedback: Feedback) -> None:
        self._feedback = feedback
        self._lock: asyncio.Lock | None = None

    async def ask(self, params: dict[str, Any]) -> Elicited:
        """Return the filled-in form, or the action with which the person refused."""
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:  # one question at a time
            self._feedback.wipe()
            try:
                with LineTerminal() as terminal:
                    return await fill_in(terminal, params)
            except NoTerminal as obstacle:
                asked = plain(str(params.get("message", "")))
                self._feedback.write(
                    f"fastrpc: the server asks {asked!r}: {obstacle}; the question is declined"
                )
                return "decline"
            except FormDeclined as refused:
                action: Elicited = refused.action
                return action

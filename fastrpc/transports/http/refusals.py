"""Logs refused requests over HTTP: at `info`, one line each, with a rate limit.

A line has the status, the method and path, the client's address, and the reason that was sent to the client.
It has no query, header or body, which may hold tokens and private data. At most `LINES` of each status are
written in `SECONDS`; the number of further ones is logged afterwards. Does nothing unless `info` is logged.
Code that refuses a request calls `note`.
"""

from __future__ import annotations

import asyncio
import json
from time import monotonic

from fastrpc import diagnostics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.transports.http.interfaces import Client

LINES = 20
SECONDS = 10.0
LONGEST_ANSWER = 64 * 1024
"""Bytes; the reason is not extracted from a longer response."""


class Count:
    """The refusals of one status within `SECONDS`."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.ends_at = 0.0
        self.lines = 0
        self.left_out = 0

    def admits(self) -> bool:
        """Whether one more line may be written; otherwise it is counted as omitted."""
        now = monotonic()
        if now >= self.ends_at:
            self.close()
            self.ends_at = now + SECONDS
        if self.lines < LINES:
            self.lines += 1
            return True
        if self.left_out == 0:
            asyncio.get_running_loop().call_later(self.ends_at - now, self._close_at_end)
        self.left_out += 1
        return False

    def close(self) -> None:
        """Log the number of omitted lines, if any, and start a new interval."""
        if self.left_out:
            diagnostics.write("info", f"{self.status}: {self.left_out} more within {SECONDS:g} s")
        self.lines = self.left_out = 0
        self.ends_at = 0.0

    def _close_at_end(self) -> None:
        if monotonic() >= self.ends_at:  # else a new interval has started
            self.close()


_counts: dict[int, Count] = {}


def note(
    status: int, reason: str | bytes, *, method: str = "", path: str = "", client: Client = None
) -> None:
    """Log that a request was refused; to be called in an event loop.

    `reason` is the message that was sent to the client, or the JSON-RPC error with it.
    """
    if diagnostics.level() > diagnostics.LEVELS["info"]:
        return
    if _counts.setdefault(status, Count(status)).admits():
        what = f" {method:.20} {path.replace(' ', '%20'):.200}" if method else ""
        diagnostics.write("info", f"{status}{what}{_from(client)}: {_words(reason):.400}")


def flush() -> None:
    """Log the numbers of omitted lines: the server ends."""
    for count in _counts.values():
        count.close()


def _from(client: Client) -> str:
    if not client:
        return ""
    host, port = client[:2]
    return f" from [{host}]:{port}" if ":" in host else f" from {host}:{port}"


def _words(reason: str | bytes) -> str:
    if isinstance(reason, str):
        return reason
    try:
        return (
            str(json.loads(reason)["error"]["message"]) if len(reason) <= LONGEST_ANSWER else "a long answer"
        )
    except (KeyError, TypeError, ValueError):
        return "no reason was given"

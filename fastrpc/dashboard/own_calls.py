"""`OwnCalls`: the calls that people make at the dashboard, as themselves.

A call is one that the server makes to itself (`fastrpc.tasks.self_call`) for the principal
``dashboard:NAME``: guard, hooks, limits, budgets and audit see it as any caller's. Its result is kept for the
person who has made it, for `KEPT_SECONDS`, in the process that has made it, which the other workers of its
server ask (`fastrpc.dashboard.serving`). Used on the event loop's thread.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from json import loads
from time import monotonic
from typing import Any

from fastrpc.callers import dashboard_principal
from fastrpc.errors import FastrpcError
from fastrpc.protocol.versions import CAPABILITIES_KEY, CLIENT_KEY, STATELESS, VERSION_KEY
from fastrpc.tasks.self_call import PROGRESS_TOKEN, SelfCall
from fastrpc.version import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc.server import Server

KEPT_SECONDS = 900.0
TIMER_SECONDS = 0.1
"""How much earlier than it should an event loop may call, at most: its clock is read once for each turn."""
MOST_KEPT = 200
MOST_RUNNING = 20
"""Calls of one person at once."""
LONGEST_RESULT = 1_000_000
"""Characters of JSON of a result that is kept."""


CANCELLED = "You have cancelled the call."
TOO_LONG = "The call has ended. Its result has {count} characters, too many to show."
TOO_MANY = "{count} of your calls are in flight: wait, or cancel one."
WORDS = (CANCELLED, TOO_LONG, TOO_MANY)
"""Texts that pages show in the visitor's language, with values for the names in braces."""


class TooManyCalls(FastrpcError):
    """The person has as many calls in flight as a person may have here. `values` are for the names in braces
    of the message."""

    def __init__(self) -> None:
        super().__init__(TOO_MANY)
        self.values = {"count": MOST_RUNNING}


@dataclass(frozen=True)
class ShownOwnCall:
    """A call of a person, as it was when this was made. `seconds` is how long it has taken, None before its
    end; the other members are those of `OwnCall`."""

    id: str
    tool: str
    typed: dict[str, str]
    seconds: float | None
    result: dict[str, Any] | None
    problem: str
    values: dict[str, Any] | None


class OwnCall:
    """A call of a person. `typed` has what the fields of its form had. When it has ended, it has a `result`,
    or a `problem`: why there is none, in the server's words, or one of `WORDS`, with `values`; then `at_end`
    is called."""

    def __init__(
        self, id: str, person: str, tool: str, typed: dict[str, str], at_end: Callable[[], object]
    ) -> None:
        self.id = id
        self.person = person
        self.tool = tool
        self.typed = typed
        self.began = monotonic()
        self.ended: float | None = None
        self.result: dict[str, Any] | None = None
        self.problem = ""
        self.values: dict[str, Any] | None = None
        self.done = asyncio.Event()
        self._at_end = at_end
        self._call: SelfCall

    def begin(self, server: Server, arguments: dict[str, Any]) -> None:
        """Make the call."""
        meta = {
            VERSION_KEY: STATELESS,
            CLIENT_KEY: {"name": "fastrpc dashboard", "version": __version__},
            CAPABILITIES_KEY: {},
            "progressToken": PROGRESS_TOKEN,
        }
        params = {"name": self.tool, "arguments": arguments, "_meta": meta}
        self._call = SelfCall(server, dashboard_principal(self.person), params, self, None)
        self._call.begin()

    def shown(self) -> ShownOwnCall:
        """Return the call as it is now."""
        seconds = None if self.ended is None else self.ended - self.began
        return ShownOwnCall(self.id, self.tool, self.typed, seconds, self.result, self.problem, self.values)

    def cancel(self) -> None:
        """End the call, unless it has ended."""
        if self.ended is None:
            self._call.cancel()
            self._end(CANCELLED, {})

    def _end(self, problem: str = "", values: dict[str, Any] | None = None) -> None:
        self.problem, self.values = problem, values
        self.ended = monotonic()
        self.done.set()
        self._at_end()

    # --- what the call says -------------------------------------------------------------------------------

    def notified(self, message: dict[str, Any]) -> None:
        """Progress is shown with the calls in flight."""

    def returned(self, result: str) -> None:
        if len(result) > LONGEST_RESULT:
            self._end(TOO_LONG, {"count": f"{len(result):,}"})
            return
        self.result = loads(result)
        self._end()

    def refused(self, error: str) -> None:
        self._end(str(loads(error).get("message", "")))


class OwnCalls:
    """The calls of a process's pages."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._calls: dict[tuple[str, str], OwnCall] = {}

    async def make(
        self,
        id: str,
        person: str,
        tool: str,
        typed: dict[str, str],
        arguments: dict[str, Any],
        seconds: float,
    ) -> OwnCall:
        """Make a call, unless the one with this id has been made, and return it once it has ended, or after
        `seconds`. Raises TooManyCalls."""
        found = await self.get(id, person)
        if found is None:
            self._make_room(person)
            found = OwnCall(id, person, tool, typed, self._drop_later)
            found.begin(self._server, arguments)  # which may raise: then there is no call
            self._calls[person, id] = found
        try:
            await asyncio.wait_for(found.done.wait(), seconds)
        except asyncio.TimeoutError:
            pass
        return found

    async def get(self, id: str, person: str) -> OwnCall | None:
        """Return a call of a person, None if there is none, or no longer."""
        self._drop()
        return self._calls.get((person, id))

    def _drop(self) -> None:
        before = monotonic() - KEPT_SECONDS
        self._calls = {
            key: each for key, each in self._calls.items() if each.ended is None or each.ended > before
        }

    def _drop_later(self) -> None:
        """Drop a call that has just ended once its time is over, although no one asks for it."""
        asyncio.get_running_loop().call_later(KEPT_SECONDS + TIMER_SECONDS, self._drop)

    def _make_room(self, person: str) -> None:
        if sum(each.person == person and each.ended is None for each in self._calls.values()) >= MOST_RUNNING:
            raise TooManyCalls
        for key in [key for key, each in self._calls.items() if each.ended is not None]:
            if len(self._calls) < MOST_KEPT:
                break
            del self._calls[key]

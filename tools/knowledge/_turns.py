"""`Turns`: limits concurrent costly work, in all and for each owner. Waiting owners take turns, so that one
with many requests does not delay the others.

    async with turns.of(owner):
        ...
"""

from __future__ import annotations

import asyncio

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import Future


class Turns:
    """Places for work in one event loop: `places` in all, `each` for one owner."""

    def __init__(self, places: int, each: int) -> None:
        self._free = places
        self._each = each
        self._running: dict[str, int] = {}
        self._waiting: dict[str, list[Future[None]]] = {}  # the owner who had the latest turn comes last

    def of(self, owner: str) -> Turn:
        """Return the context manager in which an owner works."""
        return Turn(self, owner)

    async def take(self, owner: str) -> None:
        """Wait for a place."""
        place: Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(owner, []).append(place)
        self._hand_out()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                self.give_back(owner)
            raise

    def give_back(self, owner: str) -> None:
        """Free a place and hand it on."""
        self._free += 1
        self._running[owner] -= 1
        if not self._running[owner]:
            del self._running[owner]
        if owner in self._waiting:
            self._waiting[owner] = self._waiting.pop(owner)
        self._hand_out()

    def _hand_out(self) -> None:
        """Give the free places to those who wait, one to each owner in turn."""
        while self._free:
            owner = next((each for each in self._waiting if self._running.get(each, 0) < self._each), None)
            if owner is None:
                return
            waiting = [each for each in self._waiting.pop(owner) if not each.done()]  # some were cancelled
            if waiting:
                self._free -= 1
                self._running[owner] = self._running.get(owner, 0) + 1
                waiting.pop(0).set_result(None)
            if waiting:
                self._waiting[owner] = waiting


class Turn:
    """One owner's place, for an `async with` block."""

    def __init__(self, turns: Turns, owner: str) -> None:
        self._turns = turns
        self._owner = owner

    async def __aenter__(self) -> None:
        await self._turns.take(self._owner)

    async def __aexit__(self, *_: object) -> None:
        self._turns.give_back(self._owner)

"""One object for each event loop that asks for it: loops cannot share tasks and processes."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

Thing = TypeVar("Thing")


class PerLoop(Generic[Thing]):
    """The objects of all loops; those of closed loops are dropped."""

    def __init__(self, make: Callable[[], Thing]) -> None:
        self._make = make
        self._things: dict[asyncio.AbstractEventLoop, Thing] = {}

    def current(self) -> Thing:
        """The object of the running loop, made at the first call."""
        loop = asyncio.get_running_loop()
        if loop not in self._things:
            self._things = {each: thing for each, thing in self._things.items() if not each.is_closed()}
            self._things[loop] = self._make()
        return self._things[loop]

    def taken(self) -> Thing | None:
        """Remove and return the object of the running loop, if it has one."""
        return self._things.pop(asyncio.get_running_loop(), None)

"""Has the monitors of a server, and of the servers mounted in it, poll while a client is connected.

`fastrpc.engine.monitor` is what polls; it is imported by a server that polls for something.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    from fastrpc.engine.monitor import Monitor
    from fastrpc.engine.ports import NotifiedDispatcher


class Monitors:
    """The monitors of a server and of the servers that are mounted in it, as its connections use them."""

    __slots__ = ("_dispatchers", "_mounts", "_server")

    def __init__(
        self, server: Any, mounts: Sequence[Any], dispatchers: Collection[NotifiedDispatcher]
    ) -> None:
        self._server = server
        self._mounts = mounts
        self._dispatchers = dispatchers

    def __iter__(self) -> Iterator[Monitor]:
        if self._server.watching is not None:
            yield self._server.watching
        for mounted in self._mounts:
            yield from mounted.runtime.monitors

    @property
    def needed(self) -> bool:
        """Whether there is a function to call, and no loop that does it."""
        return any(monitor.needed for monitor in self)

    def poll(self, dispatcher: NotifiedDispatcher) -> bool:
        """Call the functions before a list is made, unless an event loop calls them.

        Returns whether the list may be given again without coming here. The first list needs no loop, so that
        a script that asks for no more pays for none; the second one has the connection begin it.
        """
        waiting = [monitor for monitor in self if monitor.needed]
        if any(monitor.polled for monitor in waiting):
            dispatcher.outbound.begin_loop()
        for monitor in waiting:
            monitor.poll()
        return not waiting

    def begin(self, loop: AbstractEventLoop) -> None:
        """Call the functions from time to time in this loop, unless another one does."""
        for monitor in self:
            monitor.begin(loop)

    def begin_soon(self) -> None:
        """Begin in the loop of some connection; without any, each list calls the functions."""
        for dispatcher in list(self._dispatchers):
            dispatcher.changes.watch()

    def end(self, loop: AbstractEventLoop) -> None:
        """A connection of this loop has closed: go on in the loop of another one."""
        monitors = [monitor for monitor in self if monitor.loop is loop]
        for monitor in monitors:
            monitor.end()
        if monitors:
            self.begin_soon()

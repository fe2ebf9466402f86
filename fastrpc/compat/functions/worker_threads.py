"""Worker threads as AnyIO knows them: ``anyio.from_thread.run(…)`` in a synchronous function calls into the
event loop that its call came from, as where the originals run such functions, on AnyIO's own threads.

A worker is made known to AnyIO before a call, where the program has imported ``anyio.from_thread``; else it
costs the look-up of that name. A function that calls back could not do so on the loop's own thread: it is
kept on workers, if its module shows that it does, and a call that has done so counts as slow.
"""

from __future__ import annotations

import sys
from types import FunctionType

from fastrpc.engine import thread_pool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from typing import Any

MODULE = "anyio.from_thread"


class _Token:
    """Stands for a loop (``anyio.lowlevel.EventLoopToken``), and notes whether it was asked for."""

    def __init__(self, backend: Any, loop: AbstractEventLoop) -> None:
        self._backend = backend
        self.native_token = loop
        self.was_used = False

    @property
    def backend_class(self) -> Any:
        self.was_used = True
        return self._backend


class AnyioThreads:
    """What `fastrpc.engine.thread_pool` calls on a worker."""

    def begin(self, loop: AbstractEventLoop) -> None:
        """Make the running thread known to AnyIO as one of this loop."""
        if MODULE not in sys.modules:
            return
        from anyio import lowlevel
        from anyio._core._eventloop import get_async_backend, threadlocals

        token: Any = getattr(threadlocals, "current_token", None)
        if not hasattr(lowlevel, "EventLoopToken"):  # before AnyIO 4.11
            threadlocals.current_async_backend = get_async_backend("asyncio")
            threadlocals.current_token = loop
        elif type(token) is _Token and token.native_token is loop:
            token.was_used = False
        else:
            threadlocals.current_token = _Token(get_async_backend("asyncio"), loop)
        threadlocals.current_cancel_scope = None

    def called_back(self) -> bool:
        """Whether the running thread has called into its loop since `begin`."""
        if MODULE not in sys.modules:
            return False
        from anyio._core._eventloop import threadlocals

        token = getattr(threadlocals, "current_token", None)
        return type(token) is _Token and token.was_used


def keeps_to_threads(function: Any) -> bool:
    """Whether a function, or another one of its module, calls ``anyio.from_thread``."""
    if MODULE not in sys.modules:
        return False
    while not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None)
        function = inner or getattr(function, "func", None)
        if function is None:
            return False
    values = [function, *function.__globals__.values()]  # some of which may be proxies: they are not touched
    return any(
        value is sys.modules[MODULE]
        or (
            type(value) is FunctionType
            and (value.__module__ == MODULE or "from_thread" in value.__code__.co_names)
        )
        for value in values
    )


thread_pool.claims = AnyioThreads()

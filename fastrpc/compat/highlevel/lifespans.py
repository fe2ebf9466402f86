"""Lifespans that are put together: ``@lifespan`` and ``one | another`` of FastMCP 3, and those of providers.

A lifespan is a function of the server that returns an async context manager, or an async generator of one
value. Their values, dicts, are merged; they are left in reverse order.
"""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from contextlib import AbstractAsyncContextManager
    from typing import Any


class Lifespan:
    """A lifespan that can be put together with others by ``|``."""

    def __init__(self, fn: Callable[[Any], Any]) -> None:
        self._fn = fn

    def __call__(self, server: Any) -> AbstractAsyncContextManager[Any]:
        return entered(self._fn, server)

    def __or__(self, other: Callable[[Any], Any]) -> ComposedLifespan:
        if not callable(other):
            return NotImplemented
        return ComposedLifespan(self, other)

    def __ror__(self, other: Callable[[Any], Any]) -> ComposedLifespan:
        if not callable(other):
            return NotImplemented
        return ComposedLifespan(other, self)


class ContextManagerLifespan(Lifespan):
    """A lifespan of a function that returns an async context manager."""


class ComposedLifespan(Lifespan):
    """Two lifespans: the second is entered within the first, and its members win."""

    def __init__(self, left: Callable[[Any], Any], right: Callable[[Any], Any]) -> None:
        super().__init__(self._both)
        self._left = left
        self._right = right

    @asynccontextmanager
    async def _both(self, server: Any) -> AsyncIterator[dict[str, Any]]:
        async with entered(self._left, server) as outer, entered(self._right, server) as inner:
            yield {**(outer or {}), **(inner or {})}


def entered(function: Callable[[Any], Any], server: Any) -> AbstractAsyncContextManager[Any]:
    """Return the context manager of a lifespan function; an async generator is made one."""
    made: Any = function(server)
    if hasattr(made, "__aenter__"):
        found: AbstractAsyncContextManager[Any] = made
        return found
    return asynccontextmanager(lambda: made)()


def lifespan(fn: Callable[[Any], Any]) -> Lifespan:
    """Make an async generator of the server a lifespan: ``@lifespan``."""
    return Lifespan(fn)


def with_provider(function: Callable[[Any], Any] | None, provider: Any) -> Callable[[Any], Any]:
    """Return a lifespan that enters a provider's lifespan, then the server's own, and yields the value of
    that."""

    @asynccontextmanager
    async def both(server: Any) -> AsyncIterator[Any]:
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(provider.lifespan())
            if function is None:
                yield {}
            else:
                yield await stack.enter_async_context(entered(function, server))

    return both

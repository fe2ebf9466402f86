"""Enters a server's lifespan before the first list is answered: a lifespan may add tools, or remove some.

It is middleware for lists that takes itself out of the server when the lifespan has been entered.
"""

from __future__ import annotations

from fastrpc.compat.middleware.base import HOOK_OF, Middleware

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def entering_first(server: Any) -> Middleware:
    """Return the middleware that does so."""

    async def listed(context: Any, call_next: Any) -> Any:
        await server.runtime.lifespan.enter()
        if middleware in server._handlers:
            server._handlers.remove(middleware)
        return await call_next(context)

    middleware = Middleware()
    for method, hook in HOOK_OF.items():
        if method.endswith("/list"):
            setattr(middleware, hook, listed)
    return middleware

"""The HTTP request of the running call, as an ASGI scope: for `Context` and for functions that read headers.

Costs nothing over stdio: the transport's modules are not imported by it. Over HTTP the calls of a compat
server can always read it; on the fast path a scope is made when it is first read.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.transports.http.interfaces import Mapped

_HOME = "fastrpc.transports.http.current_request"


def current_http_request() -> Mapped | None:
    """Return the ASGI scope of the HTTP request that the running call came with; None over stdio, in memory,
    and outside a call.

    Its ``headers`` are pairs of bytes, the names in lower case. `starlette.requests.Request` takes it.
    """
    module = sys.modules.get(_HOME)
    if module is None:
        return None
    scope: Mapped | None = module.current_request()
    return scope


def current_transport() -> str | None:
    """Return ``streamable-http`` or ``sse`` in a call over HTTP, else None."""
    scope = current_http_request()
    return None if scope is None else scope.get("fastrpc.transport")

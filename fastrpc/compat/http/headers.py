"""The HTTP request of the running call, for functions without a parameter for it: `get_http_request` and
`get_http_headers` of FastMCP. The scope comes from `fastrpc.compat.http.request`.
"""

from __future__ import annotations

from fastrpc.compat.http.request import current_http_request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

_NOT_FORWARDED = frozenset(
    (
        "accept",
        "authorization",
        "connection",
        "content-length",
        "content-type",
        "cookie",
        "expect",
        "host",
        "keep-alive",
        "mcp-session-id",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "transfer-encoding",
        "upgrade",
    )
)
"""Headers of one connection or one recipient, which are not meant for other servers."""


def running_request() -> Any:
    """Return the HTTP request of the running call: a `starlette.requests.Request` where Starlette is
    installed, else the ASGI scope; None where there is none."""
    scope = current_http_request()
    if scope is None:
        return None
    try:
        from starlette.requests import Request
    except ImportError:
        return scope
    return Request(scope)


def get_http_request() -> Any:
    """Return the HTTP request of the running call. Raises RuntimeError where there is none."""
    request = running_request()
    if request is None:
        raise RuntimeError("No active HTTP request found.")
    return request


def get_http_headers(include_all: bool = False, include: Collection[str] | None = None) -> dict[str, str]:
    """Return the headers of the running call's request, by names in lower case; none over stdio.

    Without `include_all` those that must not be forwarded are left out: credentials, cookies, and headers of
    the connection; `include` names some that are wanted nevertheless.
    """
    scope = current_http_request()
    wanted = {name.lower() for name in include or ()}
    found: dict[str, str] = {}
    for raw, value in () if scope is None else scope["headers"]:
        name = raw.decode("latin-1").lower()
        if include_all or name in wanted or name not in _NOT_FORWARDED:
            found[name] = value.decode("latin-1")
    return found

"""The HTTP request that the running call came with, for handlers that read its headers.

Only applications with `HttpApp.exposes_requests` set it; for all others it costs one test of a flag. On the
fast path no ASGI scope exists: what is needed to make one is kept, and it is made when somebody reads it.
"""

from __future__ import annotations

from _thread import get_ident
from contextlib import contextmanager
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastrpc.transports.http.hot_path import HotPath
    from fastrpc.transports.http.interfaces import Client, Mapped
    from fastrpc.transports.http.pending_response import PendingResponse
    from fastrpc.transports.http.remembered import Head, Headers
    from fastrpc.transports.http.sessions import HttpSession

TRANSPORT_KEY = "fastrpc.transport"
"""The member of a scope that names the transport: ``streamable-http`` or ``sse``."""

_current: ContextVar[Mapped | tuple[Head, Client, str] | None] = ContextVar("fastrpc_request", default=None)

_at_once: tuple[int, Head, Client, str] | None = None
"""The thread of the loop, and the request that is being answered there by the fast path."""


def current_request() -> Mapped | None:
    """Return the ASGI scope of the request that the running call came with; None without one.

    A coroutine and a function on a worker thread see that of their call. For a session of HTTP+SSE it is the
    POST of the message. After the response the scope is still valid.
    """
    found = _current.get()
    if found is None and _at_once is not None and _at_once[0] == get_ident():
        found = _at_once[1:]
    if isinstance(found, tuple):
        found = _scope_of(*found)
        _current.set(found)
    return found


@contextmanager
def exposed(scope: Mapped, transport: str) -> Iterator[None]:
    """Within ``with``, `scope` is that of the running request, which came over `transport`."""
    scope[TRANSPORT_KEY] = transport
    token = _current.set(scope)
    try:
        yield
    finally:
        _current.reset(token)


def expose(hot: HotPath, scheme: str) -> None:
    """Have the calls of a fast path see their request, which comes by `scheme`.

    Costs a call on the shared connection a tuple: it ends before `answer` returns, so it needs no context
    variable.
    """
    thread = get_ident()
    serve, unshared = hot.answer, hot._answer_unshared

    def answer(
        head: Head, body: bytes, headers: Headers, client: Client = None
    ) -> bytes | PendingResponse | None:
        global _at_once
        outer = _at_once
        _at_once = (thread, head, client, scheme)
        try:
            return serve(head, body, headers, client)
        finally:
            _at_once = outer

    def answer_unshared(
        head: Head, session: HttpSession | None, body: bytes, headers: Headers, client: Client
    ) -> bytes | PendingResponse | None:
        token = _current.set((head, client, scheme))
        try:
            return unshared(head, session, body, headers, client)
        finally:
            _current.reset(token)

    hot.answer = answer  # type: ignore[method-assign,assignment]
    hot._answer_unshared = answer_unshared  # type: ignore[method-assign]


def _scope_of(head: Head, client: Client, scheme: str) -> Mapped:
    """Make the ASGI scope of a request on the fast path, whose head has been checked (`heads`)."""
    first, *lines = head.text.split(b"\r\n")
    method, path, _ = first.decode("ascii").split(" ")
    pairs = [line.split(b":", 1) for line in lines]
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": method,
        "scheme": scheme,
        "path": path,
        "raw_path": path.encode("ascii"),
        "root_path": "",
        "query_string": b"",
        "headers": [(name.lower(), value.strip(b" \t")) for name, value in pairs],
        "client": client,
        "server": None,
        "state": {},
        TRANSPORT_KEY: "streamable-http",
    }

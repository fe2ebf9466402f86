"""The types of ASGI 3, of applications around this one, and of what shares its sessions. For type checkers
alone: no module imports this when it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Protocol

from fastrpc.protocol.session_changes import CommonState, SessionChange
from fastrpc.transports.interfaces import ServedRuntime

Mapped = MutableMapping[str, Any]
"""A scope or an event, as ASGI 3 has them."""

Receive = Callable[[], Awaitable[Mapped]]
Send = Callable[[Mapped], Awaitable[None]]

Client = tuple[str, int] | None
"""The address and the port that a request comes from; None where it comes by a Unix socket."""


class Front(Protocol):
    """An ASGI application that ends in order: `HttpApp`, or one around it."""

    async def __call__(self, scope: Mapped, receive: Receive, send: Send) -> None: ...
    async def stop(self, grace_seconds: float | None) -> None: ...


MakeFront = Callable[[Front, Any], Front]
"""Makes what serves a loop's requests before an application; the second is the `HttpApp` of the loop."""


class SharesSessions(Protocol):
    """What shares sealed sessions with other processes: `fastrpc.transports.http.session_sharing`."""

    def use(self, runtime: ServedRuntime) -> None: ...
    def bind(self, session: Any, *, is_adopted: bool) -> None: ...
    def message(self, session: Any, kind: str, method: str, body: bytes) -> None: ...
    def ended(self, id: str, principal: str) -> Awaitable[object] | None:
        """Returns what to wait for, a moment, before the client hears that its session has ended."""

    async def stored(self, id: str) -> CommonState | None:
        """Return what other hosts have stored of a session; None if that is not known."""

    def take_stored(self, session: Any, state: CommonState) -> None: ...
    def become(self, session: Any, state: CommonState) -> SessionChange: ...
    def receive(self, session: Any, text: bytes) -> None: ...


class AsksWorkers(Protocol):
    """Asks the other workers of a server: see `fastrpc.transports.http.session_router`."""

    answer: Callable[[Any], Awaitable[Any]] | None
    """Answers the questions of other workers; None: nothing in this process can."""

    async def ask(self, question: Any) -> list[Any]:
        """Ask each other worker, and return the answers of those that have given one in time."""

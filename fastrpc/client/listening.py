"""Change notifications in every version: ``async with client.listen(tools=True) as changes``.

From 2026-07-28 on a subscriptions/listen request stays open for the notifications. Earlier servers send list
changes without a request, and changes of resources after resources/subscribe. Over HTTP a broken stream is
reopened with back-off, and everything subscribed to is reported as changed: it may have been missed.
"""

from __future__ import annotations

import asyncio
from itertools import count

from fastrpc.client.transport import PAUSES
from fastrpc.errors import ClientError, ConnectionLost, HttpStatusError
from fastrpc.protocol.versions import STATELESS, SUBSCRIPTION_KEY
from fastrpc.quotas import size_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Coroutine
    from types import TracebackType
    from typing import Any, Protocol

    from fastrpc._core.client_request import PendingRequest
    from fastrpc._core.client_stream import ClientStream

    class ListeningSession(Protocol):
        """The part of a session that `Listening` uses."""

        version: str
        stream: ClientStream
        listening: list[Listening]
        """The open `Listening` objects, which receive each notification (`Listening.take`)."""
        lost: ConnectionLost | None
        """Why the connection was lost; None while it is open."""

        def spawn(self, coroutine: Coroutine[Any, Any, Any]) -> None:
            """Run a coroutine until it ends or the session does."""

        async def request(self, method: str, params: dict[str, Any] | None = None) -> Any:
            """Send a request and return its result. Raises ClientError."""

        def start(
            self, method: str, params: dict[str, Any] | None = None, *, timeout_seconds: float | None
        ) -> tuple[PendingRequest, asyncio.Future[Any]]:
            """Send a request; return it, and the future of its result."""

        def withdraw(self, request: PendingRequest) -> None:
            """Cancel a request."""


LISTS = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
LISTEN = "subscriptions/listen"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SECONDS = 10.0

MOST_UNREAD = 1000
MOST_UNREAD_BYTES = 1024 * 1024
"""Notifications that are kept until they are read, and their memory."""


class Listening:
    """Receives change notifications inside an ``async with`` block. `changes`: the latest ones, each with its
    ``method`` and ``params``; `honoured`: the subscriptions that the server has accepted."""

    def __init__(
        self, session: ListeningSession, wanted: dict[str, Any], meta: dict[str, Any] | None = None
    ) -> None:
        self.changes: list[dict[str, Any]] = []
        self.honoured: dict[str, Any] = {}
        self.id: int | None = None
        """The id of the subscriptions/listen request (2026-07-28)."""
        self._session = session
        self._wanted = wanted
        self._params: dict[str, Any] = {"notifications": wanted}
        if meta:
            self._params["_meta"] = meta
        self._uris: list[str] = wanted.get("resourceSubscriptions", [])
        self._methods = {LISTS[name] for name in wanted if name in LISTS}
        self._queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._request: PendingRequest | None = None
        self._unread_bytes = 0
        """Of the queue, at most: since it was last empty."""
        self._end: asyncio.Future[dict[str, Any]] | None = None
        self._acknowledged: asyncio.Future[None] | None = None

    @property
    def end(self) -> dict[str, Any] | None:
        """The result with which the server ended the stream, or None."""
        end = self._end
        if end is None or not end.done() or end.cancelled() or end.exception() is not None:
            return None
        return end.result()

    async def __aenter__(self) -> Listening:
        self._session.listening.append(self)
        try:
            if self._session.version == STATELESS:
                await self._open()
            else:
                for uri in self._uris:
                    await self._session.request("resources/subscribe", {"uri": uri})
                self.honoured = self._wanted
        except BaseException:
            self._session.listening.remove(self)
            raise
        return self

    async def _open(self) -> None:
        """Send subscriptions/listen and wait for the acknowledgement. Raises ClientError and TimeoutError."""
        self._acknowledged = asyncio.get_running_loop().create_future()
        self.id = self._session.stream.next_id  # an in-memory server acknowledges before `start` returns
        self._request, self._end = self._session.start(LISTEN, self._params, timeout_seconds=0)
        waited: set[asyncio.Future[Any]] = {self._end, self._acknowledged}
        try:
            await asyncio.wait(waited, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            self._session.withdraw(self._request)
            raise
        if self._end.done():
            self._end.result()
        if not self._acknowledged.done():
            self._session.withdraw(self._request)
            raise TimeoutError(f"{LISTEN}: no acknowledgement within {SECONDS:g} s")
        self._end.add_done_callback(self._ended)

    def _ended(self, end: asyncio.Future[dict[str, Any]]) -> None:
        error = None if end.cancelled() else end.exception()
        if (
            isinstance(error, ConnectionLost)
            and self._session.lost is None
            and self in self._session.listening
        ):
            self._session.spawn(self.open_again())
        else:
            self._queue.put_nowait(None)  # wakes `next`, which raises EOFError

    async def open_again(self) -> None:
        """Reopen a broken stream, while the connection itself is open."""
        for attempt in count():
            await asyncio.sleep(PAUSES[min(attempt, len(PAUSES) - 1)])
            if self not in self._session.listening:
                return
            try:
                await self._open()
            except (ConnectionLost, TimeoutError, asyncio.TimeoutError):
                continue
            except ClientError as error:
                if isinstance(error, HttpStatusError) and error.may_pass:
                    continue
                break
            self.missed()
            return
        self._queue.put_nowait(None)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self in self._session.listening:
            self._session.listening.remove(self)
        if self._request is None:
            for uri in self._uris:
                try:
                    await self._session.request("resources/unsubscribe", {"uri": uri})
                except ClientError:
                    if error is None:
                        raise
        elif self._end is not None and not self._end.done():
            self._session.withdraw(self._request)
            self._end.cancel()

    def take(self, message: dict[str, Any], params: dict[str, Any]) -> None:
        """Store a notification, if it belongs to this stream."""
        method = message["method"]
        if self._session.version == STATELESS:
            if self.id is None or (params.get("_meta") or {}).get(SUBSCRIPTION_KEY) != self.id:
                return
            if method == ACKNOWLEDGED:
                self.honoured = params.get("notifications") or {}
                if self._acknowledged is not None and not self._acknowledged.done():
                    self._acknowledged.set_result(None)
                return
        elif method not in self._methods and not (method == UPDATED and params.get("uri") in self._uris):
            return
        self.add(message)

    def missed(self) -> None:
        """Report everything subscribed to as changed: notifications may have been missed."""
        changes: list[tuple[str, dict[str, Any]]] = [(method, {}) for method in sorted(self._methods)]
        changes += [(UPDATED, {"uri": uri}) for uri in self._uris]
        for method, params in changes:
            self._put({"jsonrpc": "2.0", "method": method, "params": params})

    def add(self, message: dict[str, Any]) -> None:
        """Store a change. If too many are unread, they are replaced by what `missed` reports."""
        if self._queue.empty():
            self._unread_bytes = 0
        self._unread_bytes += size_of(message, MOST_UNREAD_BYTES)
        if self._queue.qsize() < MOST_UNREAD and self._unread_bytes <= MOST_UNREAD_BYTES:
            self._put(message)
            return
        while not self._queue.empty():
            self._queue.get_nowait()
        self.changes.clear()
        self.missed()

    def _put(self, message: dict[str, Any]) -> None:
        if len(self.changes) >= 2 * MOST_UNREAD:
            del self.changes[:MOST_UNREAD]
        self.changes.append(message)
        self._queue.put_nowait(message)

    def lost(self) -> None:
        """Handle a lost connection."""
        self._queue.put_nowait(None)

    async def next(self, seconds: float = SECONDS) -> dict[str, Any]:
        """Return the next notification, waiting up to `seconds`. Raises TimeoutError, and EOFError if the
        server has ended the stream."""
        try:
            change = await asyncio.wait_for(self._queue.get(), seconds)
        except asyncio.TimeoutError:
            raise TimeoutError(f"no notification within {seconds:g} s") from None
        if change is None:
            self._queue.put_nowait(None)
            raise EOFError("the server has ended the stream")
        return change

    def __aiter__(self) -> Listening:
        return self

    async def __anext__(self) -> dict[str, Any]:
        change = await self._queue.get()
        if change is None:
            self._queue.put_nowait(None)
            raise StopAsyncIteration
        return change

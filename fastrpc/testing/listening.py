"""Change notifications in every version: ``async with client.listen(tools=True) as changes``.

From 2026-07-28 on a subscriptions/listen request stays open, and the server sends on it what was requested.
Before, the server notifies of changed lists by itself, and of resources that were subscribed to. The test is
the same.
"""

from __future__ import annotations

import asyncio

from fastrpc.protocol.versions import MODERN, SUBSCRIPTION_KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Protocol

    class Client(Protocol):
        """What listening needs of a client; `fastrpc.testing.Client` has more."""

        @property
        def version(self) -> str:
            """The protocol version in use."""

        @property
        def notifications(self) -> list[dict[str, Any]]:
            """All notifications received."""

        @property
        def listening(self) -> list[Listening]:
            """The open `Listening` objects, which receive each notification (`Listening.take`)."""

        async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
            """Send a request and return its result. Raises RemoteError."""

        def begin(self, method: str, params: dict[str, Any]) -> tuple[int, asyncio.Future[dict[str, Any]]]:
            """Send a request; return its id and a future with its result."""

        def cancel(self, id: int) -> None:
            """Cancel a pending request; its future is cancelled too."""


LISTS = {
    "toolsListChanged": "notifications/tools/list_changed",
    "promptsListChanged": "notifications/prompts/list_changed",
    "resourcesListChanged": "notifications/resources/list_changed",
}
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
SECONDS = 10.0


class Listening:
    """Change notifications, from entering the block to leaving it.

    `changes` are those received; `honoured` is what the server has agreed to send.
    """

    def __init__(self, client: Client, wanted: dict[str, Any]) -> None:
        self.changes: list[dict[str, Any]] = []
        self.honoured: dict[str, Any] = {}
        self.id: int | None = None
        """The id of the open request, in 2026-07-28."""
        self._client = client
        self._wanted = wanted
        self._uris: list[str] = wanted.get("resourceSubscriptions", [])
        self._methods = {LISTS[name] for name in wanted if name in LISTS}
        self._queue: asyncio.Queue[dict[str, Any] | None] = asyncio.Queue()
        self._end: asyncio.Future[dict[str, Any]] | None = None
        self._acknowledged: asyncio.Future[None] | None = None

    @property
    def end(self) -> dict[str, Any] | None:
        """The result with which the server ended the stream, or None."""
        if self._end is None or not self._end.done() or self._end.cancelled():
            return None
        return self._end.result()

    async def __aenter__(self) -> Listening:
        self._client.listening.append(self)
        try:
            if self._client.version == MODERN:
                await self._open()
            else:
                for uri in self._uris:
                    await self._client.request("resources/subscribe", {"uri": uri})
                self.honoured = self._wanted
        except BaseException:
            self._client.listening.remove(self)
            raise
        return self

    async def _open(self) -> None:
        """Send the request that stays open, and wait for its acknowledgement. Raises RemoteError."""
        self._acknowledged = asyncio.get_running_loop().create_future()
        self.id, self._end = self._client.begin("subscriptions/listen", {"notifications": self._wanted})
        # The acknowledgement may have arrived before the request's id was known here.
        for message in self._client.notifications:
            self.take(message)
        self._end.add_done_callback(lambda _: self._queue.put_nowait(None))
        waited: set[asyncio.Future[Any]] = {self._end, self._acknowledged}
        await asyncio.wait(waited, timeout=SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if self._end.done():
            self._end.result()
        if not self._acknowledged.done():
            self._client.cancel(self.id)
            raise TimeoutError("subscriptions/listen: no acknowledgement came")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.listening.remove(self)
        if self._end is None:
            for uri in self._uris:
                await self._client.request("resources/unsubscribe", {"uri": uri})
        elif not self._end.done() and self.id is not None:
            self._client.cancel(self.id)

    def take(self, message: dict[str, Any]) -> None:
        """Store a notification, if it belongs to this stream."""
        method, params = message["method"], message.get("params", {})
        if self._client.version == MODERN:
            if self.id is None or params.get("_meta", {}).get(SUBSCRIPTION_KEY) != self.id:
                return
            if method == ACKNOWLEDGED:
                self.honoured = params["notifications"]
                if self._acknowledged is not None and not self._acknowledged.done():
                    self._acknowledged.set_result(None)
                return
        elif method not in self._methods and not (method == UPDATED and params["uri"] in self._uris):
            return
        self.changes.append(message)
        self._queue.put_nowait(message)

    async def next(self, seconds: float = SECONDS) -> dict[str, Any]:
        """Return the next notification; waits at most so many seconds. Raises TimeoutError, and EOFError when
        the server has ended the stream."""
        try:
            change = await asyncio.wait_for(self._queue.get(), seconds)
        except asyncio.TimeoutError:
            raise TimeoutError(f"no change within {seconds:g} s") from None
        if change is None:
            self._queue.put_nowait(None)
            raise EOFError("the server has ended the stream")
        return change

    def __aiter__(self) -> Listening:
        return self

    async def __anext__(self) -> dict[str, Any]:
        try:
            return await self.next()
        except EOFError:
            raise StopAsyncIteration from None

"""The base class of the three HTTP transports: how requests are sent, and the handling of failures.

A carrier sends each line of the client's stream in an HTTP request, and passes the messages of the response
to the stream. A request is written at once if there is an idle connection, and a JSON response goes straight
to the stream; all else is handled by a task. `transport` chooses the carrier. I/O is left to `wire`.

Notifications and responses, which no request's time limit ends, are *posts*: their number, time and memory
are bounded.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any, Protocol

from fastrpc import diagnostics
from fastrpc._core.client_request import PendingRequest
from fastrpc._core.client_stream import ClientStream
from fastrpc.client.http.connection import JSON, Response
from fastrpc.client.http.wire import Answer, Wire
from fastrpc.errors import ClientError, ConnectionLost
from fastrpc.time_limit import TimeLimit

SILENT_SECONDS = 300.0
"""Seconds without a byte, comments included, after which a notification stream is reopened."""
STEADY_SECONDS = 5.0
"""Seconds that a stream must last to reset the back-off."""

CANCELLED = "notifications/cancelled"
MOST_UNSENT = 64 * 1024 * 1024
"""Bytes of notifications and responses that may wait to be sent, with `POST_BYTES` for each."""
POST_BYTES = 8 * 1024
MOST_POSTS = 64
"""POSTs that are sent at a time, each on a separate connection."""
POST_SECONDS = 30.0
"""Time limit of one; the time that a person needs to log in is not counted."""


class Link(Protocol):
    """The connection of a carrier."""

    stream: ClientStream
    lost: bool
    """Whether the connection has ended."""
    on_gap: Callable[[], object] | None
    """Called when notifications may have been missed."""

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task that is cancelled when the connection is closed."""

    def receive(self, text: bytes, of: PendingRequest | None = None) -> None:
        """Pass a message to the stream. `of`: the request to which it belongs, if any."""

    def lose(self, error: ConnectionLost, *, still_answers: bool = False) -> None:
        """Report a lost connection. `still_answers`: pending requests may still be answered."""


class Carrier:
    """Sends and receives the messages of one connection. Subclasses define how each kind is sent."""

    has_handshake = False
    """Whether its protocol versions have `initialize`."""
    has_request_streams = True
    """Whether what the server sends for a request arrives on a stream of that request."""

    def __init__(self, link: Link, wire: Wire) -> None:
        self.link = link
        self.wire = wire
        self._requests: dict[int, asyncio.Task[None] | Response] = {}
        """What is cancelled with each request: its task, or the response that it waits for."""
        self._posts: set[asyncio.Task[None]] = set()
        self._posts_bytes = 0
        self._post_turns: asyncio.Semaphore | asyncio.Lock = asyncio.Semaphore(MOST_POSTS)
        self._asked: dict[str | int, PendingRequest] = {}
        """The server's requests without a response, each with the request of ours on whose stream it came."""

    @property
    def awaited(self) -> str:
        """What the handshake waits for besides answers to requests; "" for nothing."""
        return ""

    def set_version(self, version: str) -> None:
        """Store the negotiated protocol version."""

    async def settle(self) -> None:
        """Wait until the server has received `notifications/initialized`. Raises ClientError."""

    async def leave(self) -> None:
        """End the session, if there is one. Raises ClientError."""

    # --- implemented by subclasses --------------------------------------------------------------------

    async def exchange(
        self, request: PendingRequest, params: dict[str, Any], line: bytes, begun: Response | None
    ) -> None:
        """Send a request, unless its response has `begun`, and receive that. Raises ClientError."""
        raise NotImplementedError

    def lines_at_once(self, request: PendingRequest, params: dict[str, Any]) -> bytes | None:
        """Return the header lines of a request that can be written at once, None for any other."""
        return None

    async def post(self, line: bytes) -> None:
        """Send a notification or a response. Raises ClientError."""
        raise NotImplementedError

    def withdraw(self, request: asyncio.Task[None] | Response | None, line: bytes) -> None:
        """Cancel a request; `line` is the `notifications/cancelled` for it."""
        raise NotImplementedError

    # --- outgoing -------------------------------------------------------------------------------------

    def send_request(self, request: PendingRequest, params: dict[str, Any], line: bytes) -> None:
        """Send a request: at once, or in the background."""
        try:
            lines = self.lines_at_once(request, params)
            response = None
            if lines is not None:
                response = self.wire.post_at_once(lines, line, self._settled, (request, params, line))
        except Exception as error:
            self._not_sent(request, error)
            return
        if response is None:
            self._requests[request.id] = self.link.spawn(self._request(request, params, line))
        elif not response.is_settled:
            self._requests[request.id] = response

    def wait_shortly(self, request: PendingRequest) -> None:
        """Without a running loop: wait a moment for the answer to a request that was written at once."""
        response = self._requests.get(request.id)
        if isinstance(response, Response):
            self.wire.wait_shortly(response)

    def _settled(self, response: Response) -> None:
        """Receive the response to a request that was written at once: JSON here, all else in a task."""
        request, params, line = response.context
        if (
            response.status != 200
            or response.kind != JSON
            or not response.is_complete
            or response.has_special_headers
        ):
            self._requests[request.id] = self.link.spawn(self._request(request, params, line, response))
            return
        self._requests.pop(request.id, None)
        body = response.body()
        try:
            self.receive(body, request)
            if not request.done:
                self.link.stream.fail(request, Answer(self.wire, response, "").failure(body))
        except Exception as error:
            self._not_sent(request, error)
        if self._asked:
            self._forget_asked(request)

    def send(self, line: bytes) -> None:
        """Send a notification or a response in the background. Raises ClientError if too much waits."""
        message = json.loads(line)
        method = message.get("method")
        if method is None:
            self._answer(message["id"], line)
        elif method == CANCELLED:
            self.withdraw(self._requests.pop(message["params"]["requestId"], None), line)
        else:
            self.notify(method, line)

    def _answer(self, id: str | int, line: bytes) -> None:
        """Send a response in the background. If too much waits, the request of ours fails for which it is."""
        try:
            self._check_congestion()
        except ClientError as error:
            if (request := self._asked.pop(id, None)) is not None:
                self.link.stream.fail(request, error)
            raise
        self._begin_post(self._respond(id, line), line)

    def notify(self, method: str, line: bytes) -> None:
        """Send a notification in the background. Raises ClientError if too much waits to be sent."""
        self._check_congestion()
        self.post_soon(line)

    def _check_congestion(self) -> None:
        if self._is_congested:
            raise ClientError(f"the server accepts nothing: {self._posts_bytes:,} bytes wait to be sent")

    @property
    def _is_congested(self) -> bool:
        return self._posts_bytes > MOST_UNSENT

    def post_soon(self, line: bytes) -> None:
        """Send a message in the background, unless too much waits; failures are logged."""
        if not self._is_congested:
            self._begin_post(self._post_quietly(line), line)

    def _begin_post(self, sending: Coroutine[Any, Any, None], line: bytes) -> None:
        size = len(line) + POST_BYTES
        self._posts_bytes += size
        task = self.link.spawn(sending)
        self._posts.add(task)
        task.add_done_callback(lambda task: self._posted(task, size))

    def _posted(self, task: asyncio.Task[None], size: int) -> None:
        self._posts.discard(task)
        self._posts_bytes -= size

    async def deliver(self, line: bytes) -> None:
        """`post` a message, when its turn has come, within `POST_SECONDS`. Raises ClientError."""
        late = ConnectionLost(f"the server has not accepted it within {POST_SECONDS:g} s")
        async with self._post_turns:
            with TimeLimit(POST_SECONDS + self.wire.remote.login_seconds, lambda: late):
                await self.post(line)

    async def flush(self) -> None:
        """Wait until the server has received the notifications so far."""
        if self._posts:
            await asyncio.wait(self._posts)

    async def _request(
        self, request: PendingRequest, params: dict[str, Any], line: bytes, begun: Response | None = None
    ) -> None:
        """Send a request, or continue with one that was sent. If that fails, the request fails."""
        try:
            await self.exchange(request, params, line, begun)
        except ClientError as error:
            self.link.stream.fail(request, error)
        except Exception as error:  # the caller must not hang
            self._not_sent(request, error)
        finally:
            self._requests.pop(request.id, None)
            self._forget_asked(request)

    def _not_sent(self, request: PendingRequest, error: Exception) -> None:
        diagnostics.write("error", f"sending {request.method} failed", error)
        self.link.stream.fail(request, ConnectionLost(f"the request could not be sent: {error!r:.200}"))

    def _forget_asked(self, request: PendingRequest) -> None:
        for id in [id for id, of in self._asked.items() if of is request]:
            del self._asked[id]

    async def _post_quietly(self, line: bytes) -> None:
        try:
            await self.deliver(line)
        except ClientError as error:
            diagnostics.write("info", f"a notification could not be sent: {error}")

    async def _respond(self, id: str | int, line: bytes) -> None:
        """Send the response to a request of the server. If that fails, the request of ours during which
        it was sent fails, since the server would never answer it."""
        request = self._asked.pop(id, None)
        try:
            await self.deliver(line)
        except ClientError as error:
            if request is None:
                diagnostics.write("info", f"a response could not be sent: {error}")
            else:
                self.link.stream.fail(request, error)

    def on_request(self, id: str | int, of: PendingRequest) -> None:
        """Store a request that the server has sent on the stream of a request of ours."""
        self._asked[id] = of

    def receive(self, text: bytes, of: PendingRequest | None = None) -> None:
        """Receive one message. `of`: the request to which it belongs, if any."""
        self.link.receive(text, of)

    async def receive_body(self, answer: Answer, request: PendingRequest) -> None:
        """Receive a body with the response. Raises ClientError if it contains none."""
        body = await answer.body()
        if answer.status < 400:
            self.receive(body, request)
            if not request.done:
                raise answer.failure(body)
        elif answer.names(request.id, body):
            self.receive(body, request)
        else:
            raise answer.failure(body)

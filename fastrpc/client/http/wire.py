"""HTTP requests to one remote server: adds the credentials, turns failures into readable errors.

Redirects are followed only within the server's own origin, so that no other server receives the token.
Bodies are bounded. Connections are made by `dialing`, and kept by `pool`: a request on an idle one is written
at once, and costs some 10 us besides its I/O. What the bodies mean is left to the carriers.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager
from urllib.parse import urljoin

from fastrpc.client.http.connection import CLOSED, JSON, BrokenConnection, Response
from fastrpc.client.http.cookies import Cookies
from fastrpc.client.http.dialing import CannotConnect, Route
from fastrpc.client.http.encodings import BadEncoding, Decompressor
from fastrpc.client.http.events import Events, ServerSentEvent, TooLong
from fastrpc.client.http.pool import Pool
from fastrpc.client.urls import authority, origin_of, shown
from fastrpc.errors import ClientError, ConnectionLost, HttpStatusError, InvalidAnswer, RemoteError
from fastrpc.quotas import Quota, Share

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping
    from typing import Any

    from fastrpc.client.http.address import Remote
    from fastrpc.client.oauth.credentials import Credentials

MOST_REDIRECTS = 5
LONGEST_BODY = 64 * 1024 * 1024
"""Bytes of one response body, or of one event."""
MOST_READING = 256 * 1024 * 1024
"""Bytes of all bodies and events of one server that are not complete, beyond `SMALL` of each."""
SMALL = 64 * 1024
LAST_WORDS = 64 * 1024
"""Bytes of an error body."""

MOST_STARTS = 16
"""Beginnings of heads that are stored."""

STREAM = "text/event-stream"

MOVED = (301, 302, 303, 307, 308)
SAME_METHOD = (307, 308)


def header_lines(headers: Mapping[str, str]) -> bytes:
    """Return headers as they are sent. Raises ValueError for a value that would end its line."""
    lines = []
    for name, value in headers.items():
        if not value.isprintable() and any(each < " " or each == "\x7f" for each in value):
            raise ValueError(f"header {name}: its value contains a control character")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode("utf-8", "surrogateescape")


class Unreachable(ConnectionLost):
    """The server could not be reached, and has not received the request."""


class Answer:
    """A response: its head, and its body as it arrives. `url`: where it comes from."""

    def __init__(self, wire: Wire, response: Response, url: str) -> None:
        self._wire = wire
        self._response = response
        self.url = url
        self.status = response.status
        self.kind = response.kind

    def header(self, name: str) -> str | None:
        return self._response.header(name.encode())

    @property
    def is_stream(self) -> bool:
        return self.status == 200 and self.kind == STREAM

    async def body(self) -> bytes:
        """Read a JSON body: one message or a batch. Raises HttpStatusError for another content type or
        refused credentials, InvalidAnswer for a body over the limit, ConnectionLost for an incomplete one."""
        if self.kind != JSON:
            raise self.refusal()
        body = await self.content(LONGEST_BODY if self.status < 400 else LAST_WORDS)
        if self.status in (401, 403):
            raise self.refusal(json_of(body))
        return body

    async def content(self, limit: int) -> bytes:
        """Read a body of any content type. `limit`: in bytes. Raises InvalidAnswer for a longer body,
        ConnectionLost for an incomplete one."""
        body = bytearray()
        with Share(self._wire.reading, SMALL) as share:
            async for piece in self._pieces():
                body += piece
                if len(body) > limit:
                    raise InvalidAnswer(f"the response body is longer than {limit} bytes")
                if not share.resize(len(body)):
                    raise _no_room()
        return bytes(body)

    @staticmethod
    def names(id: int, body: bytes) -> bool:
        """Whether a body is the response to a request."""
        message = json_of(body)
        return isinstance(message, dict) and message.get("id") == id

    def failure(self, body: bytes) -> ClientError:
        """Return the error for a body without the response: one with an error that has no id says that the
        request could not be read (JSON-RPC 2.0, section 5)."""
        message = json_of(body)
        error = message.get("error") if isinstance(message, dict) and message.get("id") is None else None
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            hidden = {**error, "message": self._wire.remote.hide(error["message"])}
            return RemoteError(hidden, self.status)
        if self.status >= 400:
            return self.refusal(message)
        if message is None:
            return InvalidAnswer("the response body is not JSON")
        return InvalidAnswer("the response body does not answer the request")

    async def events(self, events: Events) -> AsyncIterator[ServerSentEvent]:
        """Yield the events of a stream until it ends. Raises ConnectionLost and InvalidAnswer."""
        with Share(self._wire.reading, SMALL) as share:
            async for piece in self._pieces():
                try:
                    for event in events.feed(piece):
                        yield event
                except TooLong as error:
                    raise InvalidAnswer(str(error)) from None
                if not share.resize(events.unfinished):
                    raise _no_room()

    async def _pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it arrives, decompressed. Raises ConnectionLost and InvalidAnswer."""
        try:
            encoding = self.header("content-encoding")
            if encoding is None or encoding.lower() in ("", "identity"):
                while piece := await self._response.read():
                    yield piece
                return
            decompressor = Decompressor(encoding)
            while piece := await self._response.read():
                for part in decompressor.feed(piece):
                    yield part
            decompressor.end()
        except BadEncoding as error:
            raise InvalidAnswer(str(error)) from None
        except (BrokenConnection, OSError) as error:
            raise self._wire.broken(self.url, error) from None

    def refusal(self, body: Any = None) -> HttpStatusError:
        """Return the error for a status or a content type that the protocol does not use. The parsed `body`
        may contain a reason."""
        place = self._wire.place(self.url)
        status = f"{self.status} {self._response.reason.decode('latin-1')}".strip()
        if self.status == 401:
            why = "refuses the token" if self._wire.remote.has_token else "requires a token; none was sent"
        elif self.status == 403:
            why = "forbids the request"
        elif self.status < 300:
            why = f"sent {self.kind[:80] or 'nothing'} where {JSON} or {STREAM} was expected"
        else:
            why = "refused the request"
        error = body.get("error") if isinstance(body, dict) else None
        words = error.get("message") if isinstance(error, dict) else None
        detail = f": {self._wire.remote.hide(words)[:200]}" if isinstance(words, str) else ""
        return HttpStatusError(f"{place} {why} (status {status:.80}){detail}", self.status)


def _no_room() -> InvalidAnswer:
    return InvalidAnswer(f"the responses being read have in total more than {MOST_READING} bytes")


class Wire:
    """The connections to one server. `follows_redirects`: within its own origin; if false, `send` yields
    redirects like any other response."""

    def __init__(self, remote: Remote, *, follows_redirects: bool = True) -> None:
        self.remote = remote
        self._moved = MOVED if follows_redirects else ()
        self._pool: Pool | None = None
        self._route: Route | None = None
        self._url = remote.url
        self._starts: dict[tuple[str, str], bytes] = {}
        """How heads begin that are sent: by method and URL."""
        self._credentials: Mapping[str, str] = {}
        self._credential_lines = b""
        self._cookies = Cookies()
        self.reading = Quota(MOST_READING)
        self._keeps_cookies = not any(name.lower() == "cookie" for name in remote.headers)
        self.oauth: Credentials | None = None
        """What gets and renews the tokens of a connection, if the user wants that."""
        if remote.auth is not None:
            from fastrpc.client.oauth.credentials import Credentials

            self.oauth = Credentials(remote.auth, remote)

    @property
    def awaited(self) -> str:
        """What requests wait for before they are sent; "" for nothing."""
        if self.oauth is not None and self.oauth.is_busy:
            return "a login by OAuth"
        return "" if self._route is None else self._route.awaited

    # --- sending --------------------------------------------------------------------------------------

    def post_at_once(
        self, lines: bytes, body: bytes, on_settled: Callable[[Response], object] | None, context: object
    ) -> Response | None:
        """Write a POST to an idle connection, and return its response, which calls `on_settled` or is awaited
        by `Response.settled`. Return None if no connection is idle, or if there is OAuth: its token may have
        to be renewed first. `lines`: of `header_lines`. Raises what the user's function for tokens raises."""
        if self._pool is None or self.oauth is not None:
            return None
        connection = self._pool.take_idle()
        if connection is None:
            return None
        try:
            credentials = self._authorization()
        except BaseException:
            self._pool.put(connection)
            raise
        response = Response(on_settled, context)
        head = b"%b%b%b%bcontent-length: %d\r\n\r\n" % (
            self._starts.get(("POST", self._url)) or self._start("POST", self._url),
            credentials,
            self._cookies.line,
            lines,
            len(body),
        )
        connection.send(head, body, response)
        return response

    def wait_shortly(self, response: Response) -> None:
        """Without a running loop: wait a moment for a response that `post_at_once` has returned."""
        connection = response.connection
        if self._pool is not None and connection is not None:
            connection.wait_shortly(response, self._pool.open)

    @asynccontextmanager
    async def send(
        self,
        method: str,
        headers: Mapping[str, str],
        body: bytes | None = None,
        *,
        url: str | None = None,
        silent_seconds: float | None = None,
        waits: bool = False,
        begun: Response | None = None,
    ) -> AsyncIterator[Answer]:
        """Send a request and yield the response, whose body can be read inside the block.

        `silent_seconds`: how long the connection may be silent. `waits`: the request may wait for a
        connection where there are many. `begun`: the response, if the request has been sent. Raises
        ConnectionLost, of which Unreachable says that the server has received nothing, and HttpStatusError
        for a redirect that is not followed."""
        place = url or self._url
        for _ in range(MOST_REDIRECTS + 1):
            authorization = {} if self.oauth is None else await self.oauth.headers(headers)
            if begun is None:
                sent = {**headers, **authorization}
                response = await self._request(method, place, sent, body, silent_seconds, waits)
            else:
                response, begun = begun, None
            try:
                try:
                    await response.settled()
                except (BrokenConnection, OSError) as error:
                    raise self.broken(place, error) from None
                if self._keeps_cookies and response.header(b"set-cookie") is not None:
                    self._cookies.take(response.headers)
                if self.oauth is not None and method != "DELETE":  # the end of a session is not worth a login
                    challenge = response.header(b"www-authenticate")
                    if await self.oauth.check(response.status, challenge, {**headers, **authorization}):
                        continue
                if response.status not in self._moved:
                    yield Answer(self, response, place)
                    return
                following = self._redirect_target(response, method, place)
            finally:
                response.cancel()
            if url is None:
                self._url = following
            place = following
        raise HttpStatusError(f"{self.place(place)}: too many redirects", response.status)

    async def _request(
        self,
        method: str,
        url: str,
        headers: Mapping[str, str],
        body: bytes | None,
        silent_seconds: float | None,
        waits: bool,
    ) -> Response:
        """Send a request, on a new connection if need be. Raises Unreachable."""
        lines = self._authorization() + self._cookies.line + header_lines(headers)
        try:
            if self._pool is None:
                self._route = Route(self.remote)
                self._pool = Pool(self._route.dial)
            connection = await self._pool.take(waits)
        except (CannotConnect, OSError) as error:
            why = self.remote.hide(str(error)[:200])
            raise Unreachable(f"{self.place(url)} cannot be reached: {why}") from None
        length = b"" if body is None else b"content-length: %d\r\n" % len(body)
        response = Response()
        connection.send(self._start(method, url) + lines + length + b"\r\n", body, response, silent_seconds)
        return response

    def _start(self, method: str, url: str) -> bytes:
        """Return how the head of a request begins: all that is the same each time."""
        found = self._starts.get((method, url))
        if found is None:
            from fastrpc.version import __version__

            assert self._route is not None
            ours = {"host": authority(origin_of(url))}
            given = {name.lower() for name in self.remote.headers}
            for name, value in (("user-agent", f"fastrpc/{__version__}"), ("accept-encoding", "identity")):
                if name not in given:
                    ours[name] = value
            found = f"{method} {self._route.target(url)} HTTP/1.1\r\n".encode("ascii")
            found += header_lines(ours) + self._route.fields()
            if len(self._starts) < MOST_STARTS:
                self._starts[method, url] = found
        return found

    def _authorization(self) -> bytes:
        """Return the header lines that authenticate us: the one place where they are made."""
        given = self.remote.credentials()
        if given != self._credentials:
            self._credential_lines = header_lines(given)
            self._credentials = dict(given)
        return self._credential_lines

    def _redirect_target(self, response: Response, method: str, here: str) -> str:
        """Return the target of a redirect. Raises HttpStatusError for another origin."""
        try:
            place = urljoin(here, response.header(b"location") or "")
            is_here = origin_of(place) == origin_of(here)
        except ValueError:
            raise HttpStatusError(
                f"{self.place(here)} redirects to an invalid URL", response.status
            ) from None
        if not is_here:
            raise HttpStatusError(
                f"{self.place(here)} redirects to {self.place(place)}, which is another origin: "
                "not followed; use that URL if it is the right one",
                response.status,
            )
        if response.status not in SAME_METHOD and method != "GET":
            raise HttpStatusError(
                f"{self.place(here)} redirects with status {response.status}, which drops the body",
                response.status,
            )
        return place

    # --- errors ---------------------------------------------------------------------------------------

    def place(self, url: str) -> str:
        """Return a URL as it may be shown."""
        return self.remote.hide(shown(url)[:300])

    def broken(self, url: str, error: Exception) -> ConnectionLost:
        """Return the error for a connection that has broken."""
        why = self.remote.hide(str(error)[:200]) or CLOSED
        return ConnectionLost(f"the connection to {self.place(url)} is lost: {why}")

    async def close(self) -> None:
        if self.oauth is not None:
            await self.oauth.close()
        pool, self._pool = self._pool, None
        if pool is not None:
            await pool.close()


def json_of(body: bytes | bytearray) -> Any:
    """Return the JSON value of a body, or None."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None

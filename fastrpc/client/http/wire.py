"""HTTP requests to one server, with httpx: adds the credentials, converts failures into readable errors.

TLS certificates are verified. Redirects are followed only within the server's own origin, so that no other
server receives the token. Bodies are bounded. The environment's HTTP proxies are used, except for servers on
this machine. A request costs about a millisecond; connections are kept alive. The content of bodies is left
to the carriers.
"""

from __future__ import annotations

import json
from contextlib import asynccontextmanager

from fastrpc.client.http.address import shown
from fastrpc.client.http.events import Event, Events, TooLong
from fastrpc.errors import ClientError, ConnectionLost, HttpStatusError, InvalidAnswer, RemoteError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from typing import Any

    import httpx

    from fastrpc.client.http.address import Remote
    from fastrpc.client.oauth.credentials import Credentials

CONNECT_SECONDS = 10.0
WRITE_SECONDS = 60.0
MOST_REDIRECTS = 5
LONGEST_BODY = 64 * 1024 * 1024
"""Bytes of one response body, or of one event."""
LAST_WORDS = 64 * 1024
"""Bytes of an error body."""

JSON = "application/json"
STREAM = "text/event-stream"

MOVED = (301, 302, 303, 307, 308)
SAME_METHOD = (307, 308)


class Unreachable(ConnectionLost):
    """The server could not be reached, and has not received the request."""


class Answer:
    """A response: its head, and its body as it arrives."""

    def __init__(self, wire: Wire, response: httpx.Response) -> None:
        self._wire = wire
        self._response = response
        self.status = response.status_code
        kind = response.headers.get("content-type", "")
        self.kind = kind.partition(";")[0].strip().lower()

    @property
    def url(self) -> str:
        return str(self._response.url)

    def header(self, name: str) -> str | None:
        found: str | None = self._response.headers.get(name)
        return found

    @property
    def is_stream(self) -> bool:
        return self.status == 200 and self.kind == STREAM

    async def body(self) -> bytes:
        """Read a JSON body: one message or a batch. Raises HttpStatusError for another content type or
        refused credentials, InvalidAnswer for a body over the limit, ConnectionLost for an incomplete one."""
        if self.kind != JSON:
            raise self.refusal()
        limit = LONGEST_BODY if self.status < 400 else LAST_WORDS
        body = bytearray()
        with self._wire.wrapping_errors(self._response.url):
            async for piece in self._response.aiter_bytes():
                body += piece
                if len(body) > limit:
                    raise InvalidAnswer(f"the response body is longer than {limit} bytes")
        if self.status in (401, 403):
            raise self.refusal(_json_of(body))
        return bytes(body)

    @staticmethod
    def names(id: int, body: bytes) -> bool:
        """Whether a body is the response to a request."""
        message = _json_of(body)
        return isinstance(message, dict) and message.get("id") == id

    def failure(self, body: bytes) -> ClientError:
        """Return the error for a body that does not contain the response.

        An error without an id says that the request could not be read (JSON-RPC 2.0, section 5).
        """
        message = _json_of(body)
        error = message.get("error") if isinstance(message, dict) and message.get("id") is None else None
        if isinstance(error, dict) and isinstance(error.get("message"), str):
            hidden = {**error, "message": self._wire.remote.hide(error["message"])}
            return RemoteError(hidden, self.status)
        if self.status >= 400:
            return self.refusal(message)
        if message is None:
            return InvalidAnswer("the response body is not JSON")
        return InvalidAnswer("the response body does not answer the request")

    async def events(self, events: Events) -> AsyncIterator[Event]:
        """Yield the events of a stream until it ends. Raises ConnectionLost and InvalidAnswer."""
        with self._wire.wrapping_errors(self._response.url):
            async for piece in self._response.aiter_bytes():
                try:
                    for event in events.feed(piece):
                        yield event
                except TooLong as error:
                    raise InvalidAnswer(str(error)) from None

    def refusal(self, body: Any = None) -> HttpStatusError:
        """Return the error for a status or a content type that the protocol does not use.

        `body`: the parsed body, which may contain a reason.
        """
        place = self._wire.place(self._response.url)
        status = f"{self.status} {self._response.reason_phrase}".strip()
        if self.status == 401:
            why = "refuses the token" if self._wire.remote.has_token else "requires a token, none is given"
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


class Wire:
    """The connections to one server."""

    def __init__(self, remote: Remote) -> None:
        self.remote = remote
        self._client: httpx.AsyncClient | None = None
        self._url = remote.url
        self._moved = False
        self.oauth = _oauth_of(remote)

    def _new_client(self) -> httpx.AsyncClient:
        from urllib.request import getproxies

        import httpx

        from fastrpc.regular_files import check_certificates
        from fastrpc.version import __version__

        check_certificates()
        verify = self.remote.tls or True
        limits = httpx.Limits(max_connections=None, max_keepalive_connections=20, keepalive_expiry=30.0)
        transport = None
        if self.remote.is_local or not getproxies():
            transport = httpx.AsyncHTTPTransport(
                verify=verify, limits=limits, trust_env=True, socket_options=_keep_alive_options()
            )
        return httpx.AsyncClient(
            transport=transport,
            verify=verify,
            limits=limits,
            follow_redirects=False,
            headers={"user-agent": f"fastrpc/{__version__}", "accept-encoding": "identity"},
        )

    @asynccontextmanager
    async def send(
        self,
        method: str,
        headers: dict[str, str],
        body: bytes | None = None,
        *,
        url: str | None = None,
        silent_seconds: float | None = None,
    ) -> AsyncIterator[Answer]:
        """Send a request and yield the response, whose body can be read inside the block.

        `silent_seconds`: how long the connection may be silent before it is closed. Raises ConnectionLost,
        Unreachable before the server has received anything, and HttpStatusError for a redirect that is not
        followed.
        """
        import httpx

        if self._client is None:
            self._client = self._new_client()
        client = self._client
        place = httpx.URL(url or self._url)
        timeout = httpx.Timeout(silent_seconds, connect=CONNECT_SECONDS, write=WRITE_SECONDS)
        for _ in range(MOST_REDIRECTS + 1):
            all_headers = {**self.remote.credentials(), **headers}
            if self.oauth is not None:
                all_headers.update(await self.oauth.headers(headers))
            with self.wrapping_errors(place):
                request = client.build_request(
                    method, place, headers=all_headers, content=body, timeout=timeout
                )
                response = await client.send(request, stream=True)
            try:
                if self.oauth is not None and method != "DELETE":  # the end of a session is not worth a login
                    challenge = response.headers.get("www-authenticate")
                    if await self.oauth.check(response.status_code, challenge, all_headers):
                        continue
                if response.status_code not in MOVED:
                    yield Answer(self, response)
                    return
                following = self._redirect_target(response, method)
            finally:
                await response.aclose()
            if url is None:
                self._url = str(following)
            place = following
        raise HttpStatusError(f"{self.place(place)}: too many redirects", response.status_code)

    def _redirect_target(self, response: httpx.Response, method: str) -> httpx.URL:
        """Return the target of a redirect. Raises HttpStatusError for another origin."""
        import httpx

        try:
            place = response.url.join(response.headers.get("location", ""))
        except httpx.InvalidURL:
            raise HttpStatusError(
                f"{self.place(response.url)} redirects to an invalid URL", response.status_code
            ) from None
        here = response.url
        if (place.scheme, place.host, place.port) != (here.scheme, here.host, here.port):
            raise HttpStatusError(
                f"{self.place(here)} redirects to {self.place(place)}, which is another origin: "
                "not followed; use that URL if it is the right one",
                response.status_code,
            )
        if response.status_code not in SAME_METHOD and method != "GET":
            raise HttpStatusError(
                f"{self.place(here)} redirects with status {response.status_code}, which drops the body",
                response.status_code,
            )
        return place

    def place(self, url: object) -> str:
        """Return a URL as it may be shown."""
        return self.remote.hide(shown(str(url))[:300])

    def wrapping_errors(self, url: object) -> _WrappingErrors:
        """Turn httpx's exceptions inside the block into ConnectionLost."""
        return _WrappingErrors(self, url)

    async def close(self) -> None:
        if self.oauth is not None:
            await self.oauth.close()
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()


def _oauth_of(remote: Remote) -> Credentials | None:
    """Return what gets and renews the tokens of a connection, if the user wants that."""
    if remote.auth is None:
        return None
    from fastrpc.client.oauth.credentials import Credentials

    return Credentials(remote.auth, remote)


class _WrappingErrors:
    def __init__(self, wire: Wire, url: object) -> None:
        self._wire = wire
        self._url = url

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        import httpx

        if not isinstance(error, httpx.HTTPError | httpx.InvalidURL | httpx.StreamError | OSError):
            return
        place = self._wire.place(self._url)
        why = self._wire.remote.hide(_error_text(error))
        if isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.ProxyError):
            raise Unreachable(f"{place} cannot be reached: {why}") from None
        raise ConnectionLost(f"the connection to {place} is lost: {why}") from None


def _json_of(body: bytes | bytearray) -> Any:
    """Return the JSON value of a body, or None."""
    try:
        return json.loads(body)
    except (ValueError, RecursionError):
        return None


def _keep_alive_options() -> list[tuple[int, int, int]]:
    """Return socket options that detect a dead connection within a minute.

    A call may wait for hours without a byte: only TCP keep-alive can distinguish that from a machine that is
    off.
    """
    import socket

    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("KEEPIDLE", 30), ("KEEPALIVE", 30), ("KEEPINTVL", 10), ("KEEPCNT", 3)):
        number = getattr(socket, f"TCP_{name}", None)
        if number is not None:
            options.append((socket.IPPROTO_TCP, number, value))
    return options


def _error_text(error: BaseException) -> str:
    """Return the message for a network error."""
    import ssl

    import httpx

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({cause.verify_message})"
        if isinstance(cause, ConnectionRefusedError):
            return "connection refused"
        cause = cause.__cause__ or cause.__context__
    if isinstance(error, httpx.ConnectTimeout):
        return f"no connection within {CONNECT_SECONDS:g} s"
    if isinstance(error, httpx.ReadTimeout):
        return "no data for too long"
    return str(error)[:200] or "closed by the server"

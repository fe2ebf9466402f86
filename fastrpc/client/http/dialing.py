"""Makes connections to one server: names, TLS, and the environment's HTTP proxies.

A name with several addresses is tried at them in turn, each with a head start (RFC 8305). Certificates are
verified. Proxies are those of HTTP_PROXY, HTTPS_PROXY, ALL_PROXY and NO_PROXY, or of the system's settings; a
server on this machine is reached directly. To an https server the proxy opens a tunnel (CONNECT), to an http
server it passes on requests with a whole URL. All of it has `CONNECT_SECONDS`.

Kept libraries do the work here: asyncio or uvloop resolves and connects, `ssl` verifies, `urllib.request`
reads the proxies, certifi has certificates. The order of addresses is ours, because uvloop has no
`happy_eyeballs_delay`, and aiohappyeyeballs would be a dependency of every installation for some 40 lines.
The tunnel is ours, because a client of another library would own the socket.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from itertools import zip_longest

from fastrpc.client.http.connection import BrokenConnection, HttpConnection, Response
from fastrpc.client.urls import Origin, authority, origin_of, request_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from ssl import SSLContext
    from typing import Any

    from fastrpc.client.http.address import Remote

    Callback = Callable[[HttpConnection], object]

CONNECT_SECONDS = 10.0
HANDSHAKE = "its TLS handshake"
NO_TLS = ("HTTP_REQUEST", "RECORD_LAYER_FAILURE", "WRONG_VERSION_NUMBER")
"""Names in OpenSSL for an answer in clear text."""
HEAD_START = 0.25
"""Seconds before the next address of a name is tried, too (RFC 8305, section 5)."""


class CannotConnect(Exception):
    """There is no connection, and nothing was sent to the server. The text says why."""


class Route:
    """How to reach one server. Raises OSError for a file of certificates that cannot be used, CannotConnect
    for a proxy of the environment that cannot be used."""

    def __init__(self, remote: Remote) -> None:
        self.awaited = ""
        """What the latest connection that is being made waits for; "" if none is being made."""
        self._origin = origin_of(remote.url)
        self._proxy = None if remote.is_local else _proxy_for(self._origin)
        self._tls: SSLContext | None = None
        if self._origin.scheme == "https":
            self._tls = remote.tls or default_tls()
            self._tls.set_alpn_protocols(["http/1.1"])

    @property
    def passes_on(self) -> bool:
        """Whether requests go to a proxy that reads them."""
        return self._proxy is not None and self._tls is None

    def target(self, url: str) -> str:
        """Return the target of a request for a URL of the server (RFC 9112, 3.2)."""
        target = request_target(url)
        return f"http://{authority(self._origin)}{target}" if self.passes_on else target

    def fields(self) -> bytes:
        """Return the header lines that each request to this server needs."""
        return self._proxy.fields if self.passes_on and self._proxy is not None else b""

    async def dial(self, on_idle: Callback, on_closed: Callback) -> HttpConnection:
        """Return a new connection. Raises CannotConnect."""
        try:
            return await asyncio.wait_for(self._dial(on_idle, on_closed), CONNECT_SECONDS)
        except asyncio.TimeoutError as error:
            if getattr(error, "errno", None) is not None:  # of the system, which gave up before
                raise CannotConnect(_why(error)) from None
            whose = f", waiting for {self.awaited}" if self.awaited else ""
            raise CannotConnect(f"no connection within {CONNECT_SECONDS:g} s{whose}") from None
        except (OSError, BrokenConnection) as error:
            raise CannotConnect(_why(error)) from None
        except UnicodeError:
            raise CannotConnect("its host name is invalid") from None
        finally:
            self.awaited = ""

    async def _dial(self, on_idle: Callback, on_closed: Callback) -> HttpConnection:
        loop = asyncio.get_running_loop()

        def make() -> HttpConnection:
            return HttpConnection(loop, on_idle, on_closed)

        if self._proxy is None:
            return await self._connect(loop, make, self._origin, self._tls)
        origin = self._proxy.origin
        try:
            if self._tls is None:
                return await self._connect(loop, make, origin, self._proxy.tls)
            outer = await self._connect(
                loop, lambda: HttpConnection(loop, _ignored, _ignored), origin, self._proxy.tls
            )
        except (OSError, BrokenConnection) as error:
            raise CannotConnect(f"the proxy {authority(origin)}: {_why(error)}") from None
        try:
            self.awaited = f"the proxy {authority(origin)}"
            await self._open_tunnel(outer, self._proxy)
            inner = make()
            self.awaited = HANDSHAKE
            try:
                transport = await loop.start_tls(
                    outer.transport, inner, self._tls, server_hostname=self._origin.host
                )
            except TypeError:
                raise CannotConnect("TLS through a proxy at an https URL needs Python 3.11") from None
            inner.connection_made(transport)
        except BaseException:
            outer.close()
            raise
        return inner

    async def _connect(
        self,
        loop: asyncio.AbstractEventLoop,
        make: Callable[[], HttpConnection],
        origin: Origin,
        tls: SSLContext | None,
    ) -> HttpConnection:
        self.awaited = f"the address of {origin.host}"
        found = await loop.getaddrinfo(origin.host, origin.port, type=socket.SOCK_STREAM)
        self.awaited = f"a connection to {authority(origin, always_port=True)}"
        opened = await _open_socket(loop, found)
        made: list[HttpConnection] = []

        def make_one() -> HttpConnection:
            made.append(make())
            return made[0]

        if tls is not None:
            self.awaited = HANDSHAKE
        try:
            name = origin.host if tls is not None else None
            await loop.create_connection(make_one, sock=opened, ssl=tls, server_hostname=name)
        except BaseException:
            if not made:  # else the socket is closed by its transport
                opened.close()
            raise
        return made[0]

    async def _open_tunnel(self, connection: HttpConnection, proxy: _Proxy) -> None:
        """Have a proxy connect to the server (RFC 9110, 9.3.6: CONNECT)."""
        place = authority(self._origin, always_port=True)
        response = Response(at_head=True)
        head = b"CONNECT %b HTTP/1.1\r\nhost: %b\r\n%b\r\n" % (place.encode(), place.encode(), proxy.fields)
        connection.send(head, None, response)
        try:
            await response.settled()
        except (OSError, BrokenConnection) as error:
            raise CannotConnect(f"the proxy {authority(proxy.origin)}: {_why(error)}") from None
        if not 200 <= response.status < 300:
            reason = response.reason.decode("latin-1")[:80]
            status = f"{response.status} {reason}".strip()
            raise CannotConnect(f"the proxy {authority(proxy.origin)} refuses it (status {status})")
        if response.unread:
            raise CannotConnect(f"the proxy {authority(proxy.origin)} sent data before the TLS handshake")
        connection.release()


class _Proxy:
    """An HTTP proxy of the environment: where it is, and the header lines that it wants."""

    def __init__(self, url: str) -> None:
        from urllib.parse import unquote, urlsplit

        parts = urlsplit(url if "://" in url else f"http://{url}")
        if parts.scheme.lower() not in ("http", "https"):
            raise CannotConnect(f"the environment's proxy is of the kind {parts.scheme[:20]}, not http")
        try:
            self.origin = origin_of(parts.geturl())
        except ValueError:
            raise CannotConnect("the address of the environment's proxy is invalid") from None
        self.tls = default_tls() if self.origin.scheme == "https" else None
        self.fields = b""
        if parts.username is not None:
            from base64 import b64encode

            pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self.fields = b"proxy-authorization: Basic " + b64encode(pair.encode()) + b"\r\n"


def _proxy_for(origin: Origin) -> _Proxy | None:
    if sys.platform != "darwin" and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None  # without importing urllib.request, which takes long
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    url = proxies.get(origin.scheme) or proxies.get("all")
    if not url or proxy_bypass(authority(origin, always_port=True)):
        return None
    return _Proxy(url)


def default_tls() -> SSLContext:
    """Return TLS settings that trust the certificates of the system (or of SSL_CERT_FILE, SSL_CERT_DIR); if
    there are none, those of certifi, if it is installed. Raises OSError."""
    from ssl import create_default_context, get_default_verify_paths

    from fastrpc.regular_files import check_certificates

    check_certificates()
    paths = get_default_verify_paths()
    if paths.cafile is None and paths.capath is None and sys.platform != "win32":
        try:
            import certifi
        except ImportError:
            pass
        else:
            return create_default_context(cafile=certifi.where())
    return create_default_context()


async def _open_socket(loop: asyncio.AbstractEventLoop, found: list[Any]) -> socket.socket:
    """Connect to the first address that answers of those found of a host. Raises OSError."""
    waiting = _in_turns(found)
    if len(waiting) == 1:
        return await _open_at(loop, waiting[0])
    trying: set[asyncio.Task[socket.socket]] = set()
    failure: BaseException | None = None
    winner = None
    try:
        while waiting or trying:
            if waiting:
                trying.add(loop.create_task(_open_at(loop, waiting.pop(0))))
            patience = HEAD_START if waiting else None
            done, trying = await asyncio.wait(trying, timeout=patience, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                failure = task.exception()
                if failure is None and winner is None:
                    winner = task.result()
                elif failure is None:
                    task.result().close()
            if winner is not None:
                return winner
    finally:
        for task in trying:
            task.cancel()
            task.add_done_callback(_close_late)
    assert failure is not None
    raise failure


def _close_late(task: asyncio.Task[socket.socket]) -> None:
    if not task.cancelled() and task.exception() is None:
        task.result().close()


def _in_turns(found: list[Any]) -> list[Any]:
    """Return addresses with the two families in turns, as the first one begins (RFC 8305, section 4)."""
    first = [each for each in found if each[0] == found[0][0]]
    others = [each for each in found if each[0] != found[0][0]]
    return [each for pair in zip_longest(first, others) for each in pair if each is not None]


async def _open_at(loop: asyncio.AbstractEventLoop, address: Any) -> socket.socket:
    family, kind, protocol, _, place = address
    opened = socket.socket(family, kind, protocol)
    try:
        opened.setblocking(False)
        opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for level, name, value in _keep_alive_options():
            opened.setsockopt(level, name, value)
        await loop.sock_connect(opened, place)
    except BaseException:
        opened.close()
        raise
    return opened


def _keep_alive_options() -> list[tuple[int, int, int]]:
    """Return socket options that detect a dead connection within a minute: a call may wait for hours without
    a byte, which only TCP keep-alive can distinguish from a machine that is off."""
    options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)]
    for name, value in (("KEEPIDLE", 30), ("KEEPALIVE", 30), ("KEEPINTVL", 10), ("KEEPCNT", 3)):
        number = getattr(socket, f"TCP_{name}", None)
        if number is not None:
            options.append((socket.IPPROTO_TCP, number, value))
    return options


def _ignored(connection: HttpConnection) -> None:
    """The connection in a tunnel sees the events of the one below it."""


def _why(error: Exception) -> str:
    from ssl import SSLCertVerificationError, SSLError

    if isinstance(error, SSLCertVerificationError):
        return f"its certificate is not trusted ({error.verify_message})"
    if isinstance(error, SSLError) and error.reason in NO_TLS:
        return "its response is not TLS: is it an http URL?"
    if isinstance(error, ConnectionRefusedError):
        return "connection refused"
    return str(error)[:200] or "closed by the server"

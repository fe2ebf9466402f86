"""Asks engines over HTTP: connections of one search, bounded pages, no waiting for silent name servers.

httpcore does the HTTP. httpx is not used, because what it adds is either unwanted here (brotli, cookies that
stay, redirects to any host) or takes a few lines with a bound (gzip). Names are looked up on threads that may
outlive the search. An event loop's own look-up cannot be abandoned, and a silent name server would delay the
end of the process. Redirects are followed on the engine's own domain only.

With a stand-in, every request goes to ``<stand-in>/<engine>/<path of the engine>`` and to no other address.
Importing this imports httpcore, anyio and ssl.
"""

from __future__ import annotations

import os
import socket
import ssl
import zlib
from itertools import zip_longest
from urllib.parse import quote, unquote, urlencode, urljoin, urlsplit

import httpcore

from fastrpc import __version__, regular_files

from .._in_thread import in_thread
from ._engine import Blocked, Engine, Failed, Page, Request, Unreachable, language_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable
    from typing import Any

PAGE_BYTES = 2 * 1024 * 1024
REDIRECTS = 4
ADDRESSES = 4  # of one name, tried one after the other
ADDRESS_SECONDS = 1.5  # for each but the last
USER_AGENT = f"Mozilla/5.0 (compatible; fastrpc/{__version__})"

TIME_OUTS = {"connect": 5.0, "read": 5.0, "write": 5.0, "pool": 5.0}  # each search ends earlier


class Network:
    """The connections of one search. `query` decides the language in the request."""

    def __init__(self, query: str, stand_in: str = "", user_agent: str = "") -> None:
        self.stand_in = stand_in.rstrip("/")
        self.headers = {
            "User-Agent": user_agent or USER_AGENT,
            "Accept": "text/html,application/xhtml+xml,application/json;q=0.9,*/*;q=0.8",
            "Accept-Language": _languages(query),
            "Accept-Encoding": "gzip",
        }
        self._pools: dict[str, Any] = {}

    async def close(self) -> None:
        for pool in self._pools.values():
            await pool.aclose()

    async def fetch(self, engine: Engine, request: Request) -> Page:
        """Return the page of a request, after redirects. Raises Blocked or Failed."""
        url, form = request.url, None
        if request.method == "GET" and request.parameters:
            url += ("&" if "?" in url else "?") + urlencode(request.parameters)
        elif request.method == "POST":
            form = urlencode(request.parameters).encode()
        for _ in range(REDIRECTS):
            page = await self._exchange(engine, request, url, form)
            location = page.headers.get("location", "")
            if page.status not in (301, 302, 303, 307, 308) or not location:
                return page
            if page.status < 307:
                form = None
            url = self._redirected(engine, url, location)
        raise Failed("redirected too often")

    def _redirected(self, engine: Engine, url: str, location: str) -> str:
        """Return the target of a redirect, on the engine's domain. Raises Blocked or Failed."""
        target = urljoin(url, self._original(engine, location))
        if any(part in target for part in engine.captcha_addresses):
            raise Blocked("redirected to a captcha")
        parts, was = urlsplit(target), urlsplit(url)
        host = parts.hostname or ""
        if parts.scheme not in ("https", was.scheme):
            raise Failed(f"redirected to {parts.scheme or 'nothing'}")
        if host != was.hostname and not f".{host}".endswith(f".{engine.domain or was.hostname}"):
            raise Failed(f"redirected to {host}")
        return target

    def _original(self, engine: Engine, location: str) -> str:
        """Translate a redirect of the stand-in to one of the engine."""
        if self.stand_in:
            own = f"{self.stand_in}/{engine.name}"
            location = location.removeprefix(own) if location.startswith(own) else location
        return location

    async def _exchange(self, engine: Engine, request: Request, url: str, form: bytes | None) -> Page:
        wire = _escaped(url)
        if self.stand_in:
            parts = urlsplit(wire)
            wire = f"{self.stand_in}/{engine.name}{parts.path}" + (f"?{parts.query}" if parts.query else "")
        headers = self.headers | request.headers
        if request.cookies:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in request.cookies.items())
        if form is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        try:
            async with self._pool(urlsplit(wire).hostname or "").stream(
                "GET" if form is None else "POST",
                wire,
                headers=headers,
                content=form,
                extensions={"timeout": TIME_OUTS},
            ) as answer:
                received = {
                    name.decode("ascii", "replace").lower(): value.decode("utf-8", "replace")
                    for name, value in answer.headers
                }
                body = await _body(answer.aiter_stream(), received.get("content-encoding", ""))
        except (httpcore.ConnectError, httpcore.ConnectTimeout, httpcore.ProxyError) as error:
            raise Unreachable(f"no connection: {error}") from None
        except httpcore.TimeoutException:
            raise TimeoutError from None
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.UnsupportedProtocol) as error:
            raise Failed(f"{error}" or type(error).__name__) from None
        return Page(url, answer.status, received, body)

    def _pool(self, host: str) -> Any:
        """Return the pool for a host: direct, or through the proxy in the environment."""
        proxy = "" if self.stand_in else _proxy_for(host)
        if proxy not in self._pools:
            self._pools[proxy] = _new_pool(proxy)
        return self._pools[proxy]


def _new_pool(proxy: str) -> Any:
    if not proxy:
        return httpcore.AsyncConnectionPool(ssl_context=ssl_context(), network_backend=Backend())
    parts = urlsplit(proxy if "//" in proxy else f"http://{proxy}")
    authority = parts.netloc.rpartition("@")[2]
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    chosen = httpcore.Proxy(f"{parts.scheme}://{authority}", auth=auth)
    return httpcore.AsyncConnectionPool(ssl_context=ssl_context(), network_backend=Backend(), proxy=chosen)


def _proxy_for(host: str) -> str:
    from urllib.request import getproxies, proxy_bypass

    proxies = getproxies()
    proxy = proxies.get("https") or proxies.get("all") or ""
    return "" if not proxy or proxy_bypass(host) else proxy


_ssl_context: ssl.SSLContext | None = None


def ssl_context() -> ssl.SSLContext:
    """Return the one context of this process: making it reads all certificates, some 20 ms."""
    global _ssl_context
    if _ssl_context is None:
        regular_files.check_certificates()
        context = httpcore.default_ssl_context()
        if os.environ.get("SSL_CERT_FILE"):
            context.load_verify_locations(os.environ["SSL_CERT_FILE"])
        _ssl_context = context
    return _ssl_context


async def _body(chunks: AsyncIterator[bytes], encoding: str) -> bytes:
    """Return a page's bytes. A page over the limit is refused while it arrives, compressed or not."""
    if encoding.lower() not in ("", "identity", "gzip", "x-gzip"):
        raise Failed(f"a page packed with {encoding[:40]}")
    unpacker = zlib.decompressobj(wbits=31) if "gzip" in encoding.lower() else None
    body = bytearray()
    async for chunk in chunks:
        try:
            body += chunk if unpacker is None else unpacker.decompress(chunk, PAGE_BYTES + 1)
        except zlib.error:
            raise Failed("a page that cannot be unpacked") from None
        if len(body) > PAGE_BYTES:
            raise Failed(f"a page over {PAGE_BYTES // 1024**2} MiB")
    return bytes(body)


def _escaped(url: str) -> str:
    """Return an address in ASCII only, as HTTP requires."""
    return quote(url, safe="!#$%&'()*+,/:;=?@[]~")


def _languages(query: str) -> str:
    language = language_of(query)
    return "en-US,en;q=0.9" if language == "en" else f"{language},en;q=0.7"


class Backend(httpcore.AnyIOBackend):
    """httpcore's own way to connect, but to addresses that `look_up` has found."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        addresses = (await look_up(host))[:ADDRESSES]
        for address in addresses[:-1]:
            try:
                return await super().connect_tcp(
                    address, port, ADDRESS_SECONDS, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout):
                pass  # the next address
        return await super().connect_tcp(addresses[-1], port, timeout, local_address, socket_options)


async def look_up(host: str) -> list[str]:
    """Return the addresses of a name, of IPv4 and IPv6 in turn. Raises httpcore.ConnectError."""
    try:
        found = await in_thread(socket.getaddrinfo, host, None, 0, socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise httpcore.ConnectError(f"{host}: {getattr(error, 'strerror', None) or error}") from None
    addresses = dict.fromkeys((entry[0] == socket.AF_INET6, str(entry[4][0])) for entry in found)
    fours = [address for is_six, address in addresses if not is_six]
    sixes = [address for is_six, address in addresses if is_six]
    return [address for pair in zip_longest(fours, sixes) for address in pair if address is not None]

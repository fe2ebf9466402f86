"""An HTTP forward proxy that connects to public addresses only: the egress of a server's fetches and browser.

It resolves each name itself, checks every address against the special-purpose ranges, and connects to the
address that it has checked: neither the spelling of a name or address nor a later DNS answer changes the
result. A redirect is a new request, and is checked again. It listens on loopback and requires a password.
Each connection costs a coroutine; connections, heads, times and bytes are bounded. It does not inspect TLS,
cache, reuse a plain HTTP connection for a second request, or use another proxy, which would resolve names by
itself.

        async with EgressProxy() as proxy:
            httpx.AsyncClient(proxy=proxy.url_with_password, trust_env=False)
            chromium.launch(args=proxy.browser_flags, proxy=proxy.browser_proxy)
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import struct
from base64 import b64encode
from hmac import compare_digest
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from secrets import token_urlsafe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Awaitable, Callable, Iterable
    from typing import TypeVar

    T = TypeVar("T")
    Address = IPv4Address | IPv6Address
    Resolve = Callable[[str, int], Awaitable[list[str]]]

SPECIAL_V4 = [
    IPv4Network(network)
    for network in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT
        "127.0.0.0/8",  # loopback
        "168.63.129.16/32",  # a cloud's services, at a public address
        "169.254.0.0/16",  # link-local, with cloud metadata services
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # protocol assignments
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, and broadcast
    )
]
GLOBAL_V6 = IPv6Network("2000::/3")
"""The only range of global unicast addresses; mapped, compatible, translated and local ones are outside."""
SPECIAL_V6 = [
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, with Teredo and ORCHID
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
]
WEB_PORTS = (80, 443)
FIRST_FREE_PORT = 1024

CONNECTIONS = 256
LONGEST_HEAD = 64 * 1024
HEAD_SECONDS = 15.0
CONNECT_SECONDS = 10.0
IDLE_SECONDS = 120.0
ENDED_SECONDS = 5.0
"""Seconds that one side of a tunnel may be silent after the other has closed."""
LONGEST_SECONDS = 600.0
MOST_BYTES = 256 * 1024 * 1024
"""Bytes of one connection, in both directions."""
CHUNK = 64 * 1024
REMEMBERED = 256

NOT_PUBLIC = "Address not public"
NOT_A_WEB_PORT = "Port not served"
NOT_RESOLVED = "Name not resolved"
NO_CONNECTION = "No connection"

USER = "fastrpc"
REQUEST = re.compile(r"([A-Z]{1,20}) ([\x21-\x7e]+) HTTP/1\.[01]\Z")
HEADER = re.compile(r"([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)\Z")
STATUS = re.compile(r"HTTP/1\.[01] ([1-9][0-9]{2})(?: |\Z)")
AUTHORITY = re.compile(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9._-]{1,255}))(?::([0-9]{1,5}))?\Z")
BARE_V6 = re.compile(r"([0-9A-Fa-f:.]{2,45}):([0-9]{1,5})\Z")
"""IPv6 hosts without brackets, as httpcore writes them in CONNECT. They are checked like all others."""
NUMBER = re.compile(r"0[xX](?P<hexadecimal>[0-9A-Fa-f]*)\Z|(?P<decimal>[0-9]+)\Z")
HOP_BY_HOP = {
    "connection",
    "proxy-connection",
    "keep-alive",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "trailer",
    "upgrade",
}


class FetchRefused(Exception):
    """A request is refused: its HTTP status, and a short reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason


def is_public(address: str) -> bool:
    """Return whether an address is a globally reachable unicast address (registries of RFC 6890)."""
    try:
        found = ip_address(address)
    except ValueError:
        return False
    if found.version == 4:
        return not any(found in network for network in SPECIAL_V4)
    return found in GLOBAL_V6 and "%" not in address and not any(found in network for network in SPECIAL_V6)


class EgressProxy:
    """The proxy. `allow`: special-purpose networks that it may connect to, such as ``10.1.0.0/16``.

    `refusals` holds the last hosts that were requested and refused, each with the reason.
    """

    def __init__(
        self,
        *,
        allow: Iterable[str] = (),
        resolve: Resolve | None = None,
        connections: int = CONNECTIONS,
        head_seconds: float = HEAD_SECONDS,
        idle_seconds: float = IDLE_SECONDS,
        longest_seconds: float = LONGEST_SECONDS,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self.username = USER
        self.password = token_urlsafe(32)
        self.refusals: dict[tuple[str, int], str] = {}
        self._allowed = [ip_network(network) for network in allow]
        self._resolve = resolve or _resolve
        self._most = connections
        self._head_seconds = head_seconds
        self._idle_seconds = idle_seconds
        self._longest_seconds = longest_seconds
        self._most_bytes = most_bytes
        self._credentials = b"Basic " + b64encode(f"{USER}:{self.password}".encode())
        self._server: asyncio.Server | None = None
        self._running: set[asyncio.Task[None]] = set()
        self._port = 0

    # --- start and end --------------------------------------------------------------------------------

    async def start(self) -> EgressProxy:
        """Listen on a free port of the loopback interface. Raises OSError."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, limit=LONGEST_HEAD)
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def close(self) -> None:
        """Stop listening and close every connection."""
        if self._server is not None:
            self._server.close()
        running = list(self._running)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def __aenter__(self) -> EgressProxy:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    @property
    def url(self) -> str:
        """The address of the proxy, ``http://127.0.0.1:PORT``, without the password."""
        return f"http://127.0.0.1:{self._port}"

    @property
    def url_with_password(self) -> str:
        """The proxy URL with user name and password: not for logs and command lines."""
        return f"http://{self.username}:{self.password}@127.0.0.1:{self._port}"

    @property
    def browser_proxy(self) -> dict[str, str]:
        """The `proxy` argument of playwright for a browser or a browser context."""
        return {
            "server": self.url,
            "username": self.username,
            "password": self.password,
            "bypass": "<-loopback>",
        }

    @property
    def browser_flags(self) -> list[str]:
        """Command-line flags for Chromium, which prevent all other connections."""
        return [
            f"--proxy-server={self.url}",
            "--proxy-bypass-list=<-loopback>",  # else loopback and link-local bypass the proxy
            "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
            "--webrtc-ip-handling-policy=disable_non_proxied_udp",
            "--disable-quic",
            "--dns-prefetch-disable",
            "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no DNS queries
        ]

    # --- connections ----------------------------------------------------------------------------------

    def _accept(self, reader: StreamReader, writer: StreamWriter) -> None:
        if len(self._running) >= self._most:
            writer.write(_answer(503, "Too many connections"))
            writer.close()
            return
        task = asyncio.ensure_future(self._serve(reader, writer))
        self._running.add(task)
        task.add_done_callback(self._running.discard)

    async def _serve(self, reader: StreamReader, writer: StreamWriter) -> None:
        try:
            await _with_timeout(self._serve_one(reader, writer), self._longest_seconds)
        except FetchRefused as refused:
            writer.write(_answer(refused.status, refused.reason))
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError):
            pass  # one side has closed, or is silent
        finally:
            writer.close()

    async def _serve_one(self, reader: StreamReader, writer: StreamWriter) -> None:
        first, headers = await _with_timeout(_head(reader), self._head_seconds)
        match = REQUEST.match(first)
        if match is None:
            raise FetchRefused(400, "Bad request line")
        given = [value for name, value in headers if name == "proxy-authorization"]
        if len(given) != 1 or not compare_digest(given[0].encode("latin-1"), self._credentials):
            raise FetchRefused(407, "Proxy authentication required")
        if match[1] == "CONNECT":
            there = await self._connect(*_authority(match[2], None))
            writer.write(b"HTTP/1.1 200 Connected\r\n\r\n")
            await self._relay((reader, writer), there)
        else:
            await self._forward(reader, writer, match[1], match[2], headers)

    async def _forward(
        self,
        reader: StreamReader,
        writer: StreamWriter,
        method: str,
        target: str,
        headers: list[tuple[str, str]],
    ) -> None:
        """Forward one plain HTTP request and its response, then close the connection. Raises FetchRefused."""
        scheme, _, rest = target.partition("://")
        if scheme.lower() != "http" or not rest:
            raise FetchRefused(400, "Only http and CONNECT are served")
        cut = re.search(r"[/?#\\]", rest)
        end = cut.start() if cut else len(rest)
        path = rest[end:] if rest[end : end + 1] == "/" else "/" + rest[end:]
        if "#" in path or (cut and cut[0] == "\\"):
            raise FetchRefused(400, "Bad address")
        authority = rest[:end]
        if authority.count(":") > 1 and authority[0] != "[":  # httpcore: the Host header has the brackets
            bare, authority = authority, "".join(value for name, value in headers if name == "host")
            if re.sub(r"[][]", "", authority) != bare:
                raise FetchRefused(400, "Bad address")
        host, port = _authority(authority, 80)
        length = _length_of(headers)
        body_reader, body_writer = await self._connect(host, port)
        try:
            kept = _end_to_end_headers(headers, "host", "content-length")
            if length:
                kept.append(("content-length", str(length)))
            lines = [f"{method} {path} HTTP/1.1", f"host: {authority}"]
            body_writer.write(_text([*lines, *(f"{name}: {value}" for name, value in kept)]))
            sending = asyncio.ensure_future(self._send_body(reader, body_writer, length))
            try:
                await self._answer_of(body_reader, writer)
                await self._relay((reader, writer), (body_reader, body_writer), back_only=True)
            except (OSError, asyncio.TimeoutError, asyncio.CancelledError):
                _reset(writer)  # after FIN, a truncated body would look complete
                raise
            finally:
                sending.cancel()
        finally:
            body_writer.close()

    async def _send_body(self, reader: StreamReader, writer: StreamWriter, left: int) -> None:
        while left:
            part = await reader.read(min(left, CHUNK))
            if not part:
                return
            left -= len(part)
            writer.write(part)
            await writer.drain()

    async def _answer_of(self, reader: StreamReader, writer: StreamWriter) -> None:
        """Forward the head of a response, with ``Connection: close``."""
        while True:
            first, headers = await _with_timeout(_head(reader), self._idle_seconds)
            match = STATUS.match(first)
            if match is None or match[1] == "101":
                raise FetchRefused(502, "Bad answer")
            if match[1][0] != "1":
                break
        lines = [first, *(f"{name}: {value}" for name, value in _end_to_end_headers(headers))]
        writer.write(_text(lines))

    async def _relay(
        self,
        here: tuple[StreamReader, StreamWriter],
        there: tuple[StreamReader, StreamWriter],
        *,
        back_only: bool = False,
    ) -> None:
        """Copy bytes in both directions until both sides have closed, a timeout, or the byte limit."""
        loop = asyncio.get_running_loop()
        last = loop.time()
        left = self._most_bytes
        idle_seconds = self._idle_seconds

        async def carry(reader: StreamReader, writer: StreamWriter) -> None:
            nonlocal last, left, idle_seconds
            while True:
                try:
                    part = await _with_timeout(reader.read(CHUNK), min(idle_seconds, ENDED_SECONDS))
                except asyncio.TimeoutError:
                    if loop.time() - last < idle_seconds:
                        continue  # idle for less than `idle_seconds`, or the other direction is busy
                    raise
                last = loop.time()
                left -= len(part)
                if not part:
                    break
                if left < 0:
                    raise ConnectionAbortedError
                writer.write(part)
                await _with_timeout(writer.drain(), self._idle_seconds)
            idle_seconds = min(idle_seconds, ENDED_SECONDS)
            if writer.can_write_eof():
                writer.write_eof()

        ways = [asyncio.ensure_future(carry(there[0], here[1]))]
        if not back_only:
            ways.append(asyncio.ensure_future(carry(here[0], there[1])))
        try:
            await asyncio.gather(*ways)
        finally:
            for way in ways:
                way.cancel()
            there[1].close()

    # --- targets --------------------------------------------------------------------------------------

    async def _connect(self, host: str, port: int) -> tuple[StreamReader, StreamWriter]:
        """Resolve a name, check the addresses, and connect to one of them. Raises FetchRefused."""
        try:
            addresses = await _with_timeout(self._resolve(host, port), CONNECT_SECONDS)
        except (OSError, asyncio.TimeoutError, UnicodeError):
            raise self._refusal(host, port, 502, NOT_RESOLVED) from None
        reachable = [address for address in dict.fromkeys(addresses) if self.may_reach(address, port)]
        if not reachable:
            public = any(self.may_reach(address, WEB_PORTS[0]) for address in addresses)
            raise self._refusal(host, port, 403, NOT_A_WEB_PORT if public else NOT_PUBLIC)
        for address in reachable[:4]:
            try:
                # The address, not the name, so that nothing resolves it again.
                there = await _with_timeout(
                    asyncio.open_connection(address, port, limit=LONGEST_HEAD, flags=socket.AI_NUMERICHOST),
                    CONNECT_SECONDS,
                )
            except (OSError, asyncio.TimeoutError):
                continue
            self.refusals.pop((host, port), None)
            return there
        raise self._refusal(host, port, 502, NO_CONNECTION)

    def may_reach(self, address: str, port: int) -> bool:
        """Return whether it may connect to an address and port: public and not this machine, or allowed."""
        try:
            found = ip_address(address)
        except ValueError:
            return False
        if any(found in network for network in self._allowed):
            return True
        return (port in WEB_PORTS or port >= FIRST_FREE_PORT) and is_public(address) and not _is_own(found)

    def _refusal(self, host: str, port: int, status: int, reason: str) -> FetchRefused:
        self.refusals.pop((host, port), None)
        self.refusals[host, port] = reason
        if len(self.refusals) > REMEMBERED:
            del self.refusals[next(iter(self.refusals))]
        return FetchRefused(status, reason)


async def _with_timeout(awaitable: Awaitable[T], seconds: float) -> T:
    """Await something with a timeout in seconds. Raises asyncio.TimeoutError.

    Before Python 3.12, `asyncio.wait_for` loses a cancellation that arrives just after the awaited result: a
    connection that receives data all the time would not end.
    """
    waiting = asyncio.ensure_future(awaitable)
    try:
        await asyncio.wait((waiting,), timeout=seconds)
    finally:
        if not waiting.done():
            waiting.cancel()
            await asyncio.wait((waiting,))
    if waiting.cancelled():
        raise asyncio.TimeoutError
    return waiting.result()


async def _resolve(host: str, port: int) -> list[str]:
    """Return the addresses of a name, or the normal form of an address. Raises OSError."""
    name = host.lower().rstrip(".")
    if name == "localhost" or name.endswith(".localhost"):  # always loopback (RFC 6761)
        return ["127.0.0.1", "::1"]
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(sockaddr[0]) for *_, sockaddr in found]


def _is_own(address: Address) -> bool:
    """Return whether packets to an address stay on this machine, by the routing table. Sends nothing."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return ip_address(probe.getsockname()[0].partition("%")[0]) == address
    except OSError:
        return False  # no route


def _reset(writer: StreamWriter) -> None:
    """Close a connection with RST, so that the other end sees an error."""
    descriptor = writer.get_extra_info("socket").fileno()
    if descriptor >= 0:
        with socket.socket(fileno=os.dup(descriptor)) as same:  # the transport's socket refuses this
            same.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _head(reader: StreamReader) -> tuple[str, list[tuple[str, str]]]:
    """Read a head: its first line, and its headers with lower-case names. Raises FetchRefused."""
    try:
        data = await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError:
        raise FetchRefused(431, "Head too long") from None
    first, *lines = data[:-4].decode("latin-1").split("\r\n")
    headers = []
    for line in lines:
        match = HEADER.match(line)
        if match is None or any(sign in line for sign in "\r\n\0"):
            raise FetchRefused(400, "Bad header")
        headers.append((match[1].lower(), match[2].strip(" \t")))
    return first, headers


def _authority(text: str, port: int | None) -> tuple[str, int]:
    """Return host and port of ``host:port``, with the host parsed as browsers do (URL Standard, host
    parsing).

    Raises FetchRefused for user information, a zone, characters that are not ASCII, and malformed addresses.
    """
    bare = BARE_V6.match(text) if port is None and text.count(":") > 1 else None
    match = AUTHORITY.match(f"[{bare[1]}]:{bare[2]}" if bare else text)
    if match is None or (match[3] is None and port is None) or not 0 < int(match[3] or port or 0) < 65536:
        raise FetchRefused(400, "Bad address")
    try:
        host = str(IPv6Address(match[1])) if match[1] else _name_or_v4(match[2])
    except ValueError:
        host = None
    if host is None:
        raise FetchRefused(400, "Bad address")
    return host, int(match[3] or port or 0)


def _name_or_v4(text: str) -> str | None:
    """Return a name unchanged, a text that ends in a number as an IPv4 address, or None if that is invalid.

    Resolvers have different rules: they read ``0x7f.1`` as an address, and look up ``1.2.3.08`` as a name.
    """
    labels = text.removesuffix(".").split(".")
    if NUMBER.match(labels[-1]) is None:
        return text
    numbers = [_number(label) for label in labels]
    *parts, last = numbers
    if len(numbers) > 4 or any(part is None or part > 255 for part in parts):
        return None
    if last is None or last >= 256 ** (5 - len(numbers)):
        return None
    return str(IPv4Address(sum((part or 0) << 8 * (3 - place) for place, part in enumerate(parts)) + last))


def _number(label: str) -> int | None:
    """Return the value of one part of an IPv4 address: decimal, octal or hexadecimal; None if invalid."""
    match = NUMBER.match(label)
    if match is None:
        return None
    if match["hexadecimal"] is not None:
        return int(match["hexadecimal"] or "0", 16)
    try:
        return int(label, 8 if label[0] == "0" else 10)
    except ValueError:  # 8 or 9 in an octal number
        return None


def _length_of(headers: list[tuple[str, str]]) -> int:
    """Return the length of a request's body in bytes. Raises FetchRefused if it is not unambiguous."""
    if any(name == "transfer-encoding" for name, _ in headers):
        raise FetchRefused(411, "Length required")
    lengths = {value for name, value in headers if name == "content-length"}
    if len(lengths) > 1 or not all(re.match(r"[0-9]{1,11}\Z", value) for value in lengths):
        raise FetchRefused(400, "Bad length")
    return int(lengths.pop()) if lengths else 0


def _end_to_end_headers(headers: list[tuple[str, str]], *dropped: str) -> list[tuple[str, str]]:
    """Return the end-to-end headers: without hop-by-hop headers and those that ``Connection`` names."""
    named = {
        word.strip().lower() for name, value in headers if name == "connection" for word in value.split(",")
    }
    left_out = HOP_BY_HOP | named | set(dropped)
    return [pair for pair in headers if pair[0] not in left_out]


def _text(lines: list[str]) -> bytes:
    return "\r\n".join([*lines, "connection: close", "", ""]).encode("latin-1")


def _answer(status: int, reason: str) -> bytes:
    extra = 'proxy-authenticate: Basic realm="fastrpc"\r\n' if status == 407 else ""
    head = f"HTTP/1.1 {status} {reason}\r\n{extra}content-type: text/plain\r\nconnection: close\r\n"
    return f"{head}content-length: {len(reason)}\r\n\r\n{reason}".encode()


if not TYPE_CHECKING:  # so that a type checker reports a misspelled name

    def __getattr__(name: str) -> object:
        if name == "CheckingProxy":
            from warnings import warn

            warn(
                "fastrpc.egress_proxy.CheckingProxy is called EgressProxy now",
                DeprecationWarning,
                stacklevel=2,
            )
            return EgressProxy
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

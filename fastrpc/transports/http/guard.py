"""Access control over HTTP: hosts, origins and tokens, checked before a byte of a body is read.

Browsers let any page send requests to addresses on the user's own machine. Therefore Host must be one of
this server's names (DNS rebinding), Origin must be allowed, and a request with `Sec-Fetch-Site` of another
origin is refused even without an Origin. Pure functions of a request's head, except tokens, which the guard's
`HeaderAuthenticator` checks (`auth`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, Protocol

    from fastrpc.transports.http.interfaces import Mapped

    Headers = dict[bytes, list[bytes]]

    class HeaderAuthenticator(Protocol):
        """Authenticates requests by their headers: see `fastrpc.transports.http.auth.Authenticator`."""

        @property
        def needs(self) -> str: ...
        @property
        def metadata(self) -> dict[str, Any] | None: ...
        @property
        def metadata_path(self) -> str | None: ...
        def known(self, headers: Headers) -> Admission | None: ...
        async def check(self, headers: Headers) -> Admission: ...


CORS_HEADERS = (
    "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, "
    "Mcp-Method, Mcp-Name"
)
PARAMETER = re.compile(r"mcp-param-[a-z0-9!#$%&'*+.^_`|~-]{1,64}\Z")
HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._~!$&'()*+;=%-]{1,255}?)\.?(?::([0-9]{0,5}))?\Z")
ABSOLUTE = re.compile(rb"https?://([^/?#]*)(.*)\Z", re.IGNORECASE | re.DOTALL)
LOOPBACK = re.compile(r"localhost\Z|\[::1\]\Z|127(?:\.(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])){3}\Z")
ORIGIN_SCHEME = re.compile(r"[a-z][a-z0-9+.-]{0,63}\Z")
DEFAULT_PORTS = {"http": "80", "https": "443"}


class Refused(Exception):
    """A refused request: the HTTP status, and the code and message of the JSON-RPC error."""

    def __init__(
        self, status: int, message: str, code: int = -32600, headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = list(headers)


class AuthenticationPending(Exception):
    """Authenticating the token takes I/O: `AccessRules.authenticate` does that."""


@dataclass(slots=True, eq=False, repr=False)
class Admission:
    """An authenticated principal, and until when that is valid (`time.monotonic`; None: always).

    `access_token` is what the token's source found out of it, for handlers (`access_token`); None: nothing.
    """

    principal: str
    until: float | None
    access_token: object = None


class AccessRules:
    """The rules of one server.

    `authenticator` checks tokens; None: no token is needed. `hosts` (``name`` or ``name:port``) and `origins`
    are allowed; so are the loopback ones if the server listens on `loopback` addresses. With `loopback` false
    and no `hosts` every Host is allowed.
    """

    def __init__(
        self,
        authenticator: HeaderAuthenticator | None,
        *,
        loopback: bool = True,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
    ) -> None:
        self.authenticator = authenticator
        self._loopback = loopback
        self._hosts = {_host_entry(host) for host in hosts}
        self._origins = {_origin_entry(origin) for origin in origins}

    def check_place(self, headers: Headers) -> str | None:
        """Check Host and Origin; return the origin, for the CORS headers.

        Raises Refused as `check_host` does, and 403 for an Origin that is not allowed (MCP 2025-11-25,
        transports).
        """
        self.check_host(headers)
        origins = headers.get(b"origin")
        if origins is None:
            sites = headers.get(b"sec-fetch-site")
            if sites is not None and any(site not in (b"same-origin", b"none") for site in sites):
                raise Refused(403, "Sec-Fetch-Site: pages from elsewhere may not use this server")
            return None
        origin = origins[0].decode("latin-1")
        if len(origins) > 1 or not self._is_our_origin(origin.lower()):
            raise Refused(403, "Origin: pages from there may not use this server")
        return origin

    def check_host(self, headers: Headers) -> None:
        """Raise Refused: 400 for an invalid Host (RFC 9112, 3.2), 421 for one that is not this server's."""
        hosts = headers.get(b"host", ())
        match = HOST.match(hosts[0].decode("latin-1").lower()) if len(hosts) == 1 else None
        if match is None:
            raise Refused(400, "Host: expected one, a name and perhaps a port")
        if not self._is_our_host(match[1], match[2]):
            raise Refused(421, "Host: this server does not answer to that name")

    def _is_our_host(self, name: str, port: str | None) -> bool:
        if self._hosts:
            # Without a port the scheme's default is meant, and only a reverse proxy knows the scheme.
            ports = [port] if port else DEFAULT_PORTS.values()
            if name in self._hosts or any(f"{name}:{each}" in self._hosts for each in ports):
                return True
        return LOOPBACK.match(name) is not None if self._loopback else not self._hosts

    def _is_our_origin(self, origin: str) -> bool:
        if origin in self._origins:
            return True
        scheme, separator, rest = origin.partition("://")
        if not (self._loopback and separator and scheme in ("http", "https")):
            return False
        match = HOST.match(rest)
        return match is not None and LOOPBACK.match(match[1]) is not None

    @property
    def needs(self) -> str:
        """What a caller must send, as the predicate of "this server …"."""
        return "needs no token" if self.authenticator is None else self.authenticator.needs

    def admit(self, headers: Headers) -> Admission:
        """Return the principal of a request. Raises Refused, and AuthenticationPending if it takes I/O."""
        if self.authenticator is None:
            return ANYBODY
        admission = self.authenticator.known(headers)
        if admission is None:
            raise AuthenticationPending
        return admission

    async def authenticate(self, headers: Headers) -> Admission:
        """Return the principal of a request. Raises Refused: 401, or 403 for a missing scope."""
        if self.authenticator is None:
            return ANYBODY
        return await self.authenticator.check(headers)


ANYBODY = Admission("", None)


def is_loopback(host: str) -> bool:
    """Whether an address to listen on can be reached from this machine only."""
    host = host.strip().lower()
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    return LOOPBACK.match(host) is not None


def cors_headers(origin: str | None) -> list[tuple[bytes, bytes]]:
    """Return the headers that let a page of a known origin read an answer."""
    if origin is None:
        return []
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (
            b"access-control-expose-headers",
            b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate, Retry-After",
        ),
        (b"vary", b"Origin"),
    ]


def preflight_headers(headers: Headers) -> list[tuple[bytes, bytes]]:
    """Return the headers of a preflight response besides `cors_headers` (Fetch: CORS-preflight request).

    Of the headers that are asked for, those for arguments (``Mcp-Param-…``) are allowed besides fixed ones.
    """
    asked = b",".join(headers.get(b"access-control-request-headers", ()))[:4096].decode("latin-1").lower()
    parameters = [name for name in map(str.strip, asked.split(",")) if PARAMETER.match(name)]
    answer = [
        (b"access-control-allow-methods", b"GET, POST, DELETE, OPTIONS"),
        (b"access-control-allow-headers", ", ".join([CORS_HEADERS, *parameters]).encode("latin-1")),
        (b"access-control-max-age", b"600"),
    ]
    if headers.get(b"access-control-request-private-network") == [b"true"]:
        answer.append((b"access-control-allow-private-network", b"true"))
    return answer


def _host_entry(host: str) -> str:
    """Return an allowed host as it is compared. Raises UsageError."""
    host = host.strip().lower()
    if host.count(":") > 1 and not host.startswith("["):
        host = f"[{host}]"
    match = HOST.match(host)
    name = None if match is None else _written(match[1])
    if match is None or name is None:
        raise UsageError(f"--allow-host: expected a name or name:port; got {host:.100}")
    return f"{name}:{match[2]}" if match[2] else name


def _origin_entry(origin: str) -> str:
    """Return an allowed origin as browsers write it: without its scheme's own port. Raises UsageError."""
    origin = origin.strip().lower().rstrip("/")
    scheme, separator, rest = origin.partition("://")
    match = HOST.match(rest)
    name = None if match is None else _written(match[1])
    if match is None or name is None or not (separator and ORIGIN_SCHEME.match(scheme)):
        raise UsageError(f"--allow-origin: expected scheme://host or scheme://host:port; got {origin:.100}")
    port = f":{match[2]}" if match[2] and match[2] != DEFAULT_PORTS.get(scheme) else ""
    return f"{scheme}://{name}{port}"


def _written(name: str) -> str | None:
    """Return a name as clients write it: an address of IPv6 has one short form. None if it is none."""
    if not name.startswith("["):
        return name
    from ipaddress import IPv6Address

    try:
        return f"[{IPv6Address(name[1:-1])}]"
    except ValueError:
        return None


def origin_form(method: str, target: bytes, headers: list[tuple[bytes, bytes]]) -> bytes:
    """Return the path and query of a request target that does not begin with a path.

    The host of an absolute form replaces the Host in `headers` (RFC 9112, 3.2.2), so that it is
    checked. A broken, missing or repeated Host remains: such a request is refused whatever the target is
    (3.2). Raises Refused: 501 for a tunnel, 400 for all other forms.
    """
    if target == b"*" and method == "OPTIONS":
        return target
    match = ABSOLUTE.match(target)
    if match is None and method == "CONNECT":
        raise Refused(501, "CONNECT: this server opens no tunnels")
    if match is None:
        raise Refused(400, "The request target: expected a path, or an http or https URL")
    hosts = [number for number, (name, _) in enumerate(headers) if name.lower() == b"host"]
    if len(hosts) == 1 and HOST.match(headers[hosts[0]][1].decode("latin-1").lower()):
        headers[hosts[0]] = (b"host", match[1])
    return match[2] if match[2].startswith(b"/") else b"/" + match[2]


def headers_of(scope: Mapped) -> Headers:
    """Return the headers of an ASGI scope by their lower-case names."""
    found: Headers = {}
    for name, value in scope["headers"]:
        found.setdefault(name.lower(), []).append(value)
    return found

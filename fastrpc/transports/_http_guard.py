"""Who may speak to the server over HTTP: hosts, origins and tokens, checked before a byte of a body is read.

Browsers let any page send requests to addresses on the user's own machine; so the Host must be one that we
answer to (DNS rebinding), and an Origin one that we know. A token is compared in constant time; what was sent
is kept nowhere. Pure functions of a request's head: no I/O.
"""

from __future__ import annotations

import hashlib
import hmac

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "::1")
CORS_METHODS = "GET, POST, DELETE, OPTIONS"
CORS_HEADERS = "Authorization, Content-Type, Accept, Last-Event-ID, Mcp-Session-Id, MCP-Protocol-Version, Mcp-Method, Mcp-Name"


class Refused(Exception):
    """A request that is not let in: its status, the JSON-RPC code and the words of its answer."""

    def __init__(
        self, status: int, message: str, code: int = -32600, headers: Iterable[tuple[bytes, bytes]] = ()
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.code = code
        self.headers = list(headers)


class Guard:
    """The rules of one server.

    `tokens`: those that open it, None for no authentication; `hosts` and `origins`: names that are answered
    to besides the loopback ones, which are for a loopback bind alone. With `loopback` false and no `hosts`
    every Host is taken.
    """

    def __init__(
        self,
        tokens: Iterable[str] | None,
        *,
        loopback: bool = True,
        hosts: Iterable[str] = (),
        origins: Iterable[str] = (),
        metadata_url: str | None = None,
    ) -> None:
        self._digests = None if tokens is None else [_digest(token.encode()) for token in tokens]
        self._loopback = loopback
        self._hosts = {host.lower() for host in hosts}
        self._origins = {origin.lower().rstrip("/") for origin in origins}
        self._metadata_url = metadata_url

    def check_place(self, headers: dict[bytes, list[bytes]]) -> str | None:
        """Hold Host and Origin against the rules; return the origin, if it is one that CORS lets read.

        Raises Refused.
        """
        hosts = headers.get(b"host", [])
        if len(hosts) > 1 or (hosts and not self._is_our_host(hosts[0].decode("latin-1").lower())):
            raise Refused(421 if len(hosts) == 1 else 400, "Host: this server does not answer to that name")
        origins = headers.get(b"origin", [])
        if not origins:
            return None
        origin = origins[0].decode("latin-1").lower()
        if len(origins) > 1 or not self._is_our_origin(origin):
            raise Refused(403, "Origin: pages from there may not use this server")
        return origins[0].decode("latin-1")

    def _is_our_host(self, host: str) -> bool:
        name = _without_port(host)
        if self._loopback:
            return name in LOOPBACK or host in self._hosts or name in self._hosts
        return not self._hosts or host in self._hosts or name in self._hosts

    def _is_our_origin(self, origin: str) -> bool:
        if origin in self._origins:
            return True
        scheme, separator, rest = origin.partition("://")
        return (
            self._loopback
            and bool(separator)
            and scheme in ("http", "https")
            and _without_port(rest) in LOOPBACK
        )

    def principal_of(self, headers: dict[bytes, list[bytes]]) -> str:
        """Return who asks: a digest of the token, "" where none is needed. Raises Refused (401)."""
        if self._digests is None:
            return ""
        given = headers.get(b"authorization", [])
        if len(given) == 1:
            scheme, _, token = given[0].partition(b" ")
            if scheme.lower() == b"bearer" and token:
                digest = _digest(token.strip())
                # All are compared, so that time does not tell which one was nearly right.
                if sum(hmac.compare_digest(digest, known) for known in self._digests):
                    return digest.hex()
        challenge = b"Bearer"
        if self._metadata_url is not None:
            challenge += b' resource_metadata="' + self._metadata_url.encode() + b'"'
        if given:
            challenge += b', error="invalid_token"' if b" " in challenge else b' error="invalid_token"'
        raise Refused(
            401, "Unauthorized: a bearer token is needed", headers=[(b"www-authenticate", challenge)]
        )


def cors_headers(origin: str | None) -> list[tuple[bytes, bytes]]:
    """Return the headers that let a page of a known origin read an answer."""
    if origin is None:
        return []
    return [
        (b"access-control-allow-origin", origin.encode("latin-1")),
        (b"access-control-expose-headers", b"Mcp-Session-Id, MCP-Protocol-Version, WWW-Authenticate"),
        (b"vary", b"Origin"),
    ]


def preflight_headers(origin: str) -> list[tuple[bytes, bytes]]:
    return [
        *cors_headers(origin),
        (b"access-control-allow-methods", CORS_METHODS.encode()),
        (b"access-control-allow-headers", CORS_HEADERS.encode()),
        (b"access-control-max-age", b"600"),
    ]


def _digest(token: bytes) -> bytes:
    return hashlib.sha256(token).digest()


def _without_port(host: str) -> str:
    """Return the name of a Host: ``[::1]:80`` and ``localhost:80`` without the port, and a dot at the end."""
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    name, colon, port = host.partition(":")
    return name.removesuffix(".") if not colon or port.isdigit() else host


def headers_of(scope: Any) -> dict[bytes, list[bytes]]:
    """Return the headers of an ASGI scope by their lower-case names."""
    found: dict[bytes, list[bytes]] = {}
    for name, value in scope["headers"]:
        found.setdefault(name.lower(), []).append(value)
    return found

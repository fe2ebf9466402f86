"""Checkpoints as POST requests, signed with a shared secret (HMAC-SHA-256).

The body is the checkpoint's line, as ``application/json``, signed as in `fastrpc.signed_requests`. A
checkpoint may arrive twice, if its response got lost. A status of 200 to 299 acknowledges it; redirects are
not followed. A request ends after `ANSWER_SECONDS` in total, even while its response still arrives.
"""

from __future__ import annotations

from io import BufferedReader, RawIOBase
from time import monotonic, time
from urllib.parse import urlsplit

from fastrpc.redaction import hide
from fastrpc.signed_requests import headers_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from socket import socket
    from typing import Any

    from typing_extensions import Buffer

ANSWER_SECONDS = 10.0
LONGEST_ANSWER = 64 * 1024


URL_EXPECTED = "expected an http or https URL without a name or a password in it"


def is_webhook_url(url: str) -> bool:
    """Whether a URL has the form that `URL_EXPECTED` describes."""
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None


class WebhookTarget:
    """A URL, http or https, and the secret that is shared with its server. Raises ValueError for any other
    URL, and for an empty secret."""

    def __init__(self, url: str, secret: str, timeout_seconds: float = ANSWER_SECONDS) -> None:
        parts = urlsplit(url)
        if not is_webhook_url(url) or parts.hostname is None:
            raise ValueError(f"webhook: {URL_EXPECTED}")
        if not secret:
            raise ValueError("webhook: expected a secret")
        hide(secret)
        self._is_https = parts.scheme == "https"
        self._host, self._port = parts.hostname, parts.port
        self._target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self._secret = secret.encode()
        self._timeout = timeout_seconds
        self.name = f"the webhook {parts.scheme}://{parts.netloc}{parts.path}"

    def send(self, line: bytes) -> None:
        """Send a checkpoint. Raises OSError, and HTTPException for an invalid response."""
        from http.client import HTTPConnection, HTTPResponse
        from socket import create_connection

        headers = {
            "Content-Type": "application/json",
            "User-Agent": "fastrpc-audit",
            **headers_of(self._secret, line, time()),
        }
        until = monotonic() + self._timeout
        usual = 443 if self._is_https else 80
        port = self._port or usual
        connection = HTTPConnection(self._host, port)
        connection.default_port = usual
        try:
            with create_connection((self._host, port), self._timeout) as plain, self._tls(plain) as socket:
                ours: Any = _UntilThen(socket, until)
                connection.sock = ours
                connection.request("POST", self._target, line, headers)
                answer = HTTPResponse(ours, method="POST")
                answer.begin()
                answer.read(LONGEST_ANSWER)
        except TimeoutError:
            raise TimeoutError(f"it has not answered within {self._timeout:g} s") from None
        if not 200 <= answer.status < 300:
            raise OSError(f"it answered with status {answer.status}")

    def _tls(self, plain: socket) -> socket:
        if not self._is_https:
            return plain
        from ssl import create_default_context

        return create_default_context().wrap_socket(plain, server_hostname=self._host)


class _UntilThen(RawIOBase):
    """A connection for `http.client` with a deadline: the timeout of a socket restarts with each byte.

    Raises TimeoutError.
    """

    def __init__(self, connected: socket, until: float) -> None:
        self._connected = connected
        self._until = until

    def sendall(self, data: bytes) -> None:
        self._limit()
        self._connected.sendall(data)

    def makefile(self, mode: str) -> BufferedReader:
        return BufferedReader(self)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        self._limit()
        return self._connected.recv_into(buffer)

    def _limit(self) -> None:
        left = self._until - monotonic()
        if left <= 0:
            raise TimeoutError
        self._connected.settimeout(left)

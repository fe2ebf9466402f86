"""Checkpoints as POST requests, signed with a shared secret (HMAC-SHA-256).

The body is the checkpoint's line, as ``application/json``. ``X-Fastrpc-Timestamp`` holds seconds since 1970,
``X-Fastrpc-Signature`` is ``sha256=`` and the HMAC, in hex, of the timestamp, a full stop and the body: a
receiver that refuses old timestamps cannot be sent an old request again. A checkpoint may come twice, if its
answer got lost. A status of 200 to 299 says that it has arrived; redirects are not followed.
"""

from __future__ import annotations

import hmac
from time import time
from urllib.parse import urlsplit

from fastrpc.redaction import hide

ANSWER_SECONDS = 10.0
LONGEST_ANSWER = 64 * 1024


URL_EXPECTED = "expected an http or https URL without a name or a password in it"


def is_webhook_url(url: str) -> bool:
    """Whether a URL is what `URL_EXPECTED` says."""
    parts = urlsplit(url)
    return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.username is None


def signature_of(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the signature of a request, as its header has it."""
    signed = timestamp.encode("latin-1", "replace") + b"." + body
    return f"sha256={hmac.new(secret, signed, 'sha256').hexdigest()}"


class WebhookTarget:
    """A URL, http or https, and the secret that is shared with it. Raises ValueError for any other URL, and
    for an empty secret."""

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
        """Send a checkpoint. Raises OSError, and HTTPException for an answer that is none."""
        from http.client import HTTPConnection, HTTPSConnection

        timestamp = str(int(time()))
        headers = {
            "Content-Type": "application/json",
            "User-Agent": "fastrpc-audit",
            "X-Fastrpc-Timestamp": timestamp,
            "X-Fastrpc-Signature": signature_of(self._secret, timestamp, line),
        }
        kind = HTTPSConnection if self._is_https else HTTPConnection
        connection = kind(self._host, self._port, timeout=self._timeout)
        try:
            connection.request("POST", self._target, line, headers)
            answer = connection.getresponse()
            answer.read(LONGEST_ANSWER)
            if not 200 <= answer.status < 300:
                raise OSError(f"it answered with status {answer.status}")
        finally:
            connection.close()

"""HTTP requests that are signed with a secret which sender and receiver share.

``X-Fastrpc-Timestamp`` holds seconds since 1970, ``X-Fastrpc-Signature`` is ``sha256=`` and the HMAC-SHA-256,
in hexadecimal, of the timestamp, a full stop and the body. A receiver that refuses old timestamps is
protected against replays.
"""

from __future__ import annotations

import hmac

TIMESTAMP, SIGNATURE = "X-Fastrpc-Timestamp", "X-Fastrpc-Signature"
NEWEST_SECONDS = 300.0
"""How far the timestamp of a request may be from the receiver's clock."""


def signature_of(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the signature of a request, as its header has it."""
    signed = timestamp.encode("latin-1", "replace") + b"." + body
    return f"sha256={hmac.new(secret, signed, 'sha256').hexdigest()}"


def headers_of(secret: bytes, body: bytes, now: float) -> dict[str, str]:
    """Return both headers of a request that is sent now."""
    timestamp = str(int(now))
    return {TIMESTAMP: timestamp, SIGNATURE: signature_of(secret, timestamp, body)}


def is_signed(secret: bytes, timestamp: str, body: bytes, signature: str) -> bool:
    """Whether a request has a timestamp and the secret's signature. Takes the same time for a wrong one."""
    expected = signature_of(secret, timestamp, body)
    is_right = hmac.compare_digest(expected.encode(), signature.encode())
    return is_right and timestamp.isascii() and timestamp.isdigit()


def is_recent(timestamp: str, now: float) -> bool:
    """Whether a timestamp of `is_signed` is near enough to this clock."""
    return abs(now - int(timestamp[:20])) <= NEWEST_SECONDS

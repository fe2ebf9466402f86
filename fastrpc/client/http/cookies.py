"""The cookies of one origin, as far as MCP needs them: load balancers route sessions by them (RFC 6265).

They go back to the origin that has set them and nowhere else, whatever their domain and path say. No I/O.

Why not `http.cookiejar`: it takes requests and responses of urllib, imports 46 modules (the rest of this
client 32), and its rules of domains and paths must not apply here. `http.cookies` does not decide what has
expired, and its parser stops at an unusual character.
"""

from __future__ import annotations

from collections.abc import Iterable

MOST_COOKIES = 50
LONGEST_COOKIE = 4096
"""Bytes; of more and of longer ones nothing is kept (RFC 6265, 6.1)."""


class Cookies:
    """Cookies by name. `line`: the header that sends them, b"" for none."""

    def __init__(self) -> None:
        self.line = b""
        self._values: dict[bytes, bytes] = {}

    def take(self, headers: Iterable[tuple[bytes, bytes]]) -> None:
        """Store what the headers of a response set, and forget what they let expire."""
        for header, value in headers:
            if header == b"set-cookie" and len(value) <= LONGEST_COOKIE:
                self._set(value)
        pairs = [b"%b=%b" % pair for pair in self._values.items()]
        self.line = b"cookie: " + b"; ".join(pairs) + b"\r\n" if pairs else b""

    def _set(self, text: bytes) -> None:
        pair, *attributes = text.split(b";")
        name, equals, value = pair.partition(b"=")
        name, value = name.strip(), value.strip()
        if not name or not equals:
            return
        if _is_expired(attributes):
            self._values.pop(name, None)
        elif name in self._values or len(self._values) < MOST_COOKIES:
            self._values[name] = value


def _is_expired(attributes: list[bytes]) -> bool:
    """Whether a cookie is to be forgotten: Max-Age decides before Expires (RFC 6265, 5.3)."""
    found: dict[bytes, bytes] = {}
    for attribute in attributes:
        name, _, value = attribute.partition(b"=")
        found[name.strip().lower()] = value.strip()
    if b"max-age" in found:
        seconds = found[b"max-age"]
        return seconds.lstrip(b"-").isdigit() and (seconds.startswith(b"-") or not seconds.strip(b"0"))
    if b"expires" not in found:
        return False
    from datetime import datetime, timezone
    from email.utils import parsedate_to_datetime

    try:
        until = parsedate_to_datetime(found[b"expires"].decode("latin-1"))
    except (ValueError, TypeError):
        return False
    return until.replace(tzinfo=until.tzinfo or timezone.utc) <= datetime.now(timezone.utc)

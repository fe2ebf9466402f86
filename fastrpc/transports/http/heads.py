"""Checks the heads of requests that may take the fast path: their principal, and what the body must be.

Clients repeat the same head, with another content length. A head that was parsed and admitted once is found
by its exact bytes (`remembered`); one that differs from the last only in its length, session or trace context
is matched against a template. Heads are checked by the rules of the regular path, and some more.
"""

from __future__ import annotations

import re

from fastrpc.errors import HeaderMismatch
from fastrpc.protocol.versions import SESSION_VERSIONS, STATELESS
from fastrpc.transports.http.guard import AuthenticationPending, Refused
from fastrpc.transports.http.headers import decoded, parameter_headers
from fastrpc.transports.http.remembered import Head, path_of, template_of
from fastrpc.transports.http.request import HttpRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.transports.http.app import HttpApp
    from fastrpc.transports.http.remembered import Meaning, RememberedRequests

LONGEST_HEAD = 8 * 1024
MOST_HEADERS = 50
LONGEST_BODY = 1024 * 1024

PLAIN_PATH = re.compile(r"[/A-Za-z0-9._~-]+")
CALL, LIST = b"tools/call", b"tools/list"
REGULAR_PATH_ONLY = {b"transfer-encoding", b"expect", b"upgrade", b"trailer", b"proxy-connection", b"origin"}
"""Headers that this file does not support."""

MEANINGFUL = {
    b"accept",
    b"authorization",
    b"content-encoding",
    b"content-type",
    b"host",
    b"mcp-method",
    b"mcp-name",
    b"mcp-protocol-version",
    b"mcp-session-id",
    b"sec-fetch-site",
}
"""Headers that decide whether a head is admitted. The check sees no others, and of a session id only that it
is present."""

NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
PLAIN = bytes(range(0x20, 0x7F)) + b"\t\r\n"
NAMES_KEPT = 256
LENGTH = re.compile(rb"[0-9]{1,8}")


class HeadChecker:
    """Checks the heads of requests to one server, and has `remembered` keep the results."""

    def __init__(self, app: HttpApp, remembered: RememberedRequests) -> None:
        self._app = app
        self._remembered = remembered
        self._request_lines = {
            b"POST %b HTTP/1.1" % path.encode() for path in app.mcp_paths if PLAIN_PATH.fullmatch(path)
        }
        self._names: dict[bytes, bytes] = {}  # header names in lower case

    def check(self, text: bytes) -> Head | None:
        """Check a head that is not remembered; None if it takes the regular path."""
        head = self._match_template(text)
        try:
            head = head or self._check(text)
        except AuthenticationPending:  # the regular path authenticates the token, for the next request too
            return None
        if head is None:
            self._remembered.add_regular(text)
            return None
        head.text = text
        self._remembered.add_head(text, head)
        return head

    def _match_template(self, text: bytes) -> Head | None:
        """Return a head that matches the last one's template, else None."""
        template = self._remembered.template
        values = None if template is None else template.values(text)
        if template is None or values is None or template.head.is_expired:
            return None
        length = values[template.length_at]
        if not self._is_length(length):
            return None
        session = values[template.session_at].decode("ascii") if template.head.in_session else ""
        return template.head.of(int(length), session, template.path)

    def _is_length(self, text: bytes) -> bool:
        """Whether a body of this length may take the fast path."""
        return LENGTH.fullmatch(text) is not None and 0 < int(text) <= min(LONGEST_BODY, self._app.max_body)

    def _check(self, text: bytes) -> Head | None:
        """Check a head by the rules of the regular path, and some more; None if it is not admitted.

        Raises AuthenticationPending for a token that is not known, or not at this time.
        """
        if hash(text) in self._remembered.regular or len(text) > LONGEST_HEAD:
            return None
        given = self._read(text)
        if given is None:
            return None
        length = given.get(b"content-length", b"")
        if (
            not given.keys().isdisjoint(REGULAR_PATH_ONLY)
            or given.get(b"connection", b"keep-alive").lower() != b"keep-alive"
            or not self._is_length(length)
        ):
            return None
        session = given.get(b"mcp-session-id")
        if session is not None:
            given[b"mcp-session-id"] = b""
        meaning = tuple([pair for pair in given.items() if pair[0] in MEANINGFUL])
        known = self._remembered.meanings.get(meaning)
        if known is None or known.is_expired:
            known = self._admit(meaning)
            if known is None:
                return None
            self._remembered.add_meaning(meaning, known)
        if known.in_session and not session:
            return None
        self._remembered.template = template_of(text, known)
        named = session.decode("ascii") if known.in_session and session else ""
        return known.of(int(length), named, path_of(text))

    def _read(self, text: bytes) -> dict[bytes, bytes] | None:
        """Return the headers of a head that all parsers would parse alike; None for any other.

        Names are tokens and unique; no space before a colon or at the end of a line.
        """
        first, *lines = text.split(b"\r\n")
        count = len(lines)
        if (
            first not in self._request_lines
            or count > MOST_HEADERS
            or text.translate(None, PLAIN)
            or not text.count(b"\r") == text.count(b"\n") == count
        ):
            return None
        names = self._names
        given = {}
        for line in lines:
            name, colon, value = line.partition(b":")
            known = names.get(name)
            if known is None:
                if NAME.fullmatch(name) is None:
                    return None
                if len(names) >= NAMES_KEPT:
                    names.clear()
                known = names[name] = name.lower()
            if not colon or line.endswith((b" ", b"\t")):
                return None
            given[known] = value.lstrip(b" \t")
        return given if len(given) == count else None

    def _admit(self, meaning: Meaning) -> Head | None:
        given = dict(meaning)
        version = given.get(b"mcp-protocol-version")
        method = given.get(b"mcp-method", b"")
        if version != STATELESS.encode():
            if b"mcp-session-id" not in given or not (
                version is None or version.decode() in SESSION_VERSIONS
            ):
                return None
            method = b""
        elif method not in (CALL, LIST):
            return None
        request = HttpRequest({"method": "POST", "path": "/mcp", "headers": meaning}, None, None)  # type: ignore[arg-type]
        guard = self._app.guard
        try:
            guard.check_place(request.headers)
            request.check_form()
            name = decoded("Mcp-Name", given.get(b"mcp-name", b"").decode("ascii")) if method == CALL else ""
        except (Refused, HeaderMismatch):
            return None
        if not request.accepts(*self._app.media_types):
            return None
        schema: Any = self._app.tool_schema(name) if method == CALL else {}
        if schema is None or parameter_headers(schema):
            return None
        try:
            admission = guard.admit(request.headers)
        except Refused:
            raise AuthenticationPending from None
        return Head(method, name.encode(), admission.principal, admission.until, admission.access_token)

"""The straight way for the likely request over HTTP: a stateless call or list, from its bytes to its answer.

Clients send the same head again and again but for its length. A head that has been read and let in once is known by
its exact bytes; its body then goes to the compiled parser, is held against what the head says of it, and its answer
is ready before anything else of HTTP exists: 2 µs a call beside what the sockets cost.

Two rules keep it honest. It knows fewer requests than the long way and answers them with the same bytes: whatever
is not sure goes the other way, untouched, before anything has happened. And what has begun is answered here:
nothing is done twice.
"""

from __future__ import annotations

import re
from time import monotonic

from fastrpc import log
from fastrpc.errors import InternalError
from fastrpc.transports.http.guard import Refused, Unsettled
from fastrpc.transports.http.headers import HeaderMismatch, decoded, parameter_headers
from fastrpc.transports.http.request import Request, error_line
from fastrpc.versions import MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from typing import Any

    from fastrpc.transports.http.app import HttpApp

    Headers = list[tuple[bytes, bytes]]

HEADS_KEPT = 1024
OTHERS_KEPT = 4096
LONGEST_HEAD = 8 * 1024
MOST_HEADERS = 50
LONGEST_BODY = 1024 * 1024

REQUEST_LINES = (b"POST /mcp HTTP/1.1", b"POST /mcp/http HTTP/1.1")
CALL, LIST = b"tools/call", b"tools/list"
LONG_WAY = {b"transfer-encoding", b"expect", b"upgrade", b"trailer", b"proxy-connection", b"origin"}
"""Headers that mean more than this file knows of."""

HEADER = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*([\x21-\x7e](?:[\t\x20-\x7e]*[\x21-\x7e])?|)")
"""A header that every reader reads alike: a plain name, no space before the colon, no space at the end."""
LENGTH = re.compile(rb"[0-9]{1,8}")

OK = b"HTTP/1.1 200 OK\r\n"
JSON = b"\r\ncontent-type: application/json\r\n\r\n"


class Head:
    """A head that was let in: how long its body is, and what it says is in it."""

    __slots__ = ("length", "method", "name", "valid_until")

    def __init__(self, length: int, method: bytes, name: bytes, valid_until: float | None) -> None:
        self.length = length
        self.method = method
        self.name = name
        self.valid_until = valid_until


class HotPath:
    """Answers likely requests of one server in one event loop, whatever connection they come by.

    It takes the dispatcher's place behind a connection of its own, so that it hears of every message that the
    connection does not answer by itself.
    """

    def __init__(self, app: HttpApp, loop: AbstractEventLoop) -> None:
        self._app = app
        self._dispatcher: Any = app.connect()
        self._connection = self._dispatcher.connection
        self._connection.dispatcher = self
        self._connection.call_in_loop = lambda function: function()
        self._dispatcher.loop_runs(loop)
        self._plans: Any = None
        self._heads: dict[bytes, Head] = {}
        self._others: set[int] = (
            set()
        )  # of heads that go the long way, their hashes: what they hold is not kept
        self._headers: Headers = []
        self._begin = b""
        self._busy = False
        self._missed = False
        self._id: bytes | None = None  # of a request that Python has answered: that may be an error

    def close(self) -> None:
        """Be forgotten by the server, which may wait for its last connection to end."""
        self._dispatcher.close()

    # --- heads ------------------------------------------------------------------------------------------

    def head(self, text: bytes) -> Head | None:
        """Return what is known of a head, given without its last empty line; None for one that goes the long way."""
        if self._connection.plans is not self._plans and not self._take_plans():
            return None
        head = self._heads.get(text)
        if head is None:
            return self._meet(text)
        if head.valid_until is not None and head.valid_until <= monotonic():
            del self._heads[text]
            return self._meet(text)
        return head

    def _take_plans(self) -> bool:
        """The tools have changed: every head is judged anew. False if they cannot be had."""
        self._heads.clear()
        self._others.clear()
        self._plans = None
        try:
            self._dispatcher.quiet()
        except Exception as error:
            log.write("error", "the tools cannot be planned", error)
            return False
        self._plans = self._connection.plans
        return True

    def _meet(self, text: bytes) -> Head | None:
        """Judge a head, and know it from now on."""
        if hash(text) in self._others:
            return None
        try:
            head = self._judge(text)
        except Unsettled:  # the long way finds out whose the token is; the next request with it may be let in
            return None
        if head is None:
            if len(self._others) >= OTHERS_KEPT:
                self._others.clear()
            self._others.add(hash(text))
            return None
        if len(self._heads) >= HEADS_KEPT:
            self._heads.clear()
        self._heads[text] = head
        return head

    def _judge(self, text: bytes) -> Head | None:
        """Judge a head by the long way's own rules, and more narrowly. Raises Unsettled for a token that is not
        known, or not now.
        """
        first, *lines = text.split(b"\r\n")
        if len(text) > LONGEST_HEAD or first not in REQUEST_LINES:
            return None
        pairs = []
        for line in lines:
            found = HEADER.fullmatch(line)
            if found is None:
                return None
            pairs.append((found[1].lower(), found[2]))
        given = dict(pairs)
        length, method = given.get(b"content-length", b""), given.get(b"mcp-method", b"")
        if (
            len(given) < len(pairs)
            or len(pairs) > MOST_HEADERS
            or given.keys() & LONG_WAY
            or given.get(b"connection", b"keep-alive").lower() != b"keep-alive"
            or not LENGTH.fullmatch(length)
            or not 0 < int(length) <= min(LONGEST_BODY, self._app.max_body)
            or given.get(b"mcp-protocol-version") != MODERN.encode()
            or method not in (CALL, LIST)
        ):
            return None
        request = Request({"method": "POST", "path": "/mcp", "headers": pairs}, None, None)  # type: ignore[arg-type]
        guard = self._app.guard
        try:
            guard.check_place(request.headers)
            request.check_form()
            name = decoded("Mcp-Name", given.get(b"mcp-name", b"").decode("ascii")) if method == CALL else ""
        except (Refused, HeaderMismatch):
            return None
        if not request.accepts("application/json", "text/event-stream"):
            return None
        schema = self._app.tool_schema(name) if method == CALL else {}
        if schema is None or parameter_headers(schema):
            return None
        try:
            admission = guard.admit(request.headers)
        except Refused:
            raise Unsettled from None
        return Head(int(length), method, name.encode(), admission.until)

    # --- answers ----------------------------------------------------------------------------------------

    def answer(self, head: Head, body: bytes, headers: Headers) -> bytes | None:
        """Return the answer to a request, `headers` in it as HTTP; None for one that goes the long way: nothing
        has happened then.
        """
        if self._busy or self._app.stopping:  # busy: a tool that runs the loop is being called
            return None
        self._busy = True
        self._missed = False
        try:
            mine = self._connection.receive_named(body, head.method, head.name)
        except Exception as error:
            return self._failed(error, headers)
        finally:
            self._busy = False
        if not mine or self._missed:
            return None
        answer: bytes = self._connection.output.take()
        if self._id is not None:
            return self._answer_of_python(answer, headers)
        if headers is not self._headers:  # another second has begun, and Date with it
            self._take_headers(headers)
        return b"%b%d%b%b" % (self._begin, len(answer) - 1, JSON, answer[:-1])

    def _take_headers(self, headers: Headers) -> None:
        self._headers = headers
        self._begin = OK + _lines_of(headers) + b"content-length: "

    def _answer_of_python(self, answer: bytes, headers: Headers) -> bytes | None:
        """An answer that may be an error, which has a status of its own."""
        from fastrpc.transports.http.app import _modern_status

        id, self._id = self._id, None
        if not answer:  # a list that has to be waited for
            return None
        return response(_modern_status(answer, id or b"null"), answer.rstrip(b"\n"), headers)

    def _failed(self, error: Exception, headers: Headers) -> bytes:
        """fastrpc itself has failed, perhaps behind the call: what the long way says then, and not once more."""
        log.write("error", "POST /mcp failed inside fastrpc", error)
        self._id = None
        self._connection.output.take()
        return response(500, error_line(InternalError("Internal error; see the server's log")), headers)

    # --- what the connection calls, in a dispatcher's place -----------------------------------------------

    def dispatch(self, message: Any) -> None:
        """The connection did not answer by itself: a list that is not ready, or a call that is not likely."""
        if message.method == "tools/list" and not self._dispatcher.service.has_sources:
            self._id = message.id
            self._dispatcher.dispatch(message)
        else:
            self._missed = True

    def call_ended(self, id: bytes, tool: Any, result: Any, modern: bool) -> None:
        """A call has returned more than a plain value."""
        self._dispatcher.call_ended(id, tool, result, modern)

    def call_failed(self, id: bytes, tool: Any, error: BaseException, modern: bool) -> None:
        """A call has raised."""
        self._id = id
        self._dispatcher.call_failed(id, tool, error, modern)


def response(status: int, body: bytes, headers: Headers, *, close: bool = False) -> bytes:
    """Return a whole answer of HTTP with a JSON body."""
    from http import HTTPStatus

    line = b"HTTP/1.1 %d %b\r\n" % (status, HTTPStatus(status).phrase.encode())
    length = b"content-length: %d" % len(body)
    end = b"\r\nconnection: close" if close else b""
    return line + _lines_of(headers) + length + end + JSON + body


def _lines_of(headers: Headers) -> bytes:
    return b"".join([b"%b: %b\r\n" % pair for pair in headers])

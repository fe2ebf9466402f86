"""The straight way for the likely request over HTTP: a stateless call or list, from its bytes to its answer.

Clients send the same head again and again but for its length. A head that has been read and let in once is
known by its exact bytes; its body then goes to the compiled parser, is held against what the head says of it,
and its answer is ready before anything else of HTTP exists: 2 µs a call beside what the sockets cost.

Two rules keep it honest. It knows fewer requests than the long way and answers them with the same bytes:
whatever is not sure goes the other way, untouched, before anything has happened. And what has begun is
answered here: nothing is done twice.
"""

from __future__ import annotations

import re
from contextvars import copy_context
from time import monotonic

from fastrpc import forks, log
from fastrpc.errors import FAILURES, InternalError
from fastrpc.transports.http import refusals
from fastrpc.transports.http.guard import Refused, Unsettled
from fastrpc.transports.http.headers import HeaderMismatch, decoded, parameter_headers
from fastrpc.transports.http.request import Request, error_line, modern_status
from fastrpc.versions import MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from typing import Any

    from fastrpc.transports.http.app import HttpApp

    Headers = list[tuple[bytes, bytes]]
    Meaning = tuple[tuple[bytes, bytes], ...]

HEADS_KEPT = 1024
OTHERS_KEPT = 4096
LONGEST_HEAD = 8 * 1024
MOST_HEADERS = 50
LONGEST_BODY = 1024 * 1024

REQUEST_LINES = (b"POST /mcp HTTP/1.1", b"POST /mcp/http HTTP/1.1")
CALL, LIST = b"tools/call", b"tools/list"
LONG_WAY = {b"transfer-encoding", b"expect", b"upgrade", b"trailer", b"proxy-connection", b"origin"}
"""Headers that mean more than this file knows of."""

MEANINGFUL = {
    b"accept",
    b"authorization",
    b"content-encoding",
    b"content-type",
    b"host",
    b"mcp-method",
    b"mcp-name",
    b"mcp-protocol-version",
    b"sec-fetch-site",
}
"""Those that decide whether a head is let in. The judge sees no others."""

NAME = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
PLAIN = bytes(range(0x20, 0x7F)) + b"\t\r\n"
NAMES_KEPT = 256
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

    @property
    def is_over(self) -> bool:
        """Whether it has to be judged anew."""
        return self.valid_until is not None and self.valid_until <= monotonic()


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
        self._connection.tell = _ignore  # no client hears of changes here
        self._dispatcher.loop_runs(loop)
        self._connection.shared = True
        self._connection.generation = forks.generation
        app.at_end.append(self._dispatcher.close)  # the server waits for its last connection to end
        self._plans: Any = None
        self._heads: dict[bytes, Head] = {}
        self._names: dict[bytes, bytes] = {}  # of headers, in small letters
        self._meanings: dict[Meaning, Head] = {}  # for heads with a trace id, another one each time
        self._others: set[int] = set()  # hashes of heads that go the long way: what they hold is not kept
        self._headers: Headers = []
        self._begin = b""
        self._busy = False
        self._missed = False
        self._left = False
        self._id: bytes | None = None  # of a request that Python has answered: that may be an error

    # --- heads ------------------------------------------------------------------------------------------

    def head(self, text: bytes) -> Head | None:
        """Return what is known of a head, given without its last empty line; None if it goes the long way."""
        if self._connection.plans is not self._plans and not self._take_plans():
            return None
        head = self._heads.get(text)
        if head is None:
            return self._meet(text)
        if head.valid_until is not None and head.is_over:
            del self._heads[text]
            return self._meet(text)
        return head

    def _take_plans(self) -> bool:
        """The tools have changed: every head is judged anew. False if they cannot be had."""
        self._heads.clear()
        self._meanings.clear()
        self._others.clear()
        self._plans = None
        try:
            self._dispatcher.quiet()
        except FAILURES as error:
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
        """Judge a head by the long way's own rules, and more narrowly.

        Raises Unsettled for a token that is not known, or not now.
        """
        if len(text) > LONGEST_HEAD:
            return None
        given = self._read(text)
        if given is None:
            return None
        length = given.get(b"content-length", b"")
        if (
            not given.keys().isdisjoint(LONG_WAY)
            or given.get(b"connection", b"keep-alive").lower() != b"keep-alive"
            or not LENGTH.fullmatch(length)
            or not 0 < int(length) <= min(LONGEST_BODY, self._app.max_body)
        ):
            return None
        meaning = tuple([pair for pair in given.items() if pair[0] in MEANINGFUL])
        known = self._meanings.get(meaning)
        if known is None or known.is_over:
            known = self._let_in(meaning)
            if known is None:
                return None
            if len(self._meanings) >= HEADS_KEPT:
                self._meanings.clear()
            self._meanings[meaning] = known
        return Head(int(length), known.method, known.name, known.valid_until)

    def _read(self, text: bytes) -> dict[bytes, bytes] | None:
        """Return the headers of a head that every reader reads alike; None for another one.

        Plain names, none of them twice, no space before a colon or at an end.
        """
        first, *lines = text.split(b"\r\n")
        count = len(lines)
        if (
            first not in REQUEST_LINES
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

    def _let_in(self, meaning: Meaning) -> Head | None:
        given = dict(meaning)
        method = given.get(b"mcp-method")
        if given.get(b"mcp-protocol-version") != MODERN.encode() or method not in (CALL, LIST):
            return None
        request = Request({"method": "POST", "path": "/mcp", "headers": meaning}, None, None)  # type: ignore[arg-type]
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
        return Head(0, method, name.encode(), admission.until)

    # --- answers ----------------------------------------------------------------------------------------

    def answer(self, head: Head, body: bytes, headers: Headers) -> bytes | None:
        """Return the answer to a request, with `headers` in it; None for one that goes the long way.

        Nothing has happened then. What a tool leaves in context variables is gone behind its call, as it is
        behind a request of the long way, which has a task of its own.
        """
        if self._busy or self._app.stopping:  # busy: a tool that runs the loop is being called
            return None
        self._busy = True
        self._missed = False
        try:
            mine = copy_context().run(self._connection.receive_named, body, head.method, head.name)
        except FAILURES as error:
            return self._failed(error, headers)
        finally:
            self._busy = False
        if not mine or self._missed:
            if self._left:
                forks.leave()
            return None
        answer: bytes = self._connection.output.take()
        if self._id is not None:
            return self._answer_of_python(answer, headers)
        if headers is not self._headers:  # another second has begun, and Date with it
            self._take_headers(headers)
        return b"%b%d%b%b" % (self._begin, len(answer) - 1, JSON, answer[:-1])

    def let_go(self) -> None:
        """Answer nothing any more, in a child process that the tool may have forked which is being called."""
        self._left = self._missed = True

    def _take_headers(self, headers: Headers) -> None:
        self._headers = headers
        self._begin = OK + _lines_of(headers) + b"content-length: "

    def _answer_of_python(self, answer: bytes, headers: Headers) -> bytes | None:
        """An answer that may be an error, which has a status of its own."""
        id, self._id = self._id, None
        if not answer:  # a list that has to be waited for
            return None
        status = modern_status(answer, id or b"null")
        if status >= 400:
            refusals.note(status, answer, method="POST", path="/mcp")
        return response(status, answer.rstrip(b"\n"), headers)

    def _failed(self, error: BaseException, headers: Headers) -> bytes:
        """fastrpc itself has failed, perhaps behind the call: say what the long way says, and do no more."""
        from fastrpc import tracebacks

        tracebacks.report("POST /mcp failed inside fastrpc", error)
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


def _ignore(line: bytes) -> None:
    """What is said to nobody in particular."""

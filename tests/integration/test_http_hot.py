"""The fast path in front of the HTTP application: which requests take it, and that no one can tell.

Two real servers, one with the fast path and one without, are sent the same bytes; their answers must be
the same, byte for byte but for Date.
"""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest
from msgspec import Meta
from support.http_server import in_process
from support.raw_http import TOKEN, Server, Socket, call, call_body, head_of, headers, list_body, listing
from support.waiting import eventually

from fastrpc import Context
from fastrpc import Server as App
from fastrpc.transports.http.guard import Admission
from fastrpc.transports.http.heads import MEANINGFUL, REGULAR_PATH_ONLY
from fastrpc.transports.http.hot_path import HotPath
from fastrpc.transports.http.pending_response import PendingResponse
from fastrpc.transports.http.remembered import HEADS_BYTES, MEANINGS_KEPT, REGULAR_KEPT
from fastrpc.transports.http.request import HttpRequest

DATE = [(b"date", b"Sat, 21 Nov 2026 12:00:00 GMT")]


@pytest.fixture(scope="module")
def hot() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def cold() -> Iterator[Server]:
    with Server(hot=False) as server:
        yield server


def both(hot: Server, cold: Server, *pieces: bytes) -> None:
    """Send the same to both servers, three times on one connection if it lasts: the answers must be equal."""
    found = []
    for server in (hot, cold):
        with server.socket() as connection:
            answers = []
            for _ in range(3):
                connection.send(*pieces)
                answer = connection.answer()
                answers.append(answer.raw)
                if answer.headers.get("connection") == "close":
                    assert connection.is_closed()
                    break
            found.append(answers)
    assert found[0] == found[1]


def with_headers(*changed: tuple[str, str | None], more: tuple[tuple[str, str], ...] = ()) -> bytes:
    """A call of echo with headers of other values, or none, and with more headers."""
    body = call_body("echo", {"text": "hello"})
    given = dict(headers(body))
    for name, value in changed:
        given.pop(name, None) if value is None else given.update({name: value})
    return head_of([*given.items(), *more]) + body


CASES = {
    "a call": call(),
    "a list": listing(),
    "a list of the rest": listing(cursor="nonsense"),
    "an id as text": call(id='x\u00e4"'),
    "no text but a number": call("add", {"a": 1, "b": 2}),
    "a number as text": call("add", {"a": "1", "b": 2}),
    "an argument too few": call("add", {"a": 1}),
    "nothing": call("give", {"what": "none"}),
    "an object": call("give", {"what": "dict"}),
    "not a number": call("give", {"what": "nan"}),
    "half a character": call("give", {"what": "surrogate"}),
    "what no JSON holds": call("give", {"what": "object"}),
    "a large integer": call("give", {"what": "big"}),
    "letters": call("give", {"what": "unicode"}),
    "a long answer": call("give", {"what": "many"}),
    "a tool's error": call("fail", {"how": "on purpose"}),
    "a protocol error": call("fail", {"how": "params"}),
    "a protocol error with a status of its own": call("fail", {"how": "method"}),
    "an exit": call("fail", {"how": "exit"}),
    "a cancellation": call("fail", {"how": "cancelled"}),
    "an error that cannot be told": call("fail", {"how": "words"}),
    "a tool on a thread": call("slow", {"ms": 1}),
    "a coroutine": call("wait", {"ms": 1}),
    "progress": call("report", {}, progressToken=7),
    "progress of a tool that has none": call(progressToken=7),
    "no such tool": call("nobody"),
    "a tool's name in base64": with_headers(("Mcp-Name", "=?base64?ZWNobw==?=")),
    "a name in bad base64": with_headers(("Mcp-Name", "=?base64?ZWNobw?=")),
    "the name of another tool": with_headers(("Mcp-Name", "add")),
    "no name": with_headers(("Mcp-Name", None)),
    "another method": with_headers(("Mcp-Method", "tools/list")),
    "a method in capitals": with_headers(("Mcp-Method", "Tools/Call")),
    "no method": with_headers(("Mcp-Method", None)),
    "another version": with_headers(("MCP-Protocol-Version", "2025-11-25")),
    "a version to come": with_headers(("MCP-Protocol-Version", "2027-01-01")),
    "no version": with_headers(("MCP-Protocol-Version", None)),
    "no token": with_headers(("Authorization", None)),
    "a wrong token": with_headers(("Authorization", "Bearer wrong-token-for-tests")),
    "two tokens": with_headers(more=(("Authorization", f"Bearer {TOKEN}"),)),
    "another scheme": with_headers(("Authorization", f"Basic {TOKEN}")),
    "a foreign host": with_headers(("Host", "evil.example")),
    "no host": with_headers(("Host", None)),
    "two hosts": with_headers(more=(("Host", "localhost"),)),
    "a space behind the host": with_headers(("Host", "localhost ")),
    "our origin": with_headers(more=(("Origin", "http://localhost:3000"),)),
    "a foreign origin": with_headers(more=(("Origin", "https://evil.example"),)),
    "a page from elsewhere": with_headers(more=(("Sec-Fetch-Site", "cross-site"),)),
    "any answer": with_headers(("Accept", "*/*")),
    "JSON alone": with_headers(("Accept", "application/json")),
    "types that only look right": with_headers(("Accept", "application/jsonx, text/event-streams")),
    "no Accept": with_headers(("Accept", None)),
    "a form": with_headers(("Content-Type", "application/x-www-form-urlencoded")),
    "JSON with a character set": with_headers(("Content-Type", "application/json; charset=utf-8")),
    "no type": with_headers(("Content-Type", None)),
    "a packed body": with_headers(more=(("Content-Encoding", "gzip"),)),
    "a session that is not asked for": with_headers(more=(("Mcp-Session-Id", "x"),)),
    "an argument's header that nobody needs": with_headers(more=(("Mcp-Param-Text", "x"),)),
    "more headers": with_headers(more=(("User-Agent", "x"), ("traceparent", "00-1-2-3"), ("X-Empty", ""))),
    "an address with a query": call().replace(b"POST /mcp ", b"POST /mcp?x=1 "),
    "the older address": call().replace(b"POST /mcp ", b"POST /mcp/http "),
    "an unknown address": call().replace(b"POST /mcp ", b"POST /mcp/ "),
    "an absolute address": call().replace(b"POST /mcp ", b"POST http://localhost/mcp "),
    "spaces around a value": call().replace(b"Mcp-Name: echo", b"mcp-name: \t echo \t"),
    "an argument that must be a header, and is": head_of(
        [*headers(call_body("marked", {"region": "eu"}), "marked"), ("Mcp-Param-Region", "eu")]
    )
    + call_body("marked", {"region": "eu"}),
    "an argument that must be a header, and is another": head_of(
        [*headers(call_body("marked", {"region": "eu"}), "marked"), ("Mcp-Param-Region", "us")]
    )
    + call_body("marked", {"region": "eu"}),
    "an argument that must be a header, and is none": call("marked", {"region": "eu"}),
    "an argument that might have been a header": call("marked", {}),
    "a parameter without a name": listing(**{"": "x"}),
    "a cursor that is no text": listing(cursor=5),
    "one word to close": with_headers(more=(("Connection", "close"),)),
    "leave to send that is not waited for": with_headers(more=(("Expect", "a miracle"),)),
    "a length with noughts": with_headers(
        ("Content-Length", f"000{len(call_body('echo', {'text': 'hello'}))}")
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_answer_is_the_same_without_the_straight_way(hot: Server, cold: Server, name: str) -> None:
    both(hot, cold, CASES[name])


SPLITS = {
    "the body in a packet of its own": lambda data: data.partition(b"\r\n\r\n"),
    "the head in two": lambda data: (data[:40], data[40:]),
    "the end of the head in two": lambda data: (
        data[: data.index(b"\r\n\r\n") + 2],
        data[data.index(b"\r\n\r\n") + 2 :],
    ),
    "the body in two": lambda data: (data[:-20], data[-20:]),
    "the body byte by byte": lambda data: (
        data[:-30],
        *(data[at : at + 1] for at in range(len(data) - 30, len(data))),
    ),
}


@pytest.mark.parametrize("name", SPLITS)
def test_a_request_may_come_in_pieces(hot: Server, cold: Server, name: str) -> None:
    pieces = SPLITS[name](call())
    both(hot, cold, *(piece for piece in pieces if piece))


@pytest.mark.parametrize("together", [True, False], ids=["in one packet", "in packets of their own"])
def test_requests_are_answered_in_order(hot: Server, cold: Server, together: bool) -> None:
    many = [call(arguments={"text": str(number)}, id=number) for number in range(20)]
    many[7:9] = [call("wait", {"ms": 30}, id=7), call("slow", {"ms": 30}, id=8)]
    many[12] = listing(id=12)
    for server in (hot, cold):
        with server.socket() as connection:
            connection.send(*([b"".join(many)] if together else many))
            assert [connection.answer().json["id"] for _ in many] == list(range(20))


def test_a_body_that_looks_like_a_request_is_none(hot: Server, cold: Server) -> None:
    """What follows a request that is still being read belongs to it, whatever it looks like."""
    hidden = call(arguments={"text": "smuggled"})
    text = call_body("wait", {"ms": 1, "x": "y" * 10})
    outer = head_of([*headers(text + hidden, "wait")])
    for server in (hot, cold):
        with server.socket() as connection:
            connection.send(call("wait", {"ms": 20}) + outer + text, hidden, pause=0.05)
            assert connection.answer().text == "waited"
            answer = connection.answer()
            assert answer.status == 400
            assert answer.json["error"]["code"] == -32700
            assert connection.is_closed(seconds=0.2) is False


@pytest.mark.parametrize(
    "lines",
    [
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding : chunked\r\n",
        b"Content-Length: 3\r\n",
        b"X: y\r\n folded: z\r\n",
        b": nothing\r\n",
        b"X y\r\n",
        b"X: a\nY: b\r\n",
        b"X: a\rY: b\r\n",
        b"X: \0\r\n",
    ],
)
def test_a_head_that_readers_could_read_differently_is_refused(
    hot: Server, cold: Server, lines: bytes
) -> None:
    data = call().replace(b"Mcp-Name", lines + b"Mcp-Name")
    for server in (hot, cold):
        with server.socket() as connection:
            connection.send(data)
            answer = connection.answer()
            assert (answer.status, answer.headers["content-type"]) == (400, "application/json")
            assert answer.json["error"]["code"] == -32600
            assert connection.is_closed()


def test_the_connection_ends_when_the_client_wants_it(hot: Server) -> None:
    for data in (
        with_headers(more=(("Connection", "close"),)),
        with_headers(more=(("Proxy-Connection", "close"),)),
        call().replace(b"HTTP/1.1", b"HTTP/1.0"),
    ):
        with hot.socket() as connection:
            connection.send(data)
            assert connection.answer().text == "hello"
            assert connection.is_closed()


def test_a_client_that_leaves_in_the_middle_of_a_body_harms_no_one(hot: Server) -> None:
    for _ in range(50):
        with hot.socket() as connection:
            connection.send(call()[:-10])
    assert hot.ask(call()).text == "hello"


def test_a_tool_is_called_once_on_each_path_of_its_answer(hot: Server) -> None:
    with hot.socket() as connection:
        counts = []
        for _ in range(40):
            connection.send(call("count"))
            counts.append(int(connection.answer().text))
    assert counts == list(range(counts[0], counts[0] + 40))


@pytest.mark.parametrize("tool", ["count_later", "count_wherever"])
def test_a_tool_that_cannot_answer_at_once_is_called_once(hot: Server, tool: str) -> None:
    with hot.socket() as connection:
        counts = []
        for _ in range(40):
            connection.send(call(tool, {}))
            counts.append(int(connection.answer().text))
    assert counts == list(range(counts[0], counts[0] + 40))


@pytest.mark.parametrize("tool", ["stay_on_thread", "stay"])
def test_a_tool_that_takes_its_time_delays_no_one(hot: Server, tool: str) -> None:
    with hot.socket() as one, hot.socket() as other:

        def ask(data: bytes) -> str:
            other.send(data)
            return other.answer().text

        one.send(call(tool, {}))
        eventually(lambda: ask(call("count_staying", {})) == "1")
        assert ask(call()) == "hello"
        assert not one.has_more()
        assert ask(call("release", {})) == "released"
        assert one.answer().text == "stayed"


def test_many_requests_of_one_client_do_not_keep_others_waiting(hot: Server) -> None:
    """They came in one packet, and each holds the loop up for a while."""
    with hot.socket() as many, hot.socket() as other:
        other.send(call("count_held", {}))
        before = int(other.answer().text)
        many.send(b"".join(call("hold", {"ms": 15}, id=number) for number in range(100)))
        assert many.answer().json["id"] == 0
        other.send(call("count_held", {}))
        assert int(other.answer().text) - before < 75
        assert [many.answer().json["id"] for _ in range(99)] == list(range(1, 100))


def test_answers_wait_until_they_are_read_and_none_is_lost(hot: Server) -> None:
    with hot.socket() as connection:
        before = hot.memory()
        connection.send(b"".join(call("give", {"what": "many"}, id=number) for number in range(150)))
        assert hot.ask(call()).text == "hello"  # by then they have been read, as far as they are
        assert hot.memory() - before < 10_000_000  # of 30 MB
        for number in range(150):
            assert connection.answer().json["id"] == number
        connection.send(call())
        assert connection.answer().text == "hello"


def test_what_a_tool_leaves_in_a_context_variable_is_gone(hot: Server, cold: Server) -> None:
    for server in (hot, cold):
        with server.socket() as connection, server.socket() as another:
            for each in (connection, connection, another):
                each.send(call("leave_behind", {"value": "a secret"}))
                assert each.answer().text == "nothing"


def test_hooks_that_come_and_go_are_heeded(hot: Server, cold: Server) -> None:
    found = []
    for server in (hot, cold):
        with server.socket() as connection:
            answers = []
            for request in (
                call(),
                call("hook", {"on": True}),
                call(),
                call("hook", {"on": False}),
                call(),
            ):
                connection.send(request)
                answers.append(connection.answer())
            found.append([each.raw for each in answers])
            assert [each.text for each in answers] == [
                "hello",
                "on",
                "refused before the call",
                "off",
                "hello",
            ]
    assert found[0] == found[1]


def test_a_token_that_is_taken_away_is_noticed(tmp_path: os.PathLike[str]) -> None:
    path = os.path.join(tmp_path, "tokens")

    def write(token: str) -> None:
        with open(path, "w", opener=lambda path, flags: os.open(path, flags, 0o600)) as file:
            file.write(token)

    write(TOKEN)
    with Server(token_file=path) as server:
        assert server.ask(call()).text == "hello"
        write("a-token-of-another-one")
        eventually(lambda: server.ask(call()).status == 401)


@pytest.mark.parametrize("is_hot", [True, False])
def test_a_request_whose_body_still_comes_when_the_server_ends_is_answered(
    tmp_path: Path, is_hot: bool
) -> None:
    """It is asked to try again elsewhere; the calls that had begun have their time."""
    with (
        Server(hot=is_hot, drain_seconds=20.0) as server,
        server.socket() as begun,
        server.socket() as idle,
        server.socket() as busy,
    ):
        for connection in (begun, idle):
            connection.send(call())
            assert connection.answer().text == "hello"
        begun.send(call()[:-20])
        busy.send(call("wait_for_file", {"path": str(tmp_path / "go")}))
        assert server.ask(call()).text == "hello"  # by then the beginning has been read
        server.process.send_signal(signal.SIGTERM)
        assert idle.is_closed()
        begun.send(call()[-20:])
        answer = begun.answer()
        assert (answer.status, answer.headers["retry-after"], answer.headers["connection"]) == (
            503,
            "5",
            "close",
        )
        (tmp_path / "go").touch()
        assert busy.answer().text == "waited"
        for connection in (begun, busy):
            assert connection.is_closed()
        assert server.wait() == 0


def test_the_lifespan_is_left_though_the_straight_way_has_a_connection() -> None:
    with Server(lifespan=True) as server:
        for _ in range(3):
            assert server.ask(call()).text == "hello"
        server.process.send_signal(signal.SIGTERM)
        assert server.wait() == 0
        assert "\nentered\nleft\n" in server.stdout


def test_a_tool_that_comes_or_goes_is_noticed(hot: Server) -> None:
    with hot.socket() as connection:
        for _ in range(3):
            for request, expected in (
                (call("fresh", {}), None),
                (call("learn", {"name": "fresh"}), "learned"),
                (call("fresh", {}), "fresh"),
                (call("fresh", {}), "fresh"),
                (call("forget", {"name": "fresh"}), "forgotten"),
            ):
                connection.send(request)
                answer = connection.answer().json
                assert (answer["result"]["content"][0]["text"] if "result" in answer else None) == expected


def test_the_date_is_that_of_the_answer(hot: Server) -> None:
    with hot.socket() as connection:
        dates = set()
        deadline = time.monotonic() + 5
        while len(dates) < 2 and time.monotonic() < deadline:
            connection.send(call())
            dates.add(_date(connection))
            time.sleep(0.05)
    assert len(dates) == 2


def _date(connection: Socket) -> str:
    return connection.answer().headers["date"]


# --- which way is taken -----------------------------------------------------------------------------------


def with_path(function: object, app: App | None = None, **options: object) -> None:
    """Run ``function(path, application)``, which may be a coroutine, in a loop; `echo` is a tool to call."""

    async def serve() -> None:
        served = app or App("hot")
        served.tool(echo, run="inline")
        async with in_process(served, token=TOKEN, **options) as server:
            path = HotPath(server.application, asyncio.get_running_loop())
            done = function(path, server.application)  # type: ignore[operator]
            if asyncio.iscoroutine(done):
                await done
        assert not served.runtime.dispatchers

    asyncio.run(serve())


def echo(text: str) -> str:
    return text


def head(request: bytes) -> bytes:
    return request.partition(b"\r\n\r\n")[0]


def test_a_list_that_depends_on_its_caller_goes_straight() -> None:
    app = App("filtered")
    app.filter_lists(lambda principal, item: item.name == principal)

    def check(path: HotPath, application: object) -> None:
        for _ in range(3):
            known = path.head(head(listing()))
            assert known is not None
            answer = path.answer(known, listing().partition(b"\r\n\r\n")[2], DATE)
            assert isinstance(answer, bytes)
            assert b'"tools":[]' in answer

    with_path(check, app)


def test_a_call_and_a_list_go_straight() -> None:
    def check(path: HotPath, application: object) -> None:
        for request in (call(), listing()):
            known = path.head(head(request))
            assert known is not None
            answer = path.answer(known, request.partition(b"\r\n\r\n")[2], DATE)
            assert answer is not None
            assert answer.startswith(
                b"HTTP/1.1 200 OK\r\ndate: Sat, 21 Nov 2026 12:00:00 GMT\r\ncontent-length: "
            )

    with_path(check)


def test_a_body_that_its_head_does_not_describe_goes_the_long_way_untouched() -> None:
    def check(path: HotPath, application: object) -> None:
        known = path.head(head(call()))
        assert known is not None
        for body in (call_body("other"), list_body(), b"", b"{", b"[]", call_body(progressToken=1)):
            assert path.answer(known, body, DATE) is None
            assert path.answer(known, call_body("echo", {"text": "x"}), DATE) is not None

    with_path(check)


def test_a_tool_with_arguments_in_headers_goes_the_long_way() -> None:
    app = App("marked")

    def marked(region: Annotated[str, Meta(extra_json_schema={"x-mcp-header": "Region"})]) -> str:
        return region

    app.tool(marked, run="inline")

    def check(path: HotPath, application: object) -> None:
        assert path.head(head(call("marked"))) is None
        assert path.head(head(call())) is not None

    with_path(check, app)


def test_a_head_is_judged_anew_when_its_token_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("fastrpc.transports.http.remembered.monotonic", lambda: now)

    def check(path: HotPath, application: object) -> None:
        nonlocal now
        asked = []

        def admit(given: object) -> Admission:
            asked.append(given)
            return Admission("somebody", now + 60)

        application.guard.admit = admit  # type: ignore[attr-defined]
        for _ in range(3):
            assert path.head(head(call())) is not None
        assert len(asked) == 1
        now += 60
        assert path.head(head(call())) is not None
        assert len(asked) == 2

    with_path(check)


def test_a_token_that_was_wrong_is_asked_for_again() -> None:
    def check(path: HotPath, application: object) -> None:
        request = head(call())
        guard = application.guard  # type: ignore[attr-defined]
        admit = guard.admit
        guard.admit = lambda given: admit({})
        assert path.head(request) is None
        guard.admit = admit
        assert path.head(request) is not None

    with_path(check)


def test_known_heads_are_bounded() -> None:
    def check(path: HotPath, application: object) -> None:
        remembered = path._remembered
        for number in range(5000):
            assert path.head(head(with_headers(("Host", f"127.0.0.1:{number}")))) is not None
            path.head(b"GET /%d HTTP/1.1" % number)
        assert sum(map(len, remembered.heads)) <= HEADS_BYTES
        assert len(remembered.meanings) <= MEANINGS_KEPT
        assert len(remembered.regular) <= REGULAR_KEPT

    with_path(check)


class Asked(dict):  # type: ignore[type-arg]
    """Headers that keep note of what is asked of them."""

    def __init__(self, *values: object) -> None:
        super().__init__(*values)
        self.names: set[bytes] = set()

    def get(self, name: bytes, default: object = None) -> object:
        self.names.add(name)
        return super().get(name, default)

    def __contains__(self, name: object) -> bool:
        assert isinstance(name, bytes)
        self.names.add(name)
        return super().__contains__(name)

    def __getitem__(self, name: bytes) -> object:
        self.names.add(name)
        return super().__getitem__(name)


def test_every_header_that_decides_whether_a_request_is_let_in_is_part_of_its_meaning() -> None:
    """Heads that differ in other headers alone are judged once."""

    def check(path: HotPath, application: object) -> None:
        lines = [line.partition(b": ") for line in head(call()).split(b"\r\n")[1:]]
        pairs = [(name.lower(), value) for name, _, value in lines]
        request = HttpRequest({"method": "POST", "path": "/mcp", "headers": pairs}, None, None)  # type: ignore[arg-type]
        asked = request.headers = Asked(request.headers)
        guard = application.guard  # type: ignore[attr-defined]
        guard.check_place(asked)
        request.check_form()
        assert request.accepts("application/json", "text/event-stream")
        guard.admit(asked)
        assert asked.names >= {b"host", b"origin", b"authorization"}
        assert asked.names <= MEANINGFUL | REGULAR_PATH_ONLY

    with_path(check)


def test_heads_that_differ_in_a_trace_alone_are_judged_once() -> None:
    def check(path: HotPath, application: object) -> None:
        guard = application.guard  # type: ignore[attr-defined]
        judged = []
        admit = guard.admit
        guard.admit = lambda given: judged.append(1) or admit(given)  # type: ignore[func-returns-value]
        for number in range(50):
            assert path.head(head(with_headers(more=(("traceparent", str(number)),)))) is not None
        assert len(judged) == 1
        for name, value in (("Authorization", "Bearer another"), ("Host", "evil.example"), ("Mcp-Name", "x")):
            assert path.head(head(with_headers((name, value), more=(("traceparent", "x"),)))) is None

    with_path(check)


def test_what_is_around_calls_is_heeded() -> None:
    app = App("hooked")
    app.set_note(lambda: ["noted"])

    def check(path: HotPath, application: object) -> None:
        known = path.head(head(call()))
        body = call_body("echo", {"text": "x"})
        assert known is not None
        answer = path.answer(known, body, DATE)
        assert isinstance(answer, bytes)
        assert b"noted" in answer
        app.set_note(None)
        known = path.head(head(call()))
        assert known is not None
        answer = path.answer(known, body, DATE)
        assert isinstance(answer, bytes)
        assert b"noted" not in answer

    with_path(check, app)


@pytest.mark.parametrize("name", ["who", "at_once", "later", "thread"])
def test_a_tool_that_is_not_for_all_callers_gets_a_separate_connection(name: str) -> None:
    """The one that all callers share answers at once, and knows no caller."""
    app = App("others")
    called: list[str] = []

    @app.tool(run="inline")
    def who(ctx: Context) -> str:
        called.append(ctx.principal)
        return "done"

    @app.tool
    async def at_once() -> str:
        called.append("at_once")
        return "done"

    @app.tool
    async def later() -> str:
        await asyncio.sleep(0)
        called.append("later")
        return "done"

    @app.tool(run="thread")
    def thread() -> str:
        called.append("thread")
        return "done"

    async def check(path: HotPath, application: object) -> None:
        for number in range(3):
            known = path.head(head(call(name, {})))
            assert known is not None
            answer = path.answer(known, call_body(name, {}), DATE)
            if name in ("later", "thread"):
                assert isinstance(answer, PendingResponse)
                woken = asyncio.Event()
                answer.on_message(woken.set)
                await asyncio.wait_for(woken.wait(), 10)
                found = answer.answer()
                assert found is not None
                assert found[0] == 200
                answer = found[1]
            assert isinstance(answer, bytes)
            assert b"done" in answer
            assert called == [known.principal if name == "who" else name] * (number + 1)

    with_path(check, app)


def test_a_server_that_ends_takes_nothing_straight() -> None:
    def check(path: HotPath, application: object) -> None:
        known = path.head(head(call()))
        assert known is not None
        application.refuse_new()  # type: ignore[attr-defined]
        assert path.answer(known, call_body("echo", {"text": "x"}), DATE) is None

    with_path(check)

"""The fast path for requests in sessions, and for calls that wait: no one can tell that it is taken.

Two real servers, one with the fast path and one without, are sent the same; their answers must be the
same, byte for byte but for Date.
"""

from __future__ import annotations

import asyncio
import json
import re
import signal
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
from support.http_server import in_process
from support.http_sessions import (
    OTHER_TOKEN,
    TOKEN,
    Server,
    Session,
    calling,
    http,
    refused,
    stateless_request,
    text_of,
)
from support.protocol import SESSION_VERSIONS, STATELESS, message
from support.raw_http import Socket
from support.waiting import SECONDS
from support.waiting import eventually as until

from fastrpc import Context
from fastrpc import Server as App
from fastrpc.transports.http.guard import Admission
from fastrpc.transports.http.hot_path import HotPath
from fastrpc.transports.http.pending_response import PendingResponse
from fastrpc.transports.http.sessions import HttpSession as Kept

CHANCE = re.compile(rb"(mcp-session-id: |\"requestState\":)[^,\r}]+")
DATE = [(b"date", b"Sat, 21 Nov 2026 12:00:00 GMT")]


@pytest.fixture(scope="module")
def hot() -> Iterator[Server]:
    with Server() as server:
        yield server


@pytest.fixture(scope="module")
def cold() -> Iterator[Server]:
    with Server(hot=False) as server:
        yield server


def answers(server: Server, *requests: bytes, times: int = 3) -> list[bytes]:
    """The result of requests, one behind the other on one connection, as often as that lasts."""
    found = []
    with Socket(server.port) as connection:
        for request in requests * times:
            connection.send(request)
            answer = connection.answer()
            found.append(CHANCE.sub(rb"\1chance", answer.raw))
            if answer.headers.get("connection") == "close":
                break
    return found


ECHO = calling("echo", text="hello")
T = TypeVar("T")
Make = Callable[[Session], bytes]


def posted(body: Any, **headers: Any) -> Make:
    return lambda session: session.request(body, **headers)


CASES: dict[str, Make] = {
    "a call": posted(ECHO),
    "an id as text": posted(calling("echo", 'x\u00e4"', text="hello")),
    "letters beyond ASCII": posted(calling("echo", text="h\u00e4\u6f22")),
    "an argument too few": posted(calling("echo")),
    "an unknown tool": posted(calling("nobody")),
    "an error that says when to call again": posted(calling("refuse", seconds=7)),
    "a call without a name": posted(message("tools/call", {}, 1)),
    "a Context": posted(calling("who")),
    "a Context that is used": posted(calling("wide")),
    "a coroutine that waits": posted(calling("wait", ms=1)),
    "a coroutine that sends messages": posted(calling("say", count=3)),
    "progress that is asked for": posted(calling("step", meta={"progressToken": 7})),
    "progress of a tool that has none": posted(calling("echo", meta={"progressToken": 7}, text="x")),
    "an unknown method": posted(message("tools/nonsense", {}, 1)),
    "ping": posted(message("ping", None, 1)),
    "a list": posted(message("tools/list", {}, 1)),
    "a list of the rest": posted(message("tools/list", {"cursor": "nonsense"}, 1)),
    "a resource": posted(message("resources/read", {"uri": "docs://x"}, 1)),
    "a prompt": posted(message("prompts/get", {"name": "greet", "arguments": {"name": "x"}}, 1)),
    "another handshake": posted(message("initialize", {"protocolVersion": SESSION_VERSIONS[0]}, 1)),
    "what only 2026-07-28 has": posted(message("server/discover", {}, 1)),
    "a notification": posted(message("notifications/roots/list_changed")),
    "a notification of a call": posted(
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "echo"}}
    ),
    "an answer to nothing": posted(message(None, id=5, result={})),
    "no message": posted({"jsonrpc": "2.0"}),
    "no JSON": posted(b"{"),
    "nothing": posted(b""),
    "a batch": posted([ECHO, calling("who", 2)]),
    "an empty batch": posted([]),
    "an envelope of 2026-07-28": lambda session: stateless_request(
        "tools/call",
        {"name": "echo", "arguments": {"text": "x"}},
        mcp_session_id=session.id,
        mcp_protocol_version="2025-11-25",
    ),
    "2026-07-28 with a session": lambda session: stateless_request(
        "tools/call", {"name": "echo", "arguments": {"text": "x"}}, mcp_session_id=session.id
    ),
    "no version": posted(ECHO, mcp_protocol_version=None),
    "a version that is not served": posted(ECHO, mcp_protocol_version="2025-01-01"),
    "another version than the session's": posted(ECHO, mcp_protocol_version=SESSION_VERSIONS[0]),
    "two versions": posted(ECHO, mcp_protocol_version=["2025-11-25", "2025-11-25"]),
    "2026-07-28 in the head alone": posted(ECHO, mcp_protocol_version=STATELESS),
    "an unknown session": posted(ECHO, mcp_session_id="x" * 43),
    "an empty session": posted(ECHO, mcp_session_id=""),
    "two sessions": posted(ECHO, mcp_session_id=["x", "y"]),
    "another caller": posted(ECHO, authorization=f"Bearer {OTHER_TOKEN}"),
    "a wrong token": posted(ECHO, authorization="Bearer nobody"),
    "no token": posted(ECHO, authorization=None),
    "a foreign host": posted(ECHO, host="evil.example"),
    "our origin": posted(ECHO, origin="http://localhost:3000"),
    "a foreign origin": posted(ECHO, origin="https://evil.example"),
    "a page from elsewhere": posted(ECHO, sec_fetch_site="cross-site"),
    "events alone": posted(ECHO, accept="text/event-stream"),
    "JSON alone": posted(ECHO, accept="application/json"),
    "any answer": posted(ECHO, accept="*/*"),
    "a form": posted(ECHO, content_type="application/x-www-form-urlencoded"),
    "a packed body": posted(ECHO, content_encoding="gzip"),
    "a trace": posted(ECHO, traceparent="00-1-2-3"),
    "headers of 2026-07-28": posted(ECHO, mcp_method="tools/list", mcp_name="nobody"),
    "the older address": lambda session: session.request(ECHO).replace(b"POST /mcp ", b"POST /mcp/http "),
    "the older address of another transport": lambda session: session.request(ECHO).replace(
        b"POST /mcp ", b"POST /sse "
    ),
}


@pytest.mark.parametrize("version", [SESSION_VERSIONS[1], SESSION_VERSIONS[-1]])
@pytest.mark.parametrize("name", CASES)
def test_the_answer_in_a_session_is_the_same_without_the_straight_way(
    hot: Server, cold: Server, name: str, version: str
) -> None:
    found = []
    for server in (hot, cold):
        session = Session(server, version)
        found.append(answers(server, CASES[name](session)))
    assert found[0] == found[1]


def test_a_call_that_has_its_client_come_back_is_answered_alike(hot: Server, cold: Server) -> None:
    request = calling("say", count=3, polls=2, pause_ms=1)
    found = [answers(server, Session(server).request(request), times=1) for server in (hot, cold)]
    assert found[0] == found[1]


def test_requests_of_many_kinds_in_one_session_are_answered_alike(hot: Server, cold: Server) -> None:
    """What one leaves behind is there for the next: streams are numbered, connections are used again."""
    names = [name for name in CASES if name not in ("another handshake", "no JSON", "nothing")]
    found = []
    for server in (hot, cold):
        session = Session(server)
        found.append([answers(server, CASES[name](session), times=1) for name in names * 2])
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["in a session", "stateless"])
def test_a_context_is_of_the_caller_whose_call_it_is(kind: str) -> None:
    """Whoever called the tool before, and did not look at it."""

    def scene(server: Server) -> list[str]:
        def who(token: str, look: bool) -> str:
            arguments = {"look": look}
            if kind == "stateless":
                request = stateless_request(
                    "tools/call", {"name": "look", "arguments": arguments}, token=token
                )
                return server.ask(request).text
            return sessions[token].call("look", look=look).text

        sessions = {token: Session(server, token=token) for token in (TOKEN, OTHER_TOKEN)}
        found = []
        for token in (TOKEN, OTHER_TOKEN) * 2:
            for each in (TOKEN, OTHER_TOKEN):
                assert who(each, False) == "nobody"
            found.append(who(token, True))
        assert found[0] != found[1]
        assert found[:2] == found[2:]
        return found

    both(scene)


STATELESS_REQUESTS = {
    "a Context": stateless_request("tools/call", {"name": "who", "arguments": {}}),
    "a Context that is used": stateless_request("tools/call", {"name": "wide", "arguments": {}}),
    "messages that are asked for": stateless_request(
        "tools/call",
        {"name": "step", "arguments": {}},
        meta={"io.modelcontextprotocol/logLevel": "debug"},
    ),
    "a coroutine that waits": stateless_request("tools/call", {"name": "wait", "arguments": {"ms": 1}}),
    "progress nobody asked for": stateless_request("tools/call", {"name": "step", "arguments": {}}),
    "an unknown tool": stateless_request("tools/call", {"name": "nobody", "arguments": {}}),
    "a question": stateless_request(
        "tools/call", {"name": "ask", "arguments": {"how": "form"}}, capabilities={"elicitation": {}}
    ),
    "a question to a client that answers none": stateless_request(
        "tools/call", {"name": "ask", "arguments": {"how": "form"}}
    ),
}


@pytest.mark.parametrize("name", STATELESS_REQUESTS)
def test_a_stateless_call_of_any_shape_is_answered_alike(hot: Server, cold: Server, name: str) -> None:
    assert answers(hot, STATELESS_REQUESTS[name]) == answers(cold, STATELESS_REQUESTS[name])


def in_order(server: Server, requests: list[bytes], together: bool) -> list[bytes]:
    with Socket(server.port) as connection:
        connection.send(*([b"".join(requests)] if together else requests))
        return [connection.answer().raw for _ in requests]


@pytest.mark.parametrize("together", [True, False], ids=["in one packet", "in packets of their own"])
def test_answers_of_calls_that_wait_keep_their_order(hot: Server, cold: Server, together: bool) -> None:
    found = []
    for server in (hot, cold):
        session = Session(server)
        requests = [session.request(calling("echo", number, text=str(number))) for number in range(12)]
        requests[2] = session.request(calling("wait", 2, ms=30))
        requests[3] = stateless_request("tools/call", {"name": "wait", "arguments": {"ms": 20}}, 3)
        requests[7] = session.request(calling("say", 7, count=2, pause_ms=5))
        requests[9] = session.request(calling("wait", 9, ms=10))
        found.append(in_order(server, requests, together))
    assert found[0] == found[1]


def both(scene: Callable[[Server], T], **options: Any) -> T:
    """Return the result of a scene with the fast path, which must be the result of it without."""
    found = []
    for is_hot in (True, False):
        with Server(hot=is_hot, **options) as server:
            found.append(scene(server))
    assert found[0] == found[1]
    return found[0]


def test_a_session_that_has_ended_is_unknown() -> None:
    def scene(server: Server) -> bytes:
        session = Session(server)
        for _ in range(3):
            assert session.post(ECHO).text == "hello"
        session.delete()
        return session.post(ECHO).raw

    assert both(scene).startswith(b"HTTP/1.1 404 ")


@pytest.mark.parametrize("name", ["silent", "loud"])
def test_a_session_that_is_deleted_while_a_call_runs_answers_it(name: str) -> None:
    def scene(server: Server) -> bytes:
        session = Session(server)
        with Socket(server.port) as connection:
            connection.send(session.request(calling("hold", name=name, say=name == "loud")))
            server.call("begun", name=name)
            assert session.delete().status == 200
            answer = connection.answer()
            assert server.call("outcome", name=name) == "cancelled"
            until(lambda: server.counts()["running"] == 0)
            connection.send(session.request(ECHO))
            refused(connection.answer(), 404, -32001)
        return answer.raw

    found = both(scene)
    assert b"The session has ended" in found


def test_an_id_that_is_in_flight_is_refused() -> None:
    def scene(server: Server) -> list[bytes]:
        session = Session(server)
        with Socket(server.port) as one, Socket(server.port) as other:
            one.send(session.request(calling("hold", 1, name="first")))
            server.call("begun", name="first")
            found = []
            for _ in range(2):
                for body in (ECHO, calling("who"), calling("echo", 2, text="x")):
                    other.send(session.request(body))
                    found.append(other.answer())
            server.call("let_go", name="first")
            found.append(one.answer())
            one.send(session.request(ECHO))
            assert one.answer().text == "hello"
        assert "in flight" in found[0].json["error"]["message"]
        assert found[2].text == "x"
        return [answer.raw for answer in found]

    both(scene)


def test_a_call_that_is_cancelled_by_its_client_is_answered_alike() -> None:
    def scene(server: Server) -> bytes:
        session = Session(server)
        with Socket(server.port) as connection:
            connection.send(session.request(calling("hold", 5, name="x")))
            server.call("begun", name="x")
            session.post(message("notifications/cancelled", {"requestId": 5}))
            assert server.call("outcome", name="x") == "cancelled"
            return connection.answer().raw

    both(scene)


def test_a_call_in_a_session_goes_on_when_its_client_leaves() -> None:
    def scene(server: Server) -> bytes:
        session = Session(server)
        with Socket(server.port) as connection:
            connection.send(session.request(calling("hold", name="left")))
            server.call("begun", name="left")
        until(lambda: server.counts()["streams"] == 2)  # it is noticed: the client may come back for it
        server.call("let_go", name="left")
        assert server.call("outcome", name="left") == "returned"
        until(lambda: server.counts()["running"] == 0)
        with session.listen("1-0") as stream:
            event = stream.event()
            while "result" not in (event.json or {}):
                event = stream.event()
            return json.dumps(event.json).encode()

    both(scene)


def test_a_stateless_call_is_cancelled_when_its_client_leaves() -> None:
    def scene(server: Server) -> str:
        with Socket(server.port) as connection:
            connection.send(stateless_request("tools/call", {"name": "hold", "arguments": {"name": "left"}}))
            server.call("begun", name="left")
        outcome = server.call("outcome", name="left")
        until(lambda: server.counts()["running"] == 0)
        return outcome

    assert both(scene) == "cancelled"


@pytest.mark.parametrize("seconds", [0.05, 0.5])  # less than two looks of the monitor, and more
@pytest.mark.parametrize("kind", ["in a session", "stateless"])
def test_a_client_that_waits_long_receives_comments(kind: str, seconds: float) -> None:
    def scene(server: Server) -> bytes:
        request = stateless_request("tools/call", {"name": "hold", "arguments": {"name": "long"}})
        if kind == "in a session":
            request = Session(server).request(calling("hold", name="long"))
        with Socket(server.port) as connection:
            connection.send(request)
            head = connection._until(b"\r\n\r\n", SECONDS)
            assert b"text/event-stream" in head
            server.call("let_go", name="long")
            body = b""
            while b"held" not in body and b"result" not in body:
                body = connection._until(b"\r\n\r\n", SECONDS)
        return head.replace(b"date: ", b"")[:12] + body[-60:]

    # The monitor looks every tenth of the shortest limit.
    both(scene, keep_alive_seconds=seconds, limits={"body_seconds": 1.0})


@pytest.mark.parametrize("kind", ["in a session", "stateless"])
@pytest.mark.parametrize("ends", ["in time", "never"])
def test_a_call_that_waits_when_the_server_ends_is_answered(kind: str, ends: str) -> None:
    name, arguments = ("outlast", {}) if ends == "in time" else ("wait", {"ms": 60_000})

    def scene(server: Server) -> bytes:
        request = stateless_request("tools/call", {"name": name, "arguments": arguments})
        if kind == "in a session":
            request = Session(server).request(calling(name, **arguments))
        with Socket(server.port) as connection:
            connection.send(request)
            until(lambda: server.counts()["running"] > 0)
            server.kill(signal.SIGTERM)
            answer = connection.answer()
            assert answer.headers["connection"] == "close"
            assert connection.is_closed()
        assert server.wait() == 0
        return answer.raw

    found = both(scene, drain_seconds=10.0 if ends == "in time" else 0.2)
    assert (b"waited" in found) == (ends == "in time")


# --- which way is taken -----------------------------------------------------------------------------------


class Straight:
    """A fast path in a loop of this process, with a session of the caller of `TOKEN`."""

    def __init__(self, path: HotPath, application: Any, principal: str, version: str = "2025-11-25") -> None:
        self.path = path
        self.application = application
        self.session: Kept = application.sessions.open(principal, asyncio.get_running_loop())
        for body in (
            message("initialize", {"protocolVersion": version, "capabilities": {}}, 0),
            message("notifications/initialized"),
        ):
            exchange = self.session.exchange()
            exchange.receive(json.dumps(body).encode())
            self.session.put_back(exchange)

    def take(self, body: Any, **headers: Any) -> bytes | PendingResponse | None:
        """Have the fast path take a request."""
        usual = {"mcp_session_id": self.session.id, "mcp_protocol_version": "2025-11-25"}
        head, _, content = http(body=body, **{**usual, **headers}).partition(b"\r\n\r\n")
        known = self.path.head(head)
        return None if known is None else self.path.answer(known, content, DATE)


def straight(scene: Callable[[Straight], Any]) -> None:
    """Run a scene, which may be a coroutine."""
    app = App("straight")

    @app.tool(run="inline")
    def echo(text: str) -> str:
        return text

    @app.tool(run="inline")
    def who(ctx: Context) -> str:
        return ctx.principal

    @app.tool(run="inline")
    def numbers() -> dict[str, int]:
        return {"one": 1}

    @app.tool
    async def at_once(text: str) -> str:
        return text

    @app.tool
    async def later() -> str:
        await asyncio.sleep(0)
        return "later"

    async def serve() -> None:
        async with in_process(app, token=TOKEN) as server:
            application = server.application
            path = HotPath(application, asyncio.get_running_loop())
            request = stateless_request("tools/call", {"name": "echo", "arguments": {}})
            known = path.head(request.partition(b"\r\n\r\n")[0])
            assert known is not None
            done = scene(Straight(path, application, known.principal))
            if asyncio.iscoroutine(done):
                await done
        assert not app.runtime.dispatchers

    asyncio.run(serve())


@pytest.mark.parametrize("body", [ECHO, calling("who"), calling("at_once", text="x"), message("ping", {}, 1)])
def test_what_answers_at_once_goes_straight_in_a_session(body: dict[str, Any]) -> None:
    def scene(way: Straight) -> None:
        for _ in range(3):
            answer = way.take(body)
            assert isinstance(answer, bytes)
            assert answer.startswith(b"HTTP/1.1 200 OK\r\ndate: ")

    straight(scene)


def test_an_answer_is_of_the_version_of_its_session() -> None:
    def scene(way: Straight) -> None:
        older = Straight(way.path, way.application, way.session.principal, SESSION_VERSIONS[1])
        for _ in range(2):
            for each, structured in ((way, True), (older, False)):
                answer = each.take(calling("numbers"))
                assert isinstance(answer, bytes)
                assert (b"structuredContent" in answer) == structured

    straight(scene)


def test_a_call_that_waits_is_begun_straight_and_answered_when_it_has_ended() -> None:
    async def scene(way: Straight) -> None:
        for _ in range(3):
            pending = way.take(calling("later"))
            assert isinstance(pending, PendingResponse)
            assert pending.waits
            woken = asyncio.Event()
            pending.on_message(woken.set)
            await asyncio.wait_for(woken.wait(), 10)
            found = pending.answer()
            assert found is not None
            assert found[0] == 200
            assert text_of(json.loads(found[1])) == "later"
        assert not way.session.running
        assert not way.application.exchanges.running

    straight(scene)


@pytest.mark.parametrize(
    "body",
    [
        message("initialize", {"protocolVersion": "2025-11-25"}, 1),
        message("server/discover", {}, 1),
        message("notifications/initialized"),
        message(None, id=1, result={}),
        [ECHO],
        b"{",
        {
            **ECHO,
            "params": {**ECHO["params"], "_meta": {"io.modelcontextprotocol/protocolVersion": STATELESS}},
        },
    ],
)
def test_what_is_no_request_of_a_session_goes_the_long_way_untouched(body: Any) -> None:
    def scene(way: Straight) -> None:
        for _ in range(2):
            assert way.take(ECHO) is not None
            assert way.take(body) is None

    straight(scene)


def test_another_callers_session_goes_the_long_way() -> None:
    def scene(way: Straight) -> None:
        assert way.take(ECHO) is not None
        owner, way.session.principal = way.session.principal, "somebody else"
        assert way.take(ECHO) is None
        way.session.principal = owner

    straight(scene)


def test_an_id_that_is_in_flight_is_not_for_the_connection_that_sessions_share() -> None:
    async def scene(way: Straight) -> None:
        pending = way.take(calling("later", 7))
        assert isinstance(pending, PendingResponse)
        woken = asyncio.Event()
        pending.on_message(woken.set)
        way.session.bypass.left = 0
        refused = way.take(calling("echo", 7, text="x"))
        assert isinstance(refused, bytes)
        assert b"in flight" in refused
        way.session.bypass.left = 0
        other = way.take(calling("echo", 8, text="x"))
        assert isinstance(other, bytes)
        assert b"result" in other
        await asyncio.wait_for(woken.wait(), 10)
        assert pending.answer() is not None

    straight(scene)


def test_a_session_is_in_use_whichever_way_its_requests_take(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0

    def later() -> float:
        return now + 5.0

    monkeypatch.setattr("fastrpc.transports.http.sessions.monotonic", lambda: now)
    monkeypatch.setattr("fastrpc.transports.http.hot_path.monotonic", later)  # at the end of a call

    def scene(way: Straight) -> None:
        nonlocal now
        sessions = way.application.sessions
        way.session.used = now
        first = sessions.open(way.session.principal, asyncio.get_running_loop())
        for _ in range(3):
            now += 1700.0
            assert way.take(ECHO) is not None
            assert way.session.used == later()
            assert sessions.find(way.session.id, way.session.principal) is way.session
            assert way.session.used == now
        own = sessions._of_caller[way.session.principal]
        assert list(own.values()) == [first, way.session]  # the other one would go first
        now += 1801.0
        assert way.take(ECHO) is None
        assert way.session.closed

    straight(scene)


def test_a_head_in_a_session_is_judged_anew_when_its_token_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("fastrpc.transports.http.remembered.monotonic", lambda: now)

    def scene(way: Straight) -> None:
        nonlocal now
        asked = []

        def admit(given: object) -> Admission:
            asked.append(given)
            return Admission(way.session.principal, now + 60)

        way.application.guard.admit = admit
        way.path._remembered.forget()
        for number in range(6):  # lengths, too, that have not come yet
            assert way.take(calling("echo", text="x" * (number // 2))) is not None
        assert len(asked) == 1
        now += 60
        assert way.take(calling("echo", text="x")) is not None  # a head that is known by all its bytes
        assert len(asked) == 2
        now += 60
        assert way.take(calling("echo", text="x" * 10)) is not None  # and one that is like the last
        assert len(asked) == 3

    straight(scene)


def test_heads_that_differ_in_length_session_and_trace_are_judged_once() -> None:
    def scene(way: Straight) -> None:
        judged = []
        guard = way.application.guard
        admit = guard.admit
        guard.admit = lambda given: judged.append(1) or admit(given)
        way.path._remembered.forget()
        other = Straight(way.path, way.application, way.session.principal)
        for number in range(20):
            each = (way, other)[number % 2]
            assert each.take(calling("echo", text="x" * number), traceparent=f"00-{number}") is not None
        assert len(judged) == 1
        for changed in (
            {"authorization": "Bearer another"},
            {"host": "evil.example"},
            {"mcp_protocol_version": "2025-01-01"},
            {"content_length": "-5"},
            {"content_length": "5\x01"},
            {"traceparent": "\x01"},
            {"mcp_session_id": "x y"},
        ):
            assert way.take(ECHO, **changed) is None, changed

    straight(scene)


def test_what_is_known_of_heads_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.transports.http.remembered.HEADS_BYTES", 10_000)

    def scene(way: Straight) -> None:
        for number in range(200):
            assert way.take(ECHO, traceparent=f"00-{number}") is not None
            assert sum(map(len, way.path._remembered.heads)) <= 10_000
        assert way.path._remembered.heads

    straight(scene)


def test_a_server_that_ends_takes_nothing_straight_in_a_session() -> None:
    def scene(way: Straight) -> None:
        assert way.take(ECHO) is not None
        way.application.refuse_new()
        assert way.take(ECHO) is None

    straight(scene)

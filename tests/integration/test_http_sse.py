"""HTTP+SSE, the transport of 2024-11-05: whole sessions over both pairs of addresses, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from support.http_sessions import ANSWERS, OTHER_TOKEN, TOKEN, Server, Stream, calling, http, refused, text_of
from support.protocol import SESSION_VERSIONS, message
from support.raw_http import Answer, Socket
from support.waiting import eventually as until

ADDRESSES = (("/sse", "/messages"), ("/mcp/sse", "/mcp/sse/message"))


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


class Client:
    """A stream, the address that it has named, and the handshake; `with` closes the stream."""

    def __init__(
        self,
        server: Server,
        addresses: tuple[str, str] = ADDRESSES[0],
        version: str = SESSION_VERSIONS[0],
        token: str | None = TOKEN,
    ) -> None:
        self.server = server
        self.token = token
        self.stream: Stream = server.open(http("GET", addresses[0], token=token))
        self.first = self.stream.event()
        self.address = self.first.data or ""
        params = {
            "protocolVersion": version,
            "capabilities": {"sampling": {}, "roots": {}},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        self.send(message("initialize", params, 0))
        self.result = self.stream.message()["result"]
        self.send(message("notifications/initialized"))

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *exception: object) -> None:
        self.stream.close()

    def post(self, body: Any, **headers: Any) -> Answer:
        return self.server.ask(http("POST", self.address, body, **{"token": self.token, **headers}))

    def send(self, body: Any) -> None:
        answer = self.post(body)
        assert (answer.status, answer.body) == (202, b""), answer

    def request(self, body: Any) -> Any:
        self.send(body)
        return self.stream.message()


# --- a session --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("addresses", ADDRESSES)
def test_a_whole_session(server: Server, addresses: tuple[str, str]) -> None:
    with Client(server, addresses) as client:
        head = client.stream.head
        assert head.headers["content-type"] == "text/event-stream"
        assert head.headers["x-accel-buffering"] == "no"
        assert client.first.kind == "endpoint"
        place, _, id = client.address.partition("?session_id=")
        assert place == addresses[1]
        assert len(id) == 32
        assert client.result["protocolVersion"] == "2024-11-05"
        assert client.request(message("ping", id="p")) == {"jsonrpc": "2.0", "id": "p", "result": {}}
        tools = client.request(message("tools/list", id=1))["result"]["tools"]
        assert "echo" in {tool["name"] for tool in tools}
        assert text_of(client.request(calling("echo", 2, text="hi"))) == "hi"
        assert client.request(message("no/such", id=3))["error"]["code"] == -32601
        said = [client.request(calling("say", 4, count=2)), client.stream.message(), client.stream.message()]
        assert [each.get("params", {}).get("data", {}).get("n") for each in said] == [0, 1, None]
        assert client.request(message("resources/subscribe", {"uri": "docs://a"}, 5))["result"] == {}
        server.call("touch", uri="docs://a")
        assert client.stream.message()["params"] == {"uri": "docs://a"}
        server.call("change")
        assert client.stream.message()["method"] == "notifications/tools/list_changed"
    until(lambda: server.counts()["sse"] == 0)


@pytest.mark.parametrize("version", [*SESSION_VERSIONS, "2026-07-28"])
def test_whatever_version_is_agreed_on_is_served(server: Server, version: str) -> None:
    with Client(server, version=version) as client:
        assert client.result["protocolVersion"] == min(version, SESSION_VERSIONS[-1])
        assert text_of(client.request(calling("wait", 1, ms=1))) == "waited"


def test_calls_run_at_once_and_are_answered_as_they_end(server: Server) -> None:
    with Client(server) as client:
        for name in ("one", "two"):
            client.send(calling("hold", name, name=f"sse {name}"))
            server.call("begun", name=f"sse {name}")
        for name in ("two", "one"):
            server.call("let_go", name=f"sse {name}")
            assert client.stream.message()["id"] == name


def test_questions_and_answers_go_the_same_ways(server: Server) -> None:
    with Client(server) as client:
        question = client.request(calling("ask", "c", how="model"))
        assert question["method"] == "sampling/createMessage"
        answered = client.request(message(None, id=question["id"], result=ANSWERS["sampling/createMessage"]))
        assert (answered["id"], text_of(answered)) == ("c", "hi there")


def test_a_call_is_cancelled_by_a_notification(server: Server) -> None:
    with Client(server) as client:
        client.send(calling("hold", 1, name="sse cancelled"))
        server.call("begun", name="sse cancelled")
        client.send(message("notifications/cancelled", {"requestId": 1}))
        assert server.call("outcome", name="sse cancelled") == "cancelled"
        assert client.request(message("ping", id=2))["id"] == 2


def test_the_session_ends_with_its_stream(server: Server) -> None:
    with Client(server) as client:
        client.send(calling("hold", 1, name="sse left"))
        server.call("begun", name="sse left")
    assert server.call("outcome", name="sse left") == "cancelled"
    until(lambda: server.counts()["sse"] == 0)
    refused(client.post(message("ping", id=1)), 404, -32001)


def test_a_session_may_end_while_a_message_comes(server: Server) -> None:
    until(lambda: server.counts()["sse"] == 0)  # those of other tests end soon
    client = Client(server)
    request = http("POST", client.address, message("ping", id=1))
    with Socket(server.port) as connection:
        connection.send(request[:-5])
        with pytest.raises(TimeoutError):
            connection.answer(seconds=0.05)
        client.stream.close()
        until(lambda: server.counts()["sse"] == 0)
        connection.send(request[-5:])
        refused(connection.answer(), 404, -32001)


def test_a_batch_is_refused_on_the_stream_of_a_version_without(server: Server) -> None:
    batch = [message("ping", id=1)]
    with Client(server) as client:
        assert client.request(batch)["error"]["code"] == -32600
    with Client(server, version="2025-03-26") as client:
        assert client.request(batch) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]


# --- what is refused --------------------------------------------------------------------------------------


def test_another_callers_session_looks_like_an_unknown_one(server: Server) -> None:
    with Client(server) as client:
        unknown = client.address.partition("=")[0] + "=" + "A" * 43
        for body in (
            message("ping", id=1),
            message("notifications/initialized"),
            message(None, id=1, result={}),
        ):
            theirs = server.ask(http("POST", client.address, body, token=OTHER_TOKEN))
            refused(theirs, 404, -32001)
            assert theirs.raw == server.ask(http("POST", unknown, body, token=OTHER_TOKEN)).raw
        assert client.request(message("ping", id=1))["id"] == 1


@pytest.mark.parametrize("addresses", ADDRESSES)
def test_each_address_takes_its_own_method(server: Server, addresses: tuple[str, str]) -> None:
    stream, messages = addresses
    for method, path, allowed in (
        ("POST", stream, "GET"),
        ("DELETE", stream, "GET"),
        ("GET", messages, "POST"),
        ("PUT", messages, "POST"),
    ):
        answer = server.ask(http(method, path, content_length="0"))
        refused(answer, 405)
        assert answer.headers["allow"] == allowed
    refused(server.ask(http("GET", stream, accept="application/json")), 406)
    refused(server.ask(http("GET", stream, token=None)), 401)
    refused(server.ask(http("POST", messages, b"{}", token=None)), 401)


@pytest.mark.parametrize("query", ["", "?", "?session_id=", "?session=x", "?session_id=a&session_id=b"])
def test_an_address_without_a_session_is_refused(server: Server, query: str) -> None:
    refused(server.ask(http("POST", "/messages" + query, message("ping", id=1))), 400)


def test_a_message_that_is_none_is_refused_where_it_came(server: Server) -> None:
    with Client(server) as client:
        refused(client.post(message("ping", id=1), content_type="text/plain"), 415)
        refused(client.post(message("ping", id=1), content_type=None), 415)
        refused(client.post(b"{"), 400, -32700)
        client.send({"jsonrpc": "2.0", "id": 9})
        assert client.stream.message()["error"]["code"] == -32600
        assert client.request(message("ping", id=1))["id"] == 1


# --- bounds and ends --------------------------------------------------------------------------------------


def test_a_silent_stream_is_kept_alive_and_their_number_is_limited() -> None:
    with Server(keep_alive_seconds=0.05, sessions_per_caller=2, max_sessions=3) as server:
        with Client(server) as client, Client(server):
            for _ in range(3):
                assert getattr(client.stream.next(), "comment", None) == "keep-alive"
            refused(server.ask(http("GET", "/sse")), 429)
            with Client(server, token=OTHER_TOKEN):
                refused(server.ask(http("GET", "/mcp/sse", token=OTHER_TOKEN)), 429)
        until(lambda: server.counts()["sse"] == 0)
        with Client(server):
            pass


@pytest.mark.parametrize("limit", ["the connection's", "the application's"])
def test_a_client_that_stops_reading_is_bounded_then_dropped(limit: str) -> None:
    seconds = 0.5 if limit == "the connection's" else 3600.0
    patch = {"transports.http.request.STALL_SECONDS": 0.5}
    with Server(limits={"read_seconds": seconds}, patch=patch) as server, Client(server) as client:
        client.send(calling("hold", 1, name="beside"))
        server.call("begun", name="beside")
        client.send(calling("say", 2, count=1000, size=20_000))
        assert server.call("outcome", name="beside") == "cancelled"
        until(lambda: server.counts()["sse"] == 0)
        refused(client.post(message("ping", id=1)), 404, -32001)


def test_answers_that_no_one_reads_are_bounded_too() -> None:
    with Server(limits={"read_seconds": 3600}) as server, Client(server) as client:
        answers = []
        for number in range(30):
            answers.append(client.post(calling("echo", number, text="x" * 1_000_000)).status)
        assert set(answers) == {202, 404}
        assert answers == sorted(answers)
        assert answers.count(202) < 15


def test_at_the_servers_end_calls_are_answered_and_streams_end() -> None:
    with Server(drain_seconds=0.3) as server, Client(server) as client, Client(server) as idle:
        for id in ("a", "b"):
            client.send(calling("hold", id, name=id))
            server.call("begun", name=id)
        client.send(calling("outlast", "c"))
        assert server.end() == (0, "")
        last = [client.stream.message() for _ in range(3)]
        assert text_of(last[0]) == "waited"
        assert sorted((each["id"], each["error"]["message"]) for each in last[1:]) == [
            ("a", "The server has ended"),
            ("b", "The server has ended"),
        ]
        assert client.stream.next() is None
        assert idle.stream.rest() == []


def test_messages_hold_what_other_clients_would_read_as_lines(server: Server) -> None:
    with Client(server) as client:
        text = "one\r\ntwo\rthree\u2028four\x00: data: x\n\n"
        assert text_of(json.loads(json.dumps(client.request(calling("echo", 1, text=text))))) == text

"""What clients can have a server keep over HTTP: bounded in bytes for a session, for a caller and in all."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.http_sessions import (
    OTHER_TOKEN,
    TOKEN,
    Server,
    Session,
    Stream,
    calling,
    http,
    refused,
    stateless_request,
)
from support.protocol import SESSION_VERSIONS, message
from support.raw_http import Answer
from support.waiting import eventually as until

MEGABYTE = 1024 * 1024


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


def handshake(client: Any = None, capabilities: Any = None, token: str = TOKEN) -> bytes:
    params = {
        "protocolVersion": SESSION_VERSIONS[-1],
        "capabilities": capabilities or {},
        "clientInfo": client or {"name": "raw", "version": "1"},
    }
    return http(body=message("initialize", params, 1), token=token)


def initialize(server: Server, client: Any = None, token: str = TOKEN) -> Answer:
    return server.ask(handshake(client, token=token))


def memory(server: Server) -> int:
    """How much memory the server uses, in bytes."""
    with open(f"/proc/{server.process.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS")) * 1024


@pytest.mark.parametrize(
    ("client", "capabilities", "times"),
    [
        ({"name": "x", "version": "1" * 12_000_000}, {}, 30),
        ({"name": "x"}, {"experimental": {"x": [{}] * 999_000}}, 8),
    ],
    ids=["one long text", "nearly a million objects"],
)
def test_handshakes_do_not_fill_the_memory(client: Any, capabilities: Any, times: int) -> None:
    """30 of 12 MB took 490 MB, and 8 of a million objects 590 MB."""
    request = handshake(client, capabilities)
    with Server() as server:
        before = memory(server)
        for _ in range(times):
            answer = server.ask(request)
            error = refused(answer, 400, -32602, 1)
            assert error["message"] == (
                "capabilities and clientInfo: more than the 1048576 bytes that a session may have kept"
            )
            assert "mcp-session-id" not in answer.headers
        assert memory(server) - before < 200 * MEGABYTE
        assert server.counts()["sessions"] == server.counts()["quota"] == 0


def test_a_caller_with_much_in_its_sessions_loses_the_one_that_was_idle_the_longest() -> None:
    with Server(patch={"quotas.CALLER_BYTES": 300_000}) as server:
        other = Session(server, token=OTHER_TOKEN)
        client = {"name": "x", "version": "1" * 90_000}
        ids = [initialize(server, client).headers["mcp-session-id"] for _ in range(3)]
        assert server.counts()["sessions"] == 4

        def call(id: str) -> Answer:
            return server.ask(http(body=calling("echo", text="hi"), mcp_session_id=id))

        assert call(ids[0]).text == "hi"  # so the second is the oldest
        ids.append(initialize(server, client).headers["mcp-session-id"])
        assert [call(id).status for id in ids] == [200, 404, 200, 200]
        assert other.call("echo", text="hi").text == "hi"
        listening = [server.open(http("GET", mcp_session_id=id)) for id in ids if call(id).status == 200]
        assert [each.head.status for each in listening] == [200] * 3
        error = refused(initialize(server, client), 400, -31001, 1)
        assert error["message"] == "Server busy: no room to keep capabilities and clientInfo"
        assert initialize(server, client, token=OTHER_TOKEN).status == 200
        for each in listening:
            each.close()


def test_all_callers_together_are_bounded_and_no_one_loses_anothers_session() -> None:
    with Server(patch={"quotas.ALL_BYTES": 300_000}) as server:
        client = {"name": "x", "version": "1" * 120_000}
        others = [initialize(server, client, token=OTHER_TOKEN) for _ in range(2)]
        refused(initialize(server, client), 400, -31001, 1)
        for each in others:
            given = {"mcp_session_id": each.headers["mcp-session-id"], "token": OTHER_TOKEN}
            assert server.ask(http(body=calling("echo", text="hi"), **given)).text == "hi"
        server.ask(http("DELETE", mcp_session_id=others[0].headers["mcp-session-id"], token=OTHER_TOKEN))
        assert initialize(server, client).status == 200


def test_subscriptions_of_a_session_are_bounded_and_can_be_given_back(server: Server) -> None:
    session = Session(server)

    def subscribe(number: int, method: str = "resources/subscribe") -> dict[str, Any]:
        uri = f"docs://{'x' * 2000}-{number}"
        found: dict[str, Any] = session.post(message(method, {"uri": uri}, 1)).json
        return found

    taken = 0
    while "error" not in (answer := subscribe(taken)):
        taken += 1
        assert taken < 1000
    assert answer["error"]["code"] == -32602
    assert answer["error"]["message"].startswith("subscriptions: more than the 1048576 bytes")
    assert taken > 100
    assert subscribe(0, "resources/unsubscribe")["result"] == {}
    assert subscribe(taken)["result"] == {}
    assert session.call("echo", text="hi").text == "hi"
    session.delete()
    until(lambda: server.counts()["quota"] == 0)


def test_the_sessions_of_the_older_transport_count_too(server: Server) -> None:
    with server.open(http("GET", "/sse")) as stream:
        address = stream.event().data
        assert address is not None
        params = {"protocolVersion": "2024-11-05", "clientInfo": {"name": "x", "version": "1" * 500_000}}
        for version in ("1" * 2_000_000, "1" * 500_000):
            params["clientInfo"] = {"name": "x", "version": version}
            assert server.ask(http(path=address, body=message("initialize", params, 1))).status == 202
        assert stream.message()["error"]["code"] == -32602
        assert stream.message()["result"]["protocolVersion"] == "2024-11-05"
        assert server.counts()["quota"] > 500_000
    until(lambda: server.counts()["quota"] == 0)


def test_streams_of_changes_count_as_long_as_they_are_open(server: Server) -> None:
    def listen(uris: list[str]) -> Stream:
        wanted = {"notifications": {"resourceSubscriptions": uris}}
        return server.open(stateless_request("subscriptions/listen", wanted, 1))

    with listen(["docs://" + "x" * MEGABYTE]) as too_long:
        refused(too_long.answer(), 400, -32602, 1)
    with listen([f"docs://{'x' * 100}/{number}" for number in range(2000)]) as stream:
        assert stream.message()["method"] == "notifications/subscriptions/acknowledged"
        assert server.counts()["quota"] > 200_000
        server.call("touch", uri=f"docs://{'x' * 100}/1999")
        assert stream.message()["method"] == "notifications/resources/updated"
    until(lambda: server.counts()["quota"] == 0)


def test_a_session_keeps_no_room_for_long_messages(server: Server) -> None:
    """Connections that were used for them are not used again, in whichever direction they were long."""
    session = Session(server)
    until(lambda: server.counts()["pooled"] <= 1)
    for count, length in ((0, 100_000), (1, 1)):
        assert (
            session.post(
                message("prompts/get", {"name": "greet", "arguments": {"name": "x" * length}}, 1)
            ).status
            == 200
        )
        assert server.counts()["pooled"] == count
    assert session.call("say", count=0, size=0).text == "said 0"
    session.delete()


def test_sessions_keep_so_many_idle_connections_together() -> None:
    with Server(patch={"transports.http.sessions.ALL_EXCHANGES_BYTES": 3 * 64 * 1024}) as server:
        sessions = [Session(server) for _ in range(6)]
        assert server.counts()["pooled"] == 3
        for each in sessions:
            assert each.call("echo", text="hi").text == "hi"
        assert server.counts()["pooled"] == 3
        for each in sessions:
            each.delete()
        assert server.counts()["pooled"] == 0
        assert Session(server).call("echo", text="hi").text == "hi"
        assert server.counts()["pooled"] == 1


def test_a_batch_without_a_session_leaves_nothing_behind(server: Server) -> None:
    """The next request on that connection of the server's may be another caller's."""
    batch = [
        message("resources/subscribe", {"uri": "docs://a"}, 1),
        message("logging/setLevel", {"level": "emergency"}, 2),
        message("resources/unsubscribe", {"uri": "docs://a"}, 3),
    ]
    for _ in range(3):
        answer = server.ask(http(body=batch, mcp_protocol_version="2025-03-26"))
        found = {each["id"]: each.get("error") for each in answer.json}
        for id, method in ((1, "resources/subscribe"), (2, "logging/setLevel")):
            words = f"{method}: needs a session, which begins with initialize"
            assert found[id] == {"code": -32600, "message": words}
    assert server.counts()["quota"] == 0
    server.call("touch", uri="docs://a")
    with server.open(http(body=calling("step"), token=OTHER_TOKEN)) as stream:
        said = [each.get("method", "answer") for each in stream.messages()]
    assert said == ["notifications/message", "answer"]


IDLE_SESSIONS = """
import asyncio, gc, json, os, sys
from fastrpc import Server

HANDSHAKE = [
    {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}},
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
]

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

async def main():
    app = Server("t")
    @app.tool
    def echo(text: str) -> str:
        return text
    sessions = app.asgi(auth=None, max_sessions=5000, sessions_per_caller=5000).here().sessions
    def begin(count):
        for _ in range(count):
            session = sessions.open("", asyncio.get_running_loop())
            for message in HANDSHAKE:
                exchange = session.exchange()
                exchange.receive(json.dumps(message).encode())
                session.put_back(exchange)
            session.rest()
    begin(500)
    gc.collect()
    before = resident()
    begin(2000)
    gc.collect()
    print((resident() - before) // 2000)

asyncio.run(main())
"""


def test_an_idle_session_takes_little_memory() -> None:
    """The 10,000 that a process has by default are to take no more than docs/http.md says: 15 KB each."""
    import subprocess
    import sys

    ran = subprocess.run([sys.executable, "-c", IDLE_SESSIONS], capture_output=True, text=True, check=True)
    assert 1000 < int(ran.stdout) < 22 * 1024


def test_a_waiting_call_keeps_its_arguments_alone_and_leaves_nothing() -> None:
    """100 of a megabyte each took 600 MB, and with each such burst more of it stayed."""
    called = {"name": "wait", "arguments": {"ms": 600_000}}
    request = stateless_request("tools/call", called, meta={"filling": "x" * MEGABYTE})
    with Server() as server:
        before = memory(server)
        for _ in range(6):
            streams = [server.open(request) for _ in range(100)]
            until(lambda: server.counts()["running"] == 100)
            assert memory(server) - before < 300 * MEGABYTE
            for stream in streams:
                stream.close()
            until(lambda: server.counts()["running"] == 0)
        until(lambda: memory(server) - before < 150 * MEGABYTE)


def test_large_blocks_that_are_freed_go_back_to_the_system() -> None:
    with Server() as server:
        assert int(server.call("fragment")) < 20  # of 100

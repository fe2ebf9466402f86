"""nginx, Caddy and HAProxy, as docs/http.md prints them, before a real server: nothing is lost on the way.

Both eras of the protocol, events as they come, cancellation, resumption, large bodies, tokens and names. A
tool waits until a test lets it go, so that no test goes by how long something takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.held_calls import GATES
from support.http_client import Serving, Stream, answer_of, ask, handshake, request, stateless_request
from support.ports import free_port
from support.reverse_proxies import HOST, PROXIES, Front, Http2, reverse_proxy
from support.waiting import SECONDS, eventually

TOOLS = """
import asyncio, os
from fastrpc import Context, Server

app = Server("behind")
"""
TOOLS += (
    GATES
    + """
@app.tool(run="inline")
def echo(text: str) -> str:
    return text

@app.tool(run="inline")
def who() -> str:
    return str(os.getpid())

@app.tool(run="inline")
def size(text: str) -> str:
    return str(len(text))

@app.tool
async def hold(name: str, context: Context, events: int = 0) -> str:
    for number in range(events):
        context.info(f"{name} {number}")
    return await held(name)

@app.tool
async def outcome(name: str) -> str:
    try:
        await asyncio.wait_for(gate(name).ended.wait(), 40)
    except asyncio.TimeoutError:
        return "still running"
    return gate(name).outcome

@app.tool
async def name_of(context: Context) -> str:
    return (await context.elicit("Name?", str)).data

@app.tool(run="inline")
def change() -> str:
    def passing() -> str:
        return ""
    app.tool(passing)
    app.remove_tool("passing")
    return "changed"
"""
)
SESSION_VERSIONS = ["2025-03-26", "2025-06-18", "2025-11-25"]
MIB = 1024 * 1024
LOG_LEVEL = "io.modelcontextprotocol/logLevel"
ORIGIN = "https://app.example.com"


def serve(folder: Path, http: str = "127.0.0.1:0", **environ: str) -> Serving:
    (folder / "tools.py").write_text(TOOLS)
    arguments = ("serve", "tools.py", "--http", http, "--allow-host", HOST, "--allow-origin", ORIGIN)
    return Serving(*arguments, folder=folder, **environ)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    with serve(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture(scope="module", params=PROXIES)
def front(request: Any, server: Serving, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    with reverse_proxy(request.param, tmp_path_factory.mktemp(request.param), server.port) as front:
        yield front


@pytest.fixture
def name(request: Any) -> str:
    """A name for the gate of one test."""
    return str(request.node.name)


def called(tool: str, **arguments: Any) -> tuple[dict[str, Any], dict[str, str]]:
    """A call of 2026-07-28 that wants to hear what the tool logs, and its headers."""
    params = {"name": tool, "arguments": arguments, "_meta": {LOG_LEVEL: "info"}}
    return stateless_request("tools/call", params)


def held(front: Front, name: str, events: int = 0) -> Stream:
    """Begin a call of 2026-07-28 whose answer is a stream."""
    message, headers = called("hold", name=name, events=events)
    return Stream(front, "POST", "/mcp", message, **headers)


def hang_up(stream: Stream) -> None:
    """Close the connection: the answer holds on to it, too."""
    stream.response.close()
    stream.close()


# --- plain calls ------------------------------------------------------------------------------------------


def test_a_call_of_a_session_and_a_stateless_one_are_answered(front: Front) -> None:
    assert front.call("echo", text="hello") == "hello"
    for version in SESSION_VERSIONS:
        assert front.session(version).call("echo", text=version).text == version


def test_one_connection_carries_many_calls(front: Front) -> None:
    connection = front.connection()
    for number in range(50):
        message, headers = stateless_request(
            "tools/call", {"name": "echo", "arguments": {"text": f"{number} é"}}
        )
        assert ask(connection, "POST", "/mcp", message, front.headers(**headers)).text == f"{number} é"
    connection.close()


def test_a_client_of_2024_is_served_by_its_two_addresses(front: Front) -> None:
    call_over_sse(front)


def call_over_sse(front: Front) -> None:
    """Hold a conversation of 2024-11-05: answers come by the stream, whatever connection has asked."""
    stream = Stream(front, "GET", "/sse")
    events = stream.data()
    address = next(events)
    assert address.startswith("/messages?session_id=")
    assert front.ask("POST", address, handshake("2024-11-05")).status == 202
    assert json.loads(next(events))["result"]["protocolVersion"] == "2024-11-05"
    front.ask("POST", address, {"jsonrpc": "2.0", "method": "notifications/initialized"})
    call = request("tools/call", {"name": "echo", "arguments": {"text": "old"}}, 2)
    assert front.ask("POST", address, call).status == 202
    assert json.loads(next(events))["result"]["content"][0]["text"] == "old"
    hang_up(stream)


# --- events -----------------------------------------------------------------------------------------------


def test_an_event_passes_while_the_call_that_sent_it_still_runs(front: Front, name: str) -> None:
    stream = held(front, name, events=3)
    events = stream.data()
    for number in range(3):
        assert json.loads(next(events))["params"]["data"] == f"{name} {number}"
    assert front.call("let_go", name=name) == "gone"  # a proxy that holds events back never comes to this
    assert json.loads(next(events))["result"]["content"][0]["text"] == name
    assert [*events] == []
    hang_up(stream)


def test_what_belongs_to_no_call_passes_at_once(front: Front) -> None:
    session = front.session()
    stream = session.listen()
    events = stream.data()
    session.call("change")
    assert json.loads(next(events))["method"] == "notifications/tools/list_changed"
    hang_up(stream)


def test_a_subscription_of_2026_passes_at_once(front: Front) -> None:
    message, headers = stateless_request(
        "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
    )
    stream = Stream(front, "POST", "/mcp", message, **headers)
    events = stream.data()
    assert "acknowledged" in next(events)
    front.call("change")
    changed = next(events, None)
    assert changed is not None, f"the stream has ended; the proxy's log: {front.log()}"
    assert json.loads(changed)["method"] == "notifications/tools/list_changed"
    hang_up(stream)


def test_a_question_is_answered_by_another_request(front: Front) -> None:
    session = front.session()
    connection = session.begin_call("name_of")
    lines = Lines(connection)
    asked = next(message for message in lines if message.get("method") == "elicitation/create")
    answer = {
        "jsonrpc": "2.0",
        "id": asked["id"],
        "result": {"action": "accept", "content": {"value": "Ada"}},
    }
    assert session.send(answer).status == 202
    assert next(lines)["result"]["content"][0]["text"] == "Ada"
    connection.close()


class Lines:
    """The messages of an answer that is a stream, as they come."""

    def __init__(self, connection: Any) -> None:
        self.response = connection.getresponse()

    def __iter__(self) -> Lines:
        return self

    def __next__(self) -> Any:
        for line in self.response:
            if line.startswith(b"data: {"):
                return json.loads(line[6:])
        raise StopIteration


def test_a_stream_that_was_cut_goes_on_where_it_was(front: Front, name: str) -> None:
    session = front.session()
    session.send(request("logging/setLevel", {"level": "info"}, 99))
    connection = session.begin_call("hold", name=name, events=3)
    response = connection.getresponse()
    seen = b""
    while f"{name} 1".encode() not in seen:
        line = response.readline()
        assert line
        seen += line
    response.close()
    connection.close()
    last = re.findall(rb"^id: (\S+)\r?$", seen, re.MULTILINE)[-1].decode()
    again = Stream(front, "GET", "/mcp", Last_Event_ID=last, **session.headers())
    events = again.data()
    assert json.loads(next(events))["params"]["data"] == f"{name} 2"
    front.call("let_go", name=name)
    assert json.loads(next(events))["result"]["content"][0]["text"] == name
    hang_up(again)


# --- cancellation -----------------------------------------------------------------------------------------


def test_closing_the_stream_cancels_the_call(front: Front, name: str) -> None:
    stream = held(front, name, events=1)
    assert name in next(stream.data())
    hang_up(stream)
    assert front.call("outcome", name=name) == "cancelled"


def test_closing_before_the_answer_has_begun_cancels_the_call(front: Front, name: str) -> None:
    connection = front.begin_call("hold", name=name)
    assert front.call("begun", name=name) == "begun"
    connection.close()
    assert front.call("outcome", name=name) == "cancelled"


@pytest.mark.parametrize("name", ["caddy", "haproxy"])
def test_over_http_2_a_stream_that_is_reset_cancels_its_call(
    name: str, server: Serving, tmp_path: Path
) -> None:
    """One connection carries all: the stream of one call ends, and the others go on."""
    pytest.importorskip("h2", reason="what speaks HTTP/2 here: pip install h2")
    one, other = f"{name} over h2", f"{name} over h2, too"
    with reverse_proxy(name, tmp_path, server.port) as front, Http2(front) as connection:
        assert b'"text":"hello"' in connection.read(connection.post(called("echo", text="hello")))
        stream = connection.post(called("hold", name=one, events=1))
        connection.read(stream, until=f"{one} 0".encode())
        waiting = connection.post(called("hold", name=other))
        connection.read(connection.post(called("begun", name=other)))
        connection.reset(stream)
        assert b"cancelled" in connection.read(connection.post(called("outcome", name=one)))
        connection.read(connection.post(called("let_go", name=other)))
        assert other.encode() in connection.read(waiting)


# --- bodies -----------------------------------------------------------------------------------------------


def test_a_body_of_nearly_16_mib_passes_both_ways(front: Front) -> None:
    text = "x" * (16 * MIB - 2000)
    assert front.call("size", text=text) == str(len(text))
    assert front.call("echo", text=text) == text
    assert front.session().call("size", text=text).text == str(len(text))


def test_a_body_in_chunks_passes(front: Front) -> None:
    message, headers = called("size", text="x" * 200_000)
    data = json.dumps(message).encode()
    parts = (data[start : start + 1000] for start in range(0, len(data), 1000))
    connection = front.connection()
    connection.request("POST", "/mcp", parts, front.headers(**headers), encode_chunked=True)
    assert answer_of(connection).text == "200000"
    connection.close()


def test_a_body_over_the_limit_is_refused_and_the_client_sees_it(front: Front) -> None:
    """httpx reads the answer though it could not send all: a connection that is only reset would hide it."""
    import httpx

    message, headers = called("size", text="x" * 17 * MIB)
    with httpx.Client(verify=front.tls, trust_env=False, timeout=SECONDS) as client:
        answer = client.post(
            f"https://127.0.0.1:{front.port}/mcp",
            json=message,
            headers={**front.headers(**headers), "Host": HOST},
            extensions={"sni_hostname": HOST},
        )
    assert answer.status_code == 413
    assert front.call("echo", text="hello") == "hello"


# --- who may come in --------------------------------------------------------------------------------------


def test_without_a_right_token_no_one_comes_in(server: Serving, front: Front) -> None:
    for token in (None, "a-token-that-is-none-of-ours"):
        outside = Front(front.port, front.tls)
        outside.token = token
        answer = outside.stateless_request("tools/list", {})
        assert answer.status == 401
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert answer.json["error"]["code"] == -32600


@pytest.mark.parametrize("host", ["evil.example.org", "mcp.example.com.evil.example.org", "10.0.0.1"])
def test_another_host_is_not_served(front: Front, host: str) -> None:
    answer = Front(front.port, front.tls, host).stateless_request("tools/list", {})
    assert answer.status == 421 or answer.body == b""  # Caddy itself has no such site


def test_what_a_client_says_about_its_way_changes_nothing(front: Front) -> None:
    """Nothing is let in or kept out by a header that anybody may send."""
    forged = {
        "Forwarded": "for=127.0.0.1;host=localhost;proto=http",
        "X_Forwarded_For": "127.0.0.1",
        "X_Forwarded_Host": "localhost",
        "X_Real_IP": "127.0.0.1",
        "X_Original_URL": "/healthz",
    }
    outside = Front(front.port, front.tls)
    outside.token = None
    assert outside.stateless_request("tools/list", {}, **forged).status == 401
    assert (
        outside.stateless_request("tools/list", {}, **{**forged, "Origin": "https://evil.example"}).status
        == 403
    )
    assert front.stateless_request("tools/list", {}, **forged).status == 200


def test_a_page_of_an_allowed_origin_is_answered_with_cors(front: Front) -> None:
    answer = front.stateless_request("tools/list", {}, Origin=ORIGIN)
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (200, ORIGIN)
    asked = front.ask("OPTIONS", "/mcp", Origin=ORIGIN, Access_Control_Request_Method="POST")
    assert (asked.status, asked.headers["Access-Control-Allow-Origin"]) == (204, ORIGIN)


# --- the end ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROXIES)
def test_a_server_that_ends_and_begins_anew_is_found_again(name: str, tmp_path: Path) -> None:
    """The proxy keeps connections to the server; those of the one before must not lose a call of the next."""
    (tmp_path / "proxy").mkdir()
    place = f"127.0.0.1:{free_port()}"  # one that the system gives to no one meanwhile
    with serve(tmp_path, place) as server, reverse_proxy(name, tmp_path / "proxy", server.port) as front:
        session = front.session()
        stream = session.listen()
        assert front.call("echo", text="one") == "one"
        server.kill()
        assert "retry: 5000" in [*stream.lines()]  # the last event passes, too
        assert server.wait() == 0
        assert front.stateless_request("tools/list", {}).status in (502, 503, 504)
        with serve(tmp_path, place):
            eventually(lambda: front.stateless_request("tools/list", {}).status == 200)
            assert front.call("echo", text="two") == "two"
            assert session.call("echo", text="lost").status == 404


# --- several machines -------------------------------------------------------------------------------------


def test_haproxy_sends_a_session_where_it_began_and_all_else_anywhere(tmp_path: Path) -> None:
    secret = "a-key-that-both-servers-have-and-nobody-else"
    (tmp_path / "proxy").mkdir()
    with (
        serve(tmp_path, FASTRPC_SECRET=secret) as one,
        serve(tmp_path, FASTRPC_SECRET=secret) as two,
        reverse_proxy("haproxy", tmp_path / "proxy", one.port, two.port) as front,
    ):
        pids = {str(one.pid), str(two.pid)}
        assert {front.call("who") for _ in range(8)} == pids
        sessions = [front.session() for _ in range(8)]
        homes = [session.call("who").text for session in sessions]
        assert set(homes) == pids
        for _ in range(3):
            assert [session.call("who").text for session in sessions] == homes
        streams = [session.listen() for session in sessions]
        for session, stream in zip(sessions, streams, strict=True):
            session.call("change")
            assert "list_changed" in next(stream.data())
            hang_up(stream)
        assert sessions[0].server.ask("DELETE", "/mcp", **sessions[0].headers()).status in (200, 204)
        assert sessions[0].call("who").status == 404
        for _ in range(4):
            call_over_sse(front)
        one.kill()
        one.wait()
        assert {front.call("who") for _ in range(8)} == {str(two.pid)}
        call_over_sse(front)

"""The client of a URL, and servers that break off, forget, lead elsewhere or speak no MCP: named errors."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support import scripted_plays as plays
from support.scripted_client import call_one, calls, with_script
from support.scripted_plays import CHANGED, SAID, Play, Sessions, Stateless
from support.scripted_server import Asked, Saying, Scripted
from support.waiting import until

from fastrpc.client import Client, listening
from fastrpc.client.http import session as session_carrier
from fastrpc.client.http import stateless, wire
from fastrpc.errors import (
    ClientError,
    ConnectionLost,
    HttpStatusError,
    InvalidAnswer,
    RemoteError,
    SessionExpired,
)
from fastrpc.protocol.versions import CAPABILITIES_KEY, STATELESS, SUBSCRIPTION_KEY, VERSION_KEY

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

TOKEN = "tok-12345-of-the-client"


@pytest.fixture(params=["a connection each", "kept alive"], autouse=True)
def _connections(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests on a connection that is there are sent without a task, and fail in another place."""
    monkeypatch.setattr(Scripted, "keeps_alive", request.param == "kept alive")


def short(monkeypatch: pytest.MonkeyPatch, *modules: Any) -> None:
    """Let attempts follow each other at once."""
    for module in modules:
        monkeypatch.setattr(module, "PAUSES", (0.01,))


# --- which transport ------------------------------------------------------------------------------------


def test_a_server_of_2025_is_found_out_and_spoken_to_in_its_session() -> None:
    async def call_and_listen(client: Client, server: Scripted) -> None:
        await call_one(client, server)
        await until(lambda: "GET" in server.methods())

    server = with_script(Sessions(), call_and_listen)
    assert server.methods() == [
        "POST server/discover",
        "POST initialize",
        "POST notifications/initialized",
        *sorted(["GET", "POST tools/call"], key=server.methods().index),
        "DELETE",
    ]
    for asked in server.requests[2:]:
        assert asked.headers["mcp-session-id"] == "session-1"
        assert asked.headers["mcp-protocol-version"] == "2025-11-25"
    assert "mcp-session-id" not in server.requests[1].headers
    assert "mcp-protocol-version" not in server.requests[1].headers


def test_a_server_of_2026_gets_its_envelope_and_headers_and_nothing_else() -> None:
    server = with_script(Stateless(), call_one)
    assert server.methods() == ["POST server/discover", "POST tools/call"]
    for asked in server.requests:
        assert asked.headers["mcp-protocol-version"] == STATELESS
        assert asked.headers["mcp-method"] == asked.rpc
        assert asked.headers.get("mcp-name") == ("one" if asked.rpc == "tools/call" else None)
        meta = asked.message["params"]["_meta"]
        assert meta[VERSION_KEY] == STATELESS
        assert meta[CAPABILITIES_KEY] == {}


def test_a_server_that_thinks_better_of_its_version_is_taken_by_its_word() -> None:
    refused = []

    async def play(asked: Asked, say: Saying) -> None:
        if not refused:
            refused.append(asked)
            await say.error(asked, 400, -32022, "Unsupported protocol version", {"supported": [STATELESS]})
        else:
            await Stateless()(asked, say)

    with_script(play, call_one)


def test_a_version_that_is_pinned_is_not_negotiated() -> None:
    server = with_script(Sessions(), call_one, version="2025-11-25")
    assert "POST server/discover" not in server.methods()


async def _no_initialized(asked: Asked, say: Saying) -> None:
    if asked.rpc.startswith("notifications/"):
        await say.answer(500)
    else:
        await Sessions()(asked, say)


@pytest.mark.parametrize(
    ("play", "error", "reason"),
    [
        (plays.only_2030, ClientError, "supports only unknown protocol versions: 2030-01-01"),
        (
            plays.html,
            HttpStatusError,
            "sent text/html where application/json or text/event-stream was expected",
        ),
        (plays.broken, InvalidAnswer, "the response body is not JSON"),
        (plays.something, InvalidAnswer, "the response body does not answer the request"),
        (plays.cut, ConnectionLost, "the connection to http://localhost"),
        (plays.unavailable, HttpStatusError, "status 503"),
        (plays.strange, ClientError, "chose an unknown protocol version: '1999-01-01'"),
        (plays.nowhere, HttpStatusError, "status 404"),
        (plays.round_and_round, HttpStatusError, "too many redirects"),
        (plays.elsewhere, InvalidAnswer, "the server's stream is invalid"),
        (_no_initialized, HttpStatusError, "status 500"),
    ],
)
def test_one_that_speaks_no_mcp_is_reported_in_a_sentence(
    play: Play, error: type[Exception], reason: str
) -> None:
    async def whole() -> None:
        async with Scripted(play) as server:
            client = Client(server.url)
            with pytest.raises(error, match=reason):
                await client.connect()
            with pytest.raises(ConnectionLost):
                await client.call_tool("one")

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_one_that_says_nothing_is_given_up_after_the_time_for_the_start() -> None:
    async def silent(asked: Asked, say: Saying) -> None:
        await asyncio.sleep(20)

    async def whole() -> None:
        async with Scripted(silent) as server:
            with pytest.raises(ClientError, match=r"initialize: no answer within 0\.3 s"):
                await Client(server.url, start_seconds=0.3).connect()

    asyncio.run(asyncio.wait_for(whole(), 30))


# --- sessions -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("sync", [False, True])
@pytest.mark.parametrize("method", ["call_tool", "request"])
def test_a_session_that_is_gone_is_begun_anew_if_that_is_wished(method: str, sync: bool) -> None:
    play = Sessions()

    async def conversation(client: Client, server: Scripted) -> None:
        await call_one(client, server)
        play.known = "another"
        if method == "call_tool":
            await call_one(client, server)
        else:
            params = {"name": "one", "arguments": {}}
            assert (await client.request("tools/call", params))["content"] == SAID["content"]
        assert play.begun == 2

    async def without_loop(server: Scripted) -> None:
        def talk() -> None:
            with Client.sync(server.url, restart=True) as client:
                assert client.call_tool("one").text == "said"
                play.known = "another"
                if method == "call_tool":
                    assert client.call_tool("one").text == "said"
                else:
                    client.request("tools/call", {"name": "one", "arguments": {}})

        await asyncio.get_running_loop().run_in_executor(None, talk)
        assert play.begun == 2

    async def whole() -> None:
        async with Scripted(play) as server:
            await without_loop(server)

    if sync:
        asyncio.run(asyncio.wait_for(whole(), 30))
    else:
        with_script(play, conversation, restart=True)


def test_a_session_that_is_gone_ends_the_connection_otherwise() -> None:
    play = Sessions()

    async def conversation(client: Client, server: Scripted) -> None:
        play.known = "another"
        with pytest.raises(SessionExpired, match="the session has expired"):
            await client.call_tool("one")
        with pytest.raises(ConnectionLost) as later:
            await client.call_tool("one")
        assert type(later.value) is ConnectionLost
        assert calls(server) == 1

    server = with_script(play, conversation)
    assert "DELETE" not in server.methods()


def test_only_what_a_lost_session_has_not_seen_is_asked_again() -> None:
    """Of two calls in flight one is being worked on when the server forgets the session: it is not
    repeated."""
    play = Sessions()
    begun = asyncio.Event()
    names = []

    async def on_call(asked: Asked, say: Saying) -> None:
        names.append(asked.message["params"]["arguments"]["name"])
        if names[-1] == "first":
            await say.stream()
            await say.event(None, id="1", retry="10000")
            begun.set()
            await asyncio.sleep(20)
        await say.result(asked, SAID)

    async def conversation(client: Client, server: Scripted) -> None:
        first = asyncio.ensure_future(client.call_tool("one", {"name": "first"}))
        await begun.wait()
        play.known = "forgotten"
        assert (await client.call_tool("one", {"name": "second"})).text == "said"
        with pytest.raises(ConnectionLost):
            await first
        assert names == ["first", "second"]

    play.on_call = on_call
    with_script(play, conversation, restart=True)


@pytest.mark.parametrize("end", [{}, {"content_length": "1000"}], ids=["ended", "cut off"])
def test_a_broken_stream_is_resumed_from_its_last_event_after_the_time_that_it_names(
    end: dict[str, str],
) -> None:
    play = Sessions()
    asked_for: list[Asked] = []
    times = []

    async def on_call(asked: Asked, say: Saying) -> None:
        asked_for.append(asked)
        await say.stream(**end)
        await say.event(None, id="7", retry="300")
        times.append(asyncio.get_running_loop().time())
        say.drop()

    async def on_get(asked: Asked, say: Saying) -> None:
        if "last-event-id" not in asked.headers:
            await say.answer(405)
            return
        times.append(asyncio.get_running_loop().time())
        await say.stream(**end)
        if asked.headers["last-event-id"] == "7":
            params = {
                "progressToken": asked_for[0].message["params"]["_meta"]["progressToken"],
                "progress": 1,
            }
            await say.event({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}, id="8")
            say.drop()
            return
        assert asked.headers["last-event-id"] == "8"
        await say.event({"jsonrpc": "2.0", "id": asked_for[0].message["id"], "result": SAID})

    async def conversation(client: Client, server: Scripted) -> None:
        reports: list[Any] = []
        assert (await client.call_tool("one", on_progress=reports.append)).text == "said"
        assert [report["progress"] for report in reports] == [1]
        assert len(times) == 3
        assert times[1] - times[0] >= 0.28
        assert calls(server) == 1

    play.on_call, play.on_get = on_call, on_get
    with_script(play, conversation)


def test_an_answer_that_never_comes_is_given_up_after_some_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    short(monkeypatch, session_carrier)
    play = Sessions()

    async def on_call(asked: Asked, say: Saying) -> None:
        await say.stream()
        await say.event(None, id="7")

    async def on_get(asked: Asked, say: Saying) -> None:
        await (say.stream() if "last-event-id" in asked.headers else say.answer(405))

    async def conversation(client: Client, server: Scripted) -> None:
        with pytest.raises(ConnectionLost, match="is lost before the response"):
            await client.call_tool("one")
        assert 3 <= sum("last-event-id" in asked.headers for asked in server.requests) <= 10

    play.on_call, play.on_get = on_call, on_get
    with_script(play, conversation)


@pytest.mark.parametrize("play", [Sessions, Stateless])
@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
def test_an_answer_that_breaks_off_fails_its_call_which_is_not_sent_twice(
    kind: str, play: type[Sessions | Stateless]
) -> None:
    async def on_call(asked: Asked, say: Saying) -> None:
        if asked.message["params"]["arguments"]:
            await say.result(asked, SAID)
            return
        await say.head(200, content_type=kind, content_length="1000")
        await say.send(b": nothing yet\n\n")
        say.drop()

    async def conversation(client: Client, server: Scripted) -> None:
        with pytest.raises(ConnectionLost, match=f"the connection to {server.url} is lost"):
            await client.call_tool("one")
        assert calls(server) == 1
        assert (await client.call_tool("one", {"well": True})).text == "said"

    server = play()
    server.on_call = on_call
    with_script(server, conversation)


def test_notifications_outside_of_requests_come_on_the_listening_stream() -> None:
    play = Sessions()
    opened: list[str | None] = []

    async def on_get(asked: Asked, say: Saying) -> None:
        opened.append(asked.headers.get("last-event-id"))
        await say.stream()
        await say.event({"jsonrpc": "2.0", "id": 1, "method": "ping"}, id=f"s{len(opened)}", retry="10")
        await say.event(CHANGED)
        if len(opened) > 1:
            await asyncio.sleep(20)

    async def conversation(client: Client, server: Scripted) -> None:
        async with client.listen(tools=True) as changes:
            assert (await changes.next())["method"] == CHANGED["method"]
            await until(lambda: len(opened) == 2)
            assert opened == [None, "s1"]
            await until(lambda: [one["id"] for one in answers(server)][:1] == [1])

    play.on_get = on_get
    with_script(play, conversation)


def answers(server: Scripted) -> list[dict[str, Any]]:
    return [asked.message for asked in server.requests if asked.body and "result" in asked.message]


def test_a_stream_that_cannot_be_resumed_is_opened_again_and_all_counts_as_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short(monkeypatch, session_carrier)
    play = Sessions()
    opened = []
    breaks = asyncio.Event()

    async def on_get(asked: Asked, say: Saying) -> None:
        opened.append(asked)
        if len(opened) == 2:
            await say.answer(503)
            return
        await say.stream()
        await (asyncio.sleep(20) if len(opened) > 2 else breaks.wait())

    async def conversation(client: Client, server: Scripted) -> None:
        async with client.listen(tools=True) as changes:
            await until(lambda: opened)
            breaks.set()
            assert (await changes.next())["method"] == CHANGED["method"]
            assert len(opened) == 3

    play.on_get = on_get
    with_script(play, conversation)


def test_a_question_whose_answer_cannot_be_delivered_fails_its_call() -> None:
    """The server would wait for the answer, and the client for the server."""
    play = Sessions()

    async def on_call(asked: Asked, say: Saying) -> None:
        await say.stream()
        await say.event({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {}})
        await asyncio.sleep(20)

    async def refusing(asked: Asked, say: Saying) -> None:
        if asked.body and "result" in asked.message:
            await say.answer(500)
        else:
            await play(asked, say)

    async def conversation(client: Client, server: Scripted) -> None:
        with pytest.raises(HttpStatusError, match="status 500"):
            await client.call_tool("one")

    play.on_call = on_call
    with_script(refusing, conversation, on_elicit={"name": "Bob"})


# --- 2026-07-28 -----------------------------------------------------------------------------------------


async def acknowledge(asked: Asked, say: Saying) -> dict[str, Any]:
    """Begin a stream of changes, and return the ``_meta`` of its notifications."""
    meta = {SUBSCRIPTION_KEY: asked.message["id"]}
    params = {"notifications": asked.message["params"]["notifications"], "_meta": meta}
    await say.stream()
    await say.event(
        {"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": params}
    )
    return meta


def test_a_stream_of_changes_that_breaks_is_opened_again_and_all_counts_as_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short(monkeypatch, listening)
    opened = []

    async def on_listen(asked: Asked, say: Saying) -> None:
        opened.append(asked)
        if len(opened) in (2, 3):
            await (say.answer(503) if len(opened) == 2 else asyncio.sleep(0))
            return
        meta = await acknowledge(asked, say)
        if len(opened) == 1:
            await say.event({**CHANGED, "params": {"_meta": meta}})
            say.drop()
        else:
            await asyncio.sleep(20)

    async def conversation(client: Client, server: Scripted) -> None:
        async with client.listen(tools=True, uris=["docs://guide"]) as changes:
            assert (await changes.next())["params"]["_meta"]
            assert (await changes.next())["method"] == CHANGED["method"]
            assert (await changes.next())["params"] == {"uri": "docs://guide"}
            assert len(opened) == 4

    with_script(Stateless(on_listen=on_listen), conversation)


def test_a_stream_of_changes_that_the_server_ends_or_refuses_is_not_opened_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short(monkeypatch, listening)
    opened = []

    async def on_listen(asked: Asked, say: Saying) -> None:
        opened.append(asked)
        if len(opened) < 3:
            await acknowledge(asked, say)
        if len(opened) == 1:
            await say.event({"jsonrpc": "2.0", "id": asked.message["id"], "result": {}})
        elif len(opened) == 3:
            await say.answer(403)

    async def conversation(client: Client, server: Scripted) -> None:
        for count in (1, 3):  # the second one breaks off
            async with client.listen(tools=True) as changes:
                with pytest.raises(EOFError):
                    await changes.next()
            assert len(opened) == count
        with pytest.raises(RemoteError):
            await client.request("nonsense")

    with_script(Stateless(on_listen=on_listen), conversation)


def test_closing_the_stream_is_what_cancels_a_call() -> None:
    gone = asyncio.Event()

    async def on_call(asked: Asked, say: Saying) -> None:
        await say.stream()
        try:
            while True:
                await say.send(b": still here\n")
                await asyncio.sleep(0.01)
        finally:
            gone.set()

    async def conversation(client: Client, server: Scripted) -> None:
        call = asyncio.ensure_future(client.call_tool("one"))
        await until(lambda: calls(server))
        call.cancel()
        await gone.wait()

    server = with_script(Stateless(on_call), conversation)
    assert server.methods() == ["POST server/discover", "POST tools/call"]


def test_a_tool_whose_headers_have_changed_is_listed_anew_and_called_again() -> None:
    server = Stateless()
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    server.tools = [{"name": "one", "inputSchema": schema}]

    async def on_call(asked: Asked, say: Saying) -> None:
        if "mcp-param-place" in asked.headers:
            assert asked.headers["mcp-param-place"] == "here"
            await say.result(asked, SAID)
        else:
            schema["properties"]["place"] = {"type": "string", "x-mcp-header": "Place"}
            await say.error(asked, 400, -32020, "Mcp-Param-Place: the header is missing")

    async def conversation(client: Client, server: Scripted) -> None:
        assert (await client.call_tool("one", {"place": "here"})).text == "said"

    server.on_call = on_call
    with_script(server, conversation)


def test_headers_that_differ_for_another_reason_are_reported_after_one_more_attempt() -> None:
    async def on_call(asked: Asked, say: Saying) -> None:
        await say.error(asked, 400, -32020, "Mcp-Name: the header is missing")

    async def conversation(client: Client, server: Scripted) -> None:
        with pytest.raises(RemoteError, match="Mcp-Name"):
            await client.call_tool("one")

    assert calls(with_script(Stateless(on_call), conversation)) <= 3


def test_a_tool_that_asks_for_headers_as_none_may_is_left_out_and_the_others_stay() -> None:
    server = Stateless()
    marks = ["Place", "My Place", "Place:\r\nX", "", 5]
    server.tools = [
        {
            "name": f"tool{number}",
            "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "x-mcp-header": mark}}},
        }
        for number, mark in enumerate(marks)
    ]

    async def conversation(client: Client, server: Scripted) -> None:
        assert [tool.name for tool in await client.list_tools()] == ["tool0"]

    with_script(server, conversation)


@pytest.mark.parametrize("kind", ["body", "line", "event"])
def test_what_has_no_end_is_not_kept(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "LONGEST_BODY", 20_000)
    monkeypatch.setattr(stateless, "LONGEST_BODY", 20_000)

    async def on_call(asked: Asked, say: Saying) -> None:
        if kind == "body":
            await say.answer(200, {"x": "x" * 1_000_000})  # more than is kept before anybody reads
            return
        await say.stream()
        for number in range(50):
            end = b"\n" if kind == "event" else b""
            await say.send((b"data: " if not number or end else b"") + b"x" * 1000 + end)

    async def conversation(client: Client, server: Scripted) -> None:
        with pytest.raises(InvalidAnswer, match="longer than 20000 bytes"):
            await client.call_tool("one")

    with_script(Stateless(on_call), conversation)


# --- secrets, and where it leads ------------------------------------------------------------------------


def test_what_the_server_says_of_the_token_is_masked() -> None:
    async def on_call(asked: Asked, say: Saying) -> None:
        status = int(asked.message["params"]["arguments"]["status"])
        text = f"{asked.headers['x-key']} {asked.headers['authorization']}"
        if status == 200:
            await say.error(asked, 200, -32602, text)
        else:
            error = {"code": -32600, "message": text}
            await say.answer(status, {"jsonrpc": "2.0", "id": None, "error": error})

    async def conversation(client: Client, server: Scripted) -> None:
        for status in (200, 400, 401, 403):
            with pytest.raises(ClientError, match=r"\*\*\*\* Bearer \*\*\*\*") as error:
                await client.call_tool("one", {"status": status})
            assert TOKEN not in str(error.value)
            assert "key-of-somebody" not in str(error.value)

    with_script(Stateless(on_call), conversation, token=TOKEN, headers={"X-Key": "key-of-somebody"})


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("version", [None, "2025-11-25"])
def test_no_one_else_is_shown_the_token_by_a_redirect(status: int, version: str | None) -> None:
    async def whole() -> None:
        async with Scripted(Stateless()) as other:

            async def play(asked: Asked, say: Saying) -> None:
                await say.answer(status, location=f"http://127.0.0.1:{other.port}/mcp?a=b")

            async with Scripted(play) as server:
                with pytest.raises(HttpStatusError, match="which is another origin"):
                    await Client(server.url, token=TOKEN, version=version).connect()
            assert other.requests == []

    asyncio.run(asyncio.wait_for(whole(), 30))


def test_a_redirect_within_the_server_is_followed_and_remembered() -> None:
    async def play(asked: Asked, say: Saying) -> None:
        if asked.path == "/mcp":
            await say.answer(307, location="/mcp/")
        else:
            assert asked.headers["authorization"] == f"Bearer {TOKEN}"
            await Stateless()(asked, say)

    server = with_script(play, call_one, token=TOKEN)
    assert [asked.path for asked in server.requests] == ["/mcp", "/mcp/", "/mcp/"]


def test_a_token_function_that_fails_fails_the_request() -> None:
    given = iter([TOKEN, TOKEN])

    async def conversation(client: Client, server: Scripted) -> None:
        await call_one(client, server)
        with pytest.raises(ConnectionLost, match="could not be sent"):
            await client.call_tool("one")

    with_script(Stateless(), conversation, token=lambda: next(given))

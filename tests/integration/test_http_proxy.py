"""A server that serves what another one at a URL offers: all of it passes, whatever the two sides speak."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support import scripted_plays as plays
from support.in_memory import with_client
from support.remote_server import TOKEN, Remote
from support.scripted_plays import SAID, Play, Sessions, Stateless
from support.scripted_server import Asked, Saying, Scripted
from support.upstream import every_feature_passes
from support.waiting import until

from fastrpc import Server
from fastrpc.client.http import session as session_transport
from fastrpc.protocol.versions import (
    CAPABILITIES_KEY,
    LATEST_SESSION_VERSION,
    LOG_KEY,
    STATELESS,
    VERSION_KEY,
    VERSIONS,
)
from fastrpc.testing import Client, RemoteError

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

UPSTREAM = [None, "2025-11-25", "2025-06-18", "2025-03-26", "sse"]
"""The version used with the upstream server: the latest, a version of Streamable HTTP, or HTTP+SSE."""


def proxy_of(remote: Remote, upstream: str | None, **options: Any) -> Server:
    url = remote.url
    if upstream == "sse":
        url, upstream = url.replace("/mcp", "/sse"), None
    return Server.proxy(url, token=TOKEN, protocol_version=upstream, **options)


# --- what passes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", [VERSIONS[0], LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("upstream", UPSTREAM)
def test_every_feature_passes_between_any_two_versions(
    shared_remote: Remote, upstream: str | None, version: str
) -> None:
    knows_structure = upstream != "2025-03-26" and version >= "2025-06-18"

    async def conversation(client: Client) -> None:
        await every_feature_passes(client, version, structured=knows_structure)
        assert client.logs == [{"level": "warning", "data": "careful", "logger": "behind"}]

    with_client(proxy_of(shared_remote, upstream), conversation, version=version, log_level="warning")


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("upstream", [None, "2025-11-25", "2025-06-18"])
def test_questions_go_to_the_client_and_its_answers_back(
    shared_remote: Remote, upstream: str | None, version: str
) -> None:
    async def conversation(client: Client) -> None:
        assert (await client.call("ask")).text == "accept Bob, hello"
        assert (await client.call("folders")).text == "file:///work"

    options: dict[str, Any] = {
        "on_elicit": {"value": "Bob"},
        "on_sample": "hello",
        "roots": ["file:///work"],
    }
    with_client(proxy_of(shared_remote, upstream), conversation, version=version, **options)


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
def test_what_a_call_did_once_is_not_done_again_for_its_questions(own_remote: Remote, version: str) -> None:
    """The upstream server keeps its state in requestState, which must come back to it in each round."""

    async def conversation(client: Client) -> None:
        assert (await client.call("buy")).text == "bill 1 of 1: yes yes"

    with_client(proxy_of(own_remote, None), conversation, version=version, on_elicit={"value": "yes"})


@pytest.mark.parametrize("upstream", [None, "2025-11-25"])
def test_a_client_that_cannot_be_asked_fails_the_call_alone(
    shared_remote: Remote, upstream: str | None
) -> None:
    async def conversation(client: Client) -> None:
        result = await client.call("ask")
        assert result.is_error
        assert "elicitation" in result.text
        assert (await client.call("add", a=1)).text == "3"

    with_client(proxy_of(shared_remote, upstream), conversation)


@pytest.mark.parametrize("upstream", [None, "2025-11-25", "sse"])
def test_cancellation_reaches_the_upstream_call(
    shared_remote: Remote, upstream: str | None, tmp_path: Any
) -> None:
    path, begun = tmp_path / "note", tmp_path / "note.begun"

    async def conversation(client: Client) -> None:
        id, _ = client.begin("tools/call", {"name": "sleep", "arguments": {"path": str(path)}})
        await until(begun.exists)
        assert not path.exists()
        client.cancel(id)
        await until(path.exists)
        assert (await client.call("add", a=1)).text == "3"

    with_client(proxy_of(shared_remote, upstream), conversation)


@pytest.mark.parametrize("upstream", [None, "2025-11-25", "sse"])
def test_changes_of_the_upstream_server_are_reported_and_listed(
    own_remote: Remote, upstream: str | None
) -> None:
    async def conversation(client: Client) -> None:
        def told() -> set[str]:
            return {message["method"] for message in client.notifications}

        await client.call("grow", name="late")
        await until(lambda: "notifications/tools/list_changed" in told())
        names = [entry["name"] for entry in await client.tools()]
        assert "late" in names
        assert "fail" not in names
        assert (await client.call("late")).text == "I am late"

        await client.request("resources/subscribe", {"uri": "docs://guide"})
        while "notifications/resources/updated" not in told():  # the subscription is on its way
            await client.call("touch")
            await asyncio.sleep(0.02)

    with_client(proxy_of(own_remote, upstream), conversation)


def test_arguments_that_a_tool_wants_in_headers_are_sent_there(shared_remote: Remote) -> None:
    """The upstream server refuses a call whose headers differ from its arguments."""

    async def conversation(client: Client) -> None:
        for region in ("eu", " eu", "München", "=?base64?eu?=", "", "a\nb"):
            arguments = {"region": region, "count": -3, "fast": False}
            assert (await client.call("marked", **arguments)).text == repr(sorted(arguments.items()))
        assert (await client.call("marked", count=1)).text == "[('count', 1)]"

    with_client(proxy_of(shared_remote, None), conversation)


def test_a_call_that_lets_its_stream_go_is_fetched_to_its_end(shared_remote: Remote) -> None:
    async def conversation(client: Client) -> None:
        assert (await client.call("part")).text == "whole"
        assert [entry["data"] for entry in client.logs] == ["before", "after"]

    with_client(proxy_of(shared_remote, "2025-11-25"), conversation, log_level="info")


def test_calls_pass_at_the_same_time(shared_remote: Remote, tmp_path: Any) -> None:
    async def conversation(client: Client) -> None:
        await client.tools()
        paths = [tmp_path / str(number) for number in range(30)]
        calls = [
            client.begin("tools/call", {"name": "sleep", "arguments": {"path": str(path)}}) for path in paths
        ]
        await until(lambda: all(path.with_suffix(".begun").exists() for path in paths))
        assert not any(path.exists() for path in paths), "none has ended"
        for id, _ in calls:
            client.cancel(id)
        await until(lambda: all(path.exists() for path in paths))

    with_client(proxy_of(shared_remote, None), conversation)


def test_a_proxy_of_a_url_is_mounted_like_any_server(shared_remote: Remote) -> None:
    app = Server("outer")
    app.add_tool(lambda: "mine", name="mine")
    app.mount(proxy_of(shared_remote, None), "b")

    async def conversation(client: Client) -> None:
        assert [entry["name"] for entry in await client.tools()][:2] == ["mine", "b_add"]
        assert (await client.call("b_add", a=2)).text == "4"
        assert (await client.complete("b_review", "language", "py")).values == ["python"]

    with_client(app, conversation)


def test_each_client_of_a_proxy_is_asked_what_it_can_be_asked(shared_remote: Remote) -> None:
    app = proxy_of(shared_remote, None)

    async def conversation(first: Client) -> None:
        async with Client(app, version=STATELESS, on_elicit={"value": "Eve"}, on_sample="hi") as second:
            with pytest.raises(RemoteError) as error:
                await first.call("ask")
            assert error.value.code == -32021
            assert (await second.call("ask")).text == "accept Eve, hi"

    with_client(app, conversation, version=STATELESS)


CHAIN = """
import sys
from fastrpc import Server
app = Server.proxy(URL, token=sys.argv[2])
app.run(http=f"127.0.0.1:{sys.argv[1]}", token=sys.argv[2], drain_seconds=0.2)
"""


@pytest.mark.parametrize("upstream", [None, "2025-11-25"])
def test_a_proxy_of_a_proxy_served_over_http_passes_all_the_same(
    shared_remote: Remote, upstream: str | None, tmp_path: Any
) -> None:
    path, begun = tmp_path / "note", tmp_path / "note.begun"

    async def conversation(client: Client) -> None:
        assert (await client.call("add", a=1)).text == "3"
        assert (await client.call("ask")).text == "accept Bob, hello"
        params = {"name": "work", "arguments": {}, "_meta": {"progressToken": "mine"}}
        await client.request("tools/call", params)
        assert [report["progress"] for report in client.progress] == [1, 2]
        assert (await client.request("prompts/get", {"name": "höflich"}))["messages"]
        id, _ = client.begin("tools/call", {"name": "sleep", "arguments": {"path": str(path)}})
        await until(begun.exists)
        client.cancel(id)
        await until(path.exists)

    with Remote(CHAIN.replace("URL", repr(shared_remote.url))) as chain:
        options: dict[str, Any] = {"on_elicit": {"value": "Bob"}, "on_sample": "hello"}
        with_client(proxy_of(chain, upstream), conversation, **options)


# --- the server goes away and comes back --------------------------------------------------------------


@pytest.mark.parametrize("upstream", [None, "2025-11-25", "sse"])
def test_calls_fail_while_it_is_away_and_work_once_it_is_back(
    own_remote: Remote, upstream: str | None
) -> None:
    async def conversation(client: Client) -> None:
        assert (await client.call("add", a=1)).text == "3"
        crashed = await client.call("crash")
        assert crashed.is_error
        assert TOKEN not in crashed.text
        own_remote.stop()
        away = await client.call("add", a=1)
        assert away.is_error
        assert "cannot be reached: connection refused" in away.text
        await asyncio.get_running_loop().run_in_executor(None, own_remote.start)
        assert (await client.call("add", a=4)).text == "6"
        await client.call("grow", name="later")
        await until(lambda: any("list_changed" in told["method"] for told in client.notifications))

    with_client(proxy_of(own_remote, upstream), conversation)


def test_one_that_is_not_there_is_reported_and_found_when_it_comes(
    own_remote: Remote, monkeypatch: pytest.MonkeyPatch
) -> None:
    from fastrpc import proxy

    monkeypatch.setattr(proxy, "RETRY_SECONDS", 0.2)
    own_remote.stop()

    async def conversation(client: Client) -> None:
        with pytest.raises(
            RemoteError, match=r"cannot be used: http://127\.0\.0\.1:\d+/mcp cannot be reached"
        ):
            await client.tools()
        await asyncio.get_running_loop().run_in_executor(None, own_remote.start)
        await until(lambda: any("list_changed" in told["method"] for told in client.notifications))
        assert (await client.call("add", a=4)).text == "6"

    with_client(proxy_of(own_remote, None), conversation)


# --- scripted servers ---------------------------------------------------------------------------------


def with_script(
    play: Play,
    conversation: Callable[[Client, Scripted], Awaitable[Any]],
    version: str = LATEST_SESSION_VERSION,
    tls: Any = None,
    **options: Any,
) -> Scripted:
    async def whole() -> Scripted:
        async with Scripted(play, tls) as server:
            app = Server.proxy(server.url, **options)
            async with Client(app, version=version) as client:
                await conversation(client, server)
            return server

    return asyncio.run(asyncio.wait_for(whole(), 30))


async def call_one(client: Client, server: Scripted) -> None:
    assert (await client.call("one")).text == "said"


def test_a_server_of_2025_is_found_out_and_spoken_to_in_its_session() -> None:
    server = with_script(Sessions(), call_one)
    methods = server.methods()
    # The stream of its own is opened beside the rest, on a connection that may take longer.
    assert methods.index("POST notifications/initialized") < methods.index("GET") < methods.index("DELETE")
    assert [each for each in methods if each != "GET"] == [
        "POST server/discover",
        "POST initialize",
        "POST notifications/initialized",
        "POST tools/list",
        "POST tools/call",
        "DELETE",
    ]
    for asked in server.requests[2:]:
        assert asked.headers["mcp-session-id"] == "session-1"
        assert asked.headers["mcp-protocol-version"] == "2025-11-25"
    assert "mcp-session-id" not in server.requests[1].headers


def test_a_session_that_is_gone_is_begun_anew_and_the_call_is_made() -> None:
    play = Sessions()

    async def conversation(client: Client, server: Scripted) -> None:
        await call_one(client, server)
        play.known = "another"
        await call_one(client, server)
        assert play.begun == 2

    with_script(play, conversation)


def test_a_broken_stream_is_resumed_from_its_last_event_after_the_time_that_it_names() -> None:
    play = Sessions()
    times = []

    async def on_call(asked: Asked, say: Saying) -> None:
        play.call = asked  # type: ignore[attr-defined]
        await say.stream()
        await say.event(None, id="7", retry="300")
        times.append(asyncio.get_running_loop().time())
        say.drop()

    async def on_get(asked: Asked, say: Saying) -> None:
        if "last-event-id" not in asked.headers:
            await say.answer(405)
            return
        times.append(asyncio.get_running_loop().time())
        await say.stream()
        if asked.headers["last-event-id"] == "7":
            log = {"level": "info", "data": "on the way"}
            await say.event({"jsonrpc": "2.0", "method": "notifications/message", "params": log}, id="8")
            say.drop()
            return
        assert asked.headers["last-event-id"] == "8"
        await say.event({"jsonrpc": "2.0", "id": play.call.message["id"], "result": SAID})  # type: ignore[attr-defined]

    async def conversation(client: Client, server: Scripted) -> None:
        await call_one(client, server)
        assert [entry["data"] for entry in client.logs] == ["on the way"]
        assert len(times) == 3
        assert times[1] - times[0] >= 0.28
        assert sum(asked.rpc == "tools/call" for asked in server.requests) == 1

    play.on_call, play.on_get = on_call, on_get
    with_script(play, conversation)


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json"])
def test_an_answer_that_breaks_off_fails_its_call_which_is_not_sent_twice(kind: str) -> None:
    play = Sessions()

    async def on_call(asked: Asked, say: Saying) -> None:
        await say.head(200, content_type=kind, content_length="1000")
        await say.send(b": nothing yet\n\n")
        say.drop()

    async def conversation(client: Client, server: Scripted) -> None:
        result = await client.call("one")
        assert result.is_error
        assert f"the connection to {server.url} is lost" in result.text
        assert sum(asked.rpc == "tools/call" for asked in server.requests) == 1

    play.on_call = on_call
    with_script(play, conversation)


def test_only_what_a_lost_session_has_not_seen_is_asked_again() -> None:
    """Of two calls in flight one is being worked on when the server forgets the session: it is not
    repeated."""
    play = Sessions()
    begun = asyncio.Event()
    calls = []

    async def on_call(asked: Asked, say: Saying) -> None:
        name = asked.message["params"]["arguments"]["name"]
        calls.append(name)
        if name == "first":
            await say.stream()
            await say.event(None, id="1", retry="10")
            begun.set()
        else:
            await say.result(asked, SAID)

    async def on_get(asked: Asked, say: Saying) -> None:
        known = asked.headers["mcp-session-id"] == play.known
        await say.answer(405 if known and "last-event-id" not in asked.headers else 404)

    async def conversation(client: Client, server: Scripted) -> None:
        await client.tools()
        first = asyncio.ensure_future(client.call("one", name="first"))
        await begun.wait()
        play.known = "forgotten"
        assert (await client.call("one", name="second")).text == "said"
        result = await first
        assert result.is_error
        assert "the session has expired" in result.text
        assert calls == ["first", "second"]

    play.on_call, play.on_get = on_call, on_get
    with_script(play, conversation)


def test_an_answer_that_never_comes_is_given_up_after_some_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_transport, "PAUSES", (0.01,))
    play = Sessions()

    async def on_call(asked: Asked, say: Saying) -> None:
        await say.stream()
        await say.event(None, id="7")

    async def on_get(asked: Asked, say: Saying) -> None:
        await (say.stream() if "last-event-id" in asked.headers else say.answer(405))

    async def conversation(client: Client, server: Scripted) -> None:
        result = await client.call("one")
        assert result.is_error
        assert "is lost before the response" in result.text
        assert 3 <= sum("last-event-id" in asked.headers for asked in server.requests) <= 10

    play.on_call, play.on_get = on_call, on_get
    with_script(play, conversation)


def test_notifications_outside_of_requests_come_on_the_listening_stream() -> None:
    play = Sessions()
    opened: list[str | None] = []

    async def on_get(asked: Asked, say: Saying) -> None:
        opened.append(asked.headers.get("last-event-id"))
        await say.stream()
        await say.event({"jsonrpc": "2.0", "id": 1, "method": "ping"}, id=f"s{len(opened)}", retry="10")
        await say.event({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        if len(opened) > 1:
            await asyncio.sleep(20)

    async def conversation(client: Client, server: Scripted) -> None:
        await client.tools()
        await until(lambda: len(opened) == 2)
        assert opened == [None, "s1"]
        await until(lambda: server.methods().count("POST tools/list") >= 2)
        answer = {"jsonrpc": "2.0", "id": 1, "result": {}}
        await until(lambda: answer in [asked.message for asked in server.requests if asked.body])

    play.on_get = on_get
    with_script(play, conversation)


def test_a_server_of_2026_gets_its_envelope_and_headers_and_nothing_else() -> None:
    server = with_script(Stateless(), call_one)
    assert server.methods() == ["POST server/discover", "POST tools/list", "POST tools/call"]
    for asked in server.requests:
        assert asked.headers["mcp-protocol-version"] == STATELESS
        assert asked.headers["mcp-method"] == asked.rpc
        assert asked.headers.get("mcp-name") == ("one" if asked.rpc == "tools/call" else None)
        assert "mcp-session-id" not in asked.headers
        meta = asked.message["params"]["_meta"]
        assert meta[VERSION_KEY] == STATELESS
        assert meta[CAPABILITIES_KEY] == {}


@pytest.mark.parametrize(
    ("version", "asked_for", "level"),
    [(STATELESS, None, None), (STATELESS, "error", "error"), (LATEST_SESSION_VERSION, None, "info")],
)
def test_a_server_of_2026_is_asked_for_the_log_messages_that_the_client_gets(
    version: str, asked_for: Any, level: str | None
) -> None:
    """Asked for none it may answer without a stream."""

    async def whole() -> Any:
        async with Scripted(Stateless()) as server:
            async with Client(Server.proxy(server.url), version=version, log_level=asked_for) as client:
                await client.call("one")
            return server.requests[-1].message["params"]["_meta"]

    assert asyncio.run(asyncio.wait_for(whole(), 30)).get(LOG_KEY) == level


def test_one_that_asks_without_end_is_stopped() -> None:
    async def endless(asked: Asked, say: Saying) -> None:
        await say.result(asked, {"resultType": "input_required", "requestState": "again"})

    async def conversation(client: Client, server: Scripted) -> None:
        result = await client.call("one")
        assert result.is_error
        assert "64 rounds" in result.text

    with_script(Stateless(endless), conversation)


def test_a_tool_whose_headers_have_changed_is_listed_anew_and_called_again() -> None:
    marked = {"name": "one", "inputSchema": {"type": "object", "properties": {}}}

    class Changing(Stateless):
        async def __call__(self, asked: Asked, say: Saying) -> None:
            properties = marked["inputSchema"]["properties"]  # type: ignore[index]
            if asked.rpc == "tools/list":
                await say.result(asked, {"tools": [marked], "resultType": "complete"})
            elif asked.rpc == "tools/call" and "mcp-param-place" not in asked.headers:
                properties["place"] = {"type": "string", "x-mcp-header": "Place"}
                await say.error(asked, 400, -32020, "Mcp-Param-Place: the header is missing")
            else:
                await super().__call__(asked, say)

    async def conversation(client: Client, server: Scripted) -> None:
        assert (await client.call("one", place="here")).text == "said"
        assert server.requests[-1].headers["mcp-param-place"] == "here"

    with_script(Changing(), conversation)


def test_one_that_thinks_better_of_its_version_is_taken_by_its_word() -> None:
    refused = []

    async def play(asked: Asked, say: Saying) -> None:
        if not refused:
            refused.append(asked)
            await say.error(asked, 400, -32022, "Unsupported protocol version", {"supported": [STATELESS]})
        else:
            await Stateless()(asked, say)

    with_script(play, call_one)


async def _shapeless(asked: Asked, say: Saying) -> None:
    if asked.rpc != "initialize":
        await say.answer(202 if asked.rpc.startswith("notifications/") else 405)
        return
    await say.result(asked, "ready")


async def _silent(asked: Asked, say: Saying) -> None:
    await asyncio.sleep(20)


@pytest.mark.parametrize(
    ("play", "reason"),
    [
        (plays.only_2030, "supports only unknown protocol versions: 2030-01-01"),
        (plays.html, "sent text/html where application/json or text/event-stream was expected"),
        (plays.broken, "the response body is not JSON"),
        (plays.cut, "is lost"),
        (plays.unavailable, "status 503"),
        (plays.strange, "chose an unknown protocol version: '1999-01-01'"),
        (_shapeless, "initialize: result: expected an object, got 'ready'"),
        (_silent, "did not start within 0.8 s"),
        (plays.nowhere, "status 404"),
        (plays.round_and_round, "too many redirects"),
        (plays.elsewhere, "the server's stream is invalid"),
    ],
)
def test_one_that_speaks_no_mcp_is_reported_in_a_sentence(play: Any, reason: str) -> None:
    async def conversation(client: Client, server: Scripted) -> None:
        with pytest.raises(RemoteError) as failure:
            await client.tools()
        assert reason in failure.value.message
        assert failure.value.code == -32603
        await client.request("ping")

    with_script(play, conversation, start_seconds=0.8 if play is _silent else 20.0)

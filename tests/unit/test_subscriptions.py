"""Who hears of changed lists and resources: sessions that are ready, and streams that asked for it."""

from __future__ import annotations

import asyncio
import json
import os
import runpy
import sys
import threading
from typing import Any

import pytest
from conftest import REPOSITORY
from support.in_memory import connected, with_client
from support.stdio import STATELESS_META, serve

from fastrpc import Server
from fastrpc.engine.dispatcher import Dispatcher
from fastrpc.protocol.versions import SESSION_VERSIONS, STATELESS, SUBSCRIPTION_KEY, VERSIONS
from fastrpc.testing import Client, RemoteError

TOOLS = "notifications/tools/list_changed"
RESOURCES = "notifications/resources/list_changed"
PROMPTS = "notifications/prompts/list_changed"
UPDATED = "notifications/resources/updated"
ACKNOWLEDGED = "notifications/subscriptions/acknowledged"
ALL = {"toolsListChanged": True, "resourcesListChanged": True, "promptsListChanged": True}


async def turn() -> None:
    """Let what the loop has to do be done."""
    for _ in range(3):
        await asyncio.sleep(0)


def methods(client: Client) -> list[str]:
    return [message["method"] for message in client.notifications]


def full() -> Server:
    """A server that has one of everything."""
    app = Server("t", version="1")

    @app.tool(run="inline")
    def echo(text: str) -> str:
        return text

    @app.prompt
    def review(code: str) -> str:
        return code

    app.add_resource("docs://guide", "text")
    return app


def noise() -> str:
    return "noise"


def template(name: str) -> str:
    return name


def change_everything(app: Server) -> None:
    app.add_tool(noise, name="noise")
    app.prompt(noise, name="noise")
    app.add_resource("docs://noise", "noise")
    app.resource("docs://{name}/noise")(template)


# --- sessions -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_a_session_hears_once_of_all_changes_in_one_turn_of_the_loop(version: str) -> None:
    app = full()

    async def conversation(client: Client) -> None:
        change_everything(app)
        for number in range(5):
            app.add_tool(noise, name=f"noise{number}")
        await turn()
        assert sorted(methods(client)) == [PROMPTS, RESOURCES, TOOLS]
        assert all("params" not in message for message in client.notifications)
        client.notifications.clear()
        app.remove_tool("noise")
        await turn()
        app.remove_prompt("noise")
        await turn()
        app.remove_resource("docs://noise")
        await turn()
        assert methods(client) == [TOOLS, PROMPTS, RESOURCES]
        assert "noise" not in [tool["name"] for tool in await client.tools()]

    with_client(app, conversation, version=version)


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_before_initialized_nothing_is_said(version: str) -> None:
    app = full()
    lines: list[bytes] = []

    async def run() -> None:
        transport = connected(app.connect().connection, lines.append)
        app.add_tool(noise, name="a")
        await turn()
        assert lines == []
        transport.send(
            b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"%b"}}'
            % version.encode()
        )
        app.add_tool(noise, name="b")
        await turn()
        assert len(lines) == 1
        transport.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        app.add_tool(noise, name="c")
        await turn()

    asyncio.run(run())
    assert [json.loads(line).get("method") for line in lines] == [None, TOOLS]


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_of_what_was_not_advertised_nothing_is_said(version: str) -> None:
    app = Server("t")

    async def conversation(client: Client) -> None:
        assert "resources" not in client.info["capabilities"]
        change_everything(app)
        await turn()
        assert methods(client) == [TOOLS]

    with_client(app, conversation, version=version)


def test_a_session_without_a_handshake_is_notified_of_nothing_by_itself() -> None:
    app = full()

    async def conversation(client: Client) -> None:
        change_everything(app)
        app.resource_updated("docs://guide")
        await turn()
        assert client.notifications == []

    with_client(app, conversation, version=STATELESS)


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_updates_reach_sessions_that_have_subscribed_to_this_resource(version: str) -> None:
    app = full()
    app.add_resource("docs://other", "text")

    async def run() -> None:
        async with Client(app, version=version) as first, Client(app, version=version) as second:
            await first.subscribe("docs://guide")
            await second.subscribe("docs://other")
            app.resource_updated("docs://guide")
            app.resource_updated("docs://unheard-of")
            await turn()
            expected = {"jsonrpc": "2.0", "method": UPDATED, "params": {"uri": "docs://guide"}}
            assert first.notifications == [expected]
            assert second.notifications == []
            await first.unsubscribe("docs://guide")
            app.resource_updated("docs://guide")
            await turn()
            assert len(first.notifications) == 1

    asyncio.run(run())


def test_a_second_handshake_forgets_the_subscriptions() -> None:
    app = full()

    async def conversation(client: Client) -> None:
        await client.subscribe("docs://guide")
        await client.request("initialize", {"protocolVersion": client.version})
        client.notify("notifications/initialized")
        app.resource_updated("docs://guide")
        await turn()
        assert client.notifications == []

    with_client(app, conversation)


@pytest.mark.parametrize("version", VERSIONS)
def test_changes_from_other_threads_arrive(version: str) -> None:
    app = full()

    async def conversation(client: Client) -> None:
        async with client.listen(tools=True, resources=True, uris=["docs://guide"]) as stream:

            def change() -> None:
                for number in range(20):
                    app.add_tool(noise, name=f"noise{number}")
                    app.resource_updated("docs://guide")
                app.add_resource("docs://late", "late")

            thread = threading.Thread(target=change)
            thread.start()
            seen = set()
            while RESOURCES not in seen:
                seen.add((await stream.next())["method"])
            thread.join()
            await turn()
            assert seen == {TOOLS, UPDATED, RESOURCES}
            told = [change["method"] for change in stream.changes]
            assert told.count(UPDATED) == 20
            assert 1 <= told.count(TOOLS) <= 20
            assert len(await client.tools()) == 21

    with_client(app, conversation, version=version)


@pytest.mark.parametrize("version", [SESSION_VERSIONS[-1], STATELESS])
def test_no_list_and_no_plan_stays_behind_what_another_thread_has_changed(version: str) -> None:
    app = Server("t")
    app.add_tool(noise, name="noise", run="inline")

    def change() -> None:
        for number in range(100):
            app.add_tool(noise, name=f"noise{number}", run="inline")
            if number % 3 == 0:
                app.remove_tool(f"noise{number}")

    async def conversation(client: Client) -> None:
        kept = [f"noise{number}" for number in range(100) if number % 3]
        for _ in range(5):
            thread = threading.Thread(target=change)
            thread.start()
            while thread.is_alive():
                await client.tools()
                assert (await client.call("noise")).text == "noise"
            await asyncio.sleep(0.001)
            assert [tool["name"] for tool in await client.tools()] == ["noise", *kept]
            for number in range(0, 100, 33):
                with pytest.raises(RemoteError, match="Unknown tool"):
                    await client.call(f"noise{number}")
            for name in kept:
                app.remove_tool(name)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with_client(app, conversation, version=version)
    finally:
        sys.setswitchinterval(interval)


def test_a_call_finds_its_tool_when_another_thread_changes_the_tools_at_that_moment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Server("t")
    app.add_tool(noise, name="noise", run="inline")
    take_plans = Dispatcher.take_plans

    def take_plans_and_lose_them(dispatcher: Dispatcher) -> Any:
        plans = take_plans(dispatcher)
        dispatcher.connection.take_plans({})  # what a change in another thread does
        return plans

    monkeypatch.setattr(Dispatcher, "take_plans", take_plans_and_lose_them)

    async def conversation(client: Client) -> None:
        assert (await client.call("noise")).text == "noise"

    with_client(app, conversation)


def test_a_tool_that_changes_the_tools_tells_of_it_and_of_the_last_change_too() -> None:
    app = Server("t")

    @app.tool(run="inline")
    def grow(name: str) -> str:
        app.add_tool(noise, name=name)
        return name

    async def conversation(client: Client) -> None:
        for name in ("a", "b"):
            await client.call("grow", name=name)
            await turn()
        assert methods(client) == [TOOLS, TOOLS]
        assert [tool["name"] for tool in await client.tools()] == ["grow", "a", "b"]

    with_client(app, conversation)


# --- streams ------------------------------------------------------------------------------------------


class Peer:
    """A raw peer that speaks 2026-07-28."""

    def __init__(self, app: Server) -> None:
        self.lines: list[Any] = []
        self.dispatcher = app.connect()
        self.transport = connected(
            self.dispatcher.connection, lambda line: self.lines.append(json.loads(line))
        )

    def send(self, id: Any, method: str, params: dict[str, Any]) -> None:
        message = {
            "jsonrpc": "2.0",
            "id": id,
            "method": method,
            "params": {**params, "_meta": STATELESS_META},
        }
        self.transport.send(json.dumps(message).encode())

    def listen(self, id: Any, wanted: Any) -> None:
        self.send(id, "subscriptions/listen", {"notifications": wanted})

    def cancel(self, id: Any) -> None:
        params = {"requestId": id}
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
        self.transport.send(json.dumps(message).encode())

    def take(self) -> list[Any]:
        lines, self.lines[:] = list(self.lines), []
        return lines


def on_stream(method: str, id: Any, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": method, "params": {**params, "_meta": {SUBSCRIPTION_KEY: id}}}


@pytest.mark.parametrize("id", [1, 0, -5, 2**63, "1", "", "listen-1", 'q"\\漢'])
def test_a_stream_is_acknowledged_first_and_all_it_tells_carries_its_id(id: Any) -> None:
    async def run() -> None:
        app = full()
        peer = Peer(app)
        wanted = {**ALL, "resourceSubscriptions": ["docs://guide", "docs://guide"]}
        peer.listen(id, wanted)
        honoured = {**ALL, "resourceSubscriptions": ["docs://guide"]}
        assert peer.take() == [on_stream(ACKNOWLEDGED, id, notifications=honoured)]
        change_everything(app)
        app.resource_updated("docs://guide")
        await turn()
        told = peer.take()
        assert sorted(message["method"] for message in told) == [PROMPTS, RESOURCES, UPDATED, TOOLS]
        for message in told:
            params = {"uri": "docs://guide"} if message["method"] == UPDATED else {}
            assert message == on_stream(message["method"], id, **params)
            assert type(message["params"]["_meta"][SUBSCRIPTION_KEY]) is type(id)
        peer.dispatcher.changes.end_listening()
        (answer,) = peer.take()
        assert answer["id"] == id
        assert type(answer["id"]) is type(id)
        assert answer["result"] == {
            "resultType": "complete",
            "_meta": {
                SUBSCRIPTION_KEY: id,
                "io.modelcontextprotocol/serverInfo": {"name": "t", "version": "1"},
            },
        }
        assert peer.dispatcher.changes.listening == {}

    asyncio.run(run())


@pytest.mark.parametrize(
    ("wanted", "heard"),
    [
        ({}, []),
        ({"toolsListChanged": True}, [TOOLS]),
        ({"promptsListChanged": True, "toolsListChanged": False}, [PROMPTS]),
        ({"resourcesListChanged": True}, [RESOURCES]),
        ({"resourceSubscriptions": []}, []),
        ({"resourceSubscriptions": ["docs://guide"]}, [UPDATED]),
        ({"resourceSubscriptions": ["docs://none"], "toolsListChanged": True}, [TOOLS]),
        ({"somethingNew": True}, []),
    ],
)
def test_a_stream_hears_what_it_asked_for_and_nothing_else(wanted: Any, heard: list[str]) -> None:
    async def run() -> None:
        app = full()
        peer = Peer(app)
        peer.listen("s", wanted)
        (acknowledged,) = peer.take()
        expected = {name: value for name, value in wanted.items() if value and name != "somethingNew"}
        assert acknowledged["params"]["notifications"] == expected
        change_everything(app)
        app.resource_updated("docs://guide")
        await turn()
        assert [message["method"] for message in peer.take()] == heard

    asyncio.run(run())


def test_only_what_the_server_has_is_honoured() -> None:
    async def run() -> None:
        peer = Peer(Server("t"))
        peer.listen(1, {**ALL, "resourceSubscriptions": ["docs://guide"]})
        (acknowledged,) = peer.take()
        assert acknowledged["params"]["notifications"] == {"toolsListChanged": True}

    asyncio.run(run())


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": None},
        {"notifications": ["toolsListChanged"]},
        {"notifications": {"toolsListChanged": 1}},
        {"notifications": {"promptsListChanged": "true"}},
        {"notifications": {"resourcesListChanged": None}},
        {"notifications": {"resourceSubscriptions": "docs://guide"}},
        {"notifications": {"resourceSubscriptions": [1]}},
    ],
)
def test_a_malformed_filter_is_minus_32602_and_opens_no_stream(params: Any) -> None:
    async def run() -> None:
        app = full()
        peer = Peer(app)
        peer.send(1, "subscriptions/listen", params)
        (answer,) = peer.take()
        assert answer["error"]["code"] == -32602
        assert "notifications" in answer["error"]["message"]
        change_everything(app)
        await turn()
        assert peer.take() == []
        assert peer.dispatcher.changes.listening == {}

    asyncio.run(run())


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_versions_with_a_handshake_know_no_streams(version: str) -> None:
    async def conversation(client: Client) -> None:
        with pytest.raises(RemoteError) as caught:
            await client.request("subscriptions/listen", {"notifications": ALL})
        assert caught.value.code == -32601

    with_client(full(), conversation, version=version)


def test_a_cancelled_stream_is_silent_and_never_answered_and_its_id_is_free() -> None:
    async def run() -> None:
        app = full()
        peer = Peer(app)
        peer.listen(1, {"toolsListChanged": True})
        peer.listen("1", {"toolsListChanged": True})
        assert len(peer.take()) == 2
        app.add_tool(noise, name="a")
        peer.cancel(1)  # before the turn is over
        await turn()
        assert peer.take() == [on_stream(TOOLS, "1")]
        peer.listen(1, {"promptsListChanged": True})
        assert peer.take() == [on_stream(ACKNOWLEDGED, 1, notifications={"promptsListChanged": True})]
        peer.cancel("1")
        peer.cancel(1)
        peer.cancel(1)
        change_everything(app)
        await turn()
        peer.dispatcher.changes.end_listening()
        assert peer.take() == []
        assert peer.dispatcher.changes.listening == {}

    asyncio.run(run())


def test_an_id_that_is_listened_on_is_taken() -> None:
    async def run() -> None:
        app = full()
        peer = Peer(app)
        peer.listen("s", {"toolsListChanged": True})
        peer.take()
        peer.listen("s", {"toolsListChanged": True})
        peer.send("s", "tools/list", {})
        assert [answer["error"]["code"] for answer in peer.take()] == [-32600, -32600]
        app.add_tool(noise, name="a")
        await turn()
        assert peer.take() == [on_stream(TOOLS, "s")]

    asyncio.run(run())


def test_a_call_of_a_fast_tool_under_an_id_that_is_listened_on_is_refused() -> None:
    """Fast calls take the compiled way, and from the second like one on the way of known lines."""

    async def conversation(client: Client) -> None:
        for text in ("one", "two", "three"):
            assert (await client.call("echo", text=text)).text == text
        id, listened = client.begin("subscriptions/listen", {"notifications": ALL})
        await turn()
        params = {"name": "echo", "arguments": {"text": "four"}, "_meta": STATELESS_META}
        again = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        client._session.stream.send(json.dumps(again).encode())
        with pytest.raises(RemoteError, match="in flight"):
            await listened
        assert (await client.call("echo", text="five")).text == "five"

    with_client(full(), conversation, version=STATELESS)


def test_streams_are_bounded_like_calls() -> None:
    async def run() -> None:
        app = full()
        app.max_in_flight = 2
        peer = Peer(app)
        for id in range(3):
            peer.listen(id, {"toolsListChanged": True})
        assert [message.get("error", {}).get("code") for message in peer.take()] == [None, None, -31001]
        peer.cancel(0)
        peer.listen(3, {"toolsListChanged": True})
        assert peer.take()[0]["method"] == ACKNOWLEDGED

    asyncio.run(run())


def test_what_changed_before_a_stream_is_no_news_and_what_changed_before_its_end_is() -> None:
    async def run() -> None:
        app = full()
        peer = Peer(app)
        peer.listen(1, {"toolsListChanged": True})
        app.add_tool(noise, name="a")
        peer.listen(2, {"toolsListChanged": True})
        await turn()
        said = [(message["method"], message["params"]["_meta"][SUBSCRIPTION_KEY]) for message in peer.take()]
        assert said == [(ACKNOWLEDGED, 1), (TOOLS, 1), (ACKNOWLEDGED, 2)]
        app.add_tool(noise, name="b")
        peer.dispatcher.changes.end_listening()
        await turn()
        told = [message.get("id", message.get("method")) for message in peer.take()]
        assert told == [TOOLS, TOOLS, 1, 2]

    asyncio.run(run())


def test_a_stream_in_a_batch_is_refused_and_the_batch_answered() -> None:
    async def run() -> None:
        peer = Peer(full())
        peer.transport.send(
            b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-03-26"}}'
        )
        peer.take()
        params = {"notifications": {}, "_meta": STATELESS_META}
        batch = [
            {"jsonrpc": "2.0", "id": 1, "method": "subscriptions/listen", "params": params},
            {"jsonrpc": "2.0", "id": 2, "method": "ping"},
        ]
        peer.transport.send(json.dumps(batch).encode())
        while not (lines := peer.take()):  # reading a batch may take more than one turn
            await asyncio.sleep(0.002)
        (answers,) = lines
        assert answers[0]["error"]["code"] == -32600
        assert answers[1] == {"jsonrpc": "2.0", "id": 2, "result": {}}

    asyncio.run(run())


def test_a_closed_connection_receives_no_notification() -> None:
    async def run() -> None:
        app = full()
        peer = Peer(app)
        peer.listen(1, ALL)
        peer.take()
        peer.transport.disconnect()
        change_everything(app)
        await turn()
        assert peer.take() == []

    asyncio.run(run())


@pytest.mark.parametrize("version", VERSIONS)
def test_the_example_does_what_it_says(version: str) -> None:
    app = runpy.run_path(os.path.join(REPOSITORY, "examples", "changes.py"))["app"]

    async def conversation(client: Client) -> None:
        uri = "sensor://readings"
        async with client.listen(tools=True, uris=[uri]) as changes:
            await client.call("learn", name="motto", answer="be kind")
            assert (await changes.next())["method"] == TOOLS
            assert (await client.call("motto")).text == "be kind"
            await client.call("forget", name="motto")
            assert (await changes.next())["method"] == TOOLS
            assert "motto" not in [tool["name"] for tool in await client.tools()]
            await client.call("measure", times=2, pause=0.01)
            for _ in range(2):
                assert (await changes.next())["params"]["uri"] == uri
            assert (await client.read(uri)).text == "0\n1"

    with_client(app, conversation, version=version)


# --- a real process -----------------------------------------------------------------------------------

BACKGROUND = '''
"""Adds tools from a thread that the first call of `begin` starts; everything runs inline, without a loop."""
import threading
import time

from fastrpc import Server

app = Server("background")
app.add_resource("docs://guide", "text")


def noise() -> str:
    return "noise"


def work(pause: float) -> None:
    for number in range(3):
        time.sleep(pause)
        app.add_tool(noise, name=f"noise{number}", run="inline")
        app.resource_updated("docs://guide")


@app.tool(run="inline")
def begin(pause: float = 0.05) -> str:
    threading.Thread(target=work, args=(pause,), daemon=True).start()
    return "begun"


@app.tool(run="inline")
def grow(name: str) -> str:
    app.add_tool(noise, name=name, run="inline")
    return name
'''


def told_by_the_thread(server: Any) -> list[Any]:
    """Return what is sent about three changes: of the updates one by one, of the list once or more."""
    told: list[Any] = []
    said: list[str] = []
    while said.count(UPDATED) < 3 or TOOLS not in said:
        told.append(server.answer())
        said.append(told[-1]["method"])
    assert set(said) == {UPDATED, TOOLS}
    assert said.count(TOOLS) <= 3
    return told


@pytest.mark.parametrize("version", SESSION_VERSIONS)
def test_over_pipes_a_session_hears_what_a_background_thread_adds_while_it_is_silent(version: str) -> None:
    with serve(BACKGROUND) as server:
        server.initialize(version)
        server.request("resources/subscribe", {"uri": "docs://guide"})
        server.call("begin")
        told_by_the_thread(server)
        names = [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]
        assert names == ["begin", "grow", "noise0", "noise1", "noise2"]
        assert server.call("noise2")["content"][0]["text"] == "noise"
        server.close_stdin()
        assert server.wait() == 0


def test_over_pipes_a_stream_hears_what_a_background_thread_adds_and_is_ended_with_an_answer() -> None:
    with serve(BACKGROUND) as server:
        wanted = {"toolsListChanged": True, "resourceSubscriptions": ["docs://guide"]}
        server.ask("subscriptions/listen", {"notifications": wanted, "_meta": STATELESS_META}, "s")
        assert server.answer() == on_stream(ACKNOWLEDGED, "s", notifications=wanted)
        server.ask("tools/call", {"name": "begin", "arguments": {}, "_meta": STATELESS_META}, 1)
        assert server.answer()["id"] == 1
        told = told_by_the_thread(server)
        assert all(message["params"]["_meta"] == {SUBSCRIPTION_KEY: "s"} for message in told)
        server.close_stdin()
        while "id" not in (answer := server.answer()):  # the last change of the list may still come
            assert answer["method"] == TOOLS
        assert answer["id"] == "s"
        assert answer["result"]["resultType"] == "complete"
        assert answer["result"]["_meta"][SUBSCRIPTION_KEY] == "s"
        assert server.wait() == 0


@pytest.mark.parametrize("version", [SESSION_VERSIONS[0], SESSION_VERSIONS[-1], STATELESS])
def test_over_pipes_changes_that_come_with_the_last_line_are_reported_before_the_end(version: str) -> None:
    with serve(BACKGROUND) as server:
        params: dict[str, Any] = {"name": "grow", "arguments": {"name": "late"}}
        lines: list[dict[str, Any]] = []
        if version == STATELESS:
            params["_meta"] = STATELESS_META
            listen = {"notifications": {"toolsListChanged": True}, "_meta": STATELESS_META}
            lines.append({"jsonrpc": "2.0", "id": "s", "method": "subscriptions/listen", "params": listen})
        else:
            server.initialize(version)
        lines.append({"jsonrpc": "2.0", "id": 9, "method": "tools/call", "params": params})
        server.send_message(*lines)
        server.close_stdin()
        rest = [json.loads(line) for line in server.rest().splitlines()]
        assert server.wait() == 0
    shown = [message.get("id", message.get("method")) for message in rest]
    assert shown == ([ACKNOWLEDGED, 9, TOOLS, "s"] if version == STATELESS else [9, TOOLS])


def test_over_pipes_a_signal_ends_a_stream_with_an_answer() -> None:
    with serve(BACKGROUND) as server:
        listen = {"notifications": {"toolsListChanged": True}, "_meta": STATELESS_META}
        server.ask("subscriptions/listen", listen, "s")
        assert server.answer()["method"] == ACKNOWLEDGED
        params = {"name": "grow", "arguments": {"name": "more"}, "_meta": STATELESS_META}
        grown = server.ask("tools/call", params)  # the loop sends of it: until it runs the process just ends
        assert {message.get("id", message.get("method")) for message in server.answers(2)} == {grown, TOOLS}
        server.signal(15)
        assert server.answer()["id"] == "s"
        server.wait()

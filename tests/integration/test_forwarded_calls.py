"""Calls that a proxy forwards as bytes: what goes on as it is, what is parsed, and that no one sees which."""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import pytest
from support.in_memory import with_client
from support.waiting import until

from fastrpc import CallInfo, CallRecord, Context, Server
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS, VERSIONS
from fastrpc.proxy import UpstreamServer
from fastrpc.testing import Client, RemoteError

# Answers a tools/call with the line that it has received; with the line that its argument `raw` is, an id put
# in. Before that it sends the messages in `first`. With `never` it answers nothing, with `end` it ends.
SCRIPTED = r"""
import json, sys
TOOL = {"name": "act", "inputSchema": {"type": "object"}}
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        version = message["params"]["protocolVersion"]
        result = {"protocolVersion": version, "capabilities": {"tools": {}, "logging": {}},
                  "serverInfo": {"name": "scripted", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [TOOL]}
    elif method == "tools/call":
        arguments = message["params"]["arguments"]
        for first in arguments.get("first", ()):
            print(json.dumps(first), flush=True)
        if "raw" in arguments:
            print(arguments["raw"] % id, flush=True)
            continue
        if "end" in arguments:
            sys.exit(3)
        if "never" in arguments:
            continue
        result = {"content": [{"type": "text", "text": line.strip()}]}
    elif method == "notifications/cancelled":
        with open(sys.argv[1], "a") as note:
            note.write(line)
        continue
    elif id is None or method is None:
        if method is None:
            with open(sys.argv[1], "a") as note:
                note.write(line)
        continue
    else:
        result = {}
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}, separators=(",", ":")), flush=True)
"""


@pytest.fixture
def note(tmp_path: Any) -> Any:
    return tmp_path / "note"


@pytest.fixture
def proxy(tmp_path: Any, note: Any) -> Server:
    path = tmp_path / "scripted.py"
    path.write_text(SCRIPTED)
    return Server.proxy([sys.executable, str(path), str(note)])


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The methods of requests that were not forwarded, but for the first call: the dispatcher looks up its
    plan."""
    seen: list[str] = []
    request = UpstreamServer.request
    connected: set[int] = set()

    async def noted(self: Any, method: str, params: dict[str, Any], context: Any) -> dict[str, Any]:
        session = id(context._channel.request.dispatcher)
        if session in connected:
            seen.append(method)
        connected.add(session)
        return await request(self, method, params, context)

    monkeypatch.setattr(UpstreamServer, "request", noted)
    return seen


def answer_of(result: dict[str, Any]) -> str:
    """The line that answers with a result, with a place for the id."""
    text = json.dumps(result, separators=(",", ":")).replace("%", "%%")
    return '{"jsonrpc":"2.0","id":%d,"result":' + text + "}"


TEXT = {"type": "text", "text": 'é"\\\n\u2028😀 100 %'}
IMAGE = {"type": "image", "data": "AAAA", "mimeType": "image/png"}
LINK = {"type": "resource_link", "uri": "file:///x", "name": "x"}
RESULTS: dict[str, dict[str, Any]] = {
    "a text": {"content": [TEXT]},
    "a text that tells of a failure": {"content": [TEXT], "isError": True},
    "a text and that it is no failure": {"content": [TEXT], "isError": False},
    "an empty text": {"content": [{"type": "text", "text": ""}]},
    "nothing": {"content": []},
    "two blocks": {"content": [TEXT, IMAGE]},
    "a structure": {"content": [TEXT], "structuredContent": {"a": [1, 2.5, None]}, "isError": False},
    "metadata": {"content": [TEXT], "_meta": {"example.com/x": {"y": 1}}},
    "annotations": {"content": [{**TEXT, "annotations": {"priority": 1}}]},
    "a link": {"content": [LINK]},
}


@pytest.mark.parametrize("version", VERSIONS)
def test_a_forwarded_result_is_the_one_that_is_parsed_and_encoded(
    proxy: Server, version: str, parsed: list[str]
) -> None:
    seen: dict[bool, list[dict[str, Any]]] = {True: [], False: []}

    async def conversation(client: Client, forwarded: bool) -> None:
        for result in RESULTS.values():
            for _ in range(3):  # the first one is learned from
                found = await client.call("act", raw=answer_of(result))
                seen[forwarded].append({"isError": False, **found.raw})
        assert bool(parsed) is not forwarded

    with_client(proxy, lambda client: conversation(client, True), version=version)
    proxy.guard(lambda call: None)  # such calls are not forwarded: the guard is to see the arguments
    with_client(proxy, lambda client: conversation(client, False), version=version)
    assert seen[True] == seen[False]
    assert len(seen[True]) == 3 * len(RESULTS)


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
def test_arguments_arrive_as_they_were_sent(proxy: Server, version: str, parsed: list[str]) -> None:
    async def conversation(client: Client) -> None:
        for text in (
            "{}",
            "{ }",
            '{"a":1}',
            '{ "a" : "b\\u00e9\\n" , "c":true }',
            '{"n":{"deep":[1,{"x":-0.0}]},"big":12345678901234567890}',
            '{"é":"é"}',
        ):
            id, future = client.begin("tools/call", {"name": "act", "arguments": json.loads(text)})
            del id
            line = json.loads((await future)["content"][0]["text"])
            assert line["params"]["arguments"] == json.loads(text)
            assert line["params"]["name"] == "act"
            assert "_meta" not in line["params"]
        assert (await client.request("tools/call", {"name": "act"}))["content"][0]["text"].count("{}") == 1

    with_client(proxy, conversation, version=version)
    assert not parsed


def test_integers_of_any_length_arrive_exactly(proxy: Server) -> None:
    async def conversation(client: Client) -> None:
        found = await client.call("act", n=10**40, m=[2**70])
        assert f'"n":{10**40}' in found.text.replace(" ", "")
        assert str(2**70) in found.text

    with_client(proxy, conversation)


def test_an_error_response_passes_with_code_message_and_data(proxy: Server, parsed: list[str]) -> None:
    async def conversation(client: Client) -> None:
        error = {"code": -32050, "message": "full", "data": {"seconds": 3}}
        raw = '{"jsonrpc":"2.0","id":%d,"error":' + json.dumps(error) + "}"
        with pytest.raises(RemoteError) as caught:
            await client.call("act", raw=raw)
        assert (caught.value.code, caught.value.message, caught.value.data) == tuple(error.values())

    with_client(proxy, conversation)
    assert not parsed


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ('"text"', "result: expected an object"),
        ('{"content":[{"type":"smell"}]}', "content of an unknown type"),
        ('{"content":[5]}', "content: expected blocks with a type, got 5"),
    ],
)
def test_a_result_that_is_none_fails_its_call_alone(proxy: Server, result: str, said: str) -> None:
    async def conversation(client: Client) -> None:
        found = await client.call("act", raw='{"jsonrpc":"2.0","id":%d,"result":' + result + "}")
        assert found.is_error
        assert said in found.text
        assert not (await client.call("act", x=1)).is_error

    with_client(proxy, conversation)


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
def test_a_request_of_the_server_goes_to_the_client_of_the_forwarded_call(
    proxy: Server, version: str, parsed: list[str], note: Any
) -> None:
    question = {
        "jsonrpc": "2.0",
        "id": "q1",
        "method": "elicitation/create",
        "params": {"message": "name?", "requestedSchema": {"type": "object", "properties": {}}},
    }
    asked = []

    def on_elicit(params: dict[str, Any]) -> dict[str, Any]:
        asked.append(params["message"])
        return {}

    async def conversation(client: Client) -> None:
        await client.call("act")
        found = await client.call("act", first=[question])
        assert not found.is_error
        assert json.loads(found.text)["params"]["arguments"] == {"first": [question]}
        await until(lambda: note.exists() and note.read_text().endswith("\n"))
        await client.call("act")

    with_client(proxy, conversation, version=version, on_elicit=on_elicit)
    assert asked == ["name?"]
    assert json.loads(note.read_text().splitlines()[-1])["result"] == {"action": "accept", "content": {}}
    # Sent once; a client of 2026-07-28 sends its call again, with the answer, which is then parsed.
    assert parsed == ([] if version == LATEST_SESSION_VERSION else ["tools/call"])


def test_what_the_server_logs_in_a_forwarded_call_comes_before_its_result(proxy: Server) -> None:
    log = {"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "error", "data": "hot"}}

    async def conversation(client: Client) -> None:
        await client.call("act")
        assert not (await client.call("act", first=[log, log])).is_error
        assert [each["data"] for each in client.logs] == ["hot", "hot"]

    with_client(proxy, conversation)


def test_cancelling_a_forwarded_call_cancels_it_upstream(proxy: Server, note: Any) -> None:
    async def conversation(client: Client) -> None:
        await client.call("act")
        id, _ = client.begin("tools/call", {"name": "act", "arguments": {"never": 1}})
        await client.call("act")
        client.notify("notifications/cancelled", {"requestId": id})
        sent = json.loads((await client.call("act")).text)["id"]
        assert json.loads(note.read_text())["params"]["requestId"] == sent - 2
        assert not proxy.runtime.calls.count

    with_client(proxy, conversation)


def test_forwarded_calls_fail_when_the_server_ends_and_the_next_one_starts_it_again(proxy: Server) -> None:
    async def conversation(client: Client) -> None:
        calls = [client.call("act", never=1), client.call("act", end=1)]
        for found in await asyncio.gather(*calls):
            assert found.is_error
            assert "is lost" in found.text
        assert not (await client.call("act")).is_error
        assert not proxy.runtime.calls.count

    with_client(proxy, conversation)


def test_an_observer_sees_forwarded_calls(proxy: Server, parsed: list[str]) -> None:
    records: list[CallRecord] = []
    proxy.observe(records.extend)

    async def conversation(client: Client) -> None:
        await client.call("act")
        await client.call("act", raw=answer_of(RESULTS["a text"]))
        await client.call("act", raw=answer_of(RESULTS["a text"]))
        await client.call("act", raw=answer_of(RESULTS["a text that tells of a failure"]))
        await client.call("act", raw=answer_of(RESULTS["two blocks"]))
        proxy.drain_observers()

    with_client(proxy, conversation)
    assert [each.name for each in records] == ["act"] * 5
    assert [each.outcome for each in records] == ["ok", "ok", "ok", "tool_error", "ok"]
    assert not parsed


def test_more_calls_than_may_be_in_flight_are_refused(proxy: Server) -> None:
    proxy.max_in_flight = 2
    proxy.runtime.calls.limit = 2

    async def conversation(client: Client) -> None:
        await client.call("act")
        held = [client.begin("tools/call", {"name": "act", "arguments": {"never": 1}}) for _ in range(2)]
        with pytest.raises(RemoteError, match="in flight"):
            await client.call("act")
        client.notify("notifications/cancelled", {"requestId": held[0][0]})
        assert not (await client.call("act")).is_error

    with_client(proxy, conversation)


def test_calls_with_a_hook_are_not_forwarded(proxy: Server, parsed: list[str]) -> None:
    seen = []

    @proxy.before
    def look(call: CallInfo) -> None:
        seen.append(call.arguments)

    async def conversation(client: Client) -> None:
        await client.call("act", a=1)
        await client.call("act", a=2)

    with_client(proxy, conversation)
    assert parsed == ["tools/call"]
    assert seen == [{"a": 1}, {"a": 2}]


def test_many_calls_of_two_clients_come_back_to_their_own(proxy: Server, parsed: list[str]) -> None:
    async def conversation(client: Client) -> None:
        async with Client(proxy) as other:
            both = (client, other)
            calls = [each.call("act", number=number) for number in range(200) for each in both]
            results = await asyncio.gather(*calls)
        numbers = [json.loads(found.text)["params"]["arguments"]["number"] for found in results]
        assert numbers == [number // 2 for number in range(400)]

    with_client(proxy, conversation)
    assert not parsed


def test_a_mounted_proxys_calls_are_forwarded_by_their_own_names(proxy: Server, parsed: list[str]) -> None:
    host = Server("host")
    host.mount(proxy, prefix="far")

    @host.tool
    async def near(ctx: Context) -> str:
        return "here"

    async def conversation(client: Client) -> None:
        assert json.loads((await client.call("far_act", a=1)).text)["params"]["name"] == "act"
        assert (await client.call("near")).text == "here"

    with_client(host, conversation)
    assert not parsed


def test_calls_of_a_tool_that_their_caller_may_not_see_any_more_are_not_forwarded(
    proxy: Server, parsed: list[str]
) -> None:
    team = "staff"
    proxy.filter_lists(lambda team, item: team == "staff", lambda principal: team, enforced=True)

    async def conversation(client: Client) -> None:
        nonlocal team
        for _ in range(2):
            team = "staff"
            for _ in range(3):
                assert not (await client.call("act")).is_error
            team = "guest"
            for _ in range(3):
                with pytest.raises(RemoteError, match="Unknown tool: act"):
                    await client.call("act")

    with_client(proxy, conversation)
    assert parsed == ["tools/call"], "the first call behind a change asks the dispatcher"

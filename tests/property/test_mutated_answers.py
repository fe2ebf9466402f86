"""Valid answers of every method with one member replaced or taken away: a client raises errors of the tree
alone, and leaves out what it cannot use of a list.
"""

from __future__ import annotations

import asyncio
import json
from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc import Client
from fastrpc.client.transport import ConnectionTransport
from fastrpc.errors import FastrpcError, InvalidAnswer
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

SECONDS = 60.0

DISCOVERED = {
    "supportedVersions": [STATELESS],
    "capabilities": {"tools": {}},
    "instructions": "a",
    "_meta": {},
}
INITIALIZED = {
    "protocolVersion": LATEST_SESSION_VERSION,
    "capabilities": {"tools": {"listChanged": True}, "resources": {"subscribe": True}, "logging": {}},
    "serverInfo": {"name": "s", "version": "1"},
}
ANSWERS: dict[str, dict[str, Any]] = {
    "server/discover": DISCOVERED,
    "initialize": INITIALIZED,
    "ping": {},
    "logging/setLevel": {},
    "tools/list": {
        "tools": [
            {"name": "a", "inputSchema": {"type": "object"}, "outputSchema": {"type": "object"}},
            {"name": "b", "inputSchema": {"type": "object"}},
        ]
    },
    "tools/call": {
        "content": [{"type": "text", "text": "a"}, {"type": "image", "data": "AAAA", "mimeType": "a/b"}],
        "structuredContent": {"a": 1},
        "isError": False,
        "resultType": "complete",
        "_meta": {"a/b": 1},
    },
    "resources/list": {"resources": [{"uri": "a://b", "name": "b"}, {"uri": "a://c", "name": "c"}]},
    "resources/templates/list": {"resourceTemplates": [{"uriTemplate": "a://{b}", "name": "b"}]},
    "resources/read": {"contents": [{"uri": "a://b", "text": "a"}, {"uri": "a://b", "blob": "AAAA"}]},
    "prompts/list": {"prompts": [{"name": "a", "arguments": [{"name": "b"}]}]},
    "prompts/get": {
        "description": "a",
        "messages": [{"role": "user", "content": {"type": "text", "text": "a"}}],
        "_meta": {},
    },
    "completion/complete": {"completion": {"values": ["a"], "total": 1, "hasMore": False}},
}
INPUT = {
    "resultType": "input_required",
    "inputRequests": {
        "a": {
            "method": "elicitation/create",
            "params": {"message": "a", "requestedSchema": {"type": "object", "properties": {}}},
        }
    },
    "requestState": "a",
}
STRANGE = (None, 7, -1.5, True, "", "strange", [], [None], [7], [{}], {}, {"a": 7}, [[["a"]]])


def places_in(value: Any, place: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The places of what can be replaced."""
    found = [place] if place else []
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, each in inner:
        found += places_in(each, (*place, key))
    return found


def mutated(value: Any, place: tuple[Any, ...], how: Any) -> Any:
    """A copy with what is at a place replaced, or, if `how` is Ellipsis, taken away."""
    changed = deepcopy(value)
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    if how is ...:
        del inner[place[-1]]
    else:
        inner[place[-1]] = how
    return changed


class Scripted(ConnectionTransport):
    """Answers each request with what `answers` has for its method, or with what is in `errors`."""

    shown = "scripted"

    def __init__(self, answers: dict[str, Any], errors: dict[str, Any] | None = None) -> None:
        self.answers = answers
        self.errors = errors or {}

    async def open(self, stream: Any, on_lost: Any) -> None:
        self.stream = stream
        stream.carry = self._carry

    def _carry(self, request: Any, params: Any) -> None:
        for line in self.stream.take().splitlines():
            message = json.loads(line)
            if "id" not in message or "method" not in message:
                continue
            method = message["method"]
            answer = {"jsonrpc": "2.0", "id": message["id"]}
            result = self.answers.get(method)
            if method in self.errors:
                answer["error"] = self.errors[method]
            elif method == "tools/call" and "inputResponses" in message["params"]:
                answer["result"] = ANSWERS[method]
            else:
                answer["result"] = result
            self.stream.receive_message(json.dumps(answer).encode())

    async def close(self) -> None:
        self.stream.carry = None


def client_of(answers: dict[str, Any], errors: dict[str, Any] | None = None, **options: Any) -> Client:
    client = Client(["never", "started"], start_seconds=5, timeout_seconds=5, **options)
    client._make_transport = lambda: Scripted(answers, errors)
    return client


async def use(client: Client) -> None:
    """Do everything that a client does, and look at everything that it returns."""

    async def attempt(awaitable: Any, *looks: Any) -> None:
        try:
            found = await awaitable
            for look in looks:
                look(found)
        except FastrpcError:
            pass

    await attempt(client.list_tools(), lambda tools: [tool.input_schema for tool in tools])
    await attempt(client.list_resources(), lambda found: [each.uri for each in found])
    await attempt(client.list_resource_templates())
    await attempt(client.list_prompts())
    for name in ("a", "b"):
        await attempt(client.call_tool(name), lambda result: [result.text, result.is_error, result.meta])
        await attempt(client.call_tool(name, as_type=dict))
        await attempt(client.call_tool(name, meta={"a/b": 1}), lambda result: result.structured)
    await attempt(client.read_resource("a://b"), lambda result: result.text, lambda result: result.data)
    await attempt(client.get_prompt("a"), lambda result: result.text, lambda result: result.meta)
    await attempt(client.complete("a", "b"), lambda result: [result.values, result.total, result.has_more])
    await attempt(client.ping())
    assert isinstance(client.server_info, dict)
    assert isinstance(client.server_capabilities, dict)
    assert isinstance(client.instructions, str | None)


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS, None])
@pytest.mark.parametrize("method", ANSWERS)
@given(st.data())
@settings(deadline=None, max_examples=40)
def test_a_client_raises_errors_of_the_tree_alone(method: str, version: str | None, data: Any) -> None:
    answers = deepcopy(ANSWERS)
    how = data.draw(st.sampled_from([..., *STRANGE]))
    places = places_in(answers[method])
    if places and data.draw(st.integers(0, 9)):
        answers[method] = mutated(answers[method], data.draw(st.sampled_from(places)), how)
    else:
        answers[method] = None if how is ... else how

    async def run() -> None:
        try:
            async with client_of(answers, version=version, on_elicit={}) as client:
                await use(client)
        except FastrpcError:
            pass

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@given(st.sampled_from(places_in(INPUT)), st.sampled_from([..., *STRANGE]))
@settings(deadline=None)
def test_a_request_for_input_that_is_none_is_an_error_of_the_tree(place: tuple[Any, ...], how: Any) -> None:
    answers = {**ANSWERS, "tools/call": mutated(INPUT, place, how)}

    async def run() -> None:
        async with client_of(answers, version=STATELESS, on_elicit={}) as client:
            await use(client)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@pytest.mark.parametrize(
    ("method", "result", "said"),
    [
        ("tools/call", {"content": None}, "content: expected an array"),
        ("tools/call", {**INPUT, "inputRequests": {"a": 7}}, "inputRequests: a: expected a request"),
        (
            "tools/call",
            {"resultType": "strange", "content": []},
            "resultType: expected complete or input_req",
        ),
        ("tools/call", {"resultType": 7, "content": []}, "resultType: expected complete or input_required"),
    ],
)
def test_a_member_of_a_wrong_type_is_named(method: str, result: Any, said: str) -> None:
    async def run() -> None:
        async with client_of({**ANSWERS, method: result}, version=STATELESS, on_elicit={}) as client:
            with pytest.raises(InvalidAnswer, match=said):
                await client.call_tool("b")

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_entries_that_cannot_be_used_are_left_out_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    answers = deepcopy(ANSWERS)
    answers["tools/list"]["tools"] += [7, {"name": 7}, {"name": "c"}, {"name": "d", "inputSchema": 7}]
    answers["resources/list"]["resources"] += [{"name": "b"}, None]
    answers["prompts/list"]["prompts"] += [{}]

    async def run() -> None:
        async with client_of(answers) as client:
            for _ in range(2):
                assert [tool.name for tool in await client.list_tools()] == ["a", "b"]
                assert [each.uri for each in await client.list_resources()] == ["a://b", "a://c"]
                assert [each.name for each in await client.list_prompts()] == ["a"]

    asyncio.run(asyncio.wait_for(run(), SECONDS))
    assert sum("left out" in record.getMessage() for record in caplog.records) == 7

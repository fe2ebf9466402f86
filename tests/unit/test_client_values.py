"""What JSON cannot hold: the client refuses it by its place before anything is sent, and answers a server's
request all the same where a handler returns it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
from support.in_memory import every_version, with_client

from fastrpc import Context, Server
from fastrpc.errors import ArgumentError, RemoteError
from fastrpc.testing import Client

HALF = "a\ud800"
CIRCLE: list[Any] = []
CIRCLE.append(CIRCLE)

VALUES = [
    ([1, {"k": math.nan}], r"arguments\.a\[1\]\.k: expected a finite number, got nan"),
    (-math.inf, r"arguments\.a: expected a finite number, got -inf"),
    ([HALF], r"arguments\.a\[0\]: expected a text, got one with half a surrogate pair: 'a\\ud800'"),
    ({HALF: 1}, r"arguments\.a: expected a text, got one with half a surrogate pair: 'a\\ud800'"),
    (({"b": object()},), r"arguments\.a\[0\]\.b: expected a value with JSON, got object"),
    (CIRCLE, "^expected values with JSON: Circular reference detected"),
]


def server() -> Server:
    app = Server("t")

    @app.tool
    def echo(a: Any) -> str:
        return repr(a)

    @app.tool
    async def asks(ctx: Context) -> str:
        answer = await ctx.elicit("How much?", {"type": "object", "properties": {"x": {"type": "number"}}})
        return answer.action

    return app


@pytest.mark.parametrize(("value", "words"), VALUES, ids=["nan", "inf", "text", "name", "object", "circle"])
@every_version
def test_a_call_with_what_json_cannot_hold_is_refused_and_the_next_is_sent(
    value: Any, words: str, version: str
) -> None:
    async def conversation(client: Client) -> Any:
        calls: list[Callable[[], Any]] = [
            lambda: client.call_tool("echo", {"a": value}),
            lambda: client.request("tools/call", {"name": "echo", "arguments": {"a": value}}),
        ]
        for call in calls:
            with pytest.raises(ArgumentError, match=words):
                await call()
        return await client.call_tool("echo", {"a": 1})

    assert with_client(server(), conversation, version).text == "1"


def test_names_addresses_and_notifications_are_refused_alike() -> None:
    async def conversation(client: Client) -> None:
        with pytest.raises(ArgumentError, match=r"^name: expected a text"):
            await client.call_tool(HALF, {})
        with pytest.raises(ArgumentError, match=r"^uri: expected a text"):
            await client.read_resource(HALF)
        with pytest.raises(ArgumentError, match=r"^x\[0\]: expected a finite number, got nan"):
            client._session.notify("notifications/other", {"x": [math.nan]})

    with_client(server(), conversation)


@pytest.mark.parametrize("content", [{"x": math.nan}, {"x": HALF}], ids=["nan", "text"])
def test_a_handler_that_returns_it_fails_the_call_and_the_server_is_answered(content: dict[str, Any]) -> None:
    async def conversation(client: Client) -> Any:
        with pytest.raises(ArgumentError, match=r"^result\.content\.x: expected a "):
            await client.call_tool("asks", {})
        return await client.call_tool("echo", {"a": 1})

    assert with_client(server(), conversation, on_elicit=lambda question: content).text == "1"


def test_an_error_of_a_handler_that_json_cannot_hold_is_answered_in_other_words() -> None:
    def fails(question: Any) -> Any:
        raise RemoteError({"code": -32000, "message": HALF})

    async def conversation(client: Client) -> Any:
        return await client.call_tool("asks", {})

    result = with_client(server(), conversation, on_elicit=fails)
    assert result.is_error
    assert "an error that cannot be written as JSON" in result.text

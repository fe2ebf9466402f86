"""Forwarded calls: any arguments arrive, and any result comes back, as if both had been parsed."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fastrpc import Server
from fastrpc._core.client_request import PendingRequest
from fastrpc._core.client_stream import ClientStream
from fastrpc._core.forwarding import UpstreamRoute
from fastrpc.errors import ClientError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION
from fastrpc.proxy.entries import PassedTool, tool_result_of
from fastrpc.proxy.hop import with_carried_meta
from fastrpc.proxy.upstream import translated
from fastrpc.transports.base import Connections
from fastrpc.transports.memory import MemoryTransport

INTEGERS = st.integers(-(2**63), 2**64 - 1)  # larger ones are parsed: test_forwarded_calls.py
CLIENT = {"name": "t", "version": "1"}
JSON = st.recursive(
    st.none() | st.booleans() | INTEGERS | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
ARGUMENTS = st.dictionaries(st.text(max_size=4), JSON, max_size=4)
BLOCK = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, st.text()),
    st.just({"type": "image", "data": "AAAA", "mimeType": "image/png"}),
    st.builds(lambda other: {"type": "text", "text": "x", "_meta": other}, ARGUMENTS),
    st.just({"type": "text"}),
    st.just({"type": "resource_link", "uri": "file:///x", "name": "x"}),
    st.builds(lambda text: {"type": text}, st.text(max_size=3)),
)
RESULT = st.fixed_dictionaries(
    {"content": st.lists(BLOCK, max_size=3)},
    optional={"isError": st.booleans(), "structuredContent": ARGUMENTS, "_meta": st.just({"a.b/c": 1})},
)
ANSWER = st.one_of(
    RESULT.map(lambda result: {"result": result}),
    JSON.map(lambda result: {"result": result}),
    JSON.map(lambda error: {"error": error}),
    st.text(max_size=20).map(lambda message: {"error": {"code": -32000, "message": message}}),
)
STYLE = st.sampled_from([{"separators": (",", ":")}, {}, {"indent": "\t"}, {"ensure_ascii": False}])


def line_of(message: dict[str, Any], style: dict[str, Any]) -> bytes:
    """A message in one line, whatever white space it has."""
    return json.dumps(message, **style).replace("\n", "\r").encode()


class Upstream:
    """Answers each call with the next of these answers, and keeps its params."""

    def __init__(self, answers: list[tuple[dict[str, Any], dict[str, Any]]]) -> None:
        self.stream = ClientStream()
        self.stream.attach(asyncio.get_running_loop())
        self.stream.carry = self.receive
        self.route = UpstreamRoute(tool_result_of, translated, with_carried_meta)
        self.route.stream, self.route.version = self.stream, LATEST_SESSION_VERSION
        self.answers = iter(answers)
        self.received: list[dict[str, Any]] = []
        self.parsed = 0

    def receive(self, request: PendingRequest | None, params: dict[str, Any] | None) -> None:
        for line in self.stream.take().split(b"\n")[:-1]:
            message = json.loads(line)
            self.received.append(message["params"])
            answer, style = next(self.answers)
            text = line_of({"jsonrpc": "2.0", "id": message["id"], **answer}, style)
            asyncio.get_running_loop().call_soon(self.stream.receive_message, text)

    async def request(self, method: str, params: dict[str, Any], context: Any) -> dict[str, Any]:
        self.parsed += 1
        future: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self.stream.request(method, params, future)
        try:
            return await future
        except ClientError as error:
            raise translated(error) from None

    async def result_of(self, request: Any, context: Any) -> dict[str, Any]:
        raise AssertionError("the server asks nothing")

    read: Any = result_of


Calls = list[tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]
FIRST: Calls = [({}, {"result": {"content": []}}, {})]
"""The first call of a connection is never forwarded: the dispatcher looks up its plan."""


async def conversation(calls: Calls, forwarded: bool) -> tuple[list[dict[str, Any]], list[Any]]:
    """Make calls one after another; return what arrived upstream, and the answers."""
    upstream = Upstream([(answer, style) for _, answer, style in calls])
    app = Server("proxy")
    tool = PassedTool(upstream, {"name": "act", "inputSchema": {"type": "object"}})
    if not forwarded:
        tool.forwarder = None
    app.registries.tools.replace([], [tool])
    lines: asyncio.Queue[bytes] = asyncio.Queue()
    transport = MemoryTransport(lines.put_nowait)
    await transport.start(Connections(lambda: app.connect().connection))
    params: dict[str, Any] = {
        "protocolVersion": LATEST_SESSION_VERSION,
        "capabilities": {},
        "clientInfo": CLIENT,
    }
    transport.send(line_of({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}, {}))
    await lines.get()
    transport.send(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    found = []
    for number, (arguments, _, style) in enumerate(calls):
        params = {"name": "act", "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": f"\u00e9{number}", "method": "tools/call", "params": params}
        transport.send(line_of(message, style))
        answer = json.loads(await asyncio.wait_for(lines.get(), 30))
        if "result" in answer:
            answer["result"].setdefault("isError", False)
        found.append(answer)
    transport.disconnect()
    assert upstream.parsed == (1 if forwarded else len(calls))
    assert lines.empty()
    return upstream.received, found


@given(st.lists(st.tuples(ARGUMENTS, ANSWER, STYLE), min_size=1, max_size=6))
def test_what_is_forwarded_is_what_parsing_would_give(calls: Calls) -> None:
    forwarded = asyncio.run(conversation(FIRST + calls, True))
    parsed = asyncio.run(conversation(FIRST + calls, False))
    assert forwarded == parsed
    assert forwarded[0] == [{"name": "act", "arguments": arguments} for arguments, _, _ in FIRST + calls]

"""Connection: a line in, an answer out, with nothing around it. The difference of two rows is the price
of what tells them apart: binding of an argument, judging, a result that is no `str`, the dispatcher.

Every row includes what the first one of "call" measures alone, and the copies of line and answer.
"""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from calls import BRIEFLY, COUNT, UNLIKELY, call_line, echo_lines, one_by_one, texts

from fastrpc import Server
from fastrpc.protocol.versions import STATELESS

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "x", "version": "1"},
}
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
}
TEXTS = texts(1, 40)
RECORD = {
    "name": "a record",
    "tags": ["one", "two"],
    "parts": [{"number": n, "share": n / 7} for n in range(50)],
}


def connection() -> Callable[[bytes], bytes]:
    """Return what answers a line: a server after its handshake."""
    app = Server("micro")
    inline = app.tool(run="inline")

    @inline
    def echo(text: str) -> str:
        return text

    @inline
    def no_argument() -> str:
        return "done"

    @inline
    def one_integer(a: int) -> str:
        return "done"

    @inline
    def four(a: int, b: float, c: str, d: bool = False) -> str:
        return "done"

    @inline
    def checked(mode: str | int) -> str:
        return "done"

    @inline
    def add(a: int, b: int) -> int:
        return a + b

    @inline
    def payload(record: dict) -> dict:
        return record

    @inline
    def failing(text: str) -> str:
        raise ValueError(text)

    serving = app.connect().connection
    receive, take = serving.receive, serving.output.take

    def answer(line: bytes) -> bytes:
        receive(line)
        return take()

    params = json.dumps(INITIALIZE)
    assert b'"result"' in answer(
        b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":%b}' % params.encode()
    )
    answer(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
    answer(b'{"jsonrpc":"2.0","id":0,"method":"tools/list"}')
    return answer


def measure(benchmark, lines: list[bytes], expected: bytes) -> None:
    answer = connection()
    for line in lines[:80]:
        assert expected in answer(line), line
    benchmark(one_by_one(answer, lines))


BINDINGS = {
    "no argument": [call_line(id, "no_argument", {}) for id in range(COUNT)],
    "one integer": [call_line(id, "one_integer", {"a": 7919 * id}) for id in range(COUNT)],
    "one text": echo_lines(),
    "four, in order": [
        call_line(id, "four", {"a": id, "b": id, "c": text, "d": True}) for id, text in enumerate(TEXTS)
    ],
    "four, backwards": [
        call_line(id, "four", {"d": True, "c": text, "b": id, "a": id}) for id, text in enumerate(TEXTS)
    ],
    "leniently: text for an integer": [call_line(id, "one_integer", {"a": f"{id}"}) for id in range(COUNT)],
    "by the schema: a union": [
        call_line(id, "checked", {"mode": text if id % 2 else id}) for id, text in enumerate(TEXTS)
    ],
}


@pytest.mark.benchmark(group="bind", **BRIEFLY)
@pytest.mark.parametrize("arguments", BINDINGS)
def test_binding(benchmark, arguments: str) -> None:
    measure(benchmark, BINDINGS[arguments], b'"isError":false')


CALLS = {
    "echo": echo_lines(),
    "echo, 2026-07-28": [call_line(id, "echo", {"text": t}, _meta=META) for id, t in enumerate(TEXTS)],
    "echo, escapes and letters beyond ASCII": echo_lines(letters=UNLIKELY),
    "echo, 64 KB": echo_lines(64_000, 66_000)[:64],
    "add: an integer as the result": [call_line(id, "add", {"a": id, "b": 1}) for id in range(COUNT)],
    "payload: 2 KB there and back": [
        call_line(id, "payload", {"record": {**RECORD, "name": text}}) for id, text in enumerate(TEXTS)
    ],
}


@pytest.mark.benchmark(group="call", **BRIEFLY)
def test_measuring_itself(benchmark) -> None:
    take = Server("micro").connect().connection.output.take

    def answer(line: bytes) -> bytes:
        return take()

    benchmark(one_by_one(answer, CALLS["echo"]))


@pytest.mark.benchmark(group="call", **BRIEFLY)
@pytest.mark.parametrize("what", CALLS)
def test_calling(benchmark, what: str) -> None:
    measure(benchmark, CALLS[what], b'"isError":false')


@pytest.mark.benchmark(group="call", **BRIEFLY)
def test_calling_what_does_not_exist(benchmark) -> None:
    measure(benchmark, [call_line(id, f"no_{text}", {}) for id, text in enumerate(TEXTS)], b"-32602")


@pytest.mark.benchmark(group="list", **BRIEFLY)
@pytest.mark.parametrize("version", ["2025-11-25", STATELESS])
def test_listing_tools(benchmark, version: str) -> None:
    params = json.dumps({"_meta": META} if version == STATELESS else {}).encode()
    line = b'{"jsonrpc":"2.0","id":%d,"method":"tools/list","params":%b}'
    measure(benchmark, [line % (id, params) for id in range(COUNT)], b'"inputSchema"')


@pytest.mark.benchmark(group="list", **BRIEFLY)
def test_pinging(benchmark) -> None:
    line = b'{"jsonrpc":"2.0","id":%d,"method":"ping"}'
    measure(benchmark, [line % id for id in range(COUNT)], b'"result":{}')

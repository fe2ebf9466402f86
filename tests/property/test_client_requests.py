"""A client's requests against a model: whatever is called, answered, answered twice, cancelled or late, each
request ends exactly once, as the first thing that happened to it says."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc._core.call_result import CallResult
from fastrpc._core.client_request import PendingRequest
from fastrpc._core.client_stream import ClientStream
from fastrpc._core.tool_call import ToolCall, ToolCaller
from fastrpc.errors import ConnectionLost, InvalidAnswer, RemoteError, RequestTimeout

INVALID = {
    "broken": '{"jsonrpc":"2.0","id":%d,"result":{"number":NaN}}',
    "half a pair": '{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"\\ud83d"}]},"id":%d}',
    "deep": '{"jsonrpc":"2.0","id":%d,"result":' + "[" * 500 + "]" * 500 + "}",
    "cut off": '{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","te',
    "unversioned": '{"id":%d,"result":{"content":[]}}',
    "neither": '{"jsonrpc":"2.0","id":%d}',
    "both": '{"jsonrpc":"2.0","id":%d,"result":{"content":[]},"error":{"code":1,"message":""}}',
}
"""Answers that cannot be read, but for their ids."""
SHAPES = ("text", "error-text", "blocks", "structured", "text id", "error", "rubbish", "empty", *INVALID)

STRANGE_IDS = ("null", '"x"', '"999"', "999", "0", "-1", "1.0", "true")
NOTIFICATION = b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":1}}'
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("call"), st.text(max_size=8)),
        st.tuples(st.just("request"), st.none()),
        st.tuples(st.just("late"), st.none()),
        st.tuples(st.just("answer"), st.integers(0, 30), st.sampled_from(SHAPES), st.text(max_size=8)),
        st.tuples(st.just("cancel"), st.integers(0, 30)),
        st.tuples(st.just("expire"), st.none()),
        st.tuples(
            st.just("strange"), st.sampled_from(["null", '"x"', '"999"', "999", "0", "-1", "1.0", "true"])
        ),
        st.tuples(st.just("noise"), st.sampled_from(["", "nonsense", "{}", "[]", "5", '{"jsonrpc":"2.0"}'])),
        st.tuples(st.just("notification"), st.none()),
        st.tuples(st.just("lost"), st.none()),
    ),
    max_size=40,
)


def answer(id: int, shape: str, text: str) -> tuple[str, Any]:
    """An answer's line, and what a call, and another request, make of it."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": shape == "error-text"}
    if shape == "blocks":
        result["content"] *= 2
    if shape == "structured":
        result["structuredContent"] = {"text": text}
    if shape in INVALID:
        return INVALID[shape] % id, InvalidAnswer
    if shape == "text id":
        return json.dumps({"jsonrpc": "2.0", "id": str(id), "result": result}), result
    if shape == "error":
        error = {"code": -1, "message": text}
        return json.dumps({"jsonrpc": "2.0", "id": id, "error": error}), RemoteError
    if shape == "rubbish":
        return json.dumps({"jsonrpc": "2.0", "id": id, "result": text}), InvalidAnswer
    if shape == "empty":
        return json.dumps({"jsonrpc": "2.0", "id": id, "result": {}}), {}
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}, separators=(",", ":")), result


class Model:
    """The state of each request, by its id."""

    def __init__(self) -> None:
        self.ends: dict[int, Any] = {}
        self.is_call: dict[int, bool] = {}
        self.is_late: set[int] = set()

    def end(self, id: int, how: Any) -> None:
        if id in self.is_call and id not in self.ends:
            self.ends[id] = how


def matches(found: Any, error: BaseException | None, expected: Any, is_call: bool) -> bool:
    if isinstance(expected, type):
        return type(error) is expected
    if not is_call:
        return bool(found == expected)
    if expected == {}:  # a result, but of no call
        return type(error) is InvalidAnswer
    blocks = expected["content"]
    return (
        type(found) is CallResult
        and found.raw == expected
        and found.text == "\n".join(block["text"] for block in blocks)
        and found.is_error == expected["isError"]
        and found.structured == expected.get("structuredContent")
    )


class Caller(ToolCaller):
    """What a `ToolCall` needs of a client."""

    def __init__(self, stream: ClientStream, loop: asyncio.AbstractEventLoop) -> None:
        self._stream, self._loop, self._session = stream, loop, self
        self._is_open, self._timeout_seconds, self._output_schemas = True, 0.0, {}

    def withdraw(self, request: PendingRequest) -> None:
        assert self._stream.forget(request)

    async def _finish_call(self, call: ToolCall) -> Any:
        if call.error is not None:
            raise call.error
        return call.value


class Timeless:
    """The event loop without its timers: time limits end requests only where a step says so."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.create_future = loop.create_future
        self.call_soon = loop.call_soon
        self.is_closed = loop.is_closed

    def call_later(self, delay_seconds: float, callback: Any) -> Timeless:
        return self

    def cancel(self) -> None:
        """Cancel the timer, which there is not."""


async def turns() -> None:
    """Let the tasks run whose requests have ended."""
    for _ in range(3):
        await asyncio.sleep(0)


@given(STEPS)
@settings(deadline=None)
def test_each_request_ends_once_as_the_first_thing_that_happened_to_it_says(steps: list[Any]) -> None:
    async def run() -> None:
        stream = ClientStream()
        ignored: list[Any] = []
        stream.on_request = stream.on_notification = stream.on_unreadable = ignored.append
        loop = asyncio.get_running_loop()
        stream.attach(Timeless(loop))  # type: ignore[arg-type]
        caller = Caller(stream, loop)
        model = Model()
        futures: dict[int, Any] = {}
        requests: dict[int, Any] = {}
        notifications = 0
        for step in steps:
            kind, value = step[0], step[1]
            if kind in ("call", "request", "late"):
                id = len(futures) + 1
                assert stream.next_id == id
                if kind == "request":
                    futures[id] = loop.create_future()
                    requests[id] = stream.request("resources/list", {}, futures[id])
                else:
                    limit = 1e-9 if kind == "late" else 3600.0
                    call = caller.call_tool("echo", {"text": value}, timeout_seconds=limit)
                    futures[id] = loop.create_task(call)
                    await turns()
                assert stream.next_id == id + 1
                model.is_call[id] = kind != "request"
                if kind == "late":
                    model.is_late.add(id)
            elif kind == "answer":
                line, expected = answer(value, step[2], step[3])
                stream.receive_message(line.encode())
                model.end(value, expected)
            elif kind == "cancel":
                if value in futures:
                    futures[value].cancel()
                if value in requests:
                    assert stream.forget(requests[value]) == (value not in model.ends)
                model.end(value, asyncio.CancelledError)
            elif kind == "expire":
                stream.expire()
                for id in model.is_late:
                    model.end(id, RequestTimeout)
            elif kind == "strange":
                stream.receive_message(f'{{"jsonrpc":"2.0","id":{value},"result":{{}}}}'.encode())
            elif kind == "noise":
                stream.receive_message(value.encode())
            elif kind == "notification":
                notifications += 1
                stream.receive_message(NOTIFICATION)
            else:
                stream.fail_all(lambda request: ConnectionLost("gone"))
                for id in model.is_call:
                    model.end(id, ConnectionLost)
            await turns()
        for id, future in futures.items():
            if id not in model.ends:
                assert not future.done()
                assert id in stream.pending
                continue
            assert future.done()
            assert id not in stream.pending
            if future.cancelled():
                assert model.ends[id] is asyncio.CancelledError
                continue
            error = future.exception()
            found = None if error is not None else future.result()
            assert matches(found, error, model.ends[id], model.is_call[id]), (found, error, model.ends[id])
        stream.detach()
        for future in futures.values():
            future.cancel()
        assert sum(isinstance(each, dict) and "method" in each for each in ignored) == notifications

    asyncio.run(run())


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)


@given(st.text(min_size=1, max_size=12), st.dictionaries(st.text(max_size=6), JSON, max_size=4))
@settings(deadline=None)
def test_a_call_is_written_as_the_standard_library_reads_it(name: str, arguments: dict[str, Any]) -> None:
    stream = ClientStream()
    for envelope in (None, {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}):
        stream.set_envelope(envelope)
        request = stream.call(name, arguments)
        params: dict[str, Any] = {"name": name, "arguments": arguments}
        if envelope is not None:
            params["_meta"] = envelope
        (line,) = stream.take().splitlines()
        assert json.loads(line) == {
            "jsonrpc": "2.0",
            "id": request.id,
            "method": "tools/call",
            "params": params,
        }


@given(st.lists(st.tuples(st.text(max_size=40), st.booleans(), st.sampled_from([0, 1, 2, 3])), max_size=12))
@settings(deadline=None)
def test_results_are_the_same_whether_a_line_is_like_an_earlier_one_or_not(
    answers: list[tuple[str, bool, int]],
) -> None:
    stream = ClientStream()
    for text, is_error, more in answers:
        request = stream.call("echo", None)
        result: dict[str, Any] = {"content": [{"type": "text", "text": text}]}
        if more & 1:
            result["isError"] = is_error
        if more & 2:
            result["_meta"] = {"server": "s"}
        line = json.dumps(
            {"jsonrpc": "2.0", "id": request.id, "result": result},
            ensure_ascii=is_error,
            separators=(",", ":"),
        )
        stream.receive_message(line.encode("utf-8", "surrogatepass"))
        found = request.result()
        assert found.raw == result
        assert (found.text, found.is_error) == (text, result.get("isError", False))
        assert found.meta == result.get("_meta", {})

"""How calls run and end: threads, coroutines, proof, limits, cancellation, failures, results."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest
from support.in_memory import with_client

from fastrpc import Context, Image, Server, Text, ToolError, ToolResult
from fastrpc.protocol.versions import SESSION_VERSIONS, STATELESS, STRUCTURED, VERSIONS
from fastrpc.testing import Client, RemoteError


async def until_inline(client: Client) -> None:
    """Call `where` until it has proved itself: on a busy machine a quick call may look slow for a while."""
    for _ in range(5000):
        if (await client.call("where")).text == "MainThread":
            return
    raise AssertionError("a quick tool was never proven")


# --- where a call runs --------------------------------------------------------------------------------


def test_a_cold_synchronous_tool_runs_on_a_thread_and_a_proven_one_inline() -> None:
    app = Server("t")

    @app.tool
    def where() -> str:
        return threading.current_thread().name

    async def conversation(client: Client) -> None:
        for _ in range(16):
            assert (await client.call("where")).text.startswith("fastrpc-")
        await until_inline(client)

    with_client(app, conversation)


def test_one_slow_inline_call_sends_a_proven_tool_back_to_the_threads() -> None:
    app = Server("t")

    @app.tool
    def where(pause: float = 0.0) -> str:
        time.sleep(pause)
        return threading.current_thread().name

    async def conversation(client: Client) -> None:
        await until_inline(client)
        await client.call("where", pause=0.005)
        assert (await client.call("where")).text.startswith("fastrpc-")

    with_client(app, conversation)


@pytest.mark.parametrize(("run", "expected"), [("inline", "MainThread"), ("thread", "fastrpc-")])
def test_a_tool_can_say_where_it_runs(run: str, expected: str) -> None:
    app = Server("t")

    @app.tool(run=run)
    def where() -> str:
        return threading.current_thread().name

    async def conversation(client: Client) -> None:
        for _ in range(40):
            assert (await client.call("where")).text.startswith(expected)

    with_client(app, conversation)


def test_a_slow_tool_delays_no_other() -> None:
    app = Server("t")
    release = threading.Event()

    @app.tool
    def block() -> str:
        release.wait(20)
        return "released"

    @app.tool
    async def quick() -> str:
        return "quick"

    async def conversation(client: Client) -> None:
        blocked = [client.begin("tools/call", {"name": "block", "arguments": {}})[1] for _ in range(8)]
        assert (await client.call("quick")).text == "quick"
        await client.request("ping")
        assert not any(future.done() for future in blocked)
        release.set()
        assert [(await future)["content"][0]["text"] for future in blocked] == ["released"] * 8

    with_client(app, conversation)


def test_synchronous_tools_run_side_by_side() -> None:
    app = Server("t")
    meeting = threading.Barrier(8, timeout=30)

    @app.tool
    def meet() -> str:
        meeting.wait()
        return "met"

    async def conversation(client: Client) -> None:
        results = await asyncio.gather(*(client.call("meet") for _ in range(8)))
        assert [result.text for result in results] == ["met"] * 8

    with_client(app, conversation)


# --- limits -----------------------------------------------------------------------------------------------


def test_a_time_limit_ends_an_async_tool_and_frees_a_thread_tools_client() -> None:
    app = Server("t")
    seen = []

    @app.tool(timeout_seconds=0.05)
    async def endless() -> None:
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    @app.tool(timeout_seconds=0.05)
    def stubborn(ctx: Context) -> None:
        for _ in range(2000):
            if ctx.cancelled:
                seen.append("told")
                return
            time.sleep(0.005)

    async def conversation(client: Client) -> None:
        for name in ("endless", "stubborn"):
            result = await client.call(name)
            assert result.is_error
            assert "0.05 s" in result.text
        while len(seen) < 2:
            await asyncio.sleep(0.01)
        assert sorted(seen) == ["cancelled", "told"]

    with_client(app, conversation)


def test_max_running_lets_the_rest_wait_in_order() -> None:
    app = Server("t")
    running, most, order = 0, 0, []

    @app.tool(max_running=2)
    async def work(number: int) -> int:
        nonlocal running, most
        running += 1
        most = max(most, running)
        order.append(number)
        await asyncio.sleep(0.01)
        running -= 1
        return number

    async def conversation(client: Client) -> None:
        results = await asyncio.gather(*(client.call("work", number=number) for number in range(10)))
        assert [result.structured for result in results] == [{"result": number} for number in range(10)]

    with_client(app, conversation)
    assert most == 2
    assert order == list(range(10))


def test_a_call_that_waits_for_its_place_can_be_cancelled() -> None:
    app = Server("t")
    ran = []

    @app.tool(max_running=1)
    async def work(number: int) -> int:
        ran.append(number)
        await asyncio.sleep(0.05)
        return number

    async def conversation(client: Client) -> None:
        first = client.begin("tools/call", {"name": "work", "arguments": {"number": 1}})[1]
        waiting, _ = client.begin("tools/call", {"name": "work", "arguments": {"number": 2}})
        third = client.begin("tools/call", {"name": "work", "arguments": {"number": 3}})[1]
        client.cancel(waiting)
        await first
        await third

    with_client(app, conversation)
    assert ran == [1, 3]
    assert app.runtime.calls.count == 0


def test_beyond_the_bound_on_calls_in_flight_there_is_a_defined_error() -> None:
    app = Server("t", max_in_flight=3)

    @app.tool
    async def wait() -> str:
        await asyncio.sleep(0.05)
        return "waited"

    async def conversation(client: Client) -> None:
        futures = [client.begin("tools/call", {"name": "wait", "arguments": {}})[1] for _ in range(5)]
        results = await asyncio.gather(*futures, return_exceptions=True)
        assert [type(result) for result in results] == [dict, dict, dict, RemoteError, RemoteError]
        assert {result.code for result in results[3:]} == {-31001}
        assert (await client.call("wait")).text == "waited"

    with_client(app, conversation)
    assert app.runtime.calls.count == 0


# --- cancellation -----------------------------------------------------------------------------------------


def test_cancellation_ends_the_work_and_sends_no_answer() -> None:
    app = Server("t")
    begun: list[str] = []
    seen = []

    @app.tool
    async def endless(ctx: Context) -> None:
        begun.append("endless")
        try:
            await asyncio.sleep(20)
        finally:
            seen.append(ctx.cancelled)

    @app.tool(run="thread")
    def stubborn(ctx: Context) -> str:
        begun.append("stubborn")
        while not ctx.cancelled:
            time.sleep(0.005)
        seen.append(True)
        return "dropped"

    async def conversation(client: Client) -> None:
        for name in ("endless", "stubborn"):
            id, _ = client.begin("tools/call", {"name": name, "arguments": {}})
            while name not in begun:
                await asyncio.sleep(0.005)
            client.cancel(id)
        while len(seen) < 2 or app.runtime.calls.count:
            await asyncio.sleep(0.005)
        await client.request("ping")

    with_client(app, conversation)
    assert seen == [True, True]


def test_a_second_request_with_an_id_in_flight_is_refused_and_the_first_unharmed() -> None:
    app = Server("t")

    @app.tool
    async def wait() -> str:
        await asyncio.sleep(0.05)
        return "first"

    @app.tool(run="inline")
    def echo(text: str) -> str:
        return text

    lines: list[bytes] = []

    async def run() -> None:
        from support.in_memory import connected

        transport = connected(app.connect().connection, lines.append)
        transport.send(
            b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}'
        )
        transport.send(b'{"jsonrpc":"2.0","id":"\\u0061","method":"tools/call","params":{"name":"wait"}}')
        for id in (b'"a"', b'"\\u0061"'):
            for call in (b'"ping"', b'"tools/call","params":{"name":"echo","arguments":{"text":"x"}}'):
                transport.send(b'{"jsonrpc":"2.0","id":' + id + b',"method":' + call + b"}")
        transport.send(b'{"jsonrpc":"2.0","id":"b","method":"ping"}')
        while len(lines) < 7:
            await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run(), 30))
    refused = [line for line in lines if b"-32600" in line]
    assert len(refused) == 4
    assert lines[-1].startswith(b'{"jsonrpc":"2.0","id":"\\u0061","result"')
    assert b"first" in lines[-1]


# --- progress ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("run", ["inline", "thread"])
def test_progress_reaches_the_client_in_order_and_before_the_answer(run: str) -> None:
    app = Server("t")

    @app.tool(run=run)
    def steps(ctx: Context) -> str:
        assert ctx.wants_progress
        for step in (1, 2, 2, 1, 3):
            ctx.progress(step, total=3, message=f"step {step}")
        return "done"

    async def conversation(client: Client) -> None:
        reports: list[dict[str, Any]] = []
        await client.call("steps", on_progress=reports.append)
        assert [report["progress"] for report in reports] == [1, 2, 3]
        assert reports[0]["total"] == 3
        assert reports[0]["message"] == "step 1"

    with_client(app, conversation)


def test_without_a_token_no_notification_is_sent() -> None:
    app = Server("t")

    @app.tool
    async def steps(ctx: Context) -> str:
        assert not ctx.wants_progress
        await ctx.progress(1)
        return "done"

    async def conversation(client: Client) -> None:
        assert (await client.call("steps")).text == "done"
        assert client.notifications == []

    with_client(app, conversation)


# --- failures ---------------------------------------------------------------------------------------------


def test_an_exception_is_a_result_with_its_message_and_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    app = Server("t")

    @app.tool(run="inline")
    def fail(kind: str) -> str:
        raise {"value": ValueError("too blue"), "refusal": ToolError("not today"), "exit": SystemExit(3)}[
            kind
        ]

    async def conversation(client: Client) -> list[Any]:
        return [await client.call("fail", kind=kind) for kind in ("value", "refusal", "exit")]

    results = with_client(app, conversation)
    assert all(result.is_error for result in results)
    assert [result.text for result in results] == ["ValueError: too blue", "not today", "SystemExit: 3"]
    assert [record.exc_info is not None for record in caplog.records] == [True, True]


def test_arguments_that_do_not_fit_are_a_result_that_names_the_field() -> None:
    app = Server("t")

    @app.tool
    def add(a: int, b: int) -> int:
        return a + b

    async def conversation(client: Client) -> None:
        assert (await client.call("add", a="2", b=3.0)).text == "5"
        for arguments, words in (({"a": 1}, ("b",)), ({"a": "soon", "b": 1}, ("a", "integer", "soon"))):
            result = await client.call("add", **arguments)
            assert result.is_error
            assert all(word in result.text for word in words), result.text

    with_client(app, conversation)


@pytest.mark.parametrize(
    "value", ["half \ud800 pair", {"x": [1.5, float("nan")]}, float("inf"), object(), {1: object()}]
)
def test_a_result_that_cannot_be_encoded_is_a_result_that_says_so(value: Any) -> None:
    app = Server("t")

    @app.tool(run="inline")
    def give() -> Any:
        return value

    async def conversation(client: Client) -> None:
        result = await client.call("give")
        assert result.is_error
        assert result.text
        await client.request("ping")

    with_client(app, conversation)


def test_nan_is_refused_with_its_path() -> None:
    app = Server("t")

    @app.tool(run="inline")
    def give() -> Any:
        return {"rows": [{"score": 1.0}, {"score": float("nan")}]}

    async def conversation(client: Client) -> None:
        assert "result.rows[1].score" in (await client.call("give")).text

    with_client(app, conversation)


# --- results ----------------------------------------------------------------------------------------------


ODD = 'q"\\\n\t\x00\x1f\x7f é 漢 🎉 ' + "x" * 40


class Blue(str):
    """A str that is not exactly one."""


def results_of(value: Any, annotation: Any = Any, version: str = SESSION_VERSIONS[-1]) -> Any:
    app = Server("t")

    def give():  # type: ignore[no-untyped-def]
        return value

    give.__annotations__["return"] = annotation
    app.add_tool(give, run="inline")

    async def conversation(client: Client) -> Any:
        return (await client.call("give")).raw

    return with_client(app, conversation, version=version)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("text", [{"type": "text", "text": "text"}]),
        ("", [{"type": "text", "text": ""}]),
        (ODD, [{"type": "text", "text": ODD}]),
        (Blue("sub"), [{"type": "text", "text": "sub"}]),
        (None, []),
        (Text("t"), [{"type": "text", "text": "t"}]),
        ([Text("t"), Image(b"\x89P")], [{"type": "text", "text": "t"},
                                        {"type": "image", "data": "iVA=", "mimeType": "image/png"}]),
        ([], [{"type": "text", "text": "[]"}]),
        (["a"], [{"type": "text", "text": '["a"]'}]),
        ({"a": 2**70}, [{"type": "text", "text": f'{{"a":{2**70}}}'}]),
        (True, [{"type": "text", "text": "true"}]),
        (ToolResult("t"), [{"type": "text", "text": "t"}]),
        (ToolResult(), []),
    ],
)  # fmt: skip
def test_what_a_tool_returns_becomes_content(version: str, value: Any, content: Any) -> None:
    result = results_of(value, version=version)
    assert result["content"] == content
    assert result["isError"] is False
    assert "structuredContent" not in result
    assert ("resultType" in result) == (version == STATELESS)


@pytest.mark.parametrize("version", VERSIONS)
def test_an_annotated_value_is_structured_content_where_the_version_has_it(version: str) -> None:
    known = version in STRUCTURED
    result = results_of({"a": 1}, dict[str, int], version)
    assert result.get("structuredContent") == ({"a": 1} if known else None)
    result = results_of([1, 2], list[int], version)
    assert result.get("structuredContent") == ({"result": [1, 2]} if known else None)
    assert result.get("_meta", {}).get("fastmcp") == ({"wrap_result": True} if known else None)


def test_full_control_is_full() -> None:
    result = results_of(ToolResult(["a", Text("b")], structured={"x": 1}, is_error=True, meta={"k": 1}))
    assert result == {
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "structuredContent": {"x": 1},
        "isError": True,
        "_meta": {"k": 1},
    }


@pytest.mark.parametrize("error", [SystemExit(2), KeyboardInterrupt()])
def test_a_coroutine_that_exits_fails_in_a_loop_of_somebody_else(error: BaseException) -> None:
    app = Server("t")

    @app.tool
    async def exits() -> str:
        await asyncio.sleep(0)
        raise error

    @app.resource("exits://now", timeout_seconds=5)
    async def resource() -> str:
        raise error

    @app.tool
    async def reads(context: Context) -> str:
        return str(await context.read_resource("exits://now"))

    async def conversation(client: Client) -> None:
        for tool in ("exits", "reads"):
            result = await client.request("tools/call", {"name": tool, "arguments": {}})
            assert result["isError"]
            assert result["content"][0]["text"].startswith(type(error).__name__)
        with pytest.raises(RemoteError):
            await client.request("resources/read", {"uri": "exits://now"})

    with_client(app, conversation)

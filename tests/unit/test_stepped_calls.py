"""Coroutines that the connection begins by itself: the same answers as by the dispatcher, the same ends."""

from __future__ import annotations

import asyncio
import contextvars
import json
from dataclasses import dataclass
from typing import Any

import pytest
from support.in_memory import RawConversation, in_loop
from support.planted_faults import replace_method

from fastrpc import Image, Server, Text, ToolError, ToolResult
from fastrpc._core.task import CallTask, task_of
from fastrpc.errors import InvalidParams
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS


def begun(awaitable: Any, loop: asyncio.AbstractEventLoop) -> CallTask:
    task = task_of(awaitable, loop, None)
    task.begin()
    return task


VARIABLE = contextvars.ContextVar("VARIABLE", default="of the loop")


@dataclass
class Price:
    amount: float
    currency: str


class Later:
    """What may be awaited and is no coroutine."""

    def __await__(self) -> Any:
        yield from asyncio.sleep(0).__await__()
        return "later"


class Decorated:
    """An asynchronous function as some decorators leave it: its calls make no coroutines."""

    __name__ = "decorated"

    async def __call__(self, text: str) -> str:
        return f"decorated {text}"


def tools() -> Server:
    app = Server("t")

    def add(function: Any, **options: Any) -> None:
        app.add_tool(function, **options)

    async def echo(text: str, times: int = 1) -> str:
        return text * times

    async def nothing() -> None:
        return None

    async def number(value: int) -> int:
        return value + 1

    async def price() -> Price:
        return Price(2.5, "EUR")

    async def blocks() -> list[Any]:
        return [Text("a"), "b", Image(b"\x89PNG\r\n\x1a\n")]

    async def texts(text: str) -> list[Text]:
        return [Text(text), text, Text("")]  # type: ignore[list-item]

    async def half() -> list[Text]:
        return [Text("a"), Text("\ud800")]

    async def hinted() -> list[Text]:
        return [Text("a", annotations={"priority": 1}), Text("b", meta={"example.com/x": 1})]

    async def others() -> Any:
        return [Text("a"), 5]

    async def strings() -> Any:
        return ["a", "b"]

    async def result() -> ToolResult:
        return ToolResult("text", structured={"a": 1}, meta={"example.com/x": 1})

    async def once(text: str) -> str:
        await asyncio.sleep(0)
        return text

    async def refuses(text: str) -> str:
        raise ToolError(f"no: {text}")

    async def refuses_late() -> str:
        await asyncio.sleep(0)
        raise ToolError("no")

    async def fails() -> str:
        raise ValueError("unexpected: été")

    async def is_no_request() -> str:
        raise InvalidParams("not like this")

    async def exits() -> str:
        raise SystemExit(3)

    async def interrupts() -> str:
        raise KeyboardInterrupt

    async def cancels_itself() -> str:
        raise asyncio.CancelledError

    async def cancels_its_task() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "cancelled in its last step"

    async def lone_surrogate() -> str:
        return "\ud800"

    async def unencodable() -> Any:
        return {"x": object()}

    async def breaks_its_promise() -> int:
        return "no number"  # type: ignore[return-value]

    async def limited() -> str:
        await asyncio.sleep(20)
        return "late"

    for function in (echo, nothing, number, price, blocks, result, once, refuses, refuses_late, fails):
        add(function)
    for function in (is_no_request, exits, interrupts, cancels_itself, cancels_its_task, lone_surrogate):
        add(function)
    for function in (unencodable, breaks_its_promise, texts, half, hinted, others, strings):
        add(function)
    add(limited, timeout_seconds=0.02)
    add(Decorated(), name="decorated")
    return app


CALLS: list[tuple[str, Any]] = [
    ("echo", {"text": "a"}),
    ("echo", {"text": "b"}),
    ("echo", {"text": "été", "times": 2}),
    ("echo", {"times": "2", "text": "lenient"}),
    ("echo", {"times": []}),
    ("echo", {}),
    ("echo", None),
    ("nothing", {}),
    ("number", {"value": 1}),
    ("number", {"value": 2**70}),
    ("price", {}),
    ("blocks", {}),
    ("texts", {"text": "a"}),
    ("texts", {"text": 'été "\n\u2028'}),
    ("texts", {"text": "x" * 40_000}),
    ("half", {}),
    ("hinted", {}),
    ("others", {}),
    ("strings", {}),
    ("result", {}),
    ("once", {"text": "a"}),
    ("refuses", {"text": "this"}),
    ("refuses", {"text": "été"}),
    ("refuses_late", {}),
    ("fails", {}),
    ("fails", {}),
    ("is_no_request", {}),
    ("exits", {}),
    ("interrupts", {}),
    ("cancels_itself", {}),
    ("cancels_its_task", {}),
    ("lone_surrogate", {}),
    ("unencodable", {}),
    ("breaks_its_promise", {}),
    ("limited", {}),
    ("decorated", {"text": "a"}),
    ("nobody", {}),
]


async def all_answers(version: str, stepped: bool) -> tuple[dict[Any, bytes], int]:
    app = tools()
    peer = RawConversation(app, version, stepped=stepped)
    for number, (name, arguments) in enumerate(CALLS):
        peer.call(number, name, arguments)
    for number in range(len(CALLS)):
        await peer.answer(number)
    assert peer.dispatcher.requests.in_flight == {}
    while app.runtime.calls.count:  # of one that was too late
        await asyncio.sleep(0.001)
    peer.close()
    return peer.answers, peer.handed_on


@pytest.mark.parametrize("version", ["2025-03-26", LATEST_SESSION_VERSION, STATELESS])
def test_the_connection_answers_each_call_of_a_coroutine_as_the_dispatcher_does(
    version: str, capfd: pytest.CaptureFixture[str]
) -> None:
    answers, handed_on = in_loop(lambda: all_answers(version, True))
    expected, all_of_them = in_loop(lambda: all_answers(version, False))
    assert answers == expected
    assert all_of_them == len(CALLS)
    assert handed_on == 2, "an unknown tool, once in each form"
    capfd.readouterr()


def test_a_coroutine_that_does_not_wait_is_answered_before_the_next_message_is_read() -> None:
    async def conversation() -> None:
        app = tools()
        peer = RawConversation(app, LATEST_SESSION_VERSION)
        for number in range(3):
            peer.call(number, "echo", {"text": str(number)})
            assert list(peer.answers) == list(range(number + 1))
        assert peer.handed_on == 0
        peer.close()

    in_loop(conversation)


def test_a_coroutine_that_waits_is_in_flight_until_it_ends_and_its_id_is_taken() -> None:
    async def conversation() -> None:
        app = Server("t")
        gate = asyncio.Event()

        @app.tool
        async def waits(text: str) -> str:
            await gate.wait()
            return text

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        peer.call(1, "waits", {"text": "a"})
        peer.call("1", "waits", {"text": "b"})
        assert (app.runtime.calls.count, peer.answers, peer.handed_on) == (2, {}, 0)
        assert peer.dispatcher.requests.busy
        peer.call(1, "waits", {"text": "c"})
        assert "in flight" in json.loads(peer.answers.pop(1))["error"]["message"]
        gate.set()
        texts = [(await peer.answer(id))["result"]["content"][0]["text"] for id in (1, "1")]
        assert texts == ["a", "b"]
        assert (app.runtime.calls.count, peer.dispatcher.requests.busy) == (0, False)
        peer.close()

    in_loop(conversation)


def test_a_coroutine_that_waits_can_be_cancelled_and_is_not_answered() -> None:
    async def conversation() -> None:
        app = Server("t")
        ended: list[str] = []

        @app.tool
        async def waits() -> str:
            try:
                await asyncio.sleep(20)
            except asyncio.CancelledError:
                ended.append("cancelled")
                raise
            return "late"

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        peer.call(7, "waits", {})
        peer.say({"method": "notifications/cancelled", "params": {"requestId": 7}})
        assert not peer.dispatcher.requests.busy
        while app.runtime.calls.count:
            await asyncio.sleep(0)
        assert (ended, peer.answers) == (["cancelled"], {})
        peer.close()

    in_loop(conversation)


def test_the_bound_on_calls_in_flight_holds_for_coroutines_that_the_connection_begins() -> None:
    async def conversation() -> None:
        app = Server("t", max_in_flight=2)

        @app.tool
        async def waits(seconds: float) -> str:
            await asyncio.sleep(seconds)
            return "done"

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        for number in range(3):
            peer.call(number, "waits", {"seconds": 0.01})
        assert "busy" in (await peer.answer(2))["error"]["message"]
        for number in range(2):
            assert (await peer.answer(number))["result"]["content"][0]["text"] == "done"
        peer.call(3, "waits", {"seconds": 0.0})
        assert "result" in await peer.answer(3)
        peer.close()

    in_loop(conversation)


def test_a_bound_on_a_tools_running_calls_is_kept_by_the_dispatcher() -> None:
    async def conversation() -> None:
        app = Server("t")
        most = running = 0

        @app.tool(max_running=1)
        async def alone() -> str:
            nonlocal most, running
            running += 1
            most = max(most, running)
            await asyncio.sleep(0.001)
            running -= 1
            return "done"

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        for number in range(5):
            peer.call(number, "alone", {})
        for number in range(5):
            await peer.answer(number)
        assert (most, peer.handed_on) == (1, 5)
        peer.close()

    in_loop(conversation)


def test_a_time_limit_counts_from_the_call_and_not_from_its_first_pause() -> None:
    async def conversation() -> None:
        app = Server("t")

        @app.tool(timeout_seconds=0.05)
        async def slow() -> str:
            import time

            time.sleep(0.06)  # its first step, which nothing can interrupt
            await asyncio.sleep(20)
            return "late"

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        loop = asyncio.get_running_loop()
        timers: list[float] = []
        later = loop.call_later
        loop.call_later = lambda delay, *rest, **more: timers.append(delay) or later(delay, *rest, **more)  # type: ignore
        peer.call(1, "slow", {})
        assert timers == [20, 0]
        del loop.call_later
        assert "did not end within 0.05 s" in (await peer.answer(1))["result"]["content"][0]["text"]
        peer.close()

    in_loop(conversation)


def test_each_coroutine_has_variables_of_its_own_and_is_its_own_task() -> None:
    async def conversation() -> None:
        app = Server("t")
        outer = asyncio.current_task()
        tasks: list[Any] = []

        @app.tool
        async def remember(text: str) -> str:
            found = VARIABLE.get()
            VARIABLE.set(text)
            tasks.append(asyncio.current_task())
            return found

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        for number in range(2):
            peer.call(number, "remember", {"text": "of a call"})
            answer = await peer.answer(number)
            assert answer["result"]["content"][0]["text"] == "of the loop"
        assert len({id(task) for task in [*tasks, outer]}) == 3
        assert (VARIABLE.get(), asyncio.current_task(), peer.handed_on) == ("of the loop", outer, 0)
        peer.close()

    in_loop(conversation)


def test_what_may_be_awaited_and_is_no_coroutine_is_awaited() -> None:
    async def conversation() -> None:
        task = begun(Later(), asyncio.get_running_loop())
        assert not task.done()
        assert await task == "later"

    in_loop(conversation)


def test_no_coroutine_is_begun_where_no_loop_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    async def prepare() -> RawConversation:
        return RawConversation(app, LATEST_SESSION_VERSION)

    app = tools()
    peer = in_loop(prepare)  # its loop has ended
    handed: list[Any] = []
    taken = lambda message, plan, arguments, *rest: handed.append(arguments)  # noqa: E731
    replace_method(monkeypatch, peer.dispatcher, "call_bound", lambda method: taken)
    peer.call(1, "echo", {"text": "a"})
    assert (handed, peer.answers) == ([["a", 1]], {})

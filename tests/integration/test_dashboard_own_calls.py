"""The calls that people make at the dashboard, in the process that keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fastrpc import Server
from fastrpc.dashboard import own_calls
from fastrpc.dashboard.language import LANGUAGES
from fastrpc.dashboard.own_calls import CANCELLED, MOST_RUNNING, TOO_LONG, OwnCall, OwnCalls, TooManyCalls

Calls = Callable[[OwnCalls], Awaitable[None]]


def run(work: Calls) -> None:
    """Run some work with the calls of a server that has the tools `echo` and `wait`."""

    async def all_of_it() -> None:
        app = Server("shop")

        @app.tool
        def echo(text: str) -> str:
            return text

        @app.tool
        async def wait() -> None:
            await asyncio.Event().wait()

        await asyncio.wait_for(work(OwnCalls(app)), 10)

    asyncio.run(all_of_it())


async def call(calls: OwnCalls, id: str, text: str = "hello") -> OwnCall:
    return await calls.make(id, "ada", "echo", {"text": text}, {"text": text}, 10.0)


def test_a_call_that_cannot_be_begun_is_not_in_flight(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(calls: OwnCalls) -> None:
        def fail(*_: Any) -> None:
            raise RuntimeError("no connection")

        with monkeypatch.context() as patched:
            patched.setattr(own_calls.SelfCall, "begin", fail)
            for number in range(MOST_RUNNING):
                with pytest.raises(RuntimeError):
                    await call(calls, f"call {number}")
        assert await calls.get("call 0", "ada") is None
        made = await call(calls, "call 0")
        assert (made.problem, made.result and made.result["content"][0]["text"]) == ("", "hello")

    run(work)


def test_a_result_is_not_shown_any_longer_than_it_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(calls: OwnCalls) -> None:
        made = await call(calls, "call")
        assert await calls.get("call", "ada") is made
        monkeypatch.setattr(own_calls, "KEPT_SECONDS", 0.0)
        assert await calls.get("call", "ada") is None

    run(work)


def test_a_result_is_dropped_although_no_one_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_calls, "KEPT_SECONDS", 0.01)

    async def work(calls: OwnCalls) -> None:
        await call(calls, "call")
        while calls._calls:  # `run` ends it
            await asyncio.sleep(0.02)

    run(work)


def test_why_there_is_no_result_is_a_text_with_values_that_can_be_translated() -> None:
    async def work(calls: OwnCalls) -> None:
        long = await call(calls, "long", "x" * own_calls.LONGEST_RESULT)
        assert (long.problem, list(long.values or {})) == (TOO_LONG, ["count"])
        unknown = await calls.make("unknown", "ada", "nothing", {}, {}, 10.0)
        assert (bool(unknown.problem), unknown.values) == (True, None)  # the server's words
        waiting = [await calls.make(str(each), "ada", "wait", {}, {}, 0.0) for each in range(MOST_RUNNING)]
        with pytest.raises(TooManyCalls) as refused:
            await call(calls, "one more")
        assert LANGUAGES["ar"].text(str(refused.value), **refused.value.values).startswith("لديك 20 ")
        for each in waiting:
            each.cancel()
            assert (each.problem, each.values) == (CANCELLED, {})

    run(work)

"""The calls that people make at the dashboard, in the process that keeps them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from fastrpc import Server
from fastrpc.dashboard import own_calls
from fastrpc.dashboard.own_calls import MOST_RUNNING, OwnCall, OwnCalls

Calls = Callable[[OwnCalls], Awaitable[None]]


def run(work: Calls) -> None:
    """Run some work with the calls of a server that has a tool `echo`."""

    async def all_of_it() -> None:
        app = Server("shop")

        @app.tool
        def echo(text: str) -> str:
            return text

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


def test_a_result_is_dropped_although_nobody_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_calls, "KEPT_SECONDS", 0.01)

    async def work(calls: OwnCalls) -> None:
        await call(calls, "call")
        while calls._calls:  # `run` ends it
            await asyncio.sleep(0.02)

    run(work)

"""Contexts of calls that the connection makes by itself: they say what those of the dispatcher say."""

from __future__ import annotations

import asyncio
import gc
import json
import weakref
from typing import Any

import pytest
from support.in_memory import ENVELOPE, RawConversation, in_loop
from support.loop_clock import LoopClock

from fastrpc import CallRecord, Context, Server, ToolError
from fastrpc.engine.connection_delegate import ConnectionDelegate
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

VERSIONS = ["2025-03-26", LATEST_SESSION_VERSION, STATELESS]
WITH_TOKEN = {"progressToken": "p"}


def tools() -> Server:
    app = Server("t")

    @app.tool(run="inline")
    def facts(text: str, ctx: Context) -> dict[str, Any]:
        return _facts(ctx, text)

    @app.tool
    async def facts_async(ctx: Context, text: str = "default") -> dict[str, Any]:
        return _facts(ctx, text)

    @app.tool
    async def facts_late(text: str, ctx: Context) -> dict[str, Any]:
        await asyncio.sleep(0)
        return _facts(ctx, text)

    @app.tool(run="inline")
    def reports(ctx: Context) -> str:
        for step in range(1, 4):
            ctx.progress(step, 3, f"step {step}")
        ctx.log("halfway")
        return "done"

    @app.tool
    async def reports_late(ctx: Context) -> str:
        await ctx.progress(1, 2)
        await asyncio.sleep(0)
        await ctx.progress(2, 2)
        return "done"

    @app.tool
    async def reports_later(ctx: Context) -> str:
        await asyncio.sleep(0)
        await ctx.progress(1, 2)
        await asyncio.sleep(0)
        await ctx.progress(2, 2)
        return "done"

    @app.tool
    async def reports_from_a_thread(ctx: Context) -> str:
        await asyncio.to_thread(ctx.progress, 1, 2)
        return "done"

    @app.tool
    async def fails_late(ctx: Context) -> str:
        await asyncio.sleep(0)
        raise ToolError("after all")

    @app.tool
    async def asks_late(ctx: Context) -> str:
        await asyncio.sleep(0)
        answer = await ctx.elicit("How many?", int)
        return f"{answer.action}"

    @app.tool(run="inline")
    def reports_and_fails(ctx: Context) -> str:
        ctx.progress(1)
        raise ToolError("after all")

    @app.tool(run="inline")
    def fails_unused(ctx: Context) -> str:
        raise ValueError("no")

    @app.tool
    async def asks(ctx: Context) -> str:
        answer = await ctx.elicit("How many?", int)
        return f"{answer.action}"

    return app


def _facts(ctx: Context, text: str) -> dict[str, Any]:
    assert isinstance(ctx, Context)
    return {
        "text": text,
        "id": ctx.request_id,
        "version": ctx.protocol_version,
        "client": ctx.client_info,
        "capabilities": ctx.client_capabilities,
        "principal": ctx.principal,
        "server": ctx.server.name if ctx.server is not None else None,
        "wants": ctx.wants_progress,
        "cancelled": ctx.cancelled,
    }


CALLS: list[tuple[str, Any, Any]] = [
    (name, {"text": "été"}, meta)
    for name in ("facts", "facts_async", "facts_late")
    for meta in (None, WITH_TOKEN, {"progressToken": [1]}, {"other": 1})
]
CALLS += [("facts_async", {}, None), ("facts", {}, None), ("facts", {"text": 3}, None)]
CALLS += [
    (name, {}, meta)
    for name in (
        "reports",
        "reports_late",
        "reports_later",
        "reports_from_a_thread",
        "reports_and_fails",
        "fails_unused",
        "fails_late",
        "asks",
        "asks_late",
    )
    for meta in (None, WITH_TOKEN)
]


async def conversation(version: str, stepped: bool) -> tuple[dict[Any, bytes], list[Any], int]:
    peer = RawConversation(tools(), version, stepped=stepped)
    for number, (name, arguments, meta) in enumerate(CALLS):
        id = number if number % 2 else f"id {number}"
        peer.call(id, name, arguments, meta)
        await peer.answer(id)
    peer.close()
    return peer.answers, peer.said, peer.handed_on


@pytest.mark.parametrize("version", VERSIONS)
def test_a_context_of_the_connection_says_what_one_of_the_dispatcher_says(
    version: str,
) -> None:
    answers, said, handed_on = in_loop(lambda: conversation(version, True))
    expected, expected_said, all_of_them = in_loop(lambda: conversation(version, False))
    assert [_without_state(line) for line in answers.values()] == [
        _without_state(line) for line in expected.values()
    ]
    assert said == expected_said  # and each of it before its answer
    assert any(message["method"] == "notifications/progress" for _, message in said)
    assert (handed_on, all_of_them) == (0, len(CALLS))


def _without_state(line: bytes) -> Any:
    """An answer without the state that a client brings back: it has a time in it."""
    message = json.loads(line)
    message.get("result", {}).pop("requestState", None)
    return message


@pytest.mark.parametrize("version", VERSIONS)
def test_a_context_that_is_not_used_is_not_filled_in(version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    filled: list[Any] = []
    fill = ConnectionDelegate.open_call

    def counted(self: ConnectionDelegate, *arguments: Any) -> None:
        filled.append(arguments)
        fill(self, *arguments)

    monkeypatch.setattr(ConnectionDelegate, "open_call", counted)

    async def run() -> None:
        app = Server("t")

        @app.tool(run="inline")
        def unused(text: str, ctx: Context) -> str:
            return text

        @app.tool
        async def unused_async(text: str, ctx: Context) -> str:
            return text

        @app.tool
        async def unused_late(text: str, ctx: Context) -> str:
            await asyncio.sleep(0)
            return text

        @app.tool(run="inline")
        def used(text: str, ctx: Context) -> str:
            return f"{text} {ctx.request_id} {ctx.request_id}"

        peer = RawConversation(app, version)
        for number, name in enumerate(("unused", "unused_async", "unused_late")):
            peer.call(number, name, {"text": "a"})
            assert (await peer.answer(number))["result"]["content"][0]["text"] == "a"
        assert filled == []
        peer.call(7, "used", {"text": "a"})
        assert (await peer.answer(7))["result"]["content"][0]["text"] == "a 7 7"
        assert (len(filled), peer.handed_on) == (1, 0)
        peer.close()

    in_loop(run)


@pytest.mark.parametrize("by_thread", [False, True])
@pytest.mark.parametrize("end", ["ends", "is cancelled", "is out of time"])
def test_a_call_that_waits_ends_once_though_its_context_was_looked_at_meanwhile(
    end: str, by_thread: bool
) -> None:
    async def run() -> None:
        clock = LoopClock()
        app = Server("t")
        kept: list[Context] = []
        go_on = asyncio.Event()

        @app.tool(timeout_seconds=10)
        async def waits(ctx: Context) -> str:
            kept.append(ctx)
            await go_on.wait()
            return "done"

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        peer.call(1, "waits", {}, WITH_TOKEN)
        ctx = kept[0]
        if by_thread:
            await asyncio.to_thread(ctx.progress, 1)
        else:
            ctx.progress(1)
        while not peer.said:
            await asyncio.sleep(0)
        assert (ctx.cancelled, app.runtime.calls.count) == (False, 1)
        if end == "is cancelled":
            peer.say({"method": "notifications/cancelled", "params": {"requestId": 1}})
        elif end == "ends":
            go_on.set()
        else:
            clock.advance(10)
        if end != "is cancelled":
            assert (await peer.answer(1))["result"]["isError"] is (end != "ends")
        while app.runtime.calls.count:
            await asyncio.sleep(0)
        assert ctx.cancelled is (end != "ends")
        ctx.progress(2)
        await asyncio.sleep(0.01)
        assert (len(peer.said), len(peer.answers), peer.dispatcher.requests.in_flight) == (
            1,
            int(end != "is cancelled"),
            {},
        )
        peer.close()

    in_loop(run)


@pytest.mark.parametrize("before", [False, True])
def test_a_call_that_waits_stays_the_same_call_when_its_context_is_looked_at(before: bool) -> None:
    async def run() -> None:
        app = Server("t")
        records: list[CallRecord] = []
        app.observe(records.extend)
        kept: list[Context] = []
        go_on = asyncio.Event()

        @app.tool
        async def waits(text: str, ctx: Context) -> str:
            kept.append(ctx)
            if before:
                ctx.progress(1)
            await go_on.wait()
            return text

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        for id, text in ((1, "done"), (2, "never")):
            peer.call(id, "waits", {"text": text}, WITH_TOKEN)
        calls = dict(peer.dispatcher.requests.in_flight)
        for ctx in kept:
            ctx.progress(2)
        assert peer.dispatcher.requests.in_flight == calls
        said = {"reason": "enough"}
        peer.say({"method": "notifications/cancelled", "params": {"requestId": 2, **said}})
        channel: Any = kept[1]._channel
        assert (channel.request.cancellation, kept[1].cancelled) == (said, True)
        go_on.set()
        assert (await peer.answer(1))["result"]["content"][0]["text"] == "done"
        peer.close()
        observers: Any = app._observers
        observers.drain()
        assert [(each.outcome, each.bind_us > 0) for each in records] == [("cancelled", True), ("ok", True)]

    in_loop(run)


@pytest.mark.parametrize("end", ["ends", "is cancelled", "is out of time"])
def test_a_context_that_is_looked_at_after_a_call_that_has_waited_says_nothing_to_the_client(
    end: str,
) -> None:
    async def run() -> None:
        app = Server("t")
        kept: list[Context] = []

        @app.tool(timeout_seconds=0.02 if end == "is out of time" else 20)
        async def waits(ctx: Context) -> str:
            kept.append(ctx)
            await asyncio.sleep(0 if end == "ends" else 20)
            return "done"

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        peer.call(1, "waits", {}, WITH_TOKEN)
        if end == "is cancelled":
            peer.say({"method": "notifications/cancelled", "params": {"requestId": 1}})
        else:
            await peer.answer(1)
        while app.runtime.calls.count:
            await asyncio.sleep(0)
        ctx = kept[0]
        ctx.progress(1)
        ctx.log("late", "error")
        await asyncio.sleep(0.01)
        assert (ctx.request_id, ctx.ended, ctx.cancelled) == (1, True, end != "ends")
        assert (peer.said, peer.dispatcher.requests.in_flight) == ([], {})
        peer.close()

    in_loop(run)


@pytest.mark.parametrize("used", [False, True])
def test_a_context_outlives_its_call_and_says_nothing_to_the_client_any_more(used: bool) -> None:
    async def run() -> None:
        app = Server("t")
        kept: list[Context] = []

        @app.tool(run="inline")
        def keeps(ctx: Context) -> str:
            kept.append(ctx)
            return f"{ctx.wants_progress}" if used else "unused"

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        peer.call(1, "keeps", {}, WITH_TOKEN)
        await peer.answer(1)
        ctx = kept[0]
        assert (ctx.request_id, ctx.wants_progress, ctx.server, ctx.ended) == (1, True, app, True)
        ctx.progress(1)
        ctx.log("late", "error")
        assert peer.said == []
        peer.close()

    in_loop(run)


def test_a_context_of_a_coroutine_that_waits_is_notified_of_the_cancellation() -> None:
    async def run() -> None:
        app = Server("t")
        kept: list[Context] = []

        @app.tool
        async def waits(ctx: Context) -> str:
            kept.append(ctx)
            await asyncio.sleep(20)
            return "late"

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        peer.call(1, "waits", {})
        assert (kept[0].cancelled, app.runtime.calls.count, peer.handed_on) == (False, 1, 0)
        peer.say({"method": "notifications/cancelled", "params": {"requestId": 1}})
        assert kept[0].cancelled
        while app.runtime.calls.count:
            await asyncio.sleep(0)
        assert peer.answers == {}
        peer.close()

    in_loop(run)


def test_a_request_that_brings_answers_goes_through_the_dispatcher() -> None:
    async def run() -> None:
        app = tools()
        peer = RawConversation(app, STATELESS)
        peer.call(1, "facts", {"text": "x" * 70_000})
        assert len((await peer.answer(1))["result"]["structuredContent"]["text"]) == 70_000
        peer.call(2, "asks", {})
        state = (await peer.answer(2))["result"]
        assert peer.handed_on == 0
        (key,) = state["inputRequests"]
        message = {
            "id": 3,
            "method": "tools/call",
            "params": {
                "name": "asks",
                "arguments": {},
                "_meta": ENVELOPE,
                "requestState": state.get("requestState"),
                "inputResponses": {key: {"action": "accept", "content": {"value": 3}}},
            },
        }
        if message["params"]["requestState"] is None:  # type: ignore[index]
            del message["params"]["requestState"]  # type: ignore[attr-defined]
        peer.say(message)
        assert (await peer.answer(3))["result"]["content"][0]["text"] == "accept"
        assert peer.handed_on == 1
        peer.close()

    in_loop(run)


def test_a_context_that_waits_for_the_next_call_does_not_keep_the_connection_of_the_last_one() -> None:
    async def run() -> None:
        app = Server("t")

        @app.tool(run="inline")
        def act(ctx: Context) -> str:
            return "done"

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        peer.call(1, "act", {})
        await peer.answer(1)
        dispatcher = weakref.ref(peer.dispatcher)
        peer.close()
        peer.dispatcher.close()
        del peer
        gc.collect()
        assert dispatcher() is None

    in_loop(run)


def test_a_context_made_by_hand_takes_its_channel_by_the_former_name_too() -> None:
    channel: Any = type("Channel", (), {"principal": "ada"})()
    assert Context(outbound_channel=channel).principal == "ada"
    with pytest.warns(DeprecationWarning, match="link= is called outbound_channel= now") as warned:
        assert Context(link=channel).principal == "ada"
    assert warned[0].filename == __file__

"""Progress: tokens, the pace, the order, the end, and what each version knows of it."""

from __future__ import annotations

import asyncio
import logging
import os
import runpy
import threading
import time
from decimal import Decimal
from typing import Any

import pytest
from conftest import REPOSITORY
from support.in_memory import SECONDS, with_client
from support.loop_clock import LoopClock
from support.waiting import until

from fastrpc import Context, Server
from fastrpc.engine import outbound_channel
from fastrpc.engine.outbound_channel import BURST
from fastrpc.protocol.versions import SESSION_VERSIONS, VERSIONS
from fastrpc.testing import Client

EXAMPLE = os.path.join(REPOSITORY, "examples", "progress.py")


def steps(app: Server, numbers: Any, pause: float = 0.0) -> None:
    """Add the tools `inline`, `thread` and `async` that report these numbers."""

    def report(ctx: Context) -> str:
        for number in numbers:
            ctx.progress(number, 100, f"at {number}")
            if pause:
                time.sleep(pause)
        return "done"

    async def report_async(ctx: Context) -> str:
        for number in numbers:
            await ctx.progress(number, total=100, message=f"at {number}")
            if pause:
                await asyncio.sleep(pause)
        return "done"

    app.add_tool(report, name="inline", run="inline")
    app.add_tool(report, name="thread", run="thread")
    app.add_tool(report_async, name="async")


WAYS = ["inline", "thread", "async"]


@pytest.mark.parametrize("token", ["t", "", 0, -1, 7, 2**53, "7", "漢"])
@pytest.mark.parametrize("version", VERSIONS)
def test_the_token_comes_back_as_it_was(version: str, token: Any) -> None:
    app = Server("t")
    steps(app, [1])

    async def conversation(client: Client) -> None:
        for way in WAYS:
            client.progress.clear()
            params = {"name": way, "arguments": {}, "_meta": {"progressToken": token}}
            await client.request("tools/call", params)
            (report,) = client.progress
            assert report["progressToken"] == token
            assert type(report["progressToken"]) is type(token)

    with_client(app, conversation, version=version)


@pytest.mark.parametrize("token", [None, True, 1.5, [1], {"a": 1}])
def test_what_is_no_token_is_no_wish_for_progress(token: Any) -> None:
    app = Server("t")
    steps(app, [1])

    async def conversation(client: Client) -> None:
        for way in WAYS:
            params = {"name": way, "arguments": {}, "_meta": {"progressToken": token}}
            assert (await client.request("tools/call", params))["content"][0]["text"] == "done"
        assert client.notifications == []

    with_client(app, conversation)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("version", VERSIONS)
def test_a_message_is_sent_in_versions_that_know_it(version: str, way: str) -> None:
    app = Server("t")
    steps(app, [50, 100])

    async def conversation(client: Client) -> None:
        reports: list[dict[str, Any]] = []
        await client.call(way, on_progress=reports.append)
        assert [report["progress"] for report in reports] == [50, 100]
        assert {report["total"] for report in reports} == {100}
        said = [report.get("message") for report in reports]
        assert said == ([None, None] if version == SESSION_VERSIONS[0] else ["at 50", "at 100"])

    with_client(app, conversation, version=version)


@pytest.mark.parametrize("way", WAYS)
def test_progress_only_grows(way: str) -> None:
    app = Server("t")
    steps(app, [1, 2, 2, 1, -5, 2.5, 3])

    async def conversation(client: Client) -> None:
        reports: list[dict[str, Any]] = []
        await client.call(way, on_progress=reports.append)
        assert [report["progress"] for report in reports] == [1, 2, 2.5, 3]

    with_client(app, conversation)


@pytest.mark.parametrize("way", WAYS)
def test_a_flood_is_thinned_out_and_its_last_report_arrives_before_the_answer(way: str) -> None:
    app = Server("t")
    steps(app, range(20_000))

    async def conversation(client: Client) -> None:
        began = time.monotonic()
        reports: list[dict[str, Any]] = []
        _, future = client.begin(
            "tools/call", {"name": way, "arguments": {}, "_meta": {"progressToken": "flood"}}
        )
        future.add_done_callback(lambda _: reports.extend(client.progress))
        await future
        took = time.monotonic() - began
        await asyncio.sleep(0.1)
        assert reports == client.progress
        assert reports[-1]["progress"] == 19_999
        assert BURST < len(reports) <= BURST + 15 * took + 2

    with_client(app, conversation)


@pytest.mark.alone
@pytest.mark.parametrize("way", ["thread", "async"])
def test_in_no_second_more_than_20_reports_are_sent(way: str) -> None:
    app = Server("t")
    steps(app, range(700), pause=0.002)
    times: list[float] = []

    async def conversation(client: Client) -> None:
        await client.call(way, on_progress=lambda _: times.append(time.monotonic()))

    with_client(app, conversation)
    *others, _last = times
    for at, began in enumerate(others):
        assert sum(moment - began < 0.999 for moment in others[at:]) <= 20
    assert len(others) >= 15


@pytest.mark.parametrize("way", ["thread", "async"])
def test_totals_that_are_reached_again_and_again_keep_to_the_pace(way: str) -> None:
    app = Server("t")

    def report(ctx: Context) -> None:
        for number in range(1, 200):
            ctx.progress(number, number)

    async def report_async(ctx: Context) -> None:
        report(ctx)

    app.add_tool(report, name="thread", run="thread")
    app.add_tool(report_async, name="async")

    async def conversation(client: Client) -> None:
        reports: list[dict[str, Any]] = []
        began = time.monotonic()
        await client.call(way, on_progress=reports.append)
        assert len(reports) <= BURST + 15 * (time.monotonic() - began) + 2
        assert reports[-1]["progress"] == 199

    with_client(app, conversation)


@pytest.mark.parametrize("way", ["thread", "async"])
def test_a_report_that_is_held_back_is_sent_while_the_call_still_works(way: str) -> None:
    app = Server("t")
    go = threading.Event()

    def work(ctx: Context) -> None:
        for number in range(50):
            ctx.progress(number)
        assert go.wait(30)

    async def work_async(ctx: Context) -> None:
        for number in range(50):
            ctx.progress(number)
        while not go.is_set():
            await asyncio.sleep(0.005)

    app.add_tool(work, name="thread", run="thread")
    app.add_tool(work_async, name="async")

    async def conversation(client: Client) -> None:
        reports: list[dict[str, Any]] = []
        call = asyncio.ensure_future(client.call(way, on_progress=reports.append))
        await until(lambda: reports and reports[-1]["progress"] == 49)
        go.set()
        await call

    with_client(app, conversation)


def test_many_threads_of_one_call_keep_the_order() -> None:
    app = Server("t")

    @app.tool(run="thread")
    def work(ctx: Context) -> None:
        def report(first: int) -> None:
            for number in range(first, 4000, 4):
                ctx.progress(number)

        threads = [threading.Thread(target=report, args=(first,)) for first in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        ctx.progress(4000)

    async def conversation(client: Client) -> None:
        reports: list[float] = []
        await client.call("work", on_progress=lambda report: reports.append(report["progress"]))
        assert reports == sorted(set(reports))
        assert reports[-1] == 4000

    with_client(app, conversation)


def test_a_report_of_a_thread_comes_before_what_is_reported_after_it() -> None:
    app = Server("t")

    @app.tool
    async def work(ctx: Context) -> None:
        thread = threading.Thread(target=ctx.progress, args=(1,))
        thread.start()
        thread.join()
        ctx.progress(2)
        await asyncio.sleep(0.01)

    assert reports_of(app) == [1, 2]


def test_a_report_that_a_later_one_of_another_thread_has_overtaken_is_dropped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    app = Server("t")
    has_begun, may_go_on = threading.Event(), threading.Event()
    notification = outbound_channel.notification

    def held(method: str, params: dict[str, Any]) -> bytes:
        if params["progress"] == 1:
            has_begun.set()
            may_go_on.wait(SECONDS)
        return notification(method, params)

    monkeypatch.setattr(outbound_channel, "notification", held)

    @app.tool
    async def work(ctx: Context) -> None:
        thread = threading.Thread(target=ctx.progress, args=(1,))
        thread.start()
        has_begun.wait(SECONDS)
        ctx.progress(2)
        may_go_on.set()
        thread.join()
        await asyncio.sleep(0.01)

    assert reports_of(app) == [2]


def reports_of(app: Server) -> list[float]:
    reports: list[float] = []

    async def conversation(client: Client) -> None:
        await client.call("work", on_progress=lambda report: reports.append(report["progress"]))

    with_client(app, conversation)
    return reports


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (("half",), "TypeError"),
        ((True,), "TypeError"),
        ((None,), "TypeError"),
        ((1, "all"), "TypeError"),
        ((float("nan"),), "ValueError"),
        ((1, float("inf")), "ValueError"),
    ],
)
def test_what_is_no_number_is_the_tools_fault(arguments: Any, kind: str, way: str) -> None:
    app = Server("t")

    def work(ctx: Context) -> None:
        ctx.progress(*arguments)

    async def work_async(ctx: Context) -> None:
        ctx.progress(*arguments)

    app.add_tool(work, name="inline", run="inline")
    app.add_tool(work, name="thread", run="thread")
    app.add_tool(work_async, name="async")

    async def conversation(client: Client) -> None:
        reports: list[dict[str, Any]] = []
        result = await client.call(way, on_progress=reports.append)
        assert result.is_error
        assert result.text.startswith(kind)
        assert reports == []

    with_client(app, conversation)


def test_numbers_of_other_libraries_and_odd_messages_are_sent() -> None:
    app = Server("t")

    @app.tool(run="inline")
    def work(ctx: Context) -> None:
        ctx.progress(Decimal("1.5"), Decimal(3), "half \ud800")  # type: ignore[arg-type]
        ctx.progress(2**70)

    async def conversation(client: Client) -> None:
        reports: list[dict[str, Any]] = []
        await client.call("work", on_progress=reports.append)
        assert [report["progress"] for report in reports] == [1.5, 2**70]
        assert reports[0]["total"] == 3
        assert reports[0]["message"] == "half \\ud800"

    with_client(app, conversation)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_cancelled_call_reports_nothing_more(version: str) -> None:
    app = Server("t")
    over = threading.Event()

    @app.tool(run="thread")
    def stubborn(ctx: Context) -> None:
        number = 0
        while not ctx.cancelled:
            ctx.progress(number := number + 1)
            time.sleep(0.001)
        for more in range(100):
            ctx.progress(number + more)
        over.set()

    async def conversation(client: Client) -> None:
        params = {"name": "stubborn", "arguments": {}, "_meta": {"progressToken": "p"}}
        id, _ = client.begin("tools/call", params)
        while len(client.progress) < 7:
            await asyncio.sleep(0.005)
        client.cancel(id)
        told = len(client.progress)
        while not over.is_set():
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.15)
        assert len(client.progress) == told

    with_client(app, conversation, version=version)


def test_a_call_that_is_stopped_by_its_time_limit_reports_nothing_after_the_answer() -> None:
    app = Server("t")
    over = threading.Event()

    @app.tool(run="thread", timeout_seconds=20)
    def slow(ctx: Context) -> None:
        number = 0
        while not ctx.cancelled:
            ctx.progress(number := number + 1)
            time.sleep(0.005)
        for more in range(50):
            ctx.progress(number + more)
        over.set()

    async def conversation(client: Client) -> None:
        clock, reports = LoopClock(), list[dict[str, Any]]()
        call = asyncio.ensure_future(client.call("slow", on_progress=reports.append))
        await until(lambda: reports)
        clock.advance(21)
        assert (await call).is_error
        told = len(reports)
        while not over.is_set():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        assert len(client.progress) == told

    with_client(app, conversation)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_example_does_what_it_says(version: str) -> None:
    app = runpy.run_path(EXAMPLE)["app"]

    async def conversation(client: Client) -> None:
        reports: list[dict[str, Any]] = []
        assert (await client.call("bake", on_progress=reports.append, loaves=3)).text == "3 loaves"
        assert [report["progress"] for report in reports] == [0, 1, 2, 3]
        assert (await client.call("grind", on_progress=reports.append, sacks=2)).text == "2 sacks"
        assert reports[-1]["progress"] == 2
        assert (await client.call("sell", loaves=12)).text == "sold"
        assert [(log["level"], log["data"], log["logger"]) for log in client.logs] == [
            ("debug", {"sack": 0, "weight": 50}, "mill"),
            ("debug", {"sack": 1, "weight": 50}, "mill"),
            ("info", "2 sacks ground", "mill"),
            ("warning", "12 loaves in one go", "shop"),
            ("info", "sold 12", "shop"),
        ]

    try:
        with_client(app, conversation, version=version, log_level="debug")
    finally:
        for handler in list(logging.getLogger("shop").handlers):
            handler.close()
            logging.getLogger("shop").removeHandler(handler)

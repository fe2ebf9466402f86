"""Observers of a mounted server see the calls of its handlers, whichever server they come through."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator
from support.in_memory import RawConversation, in_loop

from fastrpc import CallInfo, CallRecord, Server, ToolError
from fastrpc._core.recorder import Recorder
from fastrpc.protocol.versions import STATELESS
from fastrpc.testing import Client

Seen = list[tuple[str, str, str]]
"""Kind, name and outcome of each call."""


def leave(number: int) -> int:
    raise SystemExit(3)


def watched(server: Server) -> Seen:
    """What an observer of a server sees from here on."""
    seen: Seen = []
    server.observe(lambda records: seen.extend((each.kind, each.name, each.outcome) for each in records))
    return seen


def two_mounted(note: Callable[[Any], str]) -> tuple[Server, Server, Server]:
    """Two servers whose templates fit alike, the first of which calls `note`, and one that mounts both."""
    one, other, outer = Server("one"), Server("other"), Server("outer")
    one.resource("notes://{number}")(note)

    @other.resource("notes://{name}")
    def named(name: str) -> str:
        return "other"

    outer.mount(one)
    outer.mount(other)
    return one, other, outer


def shop(name: str = "shop") -> Server:
    """A server with one handler of each kind and each way of running."""
    app = Server(name)

    @app.tool(run="inline")
    def plain(number: int) -> int:
        if number < 0:
            raise ToolError("negative")
        return number

    @app.tool
    async def waits() -> str:
        await asyncio.sleep(0)
        return "x"

    @app.tool(run="thread")
    def runs_on_a_thread() -> str:
        return "x"

    @app.prompt
    def review(code: str) -> str:
        return code

    app.add_resource("docs://guide", "text")

    @app.resource("notes://{number}")
    def note(number: int) -> str:
        return str(number)

    @app.resources("db")
    class Pages:
        def read(self, uri: str) -> str:
            return uri

    return app


async def failing(awaitable: Any) -> None:
    try:
        await awaitable
    except Exception:
        pass


async def call_all(app: Server, prefix: str = "") -> None:
    """Call each handler of a `shop` in a server where it is mounted."""
    async with Client(app, version=STATELESS) as client:
        await client.call(f"{prefix}plain", number=1)
        await client.call(f"{prefix}plain", number=-1)
        await client.call(f"{prefix}plain", number="many")
        await client.call(f"{prefix}waits")
        await client.call(f"{prefix}runs_on_a_thread")
        await client.prompt(f"{prefix}review", code="a")
        await client.read("docs://guide")
        await client.read("notes://5")
        await failing(client.read("notes://five"))
        await client.read("db://page")
    app.drain_observers()


def all_calls(prefix: str = "") -> Seen:
    return [
        ("tool", f"{prefix}plain", "ok"),
        ("tool", f"{prefix}plain", "tool_error"),
        ("tool", f"{prefix}plain", "invalid"),
        ("tool", f"{prefix}waits", "ok"),
        ("tool", f"{prefix}runs_on_a_thread", "ok"),
        ("prompt", f"{prefix}review", "ok"),
        ("resource", "docs://guide", "ok"),
        ("resource", "notes://5", "ok"),
        ("resource", "notes://five", "invalid"),
        ("resource", "db://page", "ok"),
    ]


@pytest.mark.parametrize("outer_is_observed", [False, True])
@pytest.mark.parametrize("when", ["before it is mounted", "behind that", "while it is served"])
def test_observers_of_a_mounted_server_see_its_calls_by_its_own_names(
    when: str, outer_is_observed: bool
) -> None:
    async def run() -> None:
        inner, outer = shop(), Server("outer")
        outer_seen = watched(outer) if outer_is_observed else None
        if when == "before it is mounted":
            seen = watched(inner)
        outer.mount(inner, "in")
        if when == "behind that":
            seen = watched(inner)
        if when == "while it is served":
            await call_all(outer, "in_")
            seen = watched(inner)
            if outer_seen is not None:
                outer_seen.clear()
        await call_all(outer, "in_")
        assert seen == all_calls()
        assert outer_seen in (None, all_calls("in_"))

    asyncio.run(run())


def test_a_server_that_is_mounted_while_its_host_is_served_is_observed_too() -> None:
    async def run() -> None:
        inner, outer = shop(), Server("outer")
        seen = watched(inner)
        async with Client(outer, version=STATELESS) as client:
            await client.tools()
            outer.mount(inner, "in")
            await client.call("in_plain", number=1)
        outer.drain_observers()
        assert seen == [("tool", "plain", "ok")]

    asyncio.run(run())


def test_notes_of_a_server_that_is_mounted_while_its_host_is_served_are_shown() -> None:
    async def run() -> None:
        inner, outer = shop(), Server("outer")
        inner.set_note(lambda: ["remember"])
        async with Client(outer, version=STATELESS) as client:
            await client.tools()
            outer.mount(inner, "in")
            assert (await client.call("in_plain", number=1)).text == "1\nremember"

    asyncio.run(run())


def test_each_server_of_a_nest_has_its_own_name_for_a_call() -> None:
    leaf, middle, outer = shop("leaf"), Server("middle"), Server("outer")
    middle.mount(leaf, "leaf")
    outer.mount(middle, "mid")
    seen = {server.name: watched(server) for server in (leaf, middle, outer)}
    asyncio.run(call_all(outer, "mid_leaf_"))
    assert seen == {
        "leaf": all_calls(),
        "middle": all_calls("leaf_"),
        "outer": all_calls("mid_leaf_"),
    }


def test_only_the_innermost_server_of_a_nest_may_be_observed() -> None:
    leaf, middle, outer = shop("leaf"), Server("middle"), Server("outer")
    middle.mount(leaf, "leaf")
    outer.mount(middle, "mid")
    seen = watched(leaf)
    asyncio.run(call_all(outer, "mid_leaf_"))
    assert seen == all_calls()


def test_a_server_that_is_mounted_twice_sees_each_call_once() -> None:
    async def run() -> None:
        inner, outer, other = Server("inner"), Server("outer"), Server("other")
        inner.add_tool(lambda: "x", name="x", run="inline")
        outer.mount(inner, "a")
        outer.mount(inner, "b")
        other.mount(inner)
        seen, outer_seen = watched(inner), watched(outer)
        for app, names in ((outer, ["a_x", "b_x"]), (other, ["x"]), (inner, ["x"])):
            async with Client(app) as client:
                for name in names:
                    await client.call(name)
            app.drain_observers()
        assert seen == [("tool", "x", "ok")] * 4
        assert outer_seen == [("tool", "a_x", "ok"), ("tool", "b_x", "ok")]

    asyncio.run(run())


def test_a_call_that_the_guard_of_the_host_refuses_is_seen_and_one_of_no_handler_is_not() -> None:
    async def run() -> None:
        inner, outer = shop(), Server("outer")
        outer.mount(inner, "in")
        outer.add_tool(lambda: "x", name="own", run="inline")
        outer.add_resource("own://a", "text")
        seen, outer_seen = watched(inner), watched(outer)

        @outer.guard
        def refuse(call: CallInfo) -> None:
            raise ToolError("no")

        async with Client(outer, version=STATELESS) as client:
            await client.call("in_plain", number=1)
            await failing(client.read("docs://guide"))
            await client.call("own")
            await failing(client.call("in_nothing"))
            await failing(client.call("plain"))
            await failing(client.read("own://a"))
            await failing(client.read("nothing://a"))
        outer.drain_observers()
        assert seen == [("tool", "plain", "refused"), ("resource", "docs://guide", "refused")]
        assert len(outer_seen) == 7

    asyncio.run(run())


def test_of_templates_that_fit_alike_the_one_that_was_read_is_observed() -> None:
    async def run() -> None:
        def note(number: int) -> str:
            return "one"

        one, other, outer = two_mounted(note)
        seen = {server.name: watched(server) for server in (one, other)}
        async with Client(outer, version=STATELESS) as client:
            assert (await client.read("notes://5")).text == "one"
            assert (await client.read("notes://five")).text == "other"
        outer.drain_observers()
        assert seen == {
            "one": [("resource", "notes://5", "ok")],
            "other": [("resource", "notes://five", "ok")],
        }

    asyncio.run(run())


def test_handlers_that_no_one_observes_keep_plans_without_a_recorder() -> None:
    inner, outer, other = shop(), Server("outer"), Server("other")
    other.add_tool(lambda: "x", name="x", run="inline")
    outer.add_tool(lambda: "x", name="own", run="inline")
    outer.mount(inner, "in")
    outer.mount(other, "other")
    assert all(plan.recorder is None for plan in outer.runtime.plans.tools.values())
    watched(inner)
    recorded = {name for name, plan in outer.runtime.plans.tools.items() if plan.recorder is not None}
    assert recorded == {"in_plain", "in_waits", "in_runs_on_a_thread"}


def test_the_records_of_a_mounted_server_differ_in_their_name_alone() -> None:
    inner, outer = Server("inner"), Server("outer")
    inner.add_tool(lambda: "x", name="x", run="inline")
    outer.mount(inner, "in")
    found: dict[str, list[CallRecord]] = {"inner": [], "outer": []}
    inner.observe(found["inner"].extend)
    outer.observe(found["outer"].extend)

    async def run() -> None:
        peer = RawConversation(outer, STATELESS)
        peer.dispatcher.principal = "ada"
        peer.call(7, "in_x", {})
        await peer.answer(7)
        peer.close()

    in_loop(run)
    outer.drain_observers()
    (mine,), (theirs,) = found["inner"], found["outer"]
    members = [name for name in dir(theirs) if not name.startswith("_") and name not in ("name", "renamed")]
    assert {name: getattr(mine, name) for name in members} == {
        name: getattr(theirs, name) for name in members
    }
    assert (mine.name, theirs.name, mine.principal) == ("x", "in_x", "ada")


def test_a_record_can_be_renamed() -> None:
    recorder = Recorder()
    recorder.write("prompt", "a", b"1", "", "ok", 1, 2, 3, 4, 5)
    (record,) = recorder.drain()
    renamed = record.renamed("b")
    assert (record.name, renamed.name, renamed.kind, renamed.size) == ("a", "b", "prompt", 5)
    with pytest.raises(TypeError):
        record.renamed(None)


def test_draining_a_mounted_server_drains_where_it_is_mounted() -> None:
    inner, outer = shop(), Server("outer")
    outer.mount(inner, "in")
    seen = watched(inner)

    async def run() -> None:
        async with Client(outer) as client:
            await client.call("in_plain", number=1)
            inner.drain_observers()
            assert seen == [("tool", "plain", "ok")]

    asyncio.run(run())


def test_an_observer_is_called_by_one_thread_at_a_time_whichever_server_is_called() -> None:
    inner, outer = shop(), Server("outer")
    outer.mount(inner, "in")
    inside = threading.Lock()
    overlaps: list[bool] = []
    count = 0

    @inner.observe
    def note(records: list[CallRecord]) -> None:
        nonlocal count
        overlaps.append(not inside.acquire(blocking=False))
        count += len(records)
        if not overlaps[-1]:
            inside.release()

    async def run() -> None:
        async with Client(outer) as client, Client(inner) as direct:
            for _ in range(20):
                await client.call("in_plain", number=1)
                await direct.call("plain", number=1)
                threads = [threading.Thread(target=server.drain_observers) for server in (outer, inner)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()

    asyncio.run(run())
    assert count == 40
    assert not any(overlaps)


def test_an_observer_of_a_mounted_server_that_fails_stops_no_other() -> None:
    inner, outer = shop(), Server("outer")
    outer.mount(inner, "in")
    failed: list[CallRecord] = []

    @inner.observe
    def fails(records: list[CallRecord]) -> None:
        failed.extend(records)
        raise ValueError("broken observer")

    seen, outer_seen = watched(inner), watched(outer)
    asyncio.run(call_all(outer, "in_"))
    assert (seen, outer_seen) == (all_calls(), all_calls("in_"))
    assert len(failed) == len(seen)


def test_statistics_of_the_host_count_by_the_names_that_clients_call(capfd: Any) -> None:
    inner, outer = shop(), Server("outer")
    outer.mount(inner, "in")
    watched(inner)
    report = outer.print_statistics()
    asyncio.run(call_all(outer, "in_"))
    report.end()
    printed = capfd.readouterr().err
    assert f"calls: {len(all_calls())} " in printed
    assert "in_plain" in printed
    assert not [line for line in printed.splitlines() if line.split()[:2] == ["tool", "plain"]]


def test_requests_that_name_nothing_or_what_no_uri_is_stop_nothing() -> None:
    async def run() -> None:
        inner, outer = shop(), Server("outer")
        outer.mount(inner, "in")
        seen, outer_seen = watched(inner), watched(outer)
        async with Client(outer, version=STATELESS) as client:
            for uri in ("", "://", "notes://%", "db://" + "x" * 1000, 5, None):
                await failing(client.request("resources/read", {"uri": uri}))
            await failing(client.request("tools/call", {"name": 5}))
            await failing(client.request("prompts/get", {}))
            await client.call("in_plain", number=1)
        outer.drain_observers()
        assert [call for call in seen if call[2] == "ok"] == [
            ("resource", "db://" + "x" * 194 + "…", "ok"),
            ("tool", "plain", "ok"),
        ]
        assert len(outer_seen) >= 9

    asyncio.run(run())


def test_a_type_of_an_argument_that_fails_where_templates_are_distinguished_stops_nothing() -> None:
    async def run() -> None:
        def note(number: Annotated[int, AfterValidator(leave)]) -> str:
            return "one"

        one, _, outer = two_mounted(note)
        seen, outer_seen = watched(one), watched(outer)
        async with Client(outer, version=STATELESS) as client:
            await failing(client.read("notes://5"))
        outer.drain_observers()
        assert len(outer_seen) == 1
        assert seen == outer_seen

    asyncio.run(run())

"""One record for each call, that says what its client saw: every outcome, however the handler runs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from support.in_memory import ENVELOPE, RawConversation, in_loop

from fastrpc import CallInfo, CallRecord, Context, Server, ToolError, ToolResult
from fastrpc._core.recorder import OUTCOMES, Recorder
from fastrpc.errors import InternalError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

LONGEST_ID, LONGEST_NAME = 256, 200
WAYS = ("inline", "context", "hooked", "coroutine", "waiting", "thread")


def behave(how: str) -> Any:
    """What every tool of this file does, by its argument."""
    if how == "refuses":
        raise ToolError("no")
    if how == "fails":
        raise ValueError("broken")
    if how == "says so":
        return ToolResult("no", is_error=True)
    if how == "unencodable":
        return object()
    if how == "protocol":
        raise InternalError("not today")
    return how


def app_of(way: str, woken: threading.Event | None = None) -> tuple[Server, list[CallRecord]]:
    """A server with one tool `act`, and the records of its calls; `sleeps` ends when `woken` is set, and
    its time is then short."""
    seconds = 60 if woken is None else 0.05
    app = Server("t", max_in_flight=1)
    if way == "coroutine":

        @app.tool
        async def act(how: str, times: int = 1) -> Any:
            return behave(how)
    elif way == "waiting":

        @app.tool(timeout_seconds=seconds)
        async def act(how: str, times: int = 1) -> Any:
            await asyncio.sleep(30 if how == "sleeps" else 0)
            return behave(how)
    elif way == "context":

        @app.tool(run="inline")
        def act(how: str, ctx: Context, times: int = 1) -> Any:
            return behave(how)
    elif way == "thread":

        @app.tool(run="thread", timeout_seconds=seconds)
        def act(how: str, times: int = 1) -> Any:
            if how == "sleeps" and woken is not None:
                woken.wait(30)
            return behave(how)
    else:

        @app.tool(run="inline")
        def act(how: str, times: int = 1) -> Any:
            return behave(how)

        if way == "hooked":
            app.before(lambda call: None)

    @app.guard
    def decide(call: CallInfo) -> None:
        if call.arguments.get("how") == "forbidden":
            raise ToolError("you may not")

    records: list[CallRecord] = []
    app.observe(records.extend)
    return app, records


EXPECTED = {
    "ok": "ok",
    "refuses": "tool_error",
    "fails": "tool_error",
    "says so": "tool_error",
    "unencodable": "encoding_error",
    "protocol": "protocol_error",
    "forbidden": "refused",
}


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("way", WAYS)
def test_each_call_has_one_record_that_says_what_the_client_saw(way: str, version: str) -> None:
    async def run() -> None:
        app, records = app_of(way)
        peer = RawConversation(app, version)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        for id, (how, outcome) in enumerate(EXPECTED.items()):
            peer.call(id, "act", {"how": how})
            answer = await peer.answer(id)
            app._observers.drain()
            (record,) = records
            assert (record.kind, record.name, record.id) == ("tool", "act", b"%d" % id)
            assert (how, record.outcome) == (how, outcome)
            assert is_error(answer) == (outcome != "ok")
            assert record.total_us > 0
            assert record.size == len(peer.answers[id]) + 1  # and the newline
            records.clear()
        peer.close()

    in_loop(run)


def is_error(answer: Any) -> bool:
    return "error" in answer or answer["result"]["isError"]


@pytest.mark.parametrize("way", WAYS)
def test_calls_that_never_reach_their_function_have_a_record_too(way: str) -> None:
    async def run() -> None:
        app, records = app_of(way)
        peer = RawConversation(app, LATEST_SESSION_VERSION)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        peer.call(1, "act", {})
        peer.call(2, "act", {"how": "ok", "times": "many"})
        peer.call(3, "axe", {"how": "ok"})
        for id in (1, 2, 3):
            await peer.answer(id)
        app._observers.drain()
        found = [(record.name, record.id, record.outcome) for record in records]
        assert found == [("act", b"1", "invalid"), ("act", b"2", "invalid"), ("axe", b"3", "unknown")]
        peer.close()

    in_loop(run)


def first_of(place: str) -> str:
    return place[:2]


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("way", WAYS)
def test_a_record_is_short_however_long_a_clients_ids_and_names_are(way: str, version: str) -> None:
    long = "x" * 100_000

    async def run() -> None:
        app, records = app_of(way)
        app.resource("at://{+place}")(first_of)
        peer = RawConversation(app, version)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        for number in range(3):  # the last ones are like the first
            peer.call(f"{number}{long}", "act", {"how": "ok"})
            assert (await peer.answer(f"{number}{long}"))["result"]["content"][0]["text"] == "ok"
        peer.call(1, long, {})
        await peer.answer(1)
        meta = {"_meta": ENVELOPE} if version == STATELESS else {}
        peer.say(
            {
                "jsonrpc": "2.0",
                "id": 2,
                "method": "resources/read",
                "params": {"uri": f"at://{long[:16_000]}", **meta},
            }
        )
        assert (await peer.answer(2))["result"]["contents"][0]["text"] == "xx"
        app._observers.drain()
        assert [record.outcome for record in records] == ["ok", "ok", "ok", "unknown", "ok"]
        assert [record.id[:3] for record in records] == [b'"0x', b'"1x', b'"2x', b"1", b"2"]
        assert max(len(record.id) for record in records) == LONGEST_ID
        assert max(len(record.name) for record in records) == LONGEST_NAME
        peer.close()

    in_loop(run)


async def until_idle(app: Server, woken: threading.Event) -> None:
    """Wait for what still runs: a thread is not interrupted, it ends when its function does."""
    woken.set()
    while app.busy:
        await asyncio.sleep(0.01)
    woken.clear()


@pytest.mark.parametrize("way", ["waiting", "thread"])
def test_a_call_that_takes_too_long_or_is_cancelled_or_one_too_many_says_so(way: str) -> None:
    async def run() -> None:
        woken = threading.Event()
        app, records = app_of(way, woken)
        peer = RawConversation(app, LATEST_SESSION_VERSION)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        peer.call(1, "act", {"how": "sleeps"})
        peer.call(2, "act", {"how": "ok"})
        assert (await peer.answer(2))["error"]["data"] == {"maxInFlight": 1}
        assert "did not end" in (await peer.answer(1))["result"]["content"][0]["text"]
        await until_idle(app, woken)
        peer.call(3, "act", {"how": "sleeps"})
        peer.say({"method": "notifications/cancelled", "params": {"requestId": 3}})
        await until_idle(app, woken)
        app._observers.drain()
        found = [(record.id, record.outcome) for record in records]
        assert found == [(b"2", "overloaded"), (b"1", "timeout"), (b"3", "cancelled")]
        assert records[1].run_us > 40_000
        peer.close()

    in_loop(run)


def test_resources_and_prompts_are_recorded_and_other_requests_are_not() -> None:
    app = Server("t")
    app.add_resource("docs://a", "text")

    @app.prompt
    def write(about: str) -> str:
        return about

    records: list[CallRecord] = []
    app.observe(records.extend)

    async def run() -> None:
        peer = RawConversation(app, STATELESS)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        meta = {"_meta": ENVELOPE}
        asked = [
            ("resources/read", {"uri": "docs://a"}),
            ("resources/read", {"uri": "docs://b"}),
            ("prompts/get", {"name": "write", "arguments": {"about": "x"}}),
            ("prompts/get", {"name": "write", "arguments": {}}),
            ("prompts/get", {"name": "draw"}),
            ("tools/list", {}),
        ]
        for id, (method, params) in enumerate(asked):
            peer.say({"id": id, "method": method, "params": {**params, **meta}})
            await peer.answer(id)
        app._observers.drain()
        peer.close()

    in_loop(run)
    assert [(record.kind, record.name, record.outcome) for record in records] == [
        ("resource", "docs://a", "ok"),
        ("resource", "docs://b", "unknown"),
        ("prompt", "write", "ok"),
        ("prompt", "write", "invalid"),
        ("prompt", "draw", "unknown"),
    ]


def test_a_call_of_what_is_mounted_is_recorded_by_both_servers_by_the_names_that_each_has() -> None:
    inner, outer = Server("inner"), Server("outer")
    inner.add_tool(lambda: "x", name="x", run="inline")
    inner.add_resource("docs://a", "text")
    outer.mount(inner, "in")
    seen: dict[str, list[CallRecord]] = {"inner": [], "outer": []}
    inner.observe(seen["inner"].extend)
    outer.observe(seen["outer"].extend)

    async def run() -> None:
        for app, name in ((outer, "in_x"), (inner, "x")):
            peer = RawConversation(app, STATELESS)
            peer.dispatcher.loop_runs(asyncio.get_running_loop())
            peer.call(1, name, {})
            await peer.answer(1)
            peer.say(
                {
                    "jsonrpc": "2.0",
                    "id": 2,
                    "method": "resources/read",
                    "params": {"uri": "docs://a", "_meta": ENVELOPE},
                }
            )
            await peer.answer(2)
            app._observers.drain()
            peer.close()

    in_loop(run)
    found = {name: [(each.kind, each.name) for each in records] for name, records in seen.items()}
    assert found == {
        "outer": [("tool", "in_x"), ("resource", "docs://a")],
        "inner": [("tool", "x"), ("resource", "docs://a")] * 2,
    }


OUTCOMES_BESIDE_TOOLS = {key: value for key, value in EXPECTED.items() if key != "says so"}


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("way", ["inline", "context", "coroutine", "waiting", "thread"])
def test_each_resource_and_prompt_has_one_record_that_says_what_the_client_saw(
    way: str, version: str
) -> None:
    app = Server("t")
    if way in ("inline", "thread"):

        def act(how: str) -> Any:
            return behave(how)
    elif way == "context":

        def act(how: str, ctx: Context) -> Any:  # type: ignore[misc]
            return behave(how)
    else:

        async def act(how: str) -> Any:  # type: ignore[misc]
            await asyncio.sleep(0) if way == "waiting" else None
            return behave(how)

    run_as: Any = (
        {"run": way if way == "thread" else "inline"} if way in ("inline", "context", "thread") else {}
    )
    app.resource("docs://{how}", **run_as)(act)
    app.prompt(name="act", **run_as)(act)

    @app.guard
    def decide(call: CallInfo) -> None:
        if call.arguments.get("how") == "forbidden":
            raise ToolError("you may not")

    records: list[CallRecord] = []
    app.observe(records.extend)

    async def run() -> None:
        peer = RawConversation(app, version)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        meta = {"_meta": ENVELOPE} if version == STATELESS else {}
        id = 0
        for how, outcome in OUTCOMES_BESIDE_TOOLS.items():
            for kind, name, method, params in (
                ("resource", f"docs://{how}", "resources/read", {"uri": f"docs://{how}"}),
                ("prompt", "act", "prompts/get", {"name": "act", "arguments": {"how": how}}),
            ):
                id += 1
                peer.say({"id": id, "method": method, "params": {**params, **meta}})
                answer = await peer.answer(id)
                app._observers.drain()
                (record,) = records
                assert (record.kind, record.name, record.outcome) == (kind, name, outcome)
                assert record.size == len(peer.answers[id]) + 1
                assert ("error" in answer) == (outcome != "ok")
                records.clear()
        peer.close()

    in_loop(run)


def test_a_full_ring_counts_what_does_not_fit_and_goes_on() -> None:
    calls: list[int] = []
    recorder = Recorder(4, lambda: calls.append(1))

    def write(id: int) -> None:
        recorder.write("tool", "t", b"%d" % id, "", "ok", 1, 2, 3, 4, 5)

    for id in range(7):
        write(id)
    assert recorder.dropped == 3
    assert [record.id for record in recorder.drain(3)] == [b"0", b"1", b"2"]
    write(7)
    assert [record.id for record in recorder.drain()] == [b"3", b"7"]
    assert recorder.drain() == []
    write(8)
    assert len(calls) == 2  # told once each time that there was nothing before


def test_a_full_ring_may_be_drained_by_who_writes_a_record_and_nothing_is_missing() -> None:
    recorder = Recorder(4)
    seen: list[bytes] = []
    recorder.on_full = lambda: seen.extend(record.id for record in recorder.drain(2))
    for id in range(11):
        recorder.write("tool", "t", b"%d" % id, "", "ok", 1, 2, 3, 4, 5)
    assert recorder.dropped == 0
    recorder.on_full = lambda: None
    for id in range(11, 14):
        recorder.write("tool", "t", b"%d" % id, "", "ok", 1, 2, 3, 4, 5)
    seen += [record.id for record in recorder.drain()]
    assert seen == [b"%d" % id for id in range(12)]
    assert recorder.dropped == 2


def test_observers_get_batches_on_a_thread_of_their_own_and_one_that_fails_is_called_again() -> None:
    import threading

    app = Server("t")
    app.add_tool(lambda: "x", name="x", run="inline")
    batches: list[tuple[str, int]] = []

    @app.observe
    def fail(records: list[CallRecord]) -> None:
        raise ValueError("cannot see")

    app.observe(lambda records: batches.append((threading.current_thread().name, len(records))))

    async def run() -> None:
        peer = RawConversation(app, LATEST_SESSION_VERSION)
        with app._observers._draining:  # the thread waits until all of them are there
            for id in range(10):
                peer.call(id, "x", {})
        while not batches:
            await asyncio.sleep(0.01)
        peer.close()

    in_loop(run)
    assert batches == [("fastrpc-observers", 10)]


def test_the_outcomes_are_those_that_errors_name() -> None:
    from fastrpc import errors

    named = {
        kind.outcome for kind in vars(errors).values() if isinstance(kind, type) and hasattr(kind, "outcome")
    }
    assert named < set(OUTCOMES)

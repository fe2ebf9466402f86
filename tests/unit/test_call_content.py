"""Records with content: what a client has sent and what it was answered, however the handler runs; for an
observer that wants it, and for no other."""

from __future__ import annotations

import asyncio
import json
import threading
from hashlib import sha256
from typing import Any

import pytest
from support.in_memory import ENVELOPE, RawConversation, in_loop

from fastrpc import CallRecord, Context, Server, ToolError
from fastrpc._core.recorder import Recorder
from fastrpc.engine.dispatcher import Dispatcher
from fastrpc.engine.recorded_content import RecordingDispatcher
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

WAYS = ("inline", "context", "progress", "coroutine", "waiting", "waiting with a context", "thread", "hooked")
LARGE = 10**30
SENT = (
    '{ "how" : "ok" }',
    '{"how": "\\u00e9 \\n", "times": 2}',
    '{"how": "refuses"}',
    '{"how": "fails"}',
    '{"how": "structure"}',
    '{"how": "forbidden"}',
    '{"how": 5}',
    f'{{"how": "ok", "times": {LARGE}}}',
    "{}",
    "{ }",
)


class Witness(list[CallRecord]):
    """An observer that wants content."""

    wants_content = True

    def __call__(self, records: list[CallRecord]) -> None:
        self.extend(records)


def behave(how: str) -> Any:
    if how == "refuses":
        raise ToolError("no")
    if how == "fails":
        raise ValueError("broken")
    return {"how": [how]} if how == "structure" else how


def app_of(way: str) -> Server:
    app = Server("t")
    if way in ("inline", "hooked", "thread"):

        @app.tool(run="thread" if way == "thread" else "inline")
        def act(how: str, times: int = 1) -> Any:
            return behave(how)

        if way == "hooked":
            app.before(lambda call: None)
    elif way in ("context", "progress"):

        @app.tool(run="inline")
        def act(how: str, ctx: Context, times: int = 1) -> Any:
            if way == "progress":
                ctx.progress(1, 2)
            return behave(how)
    elif way == "waiting with a context":

        @app.tool
        async def act(how: str, ctx: Context, times: int = 1) -> Any:
            ctx.progress(1, 2)
            await asyncio.sleep(0)
            return behave(how)
    else:

        @app.tool
        async def act(how: str, times: int = 1) -> Any:
            await asyncio.sleep(0) if way == "waiting" else None
            return behave(how)

    @app.guard
    def decide(call: Any) -> None:
        if call.arguments.get("how") == "forbidden":
            raise ToolError("you may not")

    return app


def call_line(id: int, arguments: str, version: str, name: str = "act") -> bytes:
    meta = json.dumps({**(ENVELOPE if version == STATELESS else {}), "progressToken": id})
    params = f'{{"name": "{name}", "arguments": {arguments}, "_meta": {meta}}}'
    return f'{{"jsonrpc": "2.0", "id": {id}, "method": "tools/call", "params": {params}}}'.encode()


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("way", WAYS)
def test_a_record_has_the_arguments_as_they_were_sent_and_the_answer_as_it_went_out(
    way: str, version: str
) -> None:
    async def run() -> None:
        app, seen = app_of(way), Witness()
        app.observe(seen)
        peer = RawConversation(app, version)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        for id, sent in enumerate([*SENT, *SENT]):  # the second time as a line that is known
            peer._transport.send(call_line(id, sent, version))
            await peer.answer(id)
            app._observers.drain()
            (record,) = seen
            assert record.arguments == sent.encode()
            outer = b'{"jsonrpc":"2.0","id":%d,"%b":%b}'
            member = b"error" if b'"error":' in peer.answers[id] else b"result"
            assert peer.answers[id] == outer % (id, member, record.answer)
            seen.clear()
        peer.close()

    in_loop(run)


@pytest.mark.parametrize("way", ["inline", "coroutine", "waiting", "thread"])
def test_each_call_of_a_batch_has_its_own_content(way: str) -> None:
    async def run() -> None:
        app, seen = app_of(way), Witness()
        app.observe(seen)
        lines: list[bytes] = []
        peer = RawConversation(app, "2025-03-26")
        peer._hear = lines.append  # type: ignore[method-assign]
        peer._transport._on_line = lines.append
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        batch = [call_line(id, sent, "2025-03-26") for id, sent in enumerate(SENT)]
        peer._transport.send(b"[" + b",".join(batch) + b"]")
        while not lines:
            await asyncio.sleep(0.002)
        app._observers.drain()
        answers = {each["id"]: each for each in json.loads(lines[0])}
        assert len(seen) == len(SENT)
        for record in seen:
            id = int(record.id)
            assert record.arguments == SENT[id].encode()
            assert json.loads(record.answer) == answers[id].get("result", answers[id].get("error"))
        peer.close()

    in_loop(run)


@pytest.mark.parametrize("way", ["waiting", "thread"])
def test_a_call_that_is_cancelled_has_its_arguments_and_no_answer(way: str) -> None:
    async def run() -> None:
        app, seen, woken = Server("t"), Witness(), threading.Event()
        app.observe(seen)
        if way == "thread":

            @app.tool(run="thread")
            def act(how: str) -> None:
                woken.wait(30)
        else:

            @app.tool
            async def act(how: str) -> None:
                await asyncio.sleep(30)

        peer = RawConversation(app, LATEST_SESSION_VERSION)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        peer._transport.send(call_line(1, '{"how": "x"}', LATEST_SESSION_VERSION))
        peer.say({"method": "notifications/cancelled", "params": {"requestId": 1}})
        woken.set()
        while app.busy:
            await asyncio.sleep(0.002)
        app._observers.drain()
        (record,) = seen
        assert (record.outcome, record.arguments, record.answer) == ("cancelled", b'{"how": "x"}', None)
        peer.close()

    in_loop(run)


def test_resources_prompts_and_what_there_is_not_have_content_too() -> None:
    async def run() -> None:
        app, seen = Server("t"), Witness()
        app.add_resource("docs://a", "text")
        app.observe(seen)

        @app.prompt
        def write(about: str) -> str:
            return about

        peer = RawConversation(app, STATELESS)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        long = "docs://" + "x" * 500
        asked = [("resources/read", {"uri": uri}) for uri in ("docs://a", "docs://a", "docs://a", long)]
        asked += [("prompts/get", {"name": "write", "arguments": {"about": "x"}})] * 3
        asked += [("prompts/get", {"name": "draw"}), ("tools/call", {"name": "none", "arguments": {"a": 1}})]
        for id, (method, params) in enumerate(asked):
            peer.say({"id": id, "method": method, "params": {**params, "_meta": ENVELOPE}})
            await peer.answer(id)
        app._observers.drain()
        arguments = [record.arguments for record in seen]
        assert arguments[:4] == [b"docs://a"] * 3 + [long.encode()]
        assert arguments[4:] == [b'{"about": "x"}'] * 3 + [b"", b'{"a": 1}']
        for id, record in enumerate(seen):
            answer = json.loads(peer.answers[id])
            assert json.loads(record.answer) == answer.get("result", answer.get("error"))
        peer.close()

    in_loop(run)


PARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.mark.parametrize(
    ("parent", "trace"),
    [(PARENT, PARENT[3:35]), ("nonsense", ""), (f"00-{'z' * 32}-b7ad6b7169203331-01", ""), (5, "")],
)
def test_a_record_has_the_trace_id_that_the_request_names(parent: Any, trace: str) -> None:
    async def run() -> None:
        app, seen = app_of("inline"), Witness()
        app.observe(seen)
        peer = RawConversation(app, STATELESS)
        peer.call(1, "act", {"how": "ok"}, {"traceparent": parent})
        await peer.answer(1)
        app._observers.drain()
        assert [record.trace for record in seen] == [trace]
        peer.close()

    in_loop(run)


def test_without_an_observer_that_wants_content_nothing_is_kept() -> None:
    async def run() -> None:
        app, seen = app_of("inline"), []
        app.observe(seen.extend)
        peer = RawConversation(app, LATEST_SESSION_VERSION)
        assert type(peer.dispatcher) is Dispatcher
        peer.call(1, "act", {"how": "ok"})
        await peer.answer(1)
        app._observers.drain()
        assert [(each.arguments, each.answer, each.trace) for each in seen] == [(None, None, "")]
        peer.close()

    in_loop(run)


def test_the_observer_of_a_mounted_server_has_content_and_ends_it_when_it_goes() -> None:
    async def run() -> None:
        inner, outer, seen = app_of("inline"), Server("outer"), Witness()
        outer.mount(inner, "in")
        inner.observe(seen)
        peer = RawConversation(outer, LATEST_SESSION_VERSION)
        assert type(peer.dispatcher) is RecordingDispatcher
        peer._transport.send(call_line(1, '{"how": "ok"}', LATEST_SESSION_VERSION, "in_act"))
        await peer.answer(1)
        outer._observers.drain()
        assert [(each.name, each.arguments) for each in seen] == [("act", b'{"how": "ok"}')]
        inner._observers.remove(seen)
        assert type(outer.connect()) is Dispatcher
        peer.close()

    in_loop(run)


def test_beyond_16_mib_in_the_ring_content_is_hashed_at_once_and_memory_is_free_again_when_drained() -> None:
    recorder = Recorder()
    recorder.keeps_content = True
    text = b"x" * (6 * 1024 * 1024)
    line = call_line(1, '{"how": "ok"}', LATEST_SESSION_VERSION)
    for id in range(4):
        recorder.write("tool", "t", b"%d" % id, "", "ok", 1, 2, 3, 4, 5, line, text)
    assert recorder.content_size == 2 * (len(line) + len(text))
    *whole, first, second = recorder.drain()
    assert [(each.arguments, each.answer == text) for each in whole] == [(b'{"how": "ok"}', True)] * 2
    for each in (first, second):
        for content, (salt, digest) in ((b'{"how": "ok"}', each.arguments), (text, each.answer)):
            assert len(salt) == 16
            assert digest == sha256(salt + content).digest()
    assert first.arguments != second.arguments  # each with a separate salt
    assert recorder.content_size == 0


def test_an_observer_learns_how_many_records_did_not_fit() -> None:
    class Counting(Witness):
        missing = 0

        def missed(self, count: int) -> None:
            self.missing += count

    app, seen = Server("t"), Counting()
    app.observe(seen)
    recorder = app._observers.recorder
    for _ in range(10_000):
        recorder.write("tool", "t", b"1", "", "ok", 1, 2, 3, 4, 5)
    app._observers.drain()
    assert len(seen) + seen.missing == 10_000
    assert seen.missing > 0

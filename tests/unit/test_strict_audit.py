"""The audit mode strict: nothing runs and no answer leaves before its record is on disk, and nothing else
waits for that. The log is a real one; only how long its disk takes is made up."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.guarded import caller_of, policy_of
from support.in_memory import ENVELOPE, RawConversation, in_loop

from fastrpc import Context, Server, ToolError
from fastrpc.guard.audit import AuditLog, segments
from fastrpc.guard.audit.calls import StrictCallAudit
from fastrpc.guard.guard import Guard
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS

POLICY = """
[expose]
tools = ["act", "run_*", "order", "wipe"]
resources = ["*"]
prompts = ["*"]

[defaults]
hide = false

[risk]
"*" = "low"

[[rules]]
id = "small-orders"
tools = ["order"]
when = "args.count > 10"
then = "deny"
"""


def shop(ran: list[str]) -> Server:
    app = Server("shop")

    @app.tool(run="inline")
    def act(how: str = "ok") -> str:
        ran.append(how)
        if how == "refuses":
            raise ToolError("no")
        return how

    @app.tool(run="thread")
    def run_thread(how: str) -> str:
        return how

    @app.tool
    async def run_waiting(how: str, ctx: Context) -> str:
        await asyncio.sleep(0)
        return ctx.protocol_version + how

    @app.tool(run="inline")
    def run_structure(how: str) -> dict[str, str]:
        return {"how": how}

    @app.tool(run="inline")
    def order(count: int) -> str:
        ran.append("ordered")
        return str(count)

    @app.tool(run="inline")
    def hidden() -> str:
        return "never"

    @app.prompt
    def write(about: str) -> str:
        return about

    app.add_resource("docs://a", "text")
    return app


class Strict:
    """A server whose calls are recorded strictly, and its log."""

    def __init__(self, folder: Path) -> None:
        self.ran: list[str] = []
        self.folder = folder / "audit"
        self.log = AuditLog(str(self.folder), mode="strict")
        audit = StrictCallAudit(self.log)
        self.app = shop(self.ran)
        policy = policy_of(folder, POLICY, self.app)
        audit.guard = Guard(policy, caller_of, on_refusal=audit.refused, durable=audit)
        audit.guard.install(self.app)
        self.app.observe(audit)

    def records(self) -> list[dict[str, Any]]:
        """What is in the files now."""
        lines = [
            line
            for path in sorted(self.folder.glob("*.jsonl"))
            for line in path.read_bytes().splitlines(True)
        ]
        return [fields for line in lines if line.endswith(b"\n") and "id" in (fields := json.loads(line))]


@pytest.fixture
def strict(tmp_path: Path) -> Iterator[Strict]:
    found = Strict(tmp_path)
    yield found
    found.log.close()


class SlowDisk:
    """Has each fsync wait until it is let through; counts them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._turns = threading.Semaphore(0)
        self.synced = 0
        sync = segments.OpenSegment.sync

        def slowly(segment: segments.OpenSegment) -> None:
            assert self._turns.acquire(timeout=30)
            sync(segment)
            self.synced += 1

        monkeypatch.setattr(segments.OpenSegment, "sync", slowly)

    def let_through(self, count: int = 1) -> None:
        self._turns.release(count)


async def until(condition: Callable[[], object]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_a_call_runs_when_its_beginning_is_on_disk_and_is_answered_when_its_outcome_is(
    strict: Strict, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> None:
        disk = SlowDisk(monkeypatch)
        peer = RawConversation(strict.app, STATELESS)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        peer.call(1, "act", {"how": "ok"})
        peer.say({"id": 2, "method": "tools/list", "params": {"_meta": ENVELOPE}})
        await peer.answer(2)
        await until(strict.records)  # written, but not surely on disk
        await asyncio.sleep(0.02)
        assert strict.ran == []
        disk.let_through()
        await until(lambda: strict.ran)
        await until(lambda: len(strict.records()) == 2)
        peer.say({"id": 3, "method": "tools/list", "params": {"_meta": ENVELOPE}})
        await peer.answer(3)
        assert 1 not in peer.answers
        assert peer.dispatcher.requests.busy
        disk.let_through()
        assert (await peer.answer(1))["result"]["content"][0]["text"] == "ok"
        begun, ended = strict.records()
        assert (begun["outcome"], ended["outcome"], ended["begun"]) == ("begun", "ok", begun["id"])
        assert not peer.dispatcher.requests.busy
        disk.let_through(10)
        peer.close()

    in_loop(run)


ASKED = [
    ("tools/call", {"name": "act", "arguments": {"how": "ok"}}, "ok"),
    ("tools/call", {"name": "act"}, "ok"),
    ("tools/call", {"name": "act", "arguments": {"how": "refuses"}}, "tool_error"),
    ("tools/call", {"name": "act", "arguments": {"how": 5}}, "invalid"),
    ("tools/call", {"name": "run_thread", "arguments": {"how": "x"}}, "ok"),
    ("tools/call", {"name": "run_waiting", "arguments": {"how": "x"}}, "ok"),
    ("tools/call", {"name": "run_structure", "arguments": {"how": "x"}}, "ok"),
    ("tools/call", {"name": "order", "arguments": {"count": 11}}, "refused"),
    ("tools/call", {"name": "order", "arguments": {"count": 1}}, "ok"),
    ("tools/call", {"name": "hidden"}, "refused"),
    ("tools/call", {"name": "nothing"}, "unknown"),
    ("resources/read", {"uri": "docs://a"}, "ok"),
    ("resources/read", {"uri": "docs://b"}, "unknown"),
    ("prompts/get", {"name": "write", "arguments": {"about": "x"}}, "ok"),
    ("prompts/get", {"name": "write", "arguments": {}}, "invalid"),
]


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
def test_whatever_is_answered_its_record_was_there_before(strict: Strict, version: str) -> None:
    """Each is asked three times: the connection knows resources and prompts then."""
    written: dict[int, list[str]] = {}

    async def run() -> None:
        peer = RawConversation(strict.app, version)
        hear = peer._transport._on_line

        def heard(line: bytes) -> None:
            tool = ASKED[json.loads(line)["id"] % len(ASKED)][1].get("name", "")
            written[json.loads(line)["id"]] = [
                each["outcome"] for each in strict.records() if each["tool"] == tool or not tool
            ]
            hear(line)

        peer._transport._on_line = heard
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        meta = {"_meta": ENVELOPE} if version == STATELESS else {}
        for id, (method, params, _) in enumerate(ASKED * 3):
            peer.say({"id": id, "method": method, "params": {**params, **meta}})
            await peer.answer(id)
        peer.close()

    in_loop(run)
    for number, (_, params, outcome) in enumerate(ASKED):
        if "name" in params:
            ids = range(number, 3 * len(ASKED), len(ASKED))
            counts = [written[id].count(outcome) for id in ids]
            assert counts == sorted(set(counts)), (params, counts)  # one more before each answer
            assert counts[0] > 0
    found = strict.records()
    begun = {each["id"] for each in found if each["outcome"] == "begun"}
    ended = [each["begun"] for each in found if "begun" in each]
    assert sorted(ended) == sorted(begun)
    assert sum(each["outcome"] == "refused" for each in found) == 6


def test_the_calls_of_a_batch_are_answered_together_when_all_are_on_disk(strict: Strict) -> None:
    async def run() -> None:
        peer = RawConversation(strict.app, "2025-03-26")
        lines: list[bytes] = []
        peer._transport._on_line = lines.append
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        batch = [
            {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
            for id, (method, params, _) in enumerate(ASKED)
        ]
        peer._transport.send(json.dumps(batch).encode())
        await until(lambda: lines)
        assert {each["id"] for each in json.loads(lines[0])} == set(range(len(ASKED)))
        outcomes = [each["outcome"] for each in strict.records() if each["outcome"] != "begun"]
        assert sorted(outcomes) == sorted(outcome for _, _, outcome in ASKED)
        assert not peer.dispatcher.requests.busy
        peer.close()

    in_loop(run)


def test_calls_in_flight_share_an_fsync(strict: Strict, monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        disk = SlowDisk(monkeypatch)
        peer = RawConversation(strict.app, STATELESS)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        for id in range(100):
            peer.call(id, "act", {"how": "ok"})
        disk.let_through(1000)
        for id in range(100):
            await peer.answer(id)
        assert len(strict.records()) == 200
        assert disk.synced < 100
        peer.close()

    in_loop(run)


def test_a_second_request_with_an_id_that_is_in_flight_is_refused_and_recorded(strict: Strict) -> None:
    async def run() -> None:
        peer = RawConversation(strict.app, STATELESS)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        lines: list[bytes] = []
        peer._transport._on_line = lines.append
        peer.call(1, "act", {"how": "ok"})
        peer.call(1, "act", {"how": "again"})
        await until(lambda: len(lines) == 2)
        assert sorted("error" in json.loads(line) for line in lines) == [False, True]
        assert strict.ran == ["ok"]
        outcomes = [each["outcome"] for each in strict.records()]
        assert sorted(outcomes) == ["begun", "ok", "protocol_error"]
        assert not peer.dispatcher.requests.busy
        peer.close()

    in_loop(run)


def test_a_cancelled_call_is_recorded_and_not_answered(strict: Strict) -> None:
    async def run() -> None:
        peer = RawConversation(strict.app, LATEST_SESSION_VERSION)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        waits = asyncio.Event()

        @strict.app.tool
        async def run_long() -> None:
            strict.ran.append("long")
            await waits.wait()

        peer.call(1, "run_long", {})
        await until(lambda: strict.ran)
        peer.say({"method": "notifications/cancelled", "params": {"requestId": 1}})
        await until(lambda: not strict.app.busy)
        strict.app.drain_observers()
        strict.log.flush()
        assert [each["outcome"] for each in strict.records()] == ["begun", "cancelled"]
        assert peer.answers == {}
        peer.close()

    in_loop(run)


@pytest.mark.parametrize(("version", "code"), [(LATEST_SESSION_VERSION, -32005), (STATELESS, 503)])
def test_without_room_on_disk_nothing_runs_what_has_run_is_not_answered_and_it_goes_on_when_there_is_some(
    strict: Strict, monkeypatch: pytest.MonkeyPatch, version: str, code: int
) -> None:
    async def run() -> None:
        is_full = threading.Event()
        write = segments.OpenSegment.write

        def fitting(segment: segments.OpenSegment, data: bytes) -> int:
            if is_full.is_set():
                raise OSError(28, "No space left on device")
            return write(segment, data)

        monkeypatch.setattr(segments.OpenSegment, "write", fitting)
        peer = RawConversation(strict.app, version)
        peer.dispatcher.loop_runs(asyncio.get_running_loop())

        @strict.app.tool(run="inline")
        def run_and_fill() -> str:
            is_full.set()
            return "filled"

        peer.call(1, "run_and_fill", {})
        error = (await peer.answer(1))["error"]
        assert error["code"] == code
        assert error["data"] == {"reason": "audit_unavailable", "has_run": True}
        assert "has run, but is not recorded: " in error["message"]
        for id, (name, arguments) in enumerate([("act", {}), ("order", {"count": 11})], 2):
            peer.call(id, name, arguments)
            error = (await peer.answer(id))["error"]
            assert error["code"] == code
            assert error["data"] == {"reason": "audit_unavailable", "has_run": False}
            assert "No space left on device" in error["message"]
        assert strict.ran == []
        is_full.clear()
        await until(lambda: not strict.log.status()["failure"])
        is_full.set()
        peer.call(8, "nothing", {})  # the first to notice, and nothing that could have run
        assert (await peer.answer(8))["error"]["data"] == {"reason": "audit_unavailable", "has_run": False}
        is_full.clear()
        await until(lambda: not strict.log.status()["failure"])
        peer.call(9, "act", {"how": "again"})
        assert "result" in await peer.answer(9)
        assert strict.ran == ["again"]
        peer.close()

    in_loop(run)

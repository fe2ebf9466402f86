"""Audit records of calls that rules about arguments, or a person, have let through say what decided,
however the call runs, and of this call alone."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.guarded import caller_of, policy_of
from support.in_memory import RawConversation, in_loop

from fastrpc import Client, Context, Server
from fastrpc._core import recorder
from fastrpc.guard.approvals.asking import CallToApprove
from fastrpc.guard.audit import AuditLog, verify
from fastrpc.guard.audit.calls import CallAudit, StrictCallAudit
from fastrpc.guard.explanation import explained
from fastrpc.guard.guard import Guard

POLICY = """
[expose]
tools = ["*"]
[[rules]]
id = "few"
tools = ["run_*", "later"]
when = "args.count <= 10"
then = "allow"
[[rules]]
id = "many"
tools = ["run_*", "later"]
when = "args.count > 100"
risk = "low"
[risk]
plain = "medium"
"run_*" = "medium"
later = "medium"
wipe = "high"
"""
WAYS = ("run_inline", "run_thread", "run_at_once", "run_waiting", "run_context", "run_late", "run_unseen")


def shop() -> Server:
    app = Server("shop")

    @app.tool(run="inline")
    def run_inline(count: int) -> int:
        return count

    @app.tool(run="thread")
    def run_thread(count: int) -> int:
        return count

    @app.tool
    async def run_at_once(count: int) -> int:
        return count

    @app.tool
    async def run_waiting(count: int) -> int:
        await asyncio.sleep(0)
        return count

    @app.tool
    async def run_context(count: int, ctx: Context) -> str:
        assert ctx.protocol_version
        await asyncio.sleep(0.001)
        return str(count)

    @app.tool
    async def run_late(count: int, ctx: Context) -> str:
        await asyncio.sleep(0.001)
        assert ctx.protocol_version
        await asyncio.sleep(0.001)
        return str(count)

    @app.tool
    async def run_unseen(count: int, ctx: Context) -> str:
        await asyncio.sleep(0.001)
        return str(count)

    @app.tool(run="inline")
    def plain(count: int) -> int:
        return count

    @app.tool(run="inline")
    def wipe(place: str) -> str:
        return place

    return app


class Audited:
    """A guarded server with a log."""

    def __init__(
        self, folder: Path, kind: type[CallAudit] = CallAudit, text: str = POLICY, **options: Any
    ) -> None:
        self.folder = folder / "audit"
        mode = "strict" if kind is StrictCallAudit else "group"
        self.app = shop()
        self.audit = kind(AuditLog(str(self.folder), mode=mode))
        self.policy = policy_of(folder, text, self.app)
        self.guard = self.audit.guard = Guard(
            self.policy,
            caller_of,
            on_refusal=self.audit.refused,
            is_recorded=True,
            durable=self.audit.durable,
            **options,
        )
        self.guard.install(self.app)
        self.app.observe(self.audit)

    def records(self) -> list[dict[str, Any]]:
        self.app.drain_observers()
        self.audit.at_end()
        text = b"".join(path.read_bytes() for path in sorted(self.folder.glob("2*.jsonl")))
        assert verify.verify(str(self.folder)).faults == []
        lines = [json.loads(line) for line in text.splitlines()]
        return [line for line in lines if "id" in line]


def said(record: dict[str, Any]) -> tuple[Any, ...]:
    return record["outcome"], record["decision"], record.get("risk"), record.get("rule")


async def calls(app: Server, *wanted: tuple[str, dict[str, Any]]) -> None:
    async with Client(app) as client:
        await asyncio.gather(*(client.call_tool(name, arguments) for name, arguments in wanted))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [CallAudit, StrictCallAudit])
def test_a_record_has_the_risk_and_the_rule_of_its_call(
    tmp_path: Path, kind: type[CallAudit], way: str
) -> None:
    audited = Audited(tmp_path, kind)
    counts = [3, 50, 500, 5] * 5
    asyncio.run(calls(audited.app, *((way, {"count": count}) for count in counts)))
    expected = {3: ("medium", "few"), 5: ("medium", "few"), 50: ("medium", None), 500: ("low", None)}
    records = audited.records()
    by_request = {each["request"]: each for each in records if each["outcome"] == "ok"}
    assert len(by_request) == len(counts)
    found = [said(by_request[request])[2:] for request in sorted(by_request)]
    assert found == [expected[count] for count in counts]
    assert {each["policy"] for each in records} == {audited.policy.version}
    if kind is StrictCallAudit:
        begun = {each["id"]: said(each)[2:] for each in records if each["outcome"] == "begun"}
        assert sorted(begun.values(), key=str) == sorted(found, key=str)
        assert all(begun[each["begun"]] == said(each)[2:] for each in by_request.values())


def test_calls_of_one_batch_keep_theirs_apart(tmp_path: Path) -> None:
    audited = Audited(tmp_path)

    def line(id: int, tool: str, count: int) -> dict[str, Any]:
        params = {"name": tool, "arguments": {"count": count}}
        return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}

    async def converse() -> None:
        peer = RawConversation(audited.app, "2025-03-26")
        answers: list[bytes] = []
        peer._transport._on_line = answers.append
        peer.dispatcher.loop_runs(asyncio.get_running_loop())
        wanted = [("run_inline", 3), ("run_waiting", 50), ("plain", 1), ("run_thread", 4)]
        batch = [line(id, *each) for id, each in enumerate(wanted, 1)]
        peer._transport.send(json.dumps(batch).encode())
        while not answers:
            await asyncio.sleep(0.002)
        peer.close()

    in_loop(converse)
    found = {each["request"]: said(each)[2:] for each in audited.records()}
    assert found == {1: ("medium", "few"), 2: ("medium", None), 3: ("medium", None), 4: ("medium", "few")}


def test_a_call_that_no_such_rule_concerns_carries_nothing(tmp_path: Path) -> None:
    audited = Audited(tmp_path)
    stated: list[Any] = []
    audited.app.observe(lambda records: stated.extend((each.name, each.decided) for each in records))
    asyncio.run(calls(audited.app, ("plain", {"count": 1}), ("run_inline", {"count": 1})))
    records = audited.records()
    assert sorted(name for name, what in stated if what is not None) == ["run_inline"]
    assert [said(each) for each in records if each["tool"] == "plain"] == [("ok", "allow", "medium", None)]


def test_where_too_much_waits_and_is_hashed_at_once_it_is_there_too(tmp_path: Path) -> None:
    line = recorder.DecidedLine(
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"a":1}}}',
        "by a rule",
    )
    found = recorder.Recorder()
    filling = b"x" * (17 * 1024 * 1024)
    found.write("tool", "x", b"1", "", "ok", 1, 2, 3, 4, 5, line, filling)
    found.write("tool", "x", b"1", "", "ok", 1, 2, 3, 4, 5, line, b"{}")
    assert found.content_size == len(line) + 2
    first, second = found.drain()
    assert (first.decided, second.decided) == ("by a rule", "by a rule")
    assert second.arguments == b'{"a":1}'
    assert isinstance(first.arguments, tuple)
    assert found.content_size == 0
    assert first.renamed("y").decided == "by a rule"


def test_a_call_that_a_person_has_approved_names_the_approval(tmp_path: Path) -> None:
    async def approve(asked: CallToApprove) -> dict[str, Any]:
        asked.approval = "ap_k3x7q2mfa4zt"
        return {}

    audited = Audited(tmp_path, approve=approve)
    asyncio.run(calls(audited.app, ("wipe", {"place": "x"})))
    (record,) = audited.records()
    assert said(record) == ("ok", "allow", "high", None)
    assert record["approval"] == "ap_k3x7q2mfa4zt"
    told = explained(record)
    assert (told["risk"], told["approval"], told["changes"]) == ("high", "ap_k3x7q2mfa4zt", [])


def test_one_by_the_clients_form_alone_has_no_id_and_its_risk_nevertheless(tmp_path: Path) -> None:
    audited = Audited(tmp_path)

    async def converse() -> None:
        async with Client(
            audited.app, on_elicit=lambda request: {"action": "accept", "content": {}}
        ) as client:
            await client.call_tool("wipe", {"place": "x"})

    asyncio.run(converse())
    found = [each for each in audited.records() if each["outcome"] == "ok"]
    assert [(each["risk"], "approval" in each) for each in found] == [("high", False)]


def test_the_policy_is_the_one_that_has_decided(tmp_path: Path) -> None:
    audited = Audited(tmp_path)
    first = audited.policy.version

    async def converse() -> None:
        async with Client(audited.app) as client:
            await client.call_tool("run_inline", {"count": 3})
            audited.guard.use(policy_of(tmp_path, POLICY + "# another\n", audited.app))
            await client.call_tool("run_inline", {"count": 3})

    asyncio.run(converse())
    versions = [each["policy"] for each in audited.records()]
    assert versions == [first, audited.guard.policy.version]
    assert versions[0] != versions[1]


def test_the_guards_of_a_server_and_of_one_that_it_mounts_record_each_its_own(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    inner = Audited(tmp_path / "inner", text=POLICY.replace('id = "few"', 'id = "inner-few"'))
    (tmp_path / "outer").mkdir()
    outer = Server("outer")
    outer.mount(inner.app, prefix="in")
    text = '[expose]\ntools = ["*"]\n[[rules]]\nid = "outer-few"\ntools = ["in_run_*"]\n'
    text += 'when = "args.count < 9"\nthen = "allow"\n[risk]\n"*" = "low"\n'
    audit = CallAudit(AuditLog(str(tmp_path / "outer" / "audit")))
    audit.guard = Guard(policy_of(tmp_path / "outer", text, outer), caller_of, is_recorded=True)
    audit.guard.install(outer)
    outer.observe(audit)
    asyncio.run(calls(outer, ("in_run_inline", {"count": 3}), ("in_run_waiting", {"count": 3})))
    outer.drain_observers()
    audit.at_end()
    text = "".join(path.read_text() for path in sorted((tmp_path / "outer" / "audit").glob("2*.jsonl")))
    of_outer = [json.loads(line) for line in text.splitlines() if '"id"' in line]
    assert {(each["tool"], *said(each)[2:]) for each in of_outer} == {
        ("in_run_inline", "low", "outer-few"),
        ("in_run_waiting", "low", "outer-few"),
    }
    assert {(each["tool"], *said(each)[2:]) for each in inner.records()} == {
        ("run_inline", "medium", "inner-few"),
        ("run_waiting", "medium", "inner-few"),
    }

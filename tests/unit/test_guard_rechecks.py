"""The rules of a guard are about the arguments that a function gets: what hooks and middleware change between
the rule and the function is decided again."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from support.guarded import caller_of, guarded, policy_of

from fastrpc import CallInfo, Server
from fastrpc.compat.fastmcp import FastMCP, Middleware
from fastrpc.errors import RemoteError
from fastrpc.guard.audit import AuditLog
from fastrpc.guard.audit.calls import CallAudit
from fastrpc.guard.guard import Guard
from fastrpc.testing import Client

POLICY = """
[expose]
tools = ["*"]
[approvals]
hold_seconds = 0.05
[risk]
"*" = "none"
[[rules]]
id = "no-eve"
tools = ["*send"]
when = '"eve" in args.to'
then = "deny"
[[rules]]
id = "few"
tools = ["*send"]
when = "args.count > 10"
then = "ask"
"""
CHANGES = ["replaced", "within", "more", "mended"]


def changed(call: CallInfo, how: str) -> None:
    if how == "replaced":
        call.arguments = {**call.arguments, "to": ["eve"]}
    elif how == "within":
        call.arguments["to"].append("eve")
    elif how == "bound":
        values: Any = call.bound_values()
        values[0] = ["eve"]
    elif how == "more":
        call.arguments["count"] = "11"
    elif how == "mended":
        call.arguments = {"to": '["eve"]', "count": 1}


def sending(ran: list[Any], how: str, is_async: bool) -> Server:
    app = Server("shop")

    @app.tool(effect="exec", run="inline")
    def send(to: list[str], count: int = 1) -> str:
        ran.append((to, count))
        return "sent"

    async def change_later(call: CallInfo) -> None:
        changed(call, how)

    app.before(change_later if is_async else lambda call: changed(call, how))
    return app


async def outcome(app: Any, name: str = "send", **arguments: Any) -> Any:
    async with Client(app) as client:
        try:
            return (await client.call(name, **(arguments or {"to": ["ada"]}))).text
        except RemoteError as error:
            return error.data["reason"]


def run(app: Any, name: str = "send", **arguments: Any) -> Any:
    return asyncio.run(asyncio.wait_for(outcome(app, name, **arguments), 60))


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("how", [*CHANGES, "nothing"])
def test_what_a_hook_has_changed_is_decided_again(tmp_path: Path, how: str, is_async: bool) -> None:
    ran: list[Any] = []
    app = sending(ran, how, is_async)
    guarded(tmp_path, POLICY, app)
    expected = {"nothing": "sent", "more": "approval_rejected"}.get(how, "not_allowed")
    for _ in range(3):  # the compiled gate decides about the later ones
        assert run(app) == expected
    assert ran == ([(["ada"], 1)] * 3 if how == "nothing" else [])


@pytest.mark.parametrize("is_async", [False, True])
def test_values_that_a_hook_has_changed_in_place_do_not_run(tmp_path: Path, is_async: bool) -> None:
    ran: list[Any] = []
    app = sending(ran, "bound", is_async)
    guarded(tmp_path, POLICY, app)
    for _ in range(3):
        run(app)
    assert all(to == ["ada"] for to, _ in ran)


@pytest.mark.parametrize("guard_is_within", [False, True])
def test_a_mounted_servers_hooks_and_rules_count_too(tmp_path: Path, guard_is_within: bool) -> None:
    ran: list[Any] = []
    inner, host = sending(ran, "within", False), Server("host")
    host.mount(inner, "in")
    guarded(tmp_path, POLICY, inner if guard_is_within else host)
    assert run(host, "in_send") == "not_allowed"
    assert ran == []


def test_what_middleware_has_changed_is_decided_again(tmp_path: Path) -> None:
    ran: list[Any] = []

    class Changing(Middleware):
        async def on_call_tool(self, context: Any, call_next: Any) -> Any:
            context.message.arguments = {"to": ["eve"]}
            return await call_next(context)

    app = FastMCP("shop", middleware=[Changing()])

    @app.tool
    def send(to: list[str], count: int = 1) -> str:
        ran.append((to, count))
        return "sent"

    guarded(tmp_path, POLICY, app)
    assert run(app) == "not_allowed"
    assert ran == []


def test_a_refusal_of_changed_arguments_is_recorded_and_the_call_counts_once(tmp_path: Path) -> None:
    ran: list[Any] = []
    app = sending(ran, "within", False)
    log = AuditLog(str(tmp_path / "audit"))
    audit = CallAudit(log)
    text = POLICY.replace("[approvals]", 'rate = "2/hour"\n[approvals]')
    guard = audit.guard = Guard(
        policy_of(tmp_path, text, app), caller_of, on_refusal=audit.refused, is_recorded=True
    )
    guard.install(app)
    app.observe(audit)
    assert [run(app) for _ in range(3)] == ["not_allowed", "not_allowed", "rate_limit"]
    log.close()
    lines = [
        json.loads(line)
        for path in (tmp_path / "audit").glob("*.jsonl")
        for line in path.read_bytes().splitlines()
    ]
    found = [each for each in lines if each.get("category") == "mcp_server"]
    assert [(each["outcome"], each["why"]) for each in found] == [
        ("refused", "not_allowed"),
        ("refused", "not_allowed"),
        ("refused", "rate_limit"),
    ]
    assert found[0]["rule"] == "no-eve"
    assert ran == []

"""Workflows that wait for a person: an approval.gate asks the guard's approvers, who are shown what runs."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.knowledge._workflows import definition
from fastrpc.tools.knowledge._workflows.following import following
from support.guarded_folder import fastrpc
from support.waiting import eventually
from support.workflows import called, ended, guarded, served, token_of, workflow

from fastrpc import Client
from fastrpc.client import SyncClient

POLICY = """
[expose]
tools = ["workflow.*", "memory.write", "memory.search"]

[risk]
"workflow.create" = "medium"

[audit]
mode = "group"
"""
GATE = {"id": "gate", "type": "approval.gate", "config": {"title": "Keep {{ $trigger.text }}?"}}
KEEP = {
    "id": "keep",
    "type": "action.skill",
    "config": {"tool": "memory.write", "arguments": {"content": "{{ $trigger.text }}"}},
}
REFUSED = {
    "id": "refused",
    "type": "data.transform",
    "config": {"template": "{{ $node.gate.output.comment }}"},
}


def waiting(client: SyncClient, run: str) -> None:
    eventually(lambda: called(client, "workflow.run", run_id=run)["state"] == "waiting")


def approvals(folder: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(fastrpc(folder, "approvals", "list", "--json"))
    return found


def triggered(client: SyncClient, found: dict[str, Any]) -> str:
    called(client, "workflow.create", workflow=found)
    run: str = called(client, "workflow.trigger", id=found["id"], input={"text": "Ada was here."})["id"]
    waiting(client, run)
    return run


def test_a_run_waits_until_a_person_approves_what_runs_then(tmp_path: Path) -> None:
    token = token_of(tmp_path, "ada")["token"]
    with guarded(tmp_path, POLICY) as server, Client.sync(server.place, token=token) as client:
        run = triggered(client, workflow("w", GATE, KEEP, edges="gate>keep"))
        (asked,) = approvals(tmp_path)
        assert (asked["name"], asked["risk"], asked["caller"].partition("#")[0]) == (
            "approval.gate", "high", "ada",
        )  # fmt: skip
        assert asked["arguments"] == {
            "title": "Keep Ada was here.?", "workflow": "w", "run": run, "node": "gate",
            "steps": [
                {"node": "keep", "type": "action.skill",
                 "config": {"tool": "memory.write", "arguments": {"content": "Ada was here."}}},
            ],
        }  # fmt: skip
        assert called(client, "memory.search", query="ada")["count"] == 0
        fastrpc(tmp_path, "approvals", "approve", asked["id"], "--comment", "as agreed")
        found = ended(client, run)
        assert found["state"] == "completed", found
        assert found["steps"][0]["output"] == {
            "approved": True, "by": found["steps"][0]["output"]["by"], "comment": "as agreed",
        }  # fmt: skip
        assert called(client, "memory.search", query="ada")["count"] == 1
    found = fastrpc(tmp_path, "audit", "tail", "-n", "1000", "--json").splitlines()
    events = [each["outcome"] for each in map(json.loads, found) if each.get("action") == "approval.gate"]
    assert events == ["asked", "approved", "used"]


def test_what_is_refused_takes_the_edge_for_it_or_fails(tmp_path: Path) -> None:
    token = token_of(tmp_path, "ada")["token"]
    with guarded(tmp_path, POLICY) as server, Client.sync(server.place, token=token) as client:
        for edges, state in (("gate>keep", "failed"), ("gate>keep:true gate>refused:false", "completed")):
            nodes = (GATE, KEEP, REFUSED) if state == "completed" else (GATE, KEEP)
            run = triggered(client, workflow("w", *nodes, edges=edges))
            fastrpc(tmp_path, "approvals", "reject", approvals(tmp_path)[0]["id"], "--comment", "not today")
            found = ended(client, run)
            assert found["state"] == state, found
            if state == "failed":
                assert found["error"].startswith("gate: not approved by ")
                assert found["error"].endswith(": not today")
            else:
                assert found["output"] == "not today"
        assert called(client, "memory.search", query="ada")["count"] == 0


def test_a_gate_that_no_one_decides_about_is_not_approved(tmp_path: Path) -> None:
    token = token_of(tmp_path, "ada")["token"]
    gate = {**GATE, "config": {"title": "Now?", "seconds": 1}}
    with guarded(tmp_path, POLICY) as server, Client.sync(server.place, token=token) as client:
        called(client, "workflow.create", workflow=workflow("w", gate))
        run = called(client, "workflow.trigger", id="w", wait_seconds=60)
        assert run["error"] == "gate: not approved: no decision in time"


@pytest.mark.long
@pytest.mark.parametrize("decided", ["before", "between", "after"])
def test_a_gate_is_asked_about_once_whenever_the_server_is_killed(tmp_path: Path, decided: str) -> None:
    """`decided`: before the kill, while no server is there, and when another one is."""
    token = token_of(tmp_path, "ada")["token"]
    with guarded(tmp_path, POLICY) as server, Client.sync(server.place, token=token) as client:
        run = triggered(client, workflow("w", GATE, KEEP, edges="gate>keep"))
        (asked,) = approvals(tmp_path)
        if decided == "before":
            os.kill(server.pid, signal.SIGSTOP)
            fastrpc(tmp_path, "approvals", "approve", asked["id"])
        os.kill(server.pid, signal.SIGKILL)
    if decided == "between":
        fastrpc(tmp_path, "approvals", "approve", asked["id"])
    with guarded(tmp_path, POLICY) as server, Client.sync(server.place, token=token) as client:
        if decided == "after":
            waiting(client, run)
            assert [each["id"] for each in approvals(tmp_path)] == [asked["id"]]
            fastrpc(tmp_path, "approvals", "approve", asked["id"])
        assert ended(client, run)["state"] == "completed"
        assert called(client, "memory.search", query="ada")["count"] == 1


def test_without_a_guard_a_gate_is_refused_when_the_workflow_is_created(tmp_path: Path) -> None:
    with served(tmp_path) as client:
        refused = client.call_tool("workflow.create", {"workflow": workflow("w", GATE)})
    assert refused.is_error
    assert refused.text == (
        "node gate: approval.gate needs a guard, which has approvers: start the server with --guard FILE"
    )


def shown(found: dict[str, Any], gate: str, data: dict[str, Any]) -> dict[str, Any]:
    """The templates of the steps behind a gate, as they are shown."""
    data = {"node": {}, "vars": {}, "trigger": {}, "item": None, "index": None, **data}
    steps = following(definition.read(found), gate, data)
    return {each["node"]: each["config"].get("template") for each in steps}


def transform(id: str, template: Any) -> dict[str, Any]:
    return {"id": id, "type": "data.transform", "config": {"template": template}}


def test_what_an_approver_is_shown_has_the_values_that_are_settled_and_no_others() -> None:
    """What comes behind the gate may change, and is shown as it is written, whatever the last turn had."""
    gate = {"id": "gate", "type": "approval.gate", "config": {"title": "?"}}
    loop = {"id": "each", "type": "logic.loop", "config": {"times": 2, "body": ["before", "gate", "behind"]}}
    dynamic, late = "{{ $node[$vars.which].output }}", "{{ $node.behind.output | default('none') }}"
    found = workflow(
        "w", transform("first", 1), loop, transform("before", 1), gate,
        transform("behind", "{{ $node.before.output }} {{ $item }} {{ $node.first.output }}"),
        transform("last", ["{{ $node.first.output }}", "{{ $node.before.output }}"]),
        transform("end", [late]), transform("any", dynamic),
        transform("turn", "{{ $item }}"), transform("by", "{{ $node.gate.output.by }}"),
        edges="first>each before>gate gate>behind each>last last>end end>any any>turn turn>by",
    )  # fmt: skip
    values = {name: {"output": name.upper()} for name in ("first", "before", "behind", "gate")}
    assert shown(found, "gate", {"node": values, "item": "a", "vars": {"which": "first"}}) == {
        "behind": "BEFORE a FIRST",
        "last": ["{{ $node.first.output }}", "{{ $node.before.output }}"],
        "end": [late], "any": dynamic, "turn": "{{ $item }}", "by": "{{ $node.gate.output.by }}",
    }  # fmt: skip

"""Definitions of workflows: what cannot be run is refused with the node and the reason."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.knowledge._workflows import definition
from fastrpc.tools.knowledge._workflows.definition import BadWorkflow


def transform(id: str, template: Any = 1) -> dict[str, Any]:
    return {"id": id, "type": "data.transform", "config": {"template": template}}


def loop(id: str, *body: str, **config: Any) -> dict[str, Any]:
    return {"id": id, "type": "logic.loop", "config": {"times": 2, "body": list(body), **config}}


def parallel(id: str, *body: str) -> dict[str, Any]:
    return {"id": id, "type": "logic.parallel", "config": {"body": list(body)}}


def skill(id: str) -> dict[str, Any]:
    return {"id": id, "type": "action.skill", "config": {"tool": "t"}}


def workflow(*nodes: dict[str, Any], edges: str = "", **members: Any) -> dict[str, Any]:
    """A definition; `edges` are such as ``a>b``."""
    pairs = [each.split(">") for each in edges.split()]
    return {
        "id": "w", "name": "W", "version": "1", "trigger": {"type": "manual"}, "nodes": list(nodes),
        "edges": [{"from": source, "to": target} for source, target in pairs], **members,
    }  # fmt: skip


A, B, C = transform("a"), transform("b"), transform("c")


def test_nodes_are_in_the_order_of_a_run_and_those_of_loops_apart() -> None:
    found = definition.read(
        workflow(C, B, A, loop("l", "x"), transform("x"), edges="a>b b>c a>c c>l l>x x>l")
    )
    assert found.order == {"": ["a", "b", "c", "l"], "l": ["x"]}


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ([], "workflow: expected an object, got list"),
        (workflow(A, colour="red"), "workflow: 'colour' is not one of id, name"),
        ({"id": "w"}, "workflow: name is missing"),
        (workflow(A, id="../x"), "id: expected 1 to 64 letters"),
        (workflow(A, version=True), "workflow.version: bool is not what is expected"),
        (workflow(A, trigger={"type": "moon"}), "trigger.type: expected one of manual"),
        (workflow(), "nodes: expected 1 to 200, got 0"),
        (workflow(A, transform("a")), "node a: there are two of this id"),
        (workflow({"id": "a", "type": "eval", "config": {}}), "node a: type 'eval' is not one of action."),
        (workflow({"id": "a", "type": "action.skill"}), "node a: config: tool is missing"),
        (workflow({**A, "config": {"template": 1, "x": 1}}), "node a: config: 'x' is not one of template"),
        (workflow(A, edges="a>z"), "edges[0].to: there is no node 'z'"),
        (workflow(A, B), "node b: no edge leads to it; a run begins at a"),
        (workflow(A, B, C, edges="a>b b>c c>b"), "node b: edges lead from it back to it"),
        (workflow(A, edges="a>a"), "node a: edges lead from it back to it"),
        (workflow(transform("a", "{{ 1 + }}")), "node a: {{ 1 + }}: "),
        (workflow(transform("a", "{{ $node.z.output }}")), "node a: $node.z: there is no such node"),
        (
            workflow({"id": "a", "type": "logic.if_else", "config": {"condition": "$node.z.output"}}),
            "node a: $node.z: there is no such node",
        ),
        (
            workflow({"id": "a", "type": "action.skill", "config": {"tool": "workflow.trigger"}}),
            "node a: no step calls workflow.trigger",
        ),
        (workflow(loop("a")), "node a: config.body: expected ids of nodes, got none"),
        (workflow(loop("a", "z")), "node a: config.body: there is no node 'z'"),
        (workflow(loop("a", "a")), "node a: config.body: a is in another loop, or the loop itself"),
        (workflow(loop("a", "b"), loop("b", "a")), "the loop is in itself"),
        (workflow(loop("a", "b", items=[]), B), "node a: config: expected items or times"),
        (workflow(loop("a", "b", times=1001), B), "node a: config.times: expected 0 to 1000"),
        (workflow(loop("a", "b", times=10**9), B), "node a: config.times: expected 0 to 1000"),
        (workflow(transform("a", "x" * 2_000_000)), "workflow: expected at most 262,144 bytes"),
        (workflow(transform("a", "{{ $trigger.__class__ }}")), "__class__: no such member"),
        (workflow(A, trigger={"type": "manual", "secret": "x"}), "trigger: a manual trigger has no 'secret'"),
        (workflow(A, trigger={"type": "cron", "expression": 5}), "trigger.expression: expected a text"),
        (workflow(A, trigger={"type": ["cron"]}), "trigger.type: expected one of manual, cron, webhook"),
        (
            workflow({"id": "a", "type": "approval.gate", "config": {"title": "?", "risk": "none"}}),
            "node a: config.risk: expected one of low, medium, high, critical, got 'none'",
        ),
        (
            workflow({"id": "a", "type": "approval.gate", "config": {"title": "?", "seconds": 10**9}}),
            "node a: config.seconds: expected 1 to 2,592,000, got 1000000000",
        ),
        (workflow(loop("a", "b"), B, C, edges="a>b b>c"), "node b: the edge from b to c leads into"),
        (workflow(loop("a", "b", "c"), B, C), "node c: no edge leads to it; the body of a begins at b"),
        (
            workflow({"id": "a", "type": "logic.wait", "config": {"seconds": 1, "until": "x"}}),
            "node a: config: expected seconds or until",
        ),
        (workflow(parallel("p", "a"), A), "node a: expected a type of action in the body of p"),
        (workflow(parallel("p", "x", "y"), skill("x"), skill("y"), edges="x>y"), "steps of p wait for none"),
        (workflow(parallel("p")), "node p: config.body: expected ids of nodes, got none"),
        (
            workflow({"id": "a", "type": "logic.switch", "config": {"value": "{{ $x }}"}}),
            "node a: $x: expected one of $node",
        ),
        (
            workflow({"id": "a", "type": "logic.wait", "config": {"seconds": 1e9}}),
            "node a: config.seconds: expected 0 to 2,592,000",
        ),
        (workflow(transform("a", "x" * 300_000)), "workflow: expected at most 262,144 bytes"),
    ],
)  # fmt: skip
def test_what_cannot_be_run_is_refused_with_the_reason(found: Any, message: str) -> None:
    with pytest.raises(BadWorkflow) as raised:
        definition.read(found)
    assert message in str(raised.value)


def test_the_workflow_in_the_documents_can_be_run() -> None:
    page = Path(__file__, "../../../docs/knowledge.md").resolve().read_text(encoding="utf-8")
    found = definition.read(json.loads(page.partition("```json\n")[2].partition("```")[0]))
    definition.check_tools(found, ["memory.search", "memory.write"])
    assert found.order == {"": ["find", "new", "keep"]}


def test_an_unknown_tool_is_refused() -> None:
    found = definition.read(workflow({"id": "a", "type": "action.skill", "config": {"tool": "x.y"}}))
    definition.check_tools(found, ["x.y"])
    with pytest.raises(BadWorkflow, match=r"node a: there is no tool x\.y"):
        definition.check_tools(found, ["x.z"])

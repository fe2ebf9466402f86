"""The steps that run after a gate, in the form for its approver.

These are the steps that can be reached from the gate until the run, or the turn of a loop, is over, and those
after the loop. A step's configuration is shown with its values if they are settled: outputs of earlier steps,
the trigger and the variables no longer change, so the approver sees what will run. A template that reads the
output of a step after the gate is shown unevaluated.
"""

from __future__ import annotations

from contextlib import suppress

from . import templates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .definition import Workflow


def following(workflow: Workflow, gate: str, data: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the steps after a gate, in the order of the definition."""
    found: dict[str, bool] = {}  # whether a step runs in the same turn of the same loop as the gate
    unsettled = {gate}
    at, is_near = gate, True
    while at:
        for id in _reached(workflow, at):
            found[id] = is_near
            for inner in _inside(workflow, id):
                found[inner] = False
        at, is_near = workflow.loop_of.get(at, ""), False
        if at:
            unsettled |= {at, *_inside(workflow, at)}
    near = unsettled - {gate} - set(found)  # settled in the gate's own turn, but not after its loop
    steps = []
    for id in workflow.nodes:
        if id in found:
            hidden = {gate, *found} | (set() if found[id] else near)
            steps.append(_shown(workflow, id, data, hidden, found[id]))
    return steps


def _reached(workflow: Workflow, begin: str) -> set[str]:
    """Return the nodes that can be reached from a node by edges."""
    reached: set[str] = set()
    left = [begin]
    while left:
        source = left.pop()
        new = {id for id, edges in workflow.edges_to.items() if any(each.source == source for each in edges)}
        left += new - reached
        reached |= new
    return reached


def _inside(workflow: Workflow, id: str) -> set[str]:
    """Return the nodes in the body of a node, and in nested bodies."""
    inside: set[str] = set()
    for each in workflow.nodes[id].body:
        inside |= {each, *_inside(workflow, each)}
    return inside


def _shown(
    workflow: Workflow, id: str, data: Mapping[str, Any], unsettled: set[str], is_near: bool
) -> dict[str, Any]:
    node = workflow.nodes[id]
    config = {}
    for name, value in node.config.items():
        read = templates.read_by(value)
        is_settled = not read & unsettled and (is_near or not read & templates.OF_TURN)
        if name not in node.literal and is_settled and templates.ANY_NODE not in read:
            with suppress(templates.BadTemplate):  # it will fail in the run, too
                value = templates.rendered(value, data)
        config[name] = value
    return {"node": id, "type": node.kind, "config": config}

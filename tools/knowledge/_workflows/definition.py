"""Definitions of workflows: parses the published JSON, and refuses invalid ones with the node and the reason.

A run begins at the first node without incoming edges and follows the edges. It comes to a node when all edges
to it are decided and at least one of them was taken. Edges form no cycle. Repetition is the body of a
``logic.loop``: the nodes that its `body` names, with edges only among themselves, and to and from the loop.
The nodes in the body of a ``logic.parallel`` are single calls, without edges between them.
"""

from __future__ import annotations

import json
import re
from typing import NamedTuple

from fastrpc import FastrpcError

from . import templates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any

ID = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]{0,63}")
LONGEST_BYTES = 256 * 1024
MOST_NODES = 200
MOST_TURNS = 1000
"""Turns of a loop with a constant number of them."""
MEMBERS = {
    "id": str, "name": str, "version": (str, int), "description": str, "trigger": dict, "nodes": list,
    "edges": list, "variables": dict,
}  # fmt: skip
REQUIRED = ("id", "name", "version", "trigger", "nodes", "edges")
ANYTHING_OR_NONE = (object, type(None))
CONFIGS: dict[str, dict[str, Any]] = {
    "action.api_call": {
        "url": str,
        "method": (str, type(None)),
        "headers": (dict, type(None)),
        "query": (dict, type(None)),
        "body": ANYTHING_OR_NONE,
        "seconds": (int, float, type(None)),
    },
    "action.execute_code": {"code": str, "input": ANYTHING_OR_NONE},
    "action.llm_prompt": {"prompt": str, "system": (str, type(None)), "max_tokens": (int, type(None))},
    "action.send_message": {"text": str, "to": (str, type(None))},
    "action.skill": {"tool": str, "arguments": (dict, type(None))},
    "approval.gate": {"title": str, "risk": (str, type(None)), "seconds": (int, type(None))},
    "data.transform": {"template": object},
    "logic.if_else": {"condition": str},
    "logic.loop": {"items": (str, list, type(None)), "times": (int, type(None)), "body": list},
    "logic.parallel": {"body": list},
    "logic.switch": {"value": str},
    "logic.wait": {"seconds": (int, float, type(None)), "until": (str, type(None))},
}
"""The types of nodes, with the members of their configuration. A member that may be None may be left out."""
TRIGGERS: dict[str, tuple[str, ...]] = {
    "manual": (),
    "cron": ("expression", "timezone"),
    "webhook": ("secret",),
    "file": ("path",),
}
"""The further members of each type of trigger."""
CALLS_NO_STEP = ("workflow.create", "workflow.delete", "workflow.trigger")
"""Tools that no step may call: a workflow that starts itself would never end."""
BOOLEAN = ("approval.gate", "logic.if_else")
"""The types of nodes whose outcome is true or false."""
REPEATING = ("logic.loop", "logic.parallel")
"""The types of nodes that have a body of other nodes."""
RISKS = ("low", "medium", "high", "critical")
LONGEST_WAIT = 30 * 86_400


class BadWorkflow(FastrpcError):
    """A definition is invalid."""


class Edge(NamedTuple):
    """An edge between nodes; `when` is the outcome for which it is taken, "" for any."""

    source: str
    target: str
    when: str


class Node(NamedTuple):
    """A step. `body` contains the nodes that a loop repeats."""

    id: str
    kind: str
    config: dict[str, Any]
    body: tuple[str, ...]

    @property
    def is_action(self) -> bool:
        """Whether the step is a call of a tool."""
        return self.kind.startswith("action.")

    @property
    def literal(self) -> tuple[str, ...]:
        """The members of the configuration in which braces are not templates."""
        return ("code",) if self.kind == "action.execute_code" else ()

    @property
    def tool(self) -> str:
        """The tool that an action calls: the toolset has a tool named after each type except
        `action.skill`."""
        name: str = self.config["tool"] if self.kind == "action.skill" else self.kind
        return name

    @property
    def arguments(self) -> Any:
        """The template of an action's arguments."""
        return self.config.get("arguments") or {} if self.kind == "action.skill" else self.config


class Workflow:
    """A valid definition. `order` has the ids of nodes outside of loops in the order in which a run comes to
    them, and by a loop's id those of its body."""

    def __init__(self, json: dict[str, Any], nodes: dict[str, Node], edges: list[Edge]) -> None:
        self.json = json
        self.id: str = json["id"]
        self.variables: dict[str, Any] = json.get("variables") or {}
        self.nodes = nodes
        self.edges_to: dict[str, list[Edge]] = {id: [] for id in nodes}
        for edge in edges:
            self.edges_to[edge.target].append(edge)
        self.order: dict[str, list[str]] = {}
        self.loop_of: dict[str, str] = {}
        """For each node in a body, the node with that body."""

    def choices_of(self, id: str) -> set[str]:
        """Return the outcomes for which the edges from a node are taken."""
        return {edge.when for edges in self.edges_to.values() for edge in edges if edge.source == id}

    def first_of(self, kind: str) -> str:
        """Return the first node of a type, "" without one."""
        return next((id for id, node in self.nodes.items() if node.kind == kind), "")

    def tools(self) -> dict[str, str]:
        """Return the tools that its nodes call, by node."""
        return {id: node.config["tool"] for id, node in self.nodes.items() if node.kind == "action.skill"}


def read(found: Any) -> Workflow:
    """Return the workflow of a definition. Raises BadWorkflow."""
    _check_members("workflow", found, MEMBERS, REQUIRED)
    if len(json.dumps(found).encode()) > LONGEST_BYTES:
        raise BadWorkflow(f"workflow: expected at most {LONGEST_BYTES:,} bytes")
    _check_id("id", found["id"])
    kind = found["trigger"].get("type")
    if not isinstance(kind, str) or kind not in TRIGGERS:
        raise BadWorkflow(f"trigger.type: expected one of {', '.join(TRIGGERS)}, got {kind!r:.80}")
    for name, value in found["trigger"].items():
        if name != "type" and name not in TRIGGERS[kind]:
            raise BadWorkflow(f"trigger: a {kind} trigger has no {name!r:.80}")
        if not isinstance(value, str):
            raise BadWorkflow(f"trigger.{name}: expected a text, got {type(value).__name__}")
    if not 1 <= len(found["nodes"]) <= MOST_NODES:
        raise BadWorkflow(f"nodes: expected 1 to {MOST_NODES}, got {len(found['nodes']):,}")
    nodes: dict[str, Node] = {}
    for at, each in enumerate(found["nodes"]):
        node = _node(f"nodes[{at}]", each)
        if node.id in nodes:
            raise BadWorkflow(f"node {node.id}: there are two of this id")
        nodes[node.id] = node
    edges = [_edge(f"edges[{at}]", each, nodes) for at, each in enumerate(found["edges"])]
    loop_of = _loops(nodes)
    workflow = Workflow(found, nodes, [each for each in edges if not _is_turn(each, loop_of)])
    workflow.loop_of = loop_of
    for loop in ("", *(id for id, node in nodes.items() if node.body)):
        workflow.order[loop] = _order(workflow, loop, [id for id in nodes if loop_of.get(id, "") == loop])
    for id, node in nodes.items():
        _check_templates(workflow, id, node)
    return workflow


def check_tools(workflow: Workflow, known: Collection[str]) -> None:
    """Raise BadWorkflow for a tool that the creator of the workflow does not have."""
    for id, tool in workflow.tools().items():
        if tool not in known:
            raise BadWorkflow(f"node {id}: there is no tool {tool:.80}")


def _check_members(where: str, found: Any, members: dict[str, Any], required: Collection[str]) -> None:
    if not isinstance(found, dict):
        raise BadWorkflow(f"{where}: expected an object, got {type(found).__name__}")
    for name in found:
        if name not in members:
            raise BadWorkflow(f"{where}: {name!r:.80} is not one of {', '.join(members)}")
    for name, kind in members.items():
        if name not in found:
            if name in required:
                raise BadWorkflow(f"{where}: {name} is missing")
        elif not isinstance(found[name], kind) or (
            isinstance(found[name], bool) and kind not in (object, ANYTHING_OR_NONE)
        ):
            raise BadWorkflow(f"{where}.{name}: {type(found[name]).__name__} is not what is expected here")


def _check_id(where: str, id: Any) -> None:
    if not isinstance(id, str) or not ID.fullmatch(id):
        raise BadWorkflow(f"{where}: expected 1 to 64 letters, digits, _ and -, got {id!r:.80}")


def _node(where: str, found: Any) -> Node:
    _check_members(where, found, {"id": str, "type": str, "position": object, "config": dict}, ("id", "type"))
    id, kind, config = found["id"], found["type"], found.get("config") or {}
    _check_id(f"{where}.id", id)
    members = CONFIGS.get(kind)
    if members is None:
        raise BadWorkflow(f"node {id}: type {kind!r:.80} is not one of {', '.join(CONFIGS)}")
    required = [name for name, types in members.items() if types is object or not _may_be_none(types)]
    _check_members(f"node {id}: config", config, members, required)
    return Node(id, kind, config, tuple(config["body"]) if kind in REPEATING else ())


def _may_be_none(types: Any) -> bool:
    return isinstance(types, tuple) and type(None) in types


def _edge(where: str, found: Any, nodes: dict[str, Node]) -> Edge:
    _check_members(where, found, {"from": str, "to": str, "when": object}, ("from", "to"))
    for end in ("from", "to"):
        if found[end] not in nodes:
            raise BadWorkflow(f"{where}.{end}: there is no node {found[end]!r:.80}")
    when = found.get("when")
    if when is not None and not isinstance(when, bool | str):
        raise BadWorkflow(f"{where}.when: expected true, false or a text, got {type(when).__name__}")
    outcome = "" if when is None else str(when).lower() if isinstance(when, bool) else when
    if outcome and nodes[found["from"]].kind in BOOLEAN and outcome not in ("true", "false"):
        raise BadWorkflow(f"{where}.when: expected true or false, got {outcome!r:.80}")
    return Edge(found["from"], found["to"], outcome)


def _loops(nodes: dict[str, Node]) -> dict[str, str]:
    """Return the loop of each node that is in the body of one."""
    loop_of: dict[str, str] = {}
    for loop, node in nodes.items():
        if node.kind not in REPEATING:
            continue
        if not node.body:
            raise BadWorkflow(f"node {loop}: config.body: expected ids of nodes, got none")
        if node.kind == "logic.loop":
            _check_turns(node)
        for id in node.body:
            if not isinstance(id, str) or id not in nodes:
                raise BadWorkflow(f"node {loop}: config.body: there is no node {id!r:.80}")
            if id in loop_of or id == loop:
                raise BadWorkflow(f"node {loop}: config.body: {id} is in another loop, or the loop itself")
            loop_of[id] = loop
    for id in nodes:
        passed, at = {id}, loop_of.get(id, "")
        while at:
            if at in passed:
                raise BadWorkflow(f"node {at}: config.body: the loop is in itself")
            passed.add(at)
            at = loop_of.get(at, "")
    return loop_of


def _check_turns(loop: Node) -> None:
    if (loop.config.get("items") is None) == (loop.config.get("times") is None):
        raise BadWorkflow(f"node {loop.id}: config: expected items or times")
    if not 0 <= (loop.config.get("times") or 0) <= MOST_TURNS:
        raise BadWorkflow(f"node {loop.id}: config.times: expected 0 to {MOST_TURNS}")


def _is_turn(edge: Edge, loop_of: dict[str, str]) -> bool:
    """Whether an edge only repeats what `body` says: from a loop into its body, or back. Raises BadWorkflow
    for an edge that leaves or enters a body otherwise."""
    if loop_of.get(edge.target) == edge.source or loop_of.get(edge.source) == edge.target:
        return True
    if loop_of.get(edge.source) != loop_of.get(edge.target):
        inside = edge.source if edge.source in loop_of else edge.target
        raise BadWorkflow(
            f"node {inside}: the edge from {edge.source} to {edge.target} leads into or out of the loop "
            f"{loop_of[inside]}"
        )
    return False


def _order(workflow: Workflow, loop: str, ids: list[str]) -> list[str]:
    """Return nodes so that each comes after those with edges to it. Raises BadWorkflow."""
    order: list[str] = []
    left = list(ids)
    while left:
        ready = [id for id in left if all(edge.source in order for edge in workflow.edges_to[id])]
        if not ready:
            raise BadWorkflow(
                f"node {_on_a_circle(workflow, left)}: edges lead from it back to it; repeat with logic.loop"
            )
        order += ready
        left = [id for id in left if id not in ready]
    if loop and workflow.nodes[loop].kind == "logic.parallel":
        _check_parallel(workflow, loop, ids)
        return order
    begins = [id for id in ids if not workflow.edges_to[id]]
    for id in begins[1:]:
        place = f"the body of {loop}" if loop else "a run"
        raise BadWorkflow(f"node {id}: no edge leads to it; {place} begins at {begins[0]}")
    return order


def _check_parallel(workflow: Workflow, parallel: str, ids: list[str]) -> None:
    """Raise BadWorkflow unless the body consists of single steps."""
    for id in ids:
        if not workflow.nodes[id].is_action:
            raise BadWorkflow(f"node {id}: expected a type of action in the body of {parallel}")
        for edge in workflow.edges_to[id]:
            raise BadWorkflow(f"node {id}: the edge from {edge.source}: steps of {parallel} wait for none")


def _on_a_circle(workflow: Workflow, left: list[str]) -> str:
    """Return a node on a cycle, for nodes each of which has another of them before it."""
    at, passed = left[0], set()
    while at not in passed:
        passed.add(at)
        at = next(edge.source for edge in workflow.edges_to[at] if edge.source in left)
    return at


def _check_templates(workflow: Workflow, id: str, node: Node) -> None:
    try:
        if node.kind == "logic.if_else":
            templates.check_condition(node.config["condition"])
        else:
            templates.check({name: each for name, each in node.config.items() if name not in node.literal})
    except templates.BadTemplate as error:
        raise BadWorkflow(f"node {id}: {error}") from None
    spoken = templates.nodes_in(node.config) | templates.nodes_of(node.config.get("condition") or "")
    for name in sorted(spoken):
        if name not in workflow.nodes:
            raise BadWorkflow(f"node {id}: $node.{name:.80}: there is no such node")
    if node.kind == "action.skill" and node.config["tool"] in CALLS_NO_STEP:
        raise BadWorkflow(f"node {id}: no step calls {node.config['tool']}")
    if node.kind == "approval.gate":
        _check_gate(id, node)
    if node.kind == "logic.wait":
        if (node.config.get("seconds") is None) == (node.config.get("until") is None):
            raise BadWorkflow(f"node {id}: config: expected seconds or until")
        if not 0 <= (node.config.get("seconds") or 0) <= LONGEST_WAIT:
            raise BadWorkflow(f"node {id}: config.seconds: expected 0 to {LONGEST_WAIT:,}")


def _check_gate(id: str, gate: Node) -> None:
    risk, seconds = gate.config.get("risk"), gate.config.get("seconds")
    if risk is not None and risk not in RISKS:
        raise BadWorkflow(f"node {id}: config.risk: expected one of {', '.join(RISKS)}, got {risk!r:.80}")
    if seconds is not None and not 1 <= seconds <= LONGEST_WAIT:
        raise BadWorkflow(f"node {id}: config.seconds: expected 1 to {LONGEST_WAIT:,}, got {seconds}")

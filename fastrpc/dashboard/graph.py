"""Places the steps of a workflow for a picture: in layers, each step after all that lead to it.

`placed` returns numbers and texts, which the template `knowledge_graph.svg` draws. Steps that a loop repeats
follow the loop. The longest way to a step is its layer; in a layer, steps are ordered by the places of those
that lead to them, so that fewer lines cross. Costs some milliseconds for the largest workflow (200 steps).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

WIDTH, HEIGHT, GAP, BETWEEN, MARGIN = 190, 56, 60, 22, 14
"""Pixels: of a step, between layers, between the steps of a layer, around all."""


@dataclass
class Box:
    """A step, with the place of its upper left corner. `state` is "" for a step that has not begun."""

    id: str
    kind: str
    state: str = ""
    times: int = 0
    """How often it has begun."""
    x: int = 0
    y: int = 0


@dataclass
class Line:
    """A line from one step to another. `when` is the outcome for which it is followed, "" for any; `is_body`:
    it leads from a loop into its body."""

    source: Box
    target: Box
    when: str = ""
    is_body: bool = False


@dataclass
class Graph:
    """What is drawn, in a picture of this size."""

    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    width: int = 0
    height: int = 0


def placed(definition: dict[str, Any], steps: list[dict[str, Any]], *, is_mirrored: bool = False) -> Graph:
    """Return the graph of a run: of its definition, with the states of its steps. `is_mirrored`: the first
    steps are on the right, as they are read in Arabic."""
    boxes = {node["id"]: Box(node["id"], node["type"]) for node in definition.get("nodes", [])}
    for step in steps:
        box = boxes.get(step["node"].rpartition(".")[2])  # `each[2].note` is a turn of `note`
        if box is not None:
            box.state, box.times = _worse(box.state, step["state"]), box.times + 1
    lines = [
        Line(boxes[edge["from"]], boxes[edge["to"]], _outcome(edge.get("when")))
        for edge in definition.get("edges", [])
        if edge["from"] in boxes and edge["to"] in boxes
    ]
    for node in definition.get("nodes", []):
        inside = [each for each in node.get("config", {}).get("body") or [] if each in boxes]
        entered = {line.target.id for line in lines if line.source.id in inside}
        lines += [Line(boxes[node["id"]], boxes[each], "", True) for each in inside if each not in entered]
    graph = Graph([*boxes.values()], lines)
    _place(graph, is_mirrored)
    return graph


def _outcome(when: object) -> str:
    return "" if when is None else str(when).lower() if isinstance(when, bool) else str(when)


ORDER = ("", "completed", "cancelled", "running", "waiting", "failed")


def _worse(one: str, other: str) -> str:
    """Return the state of a step that several turns have begun: the one that a person looks for."""
    return max(one, other, key=lambda state: ORDER.index(state) if state in ORDER else len(ORDER))


def _place(graph: Graph, is_mirrored: bool) -> None:
    layers = _layers(graph)
    rows: dict[str, float] = {}
    for layer in layers:
        before = {box.id: [rows[line.source.id] for line in graph.lines
                           if line.target is box and line.source.id in rows] for box in layer}  # fmt: skip
        layer.sort(key=lambda box: fmean(before[box.id]) if before[box.id] else 0.0)
        rows |= {box.id: at - (len(layer) - 1) / 2 for at, box in enumerate(layer)}
    tallest = max(map(len, layers), default=0)
    graph.width = 2 * MARGIN + max(0, len(layers) * (WIDTH + GAP) - GAP)
    graph.height = 2 * MARGIN + max(0, tallest * (HEIGHT + BETWEEN) - BETWEEN)
    for number, layer in enumerate(layers):
        x = MARGIN + number * (WIDTH + GAP)
        for box in layer:
            box.x = graph.width - x - WIDTH if is_mirrored else x
            box.y = round(graph.height / 2 - HEIGHT / 2 + rows[box.id] * (HEIGHT + BETWEEN))


def _layers(graph: Graph) -> list[list[Box]]:
    """Return the steps by the length of the longest way to them. Edges form no cycle (`definition`); if they
    did, this would still end."""
    depth = {box.id: 0 for box in graph.boxes}
    for _ in graph.boxes:
        deeper = {
            line.target.id: depth[line.source.id] + 1
            for line in graph.lines
            if depth[line.target.id] <= depth[line.source.id] < len(depth) - 1
        }
        if not deeper:
            break
        depth |= deeper
    layers: list[list[Box]] = [[] for _ in range(max(depth.values(), default=-1) + 1)]
    for box in graph.boxes:
        layers[depth[box.id]].append(box)
    return [layer for layer in layers if layer]

"""The tool memory.traverse: from a person, project, place, organisation, date or topic to the entities that
the same entries name, and to these entries."""

from __future__ import annotations

from typing import TypedDict

from fastrpc import Context, Meta, ToolError, tool

from . import _readers, _store
from ._answers import answer
from .memory import MemoryEntry, line, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated
else:
    from fastrpc.typing_forms import Annotated

LIMIT = 20


class Neighbour(TypedDict):
    """An entity: `kind` is person, project, place, organisation, date, topic (a tag or a link) or name;
    `distance` in steps; `entries` how many name it, of those that were looked at."""

    name: str
    kind: str
    distance: int
    entries: int


class Traversed(TypedDict):
    """Entities, the nearest first, and the entries that name them."""

    entities: list[Neighbour]
    entries: list[MemoryEntry]


@tool(name="memory.traverse", effect="read", run="thread")
def traverse(
    ctx: Context,
    entity: Annotated[str, "A name, a tag, a title of a [[link]], or a date"],
    depth: Annotated[int, Meta(ge=1, le=3, description="Steps from entry to entry")] = 1,
    limit: Annotated[int, Meta(ge=1, le=100, description="Of entities, and of entries")] = LIMIT,
) -> Traversed:
    """Go from a person, project, place, organisation or date to what is remembered together with it."""
    from ._store import graph

    if not entity.strip():
        raise ToolError("entity: expected a name, got an empty text.")
    reader, database = _readers.reader_of(ctx), _store.current().database
    nodes, found = graph.traverse(database, reader, entity, depth, limit)
    if not found:
        return answer(f"Nothing names {entity:.80}.", Traversed(entities=[], entries=[]))
    lines = [f"{'  ' * node.distance}{node.name} [{node.kind}] in {node.count}" for node in nodes]
    text = "\n".join([*lines, "", *map(line, found)])
    entities = [
        Neighbour(name=node.name, kind=node.kind, distance=node.distance, entries=node.count)
        for node in nodes
    ]
    return answer(text, Traversed(entities=entities, entries=[shown(each) for each in found]))

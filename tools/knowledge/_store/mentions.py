"""What entries name, beside them in the store: written with them, in the same transaction. The database takes
it out with its entry."""

from __future__ import annotations

from sqlalchemy import insert

from .._entities import entities_in
from .schema import mentions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.engine import Connection


def add_mentions(connection: Connection, space: int, found: Iterable[tuple[int, str, Sequence[str]]]) -> None:
    """Write down what entries of a space name: of each its number, content and tags."""
    rows = [
        {"entry": number, "key": each.key, "space": space, "kind": each.kind, "name": each.name}
        for number, content, tags in found
        for each in entities_in(content, tags)
    ]
    if rows:
        connection.execute(insert(mentions), rows)

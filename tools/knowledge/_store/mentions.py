"""What entries name. It is written with them, in the same transaction; the database deletes it with its
entry."""

from __future__ import annotations

from sqlalchemy import delete, insert, select, update

from .._entities import DATE, MOST, TOPIC, entities_in
from .schema import entity_readings, entries, mentions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

    from .._entities import Entity
    from .readings import Claimed


def add_mentions(connection: Connection, space: int, found: Iterable[tuple[int, str, Sequence[str]]]) -> None:
    """Store what entries of a space name; of each its number, content and tags are given."""
    named = [(number, each) for number, content, tags in found for each in entities_in(content, tags)]
    _add(connection, space, named)


def replace_mentions(database: Database, claimed: Claimed, said: Iterable[Entity]) -> None:
    """Store what an entry names: the entities that a model has found, and the links, tags and dates that need
    no model. Does nothing if the entry was deleted meanwhile."""
    is_it = entries.c.number == claimed.number
    with database.changing() as connection:
        wanted = select(entries.c.space, entries.c.tags).where(is_it).with_for_update(key_share=True)
        row = connection.execute(wanted).first()
        if row is None:
            return
        found = {each.key: each for each in said}
        for each in entities_in(claimed.content, row.tags.split("\n")[1:-1]):
            if each.kind in (TOPIC, DATE):
                found.setdefault(each.key, each)
        connection.execute(delete(mentions).where(mentions.c.entry == claimed.number))
        _add(connection, row.space, [(claimed.number, each) for each in list(found.values())[:MOST]])
        is_read = entity_readings.c.number == claimed.number
        connection.execute(update(entity_readings).where(is_read).values(done=True))


def _add(connection: Connection, space: int, named: Iterable[tuple[int, Entity]]) -> None:
    rows = [
        {"entry": number, "key": each.key, "space": space, "kind": each.kind, "name": each.name}
        for number, each in named
    ]
    if rows:
        connection.execute(insert(mentions), rows)

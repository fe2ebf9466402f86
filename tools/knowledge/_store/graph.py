"""The graph: the entities that entries name, and those named in the same entries.

Two entities are neighbours if an entry names both (`mentions`). A walk reads the newest entries of each step,
so that an entity that everything names costs no more than others. A walk never reaches data of another owner.
"""

from __future__ import annotations

from sqlalchemy import func, select

from .._entities import NAME, UNSURE, VAGUE, key_of
from .entries import ALL, Entry, columns, own_numbers
from .schema import entries, mentions

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

    from .entries import Reader

ENTRIES_LOOKED_AT = 500
"""Entries of each step of a walk: the newest."""


class Node:
    """A reached entity: the number of steps, and how many of the entries that were read name it."""

    __slots__ = ("count", "distance", "key", "kind", "name")

    def __init__(self, key: str, name: str, kind: str, count: int) -> None:
        self.key = key
        self.name = name
        self.kind = kind
        self.distance = 0
        self.count = count


def traverse(
    database: Database, reader: Reader, entity: str, depth: int, limit: int
) -> tuple[list[Node], list[Entry]]:
    """Return the entities that are at most `depth` steps away from one, the nearest first, and the entries
    that name it or them. Those that name it come first, superseded ones last."""
    with database.reading() as connection:
        own = own_numbers(connection, reader, ALL)
        keys = _keys_of(connection, own, entity)
        reached: dict[str, Node] = {}
        ranks: dict[int, int] = {}
        for distance in range(depth + 1):
            numbers = _entries_naming(connection, own, keys)
            for number in numbers:
                ranks.setdefault(number, distance)
            nodes = _named_in(connection, own, numbers, keys)
            if distance == 0:
                reached = {key: nodes[key] for key in keys if key in nodes}
            new = [node for key, node in nodes.items() if key not in reached]
            new.sort(key=lambda node: (-node.count, node.key))
            if distance == depth or not new or len(reached) >= limit:
                break
            for node in new[: limit - len(reached)]:
                node.distance = distance + 1
                reached[node.key] = node
            keys = [node.key for node in reached.values() if node.distance == distance + 1]
        return list(reached.values()), _read(connection, ranks, limit)


def _keys_of(connection: Connection, own: Sequence[int], entity: str) -> list[str]:
    """Return the keys of the meant entities: the one with this name, else those whose names contain its
    words."""
    key = key_of(entity)
    if not key:
        return []
    is_own = mentions.c.space.in_(own)
    known = select(mentions.c.key).where(is_own, mentions.c.key == key).limit(1)
    if connection.execute(known).first() is not None:
        return [key]
    words = (" " + mentions.c.key + " ").contains(f" {key} ", autoescape=True)
    found = select(mentions.c.key).where(is_own, words).group_by(mentions.c.key)
    return list(connection.execute(found.order_by(func.count().desc(), mentions.c.key).limit(10)).scalars())


def _entries_naming(connection: Connection, own: Sequence[int], keys: Sequence[str]) -> list[int]:
    found = select(mentions.c.entry).where(mentions.c.space.in_(own), mentions.c.key.in_(keys)).distinct()
    newest = found.order_by(mentions.c.entry.desc()).limit(ENTRIES_LOOKED_AT)
    return list(connection.execute(newest).scalars())


def _named_in(
    connection: Connection, own: Sequence[int], numbers: Sequence[int], meant: Sequence[str]
) -> dict[str, Node]:
    """Return the entities that these entries name, each with the kind that most of them give. One that is
    `unsure` in all entries is left out, unless it is `meant`."""
    wanted = (
        select(mentions.c.key, mentions.c.kind, func.max(mentions.c.name), func.count())
        .where(mentions.c.entry.in_(numbers))
        .group_by(mentions.c.key, mentions.c.kind)
    )
    votes: dict[str, list[tuple[int, int, str, str]]] = {}
    for key, kind, name, count in connection.execute(wanted):
        votes.setdefault(key, []).append((-VAGUE.get(kind, 0), count, kind, name))
    unsure = [key for key, each in votes.items() if max(each)[2] == UNSURE and key not in meant]
    is_sure = mentions.c.space.in_(own), mentions.c.key.in_(unsure), mentions.c.kind != UNSURE
    sure = set(connection.execute(select(mentions.c.key).where(*is_sure).distinct()).scalars())
    found = {}
    for key, each in votes.items():
        if key not in unsure or key in sure:
            _, _, kind, name = max(each)
            kind = NAME if kind == UNSURE else kind
            found[key] = Node(key, name, kind, sum(vote[1] for vote in each))
    return found


def _read(connection: Connection, ranks: dict[int, int], limit: int) -> list[Entry]:
    """Return the best of some entries: those that are not superseded, then the nearest, then the newest."""
    order: Any = entries.c.superseded_by.is_not(None)
    wanted = select(entries.c.number, order.label("gone")).where(entries.c.number.in_(list(ranks)))
    known = [(bool(row.gone), ranks[row.number], -row.number) for row in connection.execute(wanted)]
    best = [-number for _, _, number in sorted(known)[:limit]]
    rows = {row.number: row for row in connection.execute(columns().where(entries.c.number.in_(best)))}
    return [Entry(rows[number]) for number in best]

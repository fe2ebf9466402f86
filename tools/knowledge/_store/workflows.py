"""The definitions of each owner's workflows. Each function is one transaction. Raises StorageError."""

from __future__ import annotations

import time
from typing import NamedTuple

from sqlalchemy import delete, func, select

from .entries import count_change, space_of
from .schema import workflows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.storage.database import Database

MOST = 1000
"""Workflows of one owner."""


MOST_HOOKS = 100
"""Workflows with one id, of different owners, whose webhooks are tried."""


class Kept(NamedTuple):
    """A stored workflow: the JSON of its definition and of its starter."""

    owner: str
    definition: str
    starter: str
    secret: str


KEPT = (workflows.c.owner, workflows.c.definition, workflows.c.starter, workflows.c.secret)


def kept(database: Database, owner: str, id: str) -> Kept | None:
    """Return a workflow, None if it does not exist."""
    wanted = select(*KEPT).where(workflows.c.owner == owner, workflows.c.id == id)
    with database.reading() as connection:
        found = connection.execute(wanted).one_or_none()
    return None if found is None else Kept(*found)


def hooks(database: Database, id: str) -> list[Kept]:
    """Return the workflows with this id that have the secret of a webhook, of all owners."""
    wanted = select(*KEPT).where(workflows.c.id == id, workflows.c.secret != "").limit(MOST_HOOKS)
    with database.reading() as connection:
        return [Kept(*row) for row in connection.execute(wanted)]


def with_trigger(database: Database, trigger: str) -> list[Kept]:
    """Return the workflows with this type of trigger, of all owners."""
    wanted = select(*KEPT).where(workflows.c.trigger == trigger)
    with database.reading() as connection:
        return [Kept(*row) for row in connection.execute(wanted)]


def write(database: Database, id: str, kept: Kept, trigger: str) -> bool | None:
    """Store a definition, which replaces the one with its id; return whether it is new. None: the owner has
    too many."""
    owner = kept.owner
    is_it = (workflows.c.owner == owner) & (workflows.c.id == id)
    with database.changing() as connection:
        is_new = connection.execute(delete(workflows).where(is_it)).rowcount == 0
        count = select(func.count()).select_from(workflows).where(workflows.c.owner == owner)
        if int(connection.execute(count).scalar_one()) >= MOST:
            return None
        row = {"id": id, "trigger": trigger, "changed_at": time.time(), **kept._asdict()}
        connection.execute(workflows.insert().values(row))
        count_change(connection, {space_of(connection, owner, "")})
    return is_new


def read(database: Database, owner: str, id: str) -> str | None:
    """Return a definition, None if it does not exist."""
    wanted = select(workflows.c.definition).where(workflows.c.owner == owner, workflows.c.id == id)
    with database.reading() as connection:
        found = connection.execute(wanted).scalar()
    return None if found is None else str(found)


def of_owner(database: Database, owner: str) -> list[tuple[str, float]]:
    """Return definitions with the times of their last change, the newest first."""
    wanted = select(workflows.c.definition, workflows.c.changed_at).where(workflows.c.owner == owner)
    with database.reading() as connection:
        rows = connection.execute(wanted.order_by(workflows.c.changed_at.desc())).all()
    return [(definition, changed_at) for definition, changed_at in rows]


def forget(database: Database, owner: str, id: str) -> bool:
    """Delete a definition. False: it does not exist."""
    is_it = (workflows.c.owner == owner) & (workflows.c.id == id)
    with database.changing() as connection:
        is_gone = connection.execute(delete(workflows).where(is_it)).rowcount == 1
        if is_gone:
            count_change(connection, {space_of(connection, owner, "")})
    return is_gone


def stamp(database: Database, owner: str, id: str) -> object:
    """Return a value that differs after a definition was added, changed or deleted; without an id, after any
    was."""
    wanted = select(func.count(), func.max(workflows.c.changed_at)).where(workflows.c.owner == owner)
    with database.reading() as connection:
        return tuple(connection.execute(wanted.where(workflows.c.id == id) if id else wanted).one())

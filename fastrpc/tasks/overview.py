"""Tasks of all owners and servers of a database, for people who look after them: `page_of_all`, `task_with`.

Without the texts that may be long (params, result, questions), which are the owner's; `message` has at most
`MESSAGE_LIMIT` characters.
"""

from __future__ import annotations

from sqlalchemy import and_, or_, select

from fastrpc.tasks.record import TaskRecord
from fastrpc.tasks.schema import tasks
from fastrpc.tasks.store import SHORT_COLUMNS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import Select
    from sqlalchemy.engine import Connection


def page_of_all(
    connection: Connection, now: float, limit: int, states: tuple[str, ...], after: str = ""
) -> list[TaskRecord]:
    """Return tasks in some states, the newest first: those after the task with the id `after`, or the first
    ones, if there is no such task."""
    wanted = _kept(now).where(tasks.c.state.in_(states))
    last = task_with(connection, after, now) if after else None
    if last is not None:
        same = and_(tasks.c.created_at == last.created_at, tasks.c.id < last.id)
        wanted = wanted.where(or_(tasks.c.created_at < last.created_at, same))
    wanted = wanted.order_by(tasks.c.created_at.desc(), tasks.c.id.desc()).limit(limit)
    return [TaskRecord(*row) for row in connection.execute(wanted)]


def task_with(connection: Connection, id: str, now: float) -> TaskRecord | None:
    """Return the task with an id, None if there is none."""
    row = connection.execute(_kept(now).where(tasks.c.id == id)).one_or_none()
    return None if row is None else TaskRecord(*row)


def _kept(now: float) -> Select[Any]:
    return select(*SHORT_COLUMNS).where(or_(tasks.c.expires_at.is_(None), tasks.c.expires_at > now))

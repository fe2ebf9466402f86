"""The rows of tasks. Every change is one conditional update: what has ended stays as it ended.

Each function takes the connection of a transaction; `journal` runs them, many in one transaction. A row is
changed only while its task is open, and a result or an error is written only by the worker that holds the
lease: a worker that was taken for lost, and is not, writes nothing more.
"""

from __future__ import annotations

import json
import secrets

from sqlalchemy import and_, delete, func, insert, or_, select, update

from fastrpc.tasks.record import CANCELLED, INPUT_REQUIRED, OPEN, WORKING, TaskRecord
from fastrpc.tasks.schema import tasks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from sqlalchemy import ColumnElement
    from sqlalchemy.engine import Connection

ID_BYTES = 18
MOST_OPEN = 1000
"""Open tasks of one owner."""
ARGUMENTS_LIMIT = 4 * 1024 * 1024
RESULT_LIMIT = 16 * 1024 * 1024
"""Characters of JSON."""
MESSAGE_LIMIT = 1000
REMOVED_AT_ONCE = 500

COLUMNS = tuple(tasks.c[name] for name in TaskRecord._fields)


class TooManyTasks(Exception):
    """The owner has as many open tasks as an owner may have."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} open tasks")
        self.limit = limit


def new_id() -> str:
    """Return an id that cannot be guessed (144 bits)."""
    return secrets.token_urlsafe(ID_BYTES)


def create(connection: Connection, record: TaskRecord) -> None:
    """Insert a task. Raises TooManyTasks."""
    mine = and_(tasks.c.owner == record.owner, tasks.c.state.in_(OPEN))
    if int(connection.execute(select(func.count()).select_from(tasks).where(mine)).scalar_one()) >= MOST_OPEN:
        raise TooManyTasks(MOST_OPEN)
    connection.execute(insert(tasks).values(record._asdict()))


def read(connection: Connection, id: str, owner: str, now: float) -> TaskRecord | None:
    """Return a task; None if there is none with this id, it has expired, or it is another owner's."""
    wanted = select(*COLUMNS).where(tasks.c.id == id, tasks.c.owner == owner, _is_kept(now))
    found = connection.execute(wanted).one_or_none()
    return None if found is None else TaskRecord(*found)


def page(
    connection: Connection, owner: str, now: float, limit: int, after: tuple[float, str] | None = None
) -> list[TaskRecord]:
    """Return an owner's tasks, the newest first: those after a place, which is the time of creation and the
    id of the last one seen."""
    wanted = select(*COLUMNS).where(tasks.c.owner == owner, _is_kept(now))
    if after is not None:
        created_at, id = after
        same = and_(tasks.c.created_at == created_at, tasks.c.id < id)
        wanted = wanted.where(or_(tasks.c.created_at < created_at, same))
    wanted = wanted.order_by(tasks.c.created_at.desc(), tasks.c.id.desc()).limit(limit)
    return [TaskRecord(*row) for row in connection.execute(wanted)]


# --- by the worker that runs the task -----------------------------------------------------------------------


def set_message(connection: Connection, id: str, worker: str, message: str, now: float) -> bool:
    """Store what the task says of itself."""
    return _change(connection, _is_held(id, worker), now, message=message[:MESSAGE_LIMIT])


def ask(connection: Connection, id: str, worker: str, questions: dict[str, Any], now: float) -> bool:
    """Add input requests, by keys that this task has not used, and mark the task as waiting for them."""
    row = _locked(connection, _is_held(id, worker))
    if row is None:
        return False
    asked = json.loads(row.questions or "{}") | questions
    return _change(connection, _is_held(id, worker), now, state=INPUT_REQUIRED, questions=_json(asked))


def end(
    connection: Connection,
    id: str,
    worker: str,
    state: str,
    now: float,
    *,
    result: str = "",
    error: str = "",
    message: str | None = None,
) -> bool:
    """End a task. False: it had ended, or another worker has it now."""
    values: dict[str, Any] = {"state": state, "result": result, "error": error, "questions": ""}
    if message is not None:
        values["message"] = message[:MESSAGE_LIMIT]
    return _change(connection, _is_held(id, worker), now, **values)


def renew(connection: Connection, worker: str, until: float) -> None:
    """Extend the leases of a worker."""
    held = and_(tasks.c.worker == worker, tasks.c.state.in_(OPEN))
    connection.execute(update(tasks).where(held).values(lease_until=until))


def take_lost(connection: Connection, worker: str, until: float, now: float, limit: int) -> list[TaskRecord]:
    """Give a worker the tasks whose worker has let its lease expire, and return them."""
    lost = and_(tasks.c.state.in_(OPEN), tasks.c.lease_until < now)
    wanted = select(tasks.c.id).where(lost).order_by(tasks.c.lease_until).limit(limit)
    ids = [row[0] for row in connection.execute(wanted.with_for_update(skip_locked=True))]
    if not ids:
        return []
    values = {"worker": worker, "lease_until": until, "runs": tasks.c.runs + 1}
    connection.execute(update(tasks).where(lost, tasks.c.id.in_(ids)).values(values))
    mine = and_(tasks.c.id.in_(ids), tasks.c.worker == worker)
    return [TaskRecord(*row) for row in connection.execute(select(*COLUMNS).where(mine))]


# --- by the client ------------------------------------------------------------------------------------------


def answer(connection: Connection, id: str, owner: str, responses: dict[str, Any], now: float) -> set[str]:
    """Store the answers to input requests that have none, and return their keys; the task goes on when it
    has all."""
    row = _locked(connection, and_(tasks.c.id == id, tasks.c.owner == owner, tasks.c.state == INPUT_REQUIRED))
    if row is None:
        return set()
    questions = json.loads(row.questions or "{}")
    taken = {key: value for key, value in responses.items() if key in questions}
    if not taken:
        return set()
    questions = {key: value for key, value in questions.items() if key not in taken}
    answers = json.loads(row.answers or "{}") | taken
    connection.execute(
        update(tasks)
        .where(tasks.c.id == id)
        .values(
            questions=_json(questions) if questions else "",
            answers=_json(answers),
            state=INPUT_REQUIRED if questions else WORKING,
            updated_at=now,
        )
    )
    return set(taken)


def cancel(connection: Connection, id: str, owner: str, now: float) -> bool:
    """Mark a task as cancelled; who runs it ends its work. False: it has ended, or is not there."""
    mine = and_(tasks.c.id == id, tasks.c.owner == owner, tasks.c.state.in_(OPEN), _is_kept(now))
    return _change(connection, mine, now, state=CANCELLED, questions="")


# --- by anyone ----------------------------------------------------------------------------------------------


def remove_expired(connection: Connection, now: float) -> int:
    """Delete tasks whose time to live is over, open ones too, and return how many."""
    ids = select(tasks.c.id).where(tasks.c.expires_at <= now).limit(REMOVED_AT_ONCE)
    return connection.execute(delete(tasks).where(tasks.c.id.in_(ids))).rowcount


def ended_among(connection: Connection, ids: list[str]) -> list[str]:
    """Return those of some tasks that are not open any more, or deleted."""
    wanted = select(tasks.c.id).where(tasks.c.id.in_(ids), tasks.c.state.in_(OPEN))
    still_open = {row[0] for row in connection.execute(wanted)}
    return [id for id in ids if id not in still_open]


def _is_kept(now: float) -> ColumnElement[bool]:
    return or_(tasks.c.expires_at.is_(None), tasks.c.expires_at > now)


def _is_held(id: str, worker: str) -> ColumnElement[bool]:
    return and_(tasks.c.id == id, tasks.c.worker == worker, tasks.c.state.in_(OPEN))


def _locked(connection: Connection, which: ColumnElement[bool]) -> Any:
    return connection.execute(select(*COLUMNS).where(which).with_for_update()).one_or_none()


def _change(connection: Connection, which: ColumnElement[bool], now: float, **values: Any) -> bool:
    done = connection.execute(update(tasks).where(which).values(updated_at=now, **values))
    return done.rowcount == 1


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

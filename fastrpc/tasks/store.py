"""The rows of tasks. Every change is one conditional update: what has ended stays as it ended.

Each function takes the connection of a transaction; `journal` runs them, many in one transaction. A row is
changed only while its task is open, and a result or an error is written only by the worker that holds the
lease: a worker that was taken for lost, and is not, writes nothing more.
"""

from __future__ import annotations

import json
import secrets

from sqlalchemy import Integer, and_, bindparam, delete, func, literal_column, not_, or_, select, update

from fastrpc.errors import FastrpcError, InvalidParams
from fastrpc.storage.statements import INSERTS, NamedStatement
from fastrpc.tasks.changes import announce
from fastrpc.tasks.record import CANCELLED, FAILED, INPUT_REQUIRED, OPEN, WORKING, Answers, TaskRecord
from fastrpc.tasks.schema import tasks
from fastrpc.tasks.workers import OF_WORKERS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from sqlalchemy import BindParameter, ColumnElement
    from sqlalchemy.engine import Connection

ID_BYTES = 16
MOST_OPEN = 1000
"""Open tasks of one owner."""
PARAMS_LIMIT = 4 * 1024 * 1024
RESULT_LIMIT = 16 * 1024 * 1024
"""Characters of JSON."""
MESSAGE_LIMIT = 1000
REMOVED_AT_ONCE = 500
UNGUARDED = ("",)
"""The guards (`TaskRecord.guard`) of tasks that a process without a guard may run."""

_OVER = {"params": "", "questions": "", "answers": "", "request_state": ""}
"""What a task that has ended does not keep."""

_MAY_RUN_AGAIN = or_(tasks.c.idempotent != 0, tasks.c.approval != "")

COLUMNS = tuple(tasks.c[name] for name in TaskRecord._fields)
LONG = ("params", "questions", "answers", "request_state", "result", "error")
SHORT_COLUMNS = tuple(
    literal_column("''").label(name) if name in LONG else tasks.c[name] for name in TaskRecord._fields
)
"""A record without the texts that may be long: a hundred results of `RESULT_LIMIT` do not fit into memory."""


def _given(column: str, name: str | None = None) -> BindParameter[Any]:
    """A value of a column, by the column's name or another."""
    return bindparam(name or column, type_=tasks.c[column].type)


# The statements that each task needs are made once: making one takes longer than running it.
_IS_OPEN = tasks.c.state.in_([literal_column(f"'{state}'") for state in OPEN])
_OPEN_OF_OWNER = select(func.count()).select_from(tasks).where(tasks.c.owner == _given("owner"), _IS_OPEN)
_NEW = select(*map(_given, TaskRecord._fields)).where(
    _OPEN_OF_OWNER.scalar_subquery() < bindparam("most", type_=Integer)
)
_CREATE = {
    kind: NamedStatement(insert(tasks).from_select(TaskRecord._fields, _NEW).on_conflict_do_nothing())
    for kind, insert in INSERTS.items()
}
_READ = NamedStatement(
    select(*COLUMNS).where(
        tasks.c.id == _given("id"),
        tasks.c.server == _given("server"),
        tasks.c.owner == _given("owner"),
        or_(tasks.c.expires_at.is_(None), tasks.c.expires_at > _given("expires_at", "now")),
    )
)
_END = NamedStatement(
    update(tasks)
    .where(tasks.c.id == _given("id", "of"), tasks.c.worker == _given("worker", "by"), _IS_OPEN)
    .values(
        **{name: _given(name) for name in ("state", "updated_at", "result", "error")},
        message=func.coalesce(_given("message"), tasks.c.message),
        **{name: literal_column("''") for name in _OVER},
    )
)
_QUEUED = (
    select(*COLUMNS)
    .where(
        tasks.c.state == WORKING,
        or_(
            tasks.c.worker == "",
            and_(
                tasks.c.worker == bindparam("worker"), tasks.c.id.not_in(bindparam("known", expanding=True))
            ),
        ),
        tasks.c.server == bindparam("server"),
        tasks.c.tool.in_(bindparam("tools", expanding=True)),
        tasks.c.guard.in_(bindparam("guards", expanding=True)),
    )
    .order_by(tasks.c.created_at)
    .limit(bindparam("places"))
    .with_for_update(skip_locked=True)
)
_TAKE = (
    update(tasks)
    .where(tasks.c.id.in_(bindparam("ids", expanding=True)))
    .values(worker=bindparam("taker"), lease_until=bindparam("until"), runs=tasks.c.runs + 1, approval="")
)


class TooManyTasks(FastrpcError):
    """The owner has as many open tasks as an owner may have."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"{limit} open tasks")
        self.limit = limit


class ParamsTooLong(InvalidParams):
    """The params of a task's call have more characters than are kept."""

    def __init__(self, length: int) -> None:
        super().__init__(
            f"params: expected at most {PARAMS_LIMIT:,} characters in the call of a task, got {length:,}"
        )


def kept_message(message: str) -> str:
    """Return what is kept of a task's message: the first `MESSAGE_LIMIT` characters, without U+0000, which a
    text in PostgreSQL cannot hold. JSON, as in the other columns, escapes it."""
    return message[:MESSAGE_LIMIT].replace("\0", "\ufffd")


def new_id() -> str:
    """Return an id that cannot be guessed (128 bits); no "-", with which an option begins."""
    return secrets.token_hex(ID_BYTES)


def create(connection: Connection, record: TaskRecord) -> None:
    """Insert a task, unless an earlier attempt, whose answer was lost, has done so. Raises TooManyTasks."""
    done = _CREATE[connection.dialect.name].run(connection, {**record._asdict(), "most": MOST_OPEN})
    if done.rowcount != 1 and not _is_there(connection, record.id):
        raise TooManyTasks(MOST_OPEN)
    if not record.worker:
        announce(connection, record.id, "")


def read(connection: Connection, id: str, server: str, owner: str, now: float) -> TaskRecord | None:
    """Return a task; None if there is none with this id, it has expired, or it is another owner's or of
    another server."""
    asked = {"id": id, "server": server, "owner": owner, "now": now}
    found = _READ.run(connection, asked).one_or_none()
    return None if found is None else TaskRecord._make(found)


def page(
    connection: Connection,
    server: str,
    owner: str,
    now: float,
    limit: int,
    after: tuple[float, str] | None = None,
) -> list[TaskRecord]:
    """Return an owner's tasks of a server by `SHORT_COLUMNS`, the newest first: those after a place, which
    is the time of creation and the id of the last one seen."""
    wanted = select(*SHORT_COLUMNS).where(_is_of(server, owner), _is_kept(now))
    if after is not None:
        created_at, id = after
        same = and_(tasks.c.created_at == created_at, tasks.c.id < id)
        wanted = wanted.where(or_(tasks.c.created_at < created_at, same))
    wanted = wanted.order_by(tasks.c.created_at.desc(), tasks.c.id.desc()).limit(limit)
    return [TaskRecord(*row) for row in connection.execute(wanted)]


# --- by the worker that runs the task -------------------------------------------------------------------


def set_message(connection: Connection, id: str, worker: str, message: str, now: float) -> bool:
    """Store what the task says of itself."""
    return _change(connection, _is_held(id, worker), now, message=kept_message(message))


def note_approval(
    connection: Connection, id: str, worker: str, approval: str, message: str, now: float
) -> bool:
    """Store for which approval the call waits, so that any process may begin it, or "" when it begins in this
    one. False: the task has ended, or another worker has it now."""
    values = {"approval": approval, "message": kept_message(message)}
    return _change(connection, _is_held(id, worker), now, **values)


def ask(
    connection: Connection, id: str, worker: str, questions: dict[str, Any], request_state: str, now: float
) -> bool:
    """Store the input requests without which the call cannot go on, and its state. No worker has the task
    until all are answered."""
    row = _locked(connection, _is_held(id, worker))
    if row is None:
        return False
    answers, asked = answers_of(row).of_new_round(questions)
    values = {"questions": _json(asked), "answers": _json(answers), "request_state": request_state}
    return _change(connection, tasks.c.id == id, now, state=INPUT_REQUIRED, worker="", **values)


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
    values = {"of": id, "by": worker, "state": state, "updated_at": now, "result": result, "error": error}
    values["message"] = None if message is None else kept_message(message)
    return _END.run(connection, values).rowcount == 1


def renew(connection: Connection, worker: str, until: float, ids: list[str]) -> None:
    """Extend the leases of tasks that a worker runs. It may have others of which it does not know: a
    transaction that has given it one may have been committed without an answer."""
    held = and_(tasks.c.worker == worker, tasks.c.state == WORKING, tasks.c.id.in_(ids))
    connection.execute(update(tasks).where(held).values(lease_until=until))


def release(connection: Connection, worker: str) -> None:
    """End the leases of a worker."""
    held = and_(tasks.c.worker == worker, tasks.c.state == WORKING)
    connection.execute(update(tasks).where(held).values(lease_until=0.0))


def workers(connection: Connection, server: str) -> list[str]:
    """Return the workers that have tasks of a server."""
    held = and_(tasks.c.state == WORKING, tasks.c.server == server, tasks.c.worker != "")
    wanted = select(tasks.c.worker).where(held).distinct()
    return [row[0] for row in connection.execute(wanted)]


def take_lost(
    connection: Connection,
    server: str,
    worker: str,
    until: float,
    now: float,
    ended: list[str],
    limit: int,
    guards: Sequence[str] = UNGUARDED,
) -> list[TaskRecord]:
    """Give a worker the tasks of a server whose worker has let its lease expire, or has `ended`, those whose
    tool is idempotent or has not begun, since its call waited for an approval, and which one of `guards`
    guards; return them."""
    lost = and_(_is_lost(server, worker, now, ended, guards), _MAY_RUN_AGAIN)
    wanted = select(*COLUMNS).where(lost).order_by(tasks.c.lease_until).limit(limit)
    return _taken(connection, connection.execute(wanted.with_for_update(skip_locked=True)), worker, until)


def fail_lost(
    connection: Connection,
    server: str,
    worker: str,
    now: float,
    ended: list[str],
    limit: int,
    error: str,
    guards: Sequence[str] = UNGUARDED,
) -> list[tuple[str, str]]:
    """End those whose tool must not run again; return their ids and owners. No worker gets them: one that did
    not hear of it could take them for tasks that it has yet to begin."""
    lost = and_(_is_lost(server, worker, now, ended, guards), not_(_MAY_RUN_AGAIN))
    wanted = select(tasks.c.id, tasks.c.owner).where(lost).limit(limit).with_for_update(skip_locked=True)
    found = [(id, owner) for id, owner in connection.execute(wanted)]
    if found:
        which = tasks.c.id.in_([id for id, _ in found])
        _change(connection, which, now, state=FAILED, error=error, **_OVER)
    return found


def take_queued(
    connection: Connection,
    server: str,
    tools: list[str],
    worker: str,
    until: float,
    known: list[str],
    limit: int,
    guards: Sequence[str] = UNGUARDED,
) -> list[TaskRecord]:
    """Give a worker tasks of a server that no process has begun, the oldest first, of tools and guards that
    it has; return them. Those that it holds, besides the ones that it knows of, are such tasks too: it did
    not hear that an earlier transaction had been committed."""
    asked = {"worker": worker, "known": known, "server": server, "tools": tools, "places": limit}
    return _taken(connection, connection.execute(_QUEUED, {**asked, "guards": guards}), worker, until)


def other_guards(connection: Connection, server: str, guards: Sequence[str]) -> list[str]:
    """Return the guards, besides some, of the tasks of a server that no process has begun."""
    queued = and_(tasks.c.state == WORKING, tasks.c.worker == "", tasks.c.server == server)
    wanted = select(tasks.c.guard).where(queued, tasks.c.guard.not_in(guards)).distinct()
    return sorted(row[0] for row in connection.execute(wanted))


def take_cancelled(
    connection: Connection,
    server: str,
    tools: list[str],
    now: float,
    limit: int,
    guards: Sequence[str] = UNGUARDED,
) -> list[TaskRecord]:
    """Return cancelled tasks of a server that have kept their call, of tools and guards that the process has;
    no other process gets them."""
    left = and_(tasks.c.state == CANCELLED, tasks.c.params != "", tasks.c.server == server, _is_kept(now))
    mine = and_(left, tasks.c.tool.in_(tools), tasks.c.guard.in_(guards))
    wanted = select(*COLUMNS).where(mine).limit(limit).with_for_update(skip_locked=True)
    found = [TaskRecord(*row) for row in connection.execute(wanted)]
    if found:
        _change(connection, tasks.c.id.in_([each.id for each in found]), now, **_OVER)
    return [each._replace(runs=each.runs + 1) for each in found]


def _taken(connection: Connection, found: Iterable[Any], worker: str, until: float) -> list[TaskRecord]:
    """Give a worker the tasks of some locked rows; return them, with the approvals for which they waited."""
    records = [TaskRecord(*row) for row in found]
    if records:
        ids = [each.id for each in records]
        connection.execute(_TAKE, {"ids": ids, "taker": worker, "until": until})
    return [each._replace(worker=worker, lease_until=until, runs=each.runs + 1) for each in records]


# --- by the client --------------------------------------------------------------------------------------


def answer(
    connection: Connection,
    id: str,
    owner: str,
    responses: dict[str, Any],
    worker: str,
    until: float,
    now: float,
) -> TaskRecord | None:
    """Store the answers to input requests that have none; others are ignored. When all are answered, give the
    task to a worker, or without one leave it to any, and return it as it was: with the state of its call and
    all answers."""
    row = _locked(connection, and_(tasks.c.id == id, tasks.c.owner == owner, tasks.c.state == INPUT_REQUIRED))
    if row is None:
        return None
    questions = json.loads(row.questions)
    answers = answers_of(row)
    for key, response in responses.items():
        if questions.pop(key, None) is not None:
            answers.responses[answers.keys[key]] = response
    values: dict[str, Any] = {"questions": _json(questions), "answers": _json(answers)}
    if not questions:
        values.update(state=WORKING, worker=worker, lease_until=until, approval="")
        if worker:
            values["runs"] = tasks.c.runs + 1
        else:
            announce(connection, id, "")
    _change(connection, tasks.c.id == id, now, **values)
    return None if questions else row._replace(answers=values["answers"])


def cancel(
    connection: Connection,
    id: str,
    owner: str,
    now: float,
    *,
    message: str | None = None,
    keeps_call: bool = False,
) -> bool:
    """Mark a task as cancelled; who runs it ends its work. `message`: what it says from now on. False: it
    has ended, or is not there. `keeps_call`: no process runs it, and `take_cancelled` gives it to one of its
    server, whose function ends what it has begun."""
    mine = and_(tasks.c.id == id, tasks.c.owner == owner, _IS_OPEN, _is_kept(now))
    said = {} if message is None else {"message": kept_message(message)}
    over = {} if keeps_call else _OVER
    return _change(connection, mine, now, state=CANCELLED, **said, **over)


def approval_of(connection: Connection, id: str) -> str:
    """Return the approval for which a task waited when it was cancelled, unless others wait for it, too."""
    approval = connection.execute(select(tasks.c.approval).where(tasks.c.id == id)).scalar_one_or_none()
    others = and_(tasks.c.approval == approval, tasks.c.id != id, _IS_OPEN)
    if not approval or connection.execute(select(tasks.c.id).where(others).limit(1)).first() is not None:
        return ""
    return str(approval)


# --- by anyone ------------------------------------------------------------------------------------------


def remove_expired(connection: Connection, now: float) -> int:
    """Delete tasks whose time to live is over, open ones too, and return how many."""
    ids = select(tasks.c.id).where(tasks.c.expires_at <= now).limit(REMOVED_AT_ONCE)
    return connection.execute(delete(tasks).where(tasks.c.id.in_(ids))).rowcount


def asked_about_approvals(
    connection: Connection, server: str, guards: Sequence[str] = UNGUARDED
) -> list[tuple[str, str]]:
    """Return the ids of tasks whose clients have been asked to approve the call, with their approvals."""
    is_asked = and_(tasks.c.state == INPUT_REQUIRED, tasks.c.approval != "")
    asked = and_(is_asked, tasks.c.server == server, tasks.c.guard.in_(guards))
    return [(row[0], row[1]) for row in connection.execute(select(tasks.c.id, tasks.c.approval).where(asked))]


def proceed(
    connection: Connection, id: str, approval: str, worker: str, until: float, now: float
) -> TaskRecord | None:
    """Give a task to a worker whose approval is over although its client has not answered; return it."""
    asked = and_(tasks.c.id == id, tasks.c.state == INPUT_REQUIRED, tasks.c.approval == approval)
    row = _locked(connection, asked)
    if row is not None:
        values = {"state": WORKING, "worker": worker, "lease_until": until, "questions": "", "approval": ""}
        _change(connection, tasks.c.id == id, now, runs=tasks.c.runs + 1, **values)
    return row


def ended_among(connection: Connection, ids: list[str], worker: str) -> list[str]:
    """Return those of some tasks that a worker does not run any more: ended, deleted, or another's."""
    wanted = select(tasks.c.id).where(tasks.c.id.in_(ids), tasks.c.state == WORKING, tasks.c.worker == worker)
    still_open = {row[0] for row in connection.execute(wanted)}
    return [id for id in ids if id not in still_open]


def answers_of(record: TaskRecord) -> Answers:
    """Return what is known of a task's questions."""
    return Answers(*json.loads(record.answers)) if record.answers else Answers({}, {}, [])


def _is_there(connection: Connection, id: str) -> bool:
    return connection.execute(select(tasks.c.id).where(tasks.c.id == id)).first() is not None


def _is_of(server: str, owner: str) -> ColumnElement[bool]:
    return and_(tasks.c.server == server, tasks.c.owner == owner)


def _is_kept(now: float) -> ColumnElement[bool]:
    return or_(tasks.c.expires_at.is_(None), tasks.c.expires_at > now)


def _is_lost(
    server: str, worker: str, now: float, ended: list[str], guards: Sequence[str]
) -> ColumnElement[bool]:
    """What `fastrpc worker` ran goes to another such process, what a server ran to a server."""
    like_mine: ColumnElement[bool] = tasks.c.worker.like(OF_WORKERS)
    if not worker.endswith(OF_WORKERS[1:]):
        like_mine = and_(not_(like_mine), tasks.c.worker != "")
    is_lost = and_(like_mine, or_(tasks.c.lease_until < now, tasks.c.worker.in_(ended)))
    return and_(tasks.c.state == WORKING, tasks.c.server == server, tasks.c.guard.in_(guards), is_lost)


def _is_held(id: str, worker: str) -> ColumnElement[bool]:
    return and_(tasks.c.id == id, tasks.c.worker == worker, _IS_OPEN)


def _locked(connection: Connection, which: ColumnElement[bool]) -> TaskRecord | None:
    found = connection.execute(select(*COLUMNS).where(which).with_for_update()).one_or_none()
    return None if found is None else TaskRecord(*found)


def _change(connection: Connection, which: ColumnElement[bool], now: float, **values: Any) -> bool:
    done = connection.execute(update(tasks).where(which).values(updated_at=now, **values))
    return done.rowcount == 1


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

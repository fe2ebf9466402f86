"""The rows of tasks in SQLite and in PostgreSQL: who sees one, what changes one, and what ends one."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, TypeVar

import pytest
from sqlalchemy.engine import Connection
from support.waiting import SECONDS

from fastrpc.storage import open_database
from fastrpc.storage.database import Database
from fastrpc.tasks import store, workers
from fastrpc.tasks.journal import Journal, JournalClosed
from fastrpc.tasks.kind import TASKS
from fastrpc.tasks.record import CANCELLED, COMPLETED, FAILED, INPUT_REQUIRED, WORKING, TaskRecord, iso_8601

pytest_plugins = ["support.postgres"]

Value = TypeVar("Value")
NOW = 1_800_000_000.25
QUESTION = {"method": "elicitation/create", "params": {"message": "Which?"}}


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    found = open_database(database_url, TASKS)
    yield found
    found.close()


def record(**changes: Any) -> TaskRecord:
    given: dict[str, Any] = {
        "id": store.new_id(),
        "owner": "ada",
        "server": "shop",
        "tool": "build",
        "version": "2026-07-28",
        "params": '{"name":"build","arguments":{"path":"é"}}',
        "idempotent": 0,
        "state": WORKING,
        "message": "",
        "questions": "",
        "answers": "",
        "request_state": "",
        "result": "",
        "error": "",
        "created_at": NOW,
        "updated_at": NOW,
        "ttl_ms": 60_000,
        "expires_at": NOW + 60,
        "poll_ms": 500,
        "worker": "w1",
        "lease_until": NOW + 15,
        "runs": 1,
    }
    return TaskRecord(**given | changes)


def created(database: Database, **changes: Any) -> TaskRecord:
    made = record(**changes)
    with database.changing() as connection:
        store.create(connection, made)
    return made


def seen(database: Database, id: str, owner: str = "ada", now: float = NOW) -> TaskRecord | None:
    with database.reading() as connection:
        return store.read(connection, id, "shop", owner, now)


def there(database: Database, id: str) -> TaskRecord:
    found = seen(database, id)
    assert found is not None
    return found


def _create(record: TaskRecord, connection: Connection) -> None:
    store.create(connection, record)


def answered(database: Database, id: str, owner: str, responses: dict[str, Any]) -> TaskRecord | None:
    return changed(database, store.answer, id, owner, responses, "w2", NOW + 30, NOW)


def changed(database: Database, function: Callable[..., Value], *values: Any, **named: Any) -> Value:
    with database.changing() as connection:
        return function(connection, *values, **named)


def test_a_task_is_read_as_it_was_written_by_its_owner_alone(database: Database) -> None:
    made = created(database)
    assert seen(database, made.id) == made
    assert seen(database, made.id, "bob") is None
    assert seen(database, "no such id") is None


def test_a_task_is_there_until_its_time_is_over(database: Database) -> None:
    made, endless = created(database), created(database, ttl_ms=None, expires_at=None)
    assert seen(database, made.id, now=NOW + 59.9) == made
    assert seen(database, made.id, now=NOW + 60) is None
    assert changed(database, store.remove_expired, NOW + 59.9) == 0
    assert changed(database, store.remove_expired, NOW + 60) == 1
    assert seen(database, endless.id, now=NOW + 10**8) == endless


def test_of_two_ends_the_first_one_counts(database: Database) -> None:
    made = created(database)
    assert changed(database, store.end, made.id, "w1", COMPLETED, NOW + 1, result='{"content":[]}')
    assert not changed(database, store.end, made.id, "w1", FAILED, NOW + 2, error="{}")
    assert not changed(database, store.cancel, made.id, "ada", NOW + 2)
    assert not changed(database, store.set_message, made.id, "w1", "late", NOW + 2)
    found = seen(database, made.id)
    assert found == made._replace(state=COMPLETED, params="", result='{"content":[]}', updated_at=NOW + 1)


def test_only_its_owner_cancels_a_task_and_its_worker_writes_nothing_afterwards(database: Database) -> None:
    made = created(database)
    assert not changed(database, store.cancel, made.id, "bob", NOW)
    assert changed(database, store.cancel, made.id, "ada", NOW + 1)
    assert not changed(database, store.end, made.id, "w1", COMPLETED, NOW + 2, result="{}")
    found = seen(database, made.id)
    assert found is not None
    assert (found.state, found.result, found.updated_at) == (CANCELLED, "", NOW + 1)
    with database.reading() as connection:
        assert store.ended_among(connection, [made.id, "gone"], "w1") == [made.id, "gone"]


def test_a_task_waits_until_each_of_its_questions_has_an_answer(database: Database) -> None:
    made = created(database)
    assert changed(database, store.ask, made.id, "w1", {"a": QUESTION, "b": QUESTION}, "state", NOW)
    assert answered(database, made.id, "bob", {"a": {}}) is None
    assert answered(database, made.id, "ada", {"a": {"action": "accept"}, "c": {}}) is None
    assert answered(database, made.id, "ada", {"a": {"action": "cancel"}}) is None
    half = seen(database, made.id)
    assert half is not None
    assert (half.state, json.loads(half.questions)) == (INPUT_REQUIRED, {"b": QUESTION})
    assert not changed(database, store.end, made.id, "w1", COMPLETED, NOW, result="{}")
    whole = answered(database, made.id, "ada", {"b": {}})
    assert whole is not None
    assert whole.request_state == "state"
    assert store.answers_of(whole).responses == {"a": {"action": "accept"}, "b": {}}
    found = seen(database, made.id)
    assert found is not None
    assert (found.state, found.worker, found.runs, found.questions) == (WORKING, "w2", 2, "{}")
    assert answered(database, made.id, "ada", {"b": {}}) is None


def test_a_key_is_used_once_in_the_life_of_a_task(database: Database) -> None:
    made = created(database)
    for worker, expected in (("w1", "a"), ("w2", "a-2"), ("w2", "a-3")):
        assert changed(database, store.ask, made.id, worker, {"a": QUESTION}, "state", NOW)
        waiting = seen(database, made.id)
        assert waiting is not None
        assert json.loads(waiting.questions) == {expected: QUESTION}
        whole = answered(database, made.id, "ada", {expected: {"n": expected}})
        assert whole is not None
        assert store.answers_of(whole).responses == {"a": {"n": expected}}


def test_pages_have_each_task_of_an_owner_once_the_newest_first(database: Database) -> None:
    made = [created(database, created_at=NOW + number // 2) for number in range(7)]
    created(database, owner="bob")
    found: list[TaskRecord] = []
    after = None
    while True:
        with database.reading() as connection:
            entries = store.page(connection, "shop", "ada", NOW, 3, after)
        found += entries
        if len(entries) < 3:
            break
        after = entries[-1].created_at, entries[-1].id
    short = [each._replace(params="") for each in made]
    assert found == sorted(short, key=lambda each: (each.created_at, each.id), reverse=True)


def test_a_page_does_not_read_the_long_texts(database: Database) -> None:
    made = created(database, params="{}", message="half")
    changed(database, store.end, made.id, "w1", "completed", NOW + 1, result="x" * 1000)
    (listed,) = changed(database, store.page, "shop", "ada", NOW, 10)
    assert (listed.params, listed.result, listed.message) == ("", "", "half")
    assert listed.members() == there(database, made.id).members()


def test_a_lost_task_is_taken_by_one_worker_and_the_lost_one_writes_nothing_more(database: Database) -> None:
    lost = created(database, idempotent=1)
    held = created(database, idempotent=1, worker="w2", lease_until=NOW + 100)
    assert changed(database, store.take_lost, "shop", "w3", NOW + 40, NOW + 14, [], 10) == []
    (taken,) = changed(database, store.take_lost, "shop", "w3", NOW + 40, NOW + 16, [], 10)
    assert (taken.id, taken.worker, taken.runs) == (lost.id, "w3", 2)
    assert changed(database, store.take_lost, "shop", "w4", NOW + 40, NOW + 16, [], 10) == []
    assert not changed(database, store.end, lost.id, "w1", COMPLETED, NOW + 17, result="{}")
    changed(database, store.renew, "w2", NOW + 500, [held.id])
    assert [
        each.id for each in changed(database, store.take_lost, "shop", "w4", NOW + 900, NOW + 450, [], 10)
    ] == [lost.id]
    assert seen(database, held.id, now=NOW) == held._replace(lease_until=NOW + 500)


def test_a_queued_task_is_taken_by_one_worker_that_has_its_tool(database: Database) -> None:
    first = created(database, worker="", lease_until=0.0, runs=0, created_at=NOW - 2)
    second = created(database, worker="", lease_until=0.0, runs=0, created_at=NOW - 1)
    for server, tools in (("shop", ["another"]), ("another", [first.tool])):
        assert changed(database, store.take_queued, server, tools, "aw", NOW + 40, [], 10) == []
    (taken,) = changed(database, store.take_queued, "shop", [first.tool], "aw", NOW + 40, [], 1)
    assert (taken.id, taken.worker, taken.runs) == (first.id, "aw", 1)
    (taken,) = changed(database, store.take_queued, "shop", [first.tool], "bw", NOW + 40, [], 10)
    assert taken.id == second.id


def test_a_worker_that_did_not_hear_which_tasks_it_was_given_takes_them_again(database: Database) -> None:
    made = [created(database, worker="", lease_until=0.0, runs=0) for _ in range(2)]
    tools = [made[0].tool]
    given = changed(database, store.take_queued, "shop", tools, "aw", NOW + 40, [], 10)
    assert changed(database, store.take_queued, "shop", tools, "bw", NOW + 40, [], 10) == []
    known = [given[0].id]
    (taken,) = changed(database, store.take_queued, "shop", tools, "aw", NOW + 40, known, 10)
    assert taken.id == given[1].id


def test_a_lost_task_of_a_tool_that_must_not_run_again_fails_and_no_worker_gets_it(
    database: Database,
) -> None:
    lost, again = created(database, worker="aw"), created(database, worker="aw", idempotent=1)
    late = NOW + 20
    assert changed(database, store.fail_lost, "shop", "bw", NOW + 1, [], 10, "{}") == []
    assert changed(database, store.fail_lost, "shop", "bw", late, [], 10, "{}") == [(lost.id, "ada")]
    found = seen(database, lost.id)
    assert found is not None
    assert (found.state, found.worker, found.error) == (FAILED, "aw", "{}")
    (taken,) = changed(database, store.take_lost, "shop", "bw", NOW + 40, late, [], 10)
    assert taken.id == again.id


def test_a_task_is_created_once_although_the_answer_to_the_first_attempt_was_lost(database: Database) -> None:
    made = created(database)
    changed(database, store.cancel, made.id, "ada", NOW)
    changed(database, store.create, made)
    found = seen(database, made.id)
    assert found is not None
    assert found.state == CANCELLED


def test_a_task_with_all_answers_is_left_to_any_worker_where_none_is_named(database: Database) -> None:
    made = created(database)
    changed(database, store.ask, made.id, "w1", {"a": QUESTION}, "state", NOW)
    found = changed(database, store.answer, made.id, "ada", {"a": {}}, "", 0.0, NOW)
    assert found is not None
    (taken,) = changed(database, store.take_queued, "shop", [made.tool], "aw", NOW + 40, [], 10)
    assert (taken.id, taken.request_state, taken.runs) == (made.id, "state", 2)
    assert store.answers_of(taken).responses == {"a": {}}


def test_what_a_worker_ran_goes_to_workers_and_what_a_server_ran_to_servers(database: Database) -> None:
    of_server = created(database, idempotent=1, worker="server", lease_until=NOW - 1)
    of_worker = created(database, idempotent=1, worker="aw", lease_until=NOW - 1)
    created(database, worker="", lease_until=0.0)  # no process has begun it: it is not lost
    assert sorted(store_workers(database)) == ["aw", "server"]
    (taken,) = changed(database, store.take_lost, "shop", "other", NOW + 40, NOW, [], 10)
    assert taken.id == of_server.id
    (taken,) = changed(database, store.take_lost, "shop", "bw", NOW + 40, NOW, [], 10)
    assert taken.id == of_worker.id


def store_workers(database: Database) -> list[str]:
    with database.reading() as connection:
        return store.workers(connection, "shop")


def test_a_task_whose_worker_has_ended_is_taken_before_its_lease_is_over(database: Database) -> None:
    made = created(database, idempotent=1)
    created(database, server="another", worker="w1")
    with database.reading() as connection:
        assert store.workers(connection, "shop") == ["w1"]
    (taken,) = changed(database, store.take_lost, "shop", "w2", NOW + 40, NOW, ["w1"], 10)
    assert taken.id == made.id


def test_a_worker_is_known_to_have_ended_when_its_process_has() -> None:
    name = workers.new_name()
    place, pid, started, _ = name.split(":")
    assert not workers.has_ended(name)
    assert workers.has_ended(f"{place}:{pid}:{int(started) - 1}:x")
    assert not workers.has_ended(f"elsewhere:{pid}:1:x")
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        other = f"{place}:{process.pid}:{workers._started(process.pid)}:x"
        assert not workers.has_ended(other)
        process.kill()
    assert workers.has_ended(other)


def test_an_owner_has_so_many_open_tasks_and_no_more(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "MOST_OPEN", 2)
    first, _ = created(database), created(database)
    with pytest.raises(store.TooManyTasks):
        created(database)
    changed(database, store.create, first)  # an earlier attempt has written it, and its answer was lost
    created(database, owner="bob")
    changed(database, store.cancel, first.id, "ada", NOW)
    created(database)


def test_what_is_written_together_fails_alone_and_is_committed_before_it_is_awaited(
    database: Database,
) -> None:
    journal = Journal(database)
    good = [record() for _ in range(20)]

    def fail(connection: Connection) -> None:
        raise LookupError("this one alone")

    async def write() -> list[Any]:
        calls: list[Any] = [journal.do(partial(_create, each)) for each in good]
        calls.insert(10, journal.do(fail))
        return await asyncio.gather(*calls, return_exceptions=True)

    results = asyncio.run(write())
    assert isinstance(results.pop(10), LookupError)
    assert results == [None] * 20
    assert all(seen(database, each.id) == each for each in good)
    journal.close()
    with pytest.raises(JournalClosed):
        asyncio.run(journal.do(fail))


def test_who_no_longer_waits_for_a_row_does_not_hold_up_those_who_do(database: Database) -> None:
    journal = Journal(database)
    cancelled, left, kept = record(), record(), record()
    is_busy, free = threading.Event(), threading.Event()

    def wait(connection: Connection) -> None:
        is_busy.set()
        free.wait(SECONDS)

    async def begin() -> list[asyncio.Task[None]]:
        begun = [asyncio.ensure_future(journal.do(wait))]
        await asyncio.sleep(0)  # it is asked for
        is_busy.wait(SECONDS)
        begun += [asyncio.ensure_future(journal.do(store.create, each)) for each in (cancelled, left)]
        await asyncio.sleep(0)
        begun[1].cancel()
        await asyncio.wait([begun[1]])
        return begun

    loop = asyncio.new_event_loop()
    begun = loop.run_until_complete(begin())
    loop.close()  # while one of them waits
    free.set()
    asyncio.run(journal.do(store.create, kept))
    assert [seen(database, each.id) for each in (cancelled, left, kept)] == [None, left, kept]
    assert [each.done() for each in begun] == [False, True, False]
    journal.close()


def test_a_task_shows_its_state_and_its_times_as_rfc_3339_has_them() -> None:
    made = record(message="half")
    assert iso_8601(NOW) == "2027-01-15T08:00:00.250Z"
    assert made.members() == {
        "taskId": made.id,
        "status": "working",
        "statusMessage": "half",
        "createdAt": "2027-01-15T08:00:00.250Z",
        "lastUpdatedAt": "2027-01-15T08:00:00.250Z",
    }


def test_an_id_is_an_argument_of_a_command_line_as_it_is() -> None:
    assert all(store.new_id().isalnum() for _ in range(200))


def test_a_task_that_waits_for_an_approval_waits_until_one_worker_begins_it(database: Database) -> None:
    row = created(database)
    assert changed(database, store.note_approval, row.id, "w1", "ap_1", "waiting for ap_1", NOW + 1)
    assert not changed(database, store.note_approval, row.id, "w2", "ap_2", "", NOW + 1)
    (taken,) = changed(database, store.take_lost, "shop", "w2", NOW + 40, NOW + 16, [], 10)
    assert (taken.approval, taken.message) == ("ap_1", "waiting for ap_1")
    assert there(database, row.id).approval == "", "until the new worker says that it waits again"
    assert changed(database, store.note_approval, row.id, "w2", "ap_1", "", NOW + 17)
    assert not changed(database, store.note_approval, row.id, "w1", "", "", NOW + 18)
    assert changed(database, store.note_approval, row.id, "w2", "", "", NOW + 18)
    assert there(database, row.id).approval == ""


def test_a_cancelled_task_has_its_approval_alone_unless_another_task_waits_for_it(
    database: Database,
) -> None:
    first, second = created(database), created(database)
    for row in (first, second):
        assert changed(database, store.note_approval, row.id, "w1", "ap_1", "", NOW)
    assert changed(database, store.cancel, first.id, "ada", NOW + 1)
    assert changed(database, store.approval_of, first.id) == ""
    assert changed(database, store.cancel, second.id, "ada", NOW + 1)
    assert changed(database, store.approval_of, second.id) == "ap_1"


def test_a_task_whose_approval_is_over_proceeds_once_and_without_an_answer(database: Database) -> None:
    row = created(database)
    changed(database, store.note_approval, row.id, "w1", "ap_1", "", NOW)
    changed(database, store.ask, row.id, "w1", {"which": QUESTION}, "state", NOW)
    assert changed(database, store.asked_about_approvals, "shop") == [(row.id, "ap_1")]
    assert changed(database, store.asked_about_approvals, "other") == []
    assert changed(database, store.proceed, row.id, "ap_2", "w2", NOW + 15, NOW) is None
    found = changed(database, store.proceed, row.id, "ap_1", "w2", NOW + 15, NOW)
    assert found is not None
    assert (found.approval, found.request_state) == ("ap_1", "state")
    assert changed(database, store.proceed, row.id, "ap_1", "w3", NOW + 15, NOW) is None
    now = there(database, row.id)
    assert (now.state, now.worker, now.questions, now.approval) == (WORKING, "w2", "", "")

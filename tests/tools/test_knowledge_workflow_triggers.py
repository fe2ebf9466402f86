"""What begins runs besides callers: webhooks and the times of cron expressions."""

from __future__ import annotations

import json
import sqlite3
import time
import urllib.error
import urllib.request
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.knowledge._workflows import definition, triggers
from fastrpc.tools.knowledge._workflows.schedules import MOST_MISSED, missed
from support.http_server import HttpProcess
from support.waiting import eventually
from support.workflows import called, ended, guarded, served, token_of, workflow

from fastrpc import Client
from fastrpc.client import SyncClient
from fastrpc.signed_requests import signature_of

POLICY = """
[expose]
tools = ["workflow.*"]

[risk]
"workflow.create" = "medium"
"workflow.delete" = "medium"
"""
SECRET = "geheim-geheim-geheim"
SEEN = {"id": "seen", "type": "data.transform", "config": {"template": "{{ $trigger }}"}}


def hooked(**trigger: str) -> dict[str, Any]:
    return workflow("w", SEEN, trigger={"type": "webhook", **trigger})


def cron(expression: str, **trigger: str) -> dict[str, Any]:
    return workflow("w", SEEN, trigger={"type": "cron", "expression": expression, **trigger})


def post(
    server: HttpProcess, said: Any, secret: str = SECRET, at: float | None = None, id: str = "w"
) -> tuple[int, Any]:
    body, timestamp = json.dumps(said).encode(), str(int(time.time() if at is None else at))
    headers = {
        "Content-Type": "application/json",
        "X-Fastrpc-Timestamp": timestamp,
        "X-Fastrpc-Signature": signature_of(secret.encode(), timestamp, body),
    }
    place = f"http://127.0.0.1:{server.port}/workflows/{id}/hook"
    request = urllib.request.Request(place, body, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.loads(answer.read())["run"]
    except urllib.error.HTTPError as refused:
        return refused.code, json.loads(refused.read())["error"]


def runs(client: SyncClient) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = called(client, "workflow.runs")["runs"]
    return found


def test_a_signed_request_begins_one_run_for_whoever_created_the_workflow(tmp_path: Path) -> None:
    tokens = {owner: token_of(tmp_path, owner)["token"] for owner in ("ada", "bob")}
    with (
        guarded(tmp_path, POLICY) as server,
        Client.sync(server.place, token=tokens["ada"]) as ada,
        Client.sync(server.place, token=tokens["bob"]) as bob,
    ):
        assert called(ada, "workflow.create", workflow=hooked(secret=SECRET))["secret"] == ""
        made = called(bob, "workflow.create", workflow=hooked())["secret"]
        assert called(bob, "workflow.create", workflow=hooked())["secret"] == ""  # it stays
        assert "secret" not in json.dumps(called(ada, "workflow.get", id="w"))
        now = time.time()
        status, run = post(server, {"order": 7}, at=now)
        assert status == 200, run
        assert post(server, {"order": 7}, at=now) == (200, run)
        found = ended(ada, run)
        assert found["output"]["body"] == {"order": 7}
        assert [each["id"] for each in runs(ada)] == [run]
        assert runs(bob) == []
        status, run = post(server, "x", made)
        assert ended(bob, run)["output"]["body"] == "x"
        for refused in (
            post(server, {}, "another-secret-of-it"),
            post(server, {}, id="v"),
            post(server, {}, id="%2e%2e"),
        ):
            assert refused == (401, "the signature is not valid")
        for at in (now - 400, now + 400):
            assert post(server, {}, at=at) == (401, "the timestamp is too old, or in the future")
        assert post(server, "x" * 300_000)[0] == 413
        called(ada, "workflow.delete", id="w")
        assert post(server, {}) == (401, "the signature is not valid")


def test_two_servers_make_one_run_of_one_request(tmp_path: Path) -> None:
    token = token_of(tmp_path, "ada")["token"]
    with (
        guarded(tmp_path, POLICY) as first,
        guarded(tmp_path, POLICY) as second,
        Client.sync(first.place, token=token) as client,
    ):
        called(client, "workflow.create", workflow=hooked(secret=SECRET))
        now = time.time()
        answers = {post(server, {"order": 7}, at=now) for server in (first, second, first)}
        ((status, run),) = answers
        assert status == 200
        ended(client, run)
        assert [each["id"] for each in runs(client)] == [run]


@pytest.mark.parametrize(
    ("trigger", "message"),
    [
        ({"type": "cron"}, "trigger.expression: expected minute, hour, day, month and weekday, got ''"),
        ({"type": "cron", "expression": "* * * * * *"}, "trigger.expression: expected minute, hour"),
        ({"type": "cron", "expression": "61 * * * *"}, "trigger.expression: expected minute, hour"),
        ({"type": "cron", "expression": "0 0 31 2 *"}, "trigger.expression: '0 0 31 2 *' is at no time"),
        (
            {"type": "cron", "expression": "0 9 * * *", "timezone": "Mars"},
            "trigger.timezone: expected an IANA",
        ),
        (
            {"type": "cron", "expression": "0 9 * * *", "timezone": "../x"},
            "trigger.timezone: expected an IANA",
        ),
    ],
)
def test_times_that_never_come_are_refused(trigger: dict[str, str], message: str) -> None:
    with pytest.raises(definition.BadWorkflow) as raised:
        triggers.check_cron(trigger)
    assert str(raised.value).startswith(message)


def test_times_that_have_passed_are_those_of_the_zone_and_not_too_many() -> None:
    now = datetime(2026, 4, 2, 12, tzinfo=timezone.utc)
    assert missed("0 9 * * *", "Europe/Berlin", "2026-03-31T09:00:00+02:00", now) == [
        "2026-04-01T09:00:00+02:00", "2026-04-02T09:00:00+02:00",
    ]  # fmt: skip
    assert missed("0 9 * * *", None, None, now) == []
    assert missed("0 9 * * *", None, "2026-04-02T09:00:00+00:00", now) == []
    assert len(missed("* * * * *", None, "2020-01-01T00:00:00+00:00", now)) == MOST_MISSED


def test_times_that_no_server_was_there_for_are_one_run_that_names_them(tmp_path: Path) -> None:
    """Whichever of two servers begins it."""
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=cron("0 0 1 1 *"))
    with closing(sqlite3.connect(tmp_path / "state" / "knowledge-runs.sqlite3")) as database, database:
        last = f"{datetime.now(timezone.utc).year - 2}-06-01T00:00:00+00:00"
        database.execute("UPDATE workflow_schedules SET last_fired_at = ?", (last,))
    with served(tmp_path) as first, served(tmp_path) as second:
        (run,) = eventually(lambda: runs(first))
        found = ended(second, run["id"])
        assert len(found["output"]["missed"]) == 2
        assert found["output"]["at"] == found["output"]["missed"][-1]
        called(second, "workflow.runs")
        assert len(runs(first)) == 1
        called(first, "workflow.create", workflow=cron("0 0 1 1 *"))
        called(first, "workflow.delete", id="w")


def begun_by(folder: Path) -> set[tuple[str, str]]:
    """The schedules that there are: name and expression."""
    with closing(sqlite3.connect(folder / "state" / "knowledge-runs.sqlite3")) as database:
        return set(database.execute("SELECT schedule_name, schedule FROM workflow_schedules"))


@pytest.mark.parametrize(
    "left", ["DELETE FROM workflow_schedules", "UPDATE workflow_schedules SET schedule = 'x'"]
)
def test_a_schedule_that_a_server_was_killed_before_it_wrote_is_there_with_the_next_one(
    tmp_path: Path, left: str
) -> None:
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=cron("0 0 1 1 *"))
    whole = begun_by(tmp_path)
    with closing(sqlite3.connect(tmp_path / "state" / "knowledge-runs.sqlite3")) as database, database:
        database.execute(left)
    with served(tmp_path):
        eventually(lambda: begun_by(tmp_path) == whole)
    with closing(sqlite3.connect(tmp_path / "state" / "knowledge.sqlite3")) as database, database:
        database.execute("DELETE FROM knowledge_workflows")
    with served(tmp_path):
        eventually(lambda: not begun_by(tmp_path))


def test_a_workflow_that_cannot_be_replaced_keeps_its_schedule(tmp_path: Path) -> None:
    with served(tmp_path) as client:
        called(client, "workflow.create", workflow=cron("0 0 1 1 *"))
        whole = begun_by(tmp_path)
        with closing(sqlite3.connect(tmp_path / "state" / "knowledge.sqlite3")) as database:
            fails = "BEGIN SELECT RAISE(FAIL, 'full'); END"
            database.execute(f"CREATE TRIGGER full BEFORE INSERT ON knowledge_workflows {fails}")
        assert client.call_tool("workflow.create", {"workflow": hooked()}).is_error
        assert client.call_tool("workflow.create", {"workflow": cron("0 0 2 2 *")}).is_error
        assert called(client, "workflow.get", id="w")["workflow"]["trigger"]["expression"] == "0 0 1 1 *"
        assert begun_by(tmp_path) == whole


def test_the_same_time_begins_a_run_of_each_owner_who_has_a_workflow_of_the_same_id(tmp_path: Path) -> None:
    """Else one owner could keep another one's workflow from running."""
    owners = ("ada", "bob")
    tokens = {owner: token_of(tmp_path, owner)["token"] for owner in owners}

    def clients(server: HttpProcess) -> list[SyncClient]:
        return [Client.sync(server.place, token=tokens[owner]) for owner in owners]

    with guarded(tmp_path, POLICY) as server:
        for client in clients(server):
            with client:
                called(client, "workflow.create", workflow=cron("0 0 1 1 *"))
    with closing(sqlite3.connect(tmp_path / "state" / "knowledge-runs.sqlite3")) as database, database:
        last = f"{datetime.now(timezone.utc).year - 1}-06-01T00:00:00+00:00"
        database.execute("UPDATE workflow_schedules SET last_fired_at = ?", (last,))
    with guarded(tmp_path, POLICY) as server:
        for client in clients(server):
            with client:
                (run,) = eventually(lambda client=client: runs(client))
                assert ended(client, run["id"])["output"]["missed"]


@pytest.mark.long
def test_each_time_is_one_run_whichever_server_begins_it(tmp_path: Path) -> None:
    with served(tmp_path) as first, served(tmp_path) as second:
        called(first, "workflow.create", workflow=cron("* * * * *"))
        called(second, "workflow.runs")
        found = eventually(lambda: runs(second), seconds=100)
        assert ended(first, found[0]["id"])["output"]["missed"] == []
        called(second, "workflow.delete", id="w")
        times = [each["id"].partition("cron-")[2] for each in runs(first)]
        assert len(times) == len(set(times))
        assert all(datetime.fromisoformat(each).second == 0 for each in times)


@pytest.mark.long
def test_a_file_that_changes_begins_one_run_whichever_server_sees_it(tmp_path: Path) -> None:
    folder, other = tmp_path / "in", tmp_path / "other"
    folder.mkdir(), other.mkdir()
    (folder / "link").symlink_to(other)
    found = workflow("w", SEEN, trigger={"type": "file", "path": "."})
    more = {"FASTRPC_KNOWLEDGE_DOCUMENTS": str(folder)}
    with served(tmp_path, **more) as first, served(tmp_path, **more) as second:
        called(first, "workflow.create", workflow=found)
        assert called(first, "workflow.get", id="w")["workflow"]["trigger"]["path"] == str(folder)

        def written() -> list[dict[str, Any]]:
            (other / "out.txt").write_text("x")
            if not runs(first):  # until both watch
                (folder / "a.txt").write_text(str(time.monotonic()))
            return runs(first)

        run = eventually(written)[0]
        output = ended(second, run["id"])["output"]
        assert output["path"] == str(folder / "a.txt")
        time.sleep(7)  # both have looked by now
        before = {each["id"] for each in runs(first)}
        (folder / "b.txt").write_text("new")
        eventually(lambda: {each["id"] for each in runs(second)} - before)
        time.sleep(3)  # the slower one has seen it, too
        (new,) = {each["id"] for each in runs(second)} - before
        assert ended(first, new)["output"] == {"path": str(folder / "b.txt"), "size": 3}


def test_a_path_that_may_not_be_watched_is_refused(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to("/etc")
    found = workflow("w", SEEN, trigger={"type": "file", "path": "."})
    with served(tmp_path) as client:
        refused = client.call_tool("workflow.create", {"workflow": found})
        assert refused.text == "trigger.path: the server was started without --documents DIR."
    with served(tmp_path, FASTRPC_KNOWLEDGE_DOCUMENTS=str(tmp_path / "in")) as client:
        for path in ("/etc", "..", "link", "none", "", "a/../../x"):
            found["trigger"]["path"] = path
            refused = client.call_tool("workflow.create", {"workflow": found})
            assert refused.text.startswith("trigger.path: expected "), refused.text

"""Approvals that are over are removed after `keep_days`, on both databases and by several processes; what is
needed still stays."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import insert
from support.http_server import FASTRPC
from support.waiting import eventually

from fastrpc import Client
from fastrpc.guard.approvals import retention
from fastrpc.guard.approvals.binding import Binding
from fastrpc.guard.approvals.retention import ApprovalRetention, remove_all
from fastrpc.guard.approvals.store import (
    STATES,
    ApprovalDecision,
    ApprovalStore,
    Question,
    new_approval,
)
from fastrpc.guard.policy.approval_config import ApprovalConfig
from fastrpc.guard.policy.references import References
from fastrpc.guard.policy.sections import Section
from fastrpc.storage.database import Database
from fastrpc.storage.schema import approvals as table

pytest_plugins = ["support.postgres"]

DAY = 86_400.0
NOW = 1_000_000_000.0


class Clock:
    now = NOW

    def __call__(self) -> float:
        return self.now


def question(name: str, **more: Any) -> Question:
    binding = Binding(
        caller="ada#1", server="shop", kind="tool", name=name, arguments={"x": 1}, schema={}, policy="p"
    )
    facts: dict[str, Any] = {
        "owner": "ada",
        "caller_class": "agent",
        "risk": "high",
        "rule": "",
        "reason": "",
    }
    return Question(binding=binding, **facts, may_edit=True, **more)


def config(**keys: Any) -> ApprovalConfig:
    return ApprovalConfig(Section("guard.toml", keys, {}), References("/"))


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(database_url: str, clock: Clock) -> Iterator[ApprovalStore]:
    database = Database(database_url)
    yield ApprovalStore(database, clock)
    database.close()


def names(store: ApprovalStore) -> set[str]:
    return {each.name for each in store.list(STATES)}


def of_each_state(store: ApprovalStore) -> None:
    """Approvals that are used, rejected, void, expired unanswered and expired unused."""
    ids = {
        name: store.ask(question(name)).approval for name in ("used", "rejected", "void", "ignored", "unused")
    }
    store.decide(ids["used"].id, ApprovalDecision(True, "os:grace", "command line"))
    store.use(ids["used"].id, ids["used"].digest)
    store.decide(ids["rejected"].id, ApprovalDecision(False, "os:grace", "command line"))
    store.withdraw(ids["void"].id, "why not")
    store.decide(ids["unused"].id, ApprovalDecision(True, "os:grace", "command line"))


def test_what_is_over_is_kept_for_the_days_that_the_setting_says_and_then_removed(
    store: ApprovalStore, clock: Clock
) -> None:
    of_each_state(store)
    clock.now = NOW + 2 * DAY
    assert remove_all(store, config(keep_days=2.0)) == 0, "each of them was over only after five minutes"
    assert len(names(store)) == 5
    clock.now = NOW + 2 * DAY + 301
    assert remove_all(store, config(keep_days=2.0)) == 5
    assert names(store) == set()


def test_it_is_90_days_unless_the_file_says_another_number(store: ApprovalStore, clock: Clock) -> None:
    of_each_state(store)
    clock.now = NOW + 90 * DAY
    assert remove_all(store, config()) == 0
    clock.now += 301
    assert remove_all(store, config()) == 5


def test_a_grant_in_force_stays_with_the_arguments_that_were_edited(
    store: ApprovalStore, clock: Clock
) -> None:
    asked = store.ask(question("wipe")).approval
    edited = ApprovalDecision(
        True, "os:grace", "command line", edited_arguments='{"x": 2}', uses=9, valid_seconds=30 * DAY
    )
    store.decide(asked.id, edited)
    clock.now = NOW + 29 * DAY
    assert remove_all(store, config(keep_days=0.01)) == 0
    used = store.use(asked.id, asked.digest)
    assert used is not None
    assert (used.edited_arguments, used.arguments) == ('{"x": 2}', asked.arguments)
    clock.now = NOW + 30.1 * DAY
    assert remove_all(store, config(keep_days=0.01)) == 1


def test_what_was_rejected_stays_so_although_it_is_kept_for_less(store: ApprovalStore, clock: Clock) -> None:
    asked = store.ask(question("wipe", rejection_seconds=2 * DAY)).approval
    store.decide(asked.id, ApprovalDecision(False, "os:grace", "command line"))
    clock.now = NOW + 1.9 * DAY
    assert remove_all(store, config(keep_days=0.01, valid_seconds=2 * DAY)) == 0
    assert store.ask(question("wipe", rejection_seconds=2 * DAY)).approval.state == "rejected"
    clock.now = NOW + 2.1 * DAY
    assert remove_all(store, config(keep_days=0.01, valid_seconds=2 * DAY)) == 1


def test_what_waits_is_never_removed(store: ApprovalStore, clock: Clock) -> None:
    store.ask(question("wipe", timeout_seconds=DAY))
    clock.now = NOW + 0.9 * DAY
    assert remove_all(store, config(keep_days=0.01)) == 0
    assert names(store) == {"wipe"}


def fill(database_url: str, count: int) -> None:
    """Approvals that no one has decided about, long ago."""
    database = Database(database_url)
    with database.changing() as connection:
        for number in range(count):
            made = new_approval(question(f"tool{number}"), NOW)
            connection.execute(insert(table), vars(made))
    database.close()


REMOVE = """
import sys
from fastrpc.guard.approvals import retention
from fastrpc.guard.approvals.store import ApprovalStore
from fastrpc.guard.policy.approval_config import ApprovalConfig
from fastrpc.guard.policy.sections import Section
from fastrpc.storage.database import Database
retention.AT_ONCE = 20
retention.PAUSE_SECONDS = 0.01
store = ApprovalStore(Database(sys.argv[1]))
print("ready", flush=True)
sys.stdin.readline()
print(retention.remove_all(store, ApprovalConfig(Section("", {}, {}), None)), flush=True)
"""


@pytest.mark.long
def test_several_processes_remove_each_approval_once(database_url: str) -> None:
    """In eight transactions: who waits for SQLite may wait for all of the others', on a disk that is slow."""
    fill(database_url, 160)
    command = [sys.executable, "-c", REMOVE, database_url]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(3)
    ]
    try:
        for each in processes:
            assert each.stdout is not None
            assert each.stdout.readline() == "ready\n"
        for each in processes:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        counts = [int(each.communicate(timeout=60)[0]) for each in processes]
    finally:
        for each in processes:
            each.kill()
            each.wait()
    assert sum(counts) == 160
    database = Database(database_url)
    assert names(ApprovalStore(database)) == set()
    database.close()


def test_it_runs_once_the_database_is_open_and_then_every_hour(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(database_url, 3)
    opened: list[Database] = []
    looks = ApprovalRetention(lambda: opened[0] if opened else None, config)
    looks.poll()
    opened.append(Database(database_url))
    store = ApprovalStore(opened[0])
    assert len(names(store)) == 3
    looks.poll()
    eventually(lambda: names(store) == set())
    now = retention.monotonic()
    fill(database_url, 3)
    started: list[object] = []
    monkeypatch.setattr(looks, "_run", lambda database: started.append(database))
    looks.poll()
    monkeypatch.setattr(retention, "monotonic", lambda: now + retention.EVERY_SECONDS)
    assert started == []
    looks.poll()
    eventually(lambda: started == opened)
    opened[0].close()


TOOLS = """
from fastrpc import Server

app = Server("shop")

@app.tool(effect="exec")
def wipe(place: str) -> str:
    return f"wiped {place}"
"""
GUARD = """
expose.tools = ["*"]
[approvals]
hold_seconds = 0.1
keep_days = {days}
"""


@pytest.mark.parametrize(("days", "left"), [(1, 0), (100_000, 3)])
def test_a_server_that_asks_removes_what_its_file_does_not_keep(tmp_path: Path, days: int, left: int) -> None:
    url = f"sqlite:///{tmp_path}/state/guard.sqlite3"
    (tmp_path / "shop.py").write_text(TOOLS)
    (tmp_path / "guard.toml").write_text(GUARD.format(days=days))
    fill(url, 3)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FASTRPC_")}
    environment = {**kept, "FASTRPC_STATE_DIR": str(tmp_path / "state")}
    database = Database(url)
    command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml"]
    with Client.sync(command, cwd=str(tmp_path), env=environment) as client:
        assert "is waiting" in client.call_tool("wipe", {"place": "x"}).text
        eventually(lambda: len(names(ApprovalStore(database)) - {"wipe"}) == left)
        assert "wipe" in names(ApprovalStore(database))
    database.close()

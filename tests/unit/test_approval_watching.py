"""Calls that wait for approvals, in one event loop: how many there are, and who is notified."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from support.postgres import Cluster

from fastrpc.guard.approvals import watching
from fastrpc.guard.approvals.binding import Binding
from fastrpc.guard.approvals.store import COMMAND_LINE, ApprovalDecision, ApprovalStore, Question
from fastrpc.guard.approvals.watching import ApprovalWatcher
from fastrpc.storage.database import Database

pytest_plugins = ["support.postgres"]


def test_calls_that_wait_for_one_approval_are_counted_one_by_one(tmp_path: Path) -> None:
    async def wait() -> None:
        database = Database(f"sqlite:///{tmp_path}/guard.sqlite3")
        watcher = ApprovalWatcher(database, ApprovalStore(database))
        futures = [watcher.watch(approval) for approval in ("ap_1", "ap_1", "ap_1", "ap_2")]
        assert watcher.count == 4
        watcher.forget("ap_1", futures[0])
        assert (watcher.count, futures[0].cancelled(), futures[1].done()) == (3, True, False)
        for approval, future in zip(("ap_1", "ap_1", "ap_2"), futures[1:], strict=True):
            watcher.forget(approval, future)
        assert (watcher.count, watcher._waiting) == (0, {})
        assert watcher._task is not None
        await watcher._task
        database.close()

    asyncio.run(asyncio.wait_for(wait(), 60))


def test_over_postgresql_a_decision_elsewhere_wakes_a_call_without_a_poll(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "POLL_SECONDS", 3600.0)
    url = postgres.url(postgres.new_database())

    async def wait() -> None:
        here, there = Database(url), Database(url)
        binding = Binding(
            caller="os:ada", server="shop", kind="tool", name="wipe", arguments={}, schema={}, policy="1"
        )
        question = Question(
            binding=binding, owner="ada", caller_class="local", risk="high", rule="", reason=""
        )
        watcher = ApprovalWatcher(here, ApprovalStore(here))
        asked = watcher.store.ask(question).approval
        decided = watcher.watch(asked.id)
        while watcher._number < 0:  # until the first look is over
            await asyncio.sleep(0.01)
        decision = ApprovalDecision(True, "os:grace", COMMAND_LINE)
        await asyncio.to_thread(ApprovalStore(there).decide, asked.id, decision)
        await decided
        watcher.forget(asked.id, decided)
        assert watcher._task is not None
        watcher._task.cancel()
        await asyncio.gather(watcher._task, return_exceptions=True)
        here.close()
        there.close()

    asyncio.run(asyncio.wait_for(wait(), 60))

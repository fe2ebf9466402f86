"""Calls that wait for approvals, in one event loop: how many there are, and who is notified."""

from __future__ import annotations

import asyncio
from pathlib import Path

from fastrpc.guard.approvals.store import ApprovalStore
from fastrpc.guard.approvals.watching import ApprovalWatcher
from fastrpc.storage.database import Database


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

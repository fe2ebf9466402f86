"""Removes approvals that have been over for `keep_days` from the guard's database.

An approval is over once nobody can decide about it or use it any more: `ApprovalStore.remove_over`. What is
needed still is never removed: what waits, a grant in force with the arguments that its approver has edited,
and what was rejected as long as that holds. Runs on a thread of its own, when the process has opened the
database and every hour from then on, in small transactions with pauses, so that calls that ask meanwhile do
not wait for it. Every process of every server does so; what one removes, the others leave alone. The audit
log goes on having what was decided.
"""

from __future__ import annotations

from threading import Thread
from time import monotonic, sleep

from fastrpc import diagnostics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc.guard.approvals.store import ApprovalStore
    from fastrpc.guard.policy.approval_config import ApprovalConfig
    from fastrpc.storage.database import Database

EVERY_SECONDS = 3600.0
DAY_SECONDS = 86_400
AT_ONCE = 200
"""Approvals that one transaction removes: some milliseconds in which nobody else can write to SQLite."""
PAUSE_SECONDS = 0.05


class ApprovalRetention:
    """What removes approvals, in one process. `opened` returns the database if it is open, `config` what the
    policy says of approvals now."""

    def __init__(self, opened: Callable[[], Database | None], config: Callable[[], ApprovalConfig]) -> None:
        self._opened = opened
        self._config = config
        self._next = 0.0

    def poll(self) -> None:
        """Have what is over removed, if it is time. Returns at once."""
        if monotonic() < self._next:
            return
        database = self._opened()
        if database is None:
            return
        self._next = monotonic() + EVERY_SECONDS
        try:
            Thread(
                target=self._run, args=(database,), name="fastrpc-approvals-retention", daemon=True
            ).start()
        except RuntimeError:
            pass  # the interpreter ends: another process will do it

    def _run(self, database: Database) -> None:
        from fastrpc.guard.approvals.store import ApprovalStore

        try:
            remove_all(ApprovalStore(database), self._config())
        except Exception as error:
            diagnostics.write("warning", f"old approvals could not be removed: {error}")


def remove_all(store: ApprovalStore, config: ApprovalConfig) -> int:
    """Remove what has been over for longer than it is kept, or than a rejection holds; return how many were.
    Raises StorageError."""
    before = store.clock() - max(config.keep_days * DAY_SECONDS, config.valid_seconds)
    removed = 0
    while True:
        found = store.remove_over(before, AT_ONCE)
        removed += found
        if found < AT_ONCE:
            return removed
        sleep(PAUSE_SECONDS)

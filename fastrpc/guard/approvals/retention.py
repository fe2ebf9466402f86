"""Removes approvals that have been over for `keep_days` from the guard's database.

An approval is over when it can no longer be decided or used: `ApprovalStore.remove_over`. Approvals that are
still needed are never removed: waiting ones, valid grants with the arguments that their approver has edited,
and rejections while they are in force. A separate thread runs after the process has opened the database and
every hour from then on, in small transactions with pauses, so that calls do not wait for it. Every process of
every server does this; concurrent processes skip each other's rows. The audit log keeps the decisions.
"""

from __future__ import annotations

from contextlib import suppress
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
"""Approvals that one transaction removes: some milliseconds in which no one else can write to SQLite."""
PAUSE_SECONDS = 0.05


class ApprovalRetention:
    """Removes approvals, in one process. `opened` returns the database if it is open, `config` the policy's
    current table ``approvals``."""

    def __init__(self, opened: Callable[[], Database | None], config: Callable[[], ApprovalConfig]) -> None:
        self._opened = opened
        self._config = config
        self._next = 0.0

    def poll(self) -> None:
        """Start a removal if it is due. Returns at once."""
        if monotonic() < self._next:
            return
        database = self._opened()
        if database is None:
            return
        self._next = monotonic() + EVERY_SECONDS
        with suppress(RuntimeError):  # the interpreter ends: another process will do it
            Thread(
                target=self._run, args=(database,), name="fastrpc-approvals-retention", daemon=True
            ).start()

    def _run(self, database: Database) -> None:
        from fastrpc.guard.approvals.store import ApprovalStore

        try:
            remove_all(ApprovalStore(database), self._config())
        except Exception as error:
            diagnostics.write("warning", f"old approvals could not be removed: {error}")


def remove_all(store: ApprovalStore, config: ApprovalConfig) -> int:
    """Remove approvals that have been over for longer than `keep_days` and than a rejection is valid; return
    their number. Raises StorageError."""
    before = store.clock() - max(config.keep_days * DAY_SECONDS, config.valid_seconds)
    removed = 0
    while True:
        found = store.remove_over(before, AT_ONCE)
        removed += found
        if found < AT_ONCE:
            return removed
        sleep(PAUSE_SECONDS)

"""`TaskGuard`: a server's guard, as tasks use it. The guard of the process in which a task's call begins
decides about the call.

A task may begin long after it was created, and in another process: of a server, or of `fastrpc worker`. It
begins only in one whose guard has the same database, and only if the caller is the same then: a token that
was revoked meanwhile, or has got another class, ends the task.
"""

from __future__ import annotations

from json import dumps

from fastrpc.guard.refusals import NotAllowed
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc.callers import Caller

MESSAGE = "whoever created this task has no valid token any more, or other rights"


class TaskGuard:
    """Implements `fastrpc.engine.ports.GuardForTasks`. `database_url`: "" for the default database.
    `is_ready` returns whether tokens can be checked. `on_refusal` is called with the present caller, the
    tool, the reason, and the id of the task."""

    def __init__(
        self,
        database_url: str,
        caller_of: Callable[[str], Caller],
        is_ready: Callable[[], bool],
        on_refusal: Callable[[Caller, str, str, str], object] | None,
        *,
        is_shared: bool,
    ) -> None:
        self._url = database_url
        self._caller_of = caller_of
        self._is_ready = is_ready
        self._on_refusal = on_refusal
        self._place = ""
        self.is_shared = is_shared

    @property
    def place(self) -> str:
        """The location of the database, without user and password."""
        if not self._place:
            from fastrpc.storage.urls import place_of

            self._place = place_of(self._url).shared_name
        return self._place

    @property
    def is_ready(self) -> bool:
        return self._is_ready()

    def caller(self, principal: str) -> str:
        found = self._caller_of(principal)
        return dumps([found.owner, found.caller_class])

    def refuse(self, principal: str, tool: str, task: str) -> str:
        if self._on_refusal is not None:
            self._on_refusal(self._caller_of(principal), tool, MESSAGE, task)
        error = NotAllowed(f"tool {tool} is not allowed: {MESSAGE}", STATELESS)
        return dumps({"code": error.code, "message": error.message, "data": error.data})

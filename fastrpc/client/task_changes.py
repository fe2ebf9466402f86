"""Notifications of one task's changes, for a client that waits for it.

In 2026-07-28 a subscriptions/listen stream with ``taskIds``, in 2025-11-25 notifications/tasks/status. Both
are optional for servers: whoever waits also reads the state now and then.
"""

from __future__ import annotations

import asyncio

from fastrpc.client.listening import Listening
from fastrpc.errors import ClientError, InvalidAnswer
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType
    from typing import Any, Protocol

    from fastrpc.client.session import Session

    class ChangingTask(Protocol):
        """The part of a `fastrpc.client.tasks.RemoteTask` that is needed here."""

        @property
        def id(self) -> str: ...

        def take(self, method: str, raw: dict[str, Any]) -> None:
            """Take a Task that was received. Raises InvalidAnswer."""


STATUS = "notifications/tasks/status"


class TaskChanges:
    """The changes of a task, inside an ``async with`` block. `session` returns the client's session, which is
    another one after a lost connection was restored; `meta` the ``_meta`` that declares tasks."""

    def __init__(
        self, task: ChangingTask, session: Callable[[], Session], meta: Callable[[], dict[str, Any]]
    ) -> None:
        self._task = task
        self._session = session
        self._meta = meta
        self._changed = asyncio.Event()
        self._has_state = False
        self._stream: _TaskStream | None = None
        self._opening: asyncio.Task[None] | None = None

    async def __aenter__(self) -> TaskChanges:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        opening, stream = self._opening, self._stream
        self._opening = self._stream = None
        if opening is not None and not opening.done():
            opening.cancel()
            await asyncio.wait({opening})
        if stream is not None:
            await stream.__aexit__(kind, error, trace)

    @property
    def are_pushed(self) -> bool:
        """Whether the server notifies of the task's changes, as far as is known."""
        return self._stream is not None and self._stream.is_live

    def follow(self) -> None:
        """Begin to receive notifications, in the background; in a new session once more."""
        session = self._session()
        if self._stream is None or self._stream.session is not session:
            self._stream = stream = _TaskStream(session, self, self._task.id, self._meta())
            self._opening = asyncio.get_running_loop().create_task(self._open(stream))

    async def _open(self, stream: _TaskStream) -> None:
        try:
            await stream.__aenter__()
        except (ClientError, TimeoutError):
            return  # the state is polled
        if stream.session.version == STATELESS:
            self.wake()  # changes before the acknowledgement were not notified of

    async def wait(self, seconds: float) -> bool:
        """Wait for a change, up to so many seconds. Return whether the task has its state already."""
        try:
            await asyncio.wait_for(self._changed.wait(), seconds)
        except asyncio.TimeoutError:
            return False
        has_state, self._has_state = self._has_state, False
        self._changed.clear()
        return has_state

    def wake(self) -> None:
        """The task may have changed."""
        self._has_state = False
        self._changed.set()

    def take(self, raw: dict[str, Any]) -> None:
        """The server has sent the state."""
        try:
            self._task.take("notifications/tasks", raw)
        except InvalidAnswer:
            self.wake()
        else:
            self._has_state = True
            self._changed.set()


class _TaskStream(Listening):
    """Hands over the notifications of one task."""

    def __init__(self, session: Session, changes: TaskChanges, id: str, meta: dict[str, Any]) -> None:
        super().__init__(session, {"taskIds": [id]}, meta)
        self.session = session
        self._changes = changes
        self._task_id = id
        self._methods = {STATUS}
        self._has_status = False

    @property
    def is_live(self) -> bool:
        """Whether the server notifies. It has done so once: an accepted subscription does not say so, since
        the task may run in another process, which cannot notify the clients of this one."""
        is_over = self.session.version == STATELESS and (self._end is None or self._end.done())
        return self._has_status and not is_over

    def add(self, message: dict[str, Any]) -> None:
        params = message.get("params")
        if isinstance(params, dict) and params.get("taskId") == self._task_id:
            self._has_status = True
            self._changes.take(params)

    def missed(self) -> None:
        self._changes.wake()

    def lost(self) -> None:
        self._has_status = False
        self._changes.wake()

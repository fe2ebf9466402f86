"""`TaskRun`: one call that may become a task, from its beginning to its end in this process.

Until it becomes a task, a client's request waits for it. It becomes one when it has run for the tool's
`after_seconds`, or at its end if the tool makes tasks only: first the row is written, then the client gets
its id. A call that asks before that is answered like any other, by its questions; one that asks afterwards
leaves this process, with its state in the row, until all questions have answers (`TaskBoard.answer`).
"""

from __future__ import annotations

import asyncio
from json import dumps, loads

from fastrpc.errors import FastrpcError, InternalError
from fastrpc.tasks import store
from fastrpc.tasks.record import COMPLETED, FAILED
from fastrpc.tasks.self_call import SelfCall

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Protocol

    from fastrpc.tasks.record import TaskRecord
    from fastrpc.tasks.self_call import TaskServer

    class RunWriter(Protocol):
        """Writes how a run goes on: `fastrpc.tasks.board.TaskBoard`."""

        server: TaskServer

        async def create(self, run: TaskRun) -> None: ...
        async def note_approval(self, run: TaskRun) -> bool: ...
        def end(self, run: TaskRun, state: str, result: str = "", error: str = "") -> None: ...
        def ask(self, run: TaskRun, questions: dict[str, Any], request_state: str) -> None: ...
        def discard(self, run: TaskRun) -> None: ...
        def set_message(self, run: TaskRun) -> None: ...
        def run_over(self, run: TaskRun) -> None: ...

    class WaitingRequest(Protocol):
        """The client's request, as long as it waits."""

        def notified(self, message: dict[str, Any]) -> object:
            """The call has sent a notification."""

        def call_returned(self, result: str) -> object:
            """The call has ended with a result, as JSON, and is no task."""

        def call_refused(self, error: str) -> object:
            """The call has ended with a JSON-RPC error, as JSON, and is no task."""

        def prepare(self, record: TaskRecord) -> object:
            """The task is being created: make the answer that is sent once it is."""

        def became_task(self, record: TaskRecord) -> object:
            """The task has been created, after `prepare`."""

        def became_no_task(self, error: FastrpcError) -> object:
            """The task cannot be created."""


MESSAGE_SECONDS = 1.0
"""The least time between two messages of a task that are written to its row."""


class TaskRun:
    """A call in this process. `required`: it may be answered as a task only."""

    def __init__(
        self,
        board: RunWriter,
        record: TaskRecord,
        params: dict[str, Any],
        request: WaitingRequest | None = None,
        after_seconds: float = 0.0,
        required: bool = False,
    ) -> None:
        self.record = record
        self.params = params
        self.message = record.message
        self.ended = False
        self.is_cancelled = False
        """Whether the client has cancelled the task; the function reads it by `Context.task`."""
        self.approval = ""
        """The approval that the call waits for, or waited for in the process that had the task before."""
        self._board = board
        self._request = request
        self._after_seconds = after_seconds
        self._required = required
        self._call = SelfCall(board.server, record.owner, params, self, self)
        self._timer: asyncio.TimerHandle | None = None
        self._creating: asyncio.Task[None] | None = None
        self._is_early = False
        self._message_due = False
        self._is_named = request is None or required
        self._write_end: Callable[[], object] | None = None
        """Writes how the call has ended; waits for the row."""
        self._answer: Callable[[WaitingRequest], object] | None = None

    @property
    def id(self) -> str:
        """The id of the task, the same in each run."""
        return self.record.id

    @property
    def exists(self) -> bool:
        """Whether there is a task: no request waits for the call."""
        return self._request is None

    @property
    def named(self) -> str:
        """The id for the record of the call: "" as long as there is no task, and if there will be none."""
        return self.record.id if self._is_named else ""

    @property
    def is_run_again(self) -> bool:
        """Whether an earlier run may have begun the function, as `Context.task` says it."""
        return self.record.runs > 1

    def begin(self) -> None:
        """Begin the call; it becomes a task `after_seconds` later, at 0 if it waits at all."""
        self._call.begin()
        if self._request is not None and not self.ended:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(self._after_seconds, self._become_task)

    def begin_as_task(self, *, is_early: bool) -> None:
        """Create the task first, and begin its call then, unless it is left to workers.

        `is_early`: begin the call while the row is flushed to the disk, which takes about as long as the call
        needs to reach its process. The answer waits for the row all the same. If the flush fails, the call is
        ended, and an error tells the client that it may send the call again: so this is only for tools that
        may be run again, and not for those that are `resumable`, which recognize their work by the task's id,
        since the second call has another. It is also only for functions that run in another process: one that
        holds the event loop would hold up the answer. If this process is killed before the flush, there is no
        row, so no process takes the task over, and no client knows its id; if later, the row says that its
        tool may be run again.
        """
        self._required = True
        self._is_early = is_early
        self._become_task()

    def row_written(self) -> None:
        """The row of the task has been written, and is being flushed to the disk, which may fail. Called in
        each attempt to write it."""
        if self._is_early:
            self._call.begin()
        elif self.record.worker:
            self._call.prepare()
        if self._request is not None:
            self._request.prepare(self.record)

    def cancel(self) -> None:
        """End the call: its client has cancelled the task, or the request that waits for it."""
        self.ended = True
        self._request = None
        if self._timer is not None:
            self._timer.cancel()
        self._call.cancel()
        self._board.run_over(self)

    # --- for a guard, before the function begins ----------------------------------------------------------

    async def waits(self, approval: str, message: str, *, is_held: bool) -> bool:
        """The call waits for an approval. Return whether it is a task: one that `is_held` becomes it now.
        Raises StorageError."""
        self.approval, self.message = approval, message
        if is_held and self._request is not None and self._creating is None:
            if self._timer is not None:
                self._timer.cancel()
            self._become_task()
        if self._creating is not None and not self._creating.done():
            await asyncio.shield(self._creating)
        is_task = self._request is None and not self.ended
        if is_task and self.record.approval != approval:
            await self._board.note_approval(self)
        return is_task

    async def claim(self) -> bool:
        """The function begins, and the task must not be begun by another process. False: it must not begin
        here, since the task has ended, or another process has it. Raises StorageError."""
        self.approval = ""
        return not self.record.approval or await self._board.note_approval(self)

    # --- what the call sends ----------------------------------------------------------------------------

    def notified(self, message: dict[str, Any]) -> None:
        if self._request is not None:
            self._request.notified(message)
        if message.get("method") == "notifications/progress":
            before, self.message = self.message, _message_of(message["params"]) or self.message
            if not self._message_due and self._request is None and self.message != before:
                self._message_due = True
                asyncio.get_running_loop().call_later(MESSAGE_SECONDS, self._write_message)

    def returned(self, result: str) -> None:
        if '"resultType":"input_required"' in result and (found := loads(result))["resultType"] != "complete":
            self._asks(result, found)
        elif len(result) > store.RESULT_LIMIT:
            problem = f"the result has {len(result):,} characters, of at most {store.RESULT_LIMIT:,}"
            error = dumps({"code": InternalError.code, "message": problem})
            self._over(lambda request: request.call_returned(result), FAILED, error=error)
        else:
            self._over(lambda request: request.call_returned(result), COMPLETED, result=result)

    def refused(self, error: str) -> None:
        if self._request is not None and self._creating is None:
            self._stop().call_refused(error)
        else:
            self._over(lambda request: request.call_refused(error), FAILED, error=error)

    # --- before it is a task ----------------------------------------------------------------------------

    def _stop(self) -> WaitingRequest:
        """End this run without a task, and return the request to answer."""
        request = self._request
        assert request is not None
        self.ended = True
        self._request = None
        if self._timer is not None:
            self._timer.cancel()
        return request

    def _become_task(self) -> None:
        self._is_named = True
        self._creating = asyncio.ensure_future(self._create())

    async def _create(self) -> None:
        message = self.message
        try:
            await self._board.create(self)
        except FastrpcError as error:
            self._creating, self._is_named = None, False
            if self._request is None:  # cancelled meanwhile
                return
            if self._required:
                self._call.cancel()
                self._stop().became_no_task(error)
            elif self._answer is not None:
                self._answer(self._stop())
            return
        request, self._request = self._request, None
        if request is None:  # cancelled meanwhile, by a client that never learned its id
            self._board.discard(self)
            return
        request.became_task(self.record)
        if self._write_end is not None:
            self._write_end()
            return
        if self.message != message:  # the call has reported while the row was flushed
            self._board.set_message(self)
        if self.record.worker:  # the answer is sent first: a function may hold the loop
            asyncio.get_running_loop().call_soon(self._call.begin)

    # --- its end ----------------------------------------------------------------------------------------

    def _over(self, answer: Callable[[WaitingRequest], object], state: str, **values: str) -> None:
        """The call has ended: answer its request by `answer` if there is no task, else write its row."""
        if self._request is not None and self._creating is None and not self._required:
            answer(self._stop())
            return
        self._answer = answer
        self._ends(lambda: self._board.end(self, state, **values))
        if self._request is not None and self._creating is None:
            if self._timer is not None:
                self._timer.cancel()
            self._become_task()

    def _asks(self, result: str, found: dict[str, Any]) -> None:
        """The call has ended with questions: its request is answered by them if there is no task."""
        if self._request is not None and self._creating is None:
            self._stop().call_returned(result)
            return
        questions, request_state = found["inputRequests"], found.get("requestState", "")
        self._ends(lambda: self._board.ask(self, questions, request_state))

    def _ends(self, write: Callable[[], object]) -> None:
        """Have it written how the call has ended: now, or as soon as there is a row."""
        self.ended = True
        self._write_end = write
        if self._request is None:
            write()

    def _write_message(self) -> None:
        self._message_due = False
        if not self.ended:
            self._board.set_message(self)


def _message_of(progress: dict[str, Any]) -> str:
    """Return what a progress report says, as a task's message."""
    message = progress.get("message")
    if message:
        return str(message)
    total = progress.get("total")
    return f"{progress['progress']:g} of {total:g}" if total else f"{progress['progress']:g}"

"""The background tasks of this server: the running ones, and the last hundred that have ended.

Ids count up from 1. A task's output is in its file; the latest 64 KiB are also in memory, which only saves
opening the file. A task runs until every process that its command started has ended. When the server ends,
`fastrpc.processes` ends its tasks. Over HTTP a task belongs to its caller: for other callers it does not
exist. One bound on the number of running tasks holds for all callers together.
"""

from __future__ import annotations

import time

from fastrpc import ToolError

from . import _shell, _text

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from typing import Any

    from fastrpc.processes import Output, Process

RUNNING_AT_MOST = 8
ENDED_KEPT = 100
MEMORY = 64 * 1024

_tasks: dict[int, Task] = {}
_last_id = 0
_in_hand: set[asyncio.Task[None]] = set()  # the loop itself holds tasks only weakly


class Task:
    """A command that runs in the background."""

    def __init__(self, id: int, owner: str, command: str, process: Process, timeout_ms: int | None) -> None:
        self.id = id
        self.owner = owner
        self.command = command
        self.process = process
        self.timeout_ms = timeout_ms
        self.read_to = 0
        """The number of bytes of its output that have been read."""
        self.killed_by_tool = False
        self._news: asyncio.Future[None] | None = None
        process.follow = True
        process.on_output = self._has_news

    @property
    def running(self) -> bool:
        return not self.process.gone

    @property
    def seconds(self) -> float:
        process = self.process
        return process.duration_seconds if process.ended else time.monotonic() - process.began

    @property
    def path(self) -> str | None:
        file = self.process.output.file
        return file.path if file is not None else None

    @property
    def state(self) -> str:
        """``running``, or how the command ended."""
        process = self.process
        if process.error is not None:
            return "lost with its supervisor"
        if not process.ended:
            return "running"
        if process.timed_out:
            state = f"timed out after {self.timeout_ms} ms"
        elif process.signal is not None:
            state = f"killed by {process.signal}"
        else:
            state = f"exited {process.exit_code}"
        return state

    @property
    def summary(self) -> str:
        """State and run time, for the last line of a result."""
        if not self.process.ended:
            return f"{self.state}, {self.seconds:.1f} s"
        left = self.process.children_left
        behind = f"; {left} of its children still run{'s' if left == 1 else ''}" if left else ""
        return f"{self.state} after {self.seconds:.1f} s{behind}"

    def facts(self) -> dict[str, Any]:
        process = self.process
        return {
            "task_id": self.id,
            "state": self.state,
            "running": self.running,
            "pid": process.pid,
            "exit_code": process.exit_code,
            "signal": process.signal,
            "timed_out": process.timed_out,
            "duration_ms": round(self.seconds * 1000),
            "children_left": process.children_left,
            "output_path": self.path,
        }

    def _has_news(self, _: bytes = b"") -> None:
        if self._news is not None and not self._news.done():
            self._news.set_result(None)

    async def wait_for_news(self, seconds: float) -> None:
        """Wait for unread output, or for the end."""
        import asyncio

        if self._news is None or self._news.done():
            self._news = asyncio.get_running_loop().create_future()
        if self.running and self.read_to >= self.process.output.total:
            await asyncio.wait({self._news}, timeout=seconds)

    async def see_out(self) -> None:
        """Wait until the task is over, then close its file and forget the oldest ended tasks."""
        await self.process.wait_gone()
        output = self.process.output
        await put_away(output)
        if output.file is not None and output.file_error is None:
            output.shrink(0)
        self._has_news()
        ended = [task.id for task in _tasks.values() if not task.running]
        for id in ended[:-ENDED_KEPT]:
            del _tasks[id]


async def put_away(output: Output) -> None:
    """Close the file of an output that has ended, in turn with its readers."""
    file = output.file
    if file is None:
        return
    import asyncio

    try:
        if file.wrapped:
            for _ in file.straighten():
                await asyncio.sleep(0)
    except OSError as error:
        output.file_error = output.file_error or error
    finally:
        file.close()


def in_hand(coroutine: Any) -> None:
    """Run a coroutine beside the call that started it."""
    import asyncio

    task = asyncio.ensure_future(coroutine)
    _in_hand.add(task)
    task.add_done_callback(_in_hand.discard)


def adopt(owner: str, command: str, process: Process, timeout_ms: int | None = None) -> Task:
    """Make a background task of a running program, for a caller (`Context.principal`)."""
    global _last_id
    _last_id += 1
    task = _tasks[_last_id] = Task(_last_id, owner, command, process, timeout_ms)
    if process.output.keep_file() is not None:
        process.output.shrink(MEMORY)
    in_hand(task.see_out())
    return task


def tasks_of(owner: str) -> list[Task]:
    return [task for task in _tasks.values() if task.owner == owner]


def check_room(owner: str) -> None:
    """Raise ToolError, with the list of the caller's running tasks, if no further task may start."""
    running = sum(task.running for task in _tasks.values())
    if running >= RUNNING_AT_MOST:
        lines = "\n".join(line_of(task) for task in tasks_of(owner) if task.running)
        raise ToolError(
            f"{running} background tasks are running; the limit is {RUNNING_AT_MOST}. "
            f"End one with KillBgTask first:\n{lines}"
        )


def line_of(task: Task) -> str:
    return f"{task.id}  {task.summary}  {_shell.shorten(task.command)}"


def find(owner: str, id: int) -> Task:
    """Return a task of a caller. Raises ToolError with the ids of the caller's tasks."""
    task = _tasks.get(id)
    if task is None or task.owner != owner:
        ids = ", ".join(str(own.id) for own in tasks_of(owner)) or "none"
        raise ToolError(f"There is no background task {_text.quoted(id)}. Tasks: {ids}.")
    return task

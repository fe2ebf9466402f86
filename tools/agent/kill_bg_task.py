"""The tool KillBgTask: ends a background task and everything that it started."""

from __future__ import annotations

import time

from fastrpc import Context, ToolError, ToolResult, tool

from . import _tasks
from ._result import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated
else:
    from fastrpc.typing_forms import Annotated

PROCESS_STATE = "running programs"


@tool(name="KillBgTask", effect="exec")
async def kill_bg_task(task_id: Annotated[int, "The task ID to kill"], ctx: Context) -> ToolResult:
    """Kill a running background task by ID"""
    task = _tasks.find(ctx.principal, task_id)
    if not task.running:
        return result(f"Background task {task.id} has already ended: {task.summary}.", task.facts())
    began = time.monotonic()
    if not await task.process.terminate():
        await task.process.refresh_children()
        left = ", ".join(f"{child.pid} {child.name}" for child in task.process.children)
        raise ToolError(f"Background task {task.id} does not end, not even by SIGKILL. Still there: {left}.")
    by = "SIGKILL" if task.process.killed else "SIGTERM"
    text = f"Killed background task {task.id} ({by}, {time.monotonic() - began:.1f} s)."
    return result(text, {**task.facts(), "killed_by": by})

"""The tool BackgroundBash: starts a command that runs while the agent does other things."""

from __future__ import annotations

from fastrpc import Context, ToolResult, tool

from . import _shell, _tasks
from ._result import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated
else:
    from fastrpc.typing_forms import Annotated

PROCESS_STATE = "running programs"


@tool(name="BackgroundBash", effect="exec")
async def background_bash(command: Annotated[str, "The bash command to execute"], ctx: Context) -> ToolResult:
    """Execute bash command in background, returns immediately"""
    _tasks.check_room(ctx.principal)
    process = await _shell.start(command, output=_shell.new_output("task"))
    task = _tasks.adopt(ctx.principal, command, process)
    text = f"Started background task {task.id} (pid {process.pid}): {_shell.shorten(command)}"
    error = process.output.file_error
    if error is not None:
        reason = error.strerror or error
        text += f"\n[its output cannot be kept in a file: {reason}; the latest 1 MiB stays in memory]"
    return result(text, {"task_id": task.id, "pid": process.pid, "output_path": task.path})

"""The tool ListBgTasks: lists the background tasks, running and ended."""

from __future__ import annotations

from fastrpc import Context, ToolResult, tool

from . import _tasks
from ._result import result

PROCESS_STATE = "running programs"


@tool(name="ListBgTasks", effect="read", run="inline")
def list_bg_tasks(ctx: Context) -> ToolResult:
    """List all background tasks with status and runtime"""
    tasks = _tasks.tasks_of(ctx.principal)
    text = "\n".join(map(_tasks.line_of, tasks)) or "No background tasks."
    listed = {"tasks": [{**task.facts(), "command": task.command[:1000]} for task in tasks]}
    return result(text, listed, structured=listed)

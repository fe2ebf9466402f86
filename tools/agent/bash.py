"""The tool Bash: runs a command and returns its output, and how it ended.

Returns when the shell itself ends. A command that takes longer than the client waits becomes a background
task; for a client of MCP's tasks the call itself is one, which it need not wait for. A command that takes
longer than its `timeout` is ended with everything that it started.
"""

from __future__ import annotations

import os
import time

from fastrpc import Context, ToolError, ToolResult, tool

from . import _settings, _shell, _tasks, _text
from ._result import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from fastrpc.processes import Process
else:
    from fastrpc.typing_forms import Annotated

PROCESS_STATE = "running programs"
DEFAULT_MS = 30_000
LONGEST_MS = 600_000


@tool(name="Bash", effect="exec", task="allowed", after_seconds=5)
async def bash(
    command: Annotated[str, "The bash command to execute"],
    ctx: Context,
    timeout: Annotated[int | None, "Timeout in milliseconds (default: 30000)"] = None,
) -> ToolResult:
    """Execute a bash command"""
    asked = DEFAULT_MS if timeout is None else timeout
    if asked <= 0:
        raise ToolError(f"timeout: expected 1 to {LONGEST_MS} milliseconds, got {_text.quoted(asked)}.")
    timeout_ms = min(asked, LONGEST_MS)
    began = time.monotonic()
    progress = None
    if ctx.wants_progress and _settings.STREAMING.read():
        from ._progress import Progress

        progress = Progress(ctx)
    process = await _shell.start(
        command,
        timeout_ms=timeout_ms,
        output=_shell.new_output("bash"),
        on_output=progress.take if progress is not None else None,
        confirmed=False,
    )
    try:
        await _wait(process, began, timeout_ms, ctx)
        if not process.ended and not process.timed_out:
            return await _hand_over(ctx.principal, command, process, asked, timeout_ms)
        if process.children_left:
            await process.refresh_children()
    except BaseException:  # cancelled, most likely
        process.terminate_soon()
        _tasks.in_hand(_throw_away(process))
        raise
    finally:
        if progress is not None:
            progress.stop()
    return await _ended(process, asked, timeout_ms)


async def _wait(process: Process, began: float, timeout_ms: int, ctx: Context) -> None:
    """Wait for the end, but not longer than the client does, unless it waits for a task."""
    patience = _settings.PATIENCE_SECONDS.read()
    if not patience or timeout_ms / 1000 + 1 < patience:
        await process.wait()
        return
    import asyncio

    waiting = asyncio.ensure_future(process.wait())
    try:
        await asyncio.wait({waiting}, timeout=max(0.0, began + patience - time.monotonic()))
        is_task = ctx.task is not None and ctx.task.exists
        if waiting.done() or process.timed_out or is_task:  # a process that is being ended is not handed over
            await waiting
    finally:
        waiting.cancel()


async def _hand_over(owner: str, command: str, process: Process, asked: int, timeout_ms: int) -> ToolResult:
    """Return the output so far; the process becomes a background task, with the same time limit."""
    await process.refresh_children()
    output = process.output
    text, truncated = _shell.show(output)
    task = _tasks.adopt(owner, command, process, timeout_ms)
    task.read_to = output.total
    lines = [text] if text else []
    lines += _limit_note(asked)
    lines.append(
        f"[still running after {task.seconds:.0f} s: goes on as background task {task.id}, for at most "
        f"{timeout_ms} ms in all; ReadBgOutput reads on, KillBgTask ends it]"
    )
    return result("\n".join(lines), _facts(process, truncated, task.path, task.id))


async def _ended(process: Process, asked: int, timeout_ms: int) -> ToolResult:
    text, truncated = _shell.show(process.output)
    await _tasks.put_away(process.output)
    lines = [text] if text else []
    lines += _limit_note(asked)
    if process.children_left:
        lines.append(_shell.children_note(process))
    failed = True
    if process.timed_out:
        lines.append(f"[timed out after {timeout_ms} ms]")
    elif process.signal is not None:
        lines.append(f"[killed by {process.signal}]")
    elif process.exit_code != 0:
        lines.append(f"[exit code {process.exit_code}]")
    else:
        failed = False
        if not text:
            lines.insert(0, "(no output)")
    file = process.output.file
    facts = _facts(process, truncated, file.path if file is not None else None, None)
    return result("\n".join(lines), facts, is_error=failed)


def _limit_note(asked: int) -> list[str]:
    return (
        [f"[timeout {_text.quoted(asked)} ms is taken as {LONGEST_MS} ms, the longest]"]
        if asked > LONGEST_MS
        else []
    )


def _facts(process: Process, truncated: bool, path: str | None, task_id: int | None) -> dict[str, object]:
    seconds = process.duration_seconds if process.ended else time.monotonic() - process.began
    return {
        "exit_code": process.exit_code,
        "signal": process.signal,
        "timed_out": process.timed_out,
        "duration_ms": round(seconds * 1000),
        "truncated": truncated,
        "output_path": path,
        "task_id": task_id,
    }


async def _throw_away(process: Process) -> None:
    """End the process of a cancelled call and delete its file, whose name no answer contains."""
    await process.wait_gone()
    file = process.output.file
    if file is not None:
        file.close()
        try:
            os.unlink(file.path)
        except OSError:
            pass

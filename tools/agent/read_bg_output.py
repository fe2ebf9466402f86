"""The tool ReadBgOutput: returns the output of a background task since the last read, page by page."""

from __future__ import annotations

from fastrpc import Context, ToolError, ToolResult, tool

from . import _settings, _tasks, _text
from ._result import result

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Annotated

    from ._tasks import Task
else:
    from fastrpc.typing_forms import Annotated

PROCESS_STATE = "running programs"
PAGE = 160 * 1024  # bytes; more than a result can show


@tool(name="ReadBgOutput", effect="read")
async def read_bg_output(
    task_id: Annotated[int, "The task ID returned by BackgroundBash"],
    ctx: Context,
    wait_ms: Annotated[int | None, "Wait up to this long in ms for new output or the end"] = None,
) -> ToolResult:
    """Read new output from a background task"""
    task = _tasks.find(ctx.principal, task_id)
    if wait_ms is not None and wait_ms > 0:
        patience = _settings.PATIENCE_SECONDS.read() or float("inf")
        await task.wait_for_news(min(min(wait_ms, 86_400_000) / 1000, patience))
    try:
        skipped, text = _next_page(task)
    except OSError as error:
        raise ToolError(
            f"The output of task {task.id} in {task.path} cannot be read: {error.strerror}."
        ) from None
    lines = []
    if skipped:
        lines.append(f"[... {skipped:,} bytes were not kept ...]")
    if text:
        lines.append(text.removesuffix("\n"))
    waiting = task.process.output.total - task.read_to
    if text and waiting > 0:
        lines.append(f"[{waiting:,} more bytes are there: read again]")
    lines.append(f"[task {task.id}: {task.summary}]")
    return result("\n".join(lines), {**task.facts(), "unread_bytes": waiting, "skipped_bytes": skipped})


def _next_page(task: Task) -> tuple[int, str]:
    """Take the next page: the number of bytes that were lost before it, and its text."""
    output = task.process.output
    start, data = output.read(task.read_to, PAGE)
    skipped = start - task.read_to
    while data and len(data) < PAGE:
        follows, more = output.read(start + len(data), PAGE - len(data))
        if not more or follows != start + len(data):
            break
        data += more
    text = data.decode("utf-8", "surrogateescape")
    if task.running or start + len(data) < output.total:
        text = text[: len(text) - _unfinished(text)]
    text = _text.head_of(text)
    task.read_to = start + len(text.encode("utf-8", "surrogateescape"))
    return skipped, _text.clean(text.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))


def _unfinished(text: str) -> int:
    """Return the length of an incomplete end: part of a character or of an escape sequence."""
    count = 0
    while count < min(3, len(text)) and "\udc80" <= text[-1 - count] <= "\udcff":
        count += 1
    if count:
        lead = ord(text[-count]) - 0xDC00
        wanted = 2 if 0xC2 <= lead < 0xE0 else 3 if 0xE0 <= lead < 0xF0 else 4 if 0xF0 <= lead < 0xF5 else 0
        return count if count < wanted else 0
    return _text.unfinished_escape(text)

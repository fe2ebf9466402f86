"""Writes log messages and a progress bar to standard error while a call runs.

The bar is one line, drawn on a terminal only, and erased before anything else is written. Texts of the server
are escaped first (`fastrpc.terminal.text.plain`).
"""

from __future__ import annotations

import os
import sys
from typing import Any

from fastrpc.terminal.device import size_of
from fastrpc.terminal.text import cut, plain, width

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.client.tasks import TaskFacts

BAR_WIDTH = 30
WIPE = "\r\x1b[K"


class Feedback:
    """Writes log messages and progress to standard error; `on_log` and `on_progress` are for a client."""

    def __init__(self) -> None:
        self.has_terminal = (
            sys.stderr is not None and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        )
        self._is_drawn = False
        self.count = 0
        """How often something was shown, or `wipe` was called before it."""

    def on_log(self, params: dict[str, Any]) -> None:
        """Write a log message (MCP, logging: LoggingMessageNotification)."""
        data = params.get("data")
        if not isinstance(data, str):
            import json

            data = json.dumps(data, ensure_ascii=False)
        logger = params.get("logger")
        where = f" {plain(str(logger))}" if logger else ""
        level = plain(str(params.get("level", "info")))
        for line in data.splitlines() or [""]:
            self.write(f"{level}{where}: {plain(line)}")

    def on_progress(self, params: dict[str, Any]) -> None:
        """Draw the bar (MCP, progress: ProgressNotification); a number if there is no total."""
        if not self.has_terminal:
            return
        done, total = params.get("progress"), params.get("total")
        message = plain(str(params.get("message") or "")).strip()
        if not isinstance(done, (int, float)):
            return
        if isinstance(total, (int, float)) and total > 0:
            part = min(max(done / total, 0.0), 1.0)
            filled = round(part * BAR_WIDTH)
            shown = f"[{'#' * filled}{'.' * (BAR_WIDTH - filled)}] {part:4.0%}"
        else:
            shown = f"{done:g}"
        self.count += 1
        self.draw(f"{shown} {message}".rstrip())

    def on_task(self, task: TaskFacts) -> None:
        """Draw the state of a task in place of the bar."""
        if self.has_terminal:
            self.count += 1
            self.draw(plain(f"{task.status} {task.status_message or ''}").rstrip())

    def write(self, text: str) -> None:
        """Write a line. Erases the bar."""
        self.wipe()
        if sys.stderr is not None:
            sys.stderr.write(f"{text}\n")
            sys.stderr.flush()

    def wipe(self) -> None:
        """Erase the bar, since something else will be shown."""
        self.count += 1
        if self._is_drawn:
            self._is_drawn = False
            sys.stderr.write(WIPE)
            sys.stderr.flush()

    def draw(self, text: str) -> None:
        """Show a line until something else is shown."""
        columns, _ = size_of(sys.stderr.fileno())
        self._is_drawn = True
        # The cursor returns to the start of the line, so that other output overwrites the bar.
        sys.stderr.write(f"{WIPE}{cut(text, columns - 1) if width(text) >= columns else text}\r")
        sys.stderr.flush()

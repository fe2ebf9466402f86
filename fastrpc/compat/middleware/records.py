"""The loggers of the ready middleware: Python's own, with the names that FastMCP has for them.

A logger that a program has not set up writes from INFO on to standard error, where FastMCP writes too; never
to standard output.
"""

from __future__ import annotations

import logging
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ROOT = "fastmcp"


class Log:
    """Writes records of one logger. `given` is a program's own; `name` that of the logger otherwise."""

    __slots__ = ("logger",)

    def __init__(self, given: logging.Logger | None, name: str) -> None:
        self.logger = given or logging.getLogger(name)

    def write(self, level: int, text: str, *values: Any) -> None:
        logger = self.logger
        if not logger.hasHandlers() and logger.name.startswith(ROOT):
            _set_up()
        logger.log(level, text, *values)


def _set_up() -> None:
    """Write records of the common parent to standard error, since the program has configured no handler."""
    parent = logging.getLogger(ROOT)
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    parent.addHandler(handler)
    if parent.level == logging.NOTSET:
        parent.setLevel(logging.INFO)

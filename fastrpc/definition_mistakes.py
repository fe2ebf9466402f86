"""Prints a mistake in a definition, or in a call of `run`, as one line.

Otherwise `python server.py` would print a traceback with this package's frames; `fastrpc serve` prints one
line by itself. `FASTRPC_TRACEBACK=full` keeps the traceback. For all other exceptions, the previous exception
hook is called.
"""

from __future__ import annotations

import os
import sys

from fastrpc import diagnostics

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

VARIABLE = "FASTRPC_TRACEBACK"
_is_installed = False


def install(mistakes: type[Exception]) -> None:
    """Set the exception hook for exceptions of this type, once."""
    global _is_installed
    if not _is_installed:
        _is_installed = True
        others = sys.excepthook

        def show(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
            if isinstance(error, mistakes) and os.environ.get(VARIABLE) != "full":
                diagnostics.write_line(f"fastrpc: {_place_in(traceback)}{' '.join(str(error).split())}")
            else:
                others(kind, error, traceback)

        sys.excepthook = show


def _place_in(traceback: TracebackType | None) -> str:
    """Return file and line of the innermost frame of the author's code; "" if no frame is in a file."""
    found = diagnostics.authors_frame(traceback)
    if found is None or (file := found.tb_frame.f_code.co_filename).startswith("<"):
        return ""
    return f"{file}:{found.tb_lineno}: "

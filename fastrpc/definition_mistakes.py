"""Shows an author a mistake in a definition, or in a call of `run`, as one line.

`python server.py` would print a traceback whose frames are this package's. `fastrpc serve` prints one line by
itself. `FASTRPC_TRACEBACK=full` keeps the traceback. An exception hook that was set before is called for all
other exceptions.
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


def install(mistakes: tuple[type[Exception], ...]) -> None:
    """Set the exception hook for exceptions of these types, once."""
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
    """Return file and line of the innermost frame that is the author's; "" if none is in a file."""
    found = diagnostics.authors_frame(traceback)
    if found is None or (file := found.tb_frame.f_code.co_filename).startswith("<"):
        return ""
    return f"{file}:{found.tb_lineno}: "

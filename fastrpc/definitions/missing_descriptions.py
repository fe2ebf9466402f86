"""Warns the author of tools without a description: a model chooses a tool by its description.

One of Python's warnings for each, on standard error, when serving begins. Only of the author's own functions,
and not of a server that was written for another framework: what ran there without a warning runs here without
one, too.
"""

from __future__ import annotations

from warnings import warn_explicit

from fastrpc.diagnostics import is_own
from fastrpc.tool_style import PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from fastrpc.definitions.tool import Tool


_named: set[Any] = set()


def warn_of_missing_descriptions(tools: Iterable[Tool]) -> None:
    """Name the tools without a description, each with its place, and once: it may be mounted elsewhere."""
    for tool in tools:
        if tool.description is None and tool.style is PLAIN:
            code = _code_of(tool.function)
            if code is not None and code not in _named and not is_own(code.co_filename):
                _named.add(code)
                warn_explicit(
                    f"the tool {tool.name!r} has no description, by which a model chooses it: give it a "
                    "docstring or description=",
                    UserWarning,
                    code.co_filename,
                    code.co_firstlineno,
                )


def _code_of(function: Any) -> Any:
    """Return the code of a function, or of what it wraps, binds or calls; None for a builtin one."""
    while True:
        if hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif type(function).__name__ == "partial":
            function = function.func
        elif hasattr(function, "__code__"):
            return function.__code__
        else:
            return getattr(type(function).__call__, "__code__", None)

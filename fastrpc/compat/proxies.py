"""`create_proxy`: a server that stands for another one, as FastMCP 3 and 4 have it.

What a proxy costs is told by `fastrpc.proxy`.
"""

from __future__ import annotations

from fastrpc.compat.server import FastMCP

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def create_proxy(target: Any, *, name: str | None = None, **options: Any) -> FastMCP:
    """Return a proxy of what `FastMCP.as_proxy` accepts. `options` are those of `FastMCP`. Raises ValueError
    and DefinitionError."""
    return FastMCP.as_proxy(target, name, **options)

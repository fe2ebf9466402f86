"""Classes of the installed FastMCP that a swapped server uses as they are: ready interfaces, `CodeMode`, and
authorization servers with the verifiers of their tokens.

Interfaces and `CodeMode` run on fastrpc's providers and transforms. The authorization servers issue tokens
after a login at GitHub, Google and others: fastrpc serves their routes beside MCP and calls their
``verify_token``; no server of FastMCP runs. A name is imported when it is first used, which takes as long as
in FastMCP. Without FastMCP its use raises NotOffered.
"""

from __future__ import annotations

from fastrpc.compat.names.originals import part_of
from fastrpc.compat.part_names import PARTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def __getattr__(name: str) -> Any:
    for module, names in PARTS.items():
        if name in names:
            return part_of(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

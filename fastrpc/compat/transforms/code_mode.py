"""FastMCP's experiment `CodeMode`, a transform that shows tools which find others and run code that calls
them, and its parts: its own classes, of the installed package, on fastrpc's transforms. Imported when one is
first used; without FastMCP using one raises NotOffered.
"""

from __future__ import annotations

from fastrpc.compat.swap.originals import part_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    CodeMode: Any
    GetSchemas: Any
    GetTags: Any
    ListTools: Any
    MontySandboxProvider: Any
    SandboxProvider: Any
    Search: Any
    DiscoveryToolFactory: Any
    GetToolCatalog: Any
    SearchFn: Any
    ToolDetailLevel: Any

NAMES = (
    "CodeMode",
    "DiscoveryToolFactory",
    "GetSchemas",
    "GetTags",
    "GetToolCatalog",
    "ListTools",
    "MontySandboxProvider",
    "SandboxProvider",
    "Search",
    "SearchFn",
    "ToolDetailLevel",
)


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return part_of("fastmcp.experimental.transforms.code_mode", name)

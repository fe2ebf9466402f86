"""FastMCP's ready interfaces, `Approval`, `Choice`, `FileUpload`, `FormInput`, `GenerativeUI`: its own
classes, of the installed package, on fastrpc's `FastMCPApp` and providers. Imported when one is first used;
without FastMCP using one raises NotOffered or prefab-ui.
"""

from __future__ import annotations

from fastrpc.compat.swap.originals import part_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Approval: Any
    Choice: Any
    FileUpload: Any
    FormInput: Any
    GenerativeUI: Any

_HOMES = {
    "Approval": "fastmcp.apps.approval",
    "Choice": "fastmcp.apps.choice",
    "FileUpload": "fastmcp.apps.file_upload",
    "FormInput": "fastmcp.apps.form",
    "GenerativeUI": "fastmcp.apps.generative",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return part_of(_HOMES[name], name)

"""Imports the originals as they are, and changes a few of their functions when their module has been loaded.

`OriginalModules` is a finder for ``sys.meta_path``, installed by the ``sitecustomize`` of
`fastrpc.swap.site_folder`. `CHANGES` names each module of which something is changed, and the function of
this package that changes it; no other module is touched. With the variable ``FASTRPC_SWAP_REPORT``, the names
of changed modules are appended to that file.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

REPORT = "FASTRPC_SWAP_REPORT"

CHANGES = {
    "mcp.server.stdio": ("stdio", "change_stdio"),
    "mcp.server.lowlevel.server": ("serving", "change_server"),
    "mcp.server.fastmcp.server": ("first_fastmcp", "change_fastmcp"),
    "mcp.server.mcpserver.server": ("mcpserver", "change_mcpserver"),
    "fastmcp.server.server": ("fastmcp", "change_server"),
}
"""By the original's module: the module of this package and its function, which is called with the loaded
module."""


class OriginalModules:
    """The finder of the originals' modules that are changed."""

    serves_originals = True

    def __init__(self) -> None:
        self.changed: list[str] = []
        """The modules that have been changed, in the order in which they were loaded."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in CHANGES:
            return None
        for finder in sys.meta_path:
            spec = None if finder is self else finder.find_spec(name, path, target)
            if spec is not None:
                self._change_when_loaded(spec)
                return spec
        return None

    def _change_when_loaded(self, spec: ModuleSpec) -> None:
        loader: Any = spec.loader
        load = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            load(module)
            home, name = CHANGES[module.__name__]
            place = __import__(f"fastrpc.swap.originals.{home}", fromlist=[name])
            if getattr(place, name)(module):
                self._note(module.__name__)

        loader.exec_module = exec_module

    def _note(self, name: str) -> None:
        self.changed.append(name)
        report = os.environ.get(REPORT)
        if report:
            with open(report, "a", encoding="utf-8") as file:
                file.write(f"{name}\n")

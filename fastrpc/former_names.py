"""Modules that have been renamed can be imported by their former names, with a DeprecationWarning, until 1.0.

`fastrpc/__init__.py` calls `spec_of` for a module of fastrpc that no other finder has found, so imports of
existing modules cost nothing more. The module under a former name is the module itself, not a copy.
"""

from __future__ import annotations

from importlib import import_module
from importlib.machinery import ModuleSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

FORMER_NAMES = {
    "fastrpc.ask": "fastrpc.human_input",
    "fastrpc.asking": "fastrpc.client_requests",
    "fastrpc.checking_proxy": "fastrpc.egress_proxy",
    "fastrpc.compat.swap.type_names": "fastrpc.compat.type_names",
    "fastrpc.completion": "fastrpc.definitions.completion",
    "fastrpc.hooks": "fastrpc.engine.interceptors",
    "fastrpc.prompts": "fastrpc.definitions.prompt",
    "fastrpc.resources": "fastrpc.definitions.resource",
    "fastrpc.types": "fastrpc.content",
}
"""The public modules that have been renamed."""


def spec_of(name: str) -> ModuleSpec | None:
    """Return the spec of a module by its former name, None if no module had that name. Warns the importer.

    A package that had such modules, and does not exist any more, is imported as an empty one.
    """
    new = FORMER_NAMES.get(name)
    if new is None:
        is_package = any(former.startswith(f"{name}.") for former in FORMER_NAMES)
        return ModuleSpec(name, None, is_package=True) if is_package else None
    from warnings import warn

    # 3: the caller of this function and of the finder. `warn` skips the frames of importlib.
    warn(f"{name} is called {new} now", DeprecationWarning, stacklevel=3)
    return ModuleSpec(name, RenamedModuleLoader(new))  # type: ignore[arg-type]  # one by its methods


class RenamedModuleLoader:
    """Loads the module with another name."""

    def __init__(self, name: str) -> None:
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the spec that the import system has replaced. The module has been executed already."""
        module.__spec__ = self._spec

"""`ServedModule`: what ``import fastmcp`` and the like return; its attributes come from `fastrpc.compat`.

Names are looked up when they are used. One that is known to be missing raises when it is used
(`fastrpc.compat.names.unavailable`), any other at the import.
"""

from __future__ import annotations

import os
import sys
from types import ModuleType

from fastrpc.compat.dialect import installed_version
from fastrpc.swap import modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ServedModule(ModuleType):
    """A module with the name of an original's module; its attributes are those of a fastrpc module, and the
    original's types."""

    def __getattr__(self, name: str) -> Any:
        module = self.__name__
        if name == "__all__":
            return modules.star_names(module)
        if name == "__version__":
            return installed_version(module.partition(".")[0])
        if name == "__file__":
            return self._file()
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        found = modules.find(module, name)
        if found.missing:
            from fastrpc.compat.names.unavailable import unavailable

            self.__dict__[name] = value = unavailable(
                module, name, modules.complaint(module, name, found.missing)
            )
            return value
        if found.missing is not None:
            # A submodule of another version, or unknown: the finder decides that, and says why.
            raise AttributeError(modules.complaint(module, name, found.missing))
        place = _imported(found.module if found.member else f"{module}.{name}")
        value = getattr(place, found.member) if found.member else place
        self.__dict__[name] = value
        return value

    def _file(self) -> str:
        """Return the file of the installed original's module, which programs look beside. Raises
        AttributeError."""
        spec = self.__dict__.get("__spec__")
        for place in getattr(spec, "submodule_search_locations", None) or ():
            for path in (os.path.join(place, "__init__.py"), f"{place}.py"):
                if os.path.isfile(path):
                    return path
        raise AttributeError(f"module {self.__name__!r} has no file: the original is not installed")


def _imported(module: str) -> ModuleType:
    __import__(module)
    return sys.modules[module]

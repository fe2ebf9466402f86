"""Serves imports of fastmcp and of the official SDK from `fastrpc.compat`, in a swapped server's process.

`ServedModules` is a finder for ``sys.meta_path``; `fastrpc swap --run` installs it by the ``sitecustomize``
of `fastrpc.swap.site_folder`. A served module is a `ServedModule`, whose attributes are looked up when
they are used; one that is known to be missing raises when it is used (`fastrpc.compat.names.unavailable`),
any other at the import. The package ``mcp`` is served with the folder of the installed SDK, so that
``mcp.types`` and all else that is not served are loaded from there, without ``mcp/__init__.py``. A module of
the user's own that is called fastmcp or mcp is left alone.

With the variable ``FASTRPC_SWAP_REPORT``, the names of served modules are appended to that file.
"""

from __future__ import annotations

import os
from importlib.machinery import ModuleSpec
from types import ModuleType

from fastrpc.compat.dialect import LATEST_KNOWN, follow_release, installed_release, installed_version
from fastrpc.compat.names.originals import spec_of_part
from fastrpc.compat.names.packages import installed_spec, is_original_part
from fastrpc.swap import modules
from fastrpc.swap.served_module import ServedModule

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType
    from typing import Any

REPORT = "FASTRPC_SWAP_REPORT"


class ServedModules:
    """The finder and loader of served modules; the first of ``sys.meta_path``."""

    serves_originals = True

    def __init__(self) -> None:
        self._folders: dict[str, str | None] = {}
        self._left_alone: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        package = name.partition(".")[0]
        if package not in modules.SERVED_BY or not self._is_original(package):
            return None
        folder = self._folders[package]
        if modules.home_of(name) is None:
            if folder is None:
                raise ModuleNotFoundError(f"{name} is the official SDK's own: install mcp", name=name)
            return spec_of_part(name) if is_original_part(name) else None
        if folder is not None and (needed := modules.other_release(name, installed_release(package))):
            found = f"{package} {installed_version(package)} is installed"
            pinned = f"{package}=={needed.replace('x', '*')}"
            # The class is the original's: files try one release's module, then the other's.
            raise ModuleNotFoundError(
                f"No module named {name!r}: it is a module of {package} {needed}, and {found}. "
                f"Install {pinned!r}; fastrpc then serves it",
                name=name,
            )
        place = None if folder is None else os.path.join(folder, *name.split(".")[1:])
        if not modules.is_known(name) and not _is_module(place):
            parent, _, last = name.rpartition(".")
            missing = modules.find(parent, last).missing
            raise ImportError(modules.complaint(parent, last, missing or ""), name=name)
        loader: Any = self
        is_main = name.endswith(".__main__")
        spec = ModuleSpec(name, loader, origin=package if is_main else None, is_package=not is_main)
        if not is_main:
            spec.submodule_search_locations = [] if place is None else [place]
        return spec

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return ServedModule(spec.name, "Served by fastrpc.")

    def exec_module(self, module: ModuleType) -> None:
        report = os.environ.get(REPORT)
        if report:
            with open(report, "a", encoding="utf-8") as file:
                file.write(f"{module.__name__}\n")
        if module.__name__ in LATEST_KNOWN:
            follow_release(module.__name__, installed_version(module.__name__))

    def get_code(self, name: str) -> CodeType | None:
        """Return what ``python -m fastmcp`` runs."""
        if not name.endswith(".__main__"):
            return None
        return compile("import sys\nfrom fastmcp.cli import app\nsys.exit(app())", f"<{name}>", "exec")

    def _is_original(self, package: str) -> bool:
        """Return whether a package is the original or not installed, and not another of the same name."""
        if package not in self._folders and package not in self._left_alone:
            spec = installed_spec(package)
            places = list(spec.submodule_search_locations or ()) if spec is not None else []
            if spec is None or (spec.origin is None and not _looks_original(places)):
                self._folders[package] = None  # a namespace package is a mere folder of this name
            elif _looks_original(places):
                self._folders[package] = places[0]
            else:
                self._left_alone.add(package)
        return package in self._folders


def _looks_original(places: list[str]) -> bool:
    return any(
        os.path.isdir(os.path.join(place, part)) for place in places for part in ("server", "client")
    ) and any(os.path.isfile(os.path.join(place, "__init__.py")) for place in places)


def _is_module(place: str | None) -> bool:
    return place is not None and (os.path.isdir(place) or os.path.isfile(f"{place}.py"))

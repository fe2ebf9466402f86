"""Loaded by each interpreter under `fastrpc swap --run`: serves imports of fastmcp and mcp from fastrpc.

Python imports ``sitecustomize`` when it starts. This one puts a finder in front, which imports
`fastrpc.swap.import_hook`, or with ``FASTRPC_SWAP_OBJECTS=original`` `fastrpc.swap.originals.loading`, at the
first import of fastmcp or mcp; until then it costs one small module. Then it runs the ``sitecustomize`` that
it hides. ``FASTRPC_SWAP`` holds what the interpreter needs to know: the suffix of extension modules that
fastrpc was built for, and the folders of fastrpc and its dependencies, which are used for those packages
alone where the environment does not have them. Any CPython may load it, whether it can import fastrpc or not:
only an import of fastmcp or mcp fails there, with the reason.
"""

from __future__ import annotations

import atexit
import os
import sys
from importlib.machinery import EXTENSION_SUFFIXES, PathFinder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any

VARIABLE = "FASTRPC_SWAP"
ROOT = "FASTRPC_SWAP_ROOT"
OBJECTS = "FASTRPC_SWAP_OBJECTS"
ORIGINALS = ("fastmcp", "mcp")
PACKAGES = ("fastrpc", "orjson", "msgspec", "uvloop", "jsonschema_rs", "openapi_pydantic", "httptools")


class LentPackages:
    """Finds fastrpc and its dependencies where `fastrpc swap` runs; after all other finders."""

    def __init__(self, folders: list[str]) -> None:
        self._folders = folders

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, self._folders) if name in PACKAGES else None


class FirstImport:
    """Waits for the first import of an original, and hands it to the import hook."""

    def __init__(self, suffix: str) -> None:
        self._suffix = suffix

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name.partition(".")[0] not in ORIGINALS:
            return None
        sys.meta_path.remove(self)
        try:
            finder = _finder()
        except ImportError as error:
            sys.meta_path.insert(0, self)
            raise ImportError(self._reason(error)) from error
        sys.meta_path.insert(0, finder)
        spec: ModuleSpec | None = finder.find_spec(name, path, target)
        return spec

    def _reason(self, error: ImportError) -> str:
        if self._suffix in EXTENSION_SUFFIXES:
            return f"fastrpc swap: fastrpc cannot be imported by {sys.executable}: {error}"
        version = ".".join(map(str, sys.version_info[:2]))
        return (
            f"fastrpc swap: {sys.executable} is Python {version} ({EXTENSION_SUFFIXES[0]}), and fastrpc is "
            f"installed for {self._suffix}: install fastrpc-mcp for this interpreter, or start the server "
            "with the Python that fastrpc has"
        )


def _finder() -> Any:
    """Return what serves imports of the originals, or changes their modules when they are loaded."""
    if os.environ.get(OBJECTS) == "original":
        from fastrpc.swap.originals.loading import OriginalModules

        return OriginalModules()
    from fastrpc.swap.import_hook import ServedModules

    return ServedModules()


def _start() -> None:
    suffix, *folders = os.environ.get(VARIABLE, "").split(os.pathsep)
    if folders:
        if suffix in EXTENSION_SUFFIXES:
            sys.meta_path.append(LentPackages(folders))
        sys.meta_path.insert(0, FirstImport(suffix))
        if os.environ.get(ROOT) in (str(os.getpid()), str(os.getppid())):
            atexit.register(_tell)


def _tell() -> None:
    """Say at the end of the command's own process, or of a child of it, that nothing of it was swapped."""
    found = {name: sys.modules.get(name) for name in ORIGINALS}
    is_changed = any(getattr(finder, "changed", None) for finder in sys.meta_path)
    if not is_changed and all(type(module).__name__ != "ServedModule" for module in found.values()):
        others = [str(getattr(module, "__file__", name)) for name, module in found.items() if module]
        why = f"it has its own packages with these names ({', '.join(others)})" if others else ""
        why = why or "it has imported neither fastmcp nor mcp"
        print(f"fastrpc swap --run: nothing was swapped in {sys.argv[0] or 'python'}: {why}", file=sys.stderr)


def _run_hidden() -> None:
    """Run the ``sitecustomize`` that would have been loaded without this one."""
    here = os.path.dirname(os.path.abspath(__file__))
    others = [place for place in sys.path if os.path.abspath(place) != here]
    spec = PathFinder.find_spec("sitecustomize", others)
    if spec is not None and spec.loader is not None:
        from importlib.util import module_from_spec

        module = module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


_start()
_run_hidden()

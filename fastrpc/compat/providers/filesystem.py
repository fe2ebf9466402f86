"""`FileSystemProvider`: the components that the Python files of a folder mark, or make.

The files are imported when the provider is made; with ``reload=True`` those that have changed are imported
anew for each request, for development. A file that cannot be imported is logged, and left out.
"""

from __future__ import annotations

import sys
from pathlib import Path

from fastrpc import diagnostics
from fastrpc.compat.components.objects import Prompt, Resource, ResourceTemplate
from fastrpc.compat.components.standalone import component_of, mark_of
from fastrpc.compat.components.tools import Tool
from fastrpc.compat.providers.local import LocalProvider

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from types import ModuleType
    from typing import Any

COMPONENTS = (Tool, Prompt, Resource, ResourceTemplate)


class FileSystemProvider(LocalProvider):
    """The components in the files below `root`, in the order of their paths."""

    def __init__(self, root: str | Path = ".", reload: bool = False) -> None:
        super().__init__(on_duplicate="replace")
        self._root = Path(root).resolve()
        self._reload = reload
        self._times: dict[Path, int] = {}
        self._found: dict[Path, list[Any]] = {}
        self._failed: dict[Path, str] = {}
        if not self._root.exists():
            diagnostics.write("warning", f"FileSystemProvider: {self._root} does not exist")
        self._load()

    @property
    def failed_files(self) -> Mapping[Path, str]:
        """The files that could not be imported, and why."""
        return dict(self._failed)

    def _of(self, kind: str) -> list[Any]:
        if self._reload:
            self._load()
        return super()._of(kind)

    def _load(self) -> None:
        """Import the files that are new or have changed."""
        times = {path: path.stat().st_mtime_ns for path in _files(self._root)}
        if times == self._times:
            return
        for path, time in times.items():
            if self._times.get(path) == time:
                continue
            self._found[path] = []
            self._failed.pop(path, None)
            try:
                self._found[path] = list(_components(_imported(path, self._root)))
            except Exception as error:  # whatever the file raises
                self._failed[path] = f"{type(error).__name__}: {error}"
                diagnostics.write("warning", f"FileSystemProvider: {path}: {error!r:.200}")
        self._times = times
        self._components.clear()
        for path in times:
            for component in self._found.get(path, ()):
                self._add(component)

    def __repr__(self) -> str:
        return f"FileSystemProvider(root={self._root!r}, reload={self._reload})"


def _files(root: Path) -> list[Path]:
    if root.is_file():
        return [root]
    return sorted(path for path in root.rglob("*.py") if path.name != "__init__.py")


def _imported(path: Path, root: Path) -> ModuleType:
    """Import a file: as a part of its package, if it is in one below the root, else by itself. It can import
    what is next to it."""
    from hashlib import sha1
    from importlib.util import module_from_spec, spec_from_file_location

    folder = path.parent
    while (folder / "__init__.py").exists() and folder != root.parent:
        folder = folder.parent
    name = ".".join(path.relative_to(folder).with_suffix("").parts)
    known = sys.modules.get(name)
    if known is not None and getattr(known, "__file__", None) != str(path):  # another one's name
        name = f"_{sha1(str(path).encode(), usedforsecurity=False).hexdigest()[:12]}_{path.stem}"
    is_added = str(folder) not in sys.path
    if is_added:
        sys.path.insert(0, str(folder))
    try:
        if "." in name:
            __import__(name.rpartition(".")[0])
        spec = spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return module
    finally:
        if is_added and str(folder) in sys.path:
            sys.path.remove(str(folder))


def _components(module: ModuleType) -> Iterator[Any]:
    """Yield what a module marks or makes, in alphabetical order."""
    for name in dir(module):
        if name.startswith("_"):
            continue
        thing = getattr(module, name, None)
        if isinstance(thing, COMPONENTS):
            yield thing
        elif mark_of(thing) is not None:
            yield component_of(thing)

"""Runs modules of an installed original beside fastrpc: for what fastrpc does not have, and does not need to
be fast.

``original("fastmcp.server.auth.providers.github")`` is the module of the installed package,
imported as ``fastrpc_originals.fastmcp.server…``: what it imports of its package is such a module again,
so that the import hook, which serves ``fastmcp`` from `fastrpc.compat`, is not in its way. A module of
`ON_FASTRPC` is the other way round: it alone is the original's, and all that it imports of its package is
fastrpc's.

Nothing of an original is imported before one of its modules is asked for.
"""

from __future__ import annotations

import builtins
import sys
from functools import partial
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from os import path
from types import ModuleType

from fastrpc.compat.errors import NotOffered
from fastrpc.compat.names import found
from fastrpc.compat.names.packages import installed_spec, is_served, package_of
from fastrpc.compat.names.unavailable import unavailable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

ROOT = "fastrpc_originals"

ON_FASTRPC = frozenset(
    {
        "fastmcp.apps.approval",
        "fastmcp.apps.choice",
        "fastmcp.apps.file_upload",
        "fastmcp.apps.form",
        "fastmcp.apps.generative",
        "fastmcp.experimental.transforms.code_mode",
    }
)
"""Modules that run on fastrpc's classes: providers and transforms, which a server of fastrpc asks for
components."""


LATE = frozenset({"mcp", "mcp.client", "mcp.server"})
"""Packages that import all of their modules, so that one alone cannot be imported: run when a name of their
own is used."""


def original(module: str) -> ModuleType:
    """Return a module of an installed original. Raises NotOffered if it cannot be imported."""
    package = package_of(module)
    if installed_spec(package) is None:
        raise NotOffered(f"{module} is a part of {package} itself: pip install {package}")
    _begin()
    alias = f"{ROOT}.{module}"
    try:
        __import__(alias)
    except ImportError as error:
        raise NotOffered(f"{module} is a part of {package} itself, and is not imported: {error}") from error
    return sys.modules[alias]


def _begin() -> None:
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder())  # before the one that would find them by the path of their package


def part_of(module: str, name: str) -> Any:
    """Return a name of a module of an installed original; without it, a class that raises NotOffered when it
    is used."""
    try:
        return getattr(original(module), name)
    except (NotOffered, AttributeError) as error:
        return unavailable(module, name, str(error))


class _Finder:
    """Finds the modules of installed originals below `ROOT`."""

    serves_originals = True

    def find_spec(
        self, name: str, place: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name == ROOT:
            spec = ModuleSpec(ROOT, None, is_package=True)
            spec.submodule_search_locations = []
            return spec
        if not name.startswith(f"{ROOT}."):
            return None
        return _spec_of(name, name[len(ROOT) + 1 :])


def spec_of_part(module: str) -> ModuleSpec | None:
    """Return the spec of a module of an original that is used as it is, by its own name: what it imports of
    the original's other modules is the original's, even where these are served from `fastrpc.compat`."""
    _begin()
    return _spec_of(module, module)


def _spec_of(name: str, original: str) -> ModuleSpec | None:
    """Return the spec of a module of an original, to be imported by this name."""
    stem = _place_of(original)
    file = None if stem is None else _file_of(stem)
    if stem is None or file is None:
        return None
    return spec_from_file_location(
        name,
        file,
        loader=_Loader(name, file, original),
        submodule_search_locations=None if file == f"{stem}.py" else [stem],
    )


class _Loader(SourceFileLoader):
    """Runs a module of an original with another ``import``."""

    def __init__(self, name: str, file: str, original: str) -> None:
        super().__init__(name, file)
        self._is_late = original in LATE
        self._import = _importing(_from_fastrpc if original in ON_FASTRPC else _from_original)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["__builtins__"] = {**vars(builtins), "__import__": self._import}
        if self._is_late:
            module.__dict__["__getattr__"] = partial(self._run_late, module)
        else:
            super().exec_module(module)

    def _run_late(self, module: ModuleType, name: str) -> Any:
        """Run a module for the first of its names that is used."""
        if name.startswith("__") or "__getattr__" not in module.__dict__:
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        del module.__dict__["__getattr__"]
        super().exec_module(module)
        return getattr(module, name)


def _place_of(module: str) -> str | None:
    """Return the path of a module of an installed original, without its ending."""
    package, *parts = module.split(".")
    spec = installed_spec(package)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return path.join(places[0], *parts) if places else None


def _file_of(stem: str) -> str | None:
    return next((file for file in (path.join(stem, "__init__.py"), f"{stem}.py") if path.isfile(file)), None)


def _importing(replacement: Callable[[str, Any], Any]) -> Callable[..., Any]:
    """Return an ``__import__`` that returns `replacement` (module, fromlist) for modules that fastrpc
    serves."""

    def import_module(
        name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0
    ) -> Any:
        if level or not is_served(name):
            return __import__(name, globals, locals, fromlist or (), level)
        return replacement(name, fromlist)

    return import_module


def _from_original(module: str, fromlist: Any) -> Any:
    """Return an original's own module; without `fromlist` its package, as ``import a.b`` does."""
    alias = f"{ROOT}.{module}"
    if fromlist:
        return __import__(alias, fromlist=fromlist)
    __import__(alias)
    return sys.modules[f"{ROOT}.{package_of(module)}"]


def _from_fastrpc(module: str, fromlist: Any) -> Any:
    """Return what fastrpc has in the place of an original's module."""
    return _OnFastrpc(module)


class _OnFastrpc(ModuleType):
    """A module of fastrpc in the place of an original's; a name that fastrpc does not have is the
    original's."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        try:
            return found("fastmcp", name)
        except (AttributeError, ImportError):
            return getattr(original(self.__name__), name)

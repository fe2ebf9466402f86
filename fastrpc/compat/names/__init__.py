"""The names of `fastrpc.compat.fastmcp` and `fastrpc.compat.mcp`: each is imported when it is first used."""

from __future__ import annotations

import sys

from fastrpc import lazy_names

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def found(package: str, name: str) -> Any:
    """Return a name of the module that serves a package of an original, and that is imported already. Raises
    AttributeError and ImportError."""
    return getattr(sys.modules[f"fastrpc.compat.{package}"], name)


def load(
    namespace: dict[str, Any], homes: Mapping[str, tuple[str, ...]], aliases: Mapping[str, str], name: str
) -> Any:
    """Return a name of the module with the globals `namespace`, and store it there.

    `homes`: the names that each module has; `aliases`: what those are called there that have another name. A
    name in lower case may be a module of the original. Raises AttributeError, and ImportError for a name of
    the original that is not supported.
    """
    unsupported = namespace["_MODULE_ALTERNATIVES"]
    if name in unsupported:
        raise ImportError(f"{namespace['__name__']} has no {name}; {unsupported[name]}")
    if name not in namespace["__all__"] and name.islower() and not name.startswith("__"):
        from fastrpc.compat.names.modules import submodule

        return submodule(namespace["__name__"], name)
    return lazy_names.load(namespace, homes, name, aliases.get(name, name))

"""The packages of the originals: which of their modules fastrpc serves, and where they are installed."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

PACKAGES = ("fastmcp", "mcp")

ORIGINAL_PARTS = ("mcp.server.auth", "mcp.client.auth")
"""Parts of the SDK's server and client that are used as they are."""

SERVED_SHARED = ("mcp.shared.exceptions", "mcp.shared.memory")


def package_of(module: str) -> str:
    return module.partition(".")[0]


def is_original_part(module: str) -> bool:
    """Return whether a module belongs to a part of the SDK's server or client that is used as it is."""
    return _is_within(module, ORIGINAL_PARTS)


def is_served(module: str) -> bool:
    """Return whether fastrpc has the names of a module. Of the SDK those are servers and clients; its types
    and the rest are used as they are."""
    package = package_of(module)
    if package != "mcp" or module == "mcp":
        return package in PACKAGES
    if is_original_part(module) or module.endswith(".__main__"):
        return False
    return _is_within(module, ("mcp.server", "mcp.client", *SERVED_SHARED))


def _is_within(module: str, places: tuple[str, ...]) -> bool:
    return any(module == place or module.startswith(place + ".") for place in places)


def installed_spec(package: str) -> ModuleSpec | None:
    """Return the spec of an installed package, whether it is served from here or not."""
    for finder in sys.meta_path:
        find_spec = getattr(finder, "find_spec", None)
        if find_spec is not None and not getattr(finder, "serves_originals", False):
            spec: ModuleSpec | None = find_spec(package, None)
            if spec is not None:
                return spec
    return None

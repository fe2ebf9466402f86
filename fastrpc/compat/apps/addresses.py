"""Names of an app's tools that stay the same wherever the app is mounted: ``__<hash>_<name>``.

An interface calls tools by name, and is made before anyone knows how the servers around it name those tools.
So it leaves the app with addresses, and each server puts its own names in their place
(`fastrpc.compat.apps.payload`). A client may also call a tool by its address. The hash is that of FastMCP, so
that both can be mixed.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HASH_LENGTH = 12
_HEXADECIMAL = frozenset("0123456789abcdef")


def hash_of(app: str, tool: str) -> str:
    """Return the hash of an app's tool."""
    from hashlib import sha256

    return sha256(f"{app}\0{tool}".encode()).hexdigest()[:HASH_LENGTH]


def address_of(app: str, tool: str) -> str:
    """Return the address of an app's tool."""
    return f"__{hash_of(app, tool)}_{tool}"


def hash_in(address: str) -> str | None:
    """Return the hash in an address; None if it is none."""
    found, underscore = address[2 : 2 + HASH_LENGTH], address[2 + HASH_LENGTH : 3 + HASH_LENGTH]
    is_address = address.startswith("__") and underscore == "_" and len(address) > 3 + HASH_LENGTH
    return found if is_address and _HEXADECIMAL.issuperset(found) else None


def own_meta(tool: Any) -> dict[str, Any]:
    """Return what FastMCP says of a tool in its ``_meta``."""
    found = (tool.meta or {}).get("fastmcp")
    return found if isinstance(found, dict) else {}


def is_called_by_apps(tool: Any) -> bool:
    """Whether an interface may call a tool (MCP Apps: visibility)."""
    return "app" in visibility_of(tool, ())


def is_for_models(tool: Any) -> bool:
    """Whether a model is to see a tool."""
    return "model" in visibility_of(tool, ("model",))


def visibility_of(tool: Any, default: tuple[str, ...]) -> Any:
    """Return who a tool is for, as its ``_meta`` says; `default` if that says nothing."""
    ui = (tool.meta or {}).get("ui")
    found = ui.get("visibility") if isinstance(ui, dict) else None
    return found if isinstance(found, list) else default

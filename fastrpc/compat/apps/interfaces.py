"""Recognises interfaces of the library prefab-ui: values that a tool returns, and annotations. The library is
never imported here: without it there is none.
"""

from __future__ import annotations

import sys

from fastrpc.compat.apps.payload import payload_of
from fastrpc.content import ToolResult

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TEXT = "[Rendered Prefab UI]"
"""What a client that does not render interfaces sees, as in FastMCP."""


def is_interface(value: object) -> bool:
    """Whether a value is an interface, a whole one or a component."""
    apps = sys.modules.get("prefab_ui.app")
    return apps is not None and isinstance(value, (apps.PrefabApp, _component()))


def is_interface_type(annotation: Any) -> bool:
    """Whether an annotation is, or contains, the type of an interface."""
    apps = sys.modules.get("prefab_ui.app")
    if apps is None:
        return False
    if isinstance(annotation, type) and issubclass(annotation, (apps.PrefabApp, _component())):
        return True
    annotated = (annotation.__origin__,) if hasattr(annotation, "__metadata__") else ()
    return any(map(is_interface_type, (*annotated, *getattr(annotation, "__args__", ()))))


def _component() -> Any:
    from prefab_ui.components.base import Component

    return Component


def structured_form(value: Any, app: str | None = None) -> dict[str, Any]:
    """Return an interface as structured content. `app`: the name of the `FastMCPApp` that it belongs to."""
    from prefab_ui.app import PrefabApp

    return payload_of(value if isinstance(value, PrefabApp) else PrefabApp(view=value), app)


def interface_result(value: Any, app: str | None = None) -> ToolResult:
    """Return the result of a tool that returns an interface."""
    return ToolResult(TEXT, structured=structured_form(value, app))

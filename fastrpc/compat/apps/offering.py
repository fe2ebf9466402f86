"""The pages that render a server's interfaces, among its resources: after all others, as FastMCP lists
them."""

from __future__ import annotations

from fastrpc.compat.apps.renderer import APPS, renderer_at
from fastrpc.compat.components.definitions import definition_of
from fastrpc.compat.components.objects import Resource
from fastrpc.compat.registered.order import stay_last

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.apps.renderer import Renderer


def page_at(renderer: Renderer) -> Resource:
    """Return a page as a resource."""
    return Resource.from_function(renderer.html, renderer.uri, **renderer.options())


def offer_renderer(server: Any, meta: dict[str, Any] | None) -> None:
    """Offer the page that a tool with this ``_meta`` needs, if it needs one."""
    ui = (meta or {}).get("ui")
    renderer = renderer_at(ui.get("resourceUri")) if isinstance(ui, dict) else None
    resources = server.registries.resources
    if renderer is None:
        return
    server._offer_extensions(APPS)
    if renderer.uri in resources:
        return
    page = definition_of("resource", page_at(renderer), server)
    page.is_shared = True
    resources.add(page)
    stay_last(server, "resource", [renderer.uri])

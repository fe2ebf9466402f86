"""The pages that render a server's interfaces, among its resources: behind all others, as FastMCP lists
them."""

from __future__ import annotations

from fastrpc.compat.apps.renderer import renderer_at

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def offer_renderer(server: Any, meta: dict[str, Any] | None) -> None:
    """Offer the page that a tool with this ``_meta`` needs, if it needs one."""
    ui = (meta or {}).get("ui")
    renderer = renderer_at(ui.get("resourceUri")) if isinstance(ui, dict) else None
    resources = server.registries.resources
    if renderer is None or renderer.uri in resources:
        return
    server.resource(renderer.uri, **renderer.options())(renderer.html)
    resources.get(renderer.uri).is_shared = True
    server.__dict__.setdefault("_renderers", []).append(renderer.uri)


def keep_last(server: Any) -> None:
    """Put the pages behind a resource that has been added."""
    resources = server.registries.resources
    pages = [resources.get(uri) for uri in server._renderers if uri in resources]
    if pages:
        resources.replace([page.key for page in pages], pages)

"""The page that renders interfaces, as a resource: tools with the same needs (origins, permissions, domain,
border) share one. Its address contains a hash of them, as in FastMCP 4.2; the page comes from prefab-ui when
it is read.
"""

from __future__ import annotations

import os
from types import MappingProxyType

from fastrpc.compat.apps import UI_EXTENSION_ID, UI_MIME_TYPE
from fastrpc.compat.errors import NotOffered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

PLACEHOLDER = "ui://prefab/renderer.html"
"""The address by which a tool says that it needs the page."""

APPS: Mapping[str, Any] = MappingProxyType({UI_EXTENSION_ID: {}})
"""What a server with user interfaces declares (MCP Apps)."""

NAME = "Prefab Renderer"
ORIGINS = {
    "connectDomains": "connect_domains",
    "resourceDomains": "resource_domains",
    "frameDomains": "frame_domains",
    "baseUriDomains": "base_uri_domains",
}
OF_THE_PAGE = ("csp", "permissions", "domain", "prefersBorder")
"""Members that are said of the page, not of the tool (MCP Apps)."""

_renderers: dict[str, Renderer] = {}


class Renderer:
    """The page for tools with the same needs: its `uri`, its `meta`, and how to get it."""

    def __init__(self, uri: str, meta: dict[str, Any], mode: str) -> None:
        self.uri = uri
        self.meta = meta
        self._mode: Any = mode

    def html(self) -> str:  # no docstring: it would be the resource's description
        from prefab_ui.renderer import get_renderer_html

        found: str = get_renderer_html(mode=self._mode)
        return found

    def options(self) -> dict[str, Any]:
        """Return the options of a resource that is the page."""
        return {"name": NAME, "mime_type": UI_MIME_TYPE, "meta": self.meta}


def renderer_at(uri: object) -> Renderer | None:
    """Return the page at an address, if a tool of this process needs one there."""
    return _renderers.get(str(uri))


def pages_last(resources: list[Any]) -> list[Any]:
    """Return resources in their order, but such pages after all others, as FastMCP lists them."""
    return sorted(resources, key=lambda each: str(each.uri) in _renderers) if _renderers else resources


def interface_meta(meta: dict[str, Any] | None, returns_interface: bool) -> dict[str, Any] | None:
    """Return the ``_meta`` of a tool with the address of the page that it needs, if it needs one: if it says
    so (`PLACEHOLDER`), or returns an interface and says nothing else. Raises NotOffered without prefab-ui."""
    if returns_interface and "ui" not in (meta or {}):
        meta = {**(meta or {}), "ui": {"resourceUri": PLACEHOLDER}}
    ui = (meta or {}).get("ui")
    if meta is None or not isinstance(ui, dict) or ui.get("resourceUri") != PLACEHOLDER:
        return meta
    members = {name: value for name, value in ui.items() if name not in OF_THE_PAGE}
    return {**meta, "ui": {**members, "resourceUri": _renderer_for(ui).uri}}


def _renderer_for(ui: Mapping[str, Any]) -> Renderer:
    """Return the page for what a tool says of it in its ``_meta.ui``."""
    from hashlib import sha256
    from json import dumps

    version, mode, needed = _library()
    origins = origins_of(ui.get("csp"), needed)
    page: dict[str, Any] = {"csp": {name: sorted(set(each)) for name, each in origins.items()} or None}
    page |= {name: ui.get(name) for name in OF_THE_PAGE[1:]}
    meta = {"ui": {name: value for name, value in page.items() if value is not None}}
    needs = {"version": version, "mode": mode, "mime_type": UI_MIME_TYPE, "meta": meta}
    digest = sha256(dumps(needs, sort_keys=True, separators=(",", ":")).encode()).hexdigest()
    uri = f"ui://prefab/renderer/{digest}/renderer.html"
    return _renderers.setdefault(uri, Renderer(uri, meta, mode))


def _library() -> tuple[str, str, dict[str, Any]]:
    """Return the version of prefab-ui, where it gets its page from (an address, ``bundled`` or ``cdn``, by
    its environment variables), and the origins that the page needs. Raises NotOffered without prefab-ui."""
    try:
        from prefab_ui import __version__
        from prefab_ui.renderer import get_renderer_csp
    except ImportError:
        raise NotOffered("fastrpc.compat: user interfaces need prefab-ui: pip install prefab-ui") from None
    is_bundled = bool(os.environ.get("PREFAB_BUNDLED_RENDERER")) or "dev" in __version__
    mode: Any = os.environ.get("PREFAB_RENDERER_URL", "").rstrip("/") or ("bundled" if is_bundled else "cdn")
    return __version__, mode, get_renderer_csp(mode=mode) or {}


def default_origins() -> dict[str, Any]:
    """Return the origins that prefab-ui's page needs. Raises NotOffered without prefab-ui."""
    return _library()[2]


def origins_of(given: Any, defaults: Mapping[str, Any] | None) -> dict[str, list[str]]:
    """Return the origins that a page may use, by the members of the protocol: a tool's own and
    prefab-ui's."""
    own: Mapping[str, Any] = given if isinstance(given, dict) else {}
    found = {}
    for member, name in ORIGINS.items():
        listed = [
            each for source in (defaults or {}, own) for each in source.get(name) or source.get(member) or ()
        ]
        if listed:
            found[member] = list(dict.fromkeys(listed))
    return found

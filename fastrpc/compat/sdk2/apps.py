"""`Apps` of the official SDK 2.x: tools whose results a host shows in a page.

``@apps.tool(resource_uri="ui://clock/app.html")`` notes the page in the tool's ``_meta.ui``, and
`add_html_resource` serves it; what the page does is the host's part. Costs nothing in a call.
"""

from __future__ import annotations

from fastrpc.compat.apps import UI_EXTENSION_ID as EXTENSION_ID
from fastrpc.compat.apps import UI_MIME_TYPE as APP_MIME_TYPE
from fastrpc.compat.components.app_metadata import AppConfig
from fastrpc.compat.components.objects import Resource, TextResource
from fastrpc.compat.sdk2.extensions import Extension, ResourceBinding, ToolBinding, client_settings
from fastrpc.definitions.handler import name_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fastrpc.compat.components.app_metadata import ResourceCSP, ResourcePermissions


class Apps(Extension):
    """The extension: tools, and the pages that they name."""

    identifier = EXTENSION_ID

    def __init__(self) -> None:
        self._tools: list[tuple[ToolBinding, str]] = []
        self._resources: list[ResourceBinding] = []

    def tool(
        self,
        *,
        resource_uri: str,
        visibility: Sequence[str] | None = None,
        meta: dict[str, Any] | None = None,
        **tool_kwargs: Any,
    ) -> Callable[[Any], Any]:
        """Register a function as a tool whose results the page at a ``ui://`` address shows. `visibility`:
        to the ``model``, to the ``app``, or both. Raises ValueError."""
        _check(resource_uri)
        if meta and "ui" in meta:
            raise ValueError("meta: ui is what resource_uri and visibility say; leave it out")
        ui: dict[str, Any] = {"resourceUri": resource_uri}
        if visibility is not None:
            ui["visibility"] = list(visibility)

        def decorate(function: Any) -> Any:
            binding = ToolBinding(function, {**(meta or {}), "ui": ui}, tool_kwargs)
            self._tools.append((binding, resource_uri))
            return function

        return decorate

    def add_html_resource(
        self,
        uri: str,
        html: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        csp: ResourceCSP | None = None,
        permissions: ResourcePermissions | None = None,
        domain: str | None = None,
        prefers_border: bool | None = None,
    ) -> None:
        """Serve a page at a ``ui://`` address. Raises ValueError."""
        page = AppConfig(csp=csp, permissions=permissions, domain=domain, prefers_border=prefers_border)
        given = page.model_dump()
        self.add_resource(
            TextResource(
                uri=uri,
                name=name or uri,
                title=title,
                description=description,
                mime_type=APP_MIME_TYPE,
                meta={"ui": given} if given else None,
                text=html,
            )
        )

    def add_resource(self, resource: Resource) -> None:
        """Serve a resource object as a page. Raises ValueError for another type than that of pages."""
        _check(resource.uri)
        if not resource.is_typed:
            resource = resource.model_copy(update={"mime_type": APP_MIME_TYPE})
        elif resource.mime_type != APP_MIME_TYPE:
            raise ValueError(f"mime_type: expected {APP_MIME_TYPE!r}, got {resource.mime_type!r:.80}")
        self._resources.append(ResourceBinding(resource))

    def tools(self) -> Sequence[ToolBinding]:
        """Return the tools. Raises ValueError for one whose page is not served."""
        served = {binding.resource.uri for binding in self._resources}
        for tool, uri in self._tools:
            if uri not in served:
                raise ValueError(f"{name_of(tool.fn)}: there is no resource {uri}; add_html_resource adds it")
        return [tool for tool, _ in self._tools]

    def resources(self) -> Sequence[ResourceBinding]:
        """Return the pages."""
        return self._resources


def client_supports_apps(ctx: Any) -> bool:
    """Whether the client shows pages."""
    settings = client_settings(ctx, EXTENSION_ID) or {}
    types = settings.get("mimeTypes")
    return isinstance(types, (list, tuple)) and APP_MIME_TYPE in types


def _check(uri: str) -> None:
    if not str(uri).startswith("ui://"):
        raise ValueError(f"expected an address that begins with ui://, got {uri!r:.80}")

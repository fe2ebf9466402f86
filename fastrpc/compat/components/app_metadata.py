"""What a component says of an app, a user interface that a client may show: ``_meta.ui`` (MCP Apps).

Clients that know apps read it; nothing else of apps is here. Without `app=` it costs nothing.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

UI_EXTENSION_ID = "io.modelcontextprotocol/ui"
UI_MIME_TYPE = "text/html;profile=mcp-app"
AS_SENT = {"by_alias": True, "exclude_none": True}
"""The options of pydantic's ``model_dump`` for what is sent."""


class _Members:
    """An object of the extension: its options, `NAMES`, are members in camel case."""

    NAMES: tuple[str, ...] = ()

    def __init__(self, **options: Any) -> None:
        for name in options:
            if name not in self.NAMES:
                raise TypeError(f"{type(self).__name__}: unexpected {name}; it has {', '.join(self.NAMES)}")
        for name in self.NAMES:
            setattr(self, name, options.get(name))

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the members that were given. Options of pydantic's method have no effect."""
        found = {}
        for name in self.NAMES:
            value = getattr(self, name)
            if value is not None:
                found[_camel(name)] = value.model_dump(**AS_SENT) if hasattr(value, "model_dump") else value
        return found


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(word.capitalize() for word in others)


class ResourceCSP(_Members):
    """Which origins an app may load from and connect to."""

    NAMES = ("connect_domains", "resource_domains", "frame_domains", "base_uri_domains")


class ResourcePermissions(_Members):
    """What an app may ask its host for, each {}."""

    NAMES = ("camera", "microphone", "geolocation", "clipboard_write")


class AppConfig(_Members):
    """Which app belongs to a tool (`resource_uri`, `visibility`), or how the host shows a resource of one."""

    NAMES = ("resource_uri", "visibility", "csp", "permissions", "domain", "prefers_border")


def with_app(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a component with ``app`` in its ``meta``. Raises NotOffered for ``app=True``,
    which is an app of fastmcp's own library."""
    app = options.get("app")
    if app is None or app is False:
        return options
    found = {name: value for name, value in options.items() if name != "app"}
    if app is True:
        from fastrpc.compat.errors import NotOffered

        raise NotOffered(
            "fastrpc.compat: app=True needs fastmcp's own user interfaces; give app=AppConfig(…)"
        )
    members = app if isinstance(app, dict) else app.model_dump(**AS_SENT)
    found["meta"] = {**(options.get("meta") or {}), "ui": members}
    return found

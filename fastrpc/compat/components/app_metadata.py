"""What a component says of an app, a user interface that a client may show: ``_meta.ui`` (MCP Apps).

Clients that know apps read it; interfaces of prefab-ui are in `fastrpc.compat.apps`. Without `app=` it costs
nothing.
"""

from __future__ import annotations

from fastrpc.compat.field_types import ModelType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

AS_SENT = {"by_alias": True, "exclude_none": True}
"""The options of pydantic's ``model_dump`` for what is sent."""


class _Members(ModelType):
    """An object of the extension: its options, `NAMES`, are members in camel case. It may have others."""

    NAMES: tuple[str, ...] = ()

    def __init__(self, **options: Any) -> None:
        camel = {_camel(name): name for name in self.NAMES}
        given = {camel.get(name, name): value for name, value in options.items()}
        for name in self.NAMES:
            setattr(self, name, given.pop(name, None))
        self.others = given
        """Members that a later version of the extension may have."""

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the members that were given. Options of pydantic's method have no effect."""
        found = {}
        for name in self.NAMES:
            value = getattr(self, name)
            if value is not None:
                found[_camel(name)] = value.model_dump(**AS_SENT) if hasattr(value, "model_dump") else value
        return {**found, **self.others}


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

    resource_uri: Any
    csp: Any
    NAMES = ("resource_uri", "visibility", "csp", "permissions", "domain", "prefers_border")


class PrefabAppConfig(AppConfig):
    """`AppConfig` of a tool that returns an interface of prefab-ui: with the page that renders it, which may
    use the origins of `csp` besides those that it needs itself. Raises NotOffered without prefab-ui."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        from fastrpc.compat.apps.renderer import PLACEHOLDER, default_origins, origins_of

        self.resource_uri = self.resource_uri or PLACEHOLDER
        own = self.csp.model_dump() if hasattr(self.csp, "model_dump") else self.csp
        self.csp = ResourceCSP(**{**(own or {}), **origins_of(own, default_origins())})


def app_config_to_meta_dict(app: Any) -> dict[str, Any]:
    """Return an `AppConfig`, or a dict, as ``_meta.ui``."""
    return app if isinstance(app, dict) else dict(app.model_dump(**AS_SENT))


def with_app(options: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a component with ``app`` in its ``meta``; ``app=True`` is an interface of
    prefab-ui."""
    app = options.get("app")
    if app is None or app is False:
        return options
    found = {name: value for name, value in options.items() if name != "app"}
    if app is True:
        from fastrpc.compat.apps.renderer import PLACEHOLDER

        app = {"resourceUri": PLACEHOLDER}
    members = app_config_to_meta_dict(app)
    found["meta"] = {**(options.get("meta") or {}), "ui": members}
    return found

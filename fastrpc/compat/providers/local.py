"""`LocalProvider`: components that are added one by one, to be shared by several servers."""

from __future__ import annotations

from functools import partial

from fastrpc import diagnostics
from fastrpc.compat.components.objects import Prompt, Resource, ResourceTemplate
from fastrpc.compat.components.standalone import component_of, mark_of, prompt, resource, tool
from fastrpc.compat.components.tools import Tool
from fastrpc.compat.providers.base import Provider

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

BEHAVIOURS = ("error", "warn", "replace", "ignore")


class LocalProvider(Provider):
    """Components that are added by its decorators, or as objects. `on_duplicate` says what happens to a
    second one of a name and version: ``error``, ``warn`` (it replaces the first), ``replace`` or ``ignore``.
    Raises ValueError for anything else.
    """

    def __init__(self, on_duplicate: str = "error") -> None:
        super().__init__()
        if on_duplicate not in BEHAVIOURS:
            raise ValueError(
                f"on_duplicate: expected one of {', '.join(BEHAVIOURS)}, got {on_duplicate!r:.40}"
            )
        self._on_duplicate = on_duplicate
        self._components: dict[tuple[str, str, str | None], Any] = {}

    # --- adding -------------------------------------------------------------------------------------------

    def tool(self, name_or_fn: Any = None, **options: Any) -> Any:
        """Add a function as a tool; options as in ``@mcp.tool``. Raises ValueError and DefinitionError."""
        return self._adding(tool, name_or_fn, options)

    def prompt(self, name_or_fn: Any = None, **options: Any) -> Any:
        """Add a function as a prompt; options as in ``@mcp.prompt``. Raises as `tool` does."""
        return self._adding(prompt, name_or_fn, options)

    def resource(self, uri: str, **options: Any) -> Callable[[Any], Any]:
        """Add a function as a resource or a template. Raises as `tool` does."""
        return partial(self._added, resource(uri, **options))

    def _adding(self, mark: Any, name_or_fn: Any, options: dict[str, Any]) -> Any:
        if name_or_fn is None or isinstance(name_or_fn, str):
            return partial(self._added, mark(name_or_fn, **options))
        return self._added(mark(**options), name_or_fn)

    def _added(self, mark: Callable[[Any], Any], function: Any) -> Any:
        if options_enabled(marked := mark(function)):
            self._add(component_of(marked))
        return function

    def add_tool(self, tool: Any) -> Any:
        """Add a tool object, or a function. Raises as `tool` does."""
        return self._add(tool if isinstance(tool, Tool) else self._object_of(tool, "tool"))

    def add_prompt(self, prompt: Any) -> Any:
        """Add a prompt object, or a function."""
        return self._add(prompt if isinstance(prompt, Prompt) else self._object_of(prompt, "prompt"))

    def add_resource(self, resource: Any) -> Any:
        """Add a resource object, or a function marked as one."""
        is_object = isinstance(resource, (Resource, ResourceTemplate))
        return self._add(resource if is_object else self._object_of(resource, "resource"))

    def add_template(self, template: ResourceTemplate) -> ResourceTemplate:
        """Add a template object."""
        self._add(template)
        return template

    @staticmethod
    def _object_of(function: Any, kind: str) -> Any:
        if mark_of(function, kind) is not None:
            return component_of(function)
        return Tool.from_function(function) if kind == "tool" else Prompt.from_function(function)

    def _add(self, component: Any) -> Any:
        place = _kind_of(component), component.key, component.version
        if place in self._components:
            if self._on_duplicate == "error":
                raise ValueError(f"{component.key}: there is a {place[0]} of this name already")
            if self._on_duplicate == "ignore":
                return self._components[place]
            if self._on_duplicate == "warn":
                diagnostics.write("warning", f"{component.key}: a second {place[0]}; it replaces the first")
        self._components[place] = component
        return component

    _add_component = _add
    """The name that FastMCP's own providers know it by."""

    # --- removing -----------------------------------------------------------------------------------------

    def _remove(self, kind: str, key: str, version: str | None) -> None:
        places = [
            place for place in self._components if place[:2] == (kind, key) and version in (None, place[2])
        ]
        if not places:
            raise KeyError(f"{key}: there is no such {kind}")
        for place in places:
            del self._components[place]

    def remove_tool(self, name: str, version: str | None = None) -> None:
        """Remove a tool, by default all its versions. Raises KeyError."""
        self._remove("tool", name, version)

    def remove_prompt(self, name: str, version: str | None = None) -> None:
        """Remove a prompt. Raises KeyError."""
        self._remove("prompt", name, version)

    def remove_resource(self, uri: str, version: str | None = None) -> None:
        """Remove a resource. Raises KeyError."""
        self._remove("resource", uri, version)

    def remove_template(self, uri_template: str, version: str | None = None) -> None:
        """Remove a template. Raises KeyError."""
        self._remove("template", uri_template, version)

    # --- listing ------------------------------------------------------------------------------------------

    def _of(self, kind: str) -> list[Any]:
        return [component for place, component in self._components.items() if place[0] == kind]

    async def _list_tools(self) -> Sequence[Any]:
        return self._of("tool")

    async def _list_prompts(self) -> Sequence[Any]:
        return self._of("prompt")

    async def _list_resources(self) -> Sequence[Any]:
        return self._of("resource")

    async def _list_resource_templates(self) -> Sequence[Any]:
        return self._of("template")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self._components)} components)"


def options_enabled(function: Any) -> bool:
    """Whether a marked function is to be offered."""
    mark = mark_of(function)
    return mark is None or mark.options.get("enabled", True) is not False


def _kind_of(component: Any) -> str:
    for kind, name in (
        (Tool, "tool"),
        (Prompt, "prompt"),
        (ResourceTemplate, "template"),
        (Resource, "resource"),
    ):
        if isinstance(component, kind):
            return name
    raise TypeError(f"expected a component, got {type(component).__name__}")

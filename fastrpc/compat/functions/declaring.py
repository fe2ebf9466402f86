"""What is decided when a component is added to a compat server: names that are taken, versions, excluded
arguments, serializers and output schemas. Nothing of it costs anything in a call, but a serializer.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Any

from fastrpc import diagnostics
from fastrpc._core.encoder import is_plain
from fastrpc.compat.dialect import FASTMCP
from fastrpc.compat.functions import adapted, return_annotation_of
from fastrpc.compat.functions.hinted_classes import hinted_class
from fastrpc.compat.functions.worker_threads import keeps_to_threads
from fastrpc.compat.values import aliased, plain, tool_value
from fastrpc.content import Content, ToolResult
from fastrpc.definitions.handler import docstring_of, is_async, made, name_of
from fastrpc.definitions.tool import Tool
from fastrpc.errors import DefinitionError
from fastrpc.schema.annotations import resolve
from fastrpc.schema.converters import ANY, ObjectConverter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from fastrpc.compat.dialect import Dialect
    from fastrpc.definitions.registry import Registry
    from fastrpc.tool_style import ToolStyle

BEHAVIOURS = ("warn", "error", "replace", "ignore")
KINDS = {"tool": "tools", "resource": "resources", "template": "resources", "prompt": "prompts"}


class Duplicates:
    """What happens when a name is taken, by the options ``on_duplicate``, ``on_duplicate_tools`` and so on,
    or ``warn_on_duplicate_tools``: in FastMCP the new one replaces the first with a warning, in the SDK the
    first one stays. Takes its options away. Raises ValueError for an unknown behaviour.

    Components of one name with different versions are all kept (`keep`).
    """

    def __init__(self, dialect: Dialect, options: dict[str, Any]) -> None:
        self._replaces = dialect is FASTMCP
        everything = options.pop("on_duplicate", None)
        self._behaviours = {}
        for kind in ("tools", "resources", "prompts"):
            behaviour = options.pop(f"on_duplicate_{kind}", None) or everything
            warns = options.pop(f"warn_on_duplicate_{kind}", True)
            if behaviour is None:
                behaviour = "warn" if warns or self._replaces else "ignore"
            if behaviour not in BEHAVIOURS:
                raise ValueError(
                    f"on_duplicate_{kind}: expected one of {', '.join(BEHAVIOURS)}, got {behaviour!r}"
                )
            self._behaviours[kind] = behaviour
        self._versions: dict[tuple[str, str], str] = {}
        self.keep: Callable[[Registry[Any], str], None] = _forget
        """What is done with the version of a component that another one replaces in a registry."""

    def allow(self, registry: Registry[Any], key: str, options: dict[str, Any]) -> bool:
        """Whether a component is added under a key, where one that was there is removed; takes the option
        ``version`` away. Raises ValueError."""
        version = options.pop("version", None)
        place = registry.kind, key
        former = self._versions.get(place)
        if version is not None:
            options["meta"] = _with_version(options.get("meta"), str(version))
            self._versions[place] = str(version)
        if key not in registry:
            return True
        if version is not None and former is not None and str(version) != former:
            self.keep(registry, key)
            registry.remove(key)
            return True
        behaviour = self._behaviours[KINDS[registry.kind]]
        if behaviour == "error":
            raise ValueError(f"{key}: there is a {registry.kind} of this name already")
        if behaviour == "warn":
            stays = "it replaces the first one" if self._replaces else "the first one stays"
            diagnostics.write("warning", f"{key}: a second {registry.kind} of this name; {stays}")
        if behaviour == "replace" or (behaviour == "warn" and self._replaces):
            registry.vacate(key)
            return True
        return False


def _forget(registry: Registry[Any], key: str) -> None:
    """Keep nothing."""


def _with_version(meta: Any, version: str) -> dict[str, Any]:
    given = dict(meta or {})
    return {**given, "fastmcp": {**given.get("fastmcp", {}), "version": version}}


def without_arguments(function: Any, names: Iterable[str]) -> Any:
    """Return a function without these parameters, which have their defaults. Raises DefinitionError for one
    that it does not have, or that has no default."""
    if not names:
        return function
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    defaults = dict(zip(positional[::-1], (function.__defaults__ or ())[::-1], strict=False))
    defaults.update(function.__kwdefaults__ or {})
    for name in names:
        if name not in defaults:
            raise DefinitionError(
                f"exclude_args: {name!r} is no parameter of {function.__name__} with a default"
            )
    found = partial(function, **{name: defaults[name] for name in names})
    found.__doc__ = function.__doc__
    return found


def serialized(function: Any, serializer: Callable[[Any], str]) -> Any:
    """Return a function whose results are the serializer's texts, with structured content for objects."""

    def convert(value: Any) -> Any:
        if value is None or isinstance(value, (str, Content, ToolResult)):
            return value
        return ToolResult(serializer(value), structured=value if isinstance(value, dict) else None)

    return _converted(function, convert)


def _converted(function: Any, convert: Callable[[Any], Any]) -> Any:
    """Return a function that calls this one and converts its result."""

    def call(*values: Any, **named: Any) -> Any:
        return convert(function(*values, **named))

    async def call_async(*values: Any, **named: Any) -> Any:
        return convert(await function(*values, **named))

    found: Any = call_async if is_async(function) else call
    found.__wrapped__ = function
    found.__name__ = found.__qualname__ = name_of(function)
    found.__doc__ = docstring_of(function)
    return found


def declare_output(tool: Tool, schema: dict[str, Any]) -> None:
    """Give a tool an output schema that its function's annotation does not say. Raises ValueError."""
    if schema.get("type") != "object":
        raise ValueError(f"output_schema: expected a schema of an object, got type {schema.get('type')!r}")
    signature = tool.signature
    signature.output_schema = schema
    signature.wraps_result = bool(schema.get("x-fastmcp-wrap-result"))
    signature.result_converter = ANY if signature.wraps_result else ObjectConverter(ANY)


def tool_definition(
    function: Any, given: dict[str, Any], dialect: Dialect, style: ToolStyle, server: Any
) -> Tool:
    """Return the definition of a function as a tool, with the options of ``@mcp.tool``. Raises
    DefinitionError and ValueError."""
    given = {name: value for name, value in given.items() if value is not None or name == "output_schema"}
    output_schema = given.pop("output_schema", ...)
    serializer = given.pop("serializer", None)
    structured = given.pop("structured_output", None)
    annotations = given["annotations"] = _hints(plain(given.get("annotations")))
    if annotations and annotations.get("title") and not given.get("title") and dialect.titles_by_annotations:
        given["title"] = annotations["title"]
    given["meta"] = meta_of(given)
    given["icons"] = plain(given.get("icons"))
    if given.pop("run_in_thread", not dialect.runs_inline) is False and not is_async(function):
        given.setdefault("run", "inline")
    elif keeps_to_threads(function) and not is_async(function):
        given.setdefault("run", "thread")
    if "timeout" in given:
        given["timeout_seconds"] = given.pop("timeout")
    function = without_arguments(function, given.pop("exclude_args", ()))
    adapting = adapted(function, server, _conversion_for(given["meta"], function, style), dialect)
    if serializer is not None:
        adapting = serialized(adapting, serializer)
    given["style"] = style.with_objects_as_text() if structured is False else style
    returns_interface = _returns_interface(adapting)
    if returns_interface or _has_app(given["meta"]):
        from fastrpc.compat.apps.renderer import interface_meta

        given["meta"] = interface_meta(given["meta"], returns_interface)
    if structured is False or returns_interface or output_schema in (None, False):
        given["structured"] = False
    else:
        given["structured"] = dialect.structured(*return_annotation_of(adapting)) or structured is True
    kind = Tool
    if getattr(server, "refuses_conversions", False):
        from fastrpc.compat.functions.strict_arguments import StrictTool as kind
    try:
        found = made(kind, adapting, given)
    except DefinitionError:
        if structured is not None:
            raise
        # A result that no schema can describe is sent as text, as in those frameworks.
        hinted = None if dialect is FASTMCP else hinted_class(*return_annotation_of(adapting))
        if hinted is not None:
            adapting = adapted(function, server, hinted.value)
        found = made(kind, adapting, {**given, "structured": False})
        if hinted is not None:
            declare_output(found, hinted.schema)
    if isinstance(output_schema, dict):
        declare_output(found, output_schema)
    return found


def _hints(annotations: Any) -> Any:
    """Return the annotations of a tool by their names on the wire: a dict may have those of the SDK's
    model."""
    if not isinstance(annotations, dict):
        return annotations
    return {_WIRE_NAMES.get(name, name): value for name, value in annotations.items()}


_WIRE_NAMES = {
    "destructive_hint": "destructiveHint",
    "idempotent_hint": "idempotentHint",
    "open_world_hint": "openWorldHint",
    "read_only_hint": "readOnlyHint",
}


def _aliased_value(value: Any) -> Any:
    found = tool_value(value)
    return found if is_plain(found) else aliased(found)


def _conversion_for(meta: dict[str, Any] | None, function: Any, style: ToolStyle) -> Callable[[Any], Any]:
    """Return what converts the results of a tool with this ``_meta``."""
    app = ((meta or {}).get("fastmcp") or {}).get("app")
    if app is None and style.aliases_results and return_annotation_of(function)[0] in (Any, "Any"):
        return _aliased_value  # no converter knows the models in it
    if app is None:
        return tool_value
    from fastrpc.compat.apps.interfaces import interface_result, is_interface

    return lambda value: interface_result(value, app) if is_interface(value) else tool_value(value)


def _has_app(meta: dict[str, Any] | None) -> bool:
    return meta is not None and "ui" in meta


def _returns_interface(function: Any) -> bool:
    """Whether the return annotation is of the library prefab-ui, which the function's module has imported
    then."""
    if "prefab_ui.app" not in sys.modules:
        return False
    from fastrpc.compat.apps.interfaces import is_interface_type

    annotation, namespace = return_annotation_of(function)
    try:
        return is_interface_type(
            resolve(annotation, namespace) if isinstance(annotation, str) else annotation
        )
    except DefinitionError:
        return False


def meta_of(options: dict[str, Any]) -> dict[str, Any] | None:
    """Return the ``_meta`` of an entry, and take the options of it away; tags are stored there, as in
    FastMCP."""
    tags = options.pop("tags", None)
    meta: dict[str, Any] | None = options.pop("meta", None)
    if tags:
        known = (meta or {}).get("fastmcp", {})
        meta = {**(meta or {}), "fastmcp": {**known, "tags": sorted(tags)}}
    return meta


def prompt_options(prompt: Any) -> dict[str, Any]:
    """Return the options that a prompt object is added with."""
    return {name: value for name, value in prompt.options().items() if name not in ("name", "enabled")}

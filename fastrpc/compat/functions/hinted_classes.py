"""Results that are objects of a plain class with type hints, which the official SDK describes by these.

The structured content has the attributes that the class names; the text is that of the object. Costs nothing
for tools that return anything else.
"""

from __future__ import annotations

from fastrpc.compat.values import plain
from fastrpc.content import ToolResult
from fastrpc.errors import DefinitionError
from fastrpc.json_encoding import to_json
from fastrpc.schema import describe
from fastrpc.schema.annotations import resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


class HintedClass:
    """What a class says of its objects: `schema`, and the names of their attributes."""

    def __init__(self, schema: dict[str, Any], names: tuple[str, ...]) -> None:
        self.schema = schema
        self._names = names

    def value(self, value: Any) -> ToolResult:
        """Return the result for an object of the class."""
        found = {name: plain(getattr(value, name)) for name in self._names if hasattr(value, name)}
        return ToolResult(to_json(str(value)).decode(), structured=found)


def hinted_class(annotation: Any, namespace: Mapping[str, Any]) -> HintedClass | None:
    """Return what a return annotation says, if it is such a class and a schema can be made of it."""
    from inspect import get_annotations
    from typing import TypedDict, get_type_hints

    try:
        kind = resolve(annotation, namespace) if isinstance(annotation, str) else annotation
        if not isinstance(kind, type) or not get_annotations(kind):
            return None
        hints = get_type_hints(kind, include_extras=True)

        def returning() -> None:
            """Has the members as its result."""

        returning.__annotations__["return"] = TypedDict(kind.__name__, hints)  # type: ignore[operator]
        schema = describe(returning).output_schema
    except (DefinitionError, NameError):
        return None
    if schema is None:
        return None
    for name, described in schema.get("properties", {}).items():
        if hasattr(kind, name):
            described["default"] = plain(getattr(kind, name))
    schema["required"] = [name for name in schema.get("required", ()) if not hasattr(kind, name)]
    return HintedClass(schema, tuple(hints))

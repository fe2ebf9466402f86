"""Makes the `Signature` of a Python function: JSON Schemas for the client, and how arguments are bound.

`describe` reads annotations and defaults from the function's code object (`fastrpc.schema.signature`). A
function with plain types takes about ten microseconds and no import. `fastrpc.schema.rich_types` (msgspec,
pydantic) is imported for the first type that needs it, `fastrpc.schema.json_schema` (jsonschema-rs) for the
first hand-written schema. Schemas are JSON Schema 2020-12, with references written out where possible.
Calling the function is left to the dispatcher.

Where a rule is (files of this package by their names, others from `fastrpc/` on):

* which schema an annotation becomes: `__init__.py`, which converter: `annotations.py`, `converters.py`,
  `rich_types.py`, `described_members.py`, `whole_records.py`; a hand-written schema: `json_schema.py`; how
  arguments are bound to the parameters: `signature.py`
"""

from __future__ import annotations

import sys

from fastrpc.errors import FAILURES
from fastrpc.schema.annotations import alias_of, is_any, is_literal, is_union, peel, shows_more, union_of
from fastrpc.schema.converters import ANY, described
from fastrpc.schema.signature import FunctionFacts, Parameter, Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from fastrpc.schema.converters import Converter, Schema

__all__ = ["Parameter", "Signature", "describe"]

_MISSING = object()


def describe(
    function: Callable[..., Any],
    *,
    input_schema: Schema | None = None,
    documents: Mapping[str, Any] | None = None,
    structured: bool | Literal["wrapped"] = True,
    explicit_nulls: bool = False,
    structures_texts: bool = False,
    aliases_results: bool = True,
    marks_wrapping: bool = False,
) -> Signature:
    """Return the signature of a function.

    With `input_schema`, a JSON Schema, arguments are validated by that schema and annotations are optional;
    `documents` are the schemas that its ``$ref`` may name. `structured=False` omits the output schema,
    ``"wrapped"`` wraps objects, too: ``{"result": …}``. `explicit_nulls`, `structures_texts`,
    `aliases_results` and `marks_wrapping` are those of `fastrpc.tool_style.ToolStyle`. Raises
    `DefinitionError`, which names the function and a solution; `UnresolvedName`, a subclass, if an annotation
    is not defined yet.
    """
    facts = FunctionFacts(function, explicit_nulls, aliases_results)
    if input_schema is not None:
        from fastrpc.schema.json_schema import raw_signature

        signature = raw_signature(facts, input_schema, documents or {})
    else:
        if documents:
            raise facts.error("documents are given without an input_schema; give both")
        signature = _typed_signature(facts)
    if structured:
        _add_output(signature, facts, structured == "wrapped", structures_texts)
        if marks_wrapping and signature.wraps_result and signature.output_schema is not None:
            signature.output_schema["x-fastmcp-wrap-result"] = True
    return signature


# ----------------------------------------------------------------------------- parameters, results


def _typed_signature(facts: FunctionFacts) -> Signature:
    if facts.takes_others:
        raise facts.error(
            "takes **arguments, which have no types; name the parameters, or give input_schema="
        )
    parameters = [
        _parameter(facts, name) for name in (*facts.positional, *facts.keyword_only) if name != facts.context
    ]
    schema: Schema = {"type": "object", "properties": {p.name: p.schema for p in parameters}}
    if len(schema["properties"]) < len(parameters):
        raise facts.error("has two parameters of the same name: an alias is the name of another parameter")
    required = [p.name for p in parameters if p.required]
    if required:
        schema["required"] = required
    _add_definitions(facts, schema, [p.converter for p in parameters])
    return Signature(facts, parameters, schema)


def _parameter(facts: FunctionFacts, name: str) -> Parameter:
    what = f"parameter {name!r}"
    if name not in facts.annotations:
        if name in ("self", "cls"):
            raise facts.error(
                f"{what} is a method's own; add the method of an object, server.add_tool(thing.method)"
            )
        raise facts.error(f"{what} has no annotation; write for example {name}: str")
    peeled = facts.peel(what, facts.annotations[name])
    default = facts.defaults.get(name, _MISSING)
    shown_name = alias_of(default) or peeled.alias or name
    if type(default).__module__ == "pydantic.fields":
        from fastrpc.schema.rich_types import default_of_field

        peeled, default = default_of_field(peeled, default, _MISSING)
    elif default is _MISSING and peeled.field is not None:
        default = peeled.field.get_default(call_default_factory=True)
    allows_null = peeled.allows_null or peeled.base is type(None)
    if peeled.allows_null and any(map(shows_more, peeled.metadata)):
        peeled.base, peeled.allows_null = union_of([peeled.base, None]), False  # it is about null, too
    converter = facts.converter(what, peeled)
    required = default is _MISSING
    schema = converter.schema
    shows_null = required or default is not None or facts.explicit_nulls
    if peeled.allows_null and shows_null and converter is not ANY:
        inner = {name: value for name, value in schema.items() if name not in ("description", "default")}
        choices = inner["anyOf"] if [*inner] == ["anyOf"] else [inner]
        schema = described({"anyOf": [*choices, {"type": "null"}]}, schema.get("description"))
    schema = described(schema, peeled.description)
    if not required:
        shown = _shown_default(default, converter)
        if shown is not None or (default is None and facts.explicit_nulls):
            schema["default"] = shown
    return Parameter(
        shown_name,
        converter,
        schema,
        required=required,
        default=None if required else default,
        allows_null=allows_null,
        keyword=name,
    )


def _shown_default(default: Any, converter: Converter) -> Any:
    """Return a default for the schema, as it is or as its type is encoded; None if it cannot be shown."""
    shown = _as_json(default)
    if shown is not None or default is None or type(default) in (float, list, tuple, dict):
        return shown
    try:
        return _as_json(converter.to_json(default))
    except FAILURES:  # of another type than the annotation says
        return None


def _as_json(default: Any) -> Any:
    """Return a default value for the schema; None if it is not plain JSON."""
    kind = type(default)
    if kind in (str, int, bool) or (kind is float and default - default == 0):
        return default
    if kind in (list, tuple):
        shown = [_as_json(item) for item in default]
        return None if None in shown else shown
    if kind is dict:
        members = {key: _as_json(item) for key, item in default.items()}
        return None if None in members.values() or any(type(key) is not str for key in members) else members
    if hasattr(kind, "__members__"):  # a member of an enum
        return _as_json(default.value)
    return None


def _add_output(
    signature: Signature, facts: FunctionFacts, wraps_objects: bool, structures_texts: bool
) -> None:
    """Set the output schema, unless results are content or of unknown type, or, without `structures_texts`,
    text or None."""
    annotation = facts.annotations.get("return", _MISSING)
    if annotation is _MISSING:
        return
    if not structures_texts and (annotation is str or annotation is None or annotation == "str"):
        return
    peeled = facts.peel("the return type", annotation)
    if (peeled.allows_null and not structures_texts) or _is_unstructured(
        peeled.base, facts.namespace, structures_texts
    ):
        return
    if peeled.allows_null:
        peeled.base, peeled.allows_null = union_of([peeled.base, None]), False
    converter = facts.converter("the return type", peeled, output=True)
    signature.result_converter = converter
    if converter.schema.get("type") == "object" and not wraps_objects:
        schema = described(converter.schema, peeled.description)
    else:
        signature.wraps_result = True
        schema = {
            "type": "object",
            "properties": {"result": described(converter.schema, peeled.description)},
            "required": ["result"],
        }
    _add_definitions(facts, schema, [converter])
    signature.output_schema = schema


def _is_unstructured(base: Any, namespace: Mapping[str, Any], structures_texts: bool) -> bool:
    """Whether results of this type, or some of them, are sent without structured content."""
    if is_any(base):
        return True
    if base in (str, type(None), object):
        return not structures_texts
    if isinstance(base, type) and any(
        kind.__module__ == "fastrpc.content" and kind.__name__ in ("Content", "ToolResult")
        for kind in base.__mro__
    ):
        return True
    if is_literal(base):
        return not structures_texts and any(type(choice) is str for choice in base.__args__)
    arguments = getattr(base, "__args__", ())
    if is_union(base):
        members = [peel(member, namespace) for member in arguments]
        return any(
            (member.allows_null and not structures_texts)
            or _is_unstructured(member.base, namespace, structures_texts)
            for member in members
        )
    return any(_contains_content(argument, namespace) for argument in arguments)


def _contains_content(annotation: Any, namespace: Mapping[str, Any]) -> bool:
    module = sys.modules.get("fastrpc.content")
    if module is None or annotation is Ellipsis:
        return False
    base = peel(annotation, namespace).base
    if is_union(base):
        return any(_contains_content(member, namespace) for member in base.__args__)
    return isinstance(base, type) and issubclass(base, (module.Content, module.ToolResult))


def _add_definitions(facts: FunctionFacts, schema: Schema, converters: list[Converter]) -> None:
    """Add the definitions of recursive types to the root of the schema."""
    definitions: dict[str, Schema] = {}
    for converter in converters:
        for name, definition in converter.definitions.items():
            if definitions.setdefault(name, definition) != definition:
                raise facts.error(f"uses two types of the name {name!r} that refer to themselves; rename one")
    if definitions:
        schema["$defs"] = definitions

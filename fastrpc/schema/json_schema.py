"""Hand-written JSON Schemas instead of annotations, validated by jsonschema-rs.

For tools whose schema comes from elsewhere. Draft 2020-12 unless ``$schema`` names another one. A ``$ref``
may point into the schema itself or into the documents given with it; any other reference is a
DefinitionError. Nothing is fetched from the network. Needs the extra ``fastrpc-mcp[schema]``, which is
imported when such a tool is defined; ``{"type": "object"}`` alone needs nothing.
"""

from __future__ import annotations

from fastrpc.errors import ArgumentError, DefinitionError, Reworded
from fastrpc.schema.converters import (
    PLAIN,
    Converter,
    Mismatch,
    expected,
    one_of,
    quote,
    shorten,
    step_to,
    text_of_problems,
)
from fastrpc.schema.signature import Parameter, Signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fastrpc.schema.converters import Schema
    from fastrpc.schema.signature import FunctionFacts

_BY_TYPE = {PLAIN[kind].schema["type"]: PLAIN[kind] for kind in (int, float, bool, list, dict)}


class Validator:
    """A compiled JSON Schema. `documents` maps URIs to the schemas that ``$ref`` may name.

    Raises `DefinitionError` if the schema is invalid, refers to an unknown document, or jsonschema-rs is not
    installed.
    """

    def __init__(self, schema: Schema | bool, documents: Mapping[str, Any] | None = None) -> None:
        try:
            import jsonschema_rs
        except ImportError:
            raise DefinitionError(
                "input_schema needs jsonschema-rs: install fastrpc-mcp[schema], or annotate the parameters"
            ) from None
        try:
            registry = jsonschema_rs.Registry(
                list((documents or {}).items()), draft=jsonschema_rs.Draft202012, retriever=_refuse
            )
            self._validator = jsonschema_rs.validator_for(
                schema, registry=registry, retriever=_refuse, validate_formats=False
            )
        except (ValueError, TypeError, jsonschema_rs.ReferencingError) as error:
            reason = getattr(error, "message", None) or str(error)
            raise DefinitionError(f"input_schema cannot be used: {reason.splitlines()[0]:.200}") from None

    def accepts(self, value: Any) -> bool:
        return bool(self._validator.is_valid(value))

    def check(self, value: Any) -> None:
        """Raise `ArgumentError` with the first problems of an invalid value."""
        if not self._validator.is_valid(value):
            raise ArgumentError(text_of_problems(self._problems(value)))

    def _problems(self, value: Any) -> list[str]:
        problems = []
        for error in self._validator.iter_errors(value):
            problems.append(_problem_of(error))
            if len(problems) == 4:  # three are shown, a fourth only as "and more"
                break
        return problems


def _refuse(uri: str) -> Any:
    raise ValueError(f"{uri} is not among the documents")


def _problem_of(error: Any) -> str:
    """Return a message for a validation error, in the style of `fastrpc.schema.converters`."""
    path = "".join(f"[{step}]" if isinstance(step, int) else step_to(step) for step in error.instance_path)
    keyword = error.kind.name
    if keyword == "required":
        path, problem = path + step_to(error.kind.property), "required, missing"
    elif keyword == "type":
        problem = expected(" or ".join(error.kind.types), error.instance).problem
    elif keyword == "enum":
        problem = expected(one_of(error.kind.options), error.instance).problem
    elif keyword == "additionalProperties":
        problem = "unknown: " + ", ".join(quote(name) for name in error.kind.unexpected[:3])
    elif keyword in ("minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum"):
        sign = {"m": ">=", "e": ">"}[keyword[0]] if "inimum" in keyword else {"m": "<=", "e": "<"}[keyword[0]]
        problem = expected(f"a number {sign} {shorten(error.kind.limit)}", error.instance).problem
    else:
        problem = f"does not match {keyword} of the schema, got {shorten(error.instance)}"
    name, separator, rest = path.removeprefix(".").partition(".")
    if not path:
        return f"arguments: {problem}"
    if path.startswith("["):
        return f"${path}: {problem}"
    return f"$.{name}{separator}{rest}: {problem}" if separator or "[" in name else f"{name}: {problem}"


# --------------------------------------------------------------------------------------- signature

ANY_OBJECT = {"type": "object"}
"""The schema of tools that judge their arguments themselves: nothing to validate, nothing to install."""

_CHECKED = Converter({})  # kind "checked": only `bind` can validate


class _RawSignature(Signature):
    """A signature whose arguments are validated together, by a JSON Schema."""

    validator: Validator | None
    """None for `ANY_OBJECT`, which every call's arguments satisfy."""
    converts = True
    """Whether values that do not fit are converted as for annotated parameters."""
    binds_whole = True

    @property
    def binder(self) -> Callable[[dict[str, Any]], list[Any] | str]:
        return self._bound_or_refused

    def _bound_or_refused(self, arguments: dict[str, Any]) -> list[Any] | str:
        try:
            return self.bind(arguments)
        except ArgumentError as error:
            return str(error)

    def bind(self, arguments: dict[str, Any]) -> list[Any]:
        if self.validator is not None and not self.validator.accepts(arguments):
            arguments = self._converted(arguments) if self.converts else arguments
            self.validator.check(arguments)
        if not self.parameters and self.takes_others:
            return [arguments]
        values = []
        for parameter in self.parameters:
            if parameter.name in arguments:
                values.append(arguments[parameter.name])
            elif parameter.required:
                raise ArgumentError(f"{parameter.name}: required, missing")
            else:
                values.append(parameter.default)
        if self.takes_others:
            named = {parameter.name for parameter in self.parameters}
            values.append({name: value for name, value in arguments.items() if name not in named})
        return values

    def _converted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Convert top-level values as for annotated parameters; an optional null counts as absent."""
        properties = self.input_schema.get("properties", {})
        required = self.input_schema.get("required", ())
        mended = {}
        for name, value in arguments.items():
            schema = properties.get(name)
            kind = schema.get("type") if isinstance(schema, dict) else None
            converter = _BY_TYPE.get(kind) if isinstance(kind, str) else None
            if value is None and name not in required and _excludes_null(schema):
                continue
            if converter is not None and isinstance(value, str):
                try:
                    value = converter.accept(value)
                except Mismatch:
                    pass
            mended[name] = value
        return mended


def _excludes_null(schema: Any) -> bool:
    """Whether a property's schema clearly excludes null, so that null can only mean absence."""
    if not isinstance(schema, dict):
        return False
    kind = schema.get("type")
    if kind is None:
        return None not in schema.get("enum", (None,))
    return isinstance(kind, str) and kind != "null"


def raw_signature(facts: FunctionFacts, schema: Any, documents: Mapping[str, Any]) -> Signature:
    """Return the signature of a function whose arguments are described by a JSON Schema. Raises
    `DefinitionError`."""
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise facts.error('input_schema must be a JSON Schema with "type": "object" at its root')
    with Reworded(DefinitionError, facts.error):
        validator = None if schema == ANY_OBJECT else Validator(schema, documents)
    properties = schema.get("properties", {})
    parameters = []
    for name in (*facts.positional, *facts.keyword_only):
        if name != facts.context:
            required = name not in facts.defaults
            shown = properties.get(name, {})
            parameters.append(
                Parameter(name, _CHECKED, shown, required=required, default=facts.defaults.get(name))
            )
    signature = _RawSignature(facts, parameters, schema)
    signature.validator = validator
    return signature

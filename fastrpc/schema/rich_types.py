"""Converters for types that JSON does not have: classes, enums, dates, constraints.

msgspec makes the schemas and converts the values. pydantic does so for its own models and constraints, and
for types that msgspec does not support, if the author has imported it. Importing msgspec costs 18 ms: this
module is loaded by the first annotation that needs it. A value is first tried exactly, then converted as far
as the library can; error messages are in the style of `fastrpc.schema.converters`.
"""

from __future__ import annotations

import sys
from functools import partial

from fastrpc.errors import DefinitionError
from fastrpc.schema.annotations import (
    Peeled,
    UnresolvedName,
    is_literal,
    plain_converter,
    shows_more,
    types_in,
    values_of,
)
from fastrpc.schema.converters import (
    Converter,
    Mismatch,
    add_enum_type,
    expected,
    json_from_text,
    one_of,
    shorten,
    step_to,
    validates_itself,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from fastrpc.schema.converters import Schema

FIELDS = "pydantic.fields"
READ_BY_BOTH = ("__dataclass_fields__", "__total__", "_fields")
"""Marks of the records that msgspec and pydantic both read."""
FORMS: dict[type, str] = {
    list: "list[str]",
    dict: "dict[str, int]",
    tuple: "tuple[int, str]",
    set: "set[str]",
}
"""How the type of such values is written."""
_MISSING = object()
_NOUNS = {
    "int": "integer", "str": "string", "float": "number", "bool": "boolean", "bytes": "base64 string",
}  # fmt: skip


def rich_converter(
    peeled: Peeled,
    namespace: Mapping[str, Any],
    *,
    output: bool = False,
    explicit_nulls: bool = False,
    aliases: bool = True,
) -> Converter:
    """Return the converter of an annotation. Raises `DefinitionError`.

    `aliases`: pydantic writes the aliases of all model fields; False: only of models with the configuration
    ``serialize_by_alias``."""
    annotation = _whole(peeled, namespace)
    if _is_pydantic(annotation):
        return PydanticConverter(annotation, output, explicit_nulls, aliases)
    # A member of a record that both read may be pydantic's, or say something for it alone: a constraint, …
    if "pydantic" in sys.modules and any(map(_is_pydantic, types_in(annotation, READ_BY_BOTH))):
        try:
            return PydanticConverter(annotation, output, explicit_nulls, aliases)
        except NotForPydantic:
            pass  # msgspec reads it, without what pydantic's members say
    inner = plain_converter(peeled.base, namespace)
    try:
        return MsgspecConverter(annotation, inner, explicit_nulls)
    except NameError as error:
        raise UnresolvedName(f"{_name_of(annotation)}: {error}") from None
    except TypeError as error:
        if "pydantic" in sys.modules:
            return PydanticConverter(annotation, output, explicit_nulls, aliases)
        reason = str(error).split("\n")[-1]
        raise DefinitionError(
            f"no JSON Schema can be made of {_name_of(annotation)} ({reason}); {_cure(annotation, output)}"
        ) from None


def _cure(annotation: Any, output: bool) -> str:
    """Return what an author may have meant by an annotation that is not a type of JSON."""
    if annotation is any:
        return "write Any, of typing"
    if type(annotation) in FORMS:
        return f"write a type, for example {FORMS[type(annotation)]}"
    if hasattr(annotation, "__fspath__"):
        return "write str, and Path(…) or str(…) in the function"
    return "use Any for results of any kind" if output else "use a type that JSON can carry, or input_schema="


def _whole(peeled: Peeled, namespace: Mapping[str, Any]) -> Any:
    """Return the annotation with its constraints, and with quoted names resolved."""
    from typing import Annotated, get_type_hints

    annotation = peeled.base
    if peeled.metadata:
        form: Any = Annotated  # not a type for mypy: the content is known at run time only
        parts = (annotation, *peeled.metadata)
        annotation = form[parts]
    holder = type("Holder", (), {"__annotations__": {"value": annotation}})
    try:
        return get_type_hints(holder, dict(namespace), include_extras=True)["value"]
    except NameError as error:
        raise UnresolvedName(f"{_name_of(annotation)} names something undefined ({error})") from None
    except TypeError as error:
        raise DefinitionError(f"{_name_of(annotation)} is not a type ({error})") from None


def _name_of(annotation: Any) -> str:
    return getattr(annotation, "__name__", None) or repr(annotation).replace("typing.", "")


def _is_pydantic(annotation: Any) -> bool:
    """Whether a type is pydantic's or contains one: models, dataclasses, constraints."""
    if hasattr(annotation, "__pydantic_core_schema__") or getattr(annotation, "__module__", "") == FIELDS:
        return True
    for item in getattr(annotation, "__metadata__", ()):
        if type(item).__module__.partition(".")[0] in ("pydantic", "annotated_types"):
            return True
    if hasattr(annotation, "__metadata__"):
        return _is_pydantic(annotation.__origin__)
    return any(_is_pydantic(argument) for argument in getattr(annotation, "__args__", ()))


# ---------------------------------------------------------------------------------------- msgspec


def _key_choices(annotation: Any) -> list[str]:
    """Return the keys that a dict may have, if its type says which: ``dict[Literal["a", "b"], int]``, or an
    enum of texts."""
    if getattr(annotation, "__origin__", None) is not dict:
        return []
    keys = annotation.__args__[0]
    choices = list(keys.__args__) if is_literal(keys) else values_of(getattr(keys, "__members__", {}))
    return choices if all(isinstance(choice, str) for choice in choices) else []


class MsgspecConverter(Converter):
    """A type that msgspec supports. `inner` is the converter of the plain type without constraints."""

    def __init__(self, annotation: Any, inner: Converter | None, explicit_nulls: bool = False) -> None:
        import msgspec

        from fastrpc.schema.described_members import add_formats, order_choices
        from fastrpc.schema.whole_records import may_lack_members, written_whole

        (root,), components = msgspec.json.schema_components([annotation], ref_template="#/$defs/{name}")
        for component in components.values():
            component.pop("title", None)  # the name of the class
        order_choices([root, components], annotation)
        if explicit_nulls:
            add_formats(root, components, msgspec.inspect.type_info(annotation))
        schema, definitions = write_out(root, components, nulls=explicit_nulls)
        keys = _key_choices(annotation)
        if keys:  # which msgspec checks, but does not describe
            schema["propertyNames"] = {"enum": keys}
        super().__init__(schema, inner.noun if inner else _noun_of(schema))
        self.annotation = annotation
        self.inner = inner
        self.definitions = definitions
        self._convert = msgspec.convert
        self._refused = msgspec.ValidationError
        self.load = load = _loader_of(annotation)
        plain = partial(msgspec.to_builtins, str_keys=True)
        self._write = write = written_whole if may_lack_members(annotation) else plain

        def plain_value(value: Any) -> Any:
            made = write(value)
            if not validates_itself(self, value):
                load(made)
            return made

        self.plain_value = plain_value

    @property
    def msgspec_type(self) -> Any:
        """The annotation as `msgspec.inspect` describes it."""
        import msgspec

        return msgspec.inspect.type_info(self.annotation)

    def accept(self, value: Any, lenient: bool = True) -> Any:
        if lenient and self.inner is not None:
            value = self.inner.accept(value)
        try:
            return self._convert(value, self.annotation, str_keys=True)
        except self._refused as error:
            if lenient:
                value, mended = self._convert_leniently(value, str(error))
                if mended is not _MISSING:
                    return mended
            raise _mismatch(str(error), value, self.schema) from None

    def _convert_leniently(self, value: Any, refused: str) -> tuple[Any, Any]:
        """Return the value as it was understood, and what the function receives, or _MISSING. `refused` says
        what is wrong where all types have to be exact.

        Nothing is converted again in vain: what is wrong in one place is not mended by changes elsewhere, and
        only texts and numbers are understood in another way."""
        if isinstance(value, str):
            parsed = json_from_text(value, "{")
            value = json_from_text(value, "[") if parsed is value else parsed
        elif not isinstance(_received(refused, value), (str, int, float)):
            return value, _MISSING
        try:
            return value, self._convert(value, self.annotation, strict=False, str_keys=True)
        except self._refused as error:
            if not isinstance(_received(str(error), value), float):
                return value, _MISSING
        try:
            whole = _with_integers(value)
            return value, self._convert(whole, self.annotation, strict=False, str_keys=True)
        except self._refused:
            return value, _MISSING

    def to_json(self, value: Any) -> Any:
        return self._write(value)


def _with_integers(value: Any) -> Any:
    """Return a value with integers in place of floats without a fraction: msgspec refuses ``1.0`` for a
    choice of integers."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, dict):
        return {name: _with_integers(member) for name, member in value.items()}
    return [_with_integers(item) for item in value] if isinstance(value, list) else value


def _loader_of(annotation: Any) -> Callable[[Any], Any]:
    """Return what converts a value to a type, strictly. What msgspec knows of a Struct it keeps; most other
    types it reads anew for each value."""
    import msgspec

    convert = msgspec.convert
    holder: Any = msgspec.defstruct("Holder", [("value", annotation)], array_like=True, gc=False)
    return lambda value: convert((value,), holder, str_keys=True).value


def _noun_of(schema: Schema) -> str:
    if "enum" in schema:
        return one_of(schema["enum"])
    if "anyOf" in schema:
        return " or ".join(_noun_of(choice) for choice in schema["anyOf"])
    return str(schema.get("type", "object" if "$ref" in schema else "value"))


def _mismatch(message: str, value: Any, schema: Schema) -> Mismatch:
    """Rewrite msgspec's ``Expected `int`, got `str` - at `$.a[0]``` in the style of this package."""
    path = _place_of(message)
    message, _, place = message.partition(" - at `")
    received, spot = _follow(path, value, schema)
    if "` in `" in place:
        return Mismatch(f"a key: {message[:1].lower()}{message[1:].replace('`', '')}", path)
    if message.startswith("Object missing required field `"):
        return Mismatch("required, missing", path + step_to(message.split("`")[1]))
    if message.startswith("Expected `"):
        _, types, rest = message.split("`", 2)
        nouns = " or ".join(_NOUNS.get(name, name) for name in types.split(" | "))
        rest = rest.partition(", got `")[0].replace("`", "")
        if received is _MISSING or ", got " in rest:
            return Mismatch(f"expected {nouns}{rest}", path)
        return Mismatch(f"expected {nouns}{rest}, got {shorten(received)}", path)
    if message.startswith("Invalid enum value") and received is not _MISSING:
        if "enum" in spot:
            return Mismatch(expected(one_of(spot["enum"]), received).problem, path)
        if "maximum" in spot:  # combinations of flags
            return Mismatch(expected(f"an integer from 0 to {spot['maximum']}", received).problem, path)
    text = message[:1].lower() + message[1:].replace("`", "")
    return Mismatch(text if received is _MISSING else f"{text}, got {shorten(received)}", path)


def _place_of(message: str) -> str:
    """Return the path in one of msgspec's messages, such as ``.items[2].name``; "" for the whole value."""
    key, _, parent = message.partition(" - at `")[2].partition("` in `")
    return (parent or key).strip("`").removeprefix("$")


def _received(message: str, value: Any) -> Any:
    """Return what one of msgspec's messages is about; 0.0, that may be any number, if it does not say so."""
    received, _ = _follow(_place_of(message), value, {})
    return 0.0 if received is _MISSING else received


def _follow(path: str, value: Any, schema: Schema) -> tuple[Any, Schema]:
    """Follow a path such as ``.items[2].name``; return the value and the schema there, as far as known."""
    steps = path.replace("[", ".[").split(".")[1:]
    for step in steps:
        if step.startswith("["):
            index = step[1:-1]
            inside = isinstance(value, (list, tuple)) and index.isdigit() and int(index) < len(value)
            value = value[int(index)] if inside else _MISSING
            schema = schema.get("items") or schema.get("additionalProperties") or {}
        else:
            value = value.get(step, _MISSING) if isinstance(value, dict) else _MISSING
            schema = schema.get("properties", {}).get(step, {})
        if not isinstance(schema, dict):
            schema = {}
    return value, schema


# --------------------------------------------------------------------------------------- pydantic


class NotForPydantic(DefinitionError):
    """pydantic makes no schema of a type."""


class PydanticConverter(Converter):
    """A type that pydantic supports."""

    def __init__(
        self, annotation: Any, output: bool, explicit_nulls: bool = False, aliases: bool = True
    ) -> None:
        try:
            from pydantic import PydanticUserError, ValidationError
        except ImportError:
            raise DefinitionError(
                f"{_name_of(annotation)} needs pydantic for its constraints; install it, or use fastrpc.Meta"
            ) from None
        try:
            self.adapter: Any = _adapter_of(annotation)
            whole = self.adapter.json_schema(
                ref_template="#/$defs/{model}",
                mode="serialization" if output else "validation",
                **({} if aliases else _as_configured()),
            )
        except NameError as error:
            raise UnresolvedName(f"{_name_of(annotation)}: {error}") from None
        except (PydanticUserError, TypeError) as error:
            reason = str(error).split("\n")[0]
            raise NotForPydantic(f"no JSON Schema can be made of {_name_of(annotation)} ({reason})") from None
        if not output:
            _check_paths(self.adapter.core_schema, annotation)
        components = whole.pop("$defs", {})
        schema, definitions = write_out(whole, components, titles=False, nulls=explicit_nulls)
        titles = [item.title for item in getattr(annotation, "__metadata__", ()) if shows_more(item)]
        if any(titles):
            schema["title"] = next(filter(None, reversed(titles)))
        super().__init__(schema, _noun_of(schema))
        self.definitions = definitions
        self._refused = ValidationError
        self.annotation = annotation
        self._dumping: dict[str, Any] = {"mode": "json", **({"by_alias": True} if aliases else {})}
        self.load = validate = self.adapter.validator.validate_python
        dump = partial(self.adapter.serializer.to_python, **self._dumping)
        self.plain_value = lambda value: dump(validate(value))

    def to_json(self, value: Any) -> Any:
        return self.adapter.dump_python(value, **self._dumping)

    def accept(self, value: Any, lenient: bool = True) -> Any:
        try:
            return self.adapter.validate_python(value)
        except self._refused as error:
            if lenient and isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
                parsed = json_from_text(value, value.lstrip()[0])
                if parsed is not value:
                    return self.accept(parsed, False)
            raise self._mismatch(error) from None

    def accept_result(self, value: Any) -> Any:
        """`accept` for what a function returns: its dicts may have the members' own names, as those of a
        TypedDict that it was given have, though an alias is published for them."""
        try:
            return self.accept(value, False)
        except Mismatch:
            from pydantic import VERSION

            if tuple(map(int, VERSION.split(".")[:2])) < (2, 11):
                raise
            try:
                return self.adapter.validate_python(value, by_name=True, by_alias=True)
            except self._refused:
                pass
            raise

    def _mismatch(self, error: Any) -> Mismatch:
        first, *others = error.errors(include_url=False, include_context=False)
        path = "".join(f"[{step}]" if isinstance(step, int) else step_to(step) for step in first["loc"])
        if first["type"] == "missing":
            problem = "required, missing"
        else:
            said = first["msg"].replace("Input should be ", "expected ")
            problem = f"{said[:1].lower()}{said[1:]}, got {shorten(first['input'])}"
        return Mismatch(problem + (f" (and {len(others)} more)" if others else ""), path)


def _as_configured() -> dict[str, Any]:
    """Return the options for a schema whose members have aliases where their model's configuration says so.
    When values are written, it is the choice of each model; of a schema pydantic has one for all of it."""
    from pydantic.json_schema import GenerateJsonSchema

    class ByConfiguration(GenerateJsonSchema):
        def model_schema(self, schema: Any) -> Any:
            return self._configured(schema["cls"].model_config, super().model_schema, schema)

        def dataclass_schema(self, schema: Any) -> Any:
            return self._configured(schema.get("config"), super().dataclass_schema, schema)

        def typed_dict_schema(self, schema: Any) -> Any:
            return self._configured(schema.get("config"), super().typed_dict_schema, schema)

        def _configured(self, config: Any, describe: Any, schema: Any) -> Any:
            outer, self.by_alias = self.by_alias, bool((config or {}).get("serialize_by_alias"))
            try:
                return describe(schema)
            finally:
                self.by_alias = outer

    return {"by_alias": False, "schema_generator": ByConfiguration}


def _check_paths(core: Any, annotation: Any) -> None:
    """Raise DefinitionError for a member that is read from within another one (``AliasPath``): pydantic's
    schema names the member itself, which is not read."""
    if isinstance(core, dict):
        alias = core.get("validation_alias")
        paths = alias if alias and isinstance(alias[0], list) else [alias]  # a text, a path, or several
        if isinstance(alias, list) and not any(
            isinstance(path, str) or len(path or ()) == 1 for path in paths
        ):
            raise DefinitionError(
                f"no JSON Schema can be made of {_name_of(annotation)}: AliasPath {paths[0]} is no name of a "
                "member; give alias= or AliasChoices"
            )
    for each in core.values() if isinstance(core, dict) else core if isinstance(core, list) else ():
        if isinstance(each, (dict, list)):
            _check_paths(each, annotation)


def _without_warnings(make: Any, annotation: Any) -> Any:
    """Call pydantic without its warning that an alias has no effect: it has, for a parameter (`alias_of`)."""
    from warnings import catch_warnings, filterwarnings

    with catch_warnings():
        filterwarnings("ignore", message="The 'alias' attribute|The 'validation_alias' attribute")
        filterwarnings("ignore", message="The 'serialization_alias' attribute")
        return make(annotation)


def _adapter_of(annotation: Any) -> Any:
    """Return pydantic's adapter; classes that it does not know are accepted where one of a union is known."""
    from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter

    try:
        return _without_warnings(TypeAdapter, annotation)
    except PydanticSchemaGenerationError as error:
        try:
            return TypeAdapter(annotation, config={"arbitrary_types_allowed": True})
        except PydanticUserError:  # a model has its own configuration
            raise error from None


def default_of_field(peeled: Peeled, field: Any, missing: object) -> tuple[Peeled, Any]:
    """Read ``= Field(5, ge=1, description="…")``, which servers written for FastMCP use."""
    peeled.description = field.description or peeled.description
    if shows_more(field):
        peeled.metadata = (*peeled.metadata, field)
    elif field.metadata:
        peeled.metadata = (*peeled.metadata, *field.metadata)
    if field.is_required():
        return peeled, missing
    return peeled, field.get_default(call_default_factory=True)


# ---------------------------------------------------------------------------- writing out references

_SCHEMA = ("items", "additionalProperties", "contains", "not", "if", "then", "else", "propertyNames")
_SCHEMAS = ("anyOf", "oneOf", "allOf", "prefixItems")
_NAMED_SCHEMAS = ("properties", "patternProperties", "dependentSchemas")


def write_out(
    root: Schema, components: Mapping[str, Schema], *, titles: bool = True, nulls: bool = False
) -> tuple[Schema, Schema]:
    """Return `root` with its references replaced by their targets, and the definitions that are still needed.

    Only recursive types remain references, but never at the root: MCP requires an object there. Empty
    ``required`` and, without `nulls`, null defaults, without `titles`, generated titles are left out.
    """
    writer = _Writer(components, titles, nulls)
    name = writer.target(root)
    schema = writer.write({**components[name], **_siblings(root)} if name else root)
    definitions: dict[str, Schema] = {}
    while set(writer.kept) - set(definitions):
        for name in sorted(set(writer.kept) - set(definitions)):
            definitions[name] = writer.write(components[name])
    return schema, definitions


class _Writer:
    def __init__(self, components: Mapping[str, Schema], titles: bool, nulls: bool) -> None:
        self.components = components
        self.titles = titles
        self.nulls = nulls
        self.kept: set[str] = set()
        self.recursive = {name for name in components if self._reaches(name, name, set())}

    def target(self, schema: Schema) -> str | None:
        reference = schema.get("$ref")
        return reference.removeprefix("#/$defs/") if isinstance(reference, str) else None

    def _reaches(self, start: str, goal: str, seen: set[str]) -> bool:
        for name in self._targets(self.components[start]):
            if name == goal:
                return True
            if name not in seen:
                seen.add(name)
                if self._reaches(name, goal, seen):
                    return True
        return False

    def _targets(self, schema: Any) -> list[str]:
        if not isinstance(schema, dict):
            return []
        name = self.target(schema)
        found = [name] if name else []
        for below in _below(schema):
            found += self._targets(below)
        return found

    def write(self, schema: Any) -> Any:
        if not isinstance(schema, dict):
            return schema
        name = self.target(schema)
        if name in self.recursive:
            self.kept.add(name)
            return dict(schema)
        if name:
            return self.write({**self.components[name], **_siblings(schema)})
        written = {}
        for key, value in schema.items():
            if key in _SCHEMA:
                written[key] = self.write(value)
            elif key in _SCHEMAS:
                written[key] = [self.write(item) for item in value]
            elif key in _NAMED_SCHEMAS:
                written[key] = {name: self._member(name, item) for name, item in value.items()}
            elif not self._is_noise(key, value):
                written[key] = value
        if "enum" in written and "type" not in written:
            add_enum_type(written)
        if "discriminator" in schema:
            _require(schema["discriminator"].get("propertyName"), written.get("oneOf", ()))
        return written

    def _member(self, name: str, schema: Any) -> Any:
        """Return the schema of an object's member, with the title that its author has given."""
        written = self.write(schema)
        title = schema.get("title") if isinstance(schema, dict) else None
        if title and not self.titles and "$ref" not in schema and not _is_generated(title, name, schema):
            written["title"] = title
        return written

    def _is_noise(self, key: str, value: Any) -> bool:
        return (
            (key == "required" and not value)
            or (key == "default" and value is None and not self.nulls)
            or (key == "title" and not self.titles)
            or key == "discriminator"
        )


def _require(tag: Any, options: list[Schema]) -> None:
    """Require the member that tells the options of a union apart: without it none of them is chosen."""
    for option in options:
        if tag in option.get("properties", {}) and tag not in option.get("required", ()):
            option["required"] = [tag, *option.get("required", ())]


def _is_generated(title: str, name: str, schema: Schema) -> bool:
    """Whether a title is made from a member's name, or is that of a class described in place."""
    return title.replace(" ", "").lower() == name.replace("_", "").lower() or "properties" in schema


def _siblings(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if key != "$ref"}


def _below(schema: Schema) -> list[Any]:
    found = [schema[key] for key in _SCHEMA if key in schema]
    for key in _SCHEMAS:
        found += schema.get(key, ())
    for key in _NAMED_SCHEMAS:
        found += schema.get(key, {}).values()
    return found

"""Reads an OpenAPI document: `operations_of` returns its operations, with all references resolved.

openapi-pydantic validates the document, 3.0 or 3.1; references are resolved inside it only, and nothing is
fetched. Schemas become JSON Schema 2020-12: ``nullable`` and the boolean bounds of 3.0 are converted, types
that refer to themselves keep a reference into ``$defs``.
"""

from __future__ import annotations

from fastrpc.errors import DefinitionError, Reworded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping
    from typing import Any

    Schema = dict[str, Any]

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")
JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
MOST_INLINE, DEEPEST_INLINE = 20_000, 16
"""Schemas of one operation, and levels of references, that are written where they are referred to."""
_IGNORED = ("discriminator", "externalDocs", "xml")
"""Members of OpenAPI's schemas that JSON Schema does not have, and that tell a model nothing."""


def is_json(kind: str) -> bool:
    """Whether a MIME type, perhaps with parameters, is JSON."""
    return base_of(kind).endswith(("/json", "+json"))


def base_of(kind: str) -> str:
    """Return a MIME type in lower case without its parameters."""
    return kind.partition(";")[0].strip().lower()


class OperationParameter:
    """A parameter of an operation: its `name`, `place` (``path``, ``query``, ``header``, ``cookie``),
    `schema`, whether it is `required`, and how it is written (`style`, `explode`, `keeps_reserved`; as one
    text if its content `is_json`)."""

    def __init__(self, raw: Mapping[str, Any], schema: Schema) -> None:
        self.name: str = raw["name"]
        self.place: str = raw["in"]
        self.required = bool(raw.get("required")) or self.place == "path"
        self.schema = schema
        self.keeps_reserved = bool(raw.get("allowReserved"))
        self.style: str = raw.get("style") or ("form" if self.place in ("query", "cookie") else "simple")
        self.is_json = any(map(is_json, raw.get("content") or ()))
        self.explode: bool = raw.get("explode", self.style == "form")


class Operation:
    """One operation: `method` in upper case, `path` with its variables in braces, `operation_id`, `summary`,
    `description`, `tags`, `parameters`; the request body's `body_type` (a MIME type, or None), `body_schema`
    with the `body_encoding` of its members, and `body_required`; the `result_schema` of a successful JSON
    response, or None. `definitions` are the recursive types that its schemas refer to."""

    def __init__(self, document: _Document, path: str, method: str, raw: Mapping[str, Any]) -> None:
        self.method = method.upper()
        self.path = path
        self.operation_id: str | None = raw.get("operationId")
        self.summary: str | None = raw.get("summary")
        self.description: str | None = raw.get("description")
        self.tags: list[str] = list(raw.get("tags") or ())
        schemas = _OperationSchemas(document)
        self.definitions = schemas.definitions
        self.parameters = [document.parameter(each, schemas) for each in raw["parameters"]]
        self.body_type: str | None = None
        self.body_schema: Schema = {}
        self.body_encoding: Mapping[str, Mapping[str, Any]] = {}
        self.body_required = False
        self._read_body(schemas, document.target(raw.get("requestBody")))
        self.result_schema: Schema | None = document.result(raw.get("responses") or {}, schemas)

    def _read_body(self, schemas: _OperationSchemas, body: Mapping[str, Any]) -> None:
        content = body.get("content") or {}
        if not content:
            return
        known = (JSON, *filter(is_json, content), FORM, MULTIPART, *content)
        self.body_type = next(kind for kind in known if kind in content)
        self.body_required = bool(body.get("required"))
        self.body_encoding = content[self.body_type].get("encoding") or {}
        self.body_schema = schemas.add(content[self.body_type].get("schema") or {})

    def __repr__(self) -> str:
        return f"<Operation {self.method} {self.path}>"


def operations_of(document: Mapping[str, Any]) -> list[Operation]:
    """Return the operations of an OpenAPI document in its order. Raises DefinitionError for an invalid
    document, and ImportError without openapi-pydantic."""
    return _Document(_validated(document)).operations()


def _validated(document: Any) -> dict[str, Any]:
    with Reworded(ImportError, ImportError, "", "; install fastrpc-mcp[openapi]"):
        from openapi_pydantic import parse_obj
        from pydantic import ValidationError
    if not isinstance(document, dict):
        raise DefinitionError(f"openapi: expected a dict, got {type(document).__name__}")
    version = document.get("openapi")
    if not isinstance(version, str) or not version.startswith("3."):
        found = "Swagger 2.0" if "swagger" in document else f"{version!r:.40}"
        raise DefinitionError(f"openapi: expected a document of OpenAPI 3.0 or 3.1, got {found}")
    try:
        parse_obj(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        place = ".".join(str(step) for step in first["loc"] if step != version)
        raise DefinitionError(f"openapi: {place}: {first['msg']:.200}") from None
    return document


class _Document:
    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.raw = raw
        self._found: dict[str, int] = {}
        """The references that `is_recursive` has looked at, numbered."""
        self._recursive: set[str] = set()

    def operations(self) -> list[Operation]:
        found = []
        for path, item in (self.raw.get("paths") or {}).items():
            item = self.target(item)
            shared = [self.target(each) for each in item.get("parameters") or ()]
            for method in METHODS:
                if method in item:
                    operation = item[method]
                    own = [self.target(each) for each in operation.get("parameters") or ()]
                    keys = {(each["name"], each["in"]) for each in own}
                    own += [each for each in shared if (each["name"], each["in"]) not in keys]
                    found.append(Operation(self, path, method, {**operation, "parameters": own}))
        return found

    def target(self, node: Any) -> Any:
        """Return a node of the document, or what it refers to; {} for none."""
        seen: set[str] = set()
        while isinstance(node, dict) and isinstance(node.get("$ref"), str):
            reference = node["$ref"]
            if reference in seen:
                raise DefinitionError(f"openapi: {reference} refers to itself")
            seen.add(reference)
            node = self.resolved(reference)
        return node or {}

    def resolved(self, reference: str) -> Any:
        if not reference.startswith("#/"):
            raise DefinitionError(f"openapi: {reference!r:.100} is in another document; bundle them into one")
        node: Any = self.raw
        for step in reference[2:].split("/"):
            step = step.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list) and step.isdigit() and int(step) < len(node):
                node = node[int(step)]
            elif isinstance(node, dict) and step in node:
                node = node[step]
            else:
                raise DefinitionError(f"openapi: there is no {reference}")
        return node

    def parameter(self, raw: Mapping[str, Any], schemas: _OperationSchemas) -> OperationParameter:
        content = raw.get("content") or {}
        node = raw.get("schema") or next((media.get("schema") for media in content.values()), None) or {}
        schema = schemas.add(node)
        if raw.get("description") and "description" not in schema:
            schema["description"] = raw["description"]
        return OperationParameter(raw, schema)

    def result(self, responses: Mapping[str, Any], schemas: _OperationSchemas) -> Schema | None:
        """Return the schema of the first successful response in JSON, if there is one."""
        for status in sorted(responses):
            if not str(status).startswith("2"):
                continue
            content = self.target(responses[status]).get("content") or {}
            for kind, media in content.items():
                if (kind == JSON or kind.endswith("+json")) and media.get("schema"):
                    return schemas.add(media["schema"])
        return None

    def is_recursive(self, reference: str) -> bool:
        """Whether a schema contains a reference to itself, directly or through others."""
        if reference not in self._found:
            self._find_cycles(reference)
        return reference in self._recursive

    def _find_cycles(self, start: str) -> None:
        """Find which references lead back to themselves, of those that can be reached: each is looked at
        once (Tarjan's strongly connected components)."""
        found: dict[str, int] = self._found
        lowest: dict[str, int] = {}
        path: list[str] = []
        waiting = [(start, self._references_of(start))]
        found[start] = lowest[start] = len(found)
        path.append(start)
        while waiting:
            reference, others = waiting[-1]
            if others:
                other = others.pop()
                if other == reference:
                    self._recursive.add(reference)
                if other not in found:
                    found[other] = lowest[other] = len(found)
                    path.append(other)
                    waiting.append((other, self._references_of(other)))
                elif other in lowest:
                    lowest[reference] = min(lowest[reference], found[other])
                continue
            waiting.pop()
            if waiting:
                outer = waiting[-1][0]
                lowest[outer] = min(lowest[outer], lowest[reference])
            if lowest[reference] == found[reference]:
                if path[-1] != reference:
                    self._recursive.add(reference)
                while (each := path.pop()) != reference:
                    self._recursive.add(each)
                    del lowest[each]
                del lowest[reference]

    def _references_of(self, reference: str) -> list[str]:
        found: list[str] = []
        waiting = [self.resolved(reference)]
        while waiting:
            node = waiting.pop()
            if isinstance(node, dict):
                if isinstance(node.get("$ref"), str):
                    found.append(node["$ref"])
                waiting += node.values()
            elif isinstance(node, list):
                waiting += node
        return found


class _OperationSchemas:
    """The schemas of one operation as JSON Schema 2020-12, their references replaced by what they refer to.

    A type that contains itself goes to `definitions`, and is only referred to. So does every other one once
    that many schemas, or so many levels of references, are written where they are referred to: types that
    refer twice to the next would double with each.
    """

    def __init__(self, document: _Document) -> None:
        self._document = document
        self.definitions: dict[str, Schema] = {}
        self._names: dict[str, str] = {}
        self._waiting: list[tuple[str, Any]] = []
        self._room = MOST_INLINE
        self._depth = 0

    def add(self, node: Any) -> Schema:
        """Return a schema that refers only to `definitions`, and is not a reference itself."""
        found = self._schema(node)
        while self._waiting:
            name, target = self._waiting.pop()
            self.definitions[name] = self._schema(target)
        if not isinstance(found, dict):
            return {}
        return dict(self.definitions[found["$ref"].rpartition("/")[2]]) if "$ref" in found else found

    def _schema(self, node: Any) -> Any:
        if not isinstance(node, dict):
            return node  # true or false
        reference = node.get("$ref")
        if isinstance(reference, str):
            if self._document.is_recursive(reference) or self._room <= 0 or self._depth >= DEEPEST_INLINE:
                return {"$ref": f"#/$defs/{self._name_of(reference)}"}
            siblings = {key: value for key, value in node.items() if key != "$ref"}
            self._depth += 1
            found = self._schema({**self._document.target(node), **siblings})
            self._depth -= 1
            return found
        self._room -= 1
        return _modern({key: self._member(key, node[key]) for key in node if key not in _IGNORED})

    def _name_of(self, reference: str) -> str:
        """Return the name in `definitions` of what a reference refers to."""
        name = self._names.get(reference)
        if name is None:
            name = last = reference.rpartition("/")[2]
            number = len(self.definitions)
            while name in self.definitions:
                number += 1
                name = f"{last}_{number}"
            self._names[reference] = name
            self.definitions[name] = {}
            self._waiting.append((name, self._document.target({"$ref": reference})))
        return name

    def _member(self, key: str, value: Any) -> Any:
        if key in ("properties", "patternProperties", "dependentSchemas", "$defs") and isinstance(
            value, dict
        ):
            return {name: self._schema(each) for name, each in value.items()}
        if key in ("allOf", "anyOf", "oneOf", "prefixItems") and isinstance(value, list):
            return [self._schema(each) for each in value]
        if key in ("items", "additionalProperties", "not", "contains", "propertyNames", "if", "then", "else"):
            return self._schema(value)
        return value


def _modern(schema: Schema) -> Schema:
    """Convert what OpenAPI 3.0 writes differently from JSON Schema 2020-12."""
    for bound, exclusive in (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum")):
        if schema.get(exclusive) is True:
            schema[exclusive] = schema.pop(bound)
        elif schema.get(exclusive) is False:
            del schema[exclusive]
    if "example" in schema:
        schema.setdefault("examples", [schema.pop("example")])
    if schema.pop("nullable", False):
        kind = schema.get("type")
        if isinstance(kind, str):
            schema["type"] = [kind, "null"]
            if "enum" in schema and None not in schema["enum"]:
                schema["enum"] = [*schema["enum"], None]
        elif kind is None and schema:
            schema = {"anyOf": [schema, {"type": "null"}]}
    return _without_duplicates(schema)


def _without_duplicates(schema: Schema) -> Schema:
    """Return a schema whose lists hold nothing twice: documents do, JSON Schema does not allow it."""
    for name in ("enum", "required", "type"):
        values = schema.get(name)
        if isinstance(values, list):
            first: dict[Hashable, Any] = {}
            for each in values:
                first.setdefault(_identity(each), each)
            schema[name] = [*first.values()]
    return schema


def _identity(value: Any) -> Hashable:
    """Return what equal JSON values have in common: 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, list):
        return (list, *map(_identity, value))
    if isinstance(value, dict):
        return (dict, frozenset((key, _identity(each)) for key, each in value.items()))
    return (isinstance(value, bool), value)

"""Compares what two servers describe and answer: an original, and the same file on fastrpc.

`differences` takes two observations (`fastrpc.swap.observation`) and returns each `Difference`: a real
one, which a client or a model would act on, or one by choice, with the reason. Descriptors are compared by
name, schemas by what they accept. Pure functions, no I/O; the rules are in the tables at the top.
"""

from __future__ import annotations

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    Value = Any
    Path = tuple[str, ...]
    Leaf = tuple[Path, Value, Value]


class _Absent:
    def __repr__(self) -> str:
        return "(absent)"


ABSENT = _Absent()
"""The value of a member that one side does not have."""

GENERATED_TITLE = "titles that the original generates from names are not sent"
INLINED = "schemas are inlined: some clients do not follow $ref"
STRICT = "unknown arguments are ignored, not refused"
WHITE_SPACE = "a docstring's indentation is removed"
VERSION = "the original sends the version of its framework for a server without a version"
NAME = "a server without a name has the same name at each start"
ANNOUNCED = "changes are announced only for what can change"
OFFERED = "completion and log levels are always offered"
NOTHING_OF_IT = "a capability is declared if the server has an entry of its kind"
EXPERIMENTAL = "empty experimental capabilities are not declared"
OWN_META = "FastMCP's own members of _meta, and its marks of wrapped results, differ"
NO_TASKS = "tasks are not offered, which is the default"
WRAPPED_TEXT = "a text is not sent a second time as structured content"
WRAPPED_CONTENT = "content is not sent a second time as structured content"
COMPACT = "JSON in a text has no indentation"
QUOTES = "a result whose JSON is a text has quotes where it was no str, or has none"
NO_NUMBER = "NaN and infinity, which JSON does not have, are null in texts, too"
ACCEPTED = "a result whose JSON matches its annotation is sent"
CONTENT = "content is sent, whatever the annotation says"
ONE_BLOCK = "a list of texts is one block, its JSON"
ERROR_CODE = "errors have the codes of the specification"
NOT_OFFERED = "tasks and extensions are not offered"
NO_WRAPPER = "the object around a wrapped result has no description"
NO_DESCRIPTION = "an output schema has the descriptions of its classes"
NO_RESULT = "a tool that returns nothing has no output schema"
NO_SCHEMA_TEXT = "no JSON Schema is written into the descriptions of a prompt's arguments"
GENERATED_TOOL = "the tools that transforms and middleware add are described in other words"
UNKNOWN_NAME = "an unknown name is a protocol error, as the specification requires"
ERROR_TEXT = "the text of an error begins with other words"
UNSENDABLE = "the error message for an invalid result is shorter, and names the field"
INVALID_ARGUMENTS = "the text about invalid arguments is shorter, and names the field"
NEWER = "the newest version of the protocol is used, with its new members"
LENIENT = "harmless mistakes of models are accepted: null for an optional parameter, JSON written as text"
NO_NULL = "an output schema has no default for a member that may be missing"
GIVEN_TITLE = "a title that the author has given is sent"
FURTHER_HINTS = "members of annotations that the protocol does not define are sent"
UNANNOTATED = "a parameter without annotation accepts any value, and its schema says so"
ONE_PAGE = "the page that renders user interfaces is listed once, not again in each namespace"
BLOCK = "a block of content that is given as a dict is sent as that block, not as its JSON"
DESCRIBED = "a text in Annotated describes the parameter, as in FastMCP"
OPERATION_TEXT = "the description of an operation does not repeat its parameters and responses"
OPERATION_HINTS = "tools made of an OpenAPI document have the hints of their HTTP methods"
OPERATION_CHECKED = "the arguments of an operation are checked before the request"
NO_NUMBERS = "true and false are not numbers, yes and no are not booleans, as the schema says"
VARIES = "the original's own answers to this call differ"


GENERATED_TOOLS = (
    "call_tool",
    "get_prompt",
    "list_prompts",
    "list_resources",
    "read_resource",
    "search_tools",
)
"""Tools that the originals generate for clients without the feature; their descriptions are not copied."""

LISTS_OF = {"tools": ("tools",), "resources": ("resources", "resourceTemplates"), "prompts": ("prompts",)}
"""By capability."""

SAY_NOTHING_EMPTY = ("_meta", "annotations", "arguments", "description", "experimental", "properties")
"""Members for which an empty value says as much as none."""

DEEPEST = 8
"""How deep a schema that refers to itself is compared."""

CODES = (-32601, -32602, -32002)
"""What the specification has for unknown methods, for names and invalid arguments, for unknown resources."""
NO_CODE = 0
"""What the original has for any failure, in the place of -32603."""

_STRUCTURED_SINCE = "2025-06-18"
"""The version of the protocol that brought output schemas and structured content."""


CONTENT_CLASSES = ("AudioContent", "EmbeddedResource", "ImageContent", "ResourceLink", "TextContent")
CONTENT_TYPES = ("audio", "image", "resource", "resource_link", "text")

HINTS = {
    *("audience", "lastModified", "priority", "title"),
    *("destructiveHint", "idempotentHint", "openWorldHint", "readOnlyHint"),
}
"""Members of the annotations of a tool or a resource (MCP: ToolAnnotations, Annotations)."""

METHOD_HINTS = (
    {"readOnlyHint": True, "openWorldHint": True},
    {"readOnlyHint": False, "destructiveHint": True, "idempotentHint": True, "openWorldHint": True},
    {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": True},
)
"""The annotations that `fastrpc.openapi` gives to tools of operations."""

STRUCTURED = (": outputSchema", ": structuredContent")


class Difference:
    """One difference: where, both values, and the reason if it is by choice ("" if it is not)."""

    __slots__ = ("original", "place", "reason", "swapped")

    def __init__(self, place: str, original: Value, swapped: Value, reason: str = "") -> None:
        self.place = place
        self.original = original
        self.swapped = swapped
        self.reason = reason

    def __repr__(self) -> str:
        return f"<Difference {self.place}: {self.original!r:.80} / {self.swapped!r:.80} {self.reason!r}>"

    def as_json(self) -> dict[str, Value]:
        """Return it as an object; an absent value has no member."""
        sides = {"original": self.original, "swapped": self.swapped}
        found = {name: value for name, value in sides.items() if value is not ABSENT}
        return {"place": self.place, "reason": self.reason, **found}


def differences(original: dict[str, Value], swapped: dict[str, Value]) -> list[Difference]:
    """Return all differences between two observations, in their order."""
    if original.get("failure") or swapped.get("failure"):
        failures = original.get("failure", ""), swapped.get("failure", "")
        return [] if failures[0] and failures[1] else [Difference("start", *failures)]
    found = list(_handshake(original, swapped))
    for member, key in (("tools", "name"), ("resources", "uri"), ("resourceTemplates", "uriTemplate")):
        found += _entries(member, key, original[member], swapped[member])
    found += _entries("prompts", "name", original["prompts"], swapped["prompts"])
    answers = zip(original.get("answers", ()), swapped.get("answers", ()), strict=False)
    for ours, theirs in answers:
        found += answer_differences(ours["of"], ours, theirs)
    if str(original.get("protocolVersion")) < _STRUCTURED_SINCE:
        for difference in found:
            if difference.original is ABSENT and difference.place.endswith(STRUCTURED):
                difference.reason = difference.reason or NEWER
    return found


def real(found: list[Difference]) -> list[Difference]:
    """Return those that a client or a model would act on."""
    return [difference for difference in found if not difference.reason]


# --- the handshake ----------------------------------------------------------------------------------------


def _handshake(original: dict[str, Value], swapped: dict[str, Value]) -> Iterator[Difference]:
    yield from _classified(
        "protocolVersion", original.get("protocolVersion"), swapped.get("protocolVersion"), _version_rule
    )
    yield from _classified(
        "instructions", original.get("instructions"), swapped.get("instructions"), _text_rule
    )
    yield from _classified("serverInfo", original["serverInfo"], swapped["serverInfo"], _server_rule)
    declared = dict(original["capabilities"]), dict(swapped["capabilities"])
    for name in sorted(declared[0].keys() ^ declared[1].keys()):
        pair = declared[0].pop(name, ABSENT), declared[1].pop(name, ABSENT)
        is_unused = name in LISTS_OF and not _lists_of(name, original) and not _lists_of(name, swapped)
        reason = NOTHING_OF_IT if is_unused else _capability_rule(("capabilities", name), *pair)
        yield Difference(f"capabilities.{name}", *pair, reason)
    yield from _classified("capabilities", *declared, _capability_rule)


def _lists_of(name: str, seen: dict[str, Value]) -> list[Value]:
    return [entry for member in LISTS_OF[name] for entry in seen[member]]


def _server_rule(path: Path, original: Value, swapped: Value) -> str:
    if path[-1] == "name" and swapped == "FastMCP" and re.fullmatch(r"FastMCP-[0-9a-f]+", str(original)):
        return NAME
    return VERSION if path[-1] == "version" else ""


def _capability_rule(path: Path, original: Value, swapped: Value) -> str:
    if path[-1] in ("listChanged", "subscribe"):
        return ANNOUNCED
    if original is ABSENT and path[1] in ("completions", "logging"):
        return OFFERED
    if path[1] in ("tasks", "extensions") and swapped is ABSENT:
        return NOT_OFFERED
    is_empty = not original or original is ABSENT
    if path[1] == "experimental" and isinstance(original, dict) and set(original) == {"tasks"}:
        return NOT_OFFERED  # they were there first
    return EXPERIMENTAL if path[1] == "experimental" and (is_empty or not swapped) else ""


# --- descriptors ------------------------------------------------------------------------------------------


def _entries(kind: str, key: str, original: list[Value], swapped: list[Value]) -> Iterator[Difference]:
    """Yield the differences of two lists of descriptors, which are compared by `key`."""
    theirs = {str(entry.get(key)): entry for entry in original}
    ours = {str(entry.get(key)): entry for entry in swapped}
    shared = [name for name in theirs if name in ours]
    if shared != [name for name in ours if name in theirs]:
        yield Difference(f"{kind}: order", shared, [name for name in ours if name in theirs])
    for name in theirs.keys() - ours.keys():
        reason = ONE_PAGE if kind == "resources" and _is_repeated_page(name, ours) else ""
        yield Difference(f"{kind}: {name}", theirs[name], ABSENT, reason)
    for name in ours.keys() - theirs.keys():
        yield Difference(f"{kind}: {name}", ABSENT, ours[name])
    for name in shared:
        yield from descriptor_differences(f"{kind}: {name}", theirs[name], ours[name])


def _is_repeated_page(uri: str, ours: Mapping[str, Value]) -> bool:
    """Return whether a resource is the page of a user interface once more, in a namespace."""
    found = re.fullmatch(r"ui://(?:[^/]+/)+(prefab/renderer/[0-9a-f]{64}/renderer\.html)", uri)
    return found is not None and f"ui://{found[1]}" in ours


def descriptor_differences(
    place: str, original: dict[str, Value], swapped: dict[str, Value]
) -> Iterator[Difference]:
    """Yield the differences of two descriptors of one tool, resource, template or prompt."""
    for member in dict.fromkeys([*original, *swapped]):
        theirs, ours = original.get(member), swapped.get(member)
        where = f"{place}: {member}"
        if member in ("inputSchema", "outputSchema"):
            yield from schema_differences(where, theirs, ours)
        else:
            yield from _classified(where, theirs, ours, _descriptor_rule)


def _descriptor_rule(path: Path, original: Value, swapped: Value) -> str:
    member = path[0].rpartition(": ")[2]
    if member == "title" and swapped is ABSENT:
        return GENERATED_TITLE if _is_generated(original, path[0].split(": ")[1]) else ""
    if member == "_meta" and set(path[1:2]) & {"fastmcp", "_fastmcp"}:
        return OWN_META
    if member == "_meta" and isinstance(original, dict) and set(original) <= {"fastmcp", "_fastmcp"}:
        return OWN_META
    if member == "annotations" and original is ABSENT:
        given = path[1:2] or tuple(swapped)
        if swapped in METHOD_HINTS:
            return OPERATION_HINTS
        return "" if set(given) & HINTS else FURTHER_HINTS
    if member == "execution":
        return NO_TASKS
    if member == "description" and path[0].split(": ")[1] in GENERATED_TOOLS:
        return GENERATED_TOOL
    if member == "arguments" and re.match(r".*\bschema: \{", str(original), re.DOTALL):
        text = "" if swapped is ABSENT else str(swapped)
        return NO_SCHEMA_TEXT if str(original).startswith(text) else ""
    if member == "description" and str(original).startswith(f"{swapped}\n\n\n**"):
        return OPERATION_TEXT
    return _text_rule(path, original, swapped)


def _version_rule(path: Path, original: Value, swapped: Value) -> str:
    return NEWER if str(original) < str(swapped) else ""


def _is_generated(title: Value, name: str) -> bool:
    """Return whether a title is made from a name, or is that of a class: an author's has spaces."""
    plain = re.sub(r"[\s_-]", "", str(title)).lower()
    return " " not in str(title) or plain == re.sub(r"[\s_-]", "", name).lower()


def _text_rule(path: Path, original: Value, swapped: Value) -> str:
    if isinstance(original, str) and isinstance(swapped, str):
        return WHITE_SPACE if _stripped(original) == _stripped(swapped) else ""
    return ""


def _stripped(text: str) -> list[str]:
    return [line.strip() for line in text.strip().splitlines()]


# --- schemas ----------------------------------------------------------------------------------------------


def schema_differences(place: str, original: Value, swapped: Value) -> Iterator[Difference]:
    """Yield the differences of two JSON Schemas. Forms with the same meaning are no difference."""
    if swapped is None and original is not None:
        yield Difference(place, original, ABSENT, _missing_rule(original))
        return
    if original is None or swapped is None:
        yield from _classified(place, original, swapped, _no_rule)
        return
    if _has_reference(original) != _has_reference(swapped):
        yield Difference(place, "with $ref", "inlined", INLINED)
    yield from _classified(place, normal_schema(original), normal_schema(swapped), _schema_rule)


def _missing_rule(schema: dict[str, Value]) -> str:
    """Return the reason for an output schema that fastrpc does not have: the original wraps a text, nothing,
    or content in an object."""
    properties = schema.get("properties", {})
    if list(properties) != ["result"]:
        return ""
    wrapped = properties["result"]
    reason = {"string": WRAPPED_TEXT, "null": NO_RESULT}.get(wrapped.get("type"), "")
    return reason or (WRAPPED_CONTENT if _is_content(wrapped) else "")


def _is_content(schema: dict[str, Value]) -> bool:
    """Whether all values of a schema are blocks of content, texts, or lists of both."""
    if "anyOf" in schema:
        return all(map(_is_content, schema["anyOf"]))
    if schema.get("type") == "array":
        return _is_content(schema.get("items") or {})
    return schema.get("type") == "string" or schema.get("$ref", "").rpartition("/")[2] in CONTENT_CLASSES


def _schema_rule(path: Path, original: Value, swapped: Value) -> str:
    if path[-1] == "title" and swapped is ABSENT:
        return GENERATED_TITLE if _is_generated(original, path[-2] if len(path) > 1 else "") else ""
    if path[-1] == "default" and original is None and path[0].endswith("outputSchema"):
        return NO_NULL
    if path[-1] == "title" and original is ABSENT:
        return GIVEN_TITLE
    is_parameters = path[0].endswith("inputSchema") and path[1:2] == ("properties",) and path[3:] == ("type",)
    if is_parameters and original == "string" and swapped is ABSENT:
        return UNANNOTATED
    if path[-1] == "additionalProperties" and original in (False, True) and swapped is ABSENT:
        return STRICT if original is False else ""
    if path[-1] == "x-fastmcp-wrap-result":
        return OWN_META
    if path[1:] == ("description",) and swapped is ABSENT and "wrapper" in str(original):
        return NO_WRAPPER
    if path[-1] == "description" and path[0].split(": ")[1] in GENERATED_TOOLS:
        return GENERATED_TOOL
    if path[-1] == "description" and original is ABSENT:
        return DESCRIBED if path[0].endswith("inputSchema") and len(path) > 1 else NO_DESCRIPTION
    return _text_rule(path, original, swapped) if path[-1] == "description" else ""


def _has_reference(schema: Value) -> bool:
    if isinstance(schema, dict):
        return "$ref" in schema or any(map(_has_reference, schema.values()))
    return isinstance(schema, list) and any(map(_has_reference, schema))


def normal_schema(
    schema: Value, definitions: dict[str, Value] | None = None, depth: int = 0, within: tuple[str, ...] = ()
) -> Value:
    """Return a schema in one form: references inlined, unions of plain types as a list of types, order of
    `required` and of types sorted, and without members that say nothing. `within` are the definitions that
    this one is in: one that refers to itself is inlined down to a `depth` of `DEEPEST`."""
    if not isinstance(schema, dict):
        return schema
    if definitions is None:
        definitions = {f"#/$defs/{name}": value for name, value in schema.get("$defs", {}).items()}
    reference = str(schema.get("$ref"))
    target = definitions.get(reference)
    if target is not None:
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        if reference in within and depth >= DEEPEST:
            return {"$ref": reference}
        return normal_schema({**target, **beside}, definitions, depth, (*within, reference))
    found = {
        name: _normal_member(name, value, definitions, depth + 1, within)
        for name, value in schema.items()
        if name not in ("$defs", "$schema")
    }
    _require_tag(found)
    _join_types(found)
    if found.get("additionalProperties") is True:
        del found["additionalProperties"]
    is_closed = found.get("items") is False and len(found.get("prefixItems", ())) == found.get("maxItems")
    if is_closed or found.get("items", False) in ({}, True):
        del found["items"]
    for name in ("required", "properties"):
        if not found.get(name, True):
            del found[name]
    if "example" in found:  # OpenAPI's word
        found.setdefault("examples", [found.pop("example")])
    if "const" in found:
        found["enum"] = [found.pop("const")]
        found.pop("type", None)
    elif "enum" in found:
        found.pop("type", None)
    return found


def _normal_member(
    name: str, value: Value, definitions: dict[str, Value], depth: int, within: tuple[str, ...]
) -> Value:
    if name in ("properties", "patternProperties") and isinstance(value, dict):
        return {key: normal_schema(each, definitions, depth, within) for key, each in value.items()}
    if name in ("anyOf", "oneOf", "allOf", "prefixItems") and isinstance(value, list):
        return [normal_schema(each, definitions, depth, within) for each in value]
    if name in ("required", "type") and isinstance(value, list):
        return sorted(value)
    if name in ("items", "additionalProperties", "not", "propertyNames"):
        return normal_schema(value, definitions, depth, within)
    return value


def _require_tag(schema: dict[str, Value]) -> None:
    """Write the tag of a discriminated union, OpenAPI's ``discriminator``, as a member that is required."""
    tag = schema.pop("discriminator", {}).get("propertyName")
    for option in schema.get("oneOf", ()):
        if tag in option.get("properties", {}):
            option["required"] = sorted({*option.get("required", ()), tag})


def _join_types(schema: dict[str, Value]) -> None:
    """Write ``anyOf`` of plain types, and of one schema and null, as one schema; leave out one of which an
    option takes anything."""
    options = schema.get("anyOf")
    if not isinstance(options, list):
        return
    if {} in options:
        del schema["anyOf"]
        return
    plain = [option for option in options if set(option) == {"type"}]
    others = [option for option in options if set(option) != {"type"}]
    if len(others) == 1 and plain == [{"type": "null"}] and "enum" in others[0]:
        del schema["anyOf"]
        schema.update({**others[0], **schema, "enum": [*others[0]["enum"], None]})
        return
    is_joined = len(others) <= 1 and all("type" in each for each in others)
    if not is_joined or (others and (set(others[0]) & set(schema)) - {"description", "title"}):
        return
    types: list[str] = []
    for option in options:
        types += option["type"] if isinstance(option["type"], list) else [option["type"]]
    del schema["anyOf"]
    for name, value in others[0].items() if others else ():
        schema.setdefault(name, value)  # a description beside counts for more than that of the class
    schema["type"] = sorted(set(types)) if plain else types


# --- answers ----------------------------------------------------------------------------------------------


def answer_differences(place: str, original: dict[str, Value], swapped: dict[str, Value]) -> list[Difference]:
    """Return the differences of two answers: objects with ``result`` or ``error``, and ``last``, the last
    answer, where the request was sent several times."""
    found = list(_answer_differences(place, original, swapped))
    if "last" in original and original["last"] != original.get("result", original.get("error")):
        for difference in found:
            difference.reason = difference.reason or VARIES
    return found


def _answer_differences(
    place: str, original: dict[str, Value], swapped: dict[str, Value]
) -> Iterator[Difference]:
    theirs, ours = original.get("result"), swapped.get("result")
    if theirs is None or ours is None:
        if theirs is None and ours is None:
            yield from _errors(place, original["error"], swapped["error"])
        elif theirs is not None and theirs.get("isError") and "error" in swapped:
            is_unknown = _UNKNOWN.search(_text_of(theirs))
            yield Difference(place, theirs, swapped["error"], UNKNOWN_NAME if is_unknown else "")
        else:
            yield Difference(place, theirs or original["error"], ours or swapped["error"])
        return
    if "content" not in theirs:
        yield from _classified(place, theirs, ours, _content_rule)
    elif bool(theirs.get("isError")) != bool(ours.get("isError")):
        blocks = {block.get("type") for block in ours["content"]}
        is_content = _UNSENDABLE.search(_text_of(theirs)) and blocks - {"text"}
        reason = CONTENT if is_content else _refusal_rule(_text_of(theirs))
        if re.search(
            r": expected ((integer|number), got (true|false)|boolean, got \"\w+\")$", _text_of(ours)
        ):
            reason = NO_NUMBERS
        yield Difference(f"{place}: isError", theirs, ours, reason)
    elif theirs.get("isError"):
        yield from _error_texts(place, _text_of(theirs), _text_of(ours))
    else:
        yield from _contents(f"{place}: content", theirs["content"], ours["content"])
        yield from _structured(place, theirs, ours)


_REFUSALS = re.compile(r"\[type=(\w+), [^\n]{0,200}?input_type=(\w+)\]")


def _refusal_rule(text: str) -> str:
    """Return the reason for arguments that the original refuses, with this text, and fastrpc accepts."""
    found = _REFUSALS.findall(text)
    if not found or "validation error" not in text:
        return ""
    if all(kind == "unexpected_keyword_argument" for kind, _ in found):
        return STRICT
    if re.search(r"validation error for \w+Output\n", text) and {kind for kind, _ in found} == {
        "string_type"
    }:
        return ACCEPTED
    is_meant = all(
        given in ("str", "NoneType") and (kind.endswith(("_type", "_parsing")) or kind == "literal_error")
        for kind, given in found
    )
    return LENIENT if is_meant else ""


def _errors(place: str, original: dict[str, Value], swapped: dict[str, Value]) -> Iterator[Difference]:
    if original.get("code") != swapped.get("code"):
        code = swapped.get("code")
        is_mended = code in CODES or (code == -32603 and original.get("code") == NO_CODE)
        reason = ERROR_CODE if is_mended else ""
        yield Difference(f"{place}: error", original, swapped, reason)
    else:
        yield from _error_texts(place, str(original.get("message")), str(swapped.get("message")))


_UNKNOWN = re.compile(r"\bunknown (tool|prompt|resource)\b|not found", re.IGNORECASE)
_BEFORE_ERRORS = re.compile(
    r"^(Error (executing|calling|reading|rendering|creating) (\w+ )?(from template )?('[^']*'|\S+?)(: |$))?"
    r"((?:[A-Za-z_]\w*\.)*[A-Z]\w*: )?(see the server's log$)?"
)


_REQUEST_ERROR = re.compile(r"\bRequest error( \(\w+\))?: ")
_ARGUMENT = re.compile(r"[^\n:]{1,100}: (required, missing|expected [^\n]{1,200}, got )")

_UNSENDABLE = re.compile(
    r"structured_content must be |must be Message or str|outputSchema defined but|Output validation"
    r"|Unable to serialize unknown type|non-finite float"
)
_UNSENDABLE_HERE = re.compile(
    r"returned something else than its annotation says|: expected [^\n]{1,200}, got "
    r"|cannot be written as JSON"
)


def _error_texts(place: str, original: str, swapped: str) -> Iterator[Difference]:
    if original == swapped:
        return
    both = original, swapped
    is_longer = swapped.startswith(f"{original}: ") or swapped.endswith(f": {original}")
    request = _REQUEST_ERROR.search(original)
    if request and not re.match(r"[A-Z]+ /", swapped) and _ARGUMENT.match(swapped):
        yield Difference(f"{place}: error text", original, swapped, OPERATION_CHECKED)
        return
    if request:
        is_longer = is_longer or re.sub(r"^[A-Z]+ /\S*: ", "", swapped) == original[request.end() :]
    bare = [_BEFORE_ERRORS.sub("", text) for text in both]
    if bare[0] == bare[1] or is_longer or all(map(_UNKNOWN.search, both)):
        reason = ERROR_TEXT
    elif _UNSENDABLE.search(original) and _UNSENDABLE_HERE.search(swapped):
        reason = UNSENDABLE
    else:
        reason = INVALID_ARGUMENTS if "validation error" in original.lower() else ""
    yield Difference(f"{place}: error text", original, swapped, reason)


def _text_of(result: dict[str, Value]) -> str:
    return "\n".join(str(block.get("text", "")) for block in result["content"] if block.get("type") == "text")


def _contents(place: str, original: list[Value], swapped: list[Value]) -> Iterator[Difference]:
    texts = [block.get("text") for block in original]
    if len(swapped) == 1 and len(texts) != 1 and all(isinstance(text, str) for text in texts):
        listed = _parsed(swapped[0].get("text", ""))
        if isinstance(listed, list) and [_as_text(item) for item in listed] == [
            _as_text(_parsed(text)) for text in texts
        ]:
            yield Difference(place, original, swapped, ONE_BLOCK)
            return
    yield from _classified(place, original, swapped, _content_rule)


def _content_rule(path: Path, original: Value, swapped: Value) -> str:
    if (path[0].endswith("description") and len(path) == 1) or path[-1] == "description":
        return _text_rule(path, original, swapped)
    if path[-1] in ("text", "result") and isinstance(original, str) and isinstance(swapped, str):
        theirs = _parsed(original)
        if isinstance(theirs, (dict, list)) and theirs == _parsed(swapped):
            return COMPACT
        if isinstance(theirs, (dict, list)) and _finite(theirs) == _parsed(swapped):
            return NO_NUMBER
        if swapped == theirs or original == _parsed(swapped):
            return QUOTES
        if isinstance(theirs, dict) and theirs.get("type") == "text" and theirs.get("text") == swapped:
            return BLOCK
    return ""


def _structured(place: str, original: dict[str, Value], swapped: dict[str, Value]) -> Iterator[Difference]:
    theirs = original.get("structuredContent")
    wrapped = theirs["result"] if isinstance(theirs, dict) and list(theirs) == ["result"] else ABSENT
    reason = _wrapped_rule(wrapped)
    if reason and swapped.get("structuredContent") is None:
        yield Difference(f"{place}: structuredContent", theirs, ABSENT, reason)
    else:
        ours = swapped.get("structuredContent")
        yield from _classified(f"{place}: structuredContent", theirs, ours, _content_rule)
    yield from _classified(f"{place}: _meta", original.get("_meta"), swapped.get("_meta"), _result_meta_rule)


def _wrapped_rule(value: Value) -> str:
    """Return the reason for a value that the original has wrapped in an object and fastrpc has not."""
    if value is None or isinstance(value, str):
        return NO_RESULT if value is None else WRAPPED_TEXT
    parts = value if isinstance(value, list) else [value]
    is_content = any(isinstance(part, dict) and part.get("type") in CONTENT_TYPES for part in parts)
    return WRAPPED_CONTENT if is_content else ""


def _result_meta_rule(path: Path, original: Value, swapped: Value) -> str:
    names = set(path[1:2])
    for side in (original, swapped):
        names |= set(side) if len(path) == 1 and isinstance(side, dict) else set()
    return OWN_META if names and names <= {"fastmcp", "_fastmcp"} else ""


def _parsed(text: Value) -> Value:
    try:
        return json.loads(text)
    except (TypeError, ValueError):
        return text


def _finite(value: Value) -> Value:
    """Return a parsed value with None for each number that JSON does not have."""
    if isinstance(value, dict):
        return {name: _finite(member) for name, member in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and value - value != 0 else value


def _as_text(value: Value) -> str:
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


# --- values -----------------------------------------------------------------------------------------------


def _no_rule(path: Path, original: Value, swapped: Value) -> str:
    return ""


def _classified(
    place: str, original: Value, swapped: Value, rule: Callable[[Path, Value, Value], str]
) -> Iterator[Difference]:
    """Yield the differences of two values, each with the reason that `rule` gives."""
    name = place.rpartition(": ")[2]
    for path, theirs, ours in _leaves((place,), _given(original, name), _given(swapped, name)):
        where = path[0] + "".join(f".{part}" for part in path[1:])
        yield Difference(where, theirs, ours, rule(path, theirs, ours))


def _given(value: Value, name: str) -> Value:
    """Return a member's value, ABSENT for one that says nothing."""
    says_nothing = value is None or (value in ({}, [], "") and name in SAY_NOTHING_EMPTY)
    return ABSENT if says_nothing and name != "default" else value


def _leaves(path: Path, original: Value, swapped: Value) -> Iterator[Leaf]:
    """Yield where two values differ, as deep as both are objects, or lists of the same length. A member
    that says nothing is as one that is absent."""
    if isinstance(original, dict) and isinstance(swapped, dict):
        for name in dict.fromkeys([*original, *swapped]):
            sides = (side.get(name, ABSENT) for side in (original, swapped))
            yield from _leaves((*path, name), *(_given(side, name) for side in sides))
    elif isinstance(original, list) and isinstance(swapped, list) and len(original) == len(swapped):
        for at, (theirs, ours) in enumerate(zip(original, swapped, strict=True)):
            yield from _leaves((*path, str(at)), theirs, ours)
    elif original != swapped or isinstance(original, bool) is not isinstance(swapped, bool):
        yield path, original, swapped

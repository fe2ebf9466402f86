"""A form for the arguments of a tool, made of its JSON Schema: `fields_of` returns the fields, `read`
converts the typed texts to arguments, or returns the mistake in each field.

A text, a number, a boolean and a choice have a field of their kind; everything else is typed as JSON. What
the form does not check (patterns, formats, what is inside arrays and objects) the tool checks itself, and its
words are put beside the field that they name (`placed`). No I/O.
"""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from fastrpc.guard.approvals.display import visible_name, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Say = Callable[..., str]
    """Returns a text in the visitor's language."""

PREFIX = "arg:"
TEXT, INTEGER, NUMBER, BOOLEAN, CHOICE, JSON = "text", "integer", "number", "boolean", "choice", "json"
KINDS = {"string": TEXT, "integer": INTEGER, "number": NUMBER, "boolean": BOOLEAN}
WHOLE, ANY_NUMBER = "expected a whole number", "expected a number"
BOUNDS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "minimum": ("expected at least {limit}", operator.ge),
    "maximum": ("expected at most {limit}", operator.le),
    "exclusiveMinimum": ("expected more than {limit}", operator.gt),
    "exclusiveMaximum": ("expected less than {limit}", operator.lt),
}
WORDS = (WHOLE, ANY_NUMBER, *(text for text, _ in BOUNDS.values()))
MOST_STEPS = 20
"""References from one schema to another that are followed."""
LONGEST_CHOICES = 200
MOST_LEVELS = 100
"""Arrays and objects inside each other that are typed."""
OTHERS = "…"
"""The key of the field for arguments that the schema does not name; no name is written so."""


class Mistake(Exception):
    """What is wrong with a field, in the visitor's language."""


@dataclass(frozen=True)
class Field:
    """A field of the form. `key` is its name with every character visible, `kind` one of those above;
    `choices` are the values as JSON."""

    name: str
    key: str
    kind: str
    schema: Mapping[str, Any]
    is_required: bool
    choices: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What the schema says about it."""
        said = self.schema.get("description") or self.schema.get("title")
        return said if isinstance(said, str) else ""

    @property
    def default(self) -> str:
        """The value that the tool takes without one, as JSON; "" if the schema names none."""
        return written(self.schema["default"]) if "default" in self.schema else ""


def fields_of(schema: Mapping[str, Any]) -> list[Field]:
    """Return the fields of a schema's members, and one more for others if it allows them by itself."""
    members = schema.get("properties")
    members = members if isinstance(members, dict) else {}
    required = schema.get("required")
    needed = set(required) if isinstance(required, list) else set()
    found = [_field_of(name, each, name in needed, schema) for name, each in members.items()]
    others = schema.get("additionalProperties", not members)
    if others is not False:
        found.append(Field("", OTHERS, JSON, {}, False))
    return found


def _field_of(name: str, declared: Any, is_required: bool, root: Mapping[str, Any]) -> Field:
    schema = _plain(declared, root)
    key = visible_name(name)
    values = [schema["const"]] if "const" in schema else schema.get("enum")
    if isinstance(values, list) and 0 < len(values) <= LONGEST_CHOICES:
        return Field(name, key, CHOICE, schema, is_required, tuple(map(written, values)))
    kind = schema.get("type")
    return Field(name, key, KINDS.get(kind, JSON) if isinstance(kind, str) else JSON, schema, is_required)


def _plain(declared: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a schema of a member says about its value: where it refers to, without null beside another
    type; what it says of itself counts before that."""
    schema = declared if isinstance(declared, dict) else {}
    for _ in range(MOST_STEPS):
        others = {key: each for key, each in schema.items() if key not in ("$ref", "anyOf", "allOf")}
        target: Any = None
        if isinstance(schema.get("$ref"), str):
            target = _at(root, schema["$ref"])
        else:
            for key in ("anyOf", "allOf"):
                found = schema.get(key)
                if isinstance(found, list):
                    kinds = [each for each in found if each != {"type": "null"}]
                    target = kinds[0] if len(kinds) == 1 else None
        if isinstance(schema.get("type"), list):
            kinds = [each for each in schema["type"] if each != "null"]
            return {**schema, "type": kinds[0]} if len(kinds) == 1 else schema
        if not isinstance(target, dict):
            return schema
        schema = {**target, **others}
    return {}


def _at(root: Any, reference: str) -> Any:
    """Return what a reference within a schema (``#/$defs/Size``) leads to."""
    if not reference.startswith("#/"):
        return None
    for step in reference[2:].split("/"):
        step = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(root, Mapping) or step not in root:
            return None
        root = root[step]
    return root


# --- what was typed -----------------------------------------------------------------------------------------


def read(fields: list[Field], typed: Mapping[str, str], say: Say) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the arguments, and what is wrong, by the key of the field. Empty fields that are not required
    are left out."""
    arguments: dict[str, Any] = {}
    mistakes: dict[str, str] = {}
    for each in fields:
        text = typed.get(each.key, "")
        if text == "" and not each.is_required:
            continue
        try:
            if each.key == OTHERS:
                arguments |= _others(text, fields, say)
            else:
                arguments[each.name] = _value(each, text, say)
        except Mistake as mistake:
            mistakes[each.key] = str(mistake)
    return arguments, mistakes


def _value(field: Field, text: str, say: Say) -> Any:
    if text == "" and field.kind != TEXT:
        raise Mistake(say("This is required."))
    if field.kind == TEXT:
        value: Any = text.replace("\r\n", "\n")
    elif field.kind == CHOICE:
        if text not in field.choices:
            raise Mistake(say("Choose one of the values."))
        value = json.loads(text)
    elif field.kind == BOOLEAN:
        if text not in ("true", "false"):
            raise Mistake(say("Choose one of the values."))
        value = text == "true"
    else:
        value = value_of(text.strip(), say) if field.kind == JSON else _number(field.kind, text.strip(), say)
    _check_type(value, field.schema, say)
    _check_bounds(value, field.schema, say)
    return value


def _number(kind: str, text: str, say: Say) -> int | float:
    try:
        value = value_of(text, say)
    except Mistake:
        value = None
    if type(value) is float and kind == INTEGER and value.is_integer():
        value = int(value)
    if type(value) is not int and not (type(value) is float and kind == NUMBER):
        raise Mistake(say(WHOLE if kind == INTEGER else ANY_NUMBER))
    return value


def value_of(text: str, say: Say) -> Any:
    """Return the value of a JSON text: one that JSON and UTF-8 can write again, so neither infinite numbers
    nor half surrogates, of at most `MOST_LEVELS`, so that pages can show it. Raises Mistake."""
    try:
        value = json.loads(text, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        raise Mistake(say("expected JSON: {error}", error="too many levels")) from None
    except UnicodeEncodeError:
        raise Mistake(say("expected JSON: {error}", error="half of a surrogate pair")) from None
    except ValueError as error:
        raise Mistake(say("expected JSON: {error}", error=error)) from None
    if _is_deeper(value, MOST_LEVELS):
        raise Mistake(say("expected JSON: {error}", error="too many levels"))
    return value


def _is_deeper(tree: Any, levels: int) -> bool:
    if not isinstance(tree, (dict, list)):
        return False
    return not levels or any(
        _is_deeper(each, levels - 1) for each in (tree.values() if isinstance(tree, dict) else tree)
    )


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _others(text: str, fields: list[Field], say: Say) -> dict[str, Any]:
    value = value_of(text.strip(), say)
    if not isinstance(value, dict):
        raise Mistake(say("expected a JSON object"))
    if any(each.name in value for each in fields if each.key != OTHERS):
        raise Mistake(say("One of these has a separate field: leave it out here."))
    return value


JSON_TYPES: dict[str, tuple[type, ...]] = {
    "array": (list,),
    "object": (dict,),
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
}


def _check_type(value: Any, schema: Mapping[str, Any], say: Say) -> None:
    wanted = schema.get("type")
    names = [wanted] if isinstance(wanted, str) else wanted if isinstance(wanted, list) else []
    kinds = [JSON_TYPES[each] for each in names if isinstance(each, str) and each in JSON_TYPES]
    if not kinds or any(type(value) in each for each in kinds):
        return
    raise Mistake(say("expected JSON of the type {types}", types=", ".join(map(str, names))))


def _check_bounds(value: Any, schema: Mapping[str, Any], say: Say) -> None:
    if type(value) in (int, float):
        for key, (text, fits) in BOUNDS.items():
            limit: Any = schema.get(key)
            if type(limit) in (int, float) and not fits(value, limit):
                raise Mistake(say(text, limit=limit))
    if isinstance(value, (str, list)):
        least, most = ("minLength", "maxLength") if isinstance(value, str) else ("minItems", "maxItems")
        if type(limit := schema.get(least)) is int and len(value) < limit:
            raise Mistake(
                say("expected at least {limit} of them, got {count}", limit=limit, count=len(value))
            )
        if type(limit := schema.get(most)) is int and len(value) > limit:
            raise Mistake(say("expected at most {limit} of them, got {count}", limit=limit, count=len(value)))


def placed(problem: str, fields: list[Field]) -> dict[str, str]:
    """Return what a tool says about its arguments, by the keys of the fields that it names: problems are
    ``NAME: …`` or ``$.NAME.member: …``, separated by semicolons (`fastrpc.schema`)."""
    found = {}
    for part in problem.split("; "):
        for each in fields:
            inside = part.startswith((f"$.{each.name}.", f"$.{each.name}[", f"$.{each.name}:"))
            if each.name and (part.startswith(f"{each.name}: ") or inside):
                found[each.key] = visible_name(part.removeprefix(f"{each.name}: "))
    return found

"""JSON as people write it, with comments and trailing commas: parses it, and changes one member of it.

`parse` reads a text. `put` and `take` return a text with one member changed; order, indentation and comments
remain. No file access. Takes time linear in the length of the text.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from fastrpc.errors import FastrpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

GAP = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
PLAIN = re.compile(r"-?[0-9][0-9.eE+-]*|true|false|null")
DEEPEST = 100


class NotJson(FastrpcError):
    """The text is not JSON, not even with comments. The message states the position."""


@dataclass
class TextValue:
    """A value and its position in the text. `members` is None except for objects."""

    begin: int
    end: int
    plain: Any
    members: dict[str, TextMember] | None = None


@dataclass
class TextMember:
    """A member of an object: the positions of its key and of the comma after it, and its value."""

    begin: int
    value: TextValue
    comma: int | None = None


def parse(text: str) -> TextValue:
    """Return the value of a text. Raises NotJson."""
    begin = _gap(text, 0)
    value = _value(text, begin, 0)
    end = _gap(text, value.end)
    if end < len(text):
        raise _broken(text, end, "the end")
    return value


def put(text: str, section: str, name: str, value: Any) -> str:
    """Return the text with ``{section: {name: value}}`` in it. Raises NotJson."""
    text = text if text.strip("\ufeff \t\r\n") else "{}\n"
    root = _object(parse(text), "the file")
    first = next(iter(root.values()), None)
    unit = (_indent(text, first.begin) if first is not None else "") or "  "
    if section not in root:
        return _add(text, parse(text), section, {name: value}, unit)
    found = root[section].value
    members = _object(found, section)
    if name not in members:
        return _add(text, found, name, value, unit)
    member = members[name]
    shown = _dump(value, unit, _indent(text, member.begin))
    return text[: member.value.begin] + shown + text[member.value.end :]


def take(text: str, section: str, name: str) -> str:
    """Return the text without ``{section: {name: …}}``. Raises NotJson."""
    root = _object(parse(text), "the file")
    members = _object(root[section].value, section) if section in root else {}
    if name not in members:
        return text
    names = list(members)
    member = members[name]
    begin, end = member.begin, member.value.end if member.comma is None else member.comma + 1
    line = text.rfind("\n", 0, begin) + 1
    rest = re.compile(r"[ \t]*\r?\n").match(text, end)
    if not text[line:begin].strip() and rest:  # the member has whole lines
        begin, end = line, rest.end()
    text = text[:begin] + text[end:]
    before = members[names[names.index(name) - 1]] if names[0] != name else None
    if member.comma is None and before is not None and before.comma is not None:
        text = text[: before.comma] + text[before.comma + 1 :]  # it was the last member
    return text


# --- reading ----------------------------------------------------------------------------------------------


def _value(text: str, at: int, depth: int) -> TextValue:
    if depth > DEEPEST:
        raise _broken(text, at, f"at most {DEEPEST} levels")
    if text.startswith("{", at):
        return _read_object(text, at, depth)
    if text.startswith("[", at):
        return _read_list(text, at, depth)
    match = STRING.match(text, at) or PLAIN.match(text, at)
    try:
        if match is not None:
            return TextValue(at, match.end(), json.loads(match[0]))
    except ValueError:  # an invalid number or string
        pass
    raise _broken(text, at, "a value")


def _read_object(text: str, begin: int, depth: int) -> TextValue:
    members: dict[str, TextMember] = {}
    at = _gap(text, begin + 1)
    while not text.startswith("}", at):
        key = STRING.match(text, at)
        if key is None:
            raise _broken(text, at, 'a key or "}"')
        colon = _gap(text, key.end())
        if not text.startswith(":", colon):
            raise _broken(text, colon, '":"')
        member = TextMember(at, _value(text, _gap(text, colon + 1), depth + 1))
        members[str(json.loads(key[0]))] = member
        at = _gap(text, member.value.end)
        if text.startswith(",", at):
            member.comma = at
            at = _gap(text, at + 1)
        elif not text.startswith("}", at):
            raise _broken(text, at, '"," or "}"')
    return TextValue(begin, at + 1, {name: each.value.plain for name, each in members.items()}, members)


def _read_list(text: str, begin: int, depth: int) -> TextValue:
    values = []
    at = _gap(text, begin + 1)
    while not text.startswith("]", at):
        values.append(_value(text, at, depth + 1))
        at = _gap(text, values[-1].end)
        if text.startswith(",", at):
            at = _gap(text, at + 1)
        elif not text.startswith("]", at):
            raise _broken(text, at, '"," or "]"')
    return TextValue(begin, at + 1, [value.plain for value in values])


def _gap(text: str, at: int) -> int:
    """Return the position after white space and comments; a byte order mark is allowed at the beginning."""
    if at == 0 and text.startswith("\ufeff"):
        at = 1
    match = GAP.match(text, at)
    return match.end() if match else at


def _object(value: TextValue, what: str) -> dict[str, TextMember]:
    if value.members is None:
        raise NotJson(f"{what}: expected an object")
    return value.members


def _broken(text: str, at: int, expected: str) -> NotJson:
    line = text.count("\n", 0, at) + 1
    return NotJson(f"line {line}, column {at - text.rfind(chr(10), 0, at)}: expected {expected}")


# --- writing ----------------------------------------------------------------------------------------------


def _add(text: str, found: TextValue, name: str, value: Any, unit: str) -> str:
    """Return the text with one more member at the end of an object."""
    members = list((found.members or {}).values())
    key = json.dumps(name, ensure_ascii=False)
    if not members:
        outer = _indent(text, found.begin)
        inner = outer + unit
        inside = text[found.begin + 1 : found.end - 1].rstrip()  # may be a comment
        added = f"{{{inside}\n{inner}{key}: {_dump(value, unit, inner)}\n{outer}}}"
        return text[: found.begin] + added + text[found.end :]
    last = members[-1]
    indent = _indent(text, last.begin)
    comma, more = ("", ",") if last.comma is not None else (",", "")
    at = len(text[: found.end - 1].rstrip())  # after comments
    added = f"\n{indent}{key}: {_dump(value, unit, indent)}{more}"
    end = "" if "\n" in text[at : found.end] else "\n" + _indent(text, found.begin)
    return f"{text[: last.value.end]}{comma}{text[last.value.end : at]}{added}{end}{text[at:]}"


def _dump(value: Any, unit: str, indent: str) -> str:
    return json.dumps(value, ensure_ascii=False, indent=unit).replace("\n", "\n" + indent)


def _indent(text: str, at: int) -> str:
    """Return the indentation of the line that contains a position."""
    line = text[text.rfind("\n", 0, at) + 1 : at].lstrip("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]

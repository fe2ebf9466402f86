"""How OpenAPI writes arrays and objects into URLs, headers and forms (OpenAPI 3.0 and 3.1, 4.8.12.4: style).

Every style with and without ``explode``. What RFC 6570 calls undefined is left out: null, and an array or an
object that is empty. No I/O.
"""

from __future__ import annotations

from urllib.parse import quote

from fastrpc.json_encoding import to_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DELIMITERS = {"spaceDelimited": " ", "pipeDelimited": "|"}
LEADS = {"label": ".", "matrix": ";"}


def text_of(value: Any) -> str:
    """Return a value as a text: a str as it is, anything else as its JSON."""
    return value if isinstance(value, str) else to_json(value).decode()


def pairs_of(
    name: str, value: Any, style: str, explode: bool, written: Callable[[str], str] = str
) -> list[tuple[str, str]]:
    """Return the pairs of a parameter in a query or a cookie, or of a member of a form. `written` is called
    with each text, so that a comma in one is not one between two."""
    if isinstance(value, dict) and style == "deepObject":
        return [
            (f"{name}[{key}]", written(text_of(each)))
            for key, values in _members(value)
            for each in items_of(values)
        ]
    if isinstance(value, dict) and explode:
        return [(key, written(text_of(each))) for key, each in _members(value)]
    parts = _parts(value, False, written)
    if explode or not isinstance(value, (dict, list)):
        return [(name, part) for part in parts]
    delimiter = written(DELIMITERS[style]) if style in DELIMITERS else ","
    return [(name, delimiter.join(parts))] if parts else []


def query_of(pairs: list[tuple[str, str]]) -> str:
    """Return the query of pairs whose values are written as they are in a URL."""
    return "&".join(f"{quoted(key)}={text}" for key, text in pairs)


def simple_of(value: Any, explode: bool, written: Callable[[str], str] = str) -> str:
    """Return a value in the style ``simple``, of headers and paths; `written` is called with each text."""
    return ",".join(_parts(value, explode, written))


def reserved(text: str) -> str:
    """Return a text in which characters that URIs reserve stay (`allowReserved`), but for those that would
    end the value: an argument adds no other parameter."""
    return quote(text, safe=":/?@!$'()*,;[]")


def segment_of(name: str, value: Any, style: str, explode: bool) -> str:
    """Return a value as it is put into a path, percent-encoded; "" where there is none."""
    lead = LEADS.get(style)
    parts = _parts(value, explode, quoted)
    if lead is None or not parts:
        return ",".join(parts)
    if style == "label":
        return lead + (lead if explode else ",").join(parts)
    named = quoted(name)
    if not explode or not isinstance(value, (dict, list)):
        joined = ",".join(parts)
        return f";{named}={joined}" if joined else f";{named}"
    return "".join(f";{part}" if isinstance(value, dict) else f";{named}={part}" for part in parts)


def _parts(value: Any, explode: bool, written: Callable[[str], str]) -> list[str]:
    if isinstance(value, dict):
        members = [(written(key), written(text_of(each))) for key, each in _members(value)]
        if explode:
            return [f"{key}={text}" for key, text in members]
        return [part for member in members for part in member]
    return [written(text_of(each)) for each in items_of(value)]


def _members(value: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(key, each) for key, each in value.items() if each is not None]


def items_of(value: Any) -> list[Any]:
    """Return the items of an array, or the value itself, without null."""
    return [each for each in (value if isinstance(value, list) else [value]) if each is not None]


def quoted(text: str) -> str:
    return quote(text, safe="")

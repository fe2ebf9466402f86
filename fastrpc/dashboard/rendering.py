"""Makes pages of the templates, in the folder `templates`: `environment` reads them, and escapes values."""

from __future__ import annotations

from functools import cache
from time import gmtime, strftime

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fastrpc.guard.approvals.display import ESCAPE, visible_name

PLAIN = {'\\"': '"', "\\\\": "\\", "\\t": "\t"}
"""The escapes of JSON in place of which `code` shows the characters themselves."""


@cache
def environment() -> Environment:
    """Return the template engine. A name that a template does not get is an error."""
    found = Environment(
        loader=PackageLoader("fastrpc.dashboard"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    found.filters["marked"] = marked
    found.filters["prose"] = prose
    found.filters["moment"] = moment
    found.filters["visible"] = lambda text: marked(visible_name(text))
    found.filters["plain"] = visible_name  # for attributes and titles, which have no elements
    found.filters["code"] = code
    found.filters["short"] = short
    return found


def marked(text: str) -> Markup:
    """Return a JSON text in which the escapes of characters are marked, since they would deceive
    unescaped."""
    parts, at = [], 0
    for found in ESCAPE.finditer(text):
        if found[0].startswith("\\u"):
            parts += [escape(text[at : found.start()]), Markup("<mark>"), escape(found[0]), Markup("</mark>")]
            at = found.end()
    return Markup("").join([*parts, escape(text[at:])])


def code(line: str) -> Markup:
    """Return a line as it is, with marked escapes in place of the characters that would
    deceive."""
    bare = line.lstrip(" ")
    parts, at, text = [Markup(" " * (len(line) - len(bare)))], 0, visible_name(bare)
    for found in ESCAPE.finditer(text):
        parts.append(escape(text[at : found.start()]))
        plain = PLAIN.get(found[0])
        parts.append(escape(plain) if plain else Markup("<mark>{}</mark>").format(found[0]))
        at = found.end()
    return Markup("").join([*parts, escape(text[at:])])


def prose(text: str) -> Markup:
    """Return a text of several lines that others have written, with every character visible. The style
    ``prose`` keeps its lines."""
    return Markup("\n").join(map(code, text.replace("\r\n", "\n").split("\n")))


def short(text: str, most: int) -> str:
    """Return the beginning of a name that is drawn, where there is no more room, with every character
    visible."""
    shown = visible_name(text)
    return shown if len(shown) <= most else f"{shown[: most - 1]}…"


def moment(seconds: float | None) -> str:
    """Return a time, in seconds since 1970, as a person reads it, in UTC."""
    return "" if seconds is None else strftime("%Y-%m-%d %H:%M:%S UTC", gmtime(seconds))

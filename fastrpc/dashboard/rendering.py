"""Makes pages of the templates, in the folder `templates`: `environment` reads them, and escapes values."""

from __future__ import annotations

from functools import cache
from time import gmtime, strftime

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from fastrpc.guard.approvals.display import ESCAPE, visible_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

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
    return _with_marks(text, lambda sign: None if sign.startswith("\\u") else sign)


def code(line: str) -> Markup:
    """Return a line as it is, with marked escapes in place of the characters that would deceive."""
    bare = line.lstrip(" ")
    return Markup(" " * (len(line) - len(bare))) + _with_marks(visible_name(bare), PLAIN.get)


def _with_marks(text: str, unmarked: Callable[[str], str | None]) -> Markup:
    """Return a text in which each escape is marked, or replaced by what `unmarked` returns for it."""
    parts, at = [], 0
    for found in ESCAPE.finditer(text):
        shown = unmarked(found[0])
        parts.append(escape(text[at : found.start()]))
        parts.append(Markup("<mark>{}</mark>").format(found[0]) if shown is None else escape(shown))
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

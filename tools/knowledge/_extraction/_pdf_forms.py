"""A part of the program `document_worker`: `count_of` counts how often a PDF draws its forms.

A form may draw others, each any number of times (ISO 32000-1, 8.10), so a file of 3 KB can draw 10**12. Each
form is examined once; its count is multiplied by how often the page or the enclosing form draws it.
"""

from __future__ import annotations

import io
import re

import pypdf
from pypdf.generic import StreamObject

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DRAWN_NAME = re.compile(rb"/([^\0\s/<>()\[\]{}%]*)[\0\s]+Do\b")
NAME_ESCAPE = re.compile(rb"#([0-9A-Fa-f]{2})")
DEEPEST = 100
"""Depth of nested forms; xberg follows fewer."""


def count_of(data: bytes) -> int:
    """Return how many forms all pages draw. Unreadable parts are not counted."""
    counting = Counting()
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted:
            reader.decrypt("")
        return sum(counting.drawn_by(page, None, 0) for page in reader.pages)
    except MemoryError:
        raise
    except Exception:
        return 0


class Counting:
    """The counts of a document's forms so far."""

    def __init__(self) -> None:
        self._counts: dict[int, int] = {}

    def drawn_by(self, around: Any, inherited: Any, depth: int) -> int:
        """Return how many forms a page or form draws; `inherited` are the resources that apply if it has
        none. A name that is neither a form nor a picture here counts as the form that draws most, since
        readers interpret it differently."""
        resources = _value(around, "/Resources") or inherited
        named = _value(resources, "/XObject")
        if not named or depth > DEEPEST:
            return 0
        draws = {name: self._of(_value(named, name), resources, depth) for name in named}
        most = max(draws.values())
        if not most:
            return 0
        times: dict[bytes, int] = {}
        for name in DRAWN_NAME.findall(_content(around)):
            times[name] = times.get(name, 0) + 1
        return sum(count * draws.get(_name(name), most) for name, count in times.items())

    def _of(self, form: Any, resources: Any, depth: int) -> int:
        """Return 1 for a form, plus what it draws; 0 for one that is within itself, and for a picture."""
        if not isinstance(form, StreamObject) or form.get("/Subtype") != "/Form":
            return 0
        known = id(form)
        if known not in self._counts:
            self._counts[known] = 0
            self._counts[known] = 1 + self.drawn_by(form, resources, depth + 1)
        return self._counts[known]


def _content(around: Any) -> bytes:
    """Return the operators of a page or a form."""
    contents = around if isinstance(around, StreamObject) else around.get_contents()
    return b"" if contents is None else bytes(contents.get_data())


def _name(written: bytes) -> str:
    return "/" + NAME_ESCAPE.sub(lambda found: bytes([int(found[1], 16)]), written).decode("latin-1")


def _value(holder: Any, name: str) -> Any:
    found = None if holder is None else holder.get(name)
    return None if found is None else found.get_object()

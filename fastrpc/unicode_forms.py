"""Unicode's normal forms in time linear in the text, which `unicodedata.normalize` is not.

Python sorts the combining marks after a letter by insertion: 100 KB of marks in the wrong order take eight
seconds. Here long runs of marks are sorted beforehand; the result is canonically equivalent. Pure.
"""

from __future__ import annotations

import re
from unicodedata import combining, normalize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

SHORT = 500
"""Characters. Texts up to this length are fast in any order of marks; runs of this length are sorted."""


def normal_form(form: Literal["NFC", "NFD", "NFKC", "NFKD"], text: str) -> str:
    """Return a text in a normal form."""
    if len(text) > SHORT and not text.isascii():
        decomposed: Literal["NFD", "NFKD"] = "NFKD" if "K" in form else "NFD"
        marks = [each for each in set(text) if combining(normalize(decomposed, each)[-1])]
        if marks:
            runs = re.compile(f"[{re.escape(''.join(marks))}]{{{SHORT},}}")
            text = runs.sub(lambda run: _sorted(decomposed, run[0]), text)
    return normalize(form, text)


def _sorted(form: Literal["NFD", "NFKD"], run: str) -> str:
    """Return a run with the marks of each letter in canonical order, by their combining class."""
    parts: list[str] = []
    marks: list[str] = []
    for character in "".join([normalize(form, each) for each in run]):
        if combining(character):
            marks.append(character)
        else:
            parts += (*sorted(marks, key=combining), character)
            marks = []
    return "".join([*parts, *sorted(marks, key=combining)])

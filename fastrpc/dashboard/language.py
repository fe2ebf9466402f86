"""The languages of the pages. Texts are written in English, in the templates and pages themselves; another
language is a folder of `texts`, with a translation for each of them in the file of its page."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

TEXTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "texts")


@dataclass(frozen=True)
class Language:
    """A language by its code (BCP 47), with its own name, its direction, and its texts by the English
    ones."""

    code: str
    name: str
    direction: str = "ltr"
    texts: dict[str, str] = field(default_factory=dict)

    def text(self, english: str, **values: Any) -> str:
        """Return a text in this language, with `values` for the names in braces."""
        found = self.texts.get(english, english)
        return found.format(**values) if values else found


def _texts(code: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name in os.listdir(os.path.join(TEXTS, code)):
        with open(os.path.join(TEXTS, code, name), encoding="utf-8") as file:
            found |= json.load(file)
    return found


ENGLISH = Language("en", "English")
LANGUAGES = {"en": ENGLISH, "ar": Language("ar", "العربية", "rtl", _texts("ar"))}


def language_of(accepted: str) -> Language:
    """Return the first language of an Accept-Language header that there is, or English."""
    for each in accepted[:500].split(","):
        code = each.split(";")[0].strip().lower().partition("-")[0]
        if code in LANGUAGES:
            return LANGUAGES[code]
    return ENGLISH

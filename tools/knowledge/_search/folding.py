"""Folds a text, so that different spellings of the same word become equal. It normalizes by NFKC, case,
accents, interchangeable Arabic letters, and digits of every script.

A text and a question about it are folded in the same way. Marks that distinguish words (the vowels of Indic
scripts, the voicing of Japanese) stay.
"""

from __future__ import annotations

import re
import unicodedata

from fastrpc.unicode_forms import normal_form

ACCENTS = "\u0300-\u036f"
ARABIC_MARKS = "\u0610-\u061a\u064b-\u065f\u0670\u06d6-\u06dc\u06df-\u06e8\u06ea-\u06ed"
HEBREW_POINTS = "\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7"
_MARKS = re.compile(
    f"(?<=[a-z\u0370-\u03ff\u1d00-\u1eff])[{ACCENTS}]+|[{ARABIC_MARKS}{HEBREW_POINTS}\u0640]+"
)
_LETTERS = {
    **dict.fromkeys("أإآٱٲٳ", "ا"),
    "ؤ": "و",
    "ئ": "ي",
    "ى": "ي",
    "ی": "ي",
    "ة": "ه",
    "ک": "ك",
    "ё": "е",
    "ß": "ss",
    "æ": "ae",
    "œ": "oe",
    "ø": "o",
    "đ": "d",
    "ł": "l",
    "ı": "i",
    "ς": "σ",
    "’": "'",
}
_LETTER = re.compile(f"[{''.join(_LETTERS)}]")
_DIGIT = re.compile(r"[^\D0-9]")


def folded(text: str) -> str:
    """Return a text in its indexed form. Folding is idempotent."""
    if text.isascii():
        return text.lower()
    text = _LETTER.sub(_plain_letter, normal_form("NFKC", text).casefold())
    text = _MARKS.sub("", normal_form("NFD", text))
    text = _LETTER.sub(_plain_letter, normal_form("NFKC", text))
    return _DIGIT.sub(_plain_digit, text)


def _plain_letter(found: re.Match[str]) -> str:
    return _LETTERS[found[0]]


def _plain_digit(found: re.Match[str]) -> str:
    return str(unicodedata.decimal(found[0]))

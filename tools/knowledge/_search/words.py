"""The terms of a text: the folded words, and the stem of each.

A stem depends on the word alone, never on its text, so that a word always finds itself. The script selects
the stemming rules (Snowball's, by PyStemmer). Writing without spaces, or with endings that no rule removes,
is indexed by character: Chinese, Japanese, Korean, Thai and similar. So a word of one or two characters is
found too, and a longer one by the order of its characters.
"""

from __future__ import annotations

import re
from threading import local

from .folding import folded

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

SINGLES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Myanmar, Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff"  # radicals, kana
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # ideographs
    "\u1100-\u11ff\u3130-\u318f\uac00-\ud7a3"  # Hangul
)
INDIC = "\u0900-\u0963\u0966-\u0dff"  # whose vowels are marks, which `re` does not count as word characters
WORD = re.compile(f"[{SINGLES}]+|(?:(?![{SINGLES}])[^\\W_]|[{INDIC}\u0300-\u036f])+")
_SCRIPTS = (
    (re.compile("[a-z]"), "english"),
    (re.compile("[\u0600-\u06ff]"), "arabic"),
    (re.compile("[\u0400-\u04ff]"), "russian"),
    (re.compile("[\u0370-\u03ff]"), "greek"),
    (re.compile("[\u0900-\u097f]"), "hindi"),
    (re.compile("[\u0b80-\u0bff]"), "tamil"),
    (re.compile("[\u0530-\u058f]"), "armenian"),
)
_SINGLE = re.compile(f"[{SINGLES}]")
_ASCII_WORD = re.compile("[a-z0-9]+")
LONGEST = 64
"""Characters of a term; a longer one is not a word, and is cut."""
_stemmers = local()


def words_of(text: str) -> Iterator[str]:
    """Yield the words of a folded text, cut to the indexed length; a run of characters without spaces is
    one."""
    for found in WORD.finditer(text):
        word = found[0]
        yield word if len(word) <= LONGEST or is_run(word) else word[:LONGEST]


def is_run(word: str) -> bool:
    """Whether a word is indexed character by character."""
    return _SINGLE.match(word) is not None


def terms(text: str) -> list[str]:
    """Return the words of a text in their indexed form, in their order."""
    text = folded(text)
    if text.isascii():
        return [word[:LONGEST] for word in _ASCII_WORD.findall(text)]
    found: list[str] = []
    for word in words_of(text):
        if is_run(word):
            found.extend(word)
        else:
            found.append(word)
    return found


def stems(words: list[str]) -> list[str]:
    """Return the stem of each term; each word is stemmed once."""
    each = set(words)
    plain = [word for word in each if word.isascii()]
    known = {word: stem(word) for word in each.difference(plain)}
    if plain:
        known.update(zip(plain, _stemmer("english").stemWords(plain), strict=True))
    return [known[word] for word in words]


def stem(word: str) -> str:
    """Return the stem of a term, by the rules of its script's language; without rules, the term itself."""
    for script, language in _SCRIPTS:
        if script.search(word):
            stemmed: str = _stemmer(language).stemWord(word)
            return stemmed or word
    return word


def _stemmer(language: str) -> Any:
    """Return the stemmer of this thread: two threads must not use one at once."""
    kept: dict[str, Any] = _stemmers.__dict__
    found = kept.get(language)
    if found is None:
        try:
            import Stemmer
        except ImportError:
            from fastrpc.storage import LibraryMissing

            raise LibraryMissing("memory", "PyStemmer", "knowledge") from None
        found = kept[language] = Stemmer.Stemmer(language)
    return found

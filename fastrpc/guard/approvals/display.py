"""How arguments are shown to whoever is asked: as JSON in which every character can be seen.

A caller chooses the characters, and so may try to show something else than what would run. Escaped, as JSON
escapes them, are characters that cannot be seen or that move what stands beside them (control characters,
those that turn the direction of a text, fillers, variation selectors), letters that look like others (of
another alphabet in a Latin word, full-width and mathematical ones), accents that stand apart from their
letter, letters from right to left beside Latin ones, which a terminal would put in another order, and runs of
spaces, which push what follows out of sight. Two texts that differ look different. Secrets are masked as
`fastrpc.guard.shell.masking` does, which hides nothing that runs. Nothing is cut: who shows a part says so.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise
from unicodedata import bidirectional, category, name, normalize

from fastrpc.guard.shell.masking import masked_literals, masked_member
from fastrpc.unicode_forms import normal_form

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Python counts as printable, and that show nothing."""
LONG_SPACE = re.compile("(?<= {8}) +")
WORD = re.compile(r"\w+")
ESCAPE = re.compile(r"\\(?:u....|.)")
LATIN_LOOK = frozenset(
    "\u0430\u0441\u0435\u043e\u0440\u0445\u0443\u0455\u0456\u0458\u04bb\u04cf\u0501\u051b\u051d\u0475"
    "\u0410\u0412\u0421\u0415\u041d\u041a\u041c\u041e\u0420\u0422\u0425\u0423\u0405\u0406\u0408\u04ae"
    "\u03b1\u03b9\u03ba\u03bd\u03bf\u03c1\u03c4\u03c5\u03c7\u03b3\u03c9"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7"
    "\u0578\u057d\u0581\u0585\u0566\u0570\u13a0\u13a1\u13a2\u13a9\u13aa\u13ab\u13ac\u13b3\u13b7\u13bb\u13c0"
)
"""Cyrillic, Greek, Armenian and Cherokee letters that look like Latin ones."""
RIGHT_TO_LEFT = frozenset(("R", "AL", "AN"))
SIGNS_LIKE = frozenset(
    "\u2010\u2011\u2012\u2013\u2212\u2044\u2215\u2216\u2223\u2236\u037e\u02d0\u05c3\u0589\ua789"
)
"""Signs that look like the hyphen, slash, backslash, bar, colon and semicolon of ASCII."""


def masked_tree(tree: Any, of: str = "") -> Any:
    """Return a tree of `canonical` with secrets masked; `of` is the name that it has."""
    if isinstance(tree, str):
        return masked_member(of, tree)
    if isinstance(tree, list):
        return [
            masked_member(of, each, is_element=True) if isinstance(each, str) else masked_tree(each)
            for each in tree
        ]
    if isinstance(tree, dict):
        if "$object" in tree:
            return {"$object": [_masked_pair(*pair) for pair in tree["$object"]]}
        keys = {key: masked_literals(key) for key in tree}
        is_clear = len(set(keys.values())) == len(keys)
        carries = "$type" in tree  # what has a type of its own: its value is that of the name
        return {
            keys[key] if is_clear else key: masked_tree(each, of if carries and key == "value" else key)
            for key, each in tree.items()
        }
    return tree


def _masked_pair(key: Any, value: Any) -> list[Any]:
    return [masked_tree(key), masked_tree(value, key if isinstance(key, str) else "")]


def written(tree: Any, indent: int = 0, margin: str = "\n") -> str:
    """Return a tree as JSON in which every character can be seen; with `indent` on lines of their own, where
    a string of several lines is several strings, one below the other."""
    if isinstance(tree, str):
        text = visible(json.dumps(tree, ensure_ascii=False))
        if not indent:
            return text
        inside = text[1:-1]
        cuts = [0, *(found.end() for found in ESCAPE.finditer(inside) if found[0] == r"\n"), len(inside)]
        lines = [inside[start:end] for start, end in pairwise(cuts) if start < end]
        return f"{margin}  ".join(f'"{line}"' for line in lines) if len(lines) > 1 else text
    if not isinstance(tree, (dict, list)):
        return json.dumps(tree)
    inner = margin + " " * indent
    if isinstance(tree, dict):
        parts = [f"{written(key)}: {written(each, indent, inner)}" for key, each in tree.items()]
    else:
        parts = [written(each, indent, inner) for each in tree]
    first, last = "{}" if isinstance(tree, dict) else "[]"
    if not indent or not parts:
        return f"{first}{', '.join(parts)}{last}"
    return f"{first}{inner}{f',{inner}'.join(parts)}{margin}{last}"


def visible_name(text: str) -> str:
    """Return a name that a caller may have chosen, on one line, as it stands within a JSON text."""
    return visible(json.dumps(text, ensure_ascii=False)[1:-1])


def visible(text: str) -> str:
    """Return the JSON of one string, on one line, with all characters escaped that do not show what they
    are."""
    if "         " in text:
        text = LONG_SPACE.sub(lambda run: "\\u0020" * len(run[0]), text)
    if text.isascii() and text.isprintable():
        return text
    characters = set(text)
    hidden = {each for each in characters if not each.isprintable() or (each > "~" and _deceives(each))}
    has_latin = any(map(_is_latin, ESCAPE.sub("", text)))
    if has_latin:
        hidden |= {each for each in characters if bidirectional(each) in RIGHT_TO_LEFT}
    if normal_form("NFC", text) != text:
        hidden |= {each for each in characters if _is_part(each)}
    if not LATIN_LOOK.isdisjoint(characters):
        words = WORD.findall(text)
        if has_latin or all(map(_may_be_latin, words)):
            text = WORD.sub(_plain_word, text)
    return "".join(_escaped(each) if each in hidden else each for each in text)


def _deceives(each: str) -> bool:
    """Whether a character looks like nothing, or like one of ASCII."""
    if INVISIBLE.match(each) or each in SIGNS_LIKE:
        return True
    plain = normalize("NFKC", each)
    return plain != each and plain.isascii() and category(each)[0] in "LNS"


def _is_part(each: str) -> bool:
    """Whether a character may be written otherwise, or be one part of another: an accent, a part of a
    syllable."""
    return category(each) in ("Mn", "Me") or normalize("NFC", each) != each or "\u1100" <= each <= "\u11ff"


def _is_latin(each: str) -> bool:
    return each.isalpha() and (each.isascii() or name(each, "").startswith("LATIN"))


def _plain_word(found: re.Match[str]) -> str:
    """Return a word, with those letters escaped that look like Latin ones if it may be taken for such a
    word."""
    word = found[0]
    if not _may_be_latin(word):
        return word
    return "".join(_escaped(each) if each in LATIN_LOOK else each for each in word)


def _may_be_latin(word: str) -> bool:
    """Whether some letters of a word are Latin, or all only look like it."""
    others = [each for each in word if each.isalpha() and each not in LATIN_LOOK]
    return not others or any(map(_is_latin, others))


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]

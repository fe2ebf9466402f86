"""Shows arguments to approvers: as JSON in which every character is visible.

A caller chooses the characters, and may try to hide what would run. JSON escapes replace:

* characters that are invisible or move their neighbours: control characters, bidirectional controls, fillers,
  variation selectors;
* characters that may look like one of ASCII: letters of another script in a word with Latin ones (UTS #39),
  except those of double width; a word of letters that look Latin, in a text with Latin ones; letters of
  rarely used scripts, and Latin letters of no language; digits of other scripts beside Latin letters; signs
  that ordinary texts do not contain; and, in a text that may be code, every sign that is not ASCII;
* letters of scripts that look alike (Cyrillic, Greek, Armenian) in one word: those of the rarer script;
* accents that are separate from their letter, that strike it through or enclose it, of rarely used scripts,
  and every one after the fourth of a letter, which would cover other lines;
* right-to-left letters beside Latin ones, which a terminal would reorder; and runs of spaces, which push the
  following text out of sight.

Two different texts look different. Secrets are masked by `fastrpc.guard.shell.masking`, which hides nothing
that runs. Nothing is truncated here: code that shows only a part states that.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from itertools import pairwise
from typing import Any
from unicodedata import bidirectional, category, east_asian_width, name, normalize

from fastrpc.guard.shell.masking import masked_literals, masked_member
from fastrpc.unicode_forms import normal_form

INVISIBLE = re.compile(
    "[\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Characters that Python counts as printable, but that are invisible."""
LONG_SPACE = re.compile("(?<= {8}) +")
WORD = re.compile(r"\w+")
ESCAPE = re.compile(r"\\(?:u....|.)")
ESCAPE_OR_WORD = re.compile(rf"{ESCAPE.pattern}|{WORD.pattern}")
MAY_RUN = re.compile(r"[;|&$`<>{}=]|\\\\|(?<![^\s\"'])--?\w")
"""Signs that ordinary sentences do not contain: a text with one may be code, in which each sign matters."""
EVERYDAY = (
    "ARABIC ARMENIAN BENGALI BOPOMOFO CJK CYRILLIC DEVANAGARI ETHIOPIC GEORGIAN GREEK GUJARATI GURMUKHI "
    "HANGUL HEBREW HIRAGANA KANNADA KATAKANA KHMER LAO LATIN MALAYALAM MYANMAR ORIYA SINHALA TAMIL TELUGU "
    "THAANA THAI TIBETAN YI"
)
SCRIPTS = frozenset(EVERYDAY.split())
"""The scripts that are in everyday use (Unicode, UAX #31, table 5), and Yi, which looks like no other."""
OWN_LETTERS = frozenset("ßæøœðþłđħŋŧəɛɔɓɗƙƴɖƒµẞÆØŒÐÞŁĐĦŊŦƏƐƆƁƊƘƳƉ")
"""Latin letters of languages that are not an ASCII letter with a mark. All others are for phonetics and the
like, except the dotless i, which is treated as one of these in a text that is not code."""
DOTLESS = "\u0131"
LATIN_LOOK = frozenset(
    "\u0430\u0431\u0433\u0441\u0435\u043e\u0440\u0445\u0443\u0455\u0456\u0458\u0461\u0475\u04af\u04bb\u04bd"
    "\u04cf\u0501\u051b\u051d\ua647\u0410\u0412\u0417\u0421\u0415\u041d\u041a\u041c\u041e\u0420\u0422\u0425"
    "\u0423\u042c\u0405\u0406\u0408\u0474\u04ae\u04c0\u04e0\u050c\u051c\ua644"
    "\u03b1\u03b3\u03b9\u03ba\u03bd\u03bf\u03c1\u03c3\u03c4\u03c5\u03c7\u03c9\u03f2\u03f3\u1d26"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7\u037f\u03dc\u03f9\u03fa"
    "\u0561\u0563\u0566\u0570\u0578\u057c\u057d\u0581\u0584\u0585\u054d\u054f\u0555"
    "\u097d\u0b20\u0d20\u101d\u10e7\u10ff\u1200\u12d0"
)
"""Letters of everyday scripts that look like Latin ones, or a sign or digit of ASCII."""
ALIKE_SCRIPTS = frozenset(("CYRILLIC", "GREEK", "ARMENIAN"))
"""Scripts with letters that look like each other's. Words with Latin letters have a rule for all scripts."""
STRIKING = frozenset("\u0334\u0335\u0336\u0337\u0338\u20d2\u20d3\u20d8\u20d9\u20da\u20e5\u20e6\u20ea\u20eb")
"""Marks that strike their letter through."""
MOST_MARKS = 4
"""Marks of a letter: no language has more, and many cover the lines above and below."""
RIGHT_TO_LEFT = frozenset(("R", "AL", "AN"))
SIGNS_LIKE = frozenset(
    "\u2010\u2011\u2012\u2013\u2212\u2044\u2215\u2216\u2223\u2236\u037e\u02d0\u05c3\u0589\ua789"
)
"""Signs that look like the hyphen, slash, backslash, bar, colon and semicolon of ASCII."""
PROSE = frozenset("‘’“”„«»—…·•¿¡§¶†‡‰×÷±°¬≤≥≠≈∞√∑∏∫∈∀∃ʻʼ")
"""Signs and letters like signs that ordinary texts have."""
SYMBOLS_LIKE = (
    *("ALCHEMICAL", "APL", "BOX", "CANADIAN", "CJK STROKE", "ESTIMATED", "GREEK", "HALFWIDTH", "HEAVY"),
    *("KANGXI", "MUSICAL", "POWER"),
)
"""Beginnings of the names of signs, no letters or pictures, that may look like an ASCII sign."""
BETWEEN_LETTERS = re.compile(r"(?<=[A-Za-z])[×·•](?=[A-Za-z])")
BEYOND_ASCII = re.compile("[^\x00-\u10ff]+")
"""A possible run of characters of double width, with others among them."""
STROKES = re.compile(
    r"(?<![\u1100-\uffff])[\u4e00\u4e28\u4e36\u4e3f\u4e59\u4e85\u30ce\u30fc\u30fd\u3007\u3033]+(?![\u1100-\uffff])"
)
"""Letters of double width that look like an ASCII sign if they occur alone."""


def masked_tree(tree: Any, of: str = "") -> Any:
    """Return a tree of `canonical` with secrets masked; `of` is the name of its member or argument."""
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
        carries = "$type" in tree  # a typed value: `of` is the name of its value, too
        return {
            keys[key] if is_clear else key: masked_tree(each, of if carries and key == "value" else key)
            for key, each in tree.items()
        }
    return tree


def _masked_pair(key: Any, value: Any) -> list[Any]:
    return [masked_tree(key), masked_tree(value, key if isinstance(key, str) else "")]


def written(tree: Any, indent: int = 0, margin: str = "\n") -> str:
    """Return a tree as JSON in which every character is visible. With `indent`, members are on separate
    lines, and a string of several lines is written as several strings, one below the other."""
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
    """Return a name that a caller may have chosen, on one line, escaped as in a JSON text."""
    return visible(json.dumps(text, ensure_ascii=False)[1:-1])


def visible(text: str) -> str:
    """Return the JSON of one string, on one line, with all deceptive characters escaped."""
    if "         " in text:
        text = LONG_SPACE.sub(lambda run: "\\u0020" * len(run[0]), text)
    if text.isascii() and text.isprintable():
        return text
    characters = set(text)
    bare = ESCAPE.sub(" ", text)
    scripts = {_script(each) for each in characters if each.isalpha() and category(each) != "Lm"}
    is_code = MAY_RUN.search(bare) is not None
    hidden = {each for each in characters if not each.isprintable()}
    hidden |= {each for each in characters if each > "~" and _deceives(each, scripts, is_code)}
    if normal_form("NFC", text) != text:
        hidden |= {each for each in characters if _is_part(each)}
    text = _plain_words(text, bare, "LATIN" in scripts)
    return "".join(_escaped(each) if each in hidden else each for each in text)


def _deceives(each: str, scripts: set[str], is_code: bool) -> bool:
    """Whether a character is invisible or looks like one of ASCII, at least in a text with letters of these
    scripts."""
    kind, has_latin = category(each), "LATIN" in scripts
    if INVISIBLE.match(each) or each in SIGNS_LIKE or (has_latin and bidirectional(each) in RIGHT_TO_LEFT):
        return True
    plain = normalize("NFKC", each)
    if plain != each and (plain.isascii() or plain in LATIN_LOOK) and kind[0] in "LNS":
        return True
    if kind[0] in "PS" or kind == "Lm":
        return _is_odd_sign(each, kind, scripts, is_code)
    if kind[0] == "N":
        return has_latin
    return kind[0] == "L" and (_is_uncommon(each) or (is_code and each == DOTLESS))


def _is_odd_sign(each: str, kind: str, scripts: set[str], is_code: bool) -> bool:
    """Whether a sign that is not ASCII may look like one of ASCII. Pictures do not, nor do signs of double
    width beside letters of that width (`_plain_words`)."""
    if name(each, "").startswith(SYMBOLS_LIKE):
        return True
    if east_asian_width(each) in "WF":
        return False
    if is_code:
        return True
    is_known = each in PROSE or kind in ("Sc", "So") or (kind == "Sm" and "ARROW" in name(each, ""))
    return not is_known and _script(each) not in scripts


def _is_uncommon(letter: str) -> bool:
    """Whether a letter is of a script that few people can read, or a Latin letter of no language."""
    if letter in OWN_LETTERS or letter == DOTLESS:
        return False
    if _is_latin(letter):
        return not normalize("NFD", letter)[0].isascii()
    return _script(letter) not in SCRIPTS


def _script(letter: str) -> str:
    """Return the script of a letter: the beginning of its name."""
    if letter.isascii():
        return "LATIN"
    return name(letter, "").replace("-", " ").partition(" ")[0]


def _is_part(each: str) -> bool:
    """Whether a character has another encoding, or may be part of another character: an accent, a part of a
    syllable."""
    return category(each) in ("Mn", "Me") or normalize("NFC", each) != each or "\u1100" <= each <= "\u11ff"


def _is_latin(each: str) -> bool:
    return each.isalpha() and (each.isascii() or name(each, "").startswith("LATIN"))


def _plain_words(text: str, bare: str, has_latin: bool) -> str:
    """Return a text in which characters are escaped that look like others in their context. `bare` is the
    text without its escapes."""
    if has_latin:
        text = STROKES.sub(lambda run: "".join(map(_escaped, run[0])), text)
        text = BETWEEN_LETTERS.sub(lambda sign: _escaped(sign[0]), text)
    text = BEYOND_ASCII.sub(lambda run: _beside_wide_letters(run[0]), text)
    if has_latin or all(map(_looks_latin, WORD.findall(bare))):
        text = ESCAPE_OR_WORD.sub(lambda found: _plain_word(found[0]), text)
    if len(ALIKE_SCRIPTS & {_script(each) for each in set(text) if each > "~"}) > 1:
        text = ESCAPE_OR_WORD.sub(lambda found: _of_one_script(found[0]), text)
    base, marks, found = "", 0, []
    for each in text:
        if each > "~" and category(each)[0] == "M":
            marks += 1
            is_on_letter = base >= "\x80" and category(base)[0] == "L"
            is_shown = is_on_letter and marks <= MOST_MARKS and _is_common_mark(each)
            found.append(each if is_shown else _escaped(each))
        else:
            found.append(each)
            base, marks = each, 0
    return "".join(found)


def _is_common_mark(mark: str) -> bool:
    """Whether a mark is of a script in everyday use, and leaves its letter to be seen."""
    return mark not in STRIKING and category(mark) != "Me" and _script(mark) in (*SCRIPTS, "COMBINING")


def _of_one_script(word: str) -> str:
    """Return a word of letters of scripts that look alike, with those of the rarer scripts escaped."""
    counts = Counter(_script(each) for each in word if each > "~" and each.isalpha())
    if len(counts.keys() & ALIKE_SCRIPTS) < 2:
        return word
    own = max(counts, key=lambda script: counts[script])
    return "".join(
        _escaped(each) if each > "~" and _script(each) in ALIKE_SCRIPTS - {own} else each for each in word
    )


def _beside_wide_letters(run: str) -> str:
    """Return a run of characters, with signs of double width escaped if it has no letter of that width."""
    if any(each.isalpha() and east_asian_width(each) == "W" for each in run):
        return run
    return "".join(
        _escaped(each) if east_asian_width(each) in "WF" and category(each)[0] == "P" else each
        for each in run
    )


def _plain_word(word: str) -> str:
    """Return a word in which letters that look Latin are escaped: all letters of another script in a word
    with Latin ones, and all letters of a word that looks Latin as a whole."""
    if word.isascii():
        return word
    if any(map(_is_latin, word)):
        return "".join(_escaped(each) if _is_mixed(each) else each for each in word)
    return "".join(map(_escaped, word)) if _looks_latin(word) else word


def _looks_latin(word: str) -> bool:
    return all(each in LATIN_LOOK for each in word if each.isalpha())


def _is_mixed(each: str) -> bool:
    """Whether a character of a word with Latin letters is of another script and not wider than these."""
    is_own = _is_latin(each) or each in OWN_LETTERS or each in PROSE
    return category(each)[0] == "L" and not is_own and east_asian_width(each) != "W"


def _escaped(character: str) -> str:
    return json.dumps(character)[1:-1]

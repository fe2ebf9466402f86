"""Makes texts of foreign pages fit for a result: one line, no control characters, bounded. Imports nothing.

Nothing else is changed. Joiners, marks of direction and combining marks stay, and so does the Unicode
normalization form (NFC or NFD): Arabic, Persian and emoji need them.
"""

from __future__ import annotations

TITLE = 150
SNIPPET = 300
LOOK_BACK = 40  # a cut may move so far to fall between two words

JOINER = "\u200d"


def plain(text: str, limit: int) -> str:
    """Return a text as one line of at most `limit` characters."""
    line = " ".join("".join(map(_character, text[: 20 * limit])).split())
    return line if len(line) <= limit else _cut(line, limit - 1) + "…"


def _character(character: str) -> str:
    if character < " " or "\x7f" <= character <= "\x9f" or character in "\u2028\u2029":
        return " "
    return "\ufffd" if "\ud800" <= character <= "\udfff" else character


def _cut(line: str, length: int) -> str:
    """Cut at a blank if one is near, else at least not within a grapheme."""
    blank = line.rfind(" ", length - LOOK_BACK, length + 1)
    if blank > 0:
        return line[:blank]
    from unicodedata import combining

    while length > 1 and (
        combining(line[length])
        or line[length] in ("\u200d", "\ufe0e", "\ufe0f")
        or "\U0001f3fb" <= line[length] <= "\U0001f3ff"
        or line[length - 1] == JOINER
    ):
        length -= 1
    return line[:length]

"""Texts on a terminal: escaped, measured in columns, wrapped, cut, and styled. No I/O.

Every text of another program passes `plain` before it is written: it might contain escape sequences that move
the cursor, set the clipboard or hide an option.
"""

from __future__ import annotations

from collections.abc import Iterator
from unicodedata import category, combining, east_asian_width

JOINER = "\u200d"
EMOJI_FORM = "\ufe0f"
TURNS = frozenset("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Characters that change the direction of text, with which a text can show something other than it says."""


def styled(text: str, code: str | None) -> str:
    """Return a text with a style such as ``1;31``, bold red (ECMA-48, 8.3.117: SGR), if there is a code."""
    return f"\x1b[{code}m{text}\x1b[0m" if code else text


def plain(text: str) -> str:
    """Return a text that is safe to write to a terminal: control characters become visible."""
    return "".join(map(_plain_character, text)) if not text.isprintable() else text


def _plain_character(character: str) -> str:
    code = ord(character)
    if code < 0x20:
        return " " if character in "\t\n\r\v\f" else chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    if character in TURNS:
        return ""
    if category(character) in ("Cc", "Cs", "Zl", "Zp"):
        return "\ufffd"
    return character


def width_of(character: str) -> int:
    """Return the number of columns that a character may take; where terminals differ, the larger number."""
    if character == EMOJI_FORM:
        return 1  # makes the character before it wide
    if combining(character) or category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def width(text: str) -> int:
    """Return the number of columns that a text takes."""
    return len(text) if text.isascii() else sum(map(width_of, text))


def _pieces(text: str) -> Iterator[str]:
    """Split a text where a line may break: not before a combining mark, not around a joiner."""
    piece = ""
    for character in text:
        joined = piece.endswith(JOINER) or width_of(character) == 0 or character == EMOJI_FORM
        if piece and not joined:
            yield piece
            piece = ""
        piece += character
    if piece:
        yield piece


def wrapped(text: str, columns: int) -> list[str]:
    """Wrap a text to lines of at most `columns` columns, at spaces where possible. At least one line."""
    lines: list[str] = []
    for paragraph in text.replace("\r\n", "\n").split("\n"):
        line, used = "", 0
        for word in plain(paragraph).split(" "):
            needed = width(word)
            if line and used + 1 + needed <= columns:
                line, used = f"{line} {word}", used + 1 + needed
                continue
            if line:
                lines.append(line)
            line, used = word, needed
            if needed > columns:
                *full, line = _broken(word, columns)
                lines += full
                used = width(line)
        lines.append(line)
    return lines


def _broken(word: str, columns: int) -> list[str]:
    """Split a word that is longer than a line."""
    lines, used = [""], 0
    for piece in _pieces(word):
        needed = width(piece)
        if lines[-1] and used + needed > columns:
            lines.append("")
            used = 0
        lines[-1] += piece
        used += needed
    return lines


def cut(text: str, columns: int) -> str:
    """Return the beginning of a text that fits into `columns` columns."""
    if width(text) <= columns:
        return text
    kept, used = "", 0
    for piece in _pieces(text):
        used += width(piece)
        if used > columns:
            break
        kept += piece
    return kept

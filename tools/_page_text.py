"""The text of a PDF's page in reading order, from what pypdf reads of it. Imports the standard library alone.

Lines of right-to-left script are drawn from left to right: here they are put into reading order, brackets and
digits included, and letters that are stored as shapes become letters again, so that words can be found.
"""

from __future__ import annotations

import re
import unicodedata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SHAPES = re.compile("[\ufb00-\ufb06\ufb50-\ufdff\ufe70-\ufefc]")
RIGHT_TO_LEFT = re.compile("[\u0590-\u065f\u066e-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
LEFT_TO_RIGHT = re.compile("[A-Za-z\u00c0-\u024f\u0370-\u052f]")
DIGITS = re.compile(
    "[\u0660-\u0669\u06f0-\u06f9][\u0660-\u066c\u06f0-\u06f9.,/:]*[\u0660-\u0669\u06f0-\u06f9]"
)
MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")


def page_text(page: Any) -> str:
    """Return the text of a page."""
    pieces: list[str] = []
    text = page.extract_text(visitor_text=lambda piece, *_: pieces.append(piece))
    if RIGHT_TO_LEFT.search(text):
        text = in_reading_order(pieces)
    text = SHAPES.sub(lambda match: unicodedata.normalize("NFKC", match[0]).lstrip(" ") or match[0], text)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"(?<![ \t])[ \t]+\n", "\n", text.replace("\0", ""))).strip("\n")


def in_reading_order(pieces: list[str]) -> str:
    """Return a page's text from its pieces as they are drawn, lines of right-to-left script put in order."""
    lines: list[list[str]] = [[]]
    for piece in pieces:
        first, *others = piece.split("\n")
        lines[-1].append(first)
        lines += [[other] for other in others]
    return "\n".join(_ordered([piece for piece in line if piece]) for line in lines)


def _ordered(pieces: list[str]) -> str:
    line = "".join(pieces)
    if len(RIGHT_TO_LEFT.findall(line)) <= len(LEFT_TO_RIGHT.findall(line)):
        return "".join(_turned(piece) if RIGHT_TO_LEFT.search(piece) else piece for piece in pieces)
    ordered = ""
    for piece in reversed(pieces):
        piece = _turned(piece)
        if ordered[-1:].isalnum() and piece[:1].isalnum():
            ordered += " "
        ordered += piece
    return ordered


def _turned(piece: str) -> str:
    """Return a piece of a right-to-left line in logical order. pypdf has turned its letters, and with them
    the digits, which should not be; what has no direction of its own it leaves as drawn."""
    piece = DIGITS.sub(lambda match: match[0][::-1], piece)
    if RIGHT_TO_LEFT.search(piece):
        return piece.translate(MIRRORED)
    if any(map(str.isalnum, piece)):
        return piece
    return piece[::-1].translate(MIRRORED)

"""The text of a PDF's page in reading order, from what pypdf reads of it. Imports the standard library alone.

Programs draw the pieces of a line of right-to-left script in either direction. This module puts them into
reading order, brackets and digits included. It turns letters that are stored as shapes into letters, so that
a search finds the words.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from itertools import pairwise

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Piece = tuple[str, float]
    """A text, and its distance from the left edge."""

SHAPES = re.compile("[\ufb00-\ufb06\ufb50-\ufdff\ufe70-\ufefc]")
RIGHT_TO_LEFT = re.compile("[\u0590-\u065f\u066e-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
LEFT_TO_RIGHT = re.compile("[A-Za-z\u00c0-\u024f\u0370-\u052f]")
DIGITS = re.compile(
    "[\u0660-\u0669\u06f0-\u06f9][\u0660-\u066c\u06f0-\u06f9.,/:]*[\u0660-\u0669\u06f0-\u06f9]"
)
MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")
ENCODINGS = ("cp1252", "charmap", "latin-1", "mac-roman", "utf-16", "utf-16-be", "utf-16-le")


def load() -> None:
    """Import what pypdf imports late, for a process that can open no file once it reads."""
    import pypdf._codecs.core_font_metrics
    import pypdf._configuration
    import pypdf._text_extraction
    import pypdf.filters
    import pypdf.generic._image_inline
    import pypdf.xmp  # noqa: F401

    for encoding in ENCODINGS:
        codecs.lookup(encoding)


def page_text(page: Any) -> str:
    """Return the text of a page."""
    pieces: list[Piece] = []

    def take(piece: str, page: Sequence[float], line: Sequence[float], *_: object) -> None:
        pieces.append((piece, line[4] * page[0] + line[5] * page[2] + page[4]))

    text = page.extract_text(visitor_text=take)
    if RIGHT_TO_LEFT.search(text):
        text = in_reading_order(pieces)
    text = SHAPES.sub(lambda match: unicodedata.normalize("NFKC", match[0]).lstrip(" ") or match[0], text)
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"(?<![ \t])[ \t]+\n", "\n", text.replace("\0", ""))).strip("\n")


def in_reading_order(pieces: list[Piece]) -> str:
    """Return a page's text from its pieces in the order of drawing, with lines of right-to-left script put in
    order."""
    lines: list[list[Piece]] = [[]]
    for piece, place in pieces:
        first, *others = piece.split("\n")
        lines[-1].append((first, place))
        lines += [[(other, place)] for other in others]
    return "\n".join(_ordered([each for each in line if each[0]]) for line in lines)


def _ordered(pieces: list[Piece]) -> str:
    line = "".join(piece for piece, _ in pieces)
    if len(RIGHT_TO_LEFT.findall(line)) <= len(LEFT_TO_RIGHT.findall(line)):
        return "".join(_turned(piece) if RIGHT_TO_LEFT.search(piece) else piece for piece, _ in pieces)
    ordered = ""
    for piece, _ in _from_the_right(pieces):
        piece = _turned(piece)
        if ordered[-1:].isalnum() and piece[:1].isalnum():
            ordered += " "
        ordered += piece
    return ordered


def _from_the_right(pieces: list[Piece]) -> list[Piece]:
    """Return pieces from the right to the left. Pieces that a program draws without a position all have the
    same position. They stay in the order of drawing, which is from the right where most of the line is
    (LibreOffice)."""
    steps = [after - before for (_, before), (_, after) in pairwise(pieces)]
    is_leftwards = sum(step < 0 for step in steps) > sum(step > 0 for step in steps)
    return sorted(pieces if is_leftwards else reversed(pieces), key=lambda each: -each[1])


def _turned(piece: str) -> str:
    """Return a piece of a right-to-left line in logical order. pypdf has reversed its letters and its digits;
    the digits must be reversed back. pypdf leaves characters without a direction as drawn."""
    piece = DIGITS.sub(lambda match: match[0][::-1], piece)
    if RIGHT_TO_LEFT.search(piece):
        return piece.translate(MIRRORED)
    if any(map(str.isalnum, piece)):
        return piece
    return piece[::-1].translate(MIRRORED)

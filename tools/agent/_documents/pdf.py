"""The text of a PDF, page by page, by pypdf: pure Python, so that a hostile file wastes time at worst.

A PDF holds glyphs at places, not text. Columns come in the order in which the file draws them. Lines of
right-to-left script are drawn from left to right: here they are put into reading order, brackets and digits
included, and letters that are stored as shapes become letters again, so that words can be found. Runs in the
process of `worker`, whose limits bound it.
"""

from __future__ import annotations

import io
import re
import time
import unicodedata

import pypdf
import pypdf.errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 25.0
PAGES = 5_000
SHAPES = re.compile("[\ufb00-\ufb06\ufb50-\ufdff\ufe70-\ufefc]")
RIGHT_TO_LEFT = re.compile("[\u0590-\u065f\u066e-\u06ef\u06fa-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]")
LEFT_TO_RIGHT = re.compile("[A-Za-z\u00c0-\u024f\u0370-\u052f]")
DIGITS = re.compile(
    "[\u0660-\u0669\u06f0-\u06f9][\u0660-\u066c\u06f0-\u06f9.,/:]*[\u0660-\u0669\u06f0-\u06f9]"
)
MIRRORED = str.maketrans("()[]{}<>«»", ")(][}{><»«")


def read(data: bytes) -> tuple[str, str]:
    """Return title and text of a PDF. Raises ValueError with the end of a sentence that begins "The PDF"."""
    if b"%PDF-" not in data[:1024]:
        raise ValueError("could not be read: what came is no PDF file.")
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        if reader.is_encrypted and not reader.decrypt(""):
            raise ValueError("cannot be read without its password.")
        count = len(reader.pages)
        title = _title(reader)
    except (MemoryError, ValueError):
        raise
    except pypdf.errors.DependencyError:
        raise ValueError(
            "is encrypted, and the package cryptography, which that takes, is not installed."
        ) from None
    except Exception as error:  # whatever pypdf stumbles over
        raise ValueError(f"could not be read: it is broken ({_short(error)}).") from None
    if not count:
        raise ValueError("has no pages.")
    parts, found = _pages(reader, count)
    if not found:
        raise ValueError(f"holds no text, only pictures ({count} page{'s' if count > 1 else ''}).")
    return title, "\n\n".join(parts)


def _pages(reader: Any, count: int) -> tuple[list[str], bool]:
    until = time.monotonic() + SECONDS
    parts: list[str] = []
    found = False
    for index in range(min(count, PAGES)):
        if time.monotonic() > until:
            parts.append(f"[pages {index + 1} to {count} are left out: reading them takes too long]")
            return parts, found
        parts.append(f"[page {index + 1} of {count}]")
        try:
            text = page_text(reader.pages[index])
        except MemoryError:
            raise
        except Exception as error:
            parts.append(f"[this page could not be read: {_short(error)}]")
            continue
        if text:
            found = True
            parts.append(text)
    if count > PAGES:
        parts.append(f"[pages {PAGES + 1} to {count} are left out]")
    return parts, found


def _title(reader: Any) -> str:
    try:
        return " ".join(str(reader.metadata.title or "").split())[:500]
    except Exception:  # no or broken metadata
        return ""


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:120] or type(error).__name__


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

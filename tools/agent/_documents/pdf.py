"""The text of a PDF, page by page, by pypdf: pure Python, so a hostile file can at worst waste time.

A PDF holds glyphs at positions, not text. Columns come in the order in which the file draws them. Lines of
right-to-left script are put into reading order (`_page_text`). Runs in the process of `worker`, whose limits
bound it.
"""

from __future__ import annotations

import io
import time

import pypdf
import pypdf.errors

from ..._page_text import page_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 25.0
PAGES = 5_000


def read(data: bytes) -> tuple[str, str]:
    """Return title and text of a PDF. Raises ValueError with the rest of a sentence that begins with "The
    PDF"."""
    if b"%PDF-" not in data[:1024]:
        raise ValueError("could not be read: it is not a PDF file.")
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
    except Exception as error:  # any exception of pypdf
        raise ValueError(f"could not be read: it is broken ({_short(error)}).") from None
    if not count:
        raise ValueError("has no pages.")
    parts, found = _pages(reader, count)
    if not found:
        raise ValueError(f"contains no text, only pictures ({count} page{'s' if count > 1 else ''}).")
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

"""A cache in memory of a few pages, for a limited time, for calls that continue a page at an offset.

Nothing is stored on disk. Another server has a separate cache.
"""

from __future__ import annotations

import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEEP_SECONDS = 1800.0
KEEP_PAGES = 32
KEEP_CHARACTERS = 16 * 1024**2


class Page:
    """A page that was read: its text in one format, and its facts."""

    def __init__(self, title: str, text: str, facts: dict[str, Any], notes: list[str]) -> None:
        self.title = title
        self.text = text
        self.facts = facts
        """url, status, content_type, format and via."""
        self.notes = notes
        """Lines that every part of it shows."""
        self.read_at = time.monotonic()


_pages: dict[tuple[str, str], Page] = {}  # the oldest first


def put(addresses: set[str], page: Page) -> None:
    """Store a page under each of its addresses."""
    for address in addresses:
        _pages.pop((address, page.facts["format"]), None)
        _pages[address, page.facts["format"]] = page
    oldest = time.monotonic() - KEEP_SECONDS
    for key in list(_pages):
        kept = {id(page): page for page in _pages.values()}
        too_many = len(kept) > KEEP_PAGES
        too_much = sum(len(page.text) for page in kept.values()) > KEEP_CHARACTERS
        if _pages[key].read_at < oldest or ((too_many or too_much) and _pages[key] is not page):
            del _pages[key]


def get(address: str, format: str) -> Page | None:
    """Return the page that was read from an address, if it is still cached."""
    page = _pages.get((address, format))
    if page is None or time.monotonic() - page.read_at > KEEP_SECONDS:
        return None
    return page

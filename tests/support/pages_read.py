"""What is in a page that a text from outside must not have put there."""

from __future__ import annotations

from html.parser import HTMLParser


class Elements(HTMLParser):
    """The elements of a page, with their attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def elements_that_no_page_has(page: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return the elements that run or load something, except the pages' own scripts, and those that have an
    attribute with a script or a style."""
    return [
        (tag, attributes)
        for tag, attributes in Elements(page).found
        if tag in ("img", "iframe", "object", "style", "base", "svg")
        or (tag == "script" and not (attributes.get("src") or "").startswith("/dashboard/static/"))
        or any(name.startswith("on") or name == "style" for name in attributes)
        or any((value or "").strip().lower().startswith("javascript:") for value in attributes.values())
    ]

"""Reads HTML: the parts that XPath finds, as text. Imports lxml, so the first page imports it."""

from __future__ import annotations

from lxml import html

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SHOWN_TEXT = "//body//text()[not(ancestor::script or ancestor::style or ancestor::template)]"


def parse(text: str) -> Any:
    """Return the tree of a page, an empty tree for an empty page."""
    # as bytes: lxml refuses a str with a declared encoding, and the page is decoded already
    parser = html.HTMLParser(encoding="utf-8", remove_comments=True, remove_pis=True, collect_ids=False)
    body = text.encode("utf-8", "replace").replace(b"\0", b"")
    tree = html.document_fromstring(body, parser=parser) if body.strip() else None
    return tree if tree is not None else html.document_fromstring("<html><body></body></html>")


def text_of(node: Any, path: str) -> str:
    """Return the text of everything that a path finds: elements with all their content, or texts."""
    return "".join(piece if isinstance(piece, str) else _inner(piece) for piece in node.xpath(path))


def _inner(element: Any) -> str:
    return "".join(element.xpath(".//text()[not(ancestor::script or ancestor::style)]"))


def first(node: Any, path: str) -> str:
    """Return the first text or attribute that a path finds, or an empty text."""
    return next((str(piece) for piece in node.xpath(path) if str(piece).strip()), "")


def shows(tree: Any, signs: tuple[str, ...], query: str) -> bool:
    """Whether a page has one of the signs: XPath, or visible text. The query itself does not count."""
    if any(sign.startswith("//") and tree.xpath(sign) for sign in signs):
        return True
    shown = " ".join(" ".join(tree.xpath(SHOWN_TEXT)).split()).lower()
    words = [sign for sign in signs if not sign.startswith("//")]
    asked = " ".join(query.split()).lower()
    if any(word in asked for word in words):
        shown = shown.replace(asked, " ")
    return any(word in shown for word in words)


def without_tags(text: str) -> str:
    """Return the text of a small piece of HTML, which some interfaces put into JSON."""
    if "<" not in text and "&" not in text:
        return text
    return "".join(parse(f"<p>{text}</p>").xpath("//body//text()"))

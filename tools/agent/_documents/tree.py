"""A page as a tree of elements: parsing, and the functions that all modules share: text, names, removal.
Linear in the length of the page: 0.2 s per megabyte. Needs lxml; nothing is fetched, no entity or DTD is
loaded."""

from __future__ import annotations

import re
from itertools import islice

import lxml.etree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEVER_TEXT = words("script style template noscript link meta base title param track datalist")
BESIDE_BOXES = words("li p label td th dt dd")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
SPACE = re.compile(r"\s+")
SHALLOW = re.compile(
    r"</?(?:div|span|section|font|center|b|i|em|strong|a|article|main|p)\b[^<>]*>", re.IGNORECASE
)
ANY_TAG = re.compile(r"<[^<>]*>")
# The parser does not know newer void elements, and nests what follows in them.
VOID = re.compile(r"<(source|track|wbr|embed)\b([^<>]*)>", re.IGNORECASE)


def parse(html: str) -> Any:
    """Return the root of any text parsed as HTML. The parser goes 2,048 elements deep and drops deeper ones.
    For such a page, grouping elements are removed first, then all."""
    for text in (html, None, ""):
        if text is None:
            text = SHALLOW.sub(" ", html)
        elif text == "":
            text = "<pre>" + ANY_TAG.sub(" ", html).replace("<", "&lt;")
        root, whole = _parse_once(text)
        if whole:
            break
    return root


def _parse_once(html: str) -> tuple[Any, bool]:
    parser = lxml.etree.HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, no_network=True
    )
    data = VOID.sub(r"<\1\2></\1>", html.replace("\0", "")).encode("utf-8", "replace")
    root = lxml.etree.fromstring(data, parser)
    if root is None:  # nothing in it
        return lxml.etree.HTML("<html><body></body></html>"), True
    too_deep = any("xcessive depth" in entry.message for entry in parser.error_log)
    return root, not too_deep


def squeeze(text: str) -> str:
    return SPACE.sub(" ", text).strip()


def plain_text(element: Any) -> str:
    return "".join(element.itertext())


def head(element: Any, most: int = 200) -> str:
    """The beginning of an element's text."""
    text = ""
    for part in element.itertext():
        text += part[:most]
        if len(text) > most:
            return squeeze(text)[:most].rstrip() + "…"
    return squeeze(text)


def has_many(element: Any) -> bool:
    """Whether an element has more children than this module checks one by one; counting them all takes linear
    time."""
    return next(islice(element, 8, None), None) is not None


def is_tick(element: Any) -> bool:
    """Whether an element is a check box: in a list of things to do, a table, a form."""
    if element.tag != "input" or element.get("type") not in ("checkbox", "radio"):
        return False
    if element.getparent().tag in BESIDE_BOXES:
        return True
    behind = element.getnext()
    in_form = next(element.iterancestors("fieldset"), None) is not None
    return in_form and behind is not None and behind.tag == "label"


def names_of(element: Any, with_id: bool = True) -> str:
    """Return classes and id in lower case, `camelCase` and `snake_case` divided by hyphens."""
    names, id = element.get("class") or "", element.get("id") or ""
    joined = f"{names} {id}" if with_id and id else names
    if not joined:
        return ""
    return CAMEL.sub("-", joined).replace("_", "-").lower()


def drop(root: Any, unwanted: Callable[[Any], bool], whole: str = "") -> None:
    """Remove the unwanted elements, but not the text after them, and nothing of the elements `whole`."""
    walk = lxml.etree.iterwalk(root, events=("start",))
    doomed = []
    for _, element in walk:
        if element is not root and unwanted(element):
            doomed.append(element)
            walk.skip_subtree()
        elif element.tag == whole:
            walk.skip_subtree()
    for element in doomed:
        remove(element)


def remove(element: Any) -> None:
    parent = element.getparent()
    if parent is None:
        return
    if element.tail:
        before = element.getprevious()
        if before is not None:
            before.tail = f"{before.tail or ''}{element.tail}"
        else:
            parent.text = f"{parent.text or ''}{element.tail}"
    parent.remove(element)


def is_never_shown(element: Any) -> bool:
    """Whether a browser shows nothing of an element, or no text of it."""
    if element.tag in NEVER_TEXT:
        return element.tag != "title" or element.getparent().tag not in ("svg", "g")
    if element.get("hidden") is not None and element.get("hidden") != "until-found":
        return True
    style = element.get("style")
    return style is not None and HIDING.search(style) is not None

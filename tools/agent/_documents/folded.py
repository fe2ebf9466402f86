"""Shows what a page shows only after a click: the panels of tabs, each under its tab's label, the answers of
an accordion, spoilers, folded text. Menus stay folded. Linear in the number of elements."""

from __future__ import annotations

import re

import lxml.etree

from .tree import HIDING, head, remove, squeeze

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FOLDS = re.compile(
    r"accordion|collaps|expand|disclosure|faq|spoiler|toggle|tab-?(?:pane|panel|content)|read-?more|more-?text",
    re.IGNORECASE,
)
OPENS_A_MENU = re.compile(r"nav|menu|toggler|drop-?down|modal|search|dialog", re.IGNORECASE)
UNSEEN = re.compile(r"(?<!\S)(?:hidden|invisible|d-none|is-hidden)(?!\S)")  # a whole class
OPENS = ("aria-controls", "data-target", "data-bs-target", "href")


def reveal(root: Any) -> None:
    """Show all folded content, and every panel."""
    by_id = {element.get("id"): element for element in root.iter() if element.get("id")}
    for element in root.iter():
        if element.get("aria-expanded") == "false":
            opened = next((by_id[id] for id in _ids(element) if id in by_id), None)
            if opened is not None and _is_text(element) and _is_text(opened):
                _unhide(opened)
        elif _is_hidden(element) and _folds(element) and _is_text(element):
            _unhide(element)
    _show_tabs(root, by_id)


def is_head(button: Any) -> bool:
    """Whether a button is the heading of what it unfolds."""
    around = button.getparent()
    names = f"{button.get('class') or ''} {around.get('class') or ''}"
    folds = FOLDS.search(names) or next(button.iter("div", "p"), None) is not None
    if button.get("aria-expanded") is None or not folds or OPENS_A_MENU.search(names):
        return False
    return next(button.iterancestors("nav", "header"), None) is None


def _ids(element: Any) -> list[str]:
    return [(element.get(name) or "").lstrip("#") for name in OPENS]


def _is_hidden(element: Any) -> bool:
    return element.get("hidden") is not None or HIDING.search(element.get("style") or "") is not None


def _folds(element: Any) -> bool:
    """Whether the names of an element, or of its parent, are those of something that unfolds."""
    around = element.getparent()
    names = [element.get("class") or "", "" if around is None else around.get("class") or ""]
    return any(map(FOLDS.search, names))


def _is_text(element: Any) -> bool:
    """Whether folded content is part of the text, judged by its names and its surroundings."""
    if next(element.iterancestors("nav", "header", "footer", "form"), None) is not None:
        return False
    names = f"{element.get('class') or ''} {element.get('id') or ''} {element.get('aria-haspopup') or ''}"
    return element.tag not in ("nav", "header", "form", "dialog") and not OPENS_A_MENU.search(names)


def _unhide(element: Any) -> None:
    for name in ("hidden", "aria-hidden"):
        element.attrib.pop(name, None)
    if HIDING.search(element.get("style") or ""):
        del element.attrib["style"]
    if element.get("class"):
        element.set("class", UNSEEN.sub("", element.get("class")))


# --- tabs ---------------------------------------------------------------------------------------------------


def _show_tabs(root: Any, by_id: dict[str, Any]) -> None:
    """Show every panel, under the label of its tab."""
    panels = []
    rows = []
    by_panel: dict[str, Any] = {}
    for element in root.iter():
        role = element.get("role")
        if role == "tab":
            by_panel.update(dict.fromkeys(filter(None, _ids(element)), element))
        elif role == "tabpanel":
            panels.append(element)
        elif role == "tablist":
            rows.append(element)
    in_order = _tabs_in_order(rows)
    for panel in panels:
        tab = by_id.get(panel.get("aria-labelledby") or "")
        if tab is None:
            tab = by_panel.get(panel.get("id") or "")
        if tab is None:
            tab = next(in_order.get(panel.getparent(), iter(())), None)
        _show_panel(panel, head(tab) if tab is not None else squeeze(panel.get("aria-label") or ""))
    for row in rows if panels else ():
        remove(row)
    for box in list(root.iter("div")):
        if "tabbed-set" in (box.get("class") or "").split():
            _show_labelled(box)


def _tabs_in_order(rows: list[Any]) -> dict[Any, Any]:
    """The tabs of each row, by the elements that may contain its panels: beside the row, or one level
    deeper."""
    found: dict[Any, Any] = {}
    for row in rows:
        tabs = iter([tab for tab in row.iter() if tab.get("role") == "tab"])
        behind = row.getnext()
        for place in (row.getparent(), behind):
            if place is not None:
                found[place] = tabs
    return found


def _show_labelled(box: Any) -> None:
    parts = {part.get("class"): part for part in box.iterchildren("div")}
    labels, content = parts.get("tabbed-labels"), parts.get("tabbed-content")
    if labels is not None and content is not None and len(labels) == len(content):
        for label, panel in zip(labels, content, strict=True):
            _show_panel(panel, head(label))
        remove(labels)


def _show_panel(panel: Any, label: str) -> None:
    _unhide(panel)
    panel.attrib.pop("role", None)
    if label:
        head = lxml.etree.Element("p")
        lxml.etree.SubElement(head, "b").text = label
        head.tail, panel.text = panel.text, None
        panel.insert(0, head)

"""What a page shows that is no text of its own: frames, media, drawings, fields, tabs; `settle` says it.

A frame's own document where the page holds it, else `[frame: address]`; video, sound and objects likewise; a
drawing's title and labels; what is chosen or typed in a field; over each panel the tab that opens it, and the
panel shown. What says nothing (an icon, a tracker's frame) goes. One walk over such elements, each of
which is read at most `LONGEST` characters far.
"""

from __future__ import annotations

import re
from itertools import islice

import lxml.etree

from . import blocks
from .tree import drop, is_never_shown, is_tick, parse, plain_text, remove, squeeze, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LONGEST = 2_000  # characters of a drawing's or canvas's labels
LABEL = 200  # characters of a tab's label, a title
OPTIONS = 30
ICON = 48  # pixels: a smaller drawing without text is an icon
TRACKERS = re.compile(
    r"//[^/]*(?:doubleclick|googlesyndication|googletagmanager|recaptcha|hcaptcha|adservice|criteo|facebook)\."
)
FIELDS = words("text number date time datetime-local month week email url tel range color")
HEADINGS = words("h1 h2 h3 h4 h5 h6 dt summary legend")
FOLDS = re.compile(r"accordion|collaps|expand|disclosure|faq", re.IGNORECASE)
OPENS_A_MENU = re.compile(r"nav|menu|toggler", re.IGNORECASE)


def settle(root: Any, base: str) -> None:
    """Replace what is no text by what says it."""
    for element in list(root.iter(*FORMS)):
        if element.getparent() is not None:
            FORMS[element.tag](element, base)


def reveal(root: Any, base: str) -> None:
    """Show what a reader gets to see though the page hides it: the panels of tabs, what hangs in a shadow
    root, images that wait for a script."""
    for element in root.iter("template"):
        if element.get("shadowrootmode") or element.get("shadowroot"):
            element.tag = "div"
    for element in root.iter("noscript"):
        before = element.getprevious()
        inside = list(element)
        is_twin = before is not None and before.tag == "img" and [inner.tag for inner in inside] == ["img"]
        if is_twin and not blocks.image_address(before, base):
            before.attrib.update(inside[0].attrib)
    _show_tabs(root)


def _head(element: Any, most: int = LABEL) -> str:
    """The beginning of an element's text."""
    text = ""
    for part in element.itertext():
        text += part[:most]
        if len(text) > most:
            return squeeze(text)[:most].rstrip() + "…"
    return squeeze(text)


def _become(element: Any, tag: str, text: str) -> None:
    """Make an element one that holds only a text; its names stay, as they say whether it is content."""
    tail, names = element.tail, {name: element.get(name) for name in ("class", "id") if element.get(name)}
    element.clear()
    element.tag, element.tail, element.text = tag, tail, text
    element.attrib.update(names)


def _note(element: Any, kind: str, address: str, base: str) -> None:
    """Say what stands here, by its title and its address."""
    title = squeeze(element.get("title") or element.get("aria-label") or "")[:LABEL]
    address = blocks.absolute(address, base)
    if not address.startswith("http"):
        address = ""
    named = f"{kind}: {title}" if title else kind
    _become(element, "p", f"[{named}: " if address else f"[{named}]")
    if address:
        link = lxml.etree.SubElement(element, "a", href=address)
        link.text = address
        link.tail = "]"


def _is_tiny(element: Any) -> bool:
    sizes = (element.get("width"), element.get("height"))
    return any((size or "").strip() in ("0", "1", "2", "0px", "1px") for size in sizes)


# --- frames, media, drawings --------------------------------------------------------------------------------


def _frame(element: Any, base: str) -> None:
    inner = element.get("srcdoc")
    address = blocks.absolute(element.get("src"), base)
    if _is_tiny(element) or TRACKERS.search(address):
        remove(element)
    elif inner and inner.strip():
        _take_in(element, inner)
    elif address.startswith("http"):
        _note(element, "frame", address, base)
    else:
        remove(element)


def _take_in(element: Any, html: str) -> None:
    """Put a document in the place of the frame that shows it; frames in it have no place of their own."""
    _become(element, "div", "")
    body = parse(html).find("body")
    if body is not None:
        drop(body, lambda inner: is_never_shown(inner) or inner.tag in ("iframe", "frame", "object", "embed"))
        element.text = body.text
        element.extend(list(body))


def _object(element: Any, base: str) -> None:
    address = blocks.absolute(element.get("data") or element.get("src"), base)
    if _is_tiny(element):
        remove(element)
    elif not address.startswith("http"):
        element.tag = "div"  # shown is what it holds
    elif (element.get("type") or "").startswith("image/"):
        label = squeeze(element.get("title") or element.get("aria-label") or "") or _head(element)
        _become(element, "img", "")
        element.set("src", address)
        element.set("alt", label)
    else:
        _note(element, "object", address, base)


def _media(element: Any, base: str) -> None:
    address = element.get("src") or next((inner.get("src") or "" for inner in element.iter("source")), "")
    if address or element.get("controls") is not None:
        _note(element, element.tag, address, base)
    else:
        remove(element)


def _drawing(element: Any, _: str) -> None:
    if element.get("aria-hidden") == "true":
        remove(element)
        return
    title = element.find("title")
    label = squeeze(element.get("aria-label") or "") or (_head(title) if title is not None else "")
    texts: list[str] = []
    length = 0
    for inner in element.iter("text", "foreignobject", "foreignObject"):
        text = _head(inner)
        if text and length < LONGEST:
            texts.append(text)
            length += len(text)
    if length >= LONGEST:
        texts.append("…")
    _label(element, label, "; ".join(texts))


def _label(element: Any, label: str, texts: str) -> None:
    """Put a drawing's title and labels in its place; an icon's title only if nothing else says it."""
    around = element.getparent()
    in_control = around.tag in ("a", "button", "summary", "span", *HEADINGS)
    said = " | ".join(filter(None, (label, texts)))
    if not said or (not texts and (in_control or _is_icon(element))):
        alone = label and around.tag in ("a", "td", "th") and not _head(around).replace(label, "")
        if alone:
            _become(element, "span", label)
        else:
            remove(element)
        return
    _become(element, "span" if in_control else "p", f"[drawing: {said}]")


def _is_icon(element: Any) -> bool:
    """Whether a drawing without labels is one, as far as its size tells; where that is not known, it is."""
    if element.get("role") in ("img", "graphics-document") and element.get("width") is None:
        return False
    size = re.match(r"\d{1,6}", element.get("width") or (element.get("viewbox") or "").split(" ")[-1])
    return size is None or int(size[0]) <= ICON or "icon" in (element.get("class") or "").lower()


def _canvas(element: Any, _: str) -> None:
    label = squeeze(element.get("aria-label") or "") or _head(element, LONGEST)
    if label:
        _become(element, "p", f"[drawing: {label[:LONGEST]}]")
    else:
        remove(element)


def _map(element: Any, base: str) -> None:
    """The links of an image: each as a link in a line."""
    named = [(area.get("alt") or area.get("title"), area.get("href")) for area in element.iter("area")]
    found = [(squeeze(name)[:LABEL], address) for name, address in named if name and address]
    if not found:
        remove(element)
        return
    _become(element, "p", "")
    for name, address in found:
        link = lxml.etree.SubElement(element, "a", href=address)
        link.text, link.tail = name, ", "
    link.tail = ""


# --- fields -------------------------------------------------------------------------------------------------


def _choice(element: Any, _: str) -> None:
    options = list(element.iter("option"))
    names = [
        f"{name} (chosen)" if option.get("selected") is not None and len(options) > 1 else name
        for option in islice(options, OPTIONS)
        if (name := _head(option) or squeeze(option.get("label") or ""))
    ]
    if len(options) > OPTIONS:
        names.append(f"{len(options) - OPTIONS} more")
    if names:
        _become(element, "span", f"[choice: {' | '.join(names)}]")
    else:
        remove(element)


def _field(element: Any, _: str) -> None:
    kind = (element.get("type") or "text").lower()
    value = squeeze(element.get("value") or "")
    if kind in FIELDS and value:
        _become(element, "span", value[:LONGEST])
    elif not is_tick(element) and kind not in ("submit", "button"):  # those tell a box that asks for consent
        remove(element)


def _area(element: Any, _: str) -> None:
    text = plain_text(element)
    if not text.strip():
        remove(element)
    elif "\n" in text.strip():
        _become(element, "pre", text)
    else:
        _become(element, "span", squeeze(text))


def _meter(element: Any, _: str) -> None:
    said = squeeze(plain_text(element))
    if not said and element.get("value"):
        most = squeeze(element.get("max") or "")
        said = squeeze(element.get("value")) + (f" of {most}" if most else "")
    _become(element, "span", said[:LABEL])


def _button(element: Any, _: str) -> None:
    """A button that is a heading, or folds a part of the text, is read; one that does something is not."""
    around = element.getparent()
    if around.tag in HEADINGS:
        element.tag = "span"
        return
    names = f"{element.get('class') or ''} {around.get('class') or ''}"
    if element.get("aria-expanded") is None or not FOLDS.search(names) or OPENS_A_MENU.search(names):
        return
    if next(element.iterancestors("nav", "header"), None) is None:
        element.tag = "summary"
        element.attrib.pop("role", None)


# --- tabs ---------------------------------------------------------------------------------------------------


def _show_tabs(root: Any) -> None:
    """Show every panel, under the label of its tab."""
    panels = []
    rows = []
    by_id: dict[str, Any] = {}
    by_panel: dict[str, Any] = {}
    for element in root.iter():
        role, id = element.get("role"), element.get("id")
        if id:
            by_id[id] = element
        if role == "tab":
            for name in ("aria-controls", "data-target", "data-bs-target", "href"):
                if element.get(name):
                    by_panel[element.get(name).lstrip("#")] = element
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
        _show_panel(panel, _head(tab) if tab is not None else squeeze(panel.get("aria-label") or ""))
    for row in rows if panels else ():
        remove(row)
    for box in list(root.iter("div")):
        if "tabbed-set" in (box.get("class") or "").split():
            _show_labelled(box)


def _tabs_in_order(rows: list[Any]) -> dict[Any, Any]:
    """The tabs of each row, by the elements in which its panels may stand: beside the row, or one deeper."""
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
            _show_panel(panel, _head(label))
        remove(labels)


def _show_panel(panel: Any, label: str) -> None:
    panel.attrib.pop("hidden", None)
    panel.attrib.pop("aria-hidden", None)
    panel.attrib.pop("style", None)
    panel.attrib.pop("role", None)
    if label:
        head = lxml.etree.Element("p")
        lxml.etree.SubElement(head, "b").text = label
        head.tail, panel.text = panel.text, None
        panel.insert(0, head)


FORMS: dict[str, Callable[[Any, str], None]] = {
    "iframe": _frame,
    "frame": _frame,
    "object": _object,
    "embed": _object,
    "applet": _object,
    "video": _media,
    "audio": _media,
    "svg": _drawing,
    "canvas": _canvas,
    "map": _map,
    "select": _choice,
    "input": _field,
    "textarea": _area,
    "progress": _meter,
    "meter": _meter,
    "button": _button,
}

"""Replaces what a page shows without text (frames, media, drawings, icons, fields) by text: `settle`.

A frame becomes its document if the page contains it, else `[frame: address]`; video, sound and objects
likewise. A drawing becomes its title and labels, an icon its label, a field what is chosen, ticked or typed
in it. What says nothing (a decorative icon, a tracker's frame) is removed. One walk over such elements, each
of which is read up to `LONGEST` characters. `folded` handles what the page shows only after a click.
"""

from __future__ import annotations

import re
from itertools import islice

import lxml.etree

from . import blocks, folded
from .tree import (
    BESIDE_BOXES,
    drop,
    has_many,
    head,
    is_never_shown,
    is_tick,
    parse,
    plain_text,
    remove,
    squeeze,
    words,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LONGEST = 2_000  # characters of a drawing's or canvas's labels
LABEL = 200  # characters of a tab's label, a title
OPTIONS = 30
STARS = 32  # elements of which a row of stars may consist
ICON = 48  # pixels: a smaller drawing without text is an icon
TRACKERS = re.compile(
    r"//[^/]*(?:doubleclick|googlesyndication|googletagmanager|recaptcha|hcaptcha|adservice|criteo|facebook)\."
)
FIELDS = words("text number date time datetime-local month week email url tel range color")
HEADINGS = words("h1 h2 h3 h4 h5 h6 dt summary legend")
BESIDE_SIGNS = words("p li td th dd span div strong b")
MEDIA = ("img", "iframe", "video", "audio")
STRUCK = re.compile(r"text-decoration(?:-line)?\s*:[^;:]*line-through", re.IGNORECASE)
STRUCK_CLASS = re.compile(r"(?<!\S)(?:line-through|strikethrough|text-decoration-line-through)(?!\S)")
BOX = re.compile(r"checkbox checkbox-o(?:n|ff)")  # in exports of Notion
SIGNS = (
    "span", "font", "u", "i", "b", "div", "li", "button", "time", "relative-time", "td", "a",
)  # fmt: skip
TICKED = {"true": "[x] ", "false": "[ ] "}


def settle(root: Any, base: str) -> None:
    """Replace elements without text by text that describes them."""
    for element in list(root.iter(*FORMS)):
        if element.getparent() is not None:
            FORMS[element.tag](element, base)


def reveal(root: Any, base: str) -> None:
    """Show what a reader sees although the page hides or draws it: images that wait for a script, text that a
    style strikes through, icons, addresses hidden from robots."""
    for element in list(root.iter("noscript")):
        _show_without_scripts(element, base)
    for element in list(root.iter(*SIGNS)):
        if element.getparent() is None:  # it was part of an icon
            continue
        if element.get("data-code-marker"):  # of a line in a comparison: added, removed
            element.text = element.get("data-code-marker") + (element.text or "")
        elif element.get("data-cfemail"):
            _show_mail_address(element)
        elif element.tag in ("span", "font", "u", "b") and _is_struck(element):
            element.tag = "del"
        elif element.tag in ("time", "relative-time") and not head(element):
            element.text = element.get("datetime")
        elif element.get("aria-checked") or element.get("data-inline-task-id"):
            _tick(element)
        elif element.tag in ("div", "span") and BOX.fullmatch(element.get("class") or ""):
            element.text = TICKED["true" if element.get("class").endswith("-on") else "false"]
            element.tag = "span"
        elif element.get("role") == "img" or element.tag in ("i", "span"):
            _name_sign(element)


def _show_without_scripts(element: Any, base: str) -> None:
    """Show the media of a `noscript` element, unless the media that a script loads already have an
    address."""
    found = list(islice(element.iter(*MEDIA), 8))
    if not found or element.getparent().tag == "head":
        return
    before = element.getprevious()
    if before is not None and before.tag == "img" and [inner.tag for inner in element] == ["img"]:
        if not blocks.image_address(before, base):
            before.attrib.update(found[0].attrib)
        return
    for near in (before, element.getnext()):
        twins = () if near is None else islice(near.iter(*MEDIA), 8)
        if any(blocks.media_address(twin, base) or blocks.image_address(twin, base) for twin in twins):
            return
    element.tag, element.text = "div", None
    for inner in list(element):
        if next(inner.iter(*MEDIA), None) is None:
            remove(inner)


def _show_mail_address(element: Any) -> None:
    """Show an address that Cloudflare has hidden from robots: each of its bytes is XORed with the first."""
    try:
        key, *rest = bytes.fromhex(element.get("data-cfemail"))
        address = bytes(byte ^ key for byte in rest).decode()
    except ValueError:
        return
    tag = element.tag
    _become(element, tag, address)
    if tag == "a":
        element.set("href", f"mailto:{address}")


def _is_struck(element: Any) -> bool:
    return bool(STRUCK.search(element.get("style") or "") or STRUCK_CLASS.search(element.get("class") or ""))


def _tick(element: Any) -> None:
    """Say whether a box that the page draws itself, or a task of Confluence, is ticked."""
    if element.tag == "li":
        is_done = "checked" in (element.get("class") or "").split()
        element.text = TICKED["true" if is_done else "false"] + (element.text or "").lstrip()
    elif element.get("role") in ("checkbox", "radio") and (
        element.getparent().tag in BESIDE_BOXES or (element.tag != "button" and _has_words(element))
    ):
        element.text = TICKED.get(element.get("aria-checked"), "") + (element.text or "").lstrip()
        element.tag = "span"
        element.attrib.pop("role")


def _has_words(element: Any) -> bool:
    """Whether a box contains a label, among its first elements."""
    return any((part.text or "").strip() for part in islice(element.iter(), STARS))


def _name_sign(element: Any) -> None:
    """Give an empty icon, of an icon font or drawn by a style, its accessible name as text."""
    if element.get("aria-hidden") == "true" or element.getparent().tag in ("a", "button", *HEADINGS):
        return
    label = element.get("aria-label") if element.get("role") == "img" else element.get("title")
    if label and _shows_nothing(element, most=STARS if element.get("role") == "img" else 1):
        _become(element, "span", squeeze(label)[:LABEL])


def _shows_nothing(element: Any, most: int) -> bool:
    """Whether an element, with at most so many descendants including itself, has no text or images: a row of
    stars."""
    parts = list(islice(element.iter(), most + 1))
    if len(parts) > most or any(part.tag == "img" for part in parts):
        return False
    return not any(text.strip() for text in element.itertext())


def _become(element: Any, tag: str, text: str) -> None:
    """Make an element hold only a text; its class names stay, since they say whether it is content."""
    tail, names = element.tail, {name: element.get(name) for name in ("class", "id") if element.get(name)}
    element.clear()
    element.tag, element.tail, element.text = tag, tail, text
    element.attrib.update(names)


def _note(element: Any, kind: str, address: str, base: str) -> None:
    """Describe the element by its title and its address."""
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
    address = blocks.media_address(element, base)
    if _is_tiny(element) or TRACKERS.search(address):
        remove(element)
    elif inner and inner.strip():
        _take_in(element, inner)
    elif address.startswith("http"):
        _note(element, "frame", address, base)
    else:
        remove(element)


def _take_in(element: Any, html: str) -> None:
    """Replace a frame by its document; frames in that document are dropped."""
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
        element.tag = "div"  # its content is shown
    elif (element.get("type") or "").startswith("image/"):
        label = squeeze(element.get("title") or element.get("aria-label") or "") or head(element)
        _become(element, "img", "")
        element.set("src", address)
        element.set("alt", label)
    else:
        _note(element, "object", address, base)


def _media(element: Any, base: str) -> None:
    places = [element, *islice(element.iter("source"), 8)]
    address = next(filter(None, (blocks.media_address(place, base) for place in places)), "")
    if address or element.get("controls") is not None:
        _note(element, element.tag, address, base)
    else:
        remove(element)


def _drawing(element: Any, _: str) -> None:
    if element.get("aria-hidden") == "true":
        remove(element)
        return
    title = element.find("title")
    label = squeeze(element.get("aria-label") or "") or (head(title) if title is not None else "")
    described = element.find("desc")
    texts = [] if described is None else list(filter(None, [head(described, LONGEST)]))
    length = 0
    for inner in element.iter("text", "foreignobject", "foreignObject"):
        text = head(inner)
        if text and length < LONGEST:
            texts.append(text)
            length += len(text)
    if length >= LONGEST:
        texts.append("…")
    _label(element, label, "; ".join(texts))


def _label(element: Any, label: str, texts: str) -> None:
    """Replace a drawing by its title and labels; use an icon's title only if there is no other text."""
    around = element.getparent()
    in_control = around.tag in ("a", "button", "summary", "span", *HEADINGS)
    said = " | ".join(filter(None, (label, texts)))
    if not said or (not texts and (in_control or _is_icon(element))):
        named = element.get("role") == "img" and element.get("aria-label") and around.tag in BESIDE_SIGNS
        alone = named or (label and around.tag in ("a", "td", "th") and not head(around).replace(label, ""))
        if alone:
            _become(element, "span", label)
        else:
            remove(element)
        return
    _become(element, "span" if in_control else "p", f"[drawing: {said}]")


def _is_icon(element: Any) -> bool:
    """Whether a drawing without labels is an icon, by its size; with an unknown size, it is."""
    if element.get("role") in ("img", "graphics-document") and element.get("width") is None:
        return False
    size = re.match(r"\d{1,6}", element.get("width") or (element.get("viewbox") or "").split(" ")[-1])
    return size is None or int(size[0]) <= ICON or "icon" in (element.get("class") or "").lower()


def _canvas(element: Any, _: str) -> None:
    label = squeeze(element.get("aria-label") or "") or head(element, LONGEST)
    if label:
        _become(element, "p", f"[drawing: {label[:LONGEST]}]")
    else:
        remove(element)


def _map(element: Any, base: str) -> None:
    """The links of an image map, each as a link in a line."""
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
    names = []
    group = None
    for option in islice(options, OPTIONS):
        name = head(option) or squeeze(option.get("label") or "")
        above = option.getparent()
        if name and above is not group and above.tag == "optgroup" and above.get("label"):
            name = f"{squeeze(above.get('label'))}: {name}"
        group = above if name else group
        if name:
            is_chosen = option.get("selected") is not None and len(options) > 1
            names.append(f"{name} (chosen)" if is_chosen else name)
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
    elif not is_tick(element) and kind not in ("submit", "button"):  # these label a box that asks for consent
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


def _items(element: Any, _: str) -> None:
    """A menu without anything to click is a list."""
    if next(element.iter("a", "button", "input"), None) is None:
        element.tag = "ul"


def _facade(element: Any, _: str) -> None:
    """A picture of a video in the place of the video, as pages often show those of YouTube and Vimeo."""
    host = "https://vimeo.com/" if "vimeo" in element.tag else "https://www.youtube.com/watch?v="
    id = (element.get("videoid") or element.get("data-videoid") or "").strip()
    element.set("title", element.get("playlabel") or element.get("title") or element.get("videotitle") or "")
    _note(element, "video", f"{host}{id}" if id else "", "")


def _button(element: Any, _: str) -> None:
    """Keep the text of a button that is a heading or folds a part of the text; drop one that does
    something."""
    around = element.getparent()
    if around.tag in HEADINGS:
        if has_many(around) or not squeeze(plain_text(around).replace(plain_text(element), "")):
            element.tag = "span"
        return
    if folded.is_head(element):
        element.tag = "summary"
        element.attrib.pop("role", None)
    elif next(element.iter("p"), None) is not None:  # a paragraph is not a label
        element.tag = "div"
        element.attrib.pop("role", None)


FORMS: dict[str, Callable[[Any, str], None]] = {
    "iframe": _frame,
    "frame": _frame,
    "object": _object,
    "embed": _object,
    "applet": _object,
    "video": _media,
    "audio": _media,
    **dict.fromkeys(("lite-youtube", "lite-vimeo", "amp-youtube", "amp-vimeo"), _facade),
    "menu": _items,
    "dir": _items,
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

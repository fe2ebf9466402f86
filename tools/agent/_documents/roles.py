"""Replaces a page's custom elements by those of HTML: by ARIA role, by name (AMP), and by slot (shadow
roots).

Tables, lists and headings that are made of `div` keep their rows, items and levels. The children of a host go
into the slots of its shadow root, as in a browser (HTML, 4.12.4). Linear in the number of elements.
"""

from __future__ import annotations

from .tree import words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PLAIN = words("div span section p ul ol li")
PARTS = {
    "rowgroup": "tbody", "row": "tr", "columnheader": "th", "rowheader": "th", "cell": "td", "gridcell": "td",
}  # fmt: skip
AMP = {f"amp-{tag}": tag for tag in ("img", "video", "audio", "iframe")} | {"amp-anim": "img"}


def settle(root: Any) -> None:
    """Give elements the tags that match their roles, names and slots."""
    for element in root.iter(*AMP):
        element.tag = AMP[element.tag]
    for element in root.iter("template"):
        if element.get("shadowrootmode") or element.get("shadowroot"):
            _fill_slots(element)
    for element in root.iter(*PLAIN):
        role = element.get("role")
        if role:
            _take_role(element, role)


def _take_role(element: Any, role: str) -> None:
    above = element.getparent()
    if role in ("table", "grid"):
        if role == "table" or next(_by_role(element, "columnheader"), None) is not None:
            for part in list(_by_role(element, *PARTS)):
                part.tag = PARTS[part.attrib.pop("role")]
            element.tag = "table"
    elif role == "list" and element.tag != "ol":
        element.tag = "ul"
    elif role == "listitem" and above.tag in ("ul", "ol"):
        element.tag = "li"
    elif role == "heading" and element.tag != "li":
        level = element.get("aria-level") or ""
        element.tag = f"h{level}" if level in ("1", "2", "3", "4", "5", "6") else "h2"


def _by_role(element: Any, *roles: str) -> Any:
    return (inner for inner in element.iter(*PLAIN) if inner.get("role") in roles)


# --- shadow roots -------------------------------------------------------------------------------------------


def _fill_slots(template: Any) -> None:
    """Show a shadow root, with the children of its host in its slots; a slot without any shows its
    fallback."""
    host = template.getparent()
    slots: dict[str, Any] = {}
    for slot in template.iter("slot"):
        slot.tag = "span"
        slots.setdefault(slot.get("name") or "", slot)
    children = [child for child in host if child is not template]
    texts = [template.tail, *(child.tail for child in children)]
    named = {child.get("slot") or "" for child in children} | ({""} if any(map(_says, texts)) else set())
    for name in named & slots.keys():
        tail, slots[name].tail = slots[name].tail, None
        slots[name].clear()
        slots[name].tail = tail
    default = slots.get("")
    template.tag = "div"
    if default is not None and _says(template.tail):
        default.text, template.tail = template.tail, None
    for child in children:
        slot = slots.get(child.get("slot") or "")
        behind = child.tail
        if slot is not None:
            child.tail = None
            slot.append(child)
            if slot is default:
                child.tail = behind
            elif default is not None and _says(behind):
                _put(default, behind)
            else:
                template.tail = f"{template.tail or ''}{behind or ''}"


def _says(text: str | None) -> bool:
    return bool(text and text.strip())


def _put(element: Any, text: str | None) -> None:
    """Append a text to the content of an element."""
    if len(element):
        element[-1].tail = f"{element[-1].tail or ''}{text}"
    else:
        element.text = f"{element.text or ''}{text}"

"""The parts of a page that are converted as a whole: code, and the addresses of links and images.

Code keeps each character and its language, and loses its line numbers, whatever markup the highlighter uses.
"""

from __future__ import annotations

import re
from itertools import islice
from urllib.parse import urldefrag, urljoin

import lxml.etree

from .tree import names_of, plain_text, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LANGUAGE = re.compile(
    r"(?:^|\s)(?:(?:language|lang|highlight(?:-source|-text)?)-|(?:brush:|sourceCode|src)\s*)"
    r"([A-Za-z][\w+#.-]*)"
)
NO_LANGUAGE = words(
    "none text txt plain plaintext default nohighlight notranslate block code highlight source literal-block"
)
KNOWN = words(
    "bash c cpp csharp css diff dockerfile go graphql html ini java javascript js json jsx kotlin lua "
    "makefile markdown perl php powershell python rb ruby rust scala sh shell sql swift toml ts tsx "
    "typescript xml yaml yml"
)
LINE_NUMBERS = re.compile(
    r"(?<![a-z])(?:linenos?|linenodiv|line-?numbers?(?:-rows)?|line-?nums?|gutter|hljs-ln-numbers|blob-num|"
    r"crayon-nums?|ln|lines)(?![a-z])"
)
DIGITS = re.compile(r"[\d\s.:|]*")
LINE = re.compile(r"(?<![a-z])(?:line|cl|code-line|token-line|view-line)(?![a-z])")
CODE_LINE_TABLE = re.compile(r"blob-code|js-file-line|hljs-ln-code")
LINES = ("div", "p", "li", "tr")
IN_DIVS = re.compile(  # code without `pre`: of Doxygen, SyntaxHighlighter, Crayon, and of editors
    r"(?<!\S)(?:fragment|syntaxhighlighter|crayon-pre|CodeMirror-code|cm-content|view-lines|ace_text-layer)(?!\S)"
)
DIAGRAM = re.compile(
    r"(?<!\S)(?:mermaid|plantuml|graphviz|nomnoml|vega)(?!\S)"
)  # as text, from which a script draws
AS_WRITTEN = re.compile(r"white-space\s*:\s*pre\s*(?:;|$)", re.IGNORECASE)
ADDRESSES = (
    "data-src", "data-original", "data-lazy-src", "data-lazy", "data-url", "src",
    "srcset", "data-srcset", "data-lazy-srcset",
)  # fmt: skip
ANY_ADDRESS = re.compile(r"src|img|image|original|url|lazy|full")
IS_IMAGE = re.compile(r"\.(?:avif|gif|jpe?g|png|svg|webp)(?:$|[?#])", re.IGNORECASE)
WAITING = re.compile(r"/(?:blank|spacer|placeholder|transparent|pixel|1x1|loading)[^/]*$", re.IGNORECASE)
EXPONENT = re.compile(r"[+−-]?\w{1,6}[+−-]?\)?")
ORDINAL = re.compile(r"st|nd|rd|th|er|ère|ème|º|ª", re.IGNORECASE)
ATOMS = re.compile(r"[A-Z][a-z]?$|[)\]]$")  # what precedes a number of atoms
FRACTION = re.compile(r"\s*[/⁄]\s*")
SCHEMES = ("http:", "https:", "mailto:", "tel:", "ftp:", "geo:", "magnet:", "xmpp:", "sms:")


# --- addresses ----------------------------------------------------------------------------------------------


def absolute(address: str | None, base: str, link: bool = False) -> str:
    """Return an absolute address that Markdown can represent; empty for scripts, data, and invalid addresses.
    For links, empty also for a place in the same page."""
    if not address:
        return ""
    address = re.sub(r"[\t\r\n]", "", address).strip()
    try:
        whole = urljoin(base, address)
        if link and (address[:1] == "#" or ("#" in address and urldefrag(whole)[0] == urldefrag(base)[0])):
            return ""
    except ValueError:
        return ""
    if not whole.lower().startswith(SCHEMES):
        return ""
    for wrong, right in ((" ", "%20"), ("<", "%3C"), (">", "%3E"), ('"', "%22"), ("\\", "%5C")):
        whole = whole.replace(wrong, right)
    if whole.count("(") != whole.count(")"):
        whole = whole.replace("(", "%28").replace(")", "%29")
    return whole


def image_address(element: Any, base: str) -> str:
    """Return an image's address; empty for decoration, counters and images inside the page itself."""
    if element.get("alt") == "" and not _is_shown_alone(element):
        return ""
    if element.get("width") in ("0", "1", "2") or element.get("height") in ("0", "1", "2"):
        return ""
    sources = [element]
    if element.getparent().tag == "picture":
        sources += islice(element.itersiblings("source", preceding=True), 8)
    found = ""
    for source in sources:
        for name in ADDRESSES:
            value = (source.get(name) or "").strip()
            if name.endswith("set"):
                value = value.partition(" ")[0].rstrip(",")
            address = absolute(value, base)
            if address.startswith("http"):
                if not WAITING.search(address):
                    return address
                found = found or address
    return _waiting_address(element, base) or found


def _waiting_address(element: Any, base: str) -> str:
    """The address that an image keeps for a lazy-loading script, in an attribute with a name of the page's
    choice."""
    for name, value in element.items():
        if name.startswith("data-") and ANY_ADDRESS.search(name) and IS_IMAGE.search(value):
            address = absolute(value.split()[0].rstrip(","), base)
            if address.startswith("http"):
                return address
    return ""


def media_address(element: Any, base: str) -> str:
    """Return the address of a frame, a video or a sound, also if it is loaded lazily."""
    for name in ("src", *ADDRESSES[:5]):
        address = absolute(element.get(name), base)
        if address.startswith("http"):
            return address
    return ""


def _is_shown_alone(element: Any) -> bool:
    """Whether an image is all that a figure, or a `picture` in several sizes, shows."""
    return any(above.tag in ("figure", "picture") for above in islice(element.iterancestors(), 4))


# --- superscripts and subscripts ---------------------------------------------------------------------------


def index_signs(tag: str, element: Any, before: str) -> tuple[str, str]:
    """Return what to put around an exponent or an index, so that 10³ does not become 103, and x₁ stays
    distinct from x1."""
    text = plain_text(element).strip()
    if tag == "sup":
        if FRACTION.fullmatch(element.tail or "") and element.getnext() is not None:
            return (" " if before[-1:].isdigit() else "", "")  # 2 1/2
        if ORDINAL.fullmatch(text) and before[-1:].isdigit():
            return "", ""
        mark = "^"
    elif "/" in before or "⁄" in before or (text.isdigit() and ATOMS.search(before)):
        return "", ""
    else:
        mark = "_"
    if EXPONENT.fullmatch(text):
        return mark, ""
    if text[:1] in "[(" or not any(map(str.isalnum, text)):
        return "", ""
    return f"{mark}(", ")"


# --- code ---------------------------------------------------------------------------------------------------


def is_code(element: Any) -> bool:
    """Whether an element is a block of code."""
    tag = element.tag
    if tag in ("pre", "listing", "xmp"):
        return True
    if tag == "code":
        return "\n" in (element.text or "").strip() or (
            len(element) > 0 and "\n" in plain_text(element).strip() and element.find(".//br") is None
        )
    if tag == "div":
        return _is_code_in_divs(element)
    return tag == "table" and any(
        CODE_LINE_TABLE.search(cell.get("class") or "") for cell in islice(element.iter("td"), 8)
    )


def _is_code_in_divs(element: Any) -> bool:
    names, style = element.get("class"), element.get("style")
    if names and DIAGRAM.search(names):
        return len(element) == 0 and "\n" in (element.text or "").strip()
    if names and IN_DIVS.search(names):
        return next(element.iter("div", "p", "pre", "td"), None) is not None
    return style is not None and AS_WRITTEN.search(style) is not None and "\n" in plain_text(element).strip()


def is_line_numbers(element: Any) -> bool:
    """Whether an element holds the line numbers of code."""
    if element.tag not in ("td", "div", "span", "pre", "code") or not element.get("class"):
        return False
    return (
        LINE_NUMBERS.search(names_of(element)) is not None
        and DIGITS.fullmatch(plain_text(element)) is not None
    )


def code_text(element: Any) -> str:
    """Return code in its displayed form, line by line."""
    in_divs = element.tag == "div"  # where text between lines is only the page's spacing
    has_lines = "\n" in plain_text(element).strip("\n")
    parts: list[str] = []
    walk = lxml.etree.iterwalk(element, events=("start", "end"))
    skipped = None
    closing: dict[Any, str] = {}  # of exponents and indices
    for event, inner in walk:
        tag = inner.tag
        if event == "start":
            if inner is not element and (tag == "button" or is_line_numbers(inner)):
                skipped = inner
                walk.skip_subtree()
                continue
            if tag == "br":
                parts.append("\n")
            elif tag == "img":
                parts.append(inner.get("alt") or "")
            elif tag in ("sup", "sub") and parts and not parts[-1][-1:].isspace():
                opening, closing[inner] = index_signs(tag, inner, parts[-1][-3:])
                parts.append(opening)
            elif tag in LINES and inner is not element and _is_in_line(parts):
                parts.append("\n")
            if inner.text:
                parts.append(inner.text)
            continue
        if inner in closing:
            parts.append(closing.pop(inner))
        if inner is skipped:
            skipped = None
        elif inner is not element and _ends_a_line(inner, has_lines, parts):
            parts.append("\n")
        if inner is not element and inner.tail and not (in_divs and inner.tail.isspace() and tag in LINES):
            parts.append(inner.tail)
    code = "".join(parts).replace("\r\n", "\n").replace("\r", "\n")
    lines = code.split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    return "\n".join(lines)


def _is_in_line(parts: list[str]) -> bool:
    """Whether the last line so far has text."""
    return bool(parts) and bool(parts[-1][-200:].rpartition("\n")[2].strip())


def _ends_a_line(element: Any, has_lines: bool, parts: list[str]) -> bool:
    """Whether a line ends with this element although no line feed follows."""
    if parts and parts[-1].endswith("\n"):
        return False
    if element.tag not in LINES:
        is_line = element.tag in ("span", "code") and LINE.search(names_of(element)) is not None
        behind = element.getnext()
        if has_lines or not is_line or (behind is not None and behind.tag == "br"):
            return False
    return element.getnext() is not None or bool((element.tail or "").strip())


def language_of(element: Any) -> str:
    """Return the language of code, as the page names it; empty if it does not."""
    near = [element, *element.iterchildren("code")]
    above = element.getparent()
    for _ in range(3):
        if above is None or above.tag not in ("div", "figure", "td", "tr", "tbody", "table", "pre", "span"):
            break
        near.append(above)
        above = above.getparent()
    for place in near:
        for name in (
            "data-lang",
            "data-language",
            "lang" if place.tag in ("pre", "code") else "data-code-lang",
        ):
            value = (place.get(name) or "").strip().lower()
            if re.fullmatch(r"[a-z][\w+#.-]*", value) and value not in NO_LANGUAGE:
                return value
        classes = place.get("class") or ""
        for match in LANGUAGE.finditer(classes):
            value = match[1].lower()
            if value not in NO_LANGUAGE:
                return value
        if place.tag in ("pre", "code"):
            for value in classes.lower().split():
                if value in KNOWN:
                    return value
    return ""

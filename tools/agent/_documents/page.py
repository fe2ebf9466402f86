"""Finds the main content of a page: parses it as it comes, takes out what surrounds the content, and
chooses the element that holds it.

What goes: scripts and styles, hidden elements, navigation, page headers and footers, dialogs and cookie
banners, advertisements, share and subscribe boxes, forms' controls. The rule above all others: the content
is never lost. An element that holds the main part of the text is never taken for a surrounding, and where
too little is left, everything but scripts and hidden elements is kept. Linear in the length of the page:
0.2 s a megabyte. Needs lxml; nothing is fetched, no entity or DTD loaded.
"""

from __future__ import annotations

import re

import lxml.etree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


ENOUGH = 200  # characters: an element with fewer is seldom the content of a page
NEVER_TEXT = words(
    "script style template noscript link meta base title iframe frame object embed applet param canvas "
    "svg audio video source track map area datalist progress meter"
)
CONTROLS = words("button input select textarea option optgroup menu nav dialog")
SURROUNDING_ROLES = words(
    "navigation banner contentinfo search dialog alertdialog menu menubar toolbar tablist tooltip "
    "complementary button"
)
MAIN_NAMES = re.compile(
    r"(?:^|[\s_-])(?:main|content|article|post|entry|story|body|text|page)[_-]?(?:content|body|text|main|inner)?(?:$|\s)"
    r"|markdown-body|mw-content-text|articleBody|document",
    re.IGNORECASE,
)

# Words of class names and ids. A word stands between anything that is no lower-case letter: `ad-slot`,
# `adSlot` and `AD_SLOT` hold the word ad, `shadow` and `adopt` do not.
CONSENT = re.compile(
    r"(?<![a-z])(?:cookies?|consent|gdpr|ccpa|onetrust|didomi|cookiebot|usercentrics|qc-cmp\d*|cmp|truste|cky|osano|"
    r"iubenda|privacy-(?:banner|notice|popup|wall))(?![a-z])"
)
SURROUNDING = re.compile(
    r"(?<![a-z])(?:ads?|adverts?|advertisements?|advertising|adsense|adsbygoogle|sponsor(?:ed|s)?|promo(?:s|tion|ted)?|"
    r"newsletters?|subscri(?:be|ption)|sign-?up|share|sharing|social|addthis|side-?bars?|bread-?crumbs?|nav|navbox|navbar|"
    r"navigation(?!-not)|menus?|drop-?downs?|interlanguage-link|language-(?:list|switcher|selector)|toc|table-of-contents|footers?|site-?header|page-?header|top-?bar|related|recommend(?:ed|ations?)?|"
    r"pagination|pagers?|skip-?(?:link|nav|to-content|to-main)|pop-?ups?|modals?|overlays?|lightbox|toast|"
    r"mw-editsection|editsection|edit-(?:link|page|this-page)|header-?links?|anchor-?links?|copy-?(?:btn|button|code)|"
    r"mw-jump-link|catlinks|site-?notice|noprint|print-?only|sr-only|visually-?hidden|screen-reader-text|"
    r"hidden|invisible|d-none|paywall|outbrain|taboola|disqus)(?![a-z])"
)
REMARK = re.compile(r"note|warn|tip|hint|admonition|callout|alert|info|important|caution|danger")
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
HIDING = re.compile(r"(?:^|;)\s*(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
SPACE = re.compile(r"\s+")
AGREE = re.compile(
    r"^(?:i )?(?:accept|agree|allow|reject|decline|got it|ok|okay|manage|only necessary)\b.{0,30}$"
    r"|^(?:alle )?(?:akzeptieren|ablehnen|zustimmen)|^(?:tout )?(?:accepter|refuser)"
    r"|^aceptar|^rechazar|^accetta|^aceitar"
    r"|^(?:قبول|أقبل|موافق|أوافق|رفض|السماح)",
    re.IGNORECASE,
)
COOKIES = re.compile(
    r"cookie|privacy|consent|tracking|datenschutz|confidentialité|ملفات تعريف|الارتباط|كوكيز|الخصوصية",
    re.IGNORECASE,
)
CONSENT_LENGTH = 2_500
SHALLOW = re.compile(
    r"</?(?:div|span|section|font|center|b|i|em|strong|a|article|main|p)\b[^<>]*>", re.IGNORECASE
)
ANY_TAG = re.compile(r"<[^<>]*>")


class Page:
    """A parsed page: its `title`, the `base` of its links, and the `content` chosen, one or two elements."""

    __slots__ = ("base", "content", "title")

    def __init__(self, title: str, base: str, content: list[Any]) -> None:
        self.title = title
        self.base = base
        self.content = content


def read(html: str, url: str) -> Page:
    """Return a page with its main content."""
    root = parse(html)
    title = title_of(root)
    base = base_of(root, url)
    drop(root, is_never_shown)
    shown = text_length(root)
    _drop_consent_boxes(root)
    drop(root, _Surroundings(root).has)
    content, left = choose(root)
    if not left or (left < ENOUGH and left < shown / 2):  # too little: better everything than nothing
        root = parse(html)
        drop(root, is_never_shown)
        content = [root]
        if not text_length(root):
            root = parse(html)
            drop(root, _is_code_for_machines)
            content = [root]
    return Page(title, base, content)


# --- parsing ------------------------------------------------------------------------------------------------


def parse(html: str) -> Any:
    """Return the root of any text taken as HTML. The parser goes 2,048 elements deep and drops what lies
    deeper; there the elements that only group go first, then all."""
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
    data = html.replace("\0", "").encode("utf-8", "replace")
    root = lxml.etree.fromstring(data, parser)
    if root is None:  # nothing in it
        return lxml.etree.HTML("<html><body></body></html>"), True
    too_deep = any("xcessive depth" in entry.message for entry in parser.error_log)
    return root, not too_deep


def title_of(root: Any) -> str:
    """Return the page's title, else its first heading, else nothing."""
    for path in ("./head/title", ".//body//h1", ".//title"):
        for element in root.iterfind(path):
            title = squeeze(plain_text(element))
            if title:
                return title[:500]
    return ""


def base_of(root: Any, url: str) -> str:
    from urllib.parse import urljoin

    for element in root.iterfind(".//base"):
        href = element.get("href")
        if href:
            try:
                return str(urljoin(url, href.strip()))
            except ValueError:
                break
    return url


# --- measures -----------------------------------------------------------------------------------------------


def squeeze(text: str) -> str:
    return SPACE.sub(" ", text).strip()


def plain_text(element: Any) -> str:
    return "".join(element.itertext())


def is_tick(element: Any) -> bool:
    """Whether an element is the box of an item in a list of things to do."""
    return (
        element.tag == "input"
        and element.get("type") == "checkbox"
        and element.getparent().tag in ("li", "p", "label")
    )


def text_length(element: Any) -> int:
    """Return how many characters an element shows, spaces apart."""
    return sum(len(part) for piece in element.itertext() for part in piece.split())


class Lengths:
    """The `text_length` of each element below a root, and how much of it stands in links."""

    def __init__(self, root: Any) -> None:
        self.text: dict[Any, int] = {}
        self.linked: dict[Any, int] = {}
        text, linked = self.text, self.linked
        for event, element in lxml.etree.iterwalk(root, events=("start", "end")):
            if event == "start":
                text[element] = _length(element.text)
                linked[element] = 0
                continue
            if element.tag == "a":
                linked[element] = text[element]
            parent = element.getparent()
            if parent is not None and element is not root:
                text[parent] += text[element] + _length(element.tail)
                linked[parent] += linked[element]


def _length(text: str | None) -> int:
    return sum(map(len, text.split())) if text else 0


def names_of(element: Any) -> str:
    """Return classes and id in lower case, `camelCase` and `snake_case` divided by hyphens."""
    joined = f"{element.get('class') or ''} {element.get('id') or ''}"
    if joined == " ":
        return ""
    return CAMEL.sub("-", joined).replace("_", "-").lower()


# --- taking out ---------------------------------------------------------------------------------------------


def drop(root: Any, unwanted: Callable[[Any], bool]) -> None:
    """Take out the elements that are unwanted, but not the text behind them."""
    walk = lxml.etree.iterwalk(root, events=("start",))
    doomed = []
    for _, element in walk:
        if element is not root and unwanted(element):
            doomed.append(element)
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


def _is_code_for_machines(element: Any) -> bool:
    return element.tag in ("script", "style", "template", "title")


def is_never_shown(element: Any) -> bool:
    """Whether a browser shows nothing of an element, or nothing that is text."""
    if element.tag in NEVER_TEXT:
        return True
    if element.get("hidden") is not None and element.get("hidden") != "until-found":
        return True
    style = element.get("style")
    return style is not None and HIDING.search(style) is not None


def _holders(root: Any, lengths: dict[Any, int]) -> set[Any]:
    """Return the elements around the main content and around the page's heading."""
    holders = set(root.iter("main", "html", "body"))
    for element in root.iter("main", "article", "h1"):
        if element.tag == "h1" and _in_any(element, ("header", "nav", "aside", "footer")):
            continue
        if element.tag == "article" and lengths[element] < lengths[root] / 4:
            continue
        for above in element.iterancestors():
            if above in holders and above.tag not in ("main", "html", "body"):
                break
            holders.add(above)
    return holders


def _drop_consent_boxes(root: Any) -> None:
    """Take out boxes that ask for consent but have no telling name: short, speaking of cookies, with a
    button that agrees."""
    buttons = [element for element in root.iter("button", "a", "input") if _agrees(element)]
    if not buttons:
        return
    lengths = Lengths(root).text
    holders = _holders(root, lengths)
    for button in buttons:
        if _in_any(button, ("main", "article")):
            continue
        box = None
        for above in button.iterancestors():
            if above in holders or lengths[above] > CONSENT_LENGTH:
                break
            if COOKIES.search(plain_text(above)):
                box = above
        if box is not None and lengths[root] - lengths[box] >= ENOUGH // 4:
            remove(box)


def _agrees(button: Any) -> bool:
    label = squeeze(plain_text(button) or button.get("value") or "")
    return 0 < len(label) <= 60 and AGREE.search(label) is not None


class _Surroundings:
    """Knows what of a page surrounds the content."""

    def __init__(self, root: Any) -> None:
        self.lengths = Lengths(root)
        self.holders = _holders(root, self.lengths.text)
        self.limit = max(self.lengths.text[root] * 0.4, ENOUGH)

    def has(self, element: Any) -> bool:
        """Whether an element, which is not inside another such, belongs to the surroundings."""
        if element in self.holders:
            return False
        tag = element.tag
        if tag in CONTROLS:
            return not is_tick(element)
        names = names_of(element)
        if names and CONSENT.search(names):  # longer than the content at times; but a recipe's cookies stay
            return self._is_small(element) or any(map(_agrees, element.iter("button", "a", "input")))
        return self._looks_so(element, names) and self._is_small(element)

    def _looks_so(self, element: Any, names: str) -> bool:
        tag, role = element.tag, element.get("role")
        if role in SURROUNDING_ROLES and not (role == "complementary" and _is_remark(element)):
            return True
        if names and tag != "article" and SURROUNDING.search(names):
            return True
        if tag == "aside":
            return not _is_remark(element)
        if tag == "header":
            return not _in_any(element, ("article", "main", "section"))
        if tag == "footer":
            return not _in_any(element, ("blockquote",))
        return bool(element.get("aria-hidden") == "true")

    def _is_small(self, element: Any) -> bool:
        """Whether an element holds less than the main part of the text; links hardly count."""
        return self.lengths.text[element] - self.lengths.linked[element] < self.limit


def _in_any(element: Any, tags: tuple[str, ...]) -> bool:
    return any(above.tag in tags for above in element.iterancestors())


def _is_remark(element: Any) -> bool:
    """Whether an aside belongs to the text: a note, a warning."""
    named = REMARK.search(names_of(element)) or element.get("role") in ("note", "doc-tip", "doc-notice")
    return bool(named) and _in_any(element, ("article", "main"))


# --- choosing -----------------------------------------------------------------------------------------------


def choose(root: Any) -> tuple[list[Any], int]:
    """Return the element that holds the main content, and its `text_length`; the page's heading before it,
    if that stands outside."""
    body, head = root.find("body"), root.find("head")
    if body is None or (head is not None and text_length(head)):
        body = root  # without a tag for the body, the parser puts much into the head
    lengths = Lengths(body).text
    best = _marked(body, lengths)
    if best is None:
        best = _named(body, lengths)
    if best is None:
        best = _densest(body, lengths)
    if best is not body and next(best.iter("h1"), None) is None:
        outside = [h1 for h1 in body.iter("h1") if lengths[h1]]
        if len(outside) == 1:
            outside[0].tail = None
            return [outside[0], best], lengths[best]
    return [best], lengths[best]


def _marked(body: Any, lengths: dict[Any, int]) -> Any:
    """The element that the page itself marks as its main part."""
    everything = lengths[body]
    mains = [element for element in lengths if element.tag == "main" or element.get("role") == "main"]
    if mains:
        best = max(mains, key=lengths.__getitem__)
        if lengths[best] >= min(ENOUGH, everything * 0.3):
            return best
    articles = [element for element in body.iter("article") if not _in_any(element, ("article",))]
    if articles:
        best = max(articles, key=lengths.__getitem__)
        if lengths[best] >= max(everything * 0.5, 1):
            return best
    return None


def _named(body: Any, lengths: dict[Any, int]) -> Any:
    """The innermost element with a telling name that still holds nearly everything."""
    least = max(lengths[body] * 0.6, 1)
    best = None
    for element in body.iter("div", "section", "td"):
        if lengths[element] >= least:
            names = f"{element.get('id') or ''} {element.get('class') or ''}"
            if element.get("itemprop") == "articleBody" or MAIN_NAMES.search(names):
                best = element
    return best


def _densest(body: Any, lengths: dict[Any, int]) -> Any:
    """Descend as long as one child holds nearly everything."""
    best = body
    while lengths[best]:
        for child in best.iterchildren("div", "section", "center", "form", "article"):
            if lengths[child] >= lengths[best] * 0.95:
                best = child
                break
        else:
            break
    return best

"""Finds the main content of a page: parses it, removes what surrounds the content, and chooses the element
that holds it.

It removes scripts and styles, hidden elements, navigation, page headers and footers, dialogs and cookie
banners, advertisements, share and subscribe boxes, buttons. The first rule: the content is never lost. An
element that holds the main part of the text is never removed as a surrounding. Where too little is left,
everything but scripts and hidden elements is kept.
"""

from __future__ import annotations

import re

import lxml.etree

from . import embedded, folded, formulas, roles
from .tree import drop, has_many, is_never_shown, is_tick, names_of, parse, plain_text, remove, squeeze, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


LITTLE = 60  # characters outside of links: a line about who made the page, not a paragraph
ENOUGH = 200  # characters: an element with fewer is seldom the content of a page
CONTROLS = words("button input option optgroup menu nav dialog")
SURROUNDING_ROLES = words(
    "navigation banner contentinfo search dialog alertdialog menu menubar toolbar tablist tooltip "
    "complementary button"
)
MAIN_NAMES = re.compile(
    r"(?:^|[\s_-])(?:main|content|article|post|entry|story|body|text|page)[_-]?(?:content|body|text|main|inner)?(?:$|\s)"
    r"|markdown-body|mw-content-text|articleBody|document",
    re.IGNORECASE,
)

# Words of class names and ids. A word ends at anything but a lower-case letter: `ad-slot`, `adSlot` and
# `AD_SLOT` contain the word ad; `shadow` and `adopt` do not, nor does the number 2ad446 or ad44f.
WORD = r"(?<![a-z0-9])(?:%s)(?![a-z]|\d+[a-wyz])"
CONSENT = re.compile(
    WORD
    % (
        r"cookies?|consent|gdpr|ccpa|onetrust|didomi|cookiebot|usercentrics|qc-cmp\d*|cmp|truste|cky|osano|iubenda|"
        r"privacy-(?:banner|notice|popup|wall)"
    )
)
LEADING = (  # boxes that lead elsewhere consist of links
    r"side-?bars?|bread-?crumbs?|nav|navbox|navbar|navigation(?!-not)|menus?|drop-?downs?|toc|table-of-contents|"
    r"pagination|pagers?"
)
TOPICS = (  # subjects that a page may also write about
    r"related|recommend(?:ed|ations?)?|subscription|share|sharing|social|pop-?ups?|modals?|overlays?"
)
SURROUNDING = re.compile(
    WORD
    % (
        r"ads?|adverts?|advertisements?|advertising|adsense|adsbygoogle|sponsor(?:ed|s)?|promo(?:s|tion|ted)?(?!-?code)|"
        r"newsletters?|subscribe|sign-?up|"
        r"addthis|interlanguage-link|language-(?:list|switcher|selector)|footers?|site-?header|page-?header|top-?bar|"
        r"skip-?(?:link|nav|to-content|to-main)|toast|"
        r"mw-editsection|editsection|edit-(?:link|page|this-page)|(?P<mark>header-?links?|anchor-?links?)|"
        r"copy-?(?:btn|button|code)|mw-jump-link|catlinks|site-?notice|noprint|print-?only|"
        rf"paywall|outbrain|taboola|disqus|(?P<aloud>visually-?hidden|sr-only|screen-reader-text)|"
        rf"(?P<topic>{TOPICS})|(?P<leading>{LEADING})"
    )
)
PAGES = re.compile(r"(?<!\S)(?:pagination|pagers?)(?!\S)")
SEEN_ON_WIDE = re.compile(
    r":(?:block|flex|grid|inline|table|contents|visible)|(?<!\S)d-(?:sm|md|lg|x+l)-(?!none)"
)
OF_ANY_PART = re.compile(
    r"(?<![a-z])(?:site|page|main|left|right|global|wrapper|container|inner|outer|box|area|widget|block|section|"
    r"top|bottom|primary|secondary|col|column)(?![a-z])|[^a-z]"
)
PLACES = words("h1 h2 h3 h4 h5 h6 dt dd tr td th li span a code p pre table tbody")
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
ALONE = words("td th li dd dt p span label a")
NAMED_OTHERWISE = ("article", "sup")  # named after their topic; a remark that is not printed
SLUG = re.compile(r"[\W_]+")
ICON = re.compile(r"icon|symbol|glyph")
REMARK = re.compile(r"onebox|note|warn|tip|hint|admonition|callout|alert|info|important|caution|danger")
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
    _show(root, base)
    shown = text_length(root)
    _drop_consent_boxes(root)
    drop(root, _Surroundings(root).has, whole="pre")
    content, left = choose(root)
    if not left or (left < ENOUGH and left < shown / 2):  # too little: better everything than nothing
        root = parse(html)
        _show(root, base)
        content = [root]
        if not text_length(root):
            root = parse(html)
            drop(root, _is_code_for_machines)
            content = [root]
    return Page(title, base, content)


def _show(root: Any, base: str) -> None:
    """Keep what a reader sees, as text."""
    formulas.settle(root)
    roles.settle(root)
    embedded.reveal(root, base)
    folded.reveal(root)
    drop(root, is_never_shown)
    embedded.settle(root, base)


def title_of(root: Any) -> str:
    """Return the page's title, else its first heading, else an empty text."""
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


def text_length(element: Any) -> int:
    """Return the number of characters that an element shows, without spaces."""
    return sum(len(part) for piece in element.itertext() for part in piece.split())


class Lengths:
    """The `text_length` of each element below a root, and how much of it is in links."""

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

    def left_out(self, outer: Any, inner: Any) -> int:
        """The length of the text outside of links in one element but not in its given descendant."""
        return self.text[outer] - self.linked[outer] - self.text[inner] + self.linked[inner]


def _length(text: str | None) -> int:
    return sum(map(len, text.split())) if text else 0


# --- taking out ---------------------------------------------------------------------------------------------


def _is_code_for_machines(element: Any) -> bool:
    return element.tag in ("script", "style", "template", "title")


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
    """Remove boxes that ask for consent but have no telling name: short, about cookies, with a button that
    agrees."""
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
    """Decides what of a page surrounds the content."""

    def __init__(self, root: Any) -> None:
        self.lengths = Lengths(root)
        self.holders = _holders(root, self.lengths.text)
        self.limit = max(self.lengths.text[root] * 0.4, ENOUGH)

    def has(self, element: Any) -> bool:
        """Whether an element that is not inside another surrounding belongs to the surroundings."""
        if element in self.holders:
            return False
        tag = element.tag
        if tag in CONTROLS:
            is_shown = tag == "dialog" and element.get("open") is not None and _in_main(element)
            return not (is_tick(element) or is_shown)
        names = names_of(element, with_id=self._id_tells(element))
        if names and CONSENT.search(names):  # longer than the content at times; but a recipe's cookies stay
            return self._is_small(element) or any(map(_agrees, element.iter("button", "a", "input")))
        return self._looks_so(element, names) and self._is_small(element)

    def _looks_so(self, element: Any, names: str) -> bool:
        tag, role = element.tag, element.get("role")
        if role in SURROUNDING_ROLES and not (role == "complementary" and _is_remark(element)):
            return True
        if names and tag not in NAMED_OTHERWISE and self._is_named_so(element, names):
            return True
        if tag == "aside":
            return not _is_remark(element) and not (_in_main(element) and not self._leads_elsewhere(element))
        if tag == "header":
            return not _in_any(element, ("article", "main", "section"))
        if tag == "footer":
            of_a_part = _in_main(element) and _in_any(element, ("article", "section"))
            return not _in_any(element, ("blockquote",)) and (not of_a_part or self._does_something(element))
        return bool(element.get("aria-hidden") == "true") and not _is_seen(element)

    def _is_named_so(self, element: Any, names: str) -> bool:
        for match in SURROUNDING.finditer(names):
            if match["leading"] is not None:
                is_so = element.tag != "h1" and self._leads_elsewhere(element)
            elif match["mark"] is not None:  # a heading may be named after the link in it
                is_so = self.lengths.linked[element] >= self.lengths.text[element]
            elif match["topic"] is not None:
                is_so = self._does_something(element)
            else:
                is_so = match["aloud"] is None or not _says_all(element)
            if is_so:
                return True
        if folded.UNSEEN.search(names) and not SEEN_ON_WIDE.search(names):
            return True
        return PAGES.search(names) is not None

    def _leads_elsewhere(self, element: Any) -> bool:
        """Whether so much of an element is links that it leads elsewhere; a box in a text's margin, or a menu
        of dishes, is content."""
        linked, text = self.lengths.linked[element], self.lengths.text[element]
        if _in_main(element):
            return linked > text * 0.25
        return (
            linked > 0 or text == 0 or next(element.iter("a", "button", "h2", "h3", "h4"), None) is not None
        )

    def _does_something(self, element: Any) -> bool:
        """Whether an element is a control or leads elsewhere, and is not text to read."""
        if not _in_main(element) or element.tag == "aside" or self._leads_elsewhere(element):
            return True
        if self.lengths.text[element] == 0 or next(element.iter("button", "form"), None) is not None:
            return True
        heads = element.iter(*HEADINGS)
        return any((link.get("href") or "#")[0] != "#" for head in heads for link in head.iter("a"))

    def _id_tells(self, element: Any) -> bool:
        """Whether an id describes an element. Most are link targets, named after a heading."""
        id = element.get("id")
        if not id or element.tag in PLACES or _is_linked_to(element, id):
            return False
        whole = OF_ANY_PART.sub("", names_of(element).rpartition(" ")[2])
        if SURROUNDING.fullmatch(whole) or CONSENT.search(whole):
            return True
        return self.lengths.linked[element] * 2 >= self.lengths.text[element]

    def _is_small(self, element: Any) -> bool:
        """Whether an element holds less than the main part of the text; links count little."""
        return self.lengths.text[element] - self.lengths.linked[element] < self.limit


def _in_any(element: Any, tags: tuple[str, ...]) -> bool:
    return any(above.tag in tags for above in element.iterancestors())


def _is_linked_to(element: Any, id: str) -> bool:
    """Whether an id is that of the heading at the beginning of the element."""
    head = next(element.iter(*HEADINGS), None)
    if head is None or head.getparent() is not element:
        return False
    if any((link.get("href") or "").endswith(f"#{id}") for link in head.iterchildren("a")):
        return True
    return SLUG.sub("", id.lower()) == SLUG.sub("", plain_text(head).lower())


def _is_seen(element: Any) -> bool:
    """Whether words that screen readers skip are visible in a line for all others: a price, next to a form of
    it for screen readers."""
    if element.tag not in ("span", "b", "strong", "em", "sup", "sub", "small", "td", "th"):
        return False
    text = squeeze(plain_text(element))
    if len(text) > ENOUGH or not any(map(str.isalnum, text)) or ICON.search(names_of(element)):
        return False
    return not any(
        twin is not None and SLUG.sub("", plain_text(twin)) == SLUG.sub("", text)
        for twin in (element.getprevious(), element.getnext())
    )


def _says_all(element: Any) -> bool:
    """Whether text for screen readers is the only text in its place: beside a picture, an icon."""
    around = element.getparent()
    if element.tag not in ("span", "b", "strong", "em", "small") or around.tag not in ALONE:
        return False
    if has_many(around):
        return False
    if around.tag == "a" and (around.get("href") or "#")[0] == "#":
        return False
    beside = [around.text, *(child.tail for child in around)]
    beside += [
        plain_text(child) for child in around if child is not element and child.get("aria-hidden") != "true"
    ]
    return not any(text and text.strip() for text in beside)


def _in_main(element: Any) -> bool:
    return any(
        above.tag in ("main", "article") or above.get("role") == "main" for above in element.iterancestors()
    )


def _is_remark(element: Any) -> bool:
    """Whether an aside belongs to the text: a note, a warning."""
    named = REMARK.search(names_of(element)) or element.get("role") in ("note", "doc-tip", "doc-notice")
    return bool(named) and _in_main(element)


# --- choosing -----------------------------------------------------------------------------------------------


def choose(root: Any) -> tuple[list[Any], int]:
    """Return the element that holds the main content, and its `text_length`; the page's heading before it, if
    the heading is outside."""
    body, head = root.find("body"), root.find("head")
    if body is None or (head is not None and text_length(head)):
        body = root  # if the body tag is missing, the parser puts much into the head
    both = Lengths(body)
    lengths = both.text
    best = _marked(body, lengths)
    if best is None:
        best = _named(body, both)
    if best is None:
        best = _densest(body, both)
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


def _named(body: Any, lengths: Lengths) -> Any:
    """The innermost element with a telling name that still holds nearly everything."""
    least = max(lengths.text[body] * 0.6, 1)
    best = None
    for element in body.iter("div", "section", "td"):
        if lengths.text[element] < least or (best is not None and lengths.left_out(best, element) > LITTLE):
            continue
        names = f"{element.get('id') or ''} {element.get('class') or ''}"
        if element.get("itemprop") == "articleBody" or MAIN_NAMES.search(names):
            best = element
    return best


def _densest(body: Any, lengths: Lengths) -> Any:
    """Descend as long as one child holds everything but a few words and links."""
    best = body
    while lengths.text[best]:
        for child in best.iterchildren("div", "section", "center", "form", "article"):
            most = lengths.text[child] >= lengths.text[best] * 0.95
            if most and lengths.left_out(best, child) <= LITTLE:
                best = child
                break
        else:
            break
    return best

"""What of a page's main content its Markdown has lost: words and numbers, code, rows of tables, images.

Reads a page by another parser and another choice of the content than the code it looks after: the element
that the page's generator is known to put its content in, or that is marked `data-content`. What no one reads
there (scripts, navigation, hidden elements, buttons, line numbers, marks to link by) does not count. A number
counts as a whole: 1/2 that has become 12 has lost a 1 and a 2.
"""

from __future__ import annotations

import re
from collections import Counter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Where generators put their content, the surest sign first.
CONTENT = (
    "[data-content]", "#mw-content-text", "#main-content", "div[role=main]", "main", "div.contents",
    "div.ltx_page_content", "article", "div.body", "#content", "#page-content", "div.context", "body",
)  # fmt: skip
UNREAD = (
    "script, style, template, noscript, nav, head, title, button, iframe, object, canvas, svg, video, audio, "
    "[hidden], [style*='display:none'], [style*='display: none'], [aria-hidden=true], .headerlink, .anchor, "
    ".sphinxsidebar, .linenos, .linenodiv, .lineno, .hidden, .navheader, .navfooter, .sub-nav, .navigation, "
    ".toc, #toc, .headertitle .summary, annotation, annotation-xml, select, datalist, .blob-num, header, "
    "footer, .breadcrumb, .breadcrumbs, .sidebar-nav, .mw-editsection, .navbox, .ads, .share, .related, "
    ".rustdoc-toolbar, .visually-hidden, .sr-only, .copyright-footer, .spirit-nav, .nav-panel, #column2, "
    ".menubar, .nosearch, .sidebar, .gtk_doc-footer, [data-surrounding], .contents.topic, #table-of-contents,"
    " .footer, #footer, .nav, div.header, #hd, #ft, .navigationbar, table.menu, .navbar"
)
WORD = re.compile(r"[^\W\d_]+|\d+")
TARGET = re.compile(r"\]\(<?[^()\s]*(?:\([^()\s]*\)[^()\s]*)*>?\)")
INLINE = words(
    "a abbr acronym b bdi bdo big cite code data del dfn em font i ins kbd mark nobr q rb ruby s "
    "samp small span strike strong time tt u var wbr sub sup mi mn mo msub msup mtext"
)


class Loss:
    """What is missing: `words` with how often; `surplus` counts words that the page does not have there."""

    def __init__(self) -> None:
        self.words: Counter[str] = Counter()
        self.total = self.surplus = 0
        self.code = self.codes = self.row = self.rows = self.image = self.images = 0
        self.examples: list[str] = []


def content_of(html: str) -> Any:
    """Return the main content, as a tree of BeautifulSoup's, without what no one reads."""
    import bs4

    soup = bs4.BeautifulSoup(html, "html.parser")
    found = next(filter(None, map(soup.select_one, CONTENT)), soup)
    for unread in found.select(UNREAD):
        unread.decompose()
    for formula in found.select("math"):  # what it becomes has other words: its numbers count
        formula.replace_with(" ".join(["", *(number.get_text() for number in formula.select("mn")), ""]))
    for comment in found.find_all(string=lambda text: isinstance(text, bs4.element.PreformattedString)):
        comment.extract()
    return found


def text_of(element: Any) -> str:
    """Return an element's text, with spaces where a browser begins a line or raises what is a number."""
    parts: list[str] = []
    _gather(element, parts)
    return "".join(parts)


def _gather(element: Any, parts: list[str]) -> None:
    for child in element.children:
        if isinstance(child, str):
            parts.append(str(child))
            continue
        apart = child.name not in INLINE or child.name in ("sub", "sup", "mn")
        if apart:
            parts.append(" ")
        _gather(child, parts)
        if apart:
            parts.append(" ")


def lost(html: str, markdown: str) -> Loss:
    """Compare a page with its Markdown."""
    loss = Loss()
    content = content_of(html)
    text = text_of(content)
    wanted = Counter(WORD.findall(text))
    shown = re.sub(r"\\([^\w\s])", r"\1", TARGET.sub("] ", markdown))
    shown = re.sub(r"`|\*\*|~~", "", shown)
    got = Counter(WORD.findall(shown))
    loss.words = wanted - got
    loss.total = wanted.total()
    loss.surplus = (got - wanted).total()
    _compare_code(content, markdown, loss)
    _compare_rows(content, shown, loss)
    for image in content.select("img[src]"):
        name = image["src"].rpartition("/")[2]
        if image.get("alt") != "" and not image["src"].startswith("data:") and name:
            loss.images += 1
            loss.image += name.partition("?")[0] not in markdown
    if loss.words:
        for match in WORD.finditer(text):
            if match[0] in loss.words and len(loss.examples) < 5:
                around = " ".join(text[max(match.start() - 40, 0) : match.end() + 40].split())
                loss.examples.append(f"{match[0]}: …{around}…")
    return loss


def _compare_code(content: Any, shown: str, loss: Loss) -> None:
    """Every line of code is a line of the Markdown, with its indentation."""
    lines = {line.strip("`|> ").rstrip() for line in shown.split("\n")}
    whole = " ".join(shown.split())
    for block in content.select("pre"):
        if block.select_one(".conum, br, table, div") or block.find_parent(("table", "dl")):
            continue
        for line in block.get_text().split("\n"):
            if line.strip():
                loss.codes += 1
                if line.strip("`|> ").rstrip() not in lines and " ".join(line.split()) not in whole:
                    loss.code += 1


def _compare_rows(content: Any, shown: str, loss: Loss) -> None:
    """Every row of a table with a header is a row still: its first words and its last in one line."""
    lines = [
        Counter(WORD.findall(line)) for line in shown.split("\n") if line.count("|") > 1 or "<br>" in line
    ]
    by_word: dict[str, list[Counter[str]]] = {}
    for line in lines:
        for word in line:
            by_word.setdefault(word, []).append(line)
    for table in content.select("table"):
        if table.find("th") is None or table.get("role") == "presentation" or table.find_parent("table"):
            continue
        for row in table.select("tr"):
            if row.find_parent("table") is not table:
                continue
            cells = [WORD.findall(text_of(cell)) for cell in row.find_all(["td", "th"], recursive=False)]
            cells = [cell for cell in cells if cell]
            if len(cells) < 2:
                continue
            loss.rows += 1
            first, last = cells[0][0], cells[-1][-1]
            loss.row += not any(line[last] for line in by_word.get(first, ())[:2000])

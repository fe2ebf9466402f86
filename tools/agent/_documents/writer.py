"""Writes the chosen content as a flat sequence of blocks: plain HTML that any converter understands.

The input may be nested a thousand deep, broken, and full of elements that only group. The output holds
headings, paragraphs, lists, tables, code, quotations, rules, links and images, at most `DEEPEST` levels deep.
Links and images are absolute; of links within the page only the text stays. `blocks` handles code, `tables`
handles tables. Text is never reshaped or reordered. One walk, without recursion except for table cells.
"""

from __future__ import annotations

import re
from html import escape

import lxml.etree

from . import blocks, formulas, tables
from .numbering import Numbering
from .tree import is_tick, plain_text, squeeze, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

DEEPEST = 24  # lists and quotations inside each other; deeper ones are shown at that level
LONGEST = 4_000_000  # characters of output; the rest is left out, and a note says so
LEFT_OUT = "<p>[The rest of the page is left out.]</p>"
SPACES = re.compile(r"[ \t\r\n\f]+")
HEADINGS = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
INLINE = {
    **dict.fromkeys(("b", "strong"), "strong"),
    **dict.fromkeys(("i", "em", "cite", "dfn", "var"), "em"),
    **dict.fromkeys(("s", "del", "strike"), "del"),
    **dict.fromkeys(("code", "kbd", "samp", "tt"), "code"),
    "a": "a",
}
LABELS = {"dt": "strong", "summary": "strong", "legend": "strong", "caption": "em", "figcaption": "em"}
GROUPING = words(  # inline, and without a meaning here
    "abbr acronym bdi bdo big data font ins label mark nobr output picture q rb rbc rp rt rtc ruby small "
    "span sub sup time u wbr semantics source area"
)
ANCHOR_TEXTS = frozenset(("#", "¶", "§", "🔗", "🔗︎", "\uf0c1", "^", "↑", "↩", "↩︎"))
SIGNED = words("sup sub q rt abbr acronym")
TITLE = 300  # characters of an image's tooltip
ABBREVIATIONS = 500  # whose long form is given, at their first use
INNERMOST = 3  # tables inside cells


def write(elements: list[Any], base: str) -> list[str]:
    """Return the blocks of some elements, each a piece of HTML that is whole in itself."""
    writer = Writer(base)
    for element in elements:
        writer.add(element)
    return [*writer.finish(), LEFT_OUT] if writer.is_full() else writer.finish()


def write_cell(element: Any, base: str, depth: int = 1) -> str:
    """Return the content of a table's cell in one line; `depth` is how many tables contain it."""
    writer = Writer(base, depth)
    writer.add(element)
    return "".join(writer.finish())


class Writer:
    """Takes in elements; `finish` returns the blocks."""

    def __init__(self, base: str, depth: int = 0) -> None:
        self.base = base
        self._depth = depth
        self._one_line = depth > 0
        self._blocks: list[str] = []  # finished
        self._out: list[str] = []  # the block that is being written
        self._containers: list[str] = []  # open lists, items and quotations; "" for one that is not written
        self._filled: list[bool] = []  # for each, whether something is in it
        self._numbers: list[Numbering | None] = []  # for each, the counter of its items
        self._cell_lists: list[Numbering | None] = []  # the same in a cell, where no list is written
        self._due = ""  # the mark of an item that has begun, where it is text
        self._signs: list[str] = []  # what closes each open exponent, quotation, reading
        self._named: set[str] = set()  # abbreviations whose long form was given
        self._block: str | None = None  # the open paragraph's tag; "" for text right in an item
        self._heading = ""
        self._wanted: list[tuple[str, str]] = []  # inline elements around the next text: tag, start tag
        self._opened: list[str] = []  # those of them that are written, as tags; "" for one left out
        self._space = False  # a space is due before the next text
        self._breaks = 0  # line breaks are due
        self._length = 0  # of all blocks

    def add(self, root: Any) -> None:
        walk = lxml.etree.iterwalk(root, events=("start", "end"))
        whole = None
        for event, element in walk:
            if event == "start":
                if self._is_whole(element):
                    whole = element
                    walk.skip_subtree()
                    continue
                self._start(element)
                if element.text:
                    self.text(element.text)
                continue
            if element is whole:
                whole = None
            else:
                self._end(element)
                if self.is_full():
                    return
            if element.tail and element is not root:
                self.text(element.tail)

    def is_full(self) -> bool:
        return self._length > LONGEST

    def finish(self) -> list[str]:
        if self._block is not None:
            self._close_block()
        while self._containers:
            self._close_top()
        return self._blocks

    # --- text and inline elements -----------------------------------------------------------------------

    def text(self, text: str) -> None:
        """Add text; runs of white space count as one space."""
        squeezed = SPACES.sub(" ", text)
        bare = squeezed.strip(" ")
        if not bare:
            self._space = self._space or bool(squeezed)
            return
        self._open(before_text=squeezed[0] == " ")
        self._out.append(escape(bare, quote=False))
        self._space = squeezed[-1] == " "

    def inline(self, html: str) -> None:
        """Add a piece of inline HTML."""
        self._open(before_text=False)
        self._out.append(html)

    def _open(self, before_text: bool) -> None:
        """Open the block and the inline elements that are due, and write the space or break between."""
        fresh = self._block is None
        if fresh:
            self._open_block()
        elif self._breaks:
            self._out.append("<br>")
        elif self._space or before_text:
            self._out.append(" ")
        self._space = False
        self._breaks = 0
        if self._due:
            self._out.append(self._due)
            self._due = ""
        while len(self._opened) < len(self._wanted):
            tag, start = self._wanted[len(self._opened)]
            plain = self._heading and tag in ("strong", "em")
            if not start or plain or tag in self._opened or "code" in self._opened:
                tag = start = ""
            self._opened.append(tag)
            self._out.append(start)

    def _start_inline(self, tag: str, element: Any) -> None:
        start = f"<{tag}>"
        if tag == "a":
            address = blocks.absolute(element.get("href"), self.base, link=True)
            start = f'<a href="{escape(address)}">' if address else ""
        self._wanted.append((tag, start))

    def _end_inline(self) -> None:
        self._wanted.pop()
        if len(self._opened) > len(self._wanted):
            tag = self._opened.pop()
            if tag:
                self._out.append(f"</{tag}>")

    def _line_break(self) -> None:
        self._breaks += 1
        if self._heading or self._block is None:
            self._breaks, self._space = 0, self._block is not None
        elif self._breaks > 1 and not self._one_line:
            self._end_block()

    def _image(self, element: Any) -> None:
        formula = formulas.of_image(element)
        if formula:
            self.text(formula)
            return
        alt = squeeze(element.get("alt") or "")
        if alt and len(alt) <= 8 and not any(map(str.isalnum, alt)) and not alt.isascii():
            self.text(alt)  # an emoji
            return
        address = blocks.image_address(element, self.base)
        if address:
            title = squeeze(element.get("title") or "")[:TITLE]
            said = f' title="{escape(title)}"' if alt and title and title.lower() != alt.lower() else ""
            self.inline(f'<img src="{escape(address)}" alt="{escape(alt or title)}"{said}>')

    # --- blocks -----------------------------------------------------------------------------------------

    def block(self, html: str) -> None:
        """Add a block that is written already."""
        self._end_block()
        if self._containers and self._containers[-1] in ("ul", "ol"):
            self._open_item()
        if self._due:
            self._open(before_text=False)
            self._close_block()
        self._fill()
        self._out.append(html)
        self._push()

    def _open_block(self) -> None:
        if self._containers and self._containers[-1] in ("ul", "ol"):
            self._open_item()  # text in a list, but in no item
        in_item = bool(self._containers) and self._containers[-1] == "li"
        if self._one_line or (in_item and not self._filled[-1]):
            self._block = ""
        else:
            self._block = self._heading if self._heading and not in_item else "p"
            self._out.append(f"<{self._block}>")
        self._fill()

    def _fill(self) -> None:
        if self._filled:
            self._filled[-1] = True

    def _end_block(self) -> None:
        """End the paragraph; in a heading or a cell, add a line break."""
        if self._block is None:
            return
        if self._one_line or self._heading:
            self._breaks, self._space = int(self._one_line), True
            return
        self._close_block()

    def _close_block(self) -> None:
        while self._opened:
            tag = self._opened.pop()
            if tag:
                self._out.append(f"</{tag}>")
        if self._block:
            self._out.append(f"</{self._block}>")
        self._block = None
        self._space = False
        self._breaks = 0
        self._push()

    def _push(self) -> None:
        if not self._containers and self._out:
            self._blocks.append("".join(self._out))
            self._length += len(self._blocks[-1])
            self._out.clear()

    # --- lists and quotations ---------------------------------------------------------------------------

    def _open_container(self, tag: str, start: str, numbers: Numbering | None = None) -> None:
        self._end_block()
        self._fill()
        if len(self._containers) >= DEEPEST * 2:
            tag = start = ""
        self._containers.append(tag)
        self._filled.append(False)
        self._numbers.append(numbers)
        self._out.append(start)

    def _open_list(self, tag: str, element: Any) -> None:
        self._end_block()
        if self._containers and self._containers[-1] in (
            "ul",
            "ol",
        ):  # a list right in a list belongs to the item before
            if self._out[-1] == "</li>":
                self._out.pop()
                self._containers.append("li")
                self._filled.append(True)
                self._numbers.append(None)
            else:
                self._open_item()
        numbers = Numbering(element) if tag == "ol" else None
        if numbers is None or numbers.kind:  # Markdown has no letters as numbers: the items contain them
            self._open_container(tag, "<ul>", numbers)
        else:
            start = f' start="{numbers.start}"' if numbers.start != 1 else ""
            self._open_container(tag, f"<ol{start}>", numbers)

    def _open_item(self, element: Any = None) -> None:
        self._end_block()
        if self._containers and self._containers[-1] == "li":
            self._close_top()
        if not self._containers or self._containers[-1] not in ("ul", "ol", ""):
            self._open_container("ul", "<ul>")
        numbers = self._numbers[-1]
        if numbers is None:
            self._open_container("li", "<li>")
            return
        value, jumps = numbers.take(element)
        self._open_container("li", f'<li value="{value}">' if jumps and not numbers.kind else "<li>")
        self._due = f"{numbers.label(value)} " if numbers.kind else ""

    def _mark_item(self, element: Any) -> None:
        """Put the mark of an item before its content, in a cell."""
        self._end_block()
        numbers = self._cell_lists[-1] if self._cell_lists else None
        self._due = "- " if numbers is None else f"{numbers.label(numbers.take(element)[0])} "

    def _close(self, tag: str) -> None:
        """Close the innermost container with this tag, and all that is open in it."""
        self._end_block()
        for container in reversed(self._containers):
            if container == tag or not container:
                break
            if container in ("ul", "ol", "blockquote") and tag == "li":
                return
        else:
            return
        while self._close_top() not in (tag, ""):
            pass

    def _close_top(self) -> str:
        self._end_block()
        tag = self._containers.pop()
        filled = self._filled.pop()
        numbers = self._numbers.pop()
        if tag:
            self._out.append(f"</{'ul' if numbers is not None and numbers.kind else tag}>")
            if not filled:
                self._out[-2:] = []  # nothing was in it
        self._push()
        return tag

    # --- elements ---------------------------------------------------------------------------------------

    def _is_whole(self, element: Any) -> bool:
        """Write an element without walking through it, if it is one of those. Return whether it is."""
        tag = element.tag
        if tag == "br":
            self._line_break()
        elif tag == "img":
            self._image(element)
        elif tag == "hr":
            if self._one_line:
                self._end_block()
            else:
                self.block("<hr>")
        elif blocks.is_line_numbers(element):
            return True
        elif blocks.is_code(element):
            self._code(element)
        elif tag == "table" and self._depth < INNERMOST and tables.is_data(element):
            self._table(element)
        elif tag == "input":
            if is_tick(element):
                self.text("[x] " if element.get("checked") is not None else "[ ] ")
        elif tag == "math":
            self.text(formulas.of_math(element))
        elif tag == "a":
            return _is_anchor(element)
        else:
            return tag in ("annotation", "annotation-xml")
        return True

    def _table(self, element: Any) -> None:
        def cell(inner: Any) -> str:
            return write_cell(inner, self.base, self._depth + 1)

        if not self._one_line:
            self.block(tables.write(element, cell))
            return
        for line in tables.inner_lines(element, cell):
            self._end_block()
            self.inline(line)
        self._end_block()

    def _code(self, element: Any) -> None:
        code = blocks.code_text(element)
        if not code.strip():
            return
        if self._heading:
            self.inline(f"<code>{escape(SPACES.sub(' ', code).strip(), quote=False)}</code>")
            return
        if self._one_line:
            for line in filter(str.strip, code.split("\n")):
                self._end_block()
                self.inline(f"<code>{escape(line.rstrip(), quote=False)}</code>")
            self._end_block()
            return
        language = blocks.language_of(element)
        mark = f' class="language-{escape(language)}"' if language else ""
        self.block(f"<pre><code{mark}>{escape(code, quote=False)}</code></pre>")

    def _start(self, element: Any) -> None:
        tag = element.tag
        if tag in INLINE:
            self._start_inline(INLINE[tag], element)
        elif tag in GROUPING:
            if tag in SIGNED:
                self._open_grouping(tag, element)
        elif "-" in tag and _is_in_text(element):
            return
        elif self._one_line or self._heading:
            self._end_block()
            if tag == "li" and self._one_line:
                self._mark_item(element)
            elif tag in ("ul", "ol"):
                self._cell_lists.append(Numbering(element) if tag == "ol" else None)
        elif tag in HEADINGS:
            self._end_block()
            self._heading = tag
        elif tag in ("ul", "ol"):
            self._open_list(tag, element)
        elif tag == "li":
            self._open_item(element)
        elif tag == "blockquote":
            self._open_container("blockquote", "<blockquote>")
        else:
            self._end_block()
            if tag in LABELS:
                self._wanted.append((LABELS[tag], f"<{LABELS[tag]}>"))

    def _open_grouping(self, tag: str, element: Any) -> None:
        """Express by a sign what a browser expresses by superscript, subscript or quotation marks."""
        opening, closing = "", ""
        if tag == "q":
            opening, closing = "“", "”"
        elif tag == "rt" and not _has_brackets(element):
            opening, closing = "(", ")"
        elif tag in ("sup", "sub") and self._block is not None and not self._space and not self._breaks:
            opening, closing = blocks.index_signs(tag, element, self._out[-1][-3:] if self._out else "")
        if opening:
            self.text(opening)
        self._signs.append(closing)

    def _close_grouping(self, tag: str, element: Any) -> None:
        closing = self._signs.pop()
        if closing:
            self._space = False
            self.text(closing)
        if tag in ("abbr", "acronym") and element.get("title") and len(self._named) < ABBREVIATIONS:
            self._spell_out(squeeze(plain_text(element)), squeeze(element.get("title")))

    def _spell_out(self, short: str, long: str) -> None:
        """Give the long form of an abbreviation, at its first use."""
        if len(short) < 2 or not short.isalnum() or short in self._named or "code" in self._opened:
            return
        self._named.add(short)
        if long and long.lower() != short.lower():
            self.text(f" ({long[:200]})")

    def _end(self, element: Any) -> None:
        tag = element.tag
        if tag in INLINE:
            self._end_inline()
            if tag == "cite" and _names_the_quoted(element):
                self._end_block()
        elif tag in GROUPING:
            if tag in SIGNED:
                self._close_grouping(tag, element)
        elif "-" in tag and _is_in_text(element):
            return
        elif self._heading and tag == self._heading:
            self._heading = ""
            if self._block is not None:
                self._close_block()
        elif self._one_line or self._heading:
            if tag in ("ul", "ol") and self._cell_lists:
                self._cell_lists.pop()
            self._end_block()
        elif tag in ("ul", "ol", "li", "blockquote"):
            self._close(tag)
        else:
            if tag in LABELS:
                self._end_inline()
            self._end_block()


def _has_brackets(element: Any) -> bool:
    before = element.getprevious()
    return before is not None and before.tag == "rp"


def _is_in_text(element: Any) -> bool:
    """Whether a custom element is inline, as far as its neighbours tell."""
    above, before = element.getparent(), element.getprevious()
    if above is None or element.tag.startswith("mjx-"):
        return above is not None
    if before is not None and (before.tag in INLINE or before.tag in GROUPING):
        return True
    text = above.text if before is None else before.tail
    return bool((text or "").strip() or (element.tail or "").strip())


def _is_anchor(element: Any) -> bool:
    """Whether a link is only a mark: a permalink of a heading, or the way back from a note."""
    text = squeeze(plain_text(element))
    if text:
        return text in ANCHOR_TEXTS and "#" in (element.get("href") or "#")
    return element.find(".//img") is None and element.find(".//input") is None


def _names_the_quoted(element: Any) -> bool:
    """Whether a quotation begins with this name of the quoted person."""
    above = element.getparent()
    for _ in range(2):
        if element.getprevious() is not None or (above.text or "").strip():
            return False
        if above.tag == "blockquote":
            return True
        element, above = above, above.getparent()
        if above is None:
            return False
    return False

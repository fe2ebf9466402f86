"""The three output forms of a page: Markdown, plain text, clean HTML.

markdownify makes the Markdown, from blocks that are already flat and complete; docs/markdown.md gives the
reasons. Characters of the text stay unchanged. A backslash is added only where the beginning of a paragraph
would be taken for a heading, list or quotation, and before bars in cells. A megabyte of HTML takes about a
second. After `SECONDS` the rest of a page is plain text, and a line says so.
"""

from __future__ import annotations

import re
import time

import lxml.etree
import markdownify

from . import page as pages
from . import writer
from .tree import plain_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SECONDS = 10.0
BATCH = 50_000  # characters of HTML that are converted at once
LIKE_A_MARK = re.compile(r"(?:#{1,6}|[-+*]|[-=*_]{3,}|>.*|```.*|~~~.*)(?=\s|$)|(\d{1,9})([.)])(?=\s|$)")
EDGES = re.compile(r"^\*+|\*+$")
REST = "[The page is too long to be converted whole; from here on it is plain text.]"
HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")


def markdown_of(html: str, url: str) -> tuple[str, str]:
    """Return title and main content as Markdown."""
    found = pages.read(html, url)
    return found.title, from_blocks(writer.write(found.content, found.base))


def text_of(html: str, url: str) -> tuple[str, str]:
    """Return title and main content as plain text."""
    found = pages.read(html, url)
    return found.title, plain_from_blocks(writer.write(found.content, found.base))


def html_of(html: str, url: str) -> tuple[str, str]:
    """Return title and main content as plain HTML, a block a line."""
    found = pages.read(html, url)
    return found.title, "\n".join(writer.write(found.content, found.base))


# --- Markdown -----------------------------------------------------------------------------------------------


def from_blocks(blocks: list[str]) -> str:
    """Return blocks of HTML as Markdown."""
    converter = _Converter()
    until = time.monotonic() + SECONDS
    parts: list[str] = []
    for start, end in _batches(blocks):
        if time.monotonic() > until:
            parts += [REST, plain_from_blocks(blocks[start:])]
            break
        parts.append(converter.convert("\n".join(blocks[start:end])).strip("\n"))
    return "\n\n".join(filter(None, parts))


def _batches(blocks: list[str]) -> list[tuple[int, int]]:
    batches = []
    start = length = 0
    for index, block in enumerate(blocks):
        length += len(block)
        if length > BATCH:
            batches.append((start, index + 1))
            start, length = index + 1, 0
    return [*batches, (start, len(blocks))] if start < len(blocks) else batches


class _Converter(markdownify.MarkdownConverter):
    """markdownify, with the language of code, fences that code cannot close, and fewer backslashes."""

    class Options:
        heading_style = "ATX"
        bullets = "-"
        bs4_options = "lxml"
        escape_asterisks = False
        escape_underscores = False
        keep_inline_images_in = ("td", "th", "a", *HEADINGS)

    def convert_pre(self, el: Any, text: str, parent_tags: set[str]) -> str:
        code = el.get_text()
        classes = el.code.get("class") if el.code is not None else None
        language = classes[0].removeprefix("language-") if classes else ""
        longest = max(map(len, re.findall(r"`{3,}", code)), default=2)
        fence = "`" * (longest + 1)
        return f"\n\n{fence}{language}\n{code}\n{fence}\n\n"

    def convert_p(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return str(super().convert_p(el, _guarded(text.strip(" \t\r\n")), parent_tags))  # type: ignore[misc]

    def convert_br(self, el: Any, text: str, parent_tags: set[str]) -> str:
        if "td" in parent_tags or "th" in parent_tags:
            return "<br>"
        return str(super().convert_br(el, text, parent_tags))  # type: ignore[misc]

    def convert_code(self, el: Any, text: str, parent_tags: set[str]) -> str:
        if "td" in parent_tags or "th" in parent_tags:
            text = el.get_text()  # with its indentation
            mark = "`" * (max(map(len, re.findall(r"`+", text)), default=0) + 1)
            space = " " if "`" in text else ""
            return f"{mark}{space}{text}{space}{mark}"
        return str(super().convert_code(el, text, parent_tags))  # type: ignore[misc]

    def convert_em(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return str(super().convert_em(el, _without_marks(el, text), parent_tags))  # type: ignore[misc]

    def convert_strong(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return str(super().convert_strong(el, _without_marks(el, text), parent_tags))  # type: ignore[misc]

    def convert_li(self, el: Any, text: str, parent_tags: set[str]) -> str:
        """Number an item of a numbered list as the page does, else by counting."""
        parent = el.parent
        if parent is None or parent.name != "ol":
            return str(super().convert_li(el, text, parent_tags))  # type: ignore[misc]
        place = int(
            parent.get("place", 0)
        )  # stored on it: searching for it each time would take as long as the list is
        parent["place"] = str(place + 1)
        number = el.get("value") or int(parent.get("start") or 1) + place
        mark = f"{number}. "
        lines = text.strip().split("\n")
        inside = [lines[0], *(f"{' ' * len(mark)}{line}" if line.strip() else "" for line in lines[1:])]
        return mark + "\n".join(inside) + "\n" if text.strip() else "\n"

    def convert_td(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return str(super().convert_td(el, _cell(text), parent_tags))  # type: ignore[misc]

    def convert_th(self, el: Any, text: str, parent_tags: set[str]) -> str:
        return str(super().convert_th(el, _cell(text), parent_tags))  # type: ignore[misc]


def _guarded(text: str) -> str:
    """Put a backslash before a character that would be a mark at the beginning of a paragraph."""
    match = LIKE_A_MARK.match(text)
    if match is None:
        return text
    if match[1]:
        return f"{match[1]}\\{text[match.end(1) :]}"
    return f"\\{text}"


def _without_marks(element: Any, text: str) -> str:
    """Put a backslash before asterisks at either end of text within asterisks: `*args` must not become
    `**args`."""
    return text if element.find(True) else EDGES.sub(lambda edge: edge[0].replace("*", "\\*"), text)


def _cell(text: str) -> str:
    return " ".join(filter(None, map(str.strip, text.split("\n")))).replace("|", "\\|")


# --- plain text ---------------------------------------------------------------------------------------------


def plain_from_blocks(blocks: list[str]) -> str:
    """Return blocks of HTML as text: marks before items of lists, tabs between cells, the text of links."""
    return "\n\n".join(filter(None, ("\n".join(_plain(block)) for block in blocks)))


def _plain(block: str) -> list[str]:
    """The lines of one block; `writer` bounds the depth."""
    lines: list[str] = []
    body = lxml.etree.HTML(f"<body>{block}</body>")[0]
    for element in body:
        lines += _lines(element)
    return lines


def _lines(element: Any) -> list[str]:
    tag = element.tag
    if tag == "pre":
        return plain_text(element).split("\n")
    if tag == "table":
        rows = ([_line(cell).replace("\n", " ") for cell in row] for row in element.iter("tr"))
        return ["\t".join(row) for row in rows if any(row)]
    if tag in ("ul", "ol"):
        return _list_lines(element)
    if tag == "blockquote":
        return [line for child in element for line in _lines(child)]
    if tag == "hr":
        return ["* * *"]
    return _line(element).split("\n")


def _list_lines(element: Any) -> list[str]:
    number = int(element.get("start") or 1)
    lines = []
    for item in element:
        mark = f"{item.get('value') or number}. " if element.tag == "ol" else "- "
        number += 1
        inside = [line for part in _parts(item) for line in part]
        lines += [
            (mark if index == 0 else " " * len(mark)) + line for index, line in enumerate(inside or [""])
        ]
    return lines


def _parts(item: Any) -> list[list[str]]:
    """The content of an item: its own text, then the blocks in it."""
    blocks = [child for child in item if child.tag in ("p", "ul", "ol", "pre", "table", "blockquote", "hr")]
    inside = [_lines(block) for block in blocks]
    for block in blocks:
        item.remove(block)
    own = _line(item)
    return [own.split("\n"), *inside] if own else inside


def _line(element: Any) -> str:
    """The text of an element without blocks in it, a line for each break."""
    for inner in element.iter("br", "img"):
        shown = "\n" if inner.tag == "br" else inner.get("alt") or ""
        inner.tail = f"{shown}{inner.tail or ''}"
    return plain_text(element).strip()

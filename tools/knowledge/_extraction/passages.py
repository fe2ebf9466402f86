"""Cuts a document's text into passages, which search finds and a model reads.

A passage is of one page and has the headings above it. It ends at a heading or between paragraphs if
possible. A paragraph that is too long is cut between sentences, rows or words. A word is never cut, except a
run of more than a thousand characters without a space or a sentence's end, which no language has. Writing
without spaces is measured by characters. Costs one pass over the text.
"""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .extracted import Extracted

AIM = 220.0  # words of a passage, the aim
MOST = 300.0
LEAST = 40.0  # words; a shorter passage is joined with the next section
UNBROKEN = 1_000  # characters
WORDS = re.compile(r"[^\W\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]+")
UNSPACED = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]")
WORDS_A_CHARACTER = 0.6  # of writing without spaces: a Chinese word has 1.5 to 1.8 characters
HEADING = re.compile(r"(#{1,6}) +(\S.*)")
# Ends of sentences, and line breaks: a paragraph that is too long is cut at these first.
SENTENCES = re.compile(r"(?<=[.!?؟۔।])\s+|(?<=[。！？；])|\n")
SPACES = re.compile(r"(?<=\s)(?=\S)|(?<=[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff])")


class Passage:
    """A piece of a document: its page, from 1; its index, from 0; the headings above it, outermost first; its
    text, in Markdown if the document has that."""

    __slots__ = ("heading", "page", "position", "text")

    def __init__(self, page: int, position: int, heading: tuple[str, ...], text: str) -> None:
        self.page = page
        self.position = position
        self.heading = heading
        self.text = text


def passages(extracted: Extracted) -> list[Passage]:
    """Return the passages of a document, in its order. Together they hold every word of it."""
    found: list[Passage] = []
    headings: list[str] = []
    levels: list[int] = []
    for number, page in enumerate(extracted.markdown or extracted.pages, 1):
        for path, text in _of_page(page, headings, levels, has_headings=extracted.markdown is not None):
            found.append(Passage(number, len(found), path, text))
    return found


def _of_page(
    page: str, headings: list[str], levels: list[int], *, has_headings: bool
) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the passages of a page, and store its headings, which apply to the following pages."""
    blocks: list[str] = []
    length = 0.0
    path = tuple(headings)
    for block in re.split(r"\n\s*\n", page):
        block = block.strip("\n")
        if not block.strip():
            continue
        heading = HEADING.match(block) if has_headings else None
        for piece in _pieces(block):
            size = words_in(piece)
            if blocks and (length + size > MOST or length >= AIM or (heading and length >= LEAST)):
                yield path, "\n\n".join(blocks)
                blocks, length = [], 0.0
            if heading is not None:
                _note(heading, headings, levels)
                heading = None
            if not blocks:
                path = tuple(headings)
            blocks.append(piece)
            length += size
    if blocks:
        yield path, "\n\n".join(blocks)


def _note(heading: re.Match[str], headings: list[str], levels: list[int]) -> None:
    level = len(heading[1])
    while levels and levels[-1] >= level:
        levels.pop()
        headings.pop()
    levels.append(level)
    headings.append(heading[2].rstrip())


def _pieces(block: str) -> Iterator[str]:
    """Yield a paragraph, list or table whole, or in pieces that are short enough."""
    if words_in(block) <= MOST and len(block) <= MOST * 10:
        yield block
        return
    piece, length = "", 0.0
    for part in _parts(block):
        size = max(words_in(part), len(part) / 10)
        if piece and length + size > AIM:
            yield piece.strip()
            piece, length = "", 0.0
        piece += part
        length += size
    if piece.strip():
        yield piece.strip()


def _parts(block: str) -> Iterator[str]:
    """Yield the sentences and lines of a paragraph with the space after them; a long one by words."""
    start = 0
    for end in [*(match.end() for match in SENTENCES.finditer(block)), len(block)]:
        part = block[start:end]
        start = end
        if words_in(part) <= MOST / 2 and len(part) <= MOST * 5:
            yield part
            continue
        word = 0
        for after in [*(match.end() for match in SPACES.finditer(part)), len(part)]:
            while after - word > UNBROKEN:
                yield part[word : word + UNBROKEN]
                word += UNBROKEN
            yield part[word:after]
            word = after


def words_in(text: str) -> float:
    """Return the number of words in a text; for writing without spaces, an estimate."""
    if text.isascii():
        return float(len(WORDS.findall(text)))
    return len(WORDS.findall(text)) + len(UNSPACED.findall(text)) * WORDS_A_CHARACTER

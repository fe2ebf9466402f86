"""Makes the entries of the search benchmark from the HTML of Python's documentation.

    python benchmarks/knowledge_sections.py FOLDER      writes data/knowledge/sections.jsonl.xz

FOLDER is the documentation as Debian's package python3.11-doc has it, usr/share/doc/python3.11/html. An entry
is a section, or a definition within it, of 40 to 300 words: what is shorter joins the definitions beside it,
of what is longer the beginning is kept, to keep the file small, and superseded modules are left out. The
questions of data/knowledge/questions.jsonl name entries by their ids, so the entries are kept in the
repository, and this runs only to show where they come from. Needs lxml.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re

from lxml import etree, html

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    Block = tuple[str, str]

SECTIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "data", "knowledge", "sections.jsonl.xz")
FOLDERS = ("faq", "howto", "library", "reference", "tutorial", "using")
FEWEST_WORDS, MOST_WORDS = 40, 300
DEFINITION = "contains(concat(' ', @class, ' '), ' py ') or contains(concat(' ', @class, ' '), ' std ')"


def text_of(element: etree._Element) -> str:
    return re.sub(r"\s+", " ", element.text_content()).replace("¶", "").strip()


def length(text: str) -> int:
    return len(text.split())


def definitions(listing: etree._Element) -> Iterator[Block]:
    """The name and the text of each definition of a <dl>, those within it after it."""
    names: list[etree._Element] = []
    for part in listing:
        if part.tag == "dt":
            names.append(part)
            continue
        inner = []
        for nested in part.xpath(f".//dl[{DEFINITION}]"):
            if not any(nested in kept.iter() for kept in inner):
                inner.append(nested)
        found = [block for nested in inner for block in definitions(nested)]
        for nested in inner:
            nested.drop_tree()
        signatures = [text_of(name) for name in names]
        anchors = [name.get("id") for name in names if name.get("id")]
        yield (anchors or signatures or [""])[0], " ".join([*signatures, text_of(part)])
        yield from found
        names = []


def blocks(section: etree._Element) -> Iterator[Block]:
    """The section's own paragraphs, under no name, and its definitions, under theirs."""
    for child in section:
        if child.tag in ("section", "h1", "h2", "h3", "h4", "h5", "h6") or not isinstance(child.tag, str):
            continue
        if child.tag == "dl" and child.xpath(f"self::*[{DEFINITION}]"):
            yield from definitions(child)
        elif text := text_of(child):
            yield "", text


def gathered(found: Iterator[Block]) -> Iterator[Block]:
    """A long definition by itself; short ones and plain paragraphs together, up to the greatest length."""
    kept: list[str] = []
    for name, text in found:
        if name and length(text) >= FEWEST_WORDS:
            yield name, beginning(text)
            continue
        if kept and length(" ".join([*kept, text])) > MOST_WORDS:
            yield "", " ".join(kept)
            kept = []
        kept.append(text)
    if kept:
        yield "", " ".join(kept)


def beginning(text: str) -> str:
    """As many whole sentences as there is room for, the first one at least."""
    sentences = re.split(r"(?<=[.:]) (?=[A-Z>])", text)
    while len(sentences) > 1 and length(" ".join(sentences)) > MOST_WORDS:
        sentences.pop()
    return " ".join(sentences)


def entries(folder: str) -> Iterator[dict[str, str]]:
    listed = html.parse(f"{folder}/library/superseded.html")
    superseded = set(listed.xpath("//li[@class='toctree-l1']/a/@href"))
    seen = set()
    for path in (f"{part}/{name}" for part in FOLDERS for name in sorted(os.listdir(f"{folder}/{part}"))):
        if os.path.basename(path) in superseded:
            continue
        for section in html.parse(f"{folder}/{path}").xpath("//section[@id]"):
            heading = text_of(section.xpath("(./h1|./h2|./h3|./h4|./h5|./h6)[1]")[0])
            for name, text in gathered(blocks(section)):
                place = f"{path.removesuffix('.html')}#{name or section.get('id')}"
                if place not in seen and FEWEST_WORDS <= length(text) <= 2 * MOST_WORDS:
                    seen.add(place)
                    yield {"id": place, "title": name or heading, "text": beginning(text)}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder")
    lines = [json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries(parser.parse_args().folder)]
    with lzma.open(SECTIONS, "wt", encoding="utf-8", preset=9) as file:
        file.writelines(lines)
    print(f"{len(lines)} entries, {os.path.getsize(SECTIONS)} bytes")


if __name__ == "__main__":
    main()

"""The Arabic pages: the same code as the English ones, every tool, and text that reads from right to left."""

from __future__ import annotations

import glob
import os
import re

import pytest
from fastrpc.tools.agent import _contract

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAGES = sorted(glob.glob(os.path.join(REPOSITORY, "docs", "ar", "*.md")))
FENCED = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
INDENTED = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)
ARABIC = re.compile("[\u0621-\u064a]")


def text_of(*path: str) -> str:
    with open(os.path.join(REPOSITORY, *path), encoding="utf-8") as file:
        return file.read()


@pytest.mark.parametrize("page", PAGES, ids=os.path.basename)
def test_the_code_is_that_of_the_english_pages(page: str) -> None:
    """Every tool: the Arabic documents have the code blocks of the English ones."""
    english = {path: text_of(path) for path in glob.glob(os.path.join(REPOSITORY, "docs", "*.md"))}
    known = {block for text in (text_of("README.md"), *english.values()) for block in FENCED.findall(text)}
    text = text_of(page)
    blocks = FENCED.findall(text)
    assert blocks
    for language, code in blocks:
        assert (language, code) in known, f"no English page has this:\n{code}"
    everything = "\n".join(english.values())
    for shown in INDENTED.findall(FENCED.sub("", text)):
        for line in shown.rstrip("\n").split("\n"):
            assert line.strip() in everything, f"no English page has this: {line}"


def test_the_quickstart_has_every_step_of_the_english_one_in_its_order() -> None:
    english, arabic = text_of("docs", "quickstart.md"), text_of("docs", "ar", "quickstart.md")
    assert FENCED.findall(arabic) == FENCED.findall(english)
    headings = [re.findall(r"^## \d\.", text, re.MULTILINE) for text in (english, arabic)]
    assert headings[0] == headings[1] == ["## 1.", "## 2.", "## 3.", "## 4.", "## 5."]


def test_the_page_of_the_tools_tells_of_every_tool_and_its_parameters() -> None:
    text = text_of("docs", "ar", "tools.md")
    for name, entry in _contract.CONTRACT.items():
        section = text.partition(f"\n## الأداة {name}\n")[2].partition("\n## ")[0]
        assert section, f"no section for {name}"
        assert f"(#الأداة-{name.lower()})" in text
        for parameter in (*entry["parameters"], *entry.get("extras", ())):
            assert f"`{parameter}`" in section, f"{name}: {parameter}"


@pytest.mark.parametrize("page", PAGES, ids=os.path.basename)
def test_a_paragraph_begins_with_an_arabic_letter_so_that_it_is_shown_from_the_right(page: str) -> None:
    starts = True
    for line in text_of(page).split("\n"):
        inside = line.startswith(("```", "    ", "|", "#"))
        if line.strip() and starts and not inside and not FENCED.search(line):
            first = re.search(r"[^\W\d_]", line)
            in_code = any(line in block for _, block in FENCED.findall(text_of(page)))
            assert in_code or (first is not None and ARABIC.match(first[0])), line
        starts = not line.strip()


def test_there_are_the_pages_that_are_promised() -> None:
    assert [os.path.basename(page) for page in PAGES] == ["quickstart.md", "tools.md"]

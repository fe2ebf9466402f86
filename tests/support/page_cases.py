"""The ten page shapes under fixtures/pages, and what each must become.

Beside each page lies a JSON file that says what its Markdown must hold (`headings`, `keep`, `inline_code`,
`code` with language, table `rows`, absolute `links` and `images`, `lists` with their depth) and what it must
`leave` out. `verdicts` compares. What CommonMark takes in several forms is taken in each: `-`, `*` and `+`,
a letter before an item,
any indentation of lists, escapes, padded tables. The page of 2 MB is made here rather than kept.
"""

from __future__ import annotations

import json
import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

FOLDER = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures", "pages")
SHAPES = {
    "documentation": "documentation with code",
    "blog": "a blog post",
    "tables": "a table-heavy page",
    "wiki": "a wiki article",
    "forum": "a forum thread",
    "arabic": "right-to-left Arabic",
    "application": "an application rendered by script",
    "cookie_wall": "a page with a cookie wall",
    "lists": "nested lists",
    "large": "a page of 2 MB",
}
ITEM = re.compile(r"([ \t]*)(?:[-*+]|\d+[.)])[ \t]+(?:[a-z]\.[ \t]+)?(.*)")


class Case:
    """A page and what is expected of it."""

    def __init__(self, name: str) -> None:
        self.name = name
        if name == "large":
            self.html, self.expected = large_page(2_000_000)
            return
        page = "application.rendered" if name == "application" else name
        self.html = _text(f"{page}.html")
        self.expected: dict[str, Any] = json.loads(_text(f"{name}.json"))

    @property
    def url(self) -> str:
        return str(self.expected["url"])


def _text(name: str) -> str:
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return file.read()


def large_page(size: int) -> tuple[str, dict[str, Any]]:
    """Return a manual of about `size` characters, one page, and what is expected of it."""
    chapters = []
    length = number = 0
    while length < size:
        number += 1
        chapters.append(
            f'<section id="c{number}"><h2>Chapter {number}<a class="headerlink" href="#c{number}">¶</a></h2>'
            f"<p>Paragraph one of chapter {number}: <b>the valve</b> and "
            f"<a href='../part/{number}.html'>part {number}</a> "
            + "are described here in as many words as a manual needs. "
            * 4
            + f"</p><div class='highlight-python'><pre><span class='k'>def</span> step_{number}(x):\n    "
            f"<span class='k'>return</span> x &lt;&lt; {number}\n</pre></div>"
            f"<ul><li>first of {number}<ul><li>below the first of {number}</li></ul></li><li>second</li></ul>"
            "<table><tr><th>Key</th><th>Value</th></tr>"
            f"<tr><td>k{number}</td><td>{number * 7}</td></tr></table>"
            f"<div class='ad-slot'>Advertisement {number}</div></section>"
        )
        length += len(chapters[-1])
    links = "".join(
        f'<li><a href="#c{index}">Go to chapter {index}</a></li>' for index in range(1, number + 1)
    )
    html = (
        "<!doctype html><html><head><title>The whole manual</title><style>"
        + ".x{color:red}" * 2000
        + f"</style></head><body><nav><ul>{links}</ul></nav><main><h1>The whole manual</h1>"
        + "".join(chapters)
        + f"</main><script>{'var track = 1;' * 5000}</script>"
        + "<footer>Footer of the manual</footer></body></html>"
    )
    some = (1, number // 2, number)
    return html, {
        "url": "https://manual.example/all/index.html",
        "title": "The whole manual",
        "headings": ["# The whole manual", *(f"## Chapter {index}" for index in some)],
        "keep": [f"Paragraph one of chapter {index}: **the valve**" for index in some],
        "code": [
            {"language": "python", "text": f"def step_{index}(x):\n    return x << {index}"} for index in some
        ],
        "rows": [["Key", "Value"], *([f"k{index}", str(index * 7)] for index in some)],
        "links": [[f"part {index}", f"https://manual.example/part/{index}.html"] for index in some],
        "lists": [[f"first of {some[1]}", 0], [f"below the first of {some[1]}", 1]],
        "leave": ["Go to chapter", "Advertisement", "color:red", "var track", "Footer of the manual", "¶"],
    }


# --- comparing ----------------------------------------------------------------------------------------------


def verdicts(markdown: str, expected: dict[str, Any]) -> Iterator[tuple[str, str, bool]]:
    """Yield for each expectation its kind, what it is, and whether the Markdown meets it."""
    blocks = list(code_blocks(markdown))
    prose = without_code(markdown)
    plain = bare(prose)
    lines = [bare(line).strip() for line in prose.split("\n")]
    for heading in expected.get("headings", ()):
        yield "heading", heading, any(_same_heading(line, heading) for line in lines)
    for text in expected.get("keep", ()):
        yield "text", text, bare(text) in plain
    for text in expected.get("inline_code", ()):
        yield "inline code", text, re.search(rf"`+ ?{re.escape(text)} ?`+", prose) is not None
    for code in expected.get("code", ()):
        yield "code", code["text"], any(text == code["text"] for _, text in blocks)
        if code["language"]:
            yield "language", code["language"], (code["language"], code["text"]) in blocks
    rows = [cells_of(line) for line in prose.split("\n") if line.lstrip().startswith("|")]
    for row in expected.get("rows", ()):
        yield "row", " | ".join(row), row in rows
    for text, address in expected.get("links", ()):
        yield "link", address, _has_link(prose, text, address)
    for alt, address in expected.get("images", ()):
        yield "image", address, f"![{alt}]({address}" in prose.replace("<", "").replace("\\", "")
    depths = dict(items_of(markdown))
    for text, depth in expected.get("lists", ()):
        yield "list", text, any(bare(item).startswith(text) and depths[item] == depth for item in depths)
    whole = bare(markdown)
    for text in expected.get("leave", ()):
        yield "left out", text, text not in whole


def bare(text: str) -> str:
    """Return Markdown without escapes, with one kind of emphasis and single spaces."""
    text = re.sub(r"\\([\\`*_{}\[\]()#+.!|<>~=&-])", r"\1", text)
    text = text.replace("__", "**")
    text = re.sub(r"(?<!\w)_([^_\n]+)_(?!\w)", r"*\1*", text)
    text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    return re.sub(r"[ \n\t]+", " ", text)


def _same_heading(line: str, heading: str) -> bool:
    marks, _, text = heading.partition(" ")
    match = re.fullmatch(r"(#+) (.*?)(?: #+)?", line)
    if match is None:
        return False
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", match[2]).replace("*", "").strip()
    return match[1] == marks and shown == text


def code_blocks(markdown: str) -> Iterator[tuple[str, str]]:
    """Yield language and text of each fenced block, without the indentation of its fence."""
    for match in re.finditer(
        r"^([ >]*)(```+|~~~+)[ \t]*(\S*)[^\n]*\n(.*?)^\1[ ]*\2[ \t]*$", markdown, re.DOTALL | re.MULTILINE
    ):
        before = match[1]
        lines = [line[len(before) :] if line.startswith(before) else line for line in match[4].split("\n")]
        yield match[3], "\n".join(lines).rstrip("\n")


def without_code(markdown: str) -> str:
    return re.sub(r"^([ >]*)(```+|~~~+).*?^\1[ ]*\2[ \t]*$", "", markdown, flags=re.DOTALL | re.MULTILINE)


def cells_of(line: str) -> list[str]:
    """Return the cells of a table's row as a reader sees them: links by their text, no code marks."""
    line = line.strip().strip("|") if not line.rstrip().endswith("\\|") else line.strip()
    cells = re.split(r"(?<!\\)\|", line)
    return [_cell(cell) for cell in cells]


def _cell(cell: str) -> str:
    cell = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", cell)
    cell = cell.replace("<br>", " ").replace("&#124;", "|").replace("`", "")
    cell = re.sub(r"\*\*(.+?)\*\*", r"\1", cell.replace("\\*", "\0")).replace("\0", "*")
    return bare(cell).strip()


def _has_link(prose: str, text: str, address: str) -> bool:
    for match in re.finditer(
        r"\[((?:[^\[\]\\]|\\.|\[[^\]]*\])*)\]\(\s*<?((?:[^()\s<>]|\([^()]*\))*)>?[^)]*\)", prose
    ):
        if bare(match[1]).replace("`", "").strip() == text and match[2].replace("\\", "") == address:
            return True
    return False


def items_of(markdown: str) -> Iterator[tuple[str, int]]:
    """Yield each list item with how many items it is in."""
    open_indents: list[int] = []
    for line in without_code(markdown).expandtabs(4).split("\n"):
        match = ITEM.fullmatch(line)
        if match is None:
            if line.strip() and not line.startswith(" "):
                open_indents.clear()
            continue
        indent = len(match[1])
        while open_indents and open_indents[-1] >= indent:
            open_indents.pop()
        yield match[2].strip(), len(open_indents)
        open_indents.append(indent)

"""What in a page's content is taken as a whole: code, tables, images' and links' addresses, formulas.

Code keeps each character, its language and none of the line numbers, whatever the highlighter has made of
it. Tables become a rectangle of cells; tables that only lay out a page are none.
"""

from __future__ import annotations

import re
from html import escape
from urllib.parse import urldefrag, urljoin

import lxml.etree

from .page import names_of, plain_text, squeeze, words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
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
    r"(?<![a-z])(?:linenos?|linenodiv|line-?numbers?(?:-rows)?|line-?nums?|gutter|hljs-ln-numbers|blob-num|ln)(?![a-z])"
)
DIGITS = re.compile(r"[\d\s.:|]*")
LINE = re.compile(r"(?<![a-z])(?:line|cl|code-line|token-line|view-line)(?![a-z])")
CODE_LINE_TABLE = re.compile(r"blob-code|js-file-line|hljs-ln-code")
LINES = ("div", "p", "li", "tr")
WIDEST = 200  # columns; what lies beyond is left out
REPEATED = 300  # rows that one cell may span
SCHEMES = ("http:", "https:", "mailto:", "tel:", "ftp:", "geo:", "magnet:", "xmpp:", "sms:")


# --- addresses ----------------------------------------------------------------------------------------------


def absolute(address: str | None, base: str, link: bool = False) -> str:
    """Return an absolute address that Markdown can hold; nothing for scripts, data, or what is no address.
    For links, nothing for a place in the same page either."""
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
    """Return where an image lies; nothing for decoration, counters and images inside the page itself."""
    if element.get("alt") == "" and element.getparent().tag not in ("figure", "picture"):
        return ""
    if element.get("width") in ("0", "1", "2") or element.get("height") in ("0", "1", "2"):
        return ""
    for name in ("src", "data-src", "data-original", "data-lazy-src", "srcset", "data-srcset"):
        value = (element.get(name) or "").strip()
        if name.endswith("srcset"):
            value = value.split(" ")[0].rstrip(",")
        address = absolute(value, base)
        if address.startswith("http"):
            return address
    return ""


def formula(element: Any) -> str:
    """Return a formula as TeX if the page has it, else its text."""
    tex = element.get("alttext") or ""
    for note in element.iter("annotation"):
        if "tex" in (note.get("encoding") or "").lower():
            tex = tex or note.text or ""
    tex = squeeze(tex)
    if tex.startswith("{\\displaystyle") and tex.endswith("}"):
        tex = tex[len("{\\displaystyle") : -1].strip()
    return f"${tex}$" if tex else squeeze(plain_text(element))


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
    return tag == "table" and any(
        CODE_LINE_TABLE.search(cell.get("class") or "") for cell in element.iter("td")
    )


def is_line_numbers(element: Any) -> bool:
    """Whether an element holds the numbers of lines of code."""
    if element.tag not in ("td", "div", "span", "pre", "code") or not element.get("class"):
        return False
    return (
        LINE_NUMBERS.search(names_of(element)) is not None
        and DIGITS.fullmatch(plain_text(element)) is not None
    )


def code_text(element: Any) -> str:
    """Return code as it is shown, line by line."""
    has_lines = "\n" in plain_text(element).strip("\n")
    parts: list[str] = []
    walk = lxml.etree.iterwalk(element, events=("start", "end"))
    skipped = None
    for event, inner in walk:
        tag = inner.tag
        if event == "start":
            if inner is not element and is_line_numbers(inner):
                skipped = inner
                walk.skip_subtree()
            elif tag == "br":
                parts.append("\n")
            elif inner.text:
                parts.append(inner.text)
            continue
        if inner is skipped:
            skipped = None
        elif inner is not element and _ends_a_line(inner, has_lines, parts):
            parts.append("\n")
        if inner is not element and inner.tail:
            parts.append(inner.tail)
    code = "".join(parts).replace("\r\n", "\n").replace("\r", "\n")
    lines = code.split("\n")
    while lines and not lines[0].strip():
        del lines[0]
    while lines and not lines[-1].strip():
        del lines[-1]
    return "\n".join(lines)


def _ends_a_line(element: Any, has_lines: bool, parts: list[str]) -> bool:
    """Whether a line ends with this element although no line feed says so."""
    if parts and parts[-1].endswith("\n"):
        return False
    if element.tag not in LINES:
        is_line = element.tag in ("span", "code") and LINE.search(names_of(element)) is not None
        if has_lines or not is_line:
            return False
    return element.getnext() is not None or bool((element.tail or "").strip())


def language_of(element: Any) -> str:
    """Return the language of code, as the page names it; nothing if it does not."""
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


# --- tables -------------------------------------------------------------------------------------------------


def is_data_table(element: Any) -> bool:
    """Whether a table holds data, rather than the layout of a page."""
    if element.get("role") in ("presentation", "none") or element.find(".//table") is not None:
        return False
    if next(element.iter("pre", "h1", "h2", "h3", "h4"), None) is not None:
        return False
    rows = _rows(element)
    return len(rows) > 0 and max(len(row) for row in rows) > 1


def _rows(table: Any) -> list[list[Any]]:
    rows = [list(row.iterchildren("td", "th")) for row in table.iter("tr")]
    return [row for row in rows if row]


def _span(cell: Any, name: str, most: int) -> int:
    value = (cell.get(name) or "").strip()
    return min(int(value), most) if value.isdecimal() and len(value) < 6 and int(value) > 0 else 1


def table(element: Any, write_cell: Callable[[Any], str]) -> str:
    """Return a table as HTML with one header row and rows of equal length. A cell that spans rows is repeated
    in each; one that spans columns is followed by empty ones."""
    grid: list[list[str]] = []
    heads: list[bool] = []  # for each row, whether it has header cells only
    hanging: dict[int, tuple[int, str]] = {}  # column -> for how many rows more, what
    for row in _rows(element):
        line: list[str] = []
        for cell in row:
            _hang(hanging, line)
            if len(line) >= WIDEST:
                break
            text = write_cell(cell)
            for place in range(_span(cell, "colspan", WIDEST - len(line))):
                rows = _span(cell, "rowspan", REPEATED)
                if rows > 1:
                    hanging[len(line)] = (rows - 1, text if place == 0 else "")
                line.append(text if place == 0 else "")
        _hang(hanging, line)
        grid.append(line)
        heads.append(all(cell.tag == "th" for cell in row) or row[0].getparent().getparent().tag == "thead")
    width = max(map(len, grid))
    for line in grid:
        line.extend([""] * (width - len(line)))
    header, body = _split(element, grid, heads, width)
    caption = element.find("caption")
    before = ""
    if caption is not None and squeeze(plain_text(caption)):
        before = f"<p><em>{escape(squeeze(plain_text(caption)), quote=False)}</em></p>"
    lines = "".join(_row(line, "td") for line in body)
    return f"{before}<table><thead>{_row(header, 'th')}</thead><tbody>{lines}</tbody></table>"


def _hang(hanging: dict[int, tuple[int, str]], line: list[str]) -> None:
    """Put in what hangs down from the rows above."""
    while len(line) in hanging:
        column = len(line)
        rows, text = hanging.pop(column)
        if rows > 1:
            hanging[column] = (rows - 1, text)
        line.append(text)


def _split(
    element: Any, grid: list[list[str]], heads: list[bool], width: int
) -> tuple[list[str], list[list[str]]]:
    """Divide rows into the header, which Markdown must have, and the rest."""
    count = 0
    while count < min(len(heads), 4) and heads[count]:
        count += 1
    if count == 0 and element.find(".//th") is None:
        count = 1
    if count == 0:
        return [""] * width, grid
    if count == len(grid) and count > 1:
        count = 1
    header = [
        " / ".join(dict.fromkeys(line[column] for line in grid[:count] if line[column]))
        for column in range(width)
    ]
    return header, grid[count:]


def _row(cells: list[str], tag: str) -> str:
    return f"<tr>{''.join(f'<{tag}>{cell}</{tag}>' for cell in cells)}</tr>"

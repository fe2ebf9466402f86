"""Tables: which of them hold data, and the rectangle of cells that each becomes.

A table that only lays out a page is not data. One that has headers, or is as regular as data is, stays a
table whatever its cells hold. Paragraphs, items of lists, lines of code and rows of inner tables become
separate lines in the cell. A cell that spans rows is repeated in each; a header cell that spans columns is
repeated in each column.
"""

from __future__ import annotations

from html import escape

import lxml.etree

from .tree import plain_text, squeeze

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

WIDEST = 200  # columns; a note gives the number of further ones
REPEATED = 300  # rows in which a spanning cell is repeated; in further ones its place is empty
LONGEST_REPEATED = 1_000  # characters of a repeated cell; for a longer one the further places are empty
LONGEST_CELL = 3_000  # characters; a table without headers with a longer one lays out a page
GROUPS = ("tr", "thead", "tbody", "tfoot")
HEADS = 4  # rows of headers at most
BLOCKS = ("pre", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "fieldset")


def is_data(element: Any) -> bool:
    """Whether a table holds data and is not the layout of a page."""
    if element.get("role") in ("presentation", "none"):
        return False
    rows = _rows(element)
    if not rows or max(map(len, rows)) < 2:
        return False
    if element.find(".//table") is None and next(element.iter(*BLOCKS), None) is None:
        return True
    return _has_headers(element, rows) or _is_regular(rows)


def _has_headers(element: Any, rows: list[list[Any]]) -> bool:
    if element.find("caption") is not None or element.find("thead") is not None:
        return True
    count = sum(1 for row in rows for cell in row if cell.tag == "th")
    return count >= min(2, len(rows))


def _is_regular(rows: list[list[Any]]) -> bool:
    """Whether rows are alike, and few cells hold more than text. A layout has few rows, and large cells."""
    if len(rows) < 3 or len({sum(map(_columns, row)) for row in rows}) > 1:
        return False
    cells = [cell for row in rows for cell in row]
    odd = sum(next(cell.iter("table", *BLOCKS), None) is not None for cell in cells)
    return odd <= len(cells) / 4 and not any(map(_is_long, cells))


def _is_long(cell: Any) -> bool:
    length = 0
    for part in cell.itertext():
        length += len(part)
        if length > LONGEST_CELL:
            return True
    return False


def _columns(cell: Any) -> int:
    return _span(cell, "colspan", WIDEST)


def _rows(table: Any, stray: list[Any] | None = None) -> list[list[Any]]:
    """The cells of each row of a table, without those of inner tables; the footer comes last, wherever it is.

    Cells without a row form one. Content between the cells goes into `stray`, text or elements; browsers show
    it before the table.
    """
    rows: list[list[Any]] = []
    footer: list[list[Any]] = []
    row: list[Any] | None = None
    between: list[Any] = []
    group = rows
    walk = lxml.etree.iterwalk(table, events=("start", "end"))
    for event, element in walk:
        tag = element.tag
        if event == "end":
            if tag in GROUPS:
                row = None
                group = rows if tag == "tfoot" else group
            if element is not table and element.tail and element.tail.strip():
                between.append(element.tail)
        elif tag in ("td", "th"):
            if row is None:
                row = []
                group.append(row)
            row.append(element)
            walk.skip_subtree()
        elif tag == "caption" or (tag == "table" and element is not table):
            between += [element] if tag == "table" else []
            walk.skip_subtree()
        else:
            if tag in GROUPS:
                row = None
                group = footer if tag == "tfoot" else group
            if element.text and element.text.strip():
                between.append(element.text)
    if stray is not None:
        stray += between
    return rows + footer


def _span(cell: Any, name: str, most: int) -> int:
    value = (cell.get(name) or "").strip()
    return max(1, min(int(value), most)) if value.isdecimal() and len(value) < 6 else 1


def write(element: Any, write_cell: Callable[[Any], str]) -> str:
    """Return a table as HTML with one header row and rows of equal length."""
    grid: list[list[str]] = []
    heads: list[bool] = []  # for each row, whether it has header cells only
    hanging: dict[int, tuple[int, str]] = {}  # column -> for how many more rows, and what
    beyond = 0
    stray: list[Any] = []
    all_rows = _rows(element, stray)
    for number, row in enumerate(all_rows):
        line: list[str] = []
        head = _is_head(row)
        for index, cell in enumerate(row):
            _hang(hanging, line)
            if len(line) >= WIDEST:
                beyond = max(beyond, sum(map(_columns, row[index:])))
                break
            text = write_cell(cell)
            left = len(all_rows) - number
            rows = left if cell.get("rowspan") == "0" else _span(cell, "rowspan", left)
            for place in range(_span(cell, "colspan", WIDEST - len(line))):
                shown = text if place == 0 or (head and len(text) <= LONGEST_REPEATED) else ""
                if rows > 1:
                    again = shown if len(text) <= LONGEST_REPEATED else ""
                    hanging[len(line)] = (rows - 1, again if rows <= REPEATED else "")
                line.append(shown)
        _hang(hanging, line)
        grid.append(line)
        heads.append(head)
    width = max(map(len, grid))
    for line in grid:
        line.extend([""] * (width - len(line)))
    header, body = _split(_has_no_th(all_rows), grid, heads, width)
    after = ""
    before = "".join(f"<p>{part}</p>" for part in _outside(stray, write_cell))
    before += "".join(f"<p><em>{caption}</em></p>" for caption in _captions(element, write_cell))
    if beyond:
        after = f"<p>[{beyond} more columns of the table are left out.]</p>"
    lines = "".join(_row(line, "td") for line in body)
    return f"{before}<table><thead>{_row(header, 'th')}</thead><tbody>{lines}</tbody></table>{after}"


def inner_lines(element: Any, write_cell: Callable[[Any], str]) -> list[str]:
    """Return a table inside a cell: a line for each row, with bars between the cells."""
    stray: list[Any] = []
    rows = [" | ".join(filter(None, map(write_cell, row))) for row in _rows(element, stray)]
    return [*_outside(stray, write_cell), *_captions(element, write_cell), *rows]


def _outside(stray: list[Any], write_cell: Callable[[Any], str]) -> list[str]:
    return [
        escape(squeeze(part), quote=False) if isinstance(part, str) else write_cell(part) for part in stray
    ]


def _captions(element: Any, write_cell: Callable[[Any], str]) -> list[str]:
    written = map(write_cell, element.iterchildren("caption"))
    return [text.replace("<em>", "").replace("</em>", "") for text in written if text]


def _is_head(row: list[Any]) -> bool:
    """Whether a row holds headers only, or an empty corner before them."""
    if row[0].getparent().getparent().tag == "thead":
        return True
    if row[0].tag != "th" and plain_text(row[0]).strip():
        return False
    return all(cell.tag == "th" for cell in row[1:] or row)


def _hang(hanging: dict[int, tuple[int, str]], line: list[str]) -> None:
    """Insert the cells that span down from the rows above."""
    while len(line) in hanging:
        column = len(line)
        rows, text = hanging.pop(column)
        if rows > 1:
            hanging[column] = (rows - 1, text)
        line.append(text)


def _has_no_th(rows: list[list[Any]]) -> bool:
    return not any(cell.tag == "th" for row in rows for cell in row)


def _split(
    without_th: bool, grid: list[list[str]], heads: list[bool], width: int
) -> tuple[list[str], list[list[str]]]:
    """Divide rows into the header, which Markdown must have, and the rest."""
    count = 0
    while count < min(len(heads), HEADS) and heads[count]:
        count += 1
    if count == 0 and without_th:
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

"""A document of which a part, between two comments, is written by a program."""

from __future__ import annotations


def filled(page: str, begin: str, end: str, text: str) -> str:
    """Return the page with `text` between the comments, each on a separate line."""
    head, _, rest = page.partition(begin)
    return f"{head}{begin}\n{text}\n{end}{rest.partition(end)[2]}"


def fill(path: str, begin: str, end: str, text: str) -> None:
    """Write `text` between the comments of a file."""
    with open(path, encoding="utf-8") as file:
        page = file.read()
    with open(path, "w", encoding="utf-8") as file:
        file.write(filled(page, begin, end, text))

"""The text of a document in memory: made by `extract`, cut by `passages`."""

from __future__ import annotations


class Extracted:
    """The text of a document.

    `pages` are plain text: a PDF's pages, slides, sheets, or the whole as one. `markdown` has the same pages
    with headings, lists and tables; None if the form is unknown, as for plain text and for PDFs in
    right-to-left script. `warnings` are sentences without a beginning, such as "it holds macros, which are
    not run". `title` and `language` come from the document's metadata, or are empty.
    """

    __slots__ = ("language", "markdown", "media_type", "pages", "title", "warnings")

    def __init__(
        self,
        pages: list[str],
        *,
        markdown: list[str] | None = None,
        media_type: str = "text/plain",
        title: str = "",
        language: str = "",
        warnings: list[str] | None = None,
    ) -> None:
        self.pages = pages
        self.markdown = markdown
        self.media_type = media_type
        self.title = title
        self.language = language
        self.warnings = warnings or []

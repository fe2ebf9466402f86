"""The list of resources: entries and documents together, newest first, by page.

A cursor holds the last number of the page for both, encrypted. So new and deleted rows do not shift a page,
and no owner learns how much others have written.
"""

from __future__ import annotations

from fastrpc import Context
from fastrpc.errors import InvalidParams

from . import _readers, _store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._store.documents import Document
    from ._store.entries import Entry

PAGE = 100


def page(cursor: str | None, ctx: Context) -> tuple[list[Entry | Document], str | None]:
    """Return a page and the next cursor. Raises InvalidParams for an invalid cursor."""
    from ._store.cursors import Cursors

    reader = _readers.reader_of(ctx)
    cursors = Cursors(_store.current().database, reader)
    before: tuple[int | None, ...] = (None, None)
    if cursor is not None:
        numbers = cursors.opened(cursor, 2)
        if numbers is None:
            raise InvalidParams("cursor: expected one that this list has returned")
        before = numbers
    entries = _store.current().page(reader, before[0], PAGE)
    documents = _store.current_documents().page(reader, before[1], PAGE)
    listed, taken = _merged(entries, documents)
    if taken == (len(entries), len(documents)) and PAGE not in taken:
        return listed, None
    return listed, cursors.sealed(_end(entries, taken[0]), _end(documents, taken[1]))


def _merged(
    entries: list[Entry], documents: list[Document]
) -> tuple[list[Entry | Document], tuple[int, int]]:
    """Return the newest of both, and the number of each. The order of each is preserved."""
    listed: list[Entry | Document] = []
    entry = document = 0
    while len(listed) < PAGE and (entry < len(entries) or document < len(documents)):
        if document == len(documents) or (
            entry < len(entries) and entries[entry].written_at >= documents[document].added_at
        ):
            listed.append(entries[entry])
            entry += 1
        else:
            listed.append(documents[document])
            document += 1
    return listed, (entry, document)


def _end(found: list[Any], taken: int) -> int:
    """Return the exclusive upper bound of the next page's numbers: 0 if nothing is left."""
    if taken:
        return int(found[taken - 1].number)
    return int(found[0].number) + 1 if found else 0

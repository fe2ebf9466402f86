"""What a person sees of their memory, documents and workflows at the dashboard, and forgets there.

`Personal` uses the functions of the tools, for the person who has signed in instead of a caller: the owner is
the person's name. A person reads the entries of all their agents. Everything here blocks; threads call it.
"""

from __future__ import annotations

from fastrpc import ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ._store.documents import Document, FoundPassage
    from ._store.entries import Entry, Reader
    from .documents import PageText

PAGE = 25
MOST_STEPS = 500
"""Steps of a run that are shown, the last ones."""


class Personal:
    """What belongs to an owner. Methods raise ToolError, with a sentence, and StorageError."""

    def __init__(self, owner: str) -> None:
        self._owner = owner

    def _reader(self) -> Reader:
        from . import _store
        from ._store.entries import EveryClass

        classes = {of_class for _, of_class in _store.current().changes([self._owner])}
        return EveryClass(self._owner, classes)

    # --- memory -------------------------------------------------------------------------------------------

    def entries(self, cursor: str) -> tuple[list[Entry], str]:
        """Return a page of entries, the newest first, and the next cursor, "" on the last page."""
        from . import _store

        store, reader = _store.current(), self._reader()
        return self._page(lambda before: store.page(reader, before, PAGE), cursor)

    def found_entries(self, query: str) -> tuple[list[Entry], str]:
        """Return the entries that answer a query, best first, and a note, which may be empty."""
        from . import memory

        found, notes = memory.find(self._reader(), query, "all", PAGE)
        return found, " ".join(filter(None, notes))

    def entry(self, id: str) -> Entry:
        from . import _store

        found = _store.current().read(self._reader(), id)
        if found is None:
            raise ToolError(f"There is no entry {id:.40}.")
        return found

    def forget(self, id: str) -> None:
        """Forget an entry for good."""
        from . import _store

        if not _store.current().forget(self._reader(), id):
            raise ToolError(f"There is no entry {id:.40}.")

    # --- documents ----------------------------------------------------------------------------------------

    def documents(self, cursor: str) -> tuple[list[Document], str]:
        """Return a page of documents, the newest first, and the next cursor, "" on the last page."""
        from . import _store

        store, reader = _store.current_documents(), self._reader()
        return self._page(lambda before: store.page(reader, before, PAGE), cursor)

    def found_passages(self, query: str) -> tuple[list[FoundPassage], str]:
        """Return the passages that answer a query, best first, and a note, which may be empty."""
        from . import documents

        found, notes = documents.find(self._reader(), query, [], [], PAGE)
        return found, " ".join(filter(None, notes))

    def document(self, id: str) -> Document:
        from . import _store

        found = _store.current_documents().get(self._reader(), id)
        if found is None:
            raise ToolError(f"There is no document {id:.40}.")
        return found

    def text(self, document: Document, page: int, offset: int) -> tuple[list[PageText], int, int]:
        """Return pages of a document's text, as `documents.part_of` does."""
        from . import documents

        return documents.part_of(document, page, document.pages, offset)

    def delete(self, id: str) -> None:
        """Delete a document with its text and its file."""
        from . import _store

        if not _store.current_documents().delete(self._reader(), id):
            raise ToolError(f"There is no document {id:.40}.")

    def _page(self, read: Any, cursor: str) -> tuple[list[Any], str]:
        from . import _store
        from ._store.cursors import Cursors
        from ._store.entries import Reader

        cursors, before = Cursors(_store.current().database, Reader(self._owner, "")), None
        if cursor:
            numbers = cursors.opened(cursor, 1)
            if numbers is None:
                raise ToolError("This is not a page of this list.")
            before = numbers[0]
        found = read(before)
        return found, cursors.sealed(found[-1].number) if len(found) == PAGE else ""

    # --- workflows ----------------------------------------------------------------------------------------

    def runs(self, offset: int) -> list[dict[str, Any]]:
        """Return runs of workflows after the first `offset`, the newest first, at most a page and one."""
        from . import workflows

        found: list[dict[str, Any]] = workflows.running_engine().runs(self._owner, "", "", PAGE + 1, offset)
        return found

    def run(self, id: str) -> dict[str, Any]:
        """Return a run with its steps and its definition."""
        from . import workflows

        found: dict[str, Any] | None = workflows.running_engine().run(self._owner, id, MOST_STEPS)
        if found is None:
            raise ToolError(f"There is no run {id:.100}.")
        return found

"""Entries as resources, ``SCHEME://memory/{id}``, listed by page and newest first; ``SCHEME://memory/`` is
the list as JSON.

A cursor is the number of the entry that a page ended with: what comes and goes meanwhile shifts nothing.
"""

from __future__ import annotations

from fastrpc import Context

from . import _readers, _settings, _store
from .memory import date_of, uri_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc import Server

    from ._store.entries import Entry

PAGE = 100
LONGEST_NAME = 60


def attach(server: Server) -> None:
    scheme = _settings.SCHEME.read()
    server.resources(f"{scheme}://memory/", mime_type="text/plain", run="thread")(
        Memory(f"{scheme}://memory/")
    )


class Memory:
    """The provider of all entries."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix

    def list(self, cursor: str | None, ctx: Context) -> Any:
        """Return a page of entries. Raises ToolError for a cursor that is none of ours."""
        before = int(cursor) if cursor is not None and cursor.isdecimal() else None
        found = _store.current().page(_readers.reader_of(ctx), before, PAGE)
        return [self._listed(each) for each in found], str(found[-1].number) if len(found) == PAGE else None

    def read(self, uri: str, ctx: Context) -> Any:
        """Return the content of an entry, or the list of all; None where there is none."""
        from fastrpc import Contents

        id = uri.removeprefix(self._prefix)
        store, reader = _store.current(), _readers.reader_of(ctx)
        if not id:
            newest = store.page(reader, None, PAGE)
            return Contents([self._listed(each) for each in newest], "application/json")
        entry = store.read(reader, id)
        return None if entry is None else entry.content

    def _listed(self, entry: Entry) -> dict[str, Any]:
        content = " ".join(entry.content.split())
        name = content if len(content) <= LONGEST_NAME else content[: LONGEST_NAME - 1] + "…"
        tags = f" ({', '.join(entry.tags)})" if entry.tags else ""
        return {
            "uri": uri_of(entry.id),
            "name": name,
            "description": f"{entry.category}, {date_of(entry.written_at)[:10]}{tags}",
            "mime_type": "text/plain",
        }

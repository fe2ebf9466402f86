"""Entries as resources, ``SCHEME://memory/{id}``, listed by page and newest first; ``SCHEME://memory/`` is
the list as JSON.

A cursor is the number of the entry that a page ended with: what comes and goes meanwhile shifts nothing.
"""

from __future__ import annotations

from fastrpc import Completions, Context

from . import _readers, _settings, _store
from ._watching import Watching
from .memory import date_of, uri_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc import Server

    from ._store.entries import Entry

PAGE = 100
LONGEST_NAME = 60
MOST_IDS = 100
"""Of one completion (MCP, utilities: completion)."""


def attach(server: Server) -> None:
    prefix = f"{_settings.SCHEME.read()}://memory/"
    template = f"{prefix}{{id}}"
    server.resources(prefix, run="thread")(Memory(prefix, server))
    server.resource(template, name="entry", mime_type="text/plain", run="thread")(read_entry)
    server.complete(template, "id", run="thread")(complete_id)


def read_entry(id: str, ctx: Context) -> str | None:
    """An entry of the memory."""
    entry = _store.current().read(_readers.reader_of(ctx), id)
    return None if entry is None else entry.content


def complete_id(value: str, ctx: Context) -> Completions:
    """Return the ids that begin so, the newest entry's first."""
    found = _store.current().ids(_readers.reader_of(ctx), value, MOST_IDS + 1)
    return Completions(found[:MOST_IDS], has_more=len(found) > MOST_IDS)


class Memory:
    """The provider of the lists: of entries as resources, and as JSON."""

    def __init__(self, prefix: str, server: Server) -> None:
        self._prefix = prefix
        self._watching = Watching(server, prefix, lambda reader, id: _store.current().stamp(reader, id))

    def list(self, cursor: str | None, ctx: Context) -> Any:
        """Return a page of entries. Raises ToolError for a cursor that is none of ours."""
        before = int(cursor) if cursor is not None and cursor.isdecimal() else None
        found = _store.current().page(_readers.reader_of(ctx), before, PAGE)
        return [self._listed(each) for each in found], str(found[-1].number) if len(found) == PAGE else None

    def read(self, uri: str, ctx: Context) -> Any:
        """Return the newest entries; None where there is nothing."""
        from fastrpc import Contents

        if uri != self._prefix:
            return None
        newest = _store.current().page(_readers.reader_of(ctx), None, PAGE)
        return Contents([self._listed(each) for each in newest], "application/json")

    def watch(self, uri: str) -> None:
        """Somebody has subscribed to an entry, or to the list."""
        self._watching.begin()

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

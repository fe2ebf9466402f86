"""Entries as resources, ``SCHEME://memory/{id}``; ``SCHEME://memory/`` is the newest as JSON. Their provider
lists the documents, too (`_listing`)."""

from __future__ import annotations

from fastrpc import Completions, Context

from . import _listing, _readers, _settings, _store
from ._watching import Watching
from .memory import date_of, uri_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc import Server

    from ._store.entries import Entry

LONGEST_NAME = 60
MOST_IDS = 100
"""Values in one completion (MCP, utilities: completion)."""


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
    """Return the ids with this beginning, the newest entry's first."""
    found = _store.current().ids(_readers.reader_of(ctx), value, MOST_IDS + 1)
    return Completions(found[:MOST_IDS], has_more=len(found) > MOST_IDS)


class Memory:
    """The provider of the lists: of entries and documents as resources, of entries as JSON."""

    def __init__(self, prefix: str, server: Server) -> None:
        self._prefix = prefix
        self._watching = Watching(server, prefix, lambda reader, id: _store.current().stamp(reader, id))

    def list(self, cursor: str | None, ctx: Context) -> Any:
        """Return a page of entries and documents."""
        from ._document_resources import listed_document
        from ._store.entries import Entry

        found, following = _listing.page(cursor, ctx)
        return [
            _listed(each) if isinstance(each, Entry) else listed_document(each) for each in found
        ], following

    def read(self, uri: str, ctx: Context) -> Any:
        """Return the newest entries; None without any."""
        from fastrpc import Contents

        if uri != self._prefix:
            return None
        newest = _store.current().page(_readers.reader_of(ctx), None, _listing.PAGE)
        return Contents([_listed(each) for each in newest], "application/json")

    def watch(self, uri: str) -> None:
        """Begin to watch: a client has subscribed to an entry, or to the list."""
        self._watching.begin()


def _listed(entry: Entry) -> dict[str, Any]:
    content = " ".join(entry.content.split())
    name = content if len(content) <= LONGEST_NAME else content[: LONGEST_NAME - 1] + "…"
    tags = f" ({', '.join(entry.tags)})" if entry.tags else ""
    return {
        "uri": uri_of(entry.id),
        "name": name,
        "description": f"{entry.category}, {date_of(entry.written_at)[:10]}{tags}",
        "mime_type": "text/plain",
    }

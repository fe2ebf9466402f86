"""Documents as resources: ``SCHEME://documents/{id}`` is the text, ``/{id}/original`` the unchanged file,
``SCHEME://documents/`` the newest as JSON. `_listing` lists them with the entries."""

from __future__ import annotations

from fastrpc import Context

from . import _readers, _settings, _store
from ._listing import PAGE
from ._watching import Watching
from .documents import uri_of
from .memory import date_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc import Server

    from ._store.documents import Document
    from ._store.entries import Reader

ORIGINAL = "original"


def attach(server: Server) -> None:
    prefix = f"{_settings.SCHEME.read()}://documents/"
    server.resources(prefix, mime_type="text/plain", run="thread")(Documents(prefix, server))


class Documents:
    """The provider of all documents: it reads them."""

    def __init__(self, prefix: str, server: Server) -> None:
        self._prefix = prefix
        self._watching = Watching(server, prefix, _stamp)

    def read(self, uri: str, ctx: Context) -> Any:
        """Return a document's text or file, or the list of all; None if it does not exist."""
        from fastrpc import Contents

        id, _, part = uri.removeprefix(self._prefix).partition("/")
        store, reader = _store.current_documents(), _readers.reader_of(ctx)
        if not id:
            newest = store.page(reader, None, PAGE)
            return Contents([_catalogued(each) for each in newest], "application/json")
        document = store.get(reader, id) if part in ("", ORIGINAL) else None
        if document is None:
            return None
        if part == ORIGINAL or document.state != "ready":
            return Contents(store.original(document), document.type)
        return store.whole_text(document)

    def watch(self, uri: str) -> None:
        """Begin to watch: a client has subscribed to a document, its file, or the list."""
        self._watching.begin()


def _stamp(reader: Reader, rest: str) -> object:
    """Return a value that differs after the content at a URI has changed. A file is only added and removed,
    never changed."""
    id, _, part = rest.partition("/")
    store = _store.current_documents()
    if part == ORIGINAL:
        return store.get(reader, id) is not None
    return store.stamp(reader, id)


def listed_document(document: Document) -> dict[str, Any]:
    """Return a document as an entry of the list of resources."""
    tags = f" ({', '.join(document.tags)})" if document.tags else ""
    date = date_of(document.added_at)[:10]
    return {
        "uri": uri_of(document.id),
        "name": document.name,
        "description": f"{document.title or document.name} — uploaded {date}{tags}",
        "mime_type": document.type,
    }


def _catalogued(document: Document) -> dict[str, Any]:
    return {
        "id": document.id,
        "uri": uri_of(document.id),
        "name": document.name,
        "type": document.type,
        "size": document.size,
        "state": document.state,
        "tags": document.tags,
        "added": date_of(document.added_at),
        "pages": document.pages,
    }

"""Documents of an owner, out of a store and into another one: their records, texts and originals.

`add` writes a document in one transaction, and leaves out one whose file the owner already has, so an
interrupted import can be repeated. Passages are cut again. Raises StorageError.
"""

from __future__ import annotations

import re
import time

from sqlalchemy import insert, select

from .._extraction import Extracted, passages
from .documents import FAILED, READY, Document, write_text
from .entries import ID_LETTERS, count_change, lines_of, new_id, space_of
from .moving import LOT
from .schema import documents, pages, spaces

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .documents import Documents

ID = re.compile(f"doc_[{ID_LETTERS}]{{12}}")


class DocumentRecord:
    """The record of a document, without its text and its original."""

    def __init__(
        self, digest: str, name: str, media_type: str, *, id: str = "", tags: list[str] | None = None,
        state: str = READY, reason: str = "", title: str = "", language: str = "",
        warnings: list[str] | None = None, added_at: float | None = None, names: list[str] | None = None,
    ) -> None:  # fmt: skip
        self.digest = digest
        self.name = name
        self.names = names or [name]
        self.media_type = media_type
        self.id = id
        self.tags = tags or []
        self.state = state
        self.reason = reason
        self.title = title
        self.language = language
        self.warnings = warnings or []
        self.added_at = added_at


def everything(store: Documents, owner: str) -> Iterator[tuple[DocumentRecord, Document]]:
    """Return an owner's documents, the oldest first. One that is still being read counts as failed in another
    store."""
    after = 0
    while True:
        wanted = (
            select(documents)
            .join(spaces, spaces.c.number == documents.c.space)
            .where(spaces.c.owner == owner, documents.c.number > after)
            .order_by(documents.c.number)
            .limit(LOT)
        )
        with store.database.reading() as connection:
            found = [Document(row) for row in connection.execute(wanted)]
        for each in found:
            is_ready = each.state == READY
            yield (
                DocumentRecord(
                    each.digest, each.name, each.type, id=each.id, tags=each.tags,
                    state=READY if is_ready else FAILED,
                    reason=each.reason or ("" if is_ready else "it was exported before its text was read"),
                    title=each.title, language=each.language, warnings=each.warnings, added_at=each.added_at,
                    names=each.names,
                ),
                each,
            )  # fmt: skip
        if len(found) < LOT:
            return
        after = found[-1].number


def text_of(store: Documents, document: Document) -> tuple[list[str], list[str] | None]:
    """Return a document's pages as plain text, and as Markdown if it has a form."""
    wanted = select(pages.c.content, pages.c.markdown).where(pages.c.document == document.number)
    with store.database.reading() as connection:
        rows = connection.execute(wanted.order_by(pages.c.page)).all()
    markdown = [row.markdown for row in rows]
    return [row.content for row in rows], None if None in markdown else markdown


def add(
    store: Documents, owner: str, record: DocumentRecord, data: bytes, extracted: Extracted | None
) -> bool:
    """Add a document whose file, which has the record's digest, the owner does not have yet. False: the owner
    has it."""
    found = passages(extracted) if extracted is not None else []
    words = store.words_of(found)
    now = time.time()
    with store.database.changing() as connection:
        store.originals.lock(connection, record.digest)
        space = space_of(connection, owner, "")
        is_it = (documents.c.space == space) & (documents.c.digest == record.digest)
        if connection.execute(select(documents.c.number).where(is_it)).first() is not None:
            return False
        taken = connection.execute(select(documents.c.number).where(documents.c.id == record.id)).first()
        values: dict[str, Any] = {
            "id": record.id if ID.fullmatch(record.id) and taken is None else new_id("doc_"),
            "space": space, "digest": record.digest, "name": record.name, "type": record.media_type,
            "size": len(data), "tags": lines_of(record.tags), "names": lines_of(record.names),
            "state": FAILED if extracted is None else READY, "changed_at": now, "reason": record.reason,
            "warnings": "\n".join(record.warnings), "title": record.title, "language": record.language,
            "pages": 0 if extracted is None else len(extracted.pages),
            "added_at": now if record.added_at is None else record.added_at,
        }  # fmt: skip
        connection.execute(insert(documents).values(values))
        number = int(connection.execute(select(documents.c.number).where(is_it)).scalar_one())
        if extracted is not None:
            write_text(connection, number, extracted, found, words)
        store.originals.add(record.digest, data)
        count_change(connection, {space})
    return True

"""`Documents`: the documents of all owners, their pages and passages. Each method is one transaction.

A document belongs to its owner, whatever class of caller added it. Nothing of another owner is found, counted
or reported to exist. The same file twice is one document. Its state is `extracting`, `chunking`, `ready` or
`failed`. One without progress for some minutes has failed, since the process that worked on it has ended.
Raises StorageError.
"""

from __future__ import annotations

import hashlib
import time
from typing import NamedTuple

from sqlalchemy import delete, func, insert, or_, select, text, update

from .._search.fusion import fused
from . import readings
from .entries import (
    count_change,
    escaped,
    lines_of,
    nearest_words,
    new_id,
    own_numbers,
    own_spaces,
    space_of,
    tags_in,
)
from .meaning import Meaning, Place
from .originals import Originals
from .ranking import EVERY, Choice, best
from .schema import documents, pages, passages
from .word_index import PASSAGES, index_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

    from .._extraction import Extracted, Passage
    from .._search.question import Question
    from .entries import Reader

EXTRACTING, CHUNKING, READY, FAILED = "extracting", "chunking", "ready", "failed"
GIVEN_UP_SECONDS = 300.0
"""After so many seconds without a change, no process works on a document any more: extracting takes a minute
at most, and writing its passages waits ten seconds for other writers."""
INTERRUPTED = "its extraction was interrupted; add it again"
RERANKED = 50
LOT = 1000
"""Rows of one statement."""
MOST_NAMES = 20
"""Names of a document; of more the latest are stored."""
UNKNOWN_TYPE = "application/octet-stream"


class Document:
    """A document in the store."""

    __slots__ = (
        "added_at", "digest", "id", "language", "name", "names", "number", "pages", "reason", "size", "state",
        "tags", "title", "type", "warnings",
    )  # fmt: skip

    def __init__(self, row: Any) -> None:
        self.number: int = row.number
        self.id: str = row.id
        self.digest: str = row.digest
        self.name: str = row.name
        self.names: list[str] = tags_in(row.names)
        self.type: str = row.type
        self.size: int = row.size
        self.tags: list[str] = tags_in(row.tags)
        self.warnings: list[str] = row.warnings.splitlines()
        self.title: str = row.title
        self.language: str = row.language
        self.pages: int = row.pages
        self.added_at: float = row.added_at
        is_given_up = _is_unfinished(row.state) and row.changed_at < _given_up()
        self.state: str = FAILED if is_given_up else row.state
        self.reason: str = INTERRUPTED if is_given_up else row.reason


class FoundPassage(NamedTuple):
    """A passage that answers a question; the higher the score, the better."""

    document: str
    name: str
    page: int
    heading: list[str]
    content: str
    score: float
    number: int


class Documents:
    """The documents in one database, and their originals beside it."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.originals = Originals(database)

    # --- writing ------------------------------------------------------------------------------------------

    def begin(
        self, reader: Reader, name: str, data: bytes, tags: Iterable[str], takes_over: bool = False
    ) -> tuple[Document, bool]:
        """Add a file; return its document, and whether the caller must extract its text. A known file gets
        the later date, and the tags and names of both. It is not extracted again unless that failed, or the
        caller `takes_over` from a process that has ended while it was extracted."""
        digest, now = hashlib.sha256(data).hexdigest(), time.time()
        with self.database.changing() as connection:
            self.originals.lock(connection, digest)
            space = space_of(connection, reader.owner, "")
            is_it = (documents.c.space == space) & (documents.c.digest == digest)
            row = connection.execute(select(documents).where(is_it)).first()
            known = None if row is None else Document(row)
            earlier = [each for each in (known.names if known else ()) if each != name]
            values: dict[str, Any] = {
                "tags": lines_of([*(known.tags if known else ()), *tags]),
                "names": lines_of([*earlier, name][-MOST_NAMES:]),
                "added_at": now,
            }
            is_begun = known is None or known.state == FAILED or (takes_over and known.state != READY)
            if is_begun:
                values |= {
                    "name": name, "type": UNKNOWN_TYPE, "state": EXTRACTING, "changed_at": now, "reason": "",
                    "warnings": "", "title": "", "language": "", "pages": 0,
                }  # fmt: skip
            if known is None:
                values |= {"id": new_id("doc_"), "space": space, "digest": digest, "size": len(data)}
                connection.execute(insert(documents).values(values))
            else:
                connection.execute(update(documents).where(is_it).values(values))
            self.originals.add(digest, data)
            count_change(connection, {space})
            return Document(connection.execute(select(documents).where(is_it)).one()), is_begun

    def is_chunking(self, number: int) -> None:
        """Note that a document's text is extracted, and is being cut into passages."""
        self._set(number, state=CHUNKING)

    def fail(self, number: int, reason: str) -> None:
        """Note why a document's text is missing."""
        self._set(number, state=FAILED, reason=reason)

    def _set(self, number: int, **values: str) -> None:
        is_it = documents.c.number == number
        with self.database.changing() as connection:
            connection.execute(update(documents).where(is_it).values(changed_at=time.time(), **values))
            _count_change(connection, is_it)

    def finish(self, number: int, extracted: Extracted, found: Sequence[Passage]) -> Document | None:
        """Write the extracted text, all of it or nothing. None: the document was deleted meanwhile."""
        words = self.words_of(found)
        with self.database.changing() as connection:
            is_it = documents.c.number == number
            done = connection.execute(
                update(documents).where(is_it).values(
                    type=extracted.media_type, state=READY, changed_at=time.time(), reason="",
                    warnings="\n".join(extracted.warnings), title=extracted.title,
                    language=extracted.language, pages=len(extracted.pages),
                )
            )  # fmt: skip
            if not done.rowcount:
                return None
            _remove_text(connection, number)
            write_text(connection, number, extracted, found, words)
            _count_change(connection, is_it)
            return Document(connection.execute(select(documents).where(is_it)).one())

    def words_of(self, found: Sequence[Passage]) -> list[dict[str, object]]:
        """Return the index rows of passages. Takes a second for some megabytes, so no transaction is open
        meanwhile."""
        with self.database.reading() as connection:
            index = index_of(connection, PASSAGES)
        return [index.row_of("\n".join([*each.heading, each.text])) for each in found]

    def delete(self, reader: Reader, id: str) -> bool:
        """Delete a document with its text, and the original, unless another document uses it. False: the
        document does not exist."""
        with self.database.changing() as connection:
            row = connection.execute(select(documents).where(_is(reader, id))).first()
            if row is None:
                return False
            _remove_text(connection, row.number)
            connection.execute(delete(documents).where(documents.c.number == row.number))
            count_change(connection, {row.space})
        self.originals.remove_unused(row.digest)
        self.database.overwrite_deleted()
        return True

    # --- reading ------------------------------------------------------------------------------------------

    def get(self, reader: Reader, id: str) -> Document | None:
        """Return a document, None if the reader has none with this id."""
        with self.database.reading() as connection:
            row = connection.execute(select(documents).where(_is(reader, id))).first()
        return None if row is None else Document(row)

    def stamp(self, reader: Reader, id: str) -> object:
        """Return a value that differs after a document was added, changed or deleted; without an id, after
        any was."""
        times = func.max(documents.c.changed_at), func.max(documents.c.added_at)
        wanted = select(func.count(), func.max(documents.c.number), *times)
        with self.database.reading() as connection:
            return tuple(connection.execute(wanted.where(_is(reader, id) if id else _own(reader))).one())

    def page(
        self, reader: Reader, before: int | None, limit: int, *, tag: str = "", state: str = ""
    ) -> list[Document]:
        """Return documents, the newest first; those after a document's number, if one is given."""
        is_own = documents.c.space == own_spaces(reader, "user").scalar_subquery()
        wanted = select(documents).where(is_own).order_by(documents.c.number.desc()).limit(limit)
        if before is not None:
            wanted = wanted.where(documents.c.number < before)
        if tag:
            wanted = wanted.where(documents.c.tags.like(f"%\n{escaped(tag)}\n%", escape="\\"))
        if state:
            wanted = wanted.where(_has_state(state))
        with self.database.reading() as connection:
            return [Document(row) for row in connection.execute(wanted)]

    def text(
        self, document: Document, first: int, last: int, most: int, *, as_markdown: bool = False
    ) -> list[tuple[int, str]]:
        """Return pages of a document, pairs of number and text, up to so many characters."""
        wanted = select(pages).where(pages.c.document == document.number, pages.c.page.between(first, last))
        found: list[tuple[int, str]] = []
        with self.database.reading() as connection:
            for row in connection.execute(wanted.order_by(pages.c.page)):
                content = row.content if row.markdown is None or not as_markdown else row.markdown
                found.append((row.page, content))
                most -= len(content)
                if most <= 0:
                    break
        return found

    def whole_text(self, document: Document) -> str:
        """Return the text of all pages."""
        wanted = select(pages.c.content).where(pages.c.document == document.number).order_by(pages.c.page)
        with self.database.reading() as connection:
            return "\n\n".join(connection.execute(wanted).scalars())

    def original(self, document: Document) -> bytes:
        """Return the file from which a document was made."""
        return self.originals.read(document.digest, document.size)

    def search(
        self,
        reader: Reader,
        question: Question,
        ids: Sequence[str],
        tags: Sequence[str],
        limit: int,
        meaning: Meaning | None = None,
    ) -> list[FoundPassage]:
        """Return the passages that answer a question, by its words and, if it is known, by its meaning, best
        first."""
        with self.database.reading() as connection:
            own = own_numbers(connection, reader, "user")
            if not own:
                return []
            if meaning is None or not question.asks:
                return _answering(connection, question, own[0], ids, tags, limit)
            return _fused(connection, question, own[0], ids, tags, limit, meaning)

    def nearest(self, reader: Reader, question: Question) -> dict[str, str]:
        """Return, for words that no document of the reader has, similar ones."""
        with self.database.reading() as connection:
            own = own_numbers(connection, reader, "user")
            return nearest_words(index_of(connection, PASSAGES), connection, question, own)


def _answering(
    connection: Connection,
    question: Question,
    space: int,
    ids: Sequence[str],
    tags: Sequence[str],
    limit: int,
) -> list[FoundPassage]:
    """Return the passages in a space that answer a question, best first."""
    index = index_of(connection, PASSAGES)
    conditions, parameters = _chosen(question, ids, tags)
    most = max(limit, RERANKED)
    if question.stems or (question.asks and index.ranks):
        choice = Choice(*CHOSEN, tuple(conditions), parameters) if conditions else EVERY
        scores = dict(best(connection, index, question, [space], most, choice))
        if not scores:
            return []
        where, parameters = [f"e.number IN ({', '.join(map(str, scores))})"], {}
        statement = _statement(where, "e.number")
    else:
        scores, where = {}, [f"d.space = {space}", *conditions]
        for condition, values in index.limits(question):
            where.append(condition)
            parameters |= values
        statement = _statement(where, f"d.added_at DESC, e.position LIMIT {most:d}")
    rows = connection.execute(text(statement), parameters)
    found = [_passage(row, -scores.get(row.number, 0.0)) for row in rows]
    return sorted(found, key=lambda each: -each.score)[:limit]


def _fused(
    connection: Connection,
    question: Question,
    space: int,
    ids: Sequence[str],
    tags: Sequence[str],
    limit: int,
    meaning: Meaning,
) -> list[FoundPassage]:
    """Return the passages in a space that answer a question by their words or by their meaning, best
    first."""
    from . import vectors

    by_words = _answering(connection, question, space, ids, tags, max(limit, RERANKED))
    found = {each.number: each for each in by_words}
    conditions, parameters = _chosen(question, ids, tags)
    limits = [(each, parameters) for each in [f"d.state = '{READY}'", *conditions]]
    limits += index_of(connection, PASSAGES).limits(question)
    tables = "knowledge_passages AS e JOIN knowledge_documents AS d ON d.number = e.document"
    near = vectors.nearest(connection, meaning, Place(readings.PASSAGES, tables, limits), [space])
    if new := [number for number in near if number not in found]:
        where = [f"e.number IN ({', '.join(map(str, new))})"]
        rows = connection.execute(text(_statement(where, "e.number")))
        found |= {row.number: _passage(row, 0.0) for row in rows}
    scores = fused([each.number for each in by_words], near)
    best_first = sorted(scores.keys() & found.keys(), key=lambda number: (-scores[number], number))[:limit]
    return [found[number]._replace(score=round(scores[number], 6)) for number in best_first]


def _passage(row: Any, score: float) -> FoundPassage:
    heading = row.heading.splitlines()
    return FoundPassage(row.id, row.name, row.page, heading, row.content, round(score, 6), row.number)


def _statement(conditions: Sequence[str], order: str) -> str:
    return (
        "SELECT d.id, d.name, e.number, e.page, e.heading, e.content FROM knowledge_passages AS e "
        f"JOIN knowledge_documents AS d ON d.number = e.document "
        f"WHERE d.state = '{READY}' AND {' AND '.join(conditions)} ORDER BY {order}"
    )


def _chosen(
    question: Question, ids: Sequence[str], tags: Sequence[str]
) -> tuple[list[str], dict[str, object]]:
    """Return the conditions for documents with these ids, tags and fields, and their parameters."""
    conditions: list[str] = []
    parameters: dict[str, object] = {f"id_{at}": id for at, id in enumerate(ids)}
    if ids:
        conditions.append(f"d.id IN ({', '.join(f':{name}' for name in parameters)})")
    for at, (name, value) in enumerate([*question.fields, *(("tag", tag) for tag in tags)]):
        conditions.append(_FIELDS[name].format(f"field_{at}"))
        is_line = name in ("tag", "source")
        parameters[f"field_{at}"] = f"%\n{escaped(str(value))}\n%" if is_line else value
    return conditions, parameters


CHOSEN = (
    " CROSS JOIN knowledge_passages AS e ON e.number = w.rowid"
    " CROSS JOIN knowledge_documents AS d ON d.number = e.document",
    "knowledge_documents AS d JOIN knowledge_passages AS e ON e.document = d.number",
    "d.space",
)
_FIELDS = {
    "tag": "d.tags LIKE :{} ESCAPE '\\'",
    "category": "d.type = :{}",
    "source": "lower(d.names) LIKE :{} ESCAPE '\\'",
    "before": "d.added_at < :{}",
    "after": "d.added_at >= :{}",
}


def write_text(
    connection: Connection, number: int, extracted: Extracted, found: Sequence[Passage],
    words: Sequence[dict[str, object]],
) -> None:  # fmt: skip
    """Write the pages and the passages of a document that has none."""
    index = index_of(connection, PASSAGES)
    is_it = documents.c.number == number
    space = connection.execute(select(documents.c.space).where(is_it)).scalar_one()
    rows = _page_rows(number, extracted)
    for start in range(0, len(rows), LOT):
        connection.execute(insert(pages), rows[start : start + LOT])
    index.lock(connection, space)
    for start in range(0, len(found), LOT):
        _add_passages(connection, number, found[start : start + LOT])
    numbers = connection.execute(
        select(passages.c.number).where(passages.c.document == number).order_by(passages.c.position)
    ).scalars()
    rows = [{"number": each, "space": space, **row} for each, row in zip(numbers, words, strict=True)]
    for start in range(0, len(rows), LOT):
        index.add_rows(connection, rows[start : start + LOT])


def _page_rows(number: int, extracted: Extracted) -> list[dict[str, Any]]:
    markdown = extracted.markdown
    return [
        {
            "document": number,
            "page": at + 1,
            "content": each,
            "markdown": None if markdown is None else markdown[at],
        }
        for at, each in enumerate(extracted.pages)
    ]


def _add_passages(connection: Connection, number: int, found: Sequence[Passage]) -> None:
    rows = [
        {
            "document": number,
            "position": each.position,
            "page": each.page,
            "heading": "\n".join(each.heading),
            "content": each.text,
        }
        for each in found
    ]
    connection.execute(insert(passages), rows)


def _remove_text(connection: Connection, number: int) -> None:
    """Remove a document's pages and passages."""
    numbers = connection.execute(select(passages.c.number).where(passages.c.document == number)).scalars()
    if gone := list(numbers):
        index_of(connection, PASSAGES).remove(connection, gone)
        connection.execute(delete(passages).where(passages.c.document == number))
    connection.execute(delete(pages).where(pages.c.document == number))


def _count_change(connection: Connection, which: Any) -> None:
    """Count a change of a document."""
    count_change(connection, connection.execute(select(documents.c.space).where(which)).scalars())


def _own(reader: Reader) -> Any:
    """Return the condition that a document belongs to the reader."""
    return documents.c.space.in_(own_spaces(reader, "user"))


def _is(reader: Reader, id: str) -> Any:
    # PostgreSQL accepts no text with a NUL.
    return _own(reader) & (documents.c.id == id.replace("\0", " ").encode(errors="replace").decode())


def _has_state(state: str) -> Any:
    is_begun = documents.c.state.in_((EXTRACTING, CHUNKING))
    if state == FAILED:
        return or_(documents.c.state == FAILED, is_begun & (documents.c.changed_at < _given_up()))
    found: Any = documents.c.state == state
    return found & (documents.c.changed_at >= _given_up()) if _is_unfinished(state) else found


def _is_unfinished(state: str) -> bool:
    return state in (EXTRACTING, CHUNKING)


def _given_up() -> float:
    return time.time() - GIVEN_UP_SECONDS

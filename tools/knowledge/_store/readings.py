"""Which texts a model must read after they were written, which server reads them, and the outcome.

A server claims a lot of texts, asks the model while no transaction is open, and stores its answer. A claim
expires, so another server reads the texts of a killed one. A text that was deleted meanwhile deletes its row,
so nothing is stored for it. Texts that were never claimed have no row, so writing costs nothing;
`Texts.claim` finds them after the highest number that it has checked. Raises StorageError.
"""

from __future__ import annotations

import time
from typing import NamedTuple

from sqlalchemy import delete, func, insert, literal, select, text, update

from .schema import documents, entity_readings, entries, entry_vectors, passage_vectors, passages

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from sqlalchemy import Table
    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

CLAIM_SECONDS = 180.0
"""Seconds, more than a model may take for a lot."""
PUT_OFF_SECONDS, LONGEST_PUT_OFF = 60.0, 86_400.0
"""Seconds until an unreadable text is read again; they double with each failure if the model refuses it."""
LOCK = 0x66727063_72656164
"""The key of PostgreSQL's advisory lock under which one server at a time claims."""


class Claimed(NamedTuple):
    """A text to read; `tags` are those of an entry."""

    number: int
    content: str
    tags: str


class Texts:
    """The texts of one table, and the state of their reading."""

    def __init__(self, readings: Table, texts: Any, number: Any, content: Any, tags: Any) -> None:
        self.readings = readings
        self._number = number
        self._texts = select(number, content.label("content"), tags.label("tags")).select_from(texts)
        space = documents.c.space if readings is passage_vectors else entries.c.space
        self._new = select(number, space.label("space")).select_from(texts)

    def claim(self, database: Database, after: int, limit: int) -> tuple[list[Claimed], int]:
        """Claim texts to read. Return them, and the number up to which every text has a row, if that held up
        to `after`. Texts that failed before come one at a time, after all others."""
        table, now = self.readings, time.time()
        is_free = table.c.done.is_(False), table.c.claimed_until <= now
        is_new = self._number > after, self._number.not_in(select(table.c.number))
        with database.reading() as connection:  # most checks find nothing, and do not wait for a writer
            newest = connection.execute(select(func.max(self._number))).scalar() or 0
            any_free = connection.execute(select(table.c.number).where(*is_free).limit(1)).first()
            any_new = connection.execute(self._new.where(*is_new).limit(1)).first()
        if any_free is None and any_new is None:
            return [], max(after, newest)
        with database.changing() as connection:
            _lock(connection)
            free = select(table.c.number).where(*is_free).order_by(table.c.claimed_until)
            is_first = table.c.failures == 0
            numbers = list(connection.execute(free.where(is_first).limit(limit)).scalars())
            new = self._new.where(*is_new).order_by(self._number).limit(limit - len(numbers))
            new = new.with_for_update(key_share=True, of=self._number.table)  # not rows in deletion
            rows = connection.execute(new).all() if len(numbers) < limit else []
            if rows:
                connection.execute(insert(table), [self._row(row, now + CLAIM_SECONDS) for row in rows])
                after = rows[-1].number
            elif not numbers:
                numbers = list(connection.execute(free.limit(1)).scalars())
            if numbers:
                claimed = update(table).where(table.c.number.in_(numbers))
                connection.execute(claimed.values(claimed_until=now + CLAIM_SECONDS))
            wanted = [*numbers, *(row.number for row in rows)]
            found = connection.execute(self._texts.where(self._number.in_(wanted)).order_by(self._number))
            return [Claimed(*row) for row in found], after

    def _row(self, row: Any, until: float) -> dict[str, object]:
        values = {"number": row.number, "done": False, "claimed_until": until, "failures": 0}
        return {**values, "space": row.space} if "space" in self.readings.c else values

    def give_back(self, database: Database, numbers: Sequence[int]) -> None:
        """End a claim: any server may read these texts."""
        is_mine = self.readings.c.number.in_(numbers), self.readings.c.done.is_(False)
        with database.changing() as connection:
            connection.execute(update(self.readings).where(*is_mine).values(claimed_until=0.0))

    def put_off(self, database: Database, number: int, *, is_refused: bool = False) -> None:
        """Note that a text could not be read, and whether the model refuses it: then each pause is longer."""
        table = self.readings
        with database.changing() as connection:
            is_it = table.c.number == number
            failures = connection.execute(select(table.c.failures).where(is_it)).scalar()
            if failures is not None:
                pause = PUT_OFF_SECONDS * (2.0 ** min(failures, 20) if is_refused else 1.0)
                pause = min(pause, LONGEST_PUT_OFF)
                values = {"failures": failures + 1, "claimed_until": time.time() + pause}
                connection.execute(update(table).where(is_it, table.c.done.is_(False)).values(values))

    def read_again(self, connection: Connection, number: int) -> None:
        """Have a text read again, if it was read."""
        is_it = self.readings.c.number == number
        connection.execute(
            update(self.readings).where(is_it).values(done=False, claimed_until=0.0, failures=0)
        )

    def clear(self, connection: Connection) -> None:
        """Have all texts read again."""
        connection.execute(delete(self.readings))


def _lock(connection: Connection) -> None:
    """Wait until no other server claims. SQLite has one writer at a time anyway."""
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": LOCK})


ENTRIES = Texts(entry_vectors, entries, entries.c.number, entries.c.content, entries.c.tags)
PASSAGES = Texts(
    passage_vectors,
    passages.join(documents),
    passages.c.number,
    passages.c.heading + "\n" + passages.c.content,
    literal(""),
)
NAMING = Texts(entity_readings, entries, entries.c.number, entries.c.content, entries.c.tags)
"""Entries as texts in which a model finds entities."""

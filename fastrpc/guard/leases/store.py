"""What servers have been granted of shared limits, in the guard's database.

A limit is a row. It counts what was granted by numbered stretches of time: of a rate, slices of its window
by the database's clock; of a budget, days or months. Of the current stretch and those before it that still
count, the sum never exceeds the limit, except by a debt: what has been used without a grant. Rows are locked
in the order of their keys, each once in a transaction.
"""

from __future__ import annotations

import json
from hashlib import blake2b
from time import time
from typing import NamedTuple

import sqlalchemy as sa

from fastrpc.storage.database import Database
from fastrpc.storage.schema import limits

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.engine import Connection

    Row = tuple[dict[int, int], float]

KEPT_SECONDS = 62 * 86_400.0
"""How long the row of a budget is kept after its last change."""
_KEY: sa.BindParameter[str] = sa.bindparam("sought")
_OF_KEY = sa.select(limits.c.counts).where(limits.c.key == _KEY).with_for_update()
_SERVER_TIME = sa.extract("epoch", sa.func.clock_timestamp())
_OF_KEY_AT = sa.select(limits.c.counts, _SERVER_TIME).where(limits.c.key == _KEY).with_for_update()
_INSERT = sa.text(
    "INSERT INTO fastrpc_limits (key, counts, expires_at) VALUES (:key, '{}', :expires_at)"
    " ON CONFLICT DO NOTHING"
)


class Change(NamedTuple):
    """What one server asks of a limit. Amounts are integers from 0 on.

    `slice_seconds`: how long stretches are, if the database numbers them; 0: the current one is `number`.
    `about` is stored for people: of a budget, its caller, its tool and its text, as JSON.
    `span`: how many stretches count, the current one included. `back` is taken off the stretch `back_number`,
    and `debt` is added in any case. Then `want` is granted, or less, but at least `least`, if the limit has
    room for that; otherwise nothing."""

    key: str
    limit: int
    span: int
    slice_seconds: float = 0.0
    number: int = 0
    least: int = 0
    want: int = 0
    debt: int = 0
    back: int = 0
    back_number: int = 0
    about: str = ""


class CountedBudget(NamedTuple):
    """What all servers together have been granted of a budget, by the number of the day or month; `text` is
    the budget as a policy has it. What a server has leased and does not use comes back within seconds."""

    key: str
    caller: str
    tool: str
    text: str
    counts: dict[int, int]


class Granted(NamedTuple):
    """`amount` in the stretch `number`. `total` is what counts now, for all servers together. `wait_seconds`:
    when the limit may have room again, if the database numbers the stretches."""

    amount: int
    number: int
    total: int
    wait_seconds: float


def key_of(kind: str, *parts: str) -> str:
    """Return the key of a limit."""
    return blake2b("\0".join((kind, *parts)).encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


class LimitStore:
    """The shared limits of a database."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._has_clock = not database.path

    def settle(self, changes: Sequence[Change]) -> list[Granted]:
        """Make changes, one for each key, in one transaction. Raises StorageError."""
        found: dict[str, Granted] = {}
        with self._database.changing() as connection:
            for change in sorted(changes):
                found[change.key] = self._settled(connection, change)
        return [found[change.key] for change in changes]

    def remove_expired(self) -> None:
        """Remove the rows that count no more. Raises StorageError."""
        with self._database.changing() as connection:
            connection.execute(sa.delete(limits).where(limits.c.expires_at < time() - 60.0))

    def budgets(self) -> list[CountedBudget]:
        """Return the budgets of which something has been granted. Raises StorageError."""
        wanted = sa.select(limits.c.key, limits.c.about, limits.c.counts).where(limits.c.about != "")
        with self._database.reading() as connection:
            rows = connection.execute(wanted).all()
        found = []
        for key, about, counts in rows:
            caller, tool, text = json.loads(about)
            found.append(CountedBudget(key, caller, tool, text, _counts(counts)))
        return found

    def set_count(self, key: str, number: int, amount: int) -> None:
        """Count so much of a limit in a stretch. Raises StorageError."""
        with self._database.changing() as connection:
            row = self._row(connection, key)
            if row is not None:
                counts = json.dumps({**row[0], number: amount})
                connection.execute(sa.update(limits).where(limits.c.key == key).values(counts=counts))

    def _settled(self, connection: Connection, change: Change) -> Granted:
        row = self._row(connection, change.key)
        if row is None:
            connection.execute(_INSERT, {"key": change.key, "expires_at": time() + KEPT_SECONDS})
            row = self._row(connection, change.key) or ({}, time())
        before, now = row
        counts, granted = settled(before, now, change)
        if counts != before:
            kept = change.slice_seconds * (change.span + 1) or KEPT_SECONDS
            values = {"counts": json.dumps(counts), "expires_at": now + kept}
            if change.about:
                values["about"] = change.about
            connection.execute(sa.update(limits).where(limits.c.key == change.key).values(values))
        return granted

    def _row(self, connection: Connection, key: str) -> Row | None:
        row = connection.execute(_OF_KEY_AT if self._has_clock else _OF_KEY, {"sought": key}).first()
        if row is None:
            return None
        now = float(row[1]) if self._has_clock else time()
        return _counts(row[0]), now


def _counts(text: str) -> dict[int, int]:
    return {int(number): amount for number, amount in json.loads(text).items()}


def settled(before: dict[int, int], now: float, change: Change) -> tuple[dict[int, int], Granted]:
    """Return the counts after a change at a time, and what is granted."""
    number = int(now // change.slice_seconds) if change.slice_seconds else change.number
    oldest = number - change.span + 1
    counts = {each: amount for each, amount in before.items() if each >= oldest - 1}
    """One more than counts: the clock of another server may be late."""
    if change.back:
        counts[change.back_number] = max(counts.get(change.back_number, 0) - change.back, 0)
    if change.debt:
        counts[number] = counts.get(number, 0) + change.debt
    total = sum(amount for each, amount in counts.items() if each >= oldest)
    left = change.limit - total
    amount = min(change.want, left) if change.want and left >= change.least else 0
    wait = 0.0
    if amount:
        counts[number] = counts.get(number, 0) + amount
    elif change.want and change.slice_seconds:
        wait = _wait(counts, oldest, change.least - left, now, change)
    return {each: count for each, count in counts.items() if count}, Granted(
        amount, number, total + amount, wait
    )


def _wait(counts: dict[int, int], oldest: int, lacking: int, now: float, change: Change) -> float:
    """Return the seconds until the oldest stretches with so much no longer count."""
    last = oldest
    for number in sorted(each for each in counts if each >= oldest):
        last = number
        lacking -= counts[number]
        if lacking <= 0:
            break
    return max((last + change.span) * change.slice_seconds - now, 0.0)

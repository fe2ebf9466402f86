"""Tokens in the guard's database: created, listed, rotated, revoked.

`create` and `rotate` return the text of a token once; it is not stored, and is masked in all later output.
Each change is one transaction, which increments the number of the topic ``tokens``: servers notice it within
half a second (`directory`). Rows are never removed: a list shows who had access, and until when.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from time import time
from typing import Any

from sqlalchemy import Row, insert, or_, select, update
from sqlalchemy.engine import Connection

from fastrpc.callers import SCOPE, token_principal
from fastrpc.errors import FastrpcError, excerpt, suggestion
from fastrpc.guard.callers.token_text import digest_of, new_token
from fastrpc.redaction import hide
from fastrpc.storage.database import Database
from fastrpc.storage.schema import note_change, tokens

LiveToken = tuple[Any, ...]
"""The `LIVE_COLUMNS` of a row."""

TOPIC = "tokens"
LIVE_COLUMNS = ("id", "digest", "family", "owner", "caller_class", "scopes", "expires_at", "rotated_from")
LONGEST_OWNER = 200
LONGEST_SCOPES = 4096
CLASS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}\Z")


class TokenError(FastrpcError):
    """A token that cannot be made, rotated or revoked. The message contains no secret."""


class UnknownToken(TokenError):
    """There is no token with this id."""


@dataclass(frozen=True)
class TokenRecord:
    """A token without its secret. Times are seconds since 1970, None: never."""

    id: str
    family: str
    owner: str
    caller_class: str
    scopes: tuple[str, ...]
    created_at: float
    expires_at: float | None
    revoked_at: float | None = None
    last_used_at: float | None = None
    rotated_from: str | None = None

    @property
    def principal(self) -> str:
        return token_principal(self.owner, self.family)

    def status(self, now: float) -> str:
        """Return ``live``, ``expired`` or ``revoked``."""
        if self.revoked_at is not None:
            return "revoked"
        return "live" if self.expires_at is None or now < self.expires_at else "expired"


class CallerTokens:
    """The tokens of a database. `clock` returns seconds since 1970."""

    def __init__(self, database: Database, clock: Callable[[], float] = time) -> None:
        self._database = database
        self._clock = clock

    def create(
        self,
        owner: str,
        caller_class: str,
        scopes: Iterable[str] = (),
        expires_in: float | None = None,
    ) -> tuple[TokenRecord, str]:
        """Make a token that expires after a number of seconds, None: never. Return its record and its text.

        Raises TokenError for an invalid name, and StorageError.
        """
        owner = _checked_owner(owner)
        scopes = _checked_scopes(scopes)
        if not CLASS.match(caller_class):
            raise TokenError(f"class: expected letters, digits, '.', '_', '-', got {excerpt(caller_class)!r}")
        if expires_in is not None and not 0 < expires_in < 1e11:
            raise TokenError(f"expires: expected a time in the future, got {expires_in:g} seconds")
        now = self._clock()
        token_id, text = new_token()
        record = TokenRecord(
            id=token_id,
            family=token_id,
            owner=owner,
            caller_class=caller_class,
            scopes=scopes,
            created_at=now,
            expires_at=None if expires_in is None else now + expires_in,
        )
        with self._database.changing() as connection:
            _insert(connection, record, text)
        hide(text)
        return record, text

    def list(self) -> list[TokenRecord]:
        """Return all tokens, the oldest first. Raises StorageError."""
        with self._database.reading() as connection:
            rows = connection.execute(select(tokens).order_by(tokens.c.created_at, tokens.c.id))
            return [record_of(row) for row in rows]

    def get(self, token_id: str) -> TokenRecord:
        """Return a token. Raises UnknownToken, and StorageError."""
        with self._database.reading() as connection:
            return _record(connection, token_id)

    def rotate(self, token_id: str, overlap_seconds: float = 0.0) -> tuple[TokenRecord, str]:
        """Make the successor of a token, with the same lifetime; the former token expires after the overlap.
        Return the successor's record and text.

        Raises UnknownToken, TokenError for a token that is not live or has a live successor (revoke that one
        if its text is lost), and StorageError.
        """
        if not 0 <= overlap_seconds < 1e11:
            raise TokenError(f"overlap: expected 0 or more seconds, got {overlap_seconds:g}")
        new_id, text = new_token()
        with self._database.changing() as connection:
            now = self._clock()
            old = _record(connection, token_id, is_locked=True)
            if old.status(now) != "live":
                raise TokenError(f"token {old.id}: it is {old.status(now)}; create another one")
            for row in connection.execute(select(tokens).where(tokens.c.rotated_from == old.id)):
                if record_of(row).status(now) == "live":
                    raise TokenError(f"token {old.id}: it was rotated already, to {row.id}")
            ends = now + overlap_seconds
            if old.expires_at is not None:
                ends = min(ends, old.expires_at)
            record = replace(
                old,
                id=new_id,
                created_at=now,
                expires_at=None if old.expires_at is None else now + (old.expires_at - old.created_at),
                last_used_at=None,
                rotated_from=old.id,
            )
            connection.execute(update(tokens).where(tokens.c.id == old.id).values(expires_at=ends))
            _insert(connection, record, text)
        hide(text)
        return record, text

    def revoke(self, token_id: str) -> TokenRecord:
        """Revoke a token permanently, and return its record. Its successors are not revoked. Raises
        UnknownToken, and StorageError."""
        with self._database.changing() as connection:
            record = _record(connection, token_id, is_locked=True)
            if record.revoked_at is None:
                now = self._clock()
                connection.execute(update(tokens).where(tokens.c.id == token_id).values(revoked_at=now))
                note_change(connection, TOPIC)
            return record_of(connection.execute(select(tokens).where(tokens.c.id == token_id)).one())

    def note_use(self, used: Mapping[str, float]) -> None:
        """Write the times of last use, by id, unless the stored one is later. Raises StorageError."""
        with self._database.changing() as connection:
            for token_id, at in sorted(used.items()):  # in order, so that two processes cannot deadlock
                is_older = or_(tokens.c.last_used_at.is_(None), tokens.c.last_used_at < at)
                statement = update(tokens).where(tokens.c.id == token_id, is_older)
                connection.execute(statement.values(last_used_at=at))


def live_tokens(connection: Connection, now: float) -> list[LiveToken]:
    """Return the columns for a directory of all tokens that are valid at a time, in order of creation."""
    is_valid = or_(tokens.c.expires_at.is_(None), tokens.c.expires_at > now)
    statement = select(*(tokens.c[name] for name in LIVE_COLUMNS)).where(
        tokens.c.revoked_at.is_(None), is_valid
    )
    return [tuple(row) for row in connection.execute(statement.order_by(tokens.c.created_at, tokens.c.id))]


def record_of(row: Row[Any]) -> TokenRecord:
    values = {name: getattr(row, name) for name in TokenRecord.__dataclass_fields__}
    return TokenRecord(**{**values, "scopes": tuple(row.scopes.split())})


def _insert(connection: Connection, record: TokenRecord, text: str) -> None:
    values = {column.name: getattr(record, column.name) for column in tokens.c if column.name != "digest"}
    values["scopes"] = " ".join(record.scopes)
    connection.execute(insert(tokens).values(**values, digest=digest_of(text.encode())))
    note_change(connection, TOPIC)


def _record(connection: Connection, token_id: str, *, is_locked: bool = False) -> TokenRecord:
    """Return the record of a token; `is_locked`: and lock its row against other transactions. Raises
    UnknownToken."""
    statement = select(tokens).where(tokens.c.id == token_id)
    row = connection.execute(statement.with_for_update() if is_locked else statement).one_or_none()
    if row is not None:
        return record_of(row)
    if token_id.startswith("frpc_"):  # never quoted: it may be the whole token
        raise UnknownToken("there is no such token; an id is the 12 characters after 'frpc_'")
    known = [str(found) for found in connection.execute(select(tokens.c.id)).scalars()]
    raise UnknownToken(f"there is no token {excerpt(token_id)!r}{suggestion(token_id, known, 1)}")


def _checked_owner(owner: str) -> str:
    owner = owner.strip()
    if not owner or len(owner) > LONGEST_OWNER or not owner.isprintable() or set(owner) & set(":#"):
        raise TokenError(
            f"owner: expected at most {LONGEST_OWNER} printable characters without ':' and '#', "
            f"got {excerpt(owner)!r}"
        )
    return owner


def _checked_scopes(scopes: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(scopes))
    for scope in found:
        if not SCOPE.match(scope):
            raise TokenError(
                f"scope: expected visible ASCII characters but '\"' and '\\', got {excerpt(scope)!r}"
            )
    if len(" ".join(found)) > LONGEST_SCOPES:
        raise TokenError(f"scopes: expected at most {LONGEST_SCOPES} characters in all")
    return found

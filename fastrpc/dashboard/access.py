"""Who may see and decide: one-time links, the sessions of browsers, and roles.

A link has a random code that is valid once, for `LINK_SECONDS`. A browser that sends the code gets a session:
a cookie with a random token. The database has the SHA-256 of both, so that neither can be read from it, and
any process that uses the database knows the visitor. Forms contain a token that is derived from the session's
(`form_token_of`): another site cannot know it. The text of a form that may be sent only once is stored, too.
"""

from __future__ import annotations

import secrets
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from hmac import compare_digest
from time import time

from sqlalchemy import delete, insert, select

from fastrpc.guard.policy.dashboard_config import ROLES as ROLES
from fastrpc.storage.schema import dashboard_keys
from fastrpc.storage.statements import INSERTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from sqlalchemy.engine import Connection

    from fastrpc.storage.database import Database

VIEWER, APPROVER, ADMINISTRATOR = ROLES
"""What a visitor may do: read, decide approvals, and change who may call what. Each may do what the former
ones may."""

LINK, SESSION, FORM = "link", "session", "form"
LINK_SECONDS = 600.0
SESSION_SECONDS = 12 * 3600.0
LONGEST_KEY = 100
"""Characters of a code or a token that is looked up at all."""


@dataclass(frozen=True)
class Visitor:
    """A person who has signed in, with the token that this person's forms must contain. `until` is the end of
    the session, in seconds since 1970."""

    person: str
    role: str
    form_token: str
    until: float

    def may(self, role: str) -> bool:
        """Whether the visitor has a role, or one above it."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def sent(self, form_token: str) -> bool:
        """Whether a form was made for this session."""
        return compare_digest(form_token.encode(), self.form_token.encode())


class SignInStore:
    """The links and sessions of a database. `clock` returns seconds since 1970. Methods raise
    StorageError."""

    def __init__(self, database: Database, clock: Callable[[], float] = time) -> None:
        self._database = database
        self.clock = clock

    def make_link(self, person: str, role: str) -> str:
        """Return the code of a new link, by which a person signs in once."""
        return self._make(LINK, person, role, LINK_SECONDS)

    def sign_in(self, code: str) -> str | None:
        """Use up a link, and return the token of a new session; None if there is no such link any more."""
        now = self.clock()
        with self._adding(now) as connection:
            of_code = dashboard_keys.c.digest == _digest(code), dashboard_keys.c.kind == LINK
            row = connection.execute(select(dashboard_keys).where(*of_code)).first()
            if row is None or connection.execute(delete(dashboard_keys).where(*of_code)).rowcount != 1:
                return None
            token = secrets.token_urlsafe(32)
            values = _row(SESSION, token, row.person, row.role, now + SESSION_SECONDS)
            connection.execute(insert(dashboard_keys).values(values))
            return token

    def begin(self, person: str, role: str) -> str:
        """Return the token of a new session of a person whom an authorization server has named."""
        return self._make(SESSION, person, role, SESSION_SECONDS)

    def visitor(self, token: str) -> Visitor | None:
        """Return the visitor with a session, None if it has ended or there has never been one."""
        wanted = dashboard_keys.c.digest == _digest(token), dashboard_keys.c.kind == SESSION
        with self._database.reading() as connection:
            row = connection.execute(select(dashboard_keys).where(*wanted)).first()
        if row is None or row.expires_at <= self.clock():
            return None
        return Visitor(row.person, row.role, form_token_of(token), row.expires_at)

    def is_first(self, form: str, person: str) -> bool:
        """Whether a form, named by a random text, is sent for the first time. Of two processes that ask at
        once, one inserts the row."""
        now = self.clock()
        values = _row(FORM, form, person, "", now + SESSION_SECONDS)
        with self._adding(now) as connection:
            new = INSERTS[connection.dialect.name](dashboard_keys).values(values).on_conflict_do_nothing()
            return connection.execute(new, execution_options={"preserve_rowcount": True}).rowcount == 1

    def sign_out(self, token: str) -> None:
        """End a session."""
        with self._database.changing() as connection:
            connection.execute(delete(dashboard_keys).where(dashboard_keys.c.digest == _digest(token)))

    def _make(self, kind: str, person: str, role: str, seconds: float) -> str:
        key, now = secrets.token_urlsafe(32), self.clock()
        with self._adding(now) as connection:
            connection.execute(insert(dashboard_keys).values(_row(kind, key, person, role, now + seconds)))
        return key

    @contextmanager
    def _adding(self, now: float) -> Iterator[Connection]:
        """A transaction that may add a row: what has ended is removed before, so rows do not accumulate."""
        with self._database.changing() as connection:
            connection.execute(delete(dashboard_keys).where(dashboard_keys.c.expires_at <= now))
            yield connection


def form_token_of(token: str) -> str:
    """Return the token that the forms of a session contain. It does not give the session away."""
    return sha256(b"the forms of the session " + token.encode()).hexdigest()


def _row(kind: str, key: str, person: str, role: str, expires_at: float) -> dict[str, object]:
    return {"digest": _digest(key), "kind": kind, "person": person, "role": role, "expires_at": expires_at}


def _digest(key: str) -> bytes:
    return sha256(key[:LONGEST_KEY].encode("utf-8", "surrogatepass")).digest()

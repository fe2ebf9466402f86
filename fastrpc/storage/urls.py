"""Parses the URL of a database, and returns a form of it without secrets.

For a URL with a password, errors, logs and reprs contain only the kind, the user, the host and the name of
the database: a query may contain secrets too (``?password=…``).
"""

from __future__ import annotations

import os
from typing import NamedTuple
from urllib.parse import quote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError

from fastrpc.redaction import MASK, hide
from fastrpc.storage.errors import InvalidUrl
from fastrpc.storage.kinds import GUARD, DatabaseKind

KINDS = "expected sqlite:///PATH or postgresql://USER@HOST/NAME"
POSTGRESQL = ("postgresql", "postgres", "postgresql+psycopg")
SECRET_PARAMETERS = ("password", "sslpassword")
WAITING = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "2",
    "tcp_user_timeout": "10000",
    "application_name": "fastrpc",
}
"""Parameters of libpq, unless the URL sets others: a failed server is detected within seconds."""
TEXT = {"client_encoding": "utf8"}
"""Whatever the encoding of the database, and PGCLIENTENCODING: what it cannot hold is then an error of the
server, not of psycopg, which would read SQL_ASCII as bytes."""


class DatabaseLocation(NamedTuple):
    """Where a database is: `path` of SQLite, else "", and `url` for SQLAlchemy. `shown` has no secrets."""

    url: URL
    path: str
    shown: str
    secrets: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"Place({self.shown})"

    @property
    def shared_name(self) -> str:
        """The location for other processes, of other users and hosts too: a file's with the host's name."""
        if self.path:
            return f"{os.uname().nodename}:{os.path.realpath(self.path)}"
        host = self.url.host or next(iter(_values(self.url.query.get("host"))), "localhost")
        return f"postgresql://{host}:{self.url.port or 5432}/{self.url.database or self.url.username or ''}"

    def cause(self, error: BaseException) -> str:
        """Return the first line of a driver's message, without the secrets of the URL."""
        text = (str(error).strip() or type(error).__name__).splitlines()[0]
        for secret in self.secrets:
            text = text.replace(secret, MASK)
        return text.rstrip(".")


def place_of(url: str, kind: DatabaseKind = GUARD) -> DatabaseLocation:
    """Return the location of a URL, that of the kind's default file for "". Raises InvalidUrl."""
    if not url:
        return _sqlite(kind.default_path)
    try:
        parsed = make_url(url)
        port = parsed.port
    except (ArgumentError, ValueError):  # the message might quote the URL
        raise InvalidUrl(f"{kind.title}: not a URL; {KINDS}") from None
    if parsed.drivername in ("sqlite", "sqlite+pysqlite"):
        if parsed.query or parsed.host or parsed.username or not parsed.database:
            raise InvalidUrl(f"{kind.title}: expected sqlite:///PATH, with nothing else")
        if parsed.database == ":memory:" or parsed.database.startswith("file:"):
            raise InvalidUrl(f"{kind.title}: expected a file, which other processes can open too")
        return _sqlite(os.path.abspath(os.path.expanduser(parsed.database)))
    if parsed.drivername not in POSTGRESQL:
        raise InvalidUrl(f"{kind.title}: {parsed.drivername.partition('+')[0]:.40}: {KINDS}")
    return _postgresql(parsed, port)


def _sqlite(path: str) -> DatabaseLocation:
    return DatabaseLocation(URL.create("sqlite+pysqlite", database=path), path, f"sqlite:///{path}")


def _postgresql(url: URL, port: int | None) -> DatabaseLocation:
    secrets = [value for name in SECRET_PARAMETERS for value in _values(url.query.get(name))]
    if url.password:
        secrets.append(str(url.password))
    secrets = [form for secret in secrets for form in {secret, quote(secret, safe="")} if form]
    for secret in secrets:
        hide(secret)
    where = url.host or next(iter(_values(url.query.get("host"))), "")
    shown = f"postgresql://{f'{url.username}@' if url.username else ''}{where}"
    shown += f"{f':{port}' if port else ''}/{url.database or ''}"
    url = url.set(drivername="postgresql+psycopg")
    added = {name: value for name, value in (WAITING | TEXT).items() if name not in url.query}
    longest_first = tuple(sorted(set(secrets), key=len, reverse=True))
    return DatabaseLocation(url.update_query_dict(added), "", shown, longest_first)


def _values(value: str | tuple[str, ...] | None) -> tuple[str, ...]:
    return () if value is None else (value,) if isinstance(value, str) else tuple(value)

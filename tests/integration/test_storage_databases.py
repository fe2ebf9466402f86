"""The guard's database on both kinds: migrations from each revision, several processes, lost servers."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from alembic.script import ScriptDirectory
from sqlalchemy import inspect, text
from sqlalchemy.engine import Connection
from support.waiting import eventually

from fastrpc.redaction import masked
from fastrpc.storage import CommitUnknown, DatabaseTooNew, DatabaseUnavailable
from fastrpc.storage.database import MIGRATION_LOCK, Database, KeptConnection, revision_in
from fastrpc.storage.kinds import GUARD
from fastrpc.storage.migrations import configuration, migrate
from fastrpc.storage.schema import change_number, metadata, note_change

if TYPE_CHECKING:
    from support.postgres import Cluster

pytest_plugins = ["support.postgres"]

SECONDS = 60.0
SAMPLES = {
    "0001": [
        "INSERT INTO fastrpc_tokens (id, digest, family, owner, caller_class, scopes, created_at) "
        "VALUES ('aaaaaaaaaaaa', {digest}, 'aaaaaaaaaaaa', 'ada', 'operator', 'a b', 1700000000.25)",
        "INSERT INTO fastrpc_tokens (id, digest, family, owner, caller_class, scopes, created_at, expires_at,"
        " revoked_at, last_used_at, rotated_from) VALUES ('bbbbbbbbbbbb', {digest}, 'aaaaaaaaaaaa', 'ada',"
        " 'operator', '', 1700000001, 1800000000, 1750000000, 1740000000, 'aaaaaaaaaaaa')",
        "UPDATE fastrpc_changes SET number = 7 WHERE topic = 'tokens'",
    ],
    "0002": [
        "INSERT INTO fastrpc_approvals (id, state, digest, call_digest, caller, owner, caller_class, server,"
        " kind, name, arguments, rest_digests, schema, policy, risk, rule, reason, approvers, may_edit,"
        " asked_at, expires_at, uses_left) VALUES ('ap_aaaaaaaaaaaa', 'waiting', {digest}, {digest},"
        " 'os:ada', 'ada', 'local', 'shop', 'tool', 'wipe', '{{}}', '{{}}', '{{}}', 'abc', 'high', '', '',"
        " '', 0, 1700000000.5, 1700000300.5, 0)",
    ],
    "0003": [],  # an index
    "0004": ["UPDATE fastrpc_approvals SET extra_params = '{{\"_meta\": {{}}}}'"],
    "0005": ["INSERT INTO fastrpc_limits (key, counts, expires_at) VALUES ('a', '{{}}', 1700000000)"],
    "0006": [
        "INSERT INTO fastrpc_dashboard_keys (digest, kind, person, role, expires_at) "
        "VALUES ({digest}, 'link', 'ada', 'viewer', 1700000000)"
    ],
    "0007": [],  # an index
    "0008": ['UPDATE fastrpc_limits SET about = \'["ada", "", "5 calls/day"]\''],
}
"""What a database of each revision holds, in its own tables: a new revision needs a line here."""


def empty(url: str) -> Database:
    """A database that is not migrated: by hand, since opening one migrates it."""
    database = Database(url)
    with database.changing() as connection:
        for table in reversed(metadata.sorted_tables):
            table.drop(connection)
        connection.execute(text("DROP TABLE fastrpc_schema_version"))
    return database


def fill(connection: Connection, revision: str) -> None:
    literal = f"'\\x{bytes(range(32)).hex()}'" if connection.dialect.name == "postgresql" else "zeroblob(32)"
    for filled in GUARD.revisions[: GUARD.revisions.index(revision) + 1]:
        for statement in SAMPLES[filled]:
            connection.exec_driver_sql(statement.format(digest=literal))


def rows(connection: Connection) -> dict[str, list[dict[str, object]]]:
    found = {}
    for table in metadata.sorted_tables:
        chosen = connection.execute(table.select().order_by(*table.primary_key))
        found[table.name] = [dict(row._mapping) for row in chosen]
    return found


def described(connection: Connection) -> dict[str, list[tuple[str, bool]]]:
    """The columns of the tables that there are, and which may be null."""
    there = inspect(connection)
    return {
        name: [(column["name"], column["nullable"]) for column in there.get_columns(name)]
        for name in sorted(there.get_table_names())
        if name != "fastrpc_schema_version"
    }


def test_the_revisions_are_those_that_there_are_migrations_for() -> None:
    script = ScriptDirectory.from_config(configuration(GUARD))
    assert tuple(reversed([each.revision for each in script.walk_revisions()])) == GUARD.revisions
    assert script.get_heads() == [GUARD.revisions[-1]]
    assert SAMPLES.keys() == set(GUARD.revisions)


@pytest.mark.parametrize("revision", GUARD.revisions)
def test_a_database_of_each_revision_is_brought_up_to_date_with_what_it_holds(
    database_url: str, revision: str
) -> None:
    database = empty(database_url)
    with database.changing() as connection:
        migrate(connection, GUARD, revision)
        fill(connection, revision)
        assert revision_in(connection, GUARD) == revision
    database.close()
    newer = Database(database_url)
    with newer.reading() as connection:
        assert revision_in(connection, GUARD) == GUARD.revisions[-1]
        found = rows(connection)
    newer.close()
    ada, other = found["fastrpc_tokens"]
    assert (ada["id"], ada["owner"], ada["scopes"], ada["created_at"]) == (
        *("aaaaaaaaaaaa", "ada", "a b"),
        1700000000.25,
    )
    assert (other["rotated_from"], other["revoked_at"]) == ("aaaaaaaaaaaa", 1750000000)
    assert {"topic": "tokens", "number": 7} in found["fastrpc_changes"]
    assert {"topic": "approvals", "number": 0} in found["fastrpc_changes"]
    assert [each["asked_at"] for each in found["fastrpc_approvals"]] == (
        [] if revision == "0001" else [1700000000.5]
    )


def test_migrations_make_the_tables_that_are_declared(database_url: str) -> None:
    database = Database(database_url)
    with database.changing() as connection:
        migrated = described(connection)
        for table in reversed(metadata.sorted_tables):
            table.drop(connection)
        metadata.create_all(connection)
        assert described(connection) == migrated
    database.close()


OPEN = """
import sys
from fastrpc.storage import open_database
from fastrpc.storage.schema import note_change
sys.stdin.readline()
database = open_database(sys.argv[1])
with database.changing() as connection:
    note_change(connection, "tokens")
database.close()
"""


@pytest.fixture
def openers(database_url: str) -> Iterator[list[subprocess.Popen[str]]]:
    command = [sys.executable, "-c", OPEN, database_url]
    processes = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)
    ]
    yield processes
    for process in processes:
        process.kill()
        process.communicate()


def test_several_that_open_it_at_once_migrate_it_once(
    database_url: str, openers: list[subprocess.Popen[str]]
) -> None:
    for process in openers:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in openers:
        said = process.communicate(timeout=SECONDS)[1]
        assert process.returncode == 0, said
    database = Database(database_url)
    with database.reading() as connection:
        assert change_number(connection, "tokens") == len(openers)
        assert connection.execute(text("SELECT count(*) FROM fastrpc_schema_version")).scalar() == 1
    database.close()


def test_a_newer_database_is_refused_and_left_as_it_is(database_url: str) -> None:
    database = Database(database_url)
    with database.changing() as connection:
        connection.execute(text("UPDATE fastrpc_schema_version SET version_num = '9999'"))
        connection.execute(text("DROP TABLE fastrpc_changes"))  # a migration would make it
    with pytest.raises(DatabaseTooNew, match="newer fastrpc"):
        Database(database_url)
    with database.reading() as connection:
        assert revision_in(connection, GUARD) == "9999"
        assert sorted(described(connection)) == sorted(metadata.tables.keys() - {"fastrpc_changes"})
    database.close()


def test_a_kept_connection_serves_all_transactions_until_one_fails(database_url: str) -> None:
    database = Database(database_url)
    kept = KeptConnection(database)

    def change(statement: str) -> object:
        with database.changing(kept) as connection:
            connection.execute(text(statement))
            return connection.connection.driver_connection

    add = "UPDATE fastrpc_changes SET number = number + 1 WHERE topic = 'tokens'"
    first = change(add)
    with database.reading() as connection:
        assert change_number(connection, "tokens") == 1
        assert connection.connection.driver_connection is not first
    assert change(add) is first
    with pytest.raises(DatabaseUnavailable):
        change("UPDATE nothing SET number = 1")
    change(add)
    kept.close()
    change(add)
    with database.reading() as connection:
        assert change_number(connection, "tokens") == 4
    kept.close()
    database.close()


# --- PostgreSQL alone ---------------------------------------------------------------------------------


def test_who_finds_somebody_migrating_waits_and_looks_again(postgres: Cluster) -> None:
    """Both openers have seen a database without tables when they come to the lock, which is held here."""
    import psycopg

    name = postgres.new_database()
    waiting = (
        "SELECT count(*) FROM pg_locks JOIN pg_database ON pg_database.oid = pg_locks.database "
        f"WHERE locktype = 'advisory' AND NOT granted AND datname = '{name}'"
    )
    opening = [
        subprocess.Popen(
            [sys.executable, "-c", OPEN, postgres.url(name)],
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for _ in range(2)
    ]
    try:
        with psycopg.connect(
            host=postgres.folder, user="fastrpc", dbname=name, autocommit=True
        ) as connection:
            connection.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
            eventually(lambda: postgres.execute(waiting) == [(2,)], SECONDS)
            assert postgres.execute("SELECT count(*) FROM pg_tables WHERE tablename ~ '^fastrpc'", name) == [
                (0,)
            ]
        for process in opening:
            said = process.communicate(timeout=SECONDS)[1]
            assert process.returncode == 0, said
    finally:
        for process in opening:
            process.kill()
            process.communicate()


def test_a_connection_lost_at_the_commit_is_known_from_one_lost_before(postgres: Cluster) -> None:
    name = postgres.new_database()
    database = Database(postgres.url(name))

    def transaction(statements_later: int, changes: bool) -> None:
        with database.changing() if changes else database.reading() as connection:
            connection.execute(text("SELECT 1"))
            postgres.disconnect(name)
            for _ in range(statements_later):
                connection.execute(text("SELECT 1"))

    with pytest.raises(CommitUnknown):
        transaction(0, True)
    for statements_later, changes in ((1, True), (0, False)):
        with pytest.raises(DatabaseUnavailable) as caught:
            transaction(statements_later, changes)
        assert type(caught.value) is DatabaseUnavailable
    database.close()


def test_a_lost_connection_is_one_error_and_the_next_transaction_has_a_new_one(postgres: Cluster) -> None:
    name = postgres.new_database()
    database = Database(postgres.url(name))
    with database.changing() as connection:
        note_change(connection, "tokens")
    postgres.disconnect(name)
    with pytest.raises(DatabaseUnavailable), database.reading() as connection:
        change_number(connection, "tokens")
    with database.reading() as connection:
        assert change_number(connection, "tokens") == 1
    database.close()


def test_a_listener_that_never_answers_ends_the_opening() -> None:
    pytest.importorskip("psycopg", reason='pip install "psycopg[binary]"')
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(DatabaseUnavailable, match="timeout"):
            Database(f"postgresql://ada@127.0.0.1:{port}/guard?connect_timeout=2")


def test_a_server_that_stops_answering_ends_the_transaction_and_the_next_has_a_new_connection(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = Database(postgres.url(postgres.new_database()))
    with database.reading() as connection:
        backend = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
    os.kill(backend, signal.SIGSTOP)
    try:
        with monkeypatch.context() as short:
            short.setattr("fastrpc.storage.postgresql.STATEMENT_SECONDS", 0.5)
            with (
                pytest.raises(DatabaseUnavailable, match=r"has not answered within 0\.5 s"),
                database.reading() as connection,
            ):
                change_number(connection, "tokens")
        with database.changing() as connection:
            note_change(connection, "tokens")
    finally:
        os.kill(backend, signal.SIGCONT)
    database.close()


def test_a_migration_that_another_one_holds_up_ends(
    postgres: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    name = postgres.new_database()
    monkeypatch.setattr("fastrpc.storage.postgresql.STATEMENT_SECONDS", 0.5)
    with psycopg.connect(host=postgres.folder, user="fastrpc", dbname=name) as connection:
        connection.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
        with pytest.raises(DatabaseUnavailable, match=r"has not answered within 0\.5 s"):
            Database(postgres.url(name))


def test_it_shares_a_database_with_other_programs(postgres: Cluster) -> None:
    name = postgres.new_database()
    postgres.execute("CREATE TABLE alembic_version (version_num text)", name)
    postgres.execute("INSERT INTO alembic_version VALUES ('theirs')", name)
    Database(postgres.url(name)).close()
    assert postgres.execute("SELECT * FROM alembic_version", name) == [("theirs",)]


@pytest.mark.parametrize("wrong", ["wrong-password-77", "short"])
def test_a_password_that_is_wrong_is_in_no_error(
    postgres: Cluster, wrong: str, capfd: pytest.CaptureFixture[str]
) -> None:
    url = f"postgresql://{postgres.password_user}:{wrong}@/postgres?host={postgres.folder}"
    with pytest.raises(DatabaseUnavailable, match="password authentication failed") as caught:
        Database(url)
    chain = [repr(caught.value), str(caught.value), repr(caught.value.__cause__), *capfd.readouterr()]
    assert not [text for text in chain if wrong in text]


def test_a_password_that_is_right_opens_it_and_is_shown_nowhere(postgres: Cluster) -> None:
    from urllib.parse import quote

    name = postgres.new_database()
    password = quote(postgres.password, safe="")
    database = Database(f"postgresql://{postgres.password_user}:{password}@/{name}?host={postgres.folder}")
    assert postgres.password_user in database.shown
    assert postgres.password not in f"{database!r} {database.shown}"
    assert masked(f"{postgres.password} {password}") == "**** ****"
    database.close()

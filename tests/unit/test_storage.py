"""The guard's database on SQLite: whose file it is, how it is opened, what is refused without a change."""

from __future__ import annotations

import os
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import insert, text
from sqlalchemy.exc import IntegrityError

from fastrpc.errors import FastrpcError
from fastrpc.redaction import hidden
from fastrpc.storage import (
    DatabaseDamaged,
    DatabaseTooNew,
    DatabaseUnavailable,
    LibraryMissing,
    StorageError,
    open_database,
)
from fastrpc.storage.database import Database
from fastrpc.storage.errors import InvalidUrl
from fastrpc.storage.schema import change_number, note_change, tokens
from fastrpc.storage.urls import place_of

SECRET = "geheim-4711"
TOKEN = {
    "id": "abcdefghijkl",
    "family": "abcdefghijkl",
    "digest": bytes(range(32)),
    "owner": "ada",
    "caller_class": "default",
    "scopes": "",
    "created_at": 1.5,
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "guard.sqlite3"


def url_of(path: Path) -> str:
    return f"sqlite:///{path}"


def contents(path: Path) -> bytes:
    return path.read_bytes()


# --- where it is --------------------------------------------------------------------------------------


def test_the_file_and_its_folder_are_this_users_alone(path: Path) -> None:
    before = os.umask(0)
    try:
        database = Database(url_of(path))
        with database.changing() as connection:
            connection.execute(insert(tokens).values(TOKEN))
        modes = {name: stat.S_IMODE(os.stat(path.parent / name).st_mode) for name in os.listdir(path.parent)}
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert modes == {f"guard.sqlite3{end}": 0o600 for end in ("", "-wal", "-shm")}
    database.close()


def test_without_a_url_it_is_in_the_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "here"))
    monkeypatch.delenv("FASTRPC_GUARD_DATABASE", raising=False)
    open_database().close()
    assert (tmp_path / "here" / "guard.sqlite3").is_file()


def test_the_setting_names_another_one(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "here"))
    monkeypatch.setenv("FASTRPC_GUARD_DATABASE", url_of(path))
    open_database().close()
    assert path.is_file()
    assert not (tmp_path / "here").exists()


def test_every_connection_waits_keeps_what_is_committed_and_checks_references(path: Path) -> None:
    database = Database(url_of(path))
    with database.changing():
        pass  # which waits otherwise; the next one that reads gets its connection
    with database.reading() as first, database.reading() as second:
        for connection in (first, second):
            pragmas = "journal_mode", "synchronous", "foreign_keys", "busy_timeout"
            found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in pragmas]
            assert found == ["wal", 2, 1, 5000]
    with pytest.raises(IntegrityError), database.changing() as connection:
        connection.execute(insert(tokens).values({**TOKEN, "rotated_from": "nothing"}))
    database.close()


@pytest.mark.skipif(sys.platform == "darwin", reason="macOS has no names that are not UTF-8")
def test_a_state_folder_may_have_any_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / os.fsdecode(b"a?#%41[\xff")
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(folder))
    monkeypatch.delenv("FASTRPC_GUARD_DATABASE", raising=False)
    open_database().close()
    assert [each.name for each in tmp_path.iterdir()] == [folder.name]
    assert (folder / "guard.sqlite3").is_file()


@pytest.mark.parametrize("change", ["file", "folder"])
def test_what_others_may_write_to_is_refused(path: Path, change: str) -> None:
    Database(url_of(path)).close()
    (path if change == "file" else path.parent).chmod(0o666 if change == "file" else 0o777)
    before = contents(path)
    with pytest.raises(DatabaseUnavailable, match="chmod"):
        Database(url_of(path))
    assert contents(path) == before


@pytest.mark.parametrize("kind", ["fifo", "folder"])
def test_what_is_no_regular_file_is_refused_at_once(path: Path, kind: str) -> None:
    path.parent.mkdir(mode=0o700)
    os.mkfifo(path) if kind == "fifo" else path.mkdir()
    with pytest.raises(DatabaseUnavailable, match="not a regular file"):
        Database(url_of(path))


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(DatabaseUnavailable, match="file"):
        Database(url_of(tmp_path / "file" / "guard.sqlite3"))


# --- transactions -------------------------------------------------------------------------------------


def test_a_transaction_is_all_or_nothing(path: Path) -> None:
    database = Database(url_of(path))

    def interrupted() -> None:
        with database.changing() as connection:
            connection.execute(insert(tokens).values(TOKEN))
            note_change(connection, "tokens")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        interrupted()
    with database.reading() as connection:
        assert connection.execute(tokens.select()).all() == []
        assert change_number(connection, "tokens") == 0
    database.close()


def test_a_writer_has_the_lock_from_the_beginning(path: Path) -> None:
    """Two that read first and write then would fail instead of waiting for each other."""
    database = Database(url_of(path))
    other = sqlite3.connect(path, timeout=0.01)
    with database.changing(), pytest.raises(sqlite3.OperationalError, match="locked"):
        other.execute("BEGIN IMMEDIATE")
    with database.reading():
        other.execute("BEGIN IMMEDIATE")
    other.close()
    database.close()


def test_an_unknown_topic_is_an_error(path: Path) -> None:
    database = Database(url_of(path))
    with pytest.raises(LookupError), database.changing() as connection:
        note_change(connection, "nothing")
    database.close()


def test_an_error_holds_no_values_of_the_statement(path: Path) -> None:
    database = Database(url_of(path))
    with pytest.raises(IntegrityError) as caught, database.changing() as connection:
        connection.execute(insert(tokens).values({**TOKEN, "owner": SECRET, "rotated_from": "nothing"}))
    assert SECRET not in str(caught.value)
    database.close()


# --- files that are refused ---------------------------------------------------------------------------


def text_file(path: Path) -> None:
    path.write_bytes(b"this is not a database\n" * 400)


def cut_off(path: Path) -> None:
    Database(url_of(path)).close()
    path.write_bytes(contents(path)[:-4096])


def broken_page(path: Path) -> None:
    """Of a table that opening does not look into."""
    Database(url_of(path)).close()
    connection = sqlite3.connect(path)
    page = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'fastrpc_tokens'").fetchone()[
        0
    ]
    connection.close()
    data = bytearray(contents(path))
    data[4096 * (page - 1) : 4096 * page] = bytes(range(256)) * 16
    path.write_bytes(data)


def of_another_program(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE books (title)")
    connection.commit()
    connection.close()


def of_a_newer_fastrpc(path: Path) -> None:
    Database(url_of(path)).close()
    connection = sqlite3.connect(path)
    connection.execute("UPDATE fastrpc_schema_version SET version_num = '9999'")
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    ("damage", "error"),
    [
        (text_file, DatabaseDamaged),
        (cut_off, DatabaseDamaged),
        (broken_page, DatabaseDamaged),
        (of_another_program, DatabaseDamaged),
        (of_a_newer_fastrpc, DatabaseTooNew),
    ],
)
def test_what_cannot_be_used_is_refused_and_left_as_it_is(
    path: Path, damage: Callable[[Path], None], error: type[StorageError]
) -> None:
    path.parent.mkdir(mode=0o700)
    damage(path)
    path.chmod(0o600)
    before = contents(path)
    with pytest.raises(error) as caught:
        Database(url_of(path))
    assert contents(path) == before
    assert isinstance(caught.value, FastrpcError)
    assert str(path) in str(caught.value)
    assert "not changed" in str(caught.value)


def test_a_newer_database_that_was_not_closed_keeps_its_log_too(path: Path) -> None:
    Database(url_of(path)).close()
    write = (
        "import os, sqlite3, sys; c = sqlite3.connect(sys.argv[1]);"
        "c.execute(\"UPDATE fastrpc_schema_version SET version_num = '9999'\"); c.commit(); os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", write, path], check=True)
    log = path.with_name("guard.sqlite3-wal")
    before = contents(path), contents(log)
    with pytest.raises(DatabaseTooNew):
        Database(url_of(path))
    assert (contents(path), contents(log)) == before


def test_an_empty_file_is_a_database_that_was_begun(path: Path) -> None:
    path.parent.mkdir(mode=0o700)
    path.touch(0o600)
    database = Database(url_of(path))
    with database.reading() as connection:
        assert change_number(connection, "tokens") == 0
    database.close()


def test_a_migration_that_fails_leaves_nothing_behind(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import alembic.op

    with monkeypatch.context() as patch:
        patch.setattr(alembic.op, "bulk_insert", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            Database(url_of(path))
    connection = sqlite3.connect(path)
    assert connection.execute("SELECT name FROM sqlite_master").fetchall() == []
    connection.close()
    Database(url_of(path)).close()


# --- files that are replaced while they are open ------------------------------------------------------


def test_a_file_that_another_one_has_replaced_is_used_no_more(path: Path, tmp_path: Path) -> None:
    """SQLite would go on with the old one, where no one else revokes a token."""
    database = Database(url_of(path))
    Database(url_of(tmp_path / "other.sqlite3")).close()
    os.replace(tmp_path / "other.sqlite3", path)
    before = contents(path)
    for _ in range(2):
        with pytest.raises(DatabaseUnavailable, match="replaced"), database.reading():
            pass
    with pytest.raises(DatabaseUnavailable, match="replaced"), database.changing():
        pass
    database.close()
    assert contents(path) == before


def test_a_file_that_is_gone_is_not_made_anew(path: Path) -> None:
    database = Database(url_of(path))
    path.unlink()
    with pytest.raises(DatabaseUnavailable, match="No such file"), database.changing():
        pass
    assert not path.exists()
    database.close()


# --- URLs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "url",
    [
        f"mysql://user:{SECRET}@host/name",
        f"postgresql://user:{SECRET}@host:port/name",
        f"postgresql+asyncpg://user:{SECRET}@host/name",
        f"{SECRET}",
        f"/var/lib/{SECRET}.sqlite3",
        "sqlite://",
        "sqlite:///:memory:",
        f"sqlite:///file:{SECRET}?uri=true",
        f"sqlite://user:{SECRET}@host/name",
    ],
)
def test_a_url_of_another_kind_is_refused_and_not_quoted(url: str) -> None:
    with pytest.raises(InvalidUrl, match="expected") as caught:
        place_of(url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        (
            f"postgresql://ada:{SECRET}@db.example.com:5433/guard",
            "postgresql://ada@db.example.com:5433/guard",
        ),
        (f"postgres://db/guard?password={SECRET}&sslmode=require", "postgresql://db/guard"),
        (
            f"postgresql+psycopg://ada@/guard?host=/run/pg&sslpassword={SECRET}",
            "postgresql://ada@/run/pg/guard",
        ),
        ("sqlite:////var/lib/guard.sqlite3", "sqlite:////var/lib/guard.sqlite3"),
    ],
)
def test_a_url_is_shown_without_its_secrets(url: str, shown: str) -> None:
    place = place_of(url)
    assert place.shown == shown
    assert repr(place) == f"Place({shown})"
    assert place.cause(ValueError(f"password {SECRET} is wrong\nmore")) == (
        "password **** is wrong" if SECRET in url else f"password {SECRET} is wrong"
    )
    if SECRET in url:
        assert SECRET in hidden


def test_a_password_is_hidden_as_the_url_spells_it_too() -> None:
    place = place_of("postgresql://ada:pass%2Fword%40home@db/guard")
    cause = place.cause(ValueError("pass/word@home or pass%2Fword%40home"))
    assert cause == "**** or ****"


def test_parameters_of_the_url_win_over_those_for_a_lost_server() -> None:
    url = place_of("postgresql://db/guard?connect_timeout=30").url
    assert url.query["connect_timeout"] == "30"
    assert url.query["tcp_user_timeout"] == "10000"


# --- libraries ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "missing", "url", "command"),
    [
        ("storage.kinds.GUARD", "sqlalchemy", "sqlite:///{folder}/x", 'pip install "fastrpc-mcp[guard]"'),
        ("storage.kinds.GUARD", "alembic", "sqlite:///{folder}/x", 'pip install "fastrpc-mcp[guard]"'),
        ("tasks.kind.TASKS", "sqlalchemy", "sqlite:///{folder}/x", 'pip install "fastrpc-mcp[tasks]"'),
        ("storage.kinds.GUARD", "psycopg", "postgresql://db/guard", 'pip install "fastrpc-mcp[postgresql]"'),
    ],
)
def test_a_library_that_is_missing_is_named_with_the_command_that_installs_it(
    tmp_path: Path, kind: str, missing: str, url: str, command: str
) -> None:
    program = f"""
import sys
from importlib import import_module

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Missing())
from fastrpc.storage import LibraryMissing, open_database
module, _, name = {f"fastrpc.{kind}"!r}.rpartition(".")
try:
    open_database({url.format(folder=tmp_path)!r}, getattr(import_module(module), name))
except LibraryMissing as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert command in done.stdout, done.stderr
    assert issubclass(LibraryMissing, StorageError)


@pytest.mark.parametrize(
    "program",
    [
        "import fastrpc.storage",
        "import fastrpc.guard.callers, fastrpc.callers, fastrpc.guard.callers.claims",
        "import fastrpc, fastrpc.server, fastrpc.transports.http.app",
    ],
)
def test_who_opens_no_database_imports_no_library_for_it(program: str) -> None:
    program += "; import sys; print(sorted({'sqlalchemy', 'alembic', 'psycopg', 'sqlite3'} & {*sys.modules}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert done.stdout == "[]\n", done.stderr


def test_a_server_without_a_guard_imports_nothing_of_it(tmp_path: Path) -> None:
    program = (
        "import sys; from fastrpc import Server; app = Server('x'); app.tool(lambda: '', name='a');"
        "app.run(); app.asgi(token='a-token-of-sixteen'); from fastrpc.transports.http import run, workers;"
        "print([name for name in sys.modules if name.startswith(('fastrpc.guard', 'fastrpc.storage'))])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "[]\n", done.stderr


def test_an_open_of_what_is_up_to_date_imports_no_alembic(path: Path) -> None:
    Database(url_of(path)).close()
    program = (
        "import sys; from fastrpc.storage import open_database; open_database(sys.argv[1]);"
        "print('alembic' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, url_of(path)], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "False\n", done.stderr


def test_a_forked_child_opens_its_own_connections(path: Path) -> None:
    database = Database(url_of(path))
    with database.changing() as connection:
        note_change(connection, "tokens")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            with database.changing() as connection:
                note_change(connection, "tokens")
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with database.reading() as connection:
        assert change_number(connection, "tokens") == 2
        assert connection.execute(text("PRAGMA quick_check")).scalar() == "ok"
    database.close()

"""The state on disk: what it keeps, whom it waits for, what it refuses and leaves as it is, and versions."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools import _project
from fastrpc.tools.agent import _instances, _state
from fastrpc.tools.agent._state import file as state_file
from support.state_folder import contents, forget, in_a_process, output_of, own_state, write

from fastrpc import ToolError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield from own_state(tmp_path, monkeypatch)


def written() -> list[str]:
    with _state.reading() as db:
        return [row["path"] for row in db.execute("SELECT path FROM projects ORDER BY id")]


def refusal(block: Any = None) -> str:
    with pytest.raises(ToolError) as caught, block or _state.changing():
        pass
    return str(caught.value)


# --- the project ------------------------------------------------------------------------------------------


def test_the_project_is_the_nearest_folder_upward_with_git(tmp_path: Path, monkeypatch: Any) -> None:
    """State: the project is the nearest folder upward that holds `.git`."""
    inner = tmp_path / "project" / "a" / "b"
    inner.mkdir(parents=True)
    monkeypatch.chdir(inner)
    assert _project.key() == os.path.realpath(tmp_path / "project")
    (tmp_path / "project" / "a" / ".git").write_text("gitdir: elsewhere")  # a worktree
    assert _project.key() == os.path.realpath(tmp_path / "project" / "a")


def test_without_git_the_project_is_the_working_directory_as_a_real_path(
    tmp_path: Path, monkeypatch: Any
) -> None:
    """State: without `.git` the project is the working directory, as a real path."""
    (tmp_path / "plain").mkdir()
    (tmp_path / "link").symlink_to("plain")
    monkeypatch.chdir(tmp_path / "link")
    assert _project.key() == os.path.realpath(tmp_path / "plain")


def test_a_project_whose_name_is_no_utf8_is_kept_too(tmp_path: Path, monkeypatch: Any) -> None:
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)
    monkeypatch.chdir(os.fsdecode(folder))
    write(_project.key())
    assert written()[0].endswith("/caf\\xe9")


def test_a_working_directory_that_is_gone_is_a_sentence(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(ToolError, match="working directory of the server does not exist any more"):
        _project.key()


# --- changes ----------------------------------------------------------------------------------------------


def test_a_change_is_there_afterwards_and_an_exception_undoes_it() -> None:
    write("one")
    with contextlib.suppress(KeyError), _state.changing() as db:
        db.execute("INSERT INTO projects (path) VALUES ('two')")
        raise KeyError
    assert written() == ["one"]
    write("three")
    assert written() == ["one", "three"]


def test_a_change_that_breaks_a_rule_of_the_schema_is_undone_and_told_as_it_is() -> None:
    write("one")
    with pytest.raises(sqlite3.IntegrityError), _state.changing() as db:
        db.executemany("INSERT INTO projects (path) VALUES (?)", [("two",), ("one",)])
    with pytest.raises(sqlite3.IntegrityError), _state.changing() as db:
        db.execute("INSERT INTO tasks (project, id, name, created_at) VALUES (99, 1, '', 0)")
    assert written() == ["one"]


def test_files_are_for_their_owner_alone(state: Path) -> None:
    """State: it lives in one SQLite database (WAL) under the state directory, and its files are for their
    owner alone.
    """
    before = os.umask(0)
    try:
        write("one")
        _instances.own()
    finally:
        os.umask(before)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    names = {path.name for path in state.iterdir()}
    assert {"state.sqlite3", "state.sqlite3-wal", "state.sqlite3-shm", "instances"} == names
    for name in names - {"instances"}:
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o600
    assert stat.S_IMODE((state / "instances").stat().st_mode) == 0o700


def test_the_log_is_on_disk_before_a_change_is_over() -> None:
    """State: a change is on disk before it is acknowledged: writing is synchronous in full."""
    with _state.changing() as db:
        assert db.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
        assert db.execute("PRAGMA synchronous").fetchone()[0] == 2  # FULL


def test_where_memory_cannot_be_shared_there_is_no_log_and_changes_are_as_safe(
    state: Path, monkeypatch: Any
) -> None:
    monkeypatch.setattr(state_file, "on_network", lambda folder: True)
    write("one")
    with _state.changing() as db:
        assert db.execute("PRAGMA journal_mode").fetchone()[0] == "delete"
        assert db.execute("PRAGMA synchronous").fetchone()[0] == 3  # EXTRA
    together(4, 3)
    assert len(written()) == 13
    assert [path.name for path in state.iterdir()] == ["state.sqlite3"]


def test_the_file_system_is_that_of_the_innermost_mount() -> None:
    table = (
        b"22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        b"40 22 0:40 / /home rw - nfs4 server:/home rw\n"
        b"41 40 0:41 / /home/me/my\\040disk rw shared:2 master:1 - fuse.sshfs far:/ rw\n"
        b"42 22 0:42 / /mnt rw - ext4 /dev/sdb rw\n"
        b"43 42 0:43 / /mnt rw - cifs //far/share rw\n"
    )
    for folder, kind in {
        b"/": "ext4",
        b"/var/state": "ext4",
        b"/homely": "ext4",
        b"/home/me": "nfs4",
        b"/home/me/my disk/state": "fuse.sshfs",
        b"/mnt": "cifs",
    }.items():
        assert state_file.file_system_of(folder, table) == kind


def test_importing_the_tool_does_not_import_sqlite() -> None:
    """State: sqlite3 is imported by the first call that needs it."""
    code = (
        "import sys, fastrpc.tools.agent.task_manager\n"
        "print([name for name in ('sqlite3', 'threading', 'json', 'unicodedata') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout.strip() == "[]", done.stderr


def test_a_state_path_with_signs_that_mean_something_in_an_address(tmp_path: Path, monkeypatch: Any) -> None:
    folder = tmp_path / "50% of #1? حالة"
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(folder))
    write("one")
    assert written() == ["one"]
    assert (folder / "state.sqlite3").exists()


# --- others -----------------------------------------------------------------------------------------------


def together(threads: int, each: int) -> None:
    failures: list[BaseException] = []

    def work(number: int) -> None:
        try:
            for count in range(each):
                write(f"{number}/{count}")
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
    assert failures == []


def test_many_threads_change_the_state_at_once() -> None:
    together(16, 3)  # the file is made by one of them; each change waits for the disk
    assert len(set(written())) == 48
    assert len(_state._idle) <= _state.KEPT_OPEN


@contextlib.contextmanager
def held_by_another(state: Path) -> Iterator[Callable[[], None]]:
    """Another program has begun a change and takes its time: until what this gives is called."""
    write("before")
    code = "db = _state.changing().__enter__(); say('holds'); sys.stdin.readline()"
    process = in_a_process(code)
    assert process.stdin
    assert process.stdout
    assert process.stdout.readline() == "holds\n"
    try:
        yield process.stdin.close
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_change_waits_for_another_server_and_reading_does_not(state: Path) -> None:
    with held_by_another(state) as let_go:
        assert written() == ["before"]  # it lets go only behind this
        waiting = threading.Thread(target=write, args=("after",))
        waiting.start()
        waiting.join(0.3)
        assert waiting.is_alive()
        assert written() == ["before"]
        let_go()
        waiting.join(20)
    assert written() == ["before", "after"]


def test_waiting_ends_with_a_sentence_that_is_not_sqlites(state: Path) -> None:
    with held_by_another(state):
        began = time.monotonic()
        said = refusal(_state.changing(wait_seconds=0.3))
        assert time.monotonic() - began >= 0.3
    assert "in use by another program" in said
    assert "locked" not in said
    write("after")


def test_a_file_that_is_taken_away_while_a_server_runs_is_made_anew(state: Path) -> None:
    write("one")
    shutil.rmtree(state)
    assert written() == []
    write("two")
    assert "two" in output_of(
        "say([*_state.reading().__enter__().execute('SELECT path FROM projects')][0][0])"
    )


def test_the_last_server_leaves_one_file(state: Path) -> None:
    assert "made" in output_of("with _state.changing() as db: db.execute('DELETE FROM tasks')\nsay('made')")
    assert [path.name for path in state.iterdir()] == ["state.sqlite3"]


# --- what cannot be used ----------------------------------------------------------------------------------


def spoil(path: Path, how: str) -> None:
    """Make something of a sound file of many pages."""
    with _state.changing() as db:
        rows = [(f"{number} " + "x" * 100,) for number in range(400)]
        db.executemany("INSERT INTO projects (path) VALUES (?)", rows)
    _state.close()
    data = path.read_bytes()
    assert len(data) > 10 * 4096
    if how == "text":
        path.write_bytes(b"my notes\n" * 1000)
    elif how == "short text":
        path.write_bytes(b"notes")
    elif how == "a page of zeros":
        path.write_bytes(data[: 4 * 4096] + bytes(4096) + data[5 * 4096 :])
    elif how == "rubbish in the middle":
        path.write_bytes(data[:9000] + os.urandom(20_000) + data[29_000:])
    elif how == "cut":
        path.write_bytes(data[:20_000])
    elif how == "no schema":
        path.write_bytes(data[:100] + bytes(4096 - 100) + data[4096:])
    elif how == "empty beside its log":
        path.write_bytes(b"")
        Path(f"{path}-wal").write_bytes(b"what was written last")
    elif how == "another program's":
        path.unlink()
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TABLE tasks (id)")
            other.commit()
    elif how == "newer":
        with contextlib.closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA user_version = 4711")
    forget()


SPOILT = {
    "text": "damaged",
    "short text": "damaged",
    "a page of zeros": "damaged",
    "rubbish in the middle": "damaged",
    "cut": "damaged",
    "no schema": "damaged",
    "empty beside its log": "damaged",
    "another program's": "database of another program",
    "newer": "newer fastrpc (version 4711",
}


@pytest.mark.parametrize("how", SPOILT)
def test_a_file_that_cannot_be_used_is_named_and_left_as_it_is(state: Path, how: str) -> None:
    """State: a damaged file, another program's or a newer one is refused by name and left as it is."""
    path = state / "state.sqlite3"
    spoil(path, how)
    before = contents(state)
    for block in (_state.changing(), _state.reading(), _state.changing()):
        said = refusal(block)
        assert str(path) in said
        assert SPOILT[how] in said
        assert "was not changed" in said
    assert contents(state) == before


def test_a_file_that_is_damaged_while_its_log_is_there_is_left_as_it_is(state: Path) -> None:
    write("one")
    with _state.changing() as db:
        rows = [(f"{number} " + "x" * 100,) for number in range(400)]
        db.executemany("INSERT INTO projects (path) VALUES (?)", rows)
    _state.close()
    output_of(
        "with _state.changing() as db: db.execute(\"INSERT INTO projects (path) VALUES ('killed')\")\n"
        "os.kill(os.getpid(), 9)"
    )
    path = state / "state.sqlite3"
    data = path.read_bytes()
    path.write_bytes(data[:20_000] + os.urandom(8_000) + data[28_000:])
    forget()
    before = contents(state)
    assert "state.sqlite3-wal" in before
    assert "damaged" in refusal()
    after = contents(state)
    assert {name: after[name] for name in ("state.sqlite3", "state.sqlite3-wal")} == {
        name: before[name] for name in ("state.sqlite3", "state.sqlite3-wal")
    }


def test_a_file_that_is_damaged_under_a_running_server_is_refused(state: Path) -> None:
    write("one")
    _state.close()
    (state / "state.sqlite3").write_bytes(b"my notes\n" * 1000)
    before = contents(state)
    for _ in range(2):
        assert "damaged" in refusal()
    assert contents(state)["state.sqlite3"] == before["state.sqlite3"]


def test_a_server_that_is_overtaken_by_a_newer_one_stops_writing(state: Path) -> None:
    write("one")
    with contextlib.closing(sqlite3.connect(state / "state.sqlite3")) as other:
        other.execute("PRAGMA user_version = 99")
    assert "newer fastrpc (version 99" in refusal()
    assert "newer fastrpc (version 99" in refusal(_state.reading())


def test_a_state_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "file" / "state"))
    assert refusal() == f"The state cannot be stored in {tmp_path}/file/state: Not a directory."
    with pytest.raises(ToolError, match="file/state: Not a directory"):
        _instances.own()
    assert not _instances.exist()


def test_a_full_disk_is_a_sentence_and_the_old_state_is_readable() -> None:
    """State: on a full disk a change is an error in a sentence, and what was there can be read."""
    write("one")
    with _state.reading() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count={pages}")
    with pytest.raises(ToolError) as caught, _state.changing() as db:
        db.execute("INSERT INTO projects (path) VALUES (?)", ("x" * 100_000,))
    assert "disk is full: nothing was changed" in str(caught.value)
    assert written() == ["one"]
    write("two")
    assert written() == ["one", "two"]


def test_where_nothing_can_be_written_the_old_state_is_readable(state: Path) -> None:
    """State: where nothing may be written, what was there can be read."""
    write("one")
    _state.close()
    before = contents(state)
    code = (
        "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))\n"  # not even the log can be made
        "with _state.reading() as db: paths = [row[0] for row in db.execute('SELECT path FROM projects')]\n"
        "try:\n"
        "    with _state.changing() as db: db.execute('DELETE FROM projects')\n"
        "except Exception as error: paths.append(type(error).__name__)\n"
        "sys.stderr.write(str(paths))"
    )
    process = in_a_process(code, stderr=subprocess.PIPE)
    assert process.communicate(timeout=30)[1] == "['one', 'ToolError']"
    assert contents(state)["state.sqlite3"] == before["state.sqlite3"]
    forget()
    write("two")
    assert written() == ["one", "two"]


# --- versions ---------------------------------------------------------------------------------------------

LATER = (
    "CREATE TABLE notes (task INTEGER, text TEXT)",
    "ALTER TABLE tasks ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'",
)


def make_version_1(state: Path) -> None:
    state.mkdir()
    with contextlib.closing(sqlite3.connect(state / "state.sqlite3", isolation_level=None)) as db:
        for statement in _state.MIGRATIONS[0]:
            db.execute(statement)
        db.execute("INSERT INTO projects (path, current_task) VALUES ('/shop', 1)")
        db.execute("INSERT INTO tasks (project, id, name, created_at) VALUES (1, 1, 'Build', 0)")
        db.execute(f"PRAGMA application_id={state_file.APPLICATION}")
        db.execute("PRAGMA user_version=1")


def test_an_older_version_is_brought_forward_with_what_it_holds(state: Path, monkeypatch: Any) -> None:
    """State: an older version of the database is brought forward with all it holds."""
    make_version_1(state)
    monkeypatch.setattr(_state, "MIGRATIONS", [*_state.MIGRATIONS[:1], LATER, ("CREATE TABLE third (x)",)])
    with _state.reading() as db:
        assert tuple(db.execute("SELECT name, colour FROM tasks").fetchone()) == ("Build", "red")
        assert db.execute("SELECT * FROM notes, third").fetchall() == []
        assert db.execute("PRAGMA user_version").fetchone()[0] == 3


def test_a_migration_that_fails_leaves_the_old_version(state: Path, monkeypatch: Any) -> None:
    make_version_1(state)
    monkeypatch.setattr(_state, "MIGRATIONS", [*_state.MIGRATIONS[:1], (*LATER, "CREATE TABLE tasks (x)")])
    assert "tasks already exists" in refusal()
    monkeypatch.undo()
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(state))
    with _state.reading() as db:
        assert db.execute("PRAGMA user_version").fetchone()[0] == 1
        assert db.execute("SELECT name FROM sqlite_master WHERE name = 'notes'").fetchone() is None


def test_servers_that_start_at_once_make_the_file_once(state: Path) -> None:
    code = "sys.stdin.readline()\nwith _state.changing() as db: db.execute('DELETE FROM tasks')\nsay('ok')"
    processes = [in_a_process(code) for _ in range(4)]
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    assert [process.communicate(timeout=30)[0] for process in processes] == ["ok\n"] * 4

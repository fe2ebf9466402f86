"""What is put in the place of the state's files and folders is refused at once, named and left as it is."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.agent import _instances, _output_files, _state
from fastrpc.tools.agent._state import file as state_file
from support.special_files import KINDS, at_most, make
from support.state_folder import forget, own_state, write

from fastrpc import ToolError

BESIDE = ("", "-wal", "-shm", "-journal")
MINE = os.geteuid()


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with at_most(20):
        yield from own_state(tmp_path, monkeypatch)


def refusals() -> set[str]:
    """What both ways in say."""
    said = set()
    for block in (_state.changing(), _state.reading()):
        with pytest.raises(ToolError) as caught, block:
            pass
        said.add(str(caught.value))
    return said


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("beside", BESIDE)
def test_what_is_no_regular_file_in_the_place_of_the_database_is_refused_at_once(
    state: Path, kind: str, beside: str
) -> None:
    write("one")
    forget()
    path = state / f"{_state.FILE}{beside}"
    path.unlink(missing_ok=True)
    make(kind, str(path))
    before = path.lstat()
    (said,) = refusals()
    linked = "a symbolic link" if kind.startswith("link") else KINDS[kind]
    assert said.startswith(f"{path} is {linked}, not a regular file, and was not changed.")
    assert (path.lstat().st_ino, path.lstat().st_mode) == (before.st_ino, before.st_mode)


@pytest.mark.parametrize("kind", KINDS)
def test_what_takes_the_place_of_an_open_database_is_refused_at_once(state: Path, kind: str) -> None:
    write("one")
    os.rename(state / _state.FILE, state / "aside")
    make(kind, str(state / _state.FILE))
    (said,) = refusals()
    assert "not a regular file" in said


def test_a_link_does_not_lead_the_state_elsewhere(state: Path, tmp_path: Path) -> None:
    state.mkdir(mode=0o700)
    (state / _state.FILE).symlink_to(tmp_path / "elsewhere")
    (said,) = refusals()
    assert "is a symbolic link" in said
    assert not (tmp_path / "elsewhere").exists()


def test_a_database_that_is_swapped_while_it_is_opened_is_not_used(state: Path, monkeypatch: Any) -> None:
    write("one")
    forget()
    original = _state._prepare

    def prepare(*rest: Any) -> None:
        original(*rest)
        os.rename(state / _state.FILE, state / "aside")
        (state / _state.FILE).write_bytes(b"")

    monkeypatch.setattr(_state, "_prepare", prepare)
    with pytest.raises(ToolError, match="replaced while it was opened"), _state.changing():
        pass


@pytest.mark.parametrize("target", ["another program's", "an empty file"])
@pytest.mark.parametrize("by", ["link", "rename"])
def test_what_is_put_there_between_the_look_and_the_opening_is_not_written_to(
    state: Path, tmp_path: Path, monkeypatch: Any, target: str, by: str
) -> None:
    write("one")
    forget()
    other = tmp_path / "other"
    if target == "an empty file":
        other.write_bytes(b"")
    else:
        with contextlib.closing(sqlite3.connect(other)) as db:
            db.execute("CREATE TABLE t (x)")
            db.execute("PRAGMA user_version = 1")
    before = other.read_bytes()
    original = state_file.connect

    def connect(place: str, how: str) -> sqlite3.Connection:
        os.rename(place, place + ".aside")
        for ending in ("-wal", "-shm"):
            Path(place + ending).unlink(missing_ok=True)
        if by == "link":
            os.symlink(other, place)
        else:
            os.rename(other, place)
        return original(place, how)

    monkeypatch.setattr(state_file, "connect", connect)
    _state._checked[_state.path()] = _state._identity(_state.path()) or (0, 0)  # it was found sound before
    with pytest.raises(ToolError) as caught, _state.changing():
        pass
    if by == "link":
        assert "is a symbolic link" in str(caught.value)
        assert other.read_bytes() == before
    elif target == "another program's":
        assert "is the database of another program" in str(caught.value)
        assert Path(_state.path()).read_bytes() == before
    else:
        assert "was replaced while it was opened" in str(caught.value)


def test_an_opening_that_waits_for_ever_is_answered_and_the_next_one_is_free(
    state: Path, monkeypatch: Any
) -> None:
    write("one")
    forget()
    monkeypatch.setattr(_state, "LATE_SECONDS", 0.1)
    original, release = state_file.connect, threading.Event()
    closed = threading.Event()

    class Late(sqlite3.Connection):
        def close(self) -> None:
            super().close()
            closed.set()

    def connect(place: str, how: str) -> sqlite3.Connection:
        release.wait(10)
        return sqlite3.connect(place, factory=Late, isolation_level=None, check_same_thread=False)

    with monkeypatch.context() as patch:
        patch.setattr(state_file, "connect", connect)
        with pytest.raises(ToolError, match="does not answer"), _state.changing(wait_seconds=0.1):
            pass
    assert state_file.connect is original
    write("two")
    release.set()
    assert closed.wait(20)  # what came too late is not kept open


def test_a_change_that_waits_for_ever_is_answered(state: Path, monkeypatch: Any) -> None:
    write("one")
    monkeypatch.setattr(_state, "WAIT_SECONDS", 0.1)
    monkeypatch.setattr(_state, "LATE_SECONDS", 0.1)
    release, over = threading.Event(), threading.Event()
    original = _state._committed

    def committed(held: Any, deadline: float) -> Any:
        release.wait(10)
        try:
            return original(held, deadline)
        finally:
            over.set()

    with monkeypatch.context() as patch:
        patch.setattr(_state, "_committed", committed)
        said = pytest.raises(ToolError, match="does not answer; the change may be lost")
        with said, _state.changing(wait_seconds=0.1) as db:
            db.execute("INSERT INTO projects (path) VALUES ('two')")
    release.set()
    assert over.wait(20)
    monkeypatch.undo()
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(state))
    write("three")


@pytest.mark.parametrize("sub", ["", "instances", "output"])
def test_a_folder_that_others_may_write_to_is_refused(state: Path, sub: str) -> None:
    folder = state / sub
    folder.mkdir(mode=0o700, parents=True)
    os.chmod(folder, 0o777)
    said = _refusals_of_folders()
    others = f"{folder}: others may write to it"
    assert all(others in text for text in said[sub])
    assert not list(folder.iterdir())


def test_a_folder_of_another_user_is_refused(state: Path, monkeypatch: Any) -> None:
    state.mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: MINE + 1000)
    if MINE == 0:
        os.chown(state, 4711, -1)
    said = _refusals_of_folders()
    assert all(f"{state}: it belongs to another user" in text for texts in said.values() for text in texts)
    assert not list(state.iterdir())


@pytest.mark.skipif(MINE != 0, reason="makes a link of another user's")
def test_a_link_of_another_users_leads_to_no_folder(state: Path, tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "mine").mkdir(mode=0o700)
    os.chown(tmp_path / "mine", 4711, -1)
    state.symlink_to(tmp_path / "mine")
    os.chown(state, 4712, -1, follow_symlinks=False)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    (said,) = refusals()
    assert f"{state}: it is a link of another user's" in said
    assert not list((tmp_path / "mine").iterdir())


def test_a_link_of_ones_own_may_lead_to_the_state(state: Path, tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o755)
    state.symlink_to(tmp_path / "disk")
    write("one")
    _instances.own()
    assert (tmp_path / "disk" / _state.FILE).exists()


@pytest.mark.parametrize("sub", ["instances", "output"])
def test_a_link_in_the_state_folder_leads_nowhere(state: Path, tmp_path: Path, sub: str) -> None:
    state.mkdir(mode=0o700)
    (tmp_path / "precious").mkdir(mode=0o700)
    (tmp_path / "precious" / "letter.txt").write_text("dear")
    os.utime(tmp_path / "precious" / "letter.txt", (0, 0))
    (state / sub).symlink_to(tmp_path / "precious")
    said = _refusals_of_folders()
    assert all(f"{state / sub}: it is a symbolic link" in text for text in said[sub])
    _output_files.tidy(_output_files.folder(), keep_seconds=0)
    assert [path.name for path in (tmp_path / "precious").iterdir()] == ["letter.txt"]


def _refusals_of_folders() -> dict[str, list[str]]:
    """What is said where each folder is to be used."""
    said: dict[str, list[str]] = {"": [], "instances": [], "output": []}
    for texts, use in ((said[""], lambda: write("x")), (said["instances"], _instances.own)):
        try:
            use()
        except ToolError as error:
            texts.append(str(error))
    try:
        file = _output_files.create("bash")
        file.close()
        os.unlink(file.path)
    except OSError as error:
        said["output"].append(f"{error.filename}: {error.strerror}")
    (Path(_state.path())).unlink(missing_ok=True)
    forget()
    return said


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_lock_file_is_no_server(state: Path, kind: str) -> None:
    _instances.own()
    make(kind, str(state / "instances" / "4711-abc.lock"))
    assert _instances.others() == []
    assert not _instances.exist()
    assert _instances.alive("4711-abc")  # nothing is taken over on account of it


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_no_output_file_stays_and_holds_no_one(state: Path, kind: str, monkeypatch: Any) -> None:
    _output_files.create("bash").close()
    odd = state / "output" / "odd.txt"
    make(kind, str(odd))
    _output_files.tidy(_output_files.folder(), keep_seconds=-1)
    assert [name for name in os.listdir(state / "output") if name.startswith("bash")] == []
    assert os.path.lexists(odd)


def test_an_output_file_that_is_swapped_after_the_look_is_not_opened(state: Path, monkeypatch: Any) -> None:
    file = _output_files.create("bash")
    file.close()
    os.utime(file.path, (0, 0))
    looked = stat.S_ISREG
    os.rename(file.path, file.path + ".aside")
    os.mkfifo(file.path)
    assert looked(os.stat(file.path + ".aside").st_mode)
    _output_files._remove_unused(os.path.basename(file.path), _folder(state))
    assert stat.S_ISFIFO(os.stat(file.path).st_mode)


def _folder(state: Path) -> int:
    return os.open(state / "output", os.O_RDONLY | os.O_DIRECTORY)

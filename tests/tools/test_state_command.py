"""``fastrpc state``: what it shows, what it clears, and what it never touches."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools import _project
from fastrpc.tools.agent import _instances, _state
from fastrpc.tools.agent._state import command as state_command
from support.state_folder import contents, forget, own_state, write

from fastrpc import UsageError


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield from own_state(tmp_path, monkeypatch)


def command(capsys: Any, *arguments: str) -> tuple[int, str]:
    code = state_command.main(list(arguments))
    return code, capsys.readouterr().out


def fill(state: Path) -> Any:
    """Two projects, a dead server with a plan and a callback, a running one, two output files."""
    with _state.changing() as db:
        for project, path in enumerate((_project.key(), "/gone/away"), 1):
            db.execute("INSERT INTO projects VALUES (?, ?, 1)", (project, path))
            db.execute("INSERT INTO tasks VALUES (?, 1, 'Build', 0, NULL)", (project,))
            db.execute("INSERT INTO steps VALUES (?, 1, 1, 'a step', 0, NULL)", (project,))
            db.execute("INSERT INTO steps VALUES (?, 2, 1, 'a step', 0, 5)", (project,))
        db.execute("INSERT INTO plan_mode VALUES (?, '/shop', 'mine', NULL, 0)", (_instances.own(),))
        db.execute("INSERT INTO plan_mode VALUES ('dead', '/shop', 'theirs\x1b[2J', NULL, 0)")
        db.execute(
            "INSERT INTO callbacks (instance, slot, project, message, delay_seconds, fires_left, due_at,"
            " undelivered, fired_at) VALUES ('dead', 3, '/shop', 'look at the oven', 30, -1, 0, 0, 0)"
        )
    (state / "instances" / "dead.lock").touch()
    (state / "output").mkdir()
    (state / "output" / "old.txt").write_bytes(b"12345")
    used = open(state / "output" / "used.txt", "w")
    import fcntl

    fcntl.flock(used, fcntl.LOCK_EX)
    return used


def test_show_lists_what_lies_there(state: Path, capsys: Any) -> None:
    """State: `fastrpc state --show` lists what lies there."""
    with fill(state):
        before = contents(state / "output")
        code, shown = command(capsys)
    assert code == 0
    assert command(capsys, "--show") == (0, shown)
    lines = [" ".join(line.split()) for line in shown.splitlines()]
    assert lines[0] == f"State folder: {state}"
    assert lines[1].startswith("Database: state.sqlite3, ")
    assert lines[1].endswith(" bytes, version 1")
    assert f"{_project.key()}: 1 task, 2 steps, 1 open" in lines
    assert "/gone/away (the folder is gone): 1 task, 2 steps, 1 open" in lines
    assert any("mine" in line and "(running)" in line for line in lines)
    assert any("theirs" in line and "server dead (ended)" in line for line in lines)
    assert "\x1b" not in shown
    assert '[3] "look at the oven" every 30 s, for ever, server dead (ended), /shop' in lines
    assert "Output files: 2, 5 bytes" in lines
    assert "Servers with state: 0 running, 1 ended" in lines
    assert contents(state / "output") == before


def test_show_and_clean_make_nothing(state: Path, capsys: Any) -> None:
    code, shown = command(capsys, "--show")
    assert code == 0
    assert "Database: none yet" in shown
    assert command(capsys, "--clean")[0] == 0
    assert not state.exists()


def test_clean_removes_what_no_one_needs_and_no_tasks(state: Path, capsys: Any) -> None:
    """State: `fastrpc state --clean` removes what is no longer needed, and no tasks."""
    with fill(state):
        code, shown = command(capsys, "--clean")
    assert code == 0
    assert "Removed 1 output file, 5 bytes; 1 in use." in shown
    assert "Removed 1 plan mode and 1 callback of 1 ended server." in shown
    assert [path.name for path in (state / "output").iterdir()] == ["used.txt"]
    assert not (state / "instances" / "dead.lock").exists()
    with _state.reading() as db:
        assert [row["goal"] for row in db.execute("SELECT goal FROM plan_mode")] == ["mine"]
        assert db.execute("SELECT count(*) FROM callbacks").fetchone()[0] == 0
        assert db.execute("SELECT count(*) FROM tasks").fetchone()[0] == 2


@pytest.mark.parametrize(("option", "left", "said"), [("--tasks", 1, "of this"), ("--all", 0, "of all")])
def test_clean_removes_tasks_when_asked(state: Path, capsys: Any, option: str, left: int, said: str) -> None:
    with fill(state):
        code, shown = command(capsys, "--clean", option)
    assert code == 0
    assert f"Removed {2 - left} task" in shown
    assert said in shown
    with _state.reading() as db:
        for table in ("projects", "tasks"):
            assert db.execute(f"SELECT count(*) FROM {table}").fetchone()[0] == left
        assert db.execute("SELECT count(*) FROM steps").fetchone()[0] == 2 * left


def test_a_damaged_database_is_reported_and_never_cleaned(state: Path, capsys: Any) -> None:
    write("/shop")
    forget()
    (state / "state.sqlite3").write_bytes(b"my notes\n" * 1000)
    before = contents(state)
    for arguments in (("--show",), ("--clean", "--all")):
        code, shown = command(capsys, *arguments)
        assert code == 1
        assert "state.sqlite3 is damaged" in shown
    assert contents(state) == before


@pytest.mark.parametrize("arguments", [["--tasks"], ["--show", "--clean"], ["--wipe"], ["x"]])
def test_wrong_options_are_the_users_mistake(arguments: list[str]) -> None:
    with pytest.raises(UsageError):
        state_command.main(arguments)


def test_the_command_line_has_the_command(state: Path) -> None:
    run = [sys.executable, "-m", "fastrpc", "state", "--show"]
    done = subprocess.run(run, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0, done.stderr
    assert f"State folder: {state}" in done.stdout

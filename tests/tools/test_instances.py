"""The servers of one state folder: who lives, who is dead, and who takes over what a dead one has left."""

from __future__ import annotations

import os
import shutil
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastrpc.tools.agent import _instances, _state
from support.state_folder import in_a_process, output_of, own_state, write


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    yield from own_state(tmp_path, monkeypatch)


def add_row(id: str) -> None:
    with _state.changing() as db:
        db.execute("INSERT INTO plan_mode VALUES (?, '/shop', 'a goal', NULL, 0)", (id,))


def test_a_server_has_one_id_and_its_own_lock(state: Path) -> None:
    """State: each server has an instance id, which the lock on a file of its own holds."""
    id = _instances.own()
    assert _instances.own() == id
    assert [path.name for path in (state / "instances").iterdir()] == [f"{id}.lock"]
    assert stat.S_IMODE((state / "instances" / f"{id}.lock").stat().st_mode) == 0o600
    assert not _instances.exist()
    assert _instances.dead() == []
    assert _instances.alive(id)


def test_a_server_is_dead_as_soon_as_it_is_killed_though_its_children_live() -> None:
    """State: the lock ends with the server, however that ends, though children of it live on."""
    process = in_a_process(
        "child = subprocess.Popen(['sleep', '30'], close_fds=False, stdout=subprocess.DEVNULL)\n"
        "say(_instances.own()); say(child.pid); time.sleep(30)"
    )
    assert process.stdout
    id, child = process.stdout.readline().strip(), int(process.stdout.readline())
    try:
        assert _instances.exist()
        assert _instances.alive(id)
        assert _instances.dead() == []
        process.kill()
        process.wait()
        assert _instances.dead() == [id]
        assert not _instances.alive(id)
        _instances.bury(id)
        _instances.bury(id)
        assert not _instances.exist()
    finally:
        process.communicate()
        os.kill(child, signal.SIGKILL)


def test_two_that_look_at_once_both_see_that_a_server_is_dead(state: Path) -> None:
    _instances.own()
    gone = state / "instances" / "gone.lock"
    gone.touch()
    process = in_a_process(
        f"import fcntl\nfile = open({str(gone)!r})\nfcntl.flock(file, fcntl.LOCK_SH)\n"
        "say('looks'); sys.stdin.readline()"
    )
    assert process.stdout
    assert process.stdout.readline() == "looks\n"
    assert _instances.dead() == ["gone"]
    process.communicate("\n", timeout=30)


def test_a_server_keeps_its_id_when_somebody_empties_the_folder(state: Path) -> None:
    id = _instances.own()
    shutil.rmtree(state / "instances")
    assert _instances.own() == id
    assert (state / "instances" / f"{id}.lock").exists()


def test_at_its_end_a_server_leaves_its_lock_file_only_with_rows(state: Path) -> None:
    write("one")
    (state / "instances").mkdir()
    (state / "instances" / "killed.lock").touch()
    assert output_of("say(_instances.own())").strip()
    assert list((state / "instances").iterdir()) == []
    code = (
        "with _state.changing() as db: db.execute("
        "\"INSERT INTO plan_mode VALUES (?, '/shop', NULL, NULL, 0)\", (_instances.own(),))\n"
        "say(_instances.own())"
    )
    id = output_of(code).strip()
    assert _instances.dead() == [id]
    with _state.reading() as db:
        assert _instances.left(db, id)
        assert not _instances.left(db, "another")


TAKE_OVER = """
sys.stdin.readline()
with _state.changing() as db:
    taken = 0
    for id in _instances.dead():
        change = "UPDATE plan_mode SET instance = ? || instance WHERE instance = ?"
        taken += db.execute(change, (_instances.own(), id)).rowcount
say(taken)
sys.stdin.readline()
"""


def test_servers_that_start_at_once_take_over_each_row_once(state: Path) -> None:
    """State: a row whose owner is dead is taken over by exactly one of the servers that start at once."""
    (state / "instances").mkdir(parents=True)
    for number in range(20):
        add_row(f"dead-{number}")
        (state / "instances" / f"dead-{number}.lock").touch()
    processes = [in_a_process(TAKE_OVER) for _ in range(3)]
    try:
        for process in processes:
            assert process.stdin
            process.stdin.write("go\n")
            process.stdin.flush()
        taken = [int(process.stdout.readline()) for process in processes if process.stdout]
        assert sum(taken) == 20
        with _state.reading() as db:
            assert db.execute("SELECT count(*) FROM plan_mode WHERE instance LIKE 'dead%'").fetchone()[0] == 0
    finally:
        for process in processes:
            process.communicate("\n", timeout=30)

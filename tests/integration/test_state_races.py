"""Servers use a state folder while other processes swap its files and folders for links, FIFOs and more.

A few seconds of what was tried for longer: no call waits for ever, none fails but in a sentence, and nothing
outside the folder is written, made or removed.
"""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support import special_files

SWAPS = 1200
SECONDS = 120  # for what takes some on a quiet machine
USE = """
import collections, json, os, random, sys
from fastrpc import ToolError
from fastrpc.tools.agent import _instances, _output_files, _state
random.seed(int(sys.argv[1]))

def change():
    with _state.changing(1.0) as db:
        db.execute("INSERT INTO projects (path) VALUES (?)", (os.urandom(8).hex(),))

def read():
    with _state.reading(1.0) as db:
        db.execute("SELECT count(*) FROM projects").fetchone()

def instances():
    _instances.own()
    for id in _instances.others():
        _instances.alive(id)

def output():
    file = _output_files.create("bash")
    file.write(b"x" * 100)
    file.close()
    file.read(0, 10)

def tidy():
    _output_files.tidy(_output_files.folder(), keep_seconds=0)

count = collections.Counter()
while count["done"] <= 10 or not os.path.exists(sys.argv[2]):  # a slow one goes on when nothing is swapped
    use = random.choice([change, change, read, read, instances, output, tidy])
    if random.random() < 0.7:
        _state.close()
    if random.random() < 0.3:
        _state._checked.clear()
    try:
        use()
        count["done"] += 1
    except ToolError:
        count["refused"] += 1
    except OSError as error:
        count["refused" if use is output else repr(error)] += 1
    except Exception as error:
        count[repr(error)] += 1
print(json.dumps(count), flush=True)
os._exit(0)  # what waits for a FIFO is left behind
"""
SWAP = """
import os, random, shutil, stat, sys, time
sys.path.insert(0, sys.argv[1])
from support import special_files
state, outside, number, swaps = sys.argv[2], sys.argv[3], sys.argv[4], int(sys.argv[5])
random.seed(int(number))
names = ["state.sqlite3"] * 4 + ["state.sqlite3-wal"] * 2 + ["state.sqlite3-shm", "state.sqlite3-journal"]
names += ["instances", "output"]
links = ["letter", "empty", "database", "folder", "nowhere"]
kinds = [kind for kind in special_files.KINDS if not kind.startswith("link")]
done = 0
while done < swaps:
    path, aside = os.path.join(state, random.choice(names)), f"{state}-{number}-{done}"
    kind = random.choice([*kinds, *links])
    if kind in links:
        os.symlink(os.path.join(outside, kind), aside + ".new")
    else:
        special_files.make(kind, aside + ".new")
    try:
        os.rename(path, aside)
        os.rename(aside + ".new", path)
        done += 1
        time.sleep(random.choice([0, 0, 0.0001, 0.001, 0.005]))
        os.rename(path, aside + ".new")
        os.rename(aside, path)
    except OSError:
        time.sleep(0.001)
    for left in (aside, aside + ".new"):
        try:
            shutil.rmtree(left) if stat.S_ISDIR(os.lstat(left).st_mode) else os.unlink(left)
        except OSError:
            pass
"""


def outside_of(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.timeout(4 * SECONDS)
def test_what_is_swapped_in_the_state_folder_harms_nothing_outside_and_holds_no_one(tmp_path: Path) -> None:
    outside, state = tmp_path / "outside", tmp_path / "state"
    (outside / "folder").mkdir(parents=True)
    (outside / "letter").write_text("dear " * 100)
    (outside / "empty").write_bytes(b"")
    (outside / "folder" / "old.txt").write_text("old")
    os.utime(outside / "folder" / "old.txt", (0, 0))
    with closing(sqlite3.connect(outside / "database")) as db:
        db.execute("CREATE TABLE t (x)")
        db.execute("PRAGMA user_version = 1")
    state.mkdir(mode=0o700)
    before = outside_of(outside)
    over = tmp_path / "over"
    environment = {**os.environ, "FASTRPC_STATE_DIR": str(state), "HOME": str(tmp_path)}
    users = [
        subprocess.Popen(
            [sys.executable, "-c", USE, str(number), str(over)],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
        )
        for number in range(3)
    ]
    folder = os.path.dirname(os.path.dirname(special_files.__file__))
    swappers = [
        subprocess.Popen(
            [sys.executable, "-c", SWAP, folder, str(state), str(outside), str(number), str(SWAPS // 2)],
            cwd=tmp_path,
        )
        for number in range(2)
    ]
    try:
        for swapper in swappers:
            assert swapper.wait(SECONDS) == 0
        over.write_text("")
        counts: list[dict[str, Any]] = [json.loads(user.communicate(timeout=SECONDS)[0]) for user in users]
    finally:
        for process in (*users, *swappers):
            process.kill()
            process.wait()
    for count in counts:
        assert count["done"] > 10
        assert set(count) <= {"done", "refused"}, count
    assert any(count.get("refused", 0) for count in counts)
    assert outside_of(outside) == before

"""An audit log whose process is killed, or whose disk is full, in real processes: G8.

Whatever a killed process has acknowledged is there, in both modes the chain has no hole, and whoever comes
next goes on beside it. The verifier tells what a crash has cut off from what somebody has removed.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.waiting import eventually

from fastrpc.guard.audit import AuditLog, segments, verify

SECONDS = 60
WRITER = """
import sys
from fastrpc.guard.audit import AuditLog

folder, mode = sys.argv[1:3]
log = AuditLog(folder, mode=mode, checkpoint_records=20, segment_bytes=20_000)
number = 0
log.append_durably({"number": -1}).result()
print(log.status()["chain"], flush=True)
while True:
    futures = []
    for _ in range(7):
        futures.append((number, log.append_durably({"number": number, "text": "x" * (number % 300)})))
        number += 1
    for each, future in futures:
        future.result()
        sys.stdout.write(f"{each}\\n")
    sys.stdout.flush()
"""


def start(code: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, **options)


def lines_of(folder: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The chain and the fields of each whole line, in the order of the chains."""
    for name in segments.names_in(folder):
        for line in Path(folder, name.file).read_bytes().split(b"\n")[:-1]:
            yield name.chain, json.loads(line)


def numbers_of(folder: str) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for chain, line in lines_of(folder):
        found.setdefault(chain, [])
        if "id" in line:
            found[chain].append(line["number"])
    return found


# --- kill -9 ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["strict", "group"])
def test_no_acknowledged_record_is_lost_and_no_chain_has_a_hole_however_often_writers_are_killed(
    tmp_path: Path, mode: str
) -> None:
    """Two writers share the folder, and are killed one after the other at random moments. What is waited for
    is what they say, since a disk that is busy may take a tenth of a second for a record."""
    folder = str(tmp_path)
    chance = random.Random(8)
    acknowledged: dict[str, list[int]] = {}
    for _ in range(10):
        writers = [start(WRITER, folder, mode) for _ in range(2)]
        for writer in writers:
            assert writer.stdout is not None
            chain = writer.stdout.readline().strip()
            said = [writer.stdout.readline() for _ in range(chance.randrange(16))]
            time.sleep(chance.uniform(0, 0.01))
            writer.kill()
            said += writer.stdout.readlines()
            acknowledged[chain] = [int(line) for line in said if line.endswith("\n")]
            writer.stdout.close()
            writer.wait(SECONDS)
    report = verify.verify(folder)
    assert report.faults == []
    written = numbers_of(folder)
    assert written.keys() == acknowledged.keys()
    assert sum(map(len, acknowledged.values())) > 100
    for chain, numbers in written.items():
        assert numbers == list(range(-1, len(numbers) - 1))
        assert set(acknowledged[chain]) <= set(numbers)


def test_a_writer_that_is_killed_in_the_middle_of_a_line_is_distinguished_from_one_that_was_cut(
    tmp_path: Path,
) -> None:
    """A line of which the process wrote a part: the kill comes between two writes of one line."""
    code = """
import os, signal, sys
from fastrpc.guard.audit import AuditLog, segments
real = os.write
log = AuditLog(sys.argv[1])
log.append_durably({"number": 0}).result()
def write(descriptor, data):
    real(descriptor, data[:int(sys.argv[2])])
    os.kill(os.getpid(), signal.SIGKILL)
segments.os.write = write
log.append_durably({"number": 1}).result()
"""
    for size in (1, 30, 90, 150):
        folder = str(tmp_path / str(size))
        writer = start(code, folder, str(size))
        writer.communicate(timeout=SECONDS)
        assert writer.returncode == -signal.SIGKILL
        report = verify.verify(folder)
        assert report.faults == []
        (name,) = segments.names_in(folder)
        assert f"{name.file}:4: cut by a crash: {size} bytes of line 4" in report.notes
        # Whoever comes next leaves it as it is, and knows where it ended.
        before = Path(folder, name.file).read_bytes()
        log = AuditLog(folder)
        log.append({"number": 2})
        log.close()
        assert Path(folder, name.file).read_bytes() == before
        assert verify.verify(folder).faults == []
        Path(folder, name.file).write_bytes(before.split(b"\n")[0] + b"\n")
        assert any("cut: it ends with line 1" in fault for fault in verify.verify(folder).faults)


def test_what_a_running_process_has_not_finished_is_no_fault_and_no_crash(tmp_path: Path) -> None:
    folder = str(tmp_path)
    writer = start(WRITER, folder, "group")
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        for _ in range(5):
            report = verify.verify(folder)
            assert report.faults == []
            assert not [note for note in report.notes if "killed" in note or "crash" in note]
    finally:
        writer.kill()
        writer.communicate()
    assert any("the process was killed" in note for note in verify.verify(folder).notes)


def test_what_comes_at_the_end_of_a_program_is_written(tmp_path: Path) -> None:
    code = """
import sys
from fastrpc.guard.audit import AuditLog
log = AuditLog(sys.argv[1])
for number in range(100): log.append({"number": number})
"""
    writer = start(code, str(tmp_path))
    writer.communicate(timeout=SECONDS)
    assert writer.returncode == 0
    (numbers,) = numbers_of(str(tmp_path)).values()
    assert numbers == list(range(100))
    report = verify.verify(str(tmp_path))
    assert report.faults == []
    assert len(report.notes) == 1  # the public key is the folder's own


def test_processes_share_a_folder_each_with_its_own_chain(tmp_path: Path) -> None:
    code = """
import sys
from fastrpc.guard.audit import AuditLog
log = AuditLog(sys.argv[1], checkpoint_records=10, segment_bytes=10_000)
for number in range(300): log.append({"number": number})
"""
    writers = [start(code, str(tmp_path)) for _ in range(5)]
    for writer in writers:
        writer.communicate(timeout=SECONDS)
    assert [writer.returncode for writer in writers] == [0] * 5
    assert list(numbers_of(str(tmp_path)).values()) == [list(range(300))] * 5
    assert verify.verify(str(tmp_path)).faults == []


# --- a full disk ------------------------------------------------------------------------------------------

FULL = """
import json, resource, sys, time
from fastrpc.guard.audit import AuditLog, AuditUnavailable
folder, mode, limit = sys.argv[1:4]
log = AuditLog(folder, mode=mode, queue_records=200, checkpoint_records=20)
log.append_durably({"number": -1}).result(30)
if int(limit):
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), resource.RLIM_INFINITY))
acknowledged, refused, number = [], 0, 0
while refused < 3:
    try:
        future = log.append_durably({"number": number, "text": "x" * 300})
        acknowledged.append((number, future))
        if mode == "strict": future.result(30)
    except AuditUnavailable:
        refused += 1
    number += 1
    if mode == "group" and log.status()["lost"]:  # the queue is full; the disk is, once that has been tried
        refused = 3 if log.status()["failure"] else 0
        time.sleep(0.001)
print("full", flush=True)
sys.stdin.readline()
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
while log.status()["failure"]: pass
assert log.flush(30)
log.append_durably({"number": 1_000_000}).result(30)
done = [n for n, future in acknowledged if future.exception(30) is None]
print(json.dumps({"done": done, "tried": number, "lost": log.status()["lost"]}), flush=True)
"""


def mounted(place: Path) -> bool:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(place)], capture_output=True, check=False
    )
    return done.returncode == 0


def can_mount() -> bool:
    import tempfile

    if os.geteuid() != 0:
        return False
    with tempfile.TemporaryDirectory() as place:
        try:
            is_there = mounted(Path(place))
        except OSError:
            return False
        if is_there:
            subprocess.run(["umount", place], check=True)
        return is_there


@pytest.fixture(params=["limit", *(["tmpfs"] if can_mount() else [])])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[str, int]]:
    """A folder in which there is little room, and the limit for a file's size; 0 where the disk itself is
    small."""
    if request.param == "limit":
        yield str(tmp_path), 50_000
        return
    assert mounted(tmp_path)
    try:
        yield str(tmp_path), 0
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


@pytest.mark.parametrize("mode", ["strict", "group"])
def test_a_full_disk_leaves_whole_lines_and_a_stated_gap_and_the_log_goes_on(
    small: tuple[str, int], mode: str
) -> None:
    place, limit = small
    folder = os.path.join(place, "audit")
    filler = Path(place, "filler")
    if not limit:
        filler.write_bytes(b"x" * 420_000)
    with start(FULL, folder, mode, str(limit), stdin=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        try:
            assert writer.stdout.readline() == "full\n"
            (name,) = segments.names_in(folder)
            eventually(lambda: Path(folder, name.file).read_bytes().endswith(b"}\n"))
            filler.unlink(missing_ok=True)
            writer.stdin.write("\n")
            writer.stdin.flush()
            result = json.loads(writer.stdout.readline())
            assert writer.wait(SECONDS) == 0
        finally:
            writer.kill()
    (numbers,) = numbers_of(folder).values()
    assert numbers == sorted(set(numbers))
    assert set(result["done"]) <= set(numbers)
    lines = [line for _, line in lines_of(folder)]
    lost = sum(line["lost"] for line in lines if line.get("kind") == "gap")
    assert lost == result["lost"] > 0
    assert len(numbers) + lost == result["tried"] + 2
    assert [line["records"] > 0 for line in lines if line.get("kind") == "delayed"] == [True]
    assert verify.verify(folder).faults == []

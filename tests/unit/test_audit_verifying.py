"""Verifying an audit log takes bounded memory, whatever somebody has written into it."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from fastrpc.guard.audit import AuditLog, segments, verify, writer


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "audit")


def test_a_line_without_an_end_is_named_and_not_read_into_memory(folder: str) -> None:
    log = AuditLog(folder)
    log.append({"number": 0})
    log.close()
    (name,) = segments.names_in(folder)
    with open(Path(folder, name.file), "r+b") as file:
        file.seek(0, os.SEEK_END)
        file.write(b'{"seq":4,"prev":"')
        file.truncate(64 * 1024 * 1024)
    tracemalloc.start()
    (fault,) = verify.verify(folder).faults
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert "is longer than any line of a log" in fault
    assert peak < 8 * 1024 * 1024


def test_a_larger_log_takes_no_more_memory_to_verify(tmp_path: Path) -> None:
    peaks = []
    for count in (1000, 4000):
        folder = str(tmp_path / str(count))
        log = AuditLog(folder)
        for number in range(count):
            log.append({"number": number})
        log.close()
        tracemalloc.start()
        assert verify.verify(folder).faults == []
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] - peaks[0] < 10 * 3000  # bytes; a line is ten times that


def test_faults_and_notes_beyond_a_number_are_counted(
    folder: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verify, "MOST_KEPT", 10)
    monkeypatch.setattr(verify, "MOST_SHOWN", 5)
    log = AuditLog(folder)
    for number in range(60):
        log.append({"number": number})
    log.close()
    (name,) = segments.names_in(folder)
    path = Path(folder, name.file)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([*lines[:40:2], *lines[1:40:2], *lines[40:]]))
    report = verify.verify(folder)
    assert len(report.faults) == 10
    assert report.others >= 15
    verify.show(report)
    assert f"wrong: {5 + report.others} more" in capsys.readouterr().out
    for _ in range(30):
        report.note("here", "there")
    assert len(report.notes) == 11
    assert report.notes[-1] == "there are further notes"


# --- what somebody without the key does to a log, found by the public key alone ---------------------------


def written(folder: Path, key: Path | None = None) -> Path:
    """Write a log of two chains of several segments; return its public key."""
    for chain in range(2):
        log = AuditLog(str(folder), checkpoint_records=20, segment_bytes=4000, key_file=key and str(key))
        for number in range(90):
            log.append({"chain_of": chain, "number": number})
        log.close()
        time.sleep(0.01)
    return next((key.parent if key else folder).glob("*.pub"))


def files_of(folder: Path) -> list[list[Path]]:
    """The segments of each chain, in order."""
    found: dict[str, list[Path]] = {}
    for name in segments.names_in(str(folder)):
        found.setdefault(name.chain, []).append(folder / name.file)
    return [*found.values()]


def chained(lines: list[bytes]) -> list[bytes]:
    """Number lines, and chain each to the one before, from the first one on."""
    first = json.loads(lines[0])["seq"]
    found = lines[:1]
    for number, line in enumerate(lines[1:], first + 1):
        before = hashlib.sha256(found[-1]).hexdigest().encode()
        found.append(
            re.sub(rb'^{"seq":\d+,"prev":"[0-9a-f]{64}"', b'{"seq":%d,"prev":"%b"' % (number, before), line)
        )
    return found


def rewritten(path: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    path.write_bytes(b"".join(line + b"\n" for line in change(path.read_bytes().split(b"\n")[:-1])))


def without_checkpoints(folder: Path) -> None:
    rest = []
    for path in files_of(folder)[-1]:
        rest += [
            (path, line) for line in path.read_bytes().split(b"\n")[:-1] if b'"checkpoint"' not in line[:120]
        ]
    lines = chained([line for _, line in rest])
    for path in files_of(folder)[-1]:
        mine = [line for (place, _), line in zip(rest, lines, strict=True) if place == path]
        path.write_bytes(b"".join(line + b"\n" for line in mine))


def forged_end(folder: Path) -> None:
    path = files_of(folder)[-1][-1]
    rewritten(
        path, lambda lines: chained([*lines, b'{"seq":1,"prev":"%b","id":"x","time":"x"}' % (b"0" * 64)])
    )


MANIPULATIONS: dict[str, Callable[[Path], object]] = {
    "a line is gone": lambda at: rewritten(files_of(at)[0][1], lambda lines: lines[:5] + lines[6:]),
    "and chained": lambda at: rewritten(files_of(at)[0][1], lambda lines: chained(lines[:5] + lines[6:])),
    "swapped": lambda at: rewritten(
        files_of(at)[0][1], lambda lines: [*lines[:3], lines[4], lines[3], *lines[5:]]
    ),
    "the first file is gone": lambda at: files_of(at)[1][0].unlink(),
    "a rotated file is gone": lambda at: files_of(at)[1][2].unlink(),
    "the last file of a chain is gone": lambda at: files_of(at)[0][-1].unlink(),
    "a chain is cut": lambda at: rewritten(files_of(at)[0][-1], lambda lines: lines[:-3]),
    "a chain is gone": lambda at: [path.unlink() for path in files_of(at)[0]],
    "all is gone": lambda at: [path.unlink() for chain in files_of(at) for path in chain],
    "checkpoints are gone": without_checkpoints,
    "a line behind the end": forged_end,
    "a file has another time": lambda at: (path := files_of(at)[0][0]).rename(at / f"2020{path.name[4:]}"),
    "signatures are gone": lambda at: rewritten(
        files_of(at)[0][0],
        lambda lines: chained([re.sub(rb',"signature":"[^"]*"', b"", each) for each in lines]),
    ),
}


@pytest.mark.parametrize("how", MANIPULATIONS)
def test_a_manipulated_log_is_not_verified(tmp_path: Path, how: str) -> None:
    key = tmp_path / "kept.pub"
    key.write_bytes(written(tmp_path / "audit").read_bytes())
    assert verify.verify(str(tmp_path / "audit"), str(key)).faults == []
    MANIPULATIONS[how](tmp_path / "audit")
    assert verify.verify(str(tmp_path / "audit"), str(key)).faults


@pytest.mark.parametrize("same_key", [False, True])
@pytest.mark.parametrize("is_older", [False, True])
def test_two_logs_that_were_joined_are_not_verified(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, same_key: bool, is_older: bool
) -> None:
    own, other = tmp_path / "own", tmp_path / "other"
    key = tmp_path / "keys" / "signing-key.pem"
    key.parent.mkdir()
    for folder in (other, own) if is_older else (own, other):
        written(folder, key if same_key or folder is own else None)
    public = next(key.parent.glob("*.pub"))
    monkeypatch.setattr(verify, "LONGEST_UNSIGNED", 0.005)
    assert verify.verify(str(own), str(public)).faults == []
    for path in files_of(other)[0]:
        shutil.copy(path, own)
    faults = verify.verify(str(own), str(public)).faults
    assert any("two logs were joined" in fault for fault in faults)


def test_a_chain_that_begins_while_another_changes_its_file_knows_it(tmp_path: Path) -> None:
    written(tmp_path / "audit")
    last = files_of(tmp_path / "audit")[-1][-1]
    empty = last.with_name(last.name.replace("-000005.", "-000006."))
    empty.touch(0o600)
    log = AuditLog(str(tmp_path / "audit"))
    log.append({"number": 0})
    log.close()
    (begun,) = files_of(tmp_path / "audit")[-1]
    assert len(json.loads(begun.read_bytes().partition(b"\n")[0])["beside"]) == 2


def test_as_many_chains_are_known_as_the_verifier_expects() -> None:
    assert verify.MOST_BESIDE == writer.MOST_BESIDE

"""Verifying an audit log takes bounded memory, whatever somebody has written into it."""

from __future__ import annotations

import os
import tracemalloc
from pathlib import Path

import pytest

from fastrpc.guard.audit import AuditLog, segments, verify


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
    assert peaks[1] < 1.5 * peaks[0]


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

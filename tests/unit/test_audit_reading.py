"""How a log is read from its end: in pages, over segments and chains, by id, and by what may be skipped."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path

import pytest

from fastrpc.guard.audit import AuditLog, reading, segments
from fastrpc.guard.audit import log as log_module
from fastrpc.guard.audit.reading import Place, RecordFilter

BEGIN = 1_790_000_000_000
Fill = Callable[..., str]


@pytest.fixture
def fill(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Fill:
    """Returns a folder with the records of several processes, one every second, three at the same time."""

    def fill(count: int, processes: int = 2, segment_bytes: int = 10_000) -> str:
        folder = str(tmp_path / "audit")
        now = BEGIN
        monkeypatch.setattr(log_module, "_now", lambda: now)
        logs = [AuditLog(folder, segment_bytes=segment_bytes) for _ in range(processes)]
        for number in range(count):
            now = BEGIN + 1000 * (number - number % 3)
            fields = {"tool": f"t{number}", "outcome": "refused" if number % 50 == 7 else "ok"}
            logs[number % processes].append(fields)
            if number % 20 == 0:
                assert all(log.flush() for log in logs)  # the others have waited for their segment for long
        for log in logs:
            log.close()
        for name in segments.names_in(folder):  # as if they had been written at the time of their records
            path = os.path.join(folder, name.file)
            last = json.loads(segments.last_line(path)[1])["time"].replace("Z", "+00:00")
            os.utime(path, (datetime.fromisoformat(last).timestamp(),) * 2)
        return folder

    return fill


def numbers(found: list[tuple[Place, bytes]]) -> list[int]:
    return [int(json.loads(line)["tool"][1:]) for _, line in found]


def test_pages_have_each_record_once_the_newest_first(fill: Fill) -> None:
    folder = fill(400)
    assert len(segments.names_in(folder)) > 4
    seen, before = [], None
    while True:
        page = reading.page(folder, RecordFilter({"tool": "*"}), 33, before)
        assert len(page.entries) <= 33
        seen += numbers(page.entries)
        if page.next is None:
            break
        before = Place.read(str(page.next))
    assert [number // 3 for number in seen] == sorted((number // 3 for number in range(400)), reverse=True)
    assert sorted(seen) == list(range(400))


def test_a_page_that_was_cut_goes_on_where_it_was_cut(fill: Fill) -> None:
    folder = fill(200)
    seen, before, cuts = [], None, 0
    for _ in range(100):
        page = reading.page(folder, RecordFilter({"outcome": "refused"}), 3, before, most_lines=17)
        seen += numbers(page.entries)
        cuts += page.is_cut
        before = page.next
        if before is None:
            break
    assert sorted(seen) == [7, 57, 107, 157]
    assert cuts > 3


def test_a_page_in_the_past_reads_only_about_its_own_lines(
    fill: Fill, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "BLOCK", 4096)
    folder = fill(2000, processes=1, segment_bytes=10_000_000)
    assert len(segments.names_in(folder)) == 1
    size = os.path.getsize(os.path.join(folder, segments.names_in(folder)[0].file))
    read = 0
    real = os.pread

    def counted(descriptor: int, count: int, at: int) -> bytes:
        nonlocal read
        read += count if count <= reading.BLOCK else 0  # not the probes of the bisection
        return real(descriptor, count, at)

    monkeypatch.setattr(os, "pread", counted)
    until = reading.rfc3339(BEGIN + 300_000)
    page = reading.page(folder, RecordFilter({"tool": "*"}, until=until), 10)
    assert numbers(page.entries) == list(range(299, 289, -1))
    assert read < size / 10


def test_the_time_limits_are_those_of_the_filter(fill: Fill) -> None:
    folder = fill(300)
    since, until = reading.rfc3339(BEGIN + 90_000), reading.rfc3339(BEGIN + 120_000)
    page = reading.page(folder, RecordFilter({"tool": "*"}, since, until), 100)
    assert sorted(numbers(page.entries)) == list(range(90, 120))
    assert (page.next, page.is_cut) == (None, False)


def test_a_record_is_found_by_its_id(fill: Fill) -> None:
    folder = fill(300)
    lines = [line for _, line in reading.entries(folder, RecordFilter({"tool": "*"}))]
    assert len(lines) == 300
    for line in lines[::37]:
        assert reading.record_of(folder, json.loads(line)["id"]) == line
    for unknown in (
        "",
        "audit_",
        "audit_01M8BQNEE9163M5P6X0000016K",
        "audit_ZZZZZZZZZZ",
        "../x",
        "audit_0\x00",
    ):
        assert reading.record_of(folder, unknown) is None


def test_a_line_of_the_log_itself_is_in_one_page_only(tmp_path: Path) -> None:
    folder = str(tmp_path / "audit")
    log = AuditLog(folder)
    for number in range(20):
        log.append({"tool": f"t{number}"})
        if number % 5 == 0:
            log.state_lost(number + 1, "the disk was full")
    log.close()
    kinds, before = [], None
    while True:
        page = reading.page(folder, RecordFilter({}), 1, before)
        kinds += ["lost" in json.loads(line) for _, line in page.entries]
        before = page.next
        if before is None:
            break
    everything = list(reading.entries(folder, RecordFilter({})))
    assert len(kinds) == len(everything)
    assert sum(kinds) == sum(b'"kind":"gap"' in line for _, line in everything) > 0


@pytest.mark.parametrize("text", ["x", "2026-13-01", "1y", "-1h", "9" * 30, "2026-01-01T00:00:00+99:00"])
def test_a_time_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected RFC 3339"):
        reading.time_of(text)


def test_a_place_is_read_as_it_is_written() -> None:
    place = Place("2026-04-22T10:15:23.847Z", "01M8BQNEE9163M5P", 7)
    assert Place.read(str(place)) == place
    for text in ("", "x", str(place)[:-1], f"{place}x", str(place).replace("_", "/")):
        assert Place.read(text) is None


def test_a_copy_of_a_segment_does_not_stop_a_reading(fill: Fill) -> None:
    folder = fill(30, processes=1)
    name = segments.names_in(folder)[0]
    copy = segments.name_of("2026-09-22T00:00:00.000Z", name.chain, name.number + 1)
    Path(folder, copy).write_bytes(Path(folder, name.file).read_bytes())
    assert len(reading.page(folder, RecordFilter({"tool": "*"}), 100).entries) == 60

"""The audit log in one process: what a record becomes, what the modes promise, and what happens when the disk
or the queue is full, in a fork, and when segments are dropped."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import stat
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import orjson
import pytest
from support.waiting import SECONDS, eventually

from fastrpc import redaction
from fastrpc.guard.audit import AuditLog, AuditUnavailable, records, retention, salted_hash, segments, verify


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "audit")


@pytest.fixture
def open_log(folder: str):
    """Make logs that are closed when the test is over, whatever it has found."""
    logs = []

    def make(**options: Any) -> AuditLog:
        logs.append(AuditLog(folder, **options))
        return logs[-1]

    yield make
    for log in logs:
        log.close(0.1)


def lines_of(folder: str) -> list[dict[str, Any]]:
    found = []
    for name in segments.names_in(folder):
        whole = Path(folder, name.file).read_bytes().rpartition(b"\n")[0]
        found += [json.loads(line) for line in whole.splitlines()]
    return found


def records_of(folder: str) -> list[dict[str, Any]]:
    return [line for line in lines_of(folder) if "id" in line]


def kinds_of(folder: str) -> list[str]:
    return [line.get("kind", "record") for line in lines_of(folder)]


def assert_verified(folder: str, notes: int = 1) -> verify.Report:
    """`notes`: one says that the public key is the folder's own."""
    report = verify.verify(folder)
    assert report.faults == []
    assert len(report.notes) == notes, report.notes
    return report


# --- records ----------------------------------------------------------------------------------------------


def test_a_record_is_a_line_with_an_id_and_a_time_before_what_the_caller_gave(folder, open_log) -> None:
    log = open_log()
    given = log.append(
        {"category": "mcp_server", "actor": "ada", "tool": "order", "total_us": 12.5, "ok": True}
    )
    log.close()
    (record,) = records_of(folder)
    assert list(record)[:4] == ["seq", "prev", "id", "time"]
    assert record["id"] == given
    assert re.fullmatch(r"audit_[0-9A-HJKMNP-TV-Z]{26}", given)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", record["time"])
    assert (record["actor"], record["total_us"], record["ok"]) == ("ada", 12.5, True)
    assert_verified(folder)


def test_ids_sort_in_the_order_in_which_they_were_made_also_when_the_clock_is_set_back() -> None:
    ids = records.Ids()
    moments = [5, 5, 6, 2, 6, 7, *[8] * 5000, 1 << 40]
    made = [ids.next(moment) for moment in moments]
    assert made == sorted(made)
    assert len(set(made)) == len(made)


def test_a_time_that_the_caller_gives_is_kept(folder, open_log) -> None:
    log = open_log()
    log.append({"time": "2026-04-22T10:15:23.847Z"})
    log.close()
    assert records_of(folder)[0]["time"] == "2026-04-22T10:15:23.847Z"


@pytest.mark.parametrize("name", ["seq", "prev", "id", "kind", "signature"])
def test_the_names_of_the_log_itself_are_refused(open_log, name: str) -> None:
    with pytest.raises(ValueError, match="are the audit log's own"):
        open_log().append({name: "forged"})


def test_secrets_are_masked_by_their_name_their_place_and_their_value(folder, open_log, monkeypatch) -> None:
    monkeypatch.setenv("SHOP_API_KEY", "e0f1-planted-9a")
    monkeypatch.setattr(redaction, "hidden", redaction.hidden)
    log = open_log()
    log.append({"tool": "told-planted-5c"})
    assert log.flush()
    redaction.hide("told-planted-5c")
    try:
        log.append(
            {
                "password": "plain-planted-1",
                "error": "no route to https://ada:url-planted-2@host/",
                "header": "Authorization: Bearer h3ad-planted-3",
                "detail": {"inner": ["e0f1-planted-9a"], "api_key": "deep-planted-4"},
                "tool": "told-planted-5c",  # seen before it was a secret
                "actor": "ada",
            }
        )
        log.close()
    finally:
        redaction.hidden.pop("told-planted-5c")
    line = json.dumps(records_of(folder)[1])
    assert "planted" not in line
    assert '"actor": "ada"' in line


def test_what_json_does_not_have_is_written_as_text_and_what_is_too_long_is_cut(folder, open_log) -> None:
    class Odd:
        def __str__(self) -> str:
            return "odd"

    class Broken:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    log = open_log()
    log.append({"odd": Odd(), 5: "key", "lone": "\ud800", "large": 2**70, "bytes": b"x"})
    log.append({"long": "x" * 200_000, "actor": "ada"})
    log.append({f"field_{number}": "y" * 900 for number in range(200)})
    log.append({"broken": Broken()})
    log.append({"after": 1})
    log.close()
    odd, long, many, broken, after = records_of(folder)
    assert odd["odd"] == "odd"
    assert odd["5"] == "key"
    assert odd["lone"] == "\\ud800"
    assert odd["large"] == str(2**70)
    assert long["long"] == "x" * 1000 + "…"
    assert long["actor"] == "ada"
    assert "bytes" in many["unwritable"]
    assert "no text" in broken["unwritable"]
    assert after["after"] == 1
    assert_verified(folder)


def test_hashes_of_equal_arguments_differ_and_whoever_has_them_can_show_it() -> None:
    one, other = salted_hash(b"yes"), salted_hash(b"yes")
    assert one["salt"] != other["salt"]
    assert one["sha256"] != other["sha256"]
    assert hashlib.sha256(bytes.fromhex(one["salt"]) + b"yes").hexdigest() == one["sha256"]


# --- files ------------------------------------------------------------------------------------------------


def test_folder_and_files_are_the_users_alone(folder, open_log) -> None:
    os.umask(os.umask(0))  # whatever the umask is
    log = open_log()
    log.append({"a": 1})
    log.close()
    assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    for entry in os.scandir(folder):
        assert stat.S_IMODE(entry.stat().st_mode) == 0o600, entry.name


def test_a_folder_that_others_may_write_to_is_refused(folder) -> None:
    os.mkdir(folder)
    os.chmod(folder, 0o770)
    with pytest.raises(OSError, match="others may write to it"):
        AuditLog(folder)


def test_a_key_that_others_may_read_or_that_is_none_is_refused(folder, tmp_path: Path) -> None:
    AuditLog(folder)
    key = Path(folder, "signing-key.pem")
    os.chmod(key, 0o644)
    with pytest.raises(ValueError, match="others may read it"):
        AuditLog(folder)
    key.write_text("no key")
    os.chmod(key, 0o600)
    with pytest.raises(ValueError):  # noqa: PT011 - the words are cryptography's
        AuditLog(folder)


def test_processes_that_start_at_once_agree_on_one_key(folder) -> None:
    logs: list[AuditLog] = []
    threads = [threading.Thread(target=lambda: logs.append(AuditLog(folder))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({log.status()["key"] for log in logs}) == 1
    assert sorted(os.listdir(folder)) == ["signing-key.pem", "signing-key.pem.pub"]


def test_a_key_may_lie_elsewhere(folder, tmp_path: Path, open_log) -> None:
    log = open_log(key_file=str(tmp_path / "key"))
    log.append({"a": 1})
    log.close()
    assert not [name for name in os.listdir(folder) if "key" in name]
    report = verify.verify(folder, str(tmp_path / "key.pub"))
    assert (report.faults, report.notes) == ([], [])


def test_a_segment_that_is_full_is_closed_and_the_chain_goes_on_in_the_next(folder, open_log) -> None:
    log = open_log(segment_bytes=2000)
    for number in range(40):
        log.append({"number": number})
    log.close()
    names = segments.names_in(folder)
    assert [name.number for name in names] == list(range(1, len(names) + 1))
    assert len(names) > 3
    assert len({name.chain for name in names}) == 1
    assert [record["number"] for record in records_of(folder)] == list(range(40))
    for name in names:
        first, *_, last = Path(folder, name.file).read_bytes().splitlines()
        assert orjson.loads(first)["kind"] == "segment"
        assert orjson.loads(last)["closes"] == ("chain" if name is names[-1] else "segment")
    assert_verified(folder)


def test_checkpoints_come_after_so_many_lines_and_after_so_long(folder, open_log) -> None:
    log = open_log(checkpoint_records=10, checkpoint_seconds=3600)
    for number in range(35):
        log.append({"number": number})
    log.close()
    counts = [line["count"] for line in lines_of(folder) if line.get("kind") == "checkpoint"]
    assert counts == [1, 10, 10, 10, 5]  # the first one signs the segment's own line
    slow = open_log(checkpoint_records=1000, checkpoint_seconds=0.05)
    slow.append({"number": 35})
    eventually(lambda: kinds_of(folder).count("checkpoint") == 7, SECONDS)
    time.sleep(0.2)  # nothing more to be signed
    assert kinds_of(folder).count("checkpoint") == 7


def test_nothing_is_written_before_there_is_a_record(folder, open_log) -> None:
    open_log().close()
    assert segments.names_in(folder) == []


def test_a_record_after_the_end_begins_another_chain_that_knows_the_first(folder, open_log) -> None:
    log = open_log()
    log.append({"number": 1})
    log.close()
    log.append({"number": 2})
    log.close()
    heads = [line for line in lines_of(folder) if line.get("kind") == "segment"]
    assert len({head["chain"] for head in heads}) == 2
    assert [beside["chain"] for beside in heads[1]["beside"]] == [heads[0]["chain"]]
    assert_verified(folder)


def test_a_segment_that_was_removed_under_its_writer_is_noticed_and_another_one_begins(
    folder, open_log
) -> None:
    log = open_log(checkpoint_records=5)
    log.append({"number": 0})
    assert log.flush()
    os.unlink(os.path.join(folder, segments.names_in(folder)[0].file))
    for number in range(1, 20):
        log.append({"number": number})
    log.close()
    assert [record["number"] for record in records_of(folder)][-5:] == [15, 16, 17, 18, 19]
    assert any("segments 1 to 1 of its chain are missing" in fault for fault in verify.verify(folder).faults)


# --- durability -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["strict", "group"])
def test_what_a_future_says_is_in_the_file(folder, open_log, mode: str) -> None:
    log = open_log(mode=mode)
    for number in range(20):
        identifier = log.append_durably({"number": number}).result(SECONDS)
        assert records_of(folder)[-1]["id"] == identifier


def test_many_who_wait_share_one_fsync(folder, open_log, monkeypatch) -> None:
    synced = []
    release = threading.Event()
    real = segments.OpenSegment.sync

    def slow(segment: segments.OpenSegment) -> None:
        synced.append(segment.size)
        assert release.wait(SECONDS)
        real(segment)

    monkeypatch.setattr(segments.OpenSegment, "sync", slow)
    log = open_log(mode="strict")
    futures = [log.append_durably({"number": 0})]
    eventually(lambda: synced, SECONDS)
    futures += [log.append_durably({"number": number}) for number in range(1, 200)]
    release.set()
    assert len({future.result(SECONDS) for future in futures}) == 200
    assert len(synced) == 2


def test_records_of_many_threads_are_all_there_once(folder, open_log) -> None:
    log = open_log(checkpoint_records=50, segment_bytes=20_000)

    def work(thread: int) -> None:
        for number in range(200):
            log.append({"thread": thread, "number": number})

    threads = [threading.Thread(target=work, args=(thread,)) for thread in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    log.close()
    found = records_of(folder)
    assert [record["id"] for record in found] == sorted(record["id"] for record in found)
    for thread in range(8):
        assert [each["number"] for each in found if each["thread"] == thread] == list(range(200))
    assert_verified(folder)


# --- nothing can be written -------------------------------------------------------------------------------


class Disk:
    """Precedes a segment's writes: takes so many bytes more, then says that there is no room."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        self.refused = 0
        self.fails_to_sync = False
        real_write, real_sync = os.write, segments.OpenSegment.sync

        def write(descriptor: int, data: bytes) -> int:
            if self.left is None or threading.current_thread().name != "fastrpc-audit":
                return real_write(descriptor, data)
            if self.left == 0:
                self.refused += 1
                raise OSError(errno.ENOSPC, "No space left on device")
            taken = real_write(descriptor, data[: self.left])
            self.left -= taken
            return taken

        def sync(segment: segments.OpenSegment) -> None:
            if self.fails_to_sync:
                self.refused += 1
                raise OSError(errno.EIO, "Input/output error")
            real_sync(segment)

        monkeypatch.setattr(segments.os, "write", write)
        monkeypatch.setattr(segments.OpenSegment, "sync", sync)


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def full(log: AuditLog, disk: Disk, left: int = 100) -> None:
    """Write a record, then have the disk be full in the middle of a line, and the log know it."""
    log.append({"number": "before"})
    assert log.flush()
    disk.left = left
    log.append({"number": 0})
    eventually(lambda: disk.refused >= 2, SECONDS)


@pytest.mark.parametrize("left", [0, 1, 100])
def test_a_line_that_the_disk_took_half_is_cut_off_before_anything_else_is_written(
    folder, open_log, disk: Disk, left: int
) -> None:
    log = open_log()
    full(log, disk, left)
    text = Path(folder, segments.names_in(folder)[0].file).read_bytes()
    assert text.endswith(b"}\n")
    disk.left = None
    log.append({"number": 1})
    log.close()
    assert [record["number"] for record in records_of(folder)] == ["before", 0, 1]
    delayed = [line for line in lines_of(folder) if line.get("kind") == "delayed"]
    assert [(line["records"], line["reason"]) for line in delayed] == [(1, "No space left on device")]
    assert_verified(folder, notes=2)


def test_in_group_what_does_not_fit_into_the_queue_is_counted_where_it_is_missing(
    folder, open_log, disk
) -> None:
    log = open_log(queue_records=10)
    full(log, disk)
    for number in range(1, 31):
        log.append({"number": number})
    lost = log.append_durably({"number": 31})
    with pytest.raises(AuditUnavailable):
        lost.result(0)
    disk.left = None
    eventually(lambda: not log.status()["failure"], SECONDS)
    assert log.flush()
    log.append({"number": 32})
    log.close()
    assert [record["number"] for record in records_of(folder)] == ["before", *range(11), 32]
    assert kinds_of(folder)[3:] == ["record", "delayed", *["record"] * 10, "gap", "record", "checkpoint"]
    (gap,) = [line for line in lines_of(folder) if line.get("kind") == "gap"]
    assert (gap["lost"], gap["reason"]) == (21, "No space left on device")
    assert log.status()["lost"] == 21
    assert assert_verified(folder, notes=3).counts["lost"] == 21


@pytest.mark.parametrize("large", ["x" * 20_000, {"values": [["x" * 1000] * 10, "y" * 10_000]}])
def test_what_is_not_on_disk_is_bounded_in_bytes_too(folder, open_log, disk, large: Any) -> None:
    log = open_log(queue_bytes=100_000)
    full(log, disk)
    for number in range(1, 31):
        log.append({"number": number, "large": large})
    waiting = log.status()["waiting"]
    assert 3 <= waiting == 31 - log.status()["lost"] <= 10
    disk.left = None
    assert log.flush()
    for number in range(40, 43):  # what is on disk takes no room any more
        log.append({"number": number, "large": large})
        assert log.flush()
    log.close()
    assert [each["number"] for each in records_of(folder)] == ["before", *range(waiting), 40, 41, 42]
    assert_verified(folder, notes=3)


def test_in_strict_a_full_disk_refuses_calls_tells_who_waits_and_goes_on_when_there_is_room(
    folder, open_log, disk: Disk
) -> None:
    log = open_log(mode="strict")
    log.append_durably({"number": "before"}).result(SECONDS)
    disk.left = 100
    waits = log.append_durably({"number": 0})
    with pytest.raises(AuditUnavailable, match="No space left on device"):
        waits.result(SECONDS)
    with pytest.raises(AuditUnavailable, match="cannot take a record: No space left on device"):
        log.append({"number": 1})
    disk.left = None
    eventually(lambda: not log.status()["failure"], SECONDS)
    log.append_durably({"number": 2}).result(SECONDS)
    log.close()
    assert [record["number"] for record in records_of(folder)] == ["before", 0, 2]
    assert kinds_of(folder)[3:6] == ["record", "delayed", "gap"]
    assert_verified(folder, notes=3)


def test_in_strict_a_full_queue_refuses_calls(folder, open_log, monkeypatch) -> None:
    held = threading.Event()
    real = segments.OpenSegment.sync
    monkeypatch.setattr(segments.OpenSegment, "sync", lambda segment: (held.wait(SECONDS), real(segment))[1])
    log = open_log(mode="strict", queue_records=2)
    first = log.append_durably({"number": 0})
    eventually(lambda: not log._queue, SECONDS)
    others = [log.append_durably({"number": number}) for number in (1, 2)]
    with pytest.raises(AuditUnavailable, match="the queue is full"):
        log.append({"number": 3})
    held.set()
    for future in (first, *others):
        future.result(SECONDS)
    log.close()
    assert [record["number"] for record in records_of(folder)] == [0, 1, 2]
    assert kinds_of(folder).count("gap") == 1


@pytest.mark.parametrize("mode", ["strict", "group"])
def test_what_could_not_be_synchronised_is_written_again_and_is_there_once(
    folder, open_log, disk, mode
) -> None:
    log = open_log(mode=mode)
    log.append({"number": "before"})
    assert log.flush()
    disk.fails_to_sync = True
    future = log.append_durably({"number": 0})
    eventually(lambda: disk.refused >= 2, SECONDS)
    assert future.done() == (mode == "strict")
    disk.fails_to_sync = False
    assert log.flush()
    log.close()
    assert [record["number"] for record in records_of(folder)] == ["before", 0]
    assert_verified(folder, notes=2)


def test_a_log_that_ends_while_the_disk_is_full_says_how_many_are_lost(
    folder, open_log, disk, caplog
) -> None:
    log = open_log()
    full(log, disk)
    log.append({"number": 1})
    log.close(0.1)
    assert any("2 records are lost" in record.message for record in caplog.records)
    assert [record["number"] for record in records_of(folder)] == ["before"]
    report = verify.verify(folder)
    assert report.faults == []
    assert any("the process was killed" in note for note in report.notes)


def test_a_folder_that_is_gone_is_made_again(folder, open_log) -> None:
    import shutil

    log = open_log()
    shutil.rmtree(folder)
    log.append({"number": 0})
    log.close()
    assert [record["number"] for record in records_of(folder)] == [0]


def test_a_fault_of_the_writer_ends_its_chain_and_the_next_one_says_what_is_missing(
    folder, open_log, monkeypatch, caplog
) -> None:
    from fastrpc.guard.audit import log as module
    from fastrpc.guard.audit import writer

    monkeypatch.setattr(module, "RETRY_SECONDS", (0.01, 0.01))
    real = writer.encoded

    def encoded(identifier: str, moment: int, record: dict[str, Any]) -> bytes:
        if record["number"] == 1:
            raise RuntimeError("a fault")
        return real(identifier, moment, record)

    monkeypatch.setattr(writer, "encoded", encoded)
    log = open_log()
    log.append({"number": 0})
    assert log.flush()
    broken = log.append_durably({"number": 1})
    with pytest.raises(AuditUnavailable):
        broken.result(SECONDS)
    log.append_durably({"number": 2}).result(SECONDS)
    log.close()
    assert [record["number"] for record in records_of(folder)] == [0, 2]
    assert "gap" in kinds_of(folder)
    assert any("bug in fastrpc" in record.message for record in caplog.records)
    assert verify.verify(folder).faults == []


def test_a_function_that_fails_after_a_record_stops_nothing(folder, open_log, caplog) -> None:
    log = open_log()

    def then(identifier: str, error: Exception | None) -> None:
        raise RuntimeError("the loop is closed")

    log.append({"number": 0}, then)
    log.append_durably({"number": 1}).result(SECONDS)
    assert any("has failed" in record.message for record in caplog.records)


def test_a_future_that_was_cancelled_stops_nothing(folder, open_log) -> None:
    log = open_log()
    future: Future[str] = log.append_durably({"number": 0})
    future.cancel()
    log.append_durably({"number": 1}).result(SECONDS)
    assert len(records_of(folder)) == 2


# --- forks ------------------------------------------------------------------------------------------------


def in_child(work: Callable[[], object]) -> int:
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_writes_a_chain_of_its_own_and_nothing_of_its_parents(folder, open_log, disk) -> None:
    log = open_log(queue_records=100)
    full(log, disk)  # so that records wait in the parent
    log.append({"number": "waits"})

    def work() -> None:
        disk.left = None
        log.append({"number": "child"})
        log.close()

    assert in_child(work) == 0
    disk.left = None
    log.close()
    chains = {name.chain: [] for name in segments.names_in(folder)}
    for name in segments.names_in(folder):
        lines = [json.loads(line) for line in Path(folder, name.file).read_bytes().splitlines()]
        chains[name.chain] += [line["number"] for line in lines if "id" in line]
    assert sorted(chains.values(), key=len) == [["child"], ["before", 0, "waits"]]
    assert_verified(folder, notes=2)


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_that_lives_on_does_not_keep_its_parents_segment_locked(folder, open_log) -> None:
    log = open_log()
    log.append({"number": 0})
    assert log.flush()
    (name,) = segments.names_in(folder)
    path = os.path.join(folder, name.file)
    read, write = os.pipe()
    begun, begins = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(write)
        os.write(begins, b".")
        os.read(read, 1)
        os._exit(0)
    try:
        os.close(read)
        os.read(begun, 1)
        assert segments.last_line(path)[2]
        log.close()
        assert not segments.last_line(path)[2]
    finally:
        for descriptor in (write, begun, begins):
            os.close(descriptor)
        os.waitpid(pid, 0)


# --- retention --------------------------------------------------------------------------------------------


def filled(folder: str, open_log, **options: Any) -> list[segments.SegmentName]:
    log = open_log(segment_bytes=2000, **options)
    for number in range(40):
        log.append({"number": number})
    log.close()
    return segments.names_in(folder)


def test_the_oldest_segments_are_dropped_when_all_are_too_large_and_leave_their_roots(
    folder, open_log
) -> None:
    names = filled(folder, open_log)
    log = open_log()
    roots = {
        name.number: orjson.loads(Path(folder, name.file).read_bytes().splitlines()[-1])["root"]
        for name in names
    }
    keep = sum(os.stat(os.path.join(folder, name.file)).st_size for name in names[-3:])
    gone = retention.Retention(folder, log._signer, None, keep).apply()
    assert gone == [name.file for name in names[:-3]]
    assert segments.names_in(folder) == names[-3:]
    notes = [json.loads(line) for line in Path(folder, "dropped.jsonl").read_bytes().splitlines()]
    assert [(note["file"], note["root"], note["reason"]) for note in notes] == [
        (name.file, roots[name.number], "keep_bytes") for name in names[:-3]
    ]
    report = verify.verify(folder)
    assert report.faults == []
    assert sum("dropped by retention" in note for note in report.notes) == len(gone)


def test_segments_are_dropped_by_their_age_but_never_one_that_is_written(folder, open_log) -> None:
    names = filled(folder, open_log)
    log = open_log()
    log.append({"number": "now"})
    assert log.flush()
    for name in segments.names_in(folder):
        os.utime(os.path.join(folder, name.file), (0, 0))
    gone = retention.Retention(folder, log._signer, 1.0, None).apply()
    assert gone == [name.file for name in names]
    assert [record["number"] for record in records_of(folder)] == ["now"]
    log.close()
    assert verify.verify(folder).faults == []


def test_a_log_drops_by_itself_when_a_segment_begins(folder, open_log) -> None:
    filled(folder, open_log, keep_bytes=5000)
    log = open_log(keep_bytes=5000)
    log.append({"number": "last"})
    eventually(lambda: os.path.exists(os.path.join(folder, "dropped.jsonl")), SECONDS)
    eventually(lambda: len(segments.names_in(folder)) <= 5, SECONDS)
    log.close()
    eventually(lambda: not [t for t in threading.enumerate() if t.name == "fastrpc-audit-retention"], SECONDS)
    assert verify.verify(folder).faults == []


def test_a_segment_that_is_dropped_without_a_line_about_it_is_missing(folder, open_log) -> None:
    names = filled(folder, open_log)
    log = open_log()
    retention.Retention(folder, log._signer, None, 4000).apply()
    path = Path(folder, "dropped.jsonl")
    first, *others = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(others))
    faults = verify.verify(folder).faults
    assert any("missing" in fault for fault in faults), faults
    path.write_bytes(first.replace(names[0].chain.encode(), b"0" * 16) + b"".join(others))
    assert any(fault.startswith("dropped.jsonl:1: ") for fault in verify.verify(folder).faults)

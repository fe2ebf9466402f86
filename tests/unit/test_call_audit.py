"""What the audit log records of calls behind their answers: many at a time, as JSON that is made in parts."""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from support.guarded import caller_of, policy_of, shop

from fastrpc import redaction
from fastrpc._core.recorder import RecordBatch, Recorder
from fastrpc.guard.audit import AuditLog, verify
from fastrpc.guard.audit import log as log_module
from fastrpc.guard.audit.calls import CallAudit
from fastrpc.guard.audit.segments import OpenSegment
from fastrpc.guard.guard import Guard
from fastrpc.guard.policy.decisions import CallTarget
from fastrpc.telemetry import observers as observers_module
from fastrpc.telemetry.observers import Observers

POLICY = '[expose]\ntools = ["*"]\n[[rules]]\nid = "r"\nwhen = "tool.effect == \'exec\'"\nthen = "allow"\n'


class Audited:
    """A log, and what records calls in it."""

    def __init__(self, folder: Path, **options: Any) -> None:
        self.folder = folder / "audit"
        self.log = AuditLog(str(self.folder), **options)
        self.audit = CallAudit(self.log)
        app = shop()
        self.audit.guard = Guard(policy_of(folder, POLICY, app), caller_of)
        self.audit.guard.install(app)

    def lines(self) -> list[dict[str, Any]]:
        self.log.close()
        text = b"".join(path.read_bytes() for path in sorted(self.folder.glob("2*.jsonl")))
        assert verify.verify(str(self.folder)).faults == []
        return [json.loads(line) for line in text.splitlines()]

    def records(self) -> list[dict[str, Any]]:
        return [line for line in self.lines() if "id" in line]


def call_line(id: str, name: str, meta: str) -> bytes:
    params = f'{{"name":{json.dumps(name)},"arguments":{{"text":"x"}},"_meta":{meta}}}'
    return f'{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{params}}}'.encode()


def made(*ids: str, name: str = "search", outcome: str = "ok", meta: str = "{}") -> RecordBatch:
    recorder = Recorder()
    for id in ids:
        line = call_line(id, name, meta)
        recorder.write("tool", name, id.encode(), "", outcome, 1, 2, 3, 4, 5, line, b'{"a":1}')
    return recorder.take()


def test_a_record_is_the_same_whether_it_is_made_in_parts_or_whole(tmp_path: Path) -> None:
    """Ids that are text, and traces, may hold secrets: such records are made whole."""
    audited = Audited(tmp_path)
    trace = "0af7651916cd43dd8448eb211c80319c"
    meta = f'{{"traceparent":"00-{trace}-b7ad6b7169203331-01"}}'
    audited.audit.take_batch(made("7", "8", '"seven"'))
    audited.audit.take_batch(made("9", meta=meta))
    in_parts, again, text_id, traced = audited.records()
    assert [each["request"] for each in (in_parts, again, text_id, traced)] == [7, 8, '"seven"', 9]
    assert traced.pop("trace") == trace
    alike = set(in_parts) - {"id", "seq", "prev", "time", "request", "arguments", "result"}
    times = {name for name in alike if name.endswith("_us")}
    for other in (again, text_id, traced):
        assert other.keys() == in_parts.keys()
        assert {name: other[name] for name in alike - times} == {
            name: in_parts[name] for name in alike - times
        }
        for name, content in (("arguments", b'{"text":"x"}'), ("result", b'{"a":1}')):
            salt = bytes.fromhex(other[name]["salt"])
            assert other[name]["sha256"] == sha256(salt + content).hexdigest()
            assert other[name]["salt"] != in_parts[name]["salt"]


def test_risk_and_rule_are_recorded_as_soon_as_the_guard_has_decided_about_the_tool(tmp_path: Path) -> None:
    audited = Audited(tmp_path)
    audited.audit.take_batch(made("1", name="wipe", outcome="invalid"))  # before any call was decided
    guard = audited.audit.guard
    assert guard is not None
    entry = guard.entry("")
    decision = guard._decision_for(entry.caller_class, CallTarget("tool", "wipe", "exec"))
    entry.decisions["wipe"] = decision, ()
    audited.audit.take_batch(made("2", name="wipe"))
    before, behind = audited.records()
    assert "risk" not in before
    assert (behind["risk"], behind["rule"]) == ("high", "r")


def test_a_secret_that_is_known_only_later_is_masked_in_what_was_made_before(tmp_path: Path) -> None:
    audited = Audited(tmp_path)
    name = "planted-secret-4711-in-a-name"
    for number in range(3):  # the last one is made of what they have in common
        audited.audit.take_batch(made(str(number), name=name, outcome="unknown"))
    redaction.hide("planted-secret-4711")
    try:
        audited.audit.take_batch(made("3", name=name, outcome="unknown"))
        *_, before, behind = audited.records()
    finally:
        del redaction.hidden["planted-secret-4711"]
    assert before["tool"] == name
    assert "planted-secret-4711" not in json.dumps(behind)
    assert behind["decision"] == "deny"


def test_what_is_too_much_for_the_queue_or_never_came_is_stated(tmp_path: Path) -> None:
    audited = Audited(tmp_path, queue_records=10)
    audited.audit.take_batch(made(*map(str, range(50))))
    audited.audit.missed(7)
    lines = audited.lines()
    kept = sum("id" in line for line in lines)
    gaps = [line for line in lines if line.get("kind") == "gap"]
    assert kept >= 10
    assert kept + sum(line["lost"] for line in gaps) == 57
    assert audited.log.status()["lost"] == 57 - kept


def test_calls_that_wait_for_the_disk_are_bounded_in_bytes_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited = Audited(tmp_path, queue_bytes=50_000)
    goes_on, sync = Event(), OpenSegment.sync
    monkeypatch.setattr(log_module, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setattr(OpenSegment, "sync", lambda segment: (goes_on.wait(30), sync(segment)))
    for _ in range(10):
        audited.audit.take_batch(made(*map(str, range(20))))
    waiting, lost = (audited.log.status()[name] for name in ("waiting", "lost"))
    assert 20 <= waiting <= 100
    assert waiting + lost == 200
    goes_on.set()
    assert len(audited.records()) == waiting


def test_calls_that_come_faster_than_they_are_recorded_wait_and_none_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module, name in (
        (log_module, "PATIENCE_SECONDS"),
        (observers_module, "FULL_SECONDS"),
        (observers_module, "DRAIN_SECONDS"),
    ):
        monkeypatch.setattr(module, name, 60.0)  # however slow the disk is
    audited = Audited(tmp_path, queue_records=300)
    observers = Observers()
    observers.add(audited.audit)
    recorder = observers.recorder_for([observers])
    count = 20_000
    for number in range(count):
        recorder.write(
            *("tool", "search", b"%d" % number, "", "ok", 1, 2, 3, 4, 5),
            *(call_line(str(number), "search", "{}"), b'{"a":1}'),
        )
    observers.drain()
    assert recorder.dropped == 0
    assert [record["request"] for record in audited.records()] == list(range(count))


def test_a_disk_that_hangs_makes_calls_wait_once_and_what_does_not_fit_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    audited = Audited(tmp_path, queue_records=10)
    goes_on, hangs, sync = Event(), Event(), OpenSegment.sync
    monkeypatch.setattr(log_module, "PATIENCE_SECONDS", 0.05)

    def sync_late(segment: OpenSegment) -> None:
        hangs.set()
        assert goes_on.wait(30)
        sync(segment)

    monkeypatch.setattr(OpenSegment, "sync", sync_late)
    audited.audit.take_batch(made("0"))
    assert hangs.wait(30)
    waits: list[float] = []
    pause = log_module.sleep
    monkeypatch.setattr(log_module, "sleep", lambda seconds: (waits.append(seconds), pause(seconds)))
    audited.audit.take_batch(made(*map(str, range(1, 11))))
    assert not waits
    audited.audit.take_batch(made("11"))
    assert waits
    waits.clear()
    audited.audit.take_batch(made("12", "13"))
    assert not waits, "it has waited in vain"
    goes_on.set()
    assert audited.log.flush()
    audited.audit.take_batch(made("14"))
    lines = audited.lines()
    assert [line["request"] for line in lines if "id" in line] == [*range(11), 14]
    assert [line["lost"] for line in lines if line.get("kind") == "gap"] == [3]

"""The fuzzer itself: it finds defects that are planted, cuts them short and repeats them, and nothing else.

A defect is planted in the judge's oracle or in place of the judge, since a core with a defect would have to
be built. The real thing, two minutes under the sanitizers, is `make sanitize`.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import conversations
import fuzz
import judges
import pytest
import variants
from support import twin

from fastrpc import CallRecord

pytestmark = pytest.mark.long

PROGRAM = fuzz.PROGRAM[1]
ABORTING = """
import os

class Judge:
    def judge(self, messages, seed):
        if any(b'"_meta"' in message and b"\\n" in message for message in messages):
            os.abort()
"""
HANGING = "import time\nclass Judge:\n    def judge(self, messages, seed):\n        time.sleep(100)\n"
ABSENT = "class Judge:\n    def __init__(self):\n        raise RuntimeError('no core')\n"


def run(*options: str, judge: str = "", folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the fuzzer; `judge` is the text of a module to judge with."""
    command = [sys.executable, PROGRAM, *options]
    environment = dict(os.environ)
    if judge:
        (folder / "planted.py").write_text(judge)
        environment["PYTHONPATH"] = os.pathsep.join([str(folder), environment.get("PYTHONPATH", "")])
        command.append("--judges=planted")
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100)


def test_a_conversation_is_the_same_for_the_same_seed_and_reaches_what_the_core_remembers() -> None:
    assert conversations.conversation("a", 3) == conversations.conversation("a", 3)
    assert conversations.conversation("a", 3) != conversations.conversation("a", 4)
    kinds, calls, newlines = set(), 0, 0
    for number in range(100):
        for message in conversations.conversation("kinds", number):
            verdict = twin.judge(message)
            kinds.add(verdict.kind)
            calls += verdict.kind == "request" and verdict.method == "tools/call"
            newlines += b"\n" in message
    assert kinds == {"request", "notification", "response", "batch", "ignored", "invalid", "broken"}
    assert calls > 900
    assert newlines > 300


def test_nothing_is_found_where_nothing_is_planted() -> None:
    judge_many(10)


@pytest.mark.parametrize(
    ("name", "planted"),
    [
        ("WHITE_SPACE", b" \t\r"),  # an id would keep a newline
        ("MAX_DEPTH", 127),
        ("ENVELOPE", frozenset({"jsonrpc", "id", "params", "result", "error"})),
        ("MAX_INTEGER_DIGITS", 4299),
    ],
)
def test_a_difference_between_the_core_and_the_twin_is_found(
    monkeypatch: pytest.MonkeyPatch, name: str, planted: object
) -> None:
    monkeypatch.setattr(twin, name, planted)
    judges.verdict_of.cache_clear()
    try:
        with pytest.raises(judges.Mismatch):
            judge_many(150)
    finally:
        judges.verdict_of.cache_clear()


def test_variants_of_the_server_are_reached_in_every_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls wait in compiled code and in Python, are refused and cancelled; each kind of call is recorded."""
    waited, recorded = set(), set()
    settle, take = judges.Visit.settle, variants.Variant.take_records

    async def settled(visit: judges.Visit, data: bytes = b"") -> bytes:
        waited.update(type(call).__name__ for call in visit.connection.in_flight.values())
        return await settle(visit, data)

    def taken(variant: variants.Variant) -> list[CallRecord]:
        records = take(variant)
        recorded.update((record.kind, record.outcome) for record in records)
        return records

    monkeypatch.setattr(judges.Visit, "settle", settled)
    monkeypatch.setattr(variants.Variant, "take_records", taken)
    judge_many(60)
    assert waited == {"PendingCall", "Request"}
    assert {"tool", "resource", "prompt"} <= {kind for kind, _ in recorded}
    assert {"ok", "cancelled", "refused", "invalid", "unknown"} <= {outcome for _, outcome in recorded}


@pytest.mark.parametrize("shape", ["context", "waiting"])
def test_a_variant_that_answers_otherwise_is_found(monkeypatch: pytest.MonkeyPatch, shape: str) -> None:
    variant = variants.Variant(variants.Kind(shape, shape, "none", "none", False))
    variant.app.remove_prompt("greet")
    monkeypatch.setattr(variants, "chosen", lambda chance: variant)
    with pytest.raises(judges.Mismatch, match="the plain server's"):
        judge_many(20)


@pytest.mark.parametrize("planted", [[], [1, 2]])
def test_a_call_without_its_one_record_is_found(
    monkeypatch: pytest.MonkeyPatch, planted: list[object]
) -> None:
    variant = variants.Variant(variants.Kind("waiting", "context", "empty", "allows", True))
    monkeypatch.setattr(variants, "chosen", lambda chance: variant)
    monkeypatch.setattr(variant, "take_records", lambda: planted)
    with pytest.raises(judges.Mismatch, match="not one record"):
        judge_many(10)


def judge_many(count: int) -> None:
    judge = judges.Judge()
    for number in range(count):
        judge.judge(conversations.conversation("planted", number), f"planted.{number}")


def test_a_conversation_that_ends_the_process_is_written_down_and_repeated(tmp_path: Path) -> None:
    options = ["--seconds=60", "--seed=5", "--jobs=2", "--shrink-seconds=2", f"--keep={tmp_path}"]
    found = run(*options, judge=ABORTING, folder=tmp_path)
    assert found.returncode == 1, found
    (path,) = tmp_path.glob("case-5.*.txt")
    assert f"tests/fuzz/fuzz.py --replay {path}" in found.stdout
    assert any(b'"_meta"' in message and b"\n" in message for message in fuzz.read_case(str(path))[1])
    assert run(f"--replay={path}", judge=ABORTING, folder=tmp_path).returncode < 0
    assert run(f"--replay={path}", folder=tmp_path).returncode == 0


def test_a_case_is_cut_short_as_long_as_it_fails() -> None:
    messages = conversations.conversation("short", 1)
    messages[7:7] = [b'{"first": 17}']
    messages.append(b"[second]")

    def still(fewer: list[bytes]) -> bool:
        return any(b"17" in message for message in fewer) and fewer[-1][-4:] == b"ond]"

    assert fuzz.shortened(messages, still, time.monotonic() + 60) == [b"17", b"ond]"]
    assert fuzz.shortened(messages, still, time.monotonic()) == messages


def test_a_conversation_that_does_not_end_is_found(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hanging.py").write_text(HANGING)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setattr(fuzz, "HANG_SECONDS", 2.0)
    options = ["--seconds=60", "--seed=5", "--jobs=1", "--shrink-seconds=0", f"--keep={tmp_path}"]
    monkeypatch.setattr(sys, "argv", [PROGRAM, *options, "--judges=hanging"])
    assert fuzz.main() == 1
    assert "no end after 2 s" in capsys.readouterr().out


def test_a_fuzzer_that_cannot_work_says_so(tmp_path: Path) -> None:
    ended = run("--seconds=5", "--jobs=1", judge=ABSENT, folder=tmp_path)
    assert ended.returncode == 2
    assert "no core" in ended.stderr


def test_it_ends_in_time(tmp_path: Path) -> None:
    ended = run("--seconds=2", "--jobs=1", "--seed=6", f"--keep={tmp_path}", folder=tmp_path)
    assert ended.returncode == 0, ended
    assert os.listdir(tmp_path) == []

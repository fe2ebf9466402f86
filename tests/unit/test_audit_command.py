"""``fastrpc audit``: what it finds, in which order, how it is shown, exported, verified and proved."""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import pytest
from support.waiting import eventually

from fastrpc.cli import audit
from fastrpc.errors import UsageError
from fastrpc.guard.audit import AuditLog, reading, segments

RECORDS = [
    ("2026-04-20T10:00:00.000Z", "ada", "memory.search", "ok"),
    ("2026-04-21T10:00:00.000Z", "grace", "order", "refused"),
    ("2026-04-22T10:00:00.000Z", "ada", "order", "ok"),
    ("2026-04-23T10:00:00.000Z", "ada", "memory.write", "tool_error"),
]


def record(moment: str, actor: str, tool: str, outcome: str) -> dict[str, object]:
    return {
        "time": moment,
        "category": "mcp_server",
        "actor": actor,
        "tool": tool,
        "outcome": outcome,
        "n": 1,
    }


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return str(tmp_path / "audit")


def has_written(folder: str, moment: str) -> bool:
    return any(moment.encode() in path.read_bytes() for path in Path(folder).glob("2*.jsonl"))


@pytest.fixture
def log(folder: str) -> Iterator[AuditLog]:
    """A log of two processes' chains, the records of which alternate in time."""
    one, other = AuditLog(folder), AuditLog(folder)
    for each, log in zip(RECORDS, (one, other, one, one), strict=True):
        log.append(record(*each))
        eventually(partial(has_written, folder, each[0]))  # a chain knows what was written before it began
        time.sleep(0.005)  # ids of different logs are in order by milliseconds
    one.close()
    other.close()
    yield one
    one.close()


def run(capsys: pytest.CaptureFixture[str], folder: str, command: str, *arguments: str) -> tuple[int, str]:
    code = audit.main([command, "--folder", folder, *arguments])
    return code, capsys.readouterr().out


def found(text: str) -> list[str]:
    return [json.loads(line)["time"][8:10] for line in text.splitlines()]


# --- search -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("filters", "days"),
    [
        ([], ["20", "21", "22", "23"]),
        (["--caller", "ada"], ["20", "22", "23"]),
        (["--tool", "memory.*"], ["20", "23"]),
        (["--outcome", "refused"], ["21"]),
        (["--category", "mcp_server", "--caller", "ada", "--tool", "order"], ["22"]),
        (["--since", "2026-04-22T10:00:00Z"], ["22", "23"]),
        (["--since", "2026-04-22T12:00:00+02:00", "--until", "2026-04-23"], ["22"]),
        (["--until", "2026-04-21T10:00:00.001Z"], ["20", "21"]),
        (["--limit", "2"], ["20", "21"]),
    ],
)
def test_what_passes_all_filters_is_found_in_the_order_of_time(capsys, log, folder, filters, days) -> None:
    code, text = run(capsys, folder, "search", "--json", *filters)
    assert (code, found(text)) == (0, days)


def test_records_that_have_waited_for_their_segment_are_in_the_order_of_time(capsys, log, folder) -> None:
    _, late = sorted(path for path in Path(folder).glob("*.jsonl") if path.name != "dropped.jsonl")
    begun = datetime.strptime(late.name[:20], "%Y%m%dT%H%M%S.%fZ") + timedelta(milliseconds=500)
    late.rename(late.with_name(f"{begun:%Y%m%dT%H%M%S}.{begun.microsecond // 1000:03d}Z{late.name[20:]}"))
    code, text = run(capsys, folder, "search", "--json")
    assert (code, found(text)) == (0, ["20", "21", "22", "23"])


def test_nothing_found_is_exit_code_1(capsys, log, folder) -> None:
    assert run(capsys, folder, "search", "--since", "2h")[0] == 1
    assert run(capsys, folder, "search", "--caller", "nobody")[0] == 1


def test_times_that_are_so_long_ago(capsys, folder) -> None:
    log = AuditLog(folder)
    log.append({"tool": "now"})
    log.close()
    for ago in ("60s", "5m", "2h", "1d", "4w"):
        assert run(capsys, folder, "search", "--since", ago, "--json")[0] == 0
        assert run(capsys, folder, "search", "--until", ago, "--json")[0] == 1


def test_an_actor_may_be_an_object(capsys, folder) -> None:
    log = AuditLog(folder)
    log.append({"actor": {"userId": "u1", "email": "ada@example.com"}})
    log.close()
    assert run(capsys, folder, "search", "--caller", "*@example.com")[0] == 0
    assert run(capsys, folder, "search", "--caller", "u2")[0] == 1


def test_a_table_is_for_people_and_what_comes_from_callers_cannot_move_their_cursor(capsys, folder) -> None:
    log = AuditLog(folder)
    log.append({"actor": "ada\x1b[2J\n", "action": "tools/call", "tool": "order", "outcome": "ok"})
    log.close()
    _, text = run(capsys, folder, "search")
    head, row = text.splitlines()
    assert head.split() == list(audit.COLUMNS)
    assert "\x1b" not in text
    assert row.split()[2:5] == ["tools/call", "order", "ok"]


def test_what_the_log_says_is_missing_is_shown_where_it_is_missing(capsys, folder) -> None:
    log = AuditLog(folder)
    log.append({"tool": "before"})
    assert log.flush()
    with log._lock:
        log._lose(0, "the queue is full", 7)
    log.append({"tool": "after"})
    log.close()
    _, text = run(capsys, folder, "search")
    assert sum("7 records are missing here: the queue is full" in line for line in text.splitlines()) == 1
    assert "missing" not in run(capsys, folder, "search", "--tool", "*")[1]


def test_a_damaged_log_is_read_as_far_as_it_can_be(capsys, log, folder) -> None:
    path = Path(folder, segments.names_in(folder)[0].file)
    path.write_bytes(b"no JSON\n" + path.read_bytes()[:-10])
    assert found(run(capsys, folder, "search", "--json", "--caller", "*")[1]) == ["20", "21", "22", "23"]


# --- tail -------------------------------------------------------------------------------------------------


def test_tail_prints_the_latest_of_all_chains(capsys, log, folder) -> None:
    assert found(run(capsys, folder, "tail", "-n", "3", "--json")[1]) == ["21", "22", "23"]
    assert found(run(capsys, folder, "tail", "-n", "1", "--json", "--outcome", "refused")[1]) == ["21"]
    assert run(capsys, folder, "tail", "-n", "0", "--json")[1] == ""


def test_tail_reads_backwards_over_blocks_and_segments(capsys, folder, monkeypatch) -> None:
    monkeypatch.setattr(reading, "BLOCK", 100)
    log = AuditLog(folder, segment_bytes=3000)
    for number in range(50):
        log.append({"tool": f"t{number}"})
    log.close()
    _, text = run(capsys, folder, "tail", "-n", "30", "--json")
    assert [json.loads(line)["tool"] for line in text.splitlines()] == [
        f"t{number}" for number in range(20, 50)
    ]


def test_tail_follows_what_comes_in_old_and_new_segments_until_it_is_interrupted(log, folder) -> None:
    code = "import sys; from fastrpc.cli import audit; sys.exit(audit.main(sys.argv[1:]))"
    command = [sys.executable, "-u", "-c", code, "tail", "-f", "--json", "--folder", folder, "-n", "1"]
    with subprocess.Popen([*command, "--caller", "ada"], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert "memory.write" in process.stdout.readline()
            for number in range(3):
                log.append({"actor": "ada", "tool": f"new{number}"})
                log.append({"actor": "grace", "tool": "other"})
                if number == 1:
                    log.close()  # what comes then begins another segment
                assert f"new{number}" in process.stdout.readline()
            process.send_signal(2)
            assert process.wait(20) == 0
        finally:
            process.kill()


# --- export -----------------------------------------------------------------------------------------------


def test_export_gives_the_lines_as_they_are_to_a_new_file_of_ones_own(capsys, log, folder, tmp_path) -> None:
    output = tmp_path / "out.jsonl"
    assert run(capsys, folder, "export", "--caller", "ada", "--output", str(output)) == (0, "")
    lines = output.read_bytes().splitlines()
    whole = b"".join(path.read_bytes() for path in Path(folder).glob("2*.jsonl")).splitlines()
    assert found(output.read_text()) == ["20", "22", "23"]
    assert set(lines) < set(whole)
    assert stat.S_IMODE(os.stat(output).st_mode) == 0o600
    with pytest.raises(UsageError, match="File exists"):
        run(capsys, folder, "export", "--output", str(output))


def test_an_export_that_finds_no_room_leaves_no_half(capsys, log, folder, tmp_path, monkeypatch) -> None:
    output = tmp_path / "out.jsonl"

    def full(found: object, form: str, write: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(audit, "_export", full)
    with pytest.raises(OSError, match=re.escape(str(output))):
        run(capsys, folder, "export", "--output", str(output))
    assert not output.exists()


def test_export_as_csv_has_every_field_and_no_formulas(folder, tmp_path, capsys) -> None:
    log = AuditLog(folder)
    log.append({"actor": "=cmd()", "tool": 'a "quoted", one', "total_us": 1.5, "task": "t1"})
    log.close()
    output = tmp_path / "out.csv"
    run(capsys, folder, "export", "--format", "csv", "--output", str(output))
    (row,) = csv.DictReader(io.StringIO(output.read_text()))
    assert row["actor"] == "'=cmd()"
    assert row["tool"] == 'a "quoted", one'
    assert row["total_us"] == "1.5"
    assert json.loads(row["others"]) == {"task": "t1"}


# --- verify, prove, check ---------------------------------------------------------------------------------


def test_verify_says_whether_all_is_right(capsys, log, folder) -> None:
    code, text = run(capsys, folder, "verify")
    assert code == 0
    assert "verified: 2 chains" in text
    path = next(path for path in Path(folder).glob("2*.jsonl") if b"grace" in path.read_bytes())
    path.write_bytes(path.read_bytes().replace(b"grace", b"gracd"))
    code, text = run(capsys, folder, "verify")
    assert code == 1
    assert f"wrong: {path.name}:3: line 3 was changed" in text


def test_a_proof_is_printed_and_checked(capsys, log, folder, tmp_path) -> None:
    _, line = run(capsys, folder, "search", "--json", "--outcome", "refused")
    proof, kept = tmp_path / "proof", tmp_path / "record"
    kept.write_text(line)
    code, text = run(capsys, folder, "prove", json.loads(line)["id"])
    assert code == 0
    proof.write_text(text)
    key = os.path.join(folder, "signing-key.pem.pub")
    code, text = run(capsys, folder, "check", str(proof), "--public-key", key, "--record", str(kept))
    assert code == 0
    assert re.search(r"is under checkpoint 2 of chain", text)
    kept.write_text(line.replace("grace", "gracd"))
    code, text = run(capsys, folder, "check", str(proof), "--public-key", key, "--record", str(kept))
    assert (code, text) == (1, "wrong: the record is not the line that the proof is for\n")
    assert run(capsys, folder, "prove", "audit_none")[0] == 1


# --- mistakes ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "expected a command: one of tail, search"),
        (["serch"], "unknown command 'serch'; did you mean 'search'"),
        (["search", "--since", "yesterday"], "--since: expected RFC 3339"),
        (["search", "--sinc", "2h"], "--since"),
        (["tail", "--folder", "/nowhere/at/all"], "there is no log in /nowhere/at/all"),
        (["verify", "--public-key", "/nowhere"], "No such file"),
    ],
)
def test_mistakes_are_named(log, folder, arguments: list[str], words: str) -> None:
    if arguments[1:] and "--folder" not in arguments:
        arguments = [*arguments, "--folder", folder]
    with pytest.raises(UsageError, match=re.escape(words)):
        audit.main(arguments)


def test_help_shows_every_command(capsys) -> None:
    with pytest.raises(SystemExit):
        audit.main(["--help"])
    text = capsys.readouterr().out
    for command in audit.COMMANDS_OF_AUDIT:
        assert f"fastrpc audit {command}" in text


def test_the_log_is_in_the_state_folder_unless_another_one_is_named(capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path))
    log = AuditLog(str(tmp_path / "audit"))
    log.append({"tool": "order"})
    log.close()
    assert audit.main(["search"]) == 0
    assert "order" in capsys.readouterr().out

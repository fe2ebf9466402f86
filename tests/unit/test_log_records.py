"""The server's own log: what a record looks like, and the file that it may be written to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.waiting import SECONDS


def run(program: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a separate process: logging is the whole process's."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FASTRPC_")}
    return subprocess.run(
        [
            sys.executable,
            "-c",
            f"import logging, os, sys\nfrom fastrpc import diagnostics\n{program}",
            *arguments,
        ],
        env={**kept, **environ},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )


def messages(text: str) -> list[str]:
    return [line.partition(" fastrpc: ")[2] for line in text.splitlines()]


# --- records ----------------------------------------------------------------------------------------------


def test_what_a_caller_has_sent_begins_no_record_and_moves_no_cursor() -> None:
    sent = "/mcp\n2026-01-01 00:00:00,000 ERROR fastrpc: forged\r\x1b[2K\x00\x85\u2028\u202e\udcff end"
    done = run(f"diagnostics.write('error', {sent!r})")
    assert done.stderr.count("\n") == 1
    assert messages(done.stderr) == [sent.encode("unicode_escape").decode("ascii")]


def test_what_can_be_printed_stays_as_it_is() -> None:
    assert messages(run(r"diagnostics.write('error', 'h\u00e4 \\n \u6f22')").stderr) == ["h\u00e4 \\n \u6f22"]


def test_a_traceback_keeps_its_lines() -> None:
    done = run("try: 1 / 0\nexcept ZeroDivisionError as error: diagnostics.write('error', 'failed', error)")
    assert "\nTraceback (most recent call last):\n" in done.stderr


def test_a_record_is_bounded_whatever_a_peer_has_sent_and_no_half_of_a_secret_is_in_it() -> None:
    program = """
os.environ["A_TOKEN"] = "planted-secret-4711"
text = "x" * 65_600 + "planted-secret-4711" * 10_000
diagnostics.write("error", text)
try:
    raise ValueError(text)
except ValueError as error:
    diagnostics.write("error", "failed", error)
"""
    done = run(program)
    assert done.stderr.count("cut: a record has at most 65,536 characters") == 2
    assert len(done.stderr) < 140_000
    assert "planted" not in done.stderr
    assert "Traceback" in done.stderr


# --- the file ---------------------------------------------------------------------------------------------


def test_records_are_appended_to_the_file_and_nothing_is_on_stderr(tmp_path: Path) -> None:
    path = tmp_path / "log"
    for _ in range(2):
        done = run(
            "diagnostics.write('error', 'said'); diagnostics.write('info', 'not said')",
            FASTRPC_LOG_FILE=str(path),
        )
        assert done.stderr == ""
    assert messages(path.read_text()) == ["said", "said"]
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_mode_of_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch(0o640)
    run("diagnostics.write('error', 'said')", FASTRPC_LOG_FILE=str(path))
    assert path.stat().st_mode & 0o777 == 0o640


def test_secrets_are_masked_in_the_file_too(tmp_path: Path) -> None:
    path = tmp_path / "log"
    run(
        "diagnostics.write('error', 'it has a-planted-secret')",
        FASTRPC_LOG_FILE=str(path),
        MY_TOKEN="a-planted-secret",
    )
    assert messages(path.read_text()) == ["it has ****"]


def test_a_file_that_was_moved_away_is_made_anew(tmp_path: Path) -> None:
    """As logrotate does by default, without a word to the server."""
    path, moved = tmp_path / "log", tmp_path / "log.1"
    run(
        "diagnostics.write('error', 'before'); os.rename(*sys.argv[1:]); "
        "diagnostics.write('error', 'behind')",
        str(path),
        str(moved),
        FASTRPC_LOG_FILE=str(path),
    )
    assert (messages(moved.read_text()), messages(path.read_text())) == (["before"], ["behind"])


def test_a_file_that_was_cut_to_nothing_is_appended_to(tmp_path: Path) -> None:
    """As logrotate's copytruncate does: no hole of zeros is left."""
    path = tmp_path / "log"
    program = (
        "diagnostics.write('error', 'before'); os.truncate(sys.argv[1], 0); "
        "diagnostics.write('error', 'behind')"
    )
    run(program, str(path), FASTRPC_LOG_FILE=str(path))
    assert messages(path.read_text()) == ["behind"]
    assert "\0" not in path.read_text()


def test_a_record_that_cannot_be_written_goes_to_stderr(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    program = (
        "diagnostics.write('error', 'before'); os.rename(*sys.argv[1:]); diagnostics.write('error', 'behind')"
    )
    done = run(program, str(folder), str(tmp_path / "gone"), FASTRPC_LOG_FILE=str(folder / "log"))
    reason, record = done.stderr.splitlines()
    assert reason.endswith("/log: No such file or directory; the log is written here")
    assert messages(record) == ["behind"]
    assert messages((tmp_path / "gone" / "log").read_text()) == ["before"]


@pytest.mark.parametrize("what", ["folder", "pipe", "nowhere"])
def test_what_is_no_regular_file_is_said_and_the_log_is_on_stderr(tmp_path: Path, what: str) -> None:
    path = tmp_path / "log"
    if what == "folder":
        path.mkdir()
    elif what == "pipe":
        os.mkfifo(path)
    else:
        path = path / "log"
    done = run("diagnostics.write('error', 'said')", FASTRPC_LOG_FILE=str(path))
    first, second = done.stderr.splitlines()
    assert first.startswith(f"fastrpc: FASTRPC_LOG_FILE: {path}: ")
    assert messages(second) == ["said"]


def test_a_program_with_handlers_of_its_own_keeps_them_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    program = "logging.basicConfig(format='mine: %(message)s'); diagnostics.write('error', 'said')"
    assert run(program).stderr == "mine: said\n"
    assert run(program, FASTRPC_LOG_FILE=str(path)).stderr == "mine: said\n"
    assert messages(path.read_text()) == ["said"]


def test_who_says_nothing_imports_no_logging_and_makes_no_file(tmp_path: Path) -> None:
    path = tmp_path / "log"
    program = (
        "imported = set(sys.modules); diagnostics.write('info', 'no'); print(set(sys.modules) - imported)"
    )
    assert run(program, FASTRPC_LOG_FILE=str(path)).stdout == "set()\n"
    assert not path.exists()

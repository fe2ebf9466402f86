"""``fastrpc serve --log-file``: the log of a server over standard input and output, and over HTTP."""

from __future__ import annotations

import os

import pytest
from support.command_line import assert_mistake, run, session


def test_the_log_goes_to_the_file_that_is_named(place, words):
    """One folder is the server's, another that of whoever starts it."""
    (place / "elsewhere").mkdir()
    call = ("tools/call", {"name": "fail", "arguments": {"reason": "on purpose"}})
    arguments = ["--cwd", "elsewhere", words, "--log-file", "log"]
    _, stderr = session(place, arguments, call)
    assert stderr == ""
    text = (place / "elsewhere" / "log").read_text()
    assert "ERROR fastrpc: tool fail failed: ValueError" in text
    assert "\nTraceback (most recent call last):\n" in text
    assert (place / "elsewhere" / "log").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (".", "a folder, not a regular file"),
        ("no/log", "No such file"),
        ("pipe", "a FIFO, not a regular file"),
    ],
)
def test_a_log_file_that_is_none_is_a_mistake(place, words, name, said):
    os.mkfifo(place / "pipe")
    for more in ((), ("--http", "127.0.0.1:0", "--no-auth")):
        assert_mistake(run(place, "serve", words, "--log-file", name, *more), f"--log-file {place}")
        done = run(place, "serve", words, *more, FASTRPC_LOG_FILE=name)
        assert_mistake(done, said)


def test_a_repository_does_not_say_where_the_log_goes(place, words):
    (place / ".claude").mkdir()
    (place / ".claude" / "scorpiox-env.txt").write_text("FASTRPC_LOG_FILE=log\n")
    _, stderr = session(place, [words], ("tools/call", {"name": "fail", "arguments": {"reason": "x"}}))
    assert "FASTRPC_LOG_FILE is ignored here: a file in the working directory may not name a file" in stderr
    assert "tool fail failed" in stderr
    assert not (place / "log").exists()

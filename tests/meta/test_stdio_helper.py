"""The helper that starts servers for tests: it must say so when a server hangs, dies or writes too much."""

from __future__ import annotations

import signal
import sys

import pytest
from support.stdio import TimedOut, serve
from support.waiting import eventually

ECHO = "import os\nwhile data := os.read(0, 65536):\n    os.write(1, data)\n"


def python(source: str) -> list[str]:
    return [sys.executable, "-c", source]


def test_lines_come_back_whole_however_they_were_written() -> None:
    with serve(command=python(ECHO)) as server:
        server.send(b'{"a":1}\n{"b"')
        assert server.answer() == {"a": 1}
        server.send(b":2}\nrest")
        assert server.answers(1) == [{"b": 2}]
        server.close_stdin()
        assert server.rest() == b"rest"
        assert server.wait() == 0
        assert server.returncode == 0


def test_megabytes_both_ways_do_not_block() -> None:
    with serve(command=python(ECHO)) as server:
        data = b"x" * 5_000_000 + b"\n"
        server.send(data)
        assert server.line() == data[:-1]


def test_without_reading_a_full_pipe_is_a_time_out() -> None:
    with serve(command=python(ECHO)) as server, pytest.raises(TimedOut):
        server.send(b"x" * 5_000_000, seconds=0.3, reading=False)


def test_silence_is_a_time_out_that_shows_stderr() -> None:
    source = "import os, time\nos.write(2, b'started')\nos.write(1, b'half')\ntime.sleep(60)"
    with serve(command=python(source)) as server:
        eventually(lambda: server.stderr == "started")
        with pytest.raises(TimedOut, match=r"(?s)waited for the server to write a line.*started"):
            server.line(seconds=0.1)
        assert server.receive() == b"half"
        server.assert_silent(0.05)
        with pytest.raises(TimedOut, match="still runs"):
            server.wait(seconds=0.1)
        server.signal(signal.SIGTERM)
        assert server.wait() == -signal.SIGTERM


def test_a_server_that_dies_is_reported_with_its_exit_code() -> None:
    with serve(command=python("import sys; sys.exit('no such thing')")) as server:
        server.wait()
        with pytest.raises(AssertionError, match=r"(?s)stdout ended.*exit code 1.*no such thing"):
            server.line()
        assert server.returncode == 1


@pytest.mark.parametrize("line", [b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":"\xff"}', b"no JSON"])
def test_an_answer_that_is_not_strict_json_fails_the_test(line: bytes) -> None:
    with serve(command=python(ECHO)) as server:
        server.send(line + b"\n")
        with pytest.raises((AssertionError, ValueError)):
            server.answer()


def test_an_unexpected_line_breaks_the_silence() -> None:
    with serve(command=python(ECHO)) as server:
        server.send(b"noise\n")
        with pytest.raises(AssertionError, match="noise"):
            server.assert_silent(5)


def test_the_server_is_gone_after_the_block() -> None:
    with pytest.raises(RuntimeError), serve(command=python("import time; time.sleep(60)")) as server:
        raise RuntimeError
    assert server.returncode == -signal.SIGKILL


def test_variables_of_the_environment_can_be_added_and_taken_away() -> None:
    source = "import os\nprint(os.environ.get('ADDED'), os.environ.get('HOME'))\n"
    with serve(command=python(source), environment={"ADDED": "yes", "HOME": None}) as server:
        assert server.rest() == b"yes None\n"

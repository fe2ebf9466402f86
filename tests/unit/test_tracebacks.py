"""Failures of handlers in the log: tracebacks of the user's frames, in full once in a while, else counted."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from support.in_memory import with_client
from support.waiting import SECONDS

from fastrpc import Context, Server, ToolError, tracebacks
from fastrpc.testing import Client

PREFIX = r"(?m)^[\d-]+ [\d:,]+ ERROR fastrpc: "

PROGRAM = """
import asyncio
import sys
from fastrpc import Server, ToolError
from fastrpc.testing import Client

app = Server("t")

def lines_of(text):
    if not text:
        raise ValueError("no text")
    return text.splitlines()

@app.tool(run=sys.argv[1])
def count(text: str) -> int:
    return len(lines_of(text))

@app.tool
async def wait(text: str) -> int:
    await asyncio.sleep(0)
    return len(lines_of(text))

@app.tool(run="inline")
def chain(text: str) -> int:
    try:
        return len(lines_of(text))
    except ValueError as error:
        raise KeyError("chained") from error

@app.tool
async def group(text: str) -> int:
    raise ExceptionGroup("two", [ValueError("one"), TypeError("other")])

async def main():
    async with Client(app) as client:
        for _ in range(int(sys.argv[3])):
            result = await client.call(sys.argv[2], text="")
            assert result.is_error, result

asyncio.run(main())
"""


def log_of(*arguments: str, **environ: str) -> str:
    """Return what a program that calls failing tools has written to standard error."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("FASTRPC_")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments],
        env={**kept, **environ},
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    return done.stderr


def frames_of(text: str) -> list[str]:
    """The functions of a traceback, in order."""
    return re.findall(r'(?m)^  File ".*", line \d+, in (\w+)$', text)


# --- what a traceback holds -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "tool", "frames"),
    [
        ("inline", "count", ["count", "lines_of"]),
        ("thread", "count", ["count", "lines_of"]),
        ("inline", "wait", ["wait", "lines_of"]),
        ("inline", "chain", ["chain", "lines_of", "chain"]),
    ],
)
def test_a_traceback_begins_at_the_users_function(run: str, tool: str, frames: list[str]) -> None:
    text = log_of(run, tool, "1")
    assert re.match(PREFIX + rf"tool {tool} failed: (ValueError|KeyError)\nTraceback", text)
    assert frames_of(text) == frames
    assert "fastrpc/" not in text.partition("\n")[2]
    assert text.count("ValueError: no text\n") == 1


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no exception groups before Python 3.11")
def test_the_members_of_a_group_are_written() -> None:
    text = log_of("inline", "group", "1")
    assert "ValueError: one\n" in text
    assert "TypeError: other\n" in text
    assert "fastrpc/" not in text.partition("\n")[2]


def test_a_failure_of_our_own_keeps_its_frames(caplog: pytest.LogCaptureFixture) -> None:
    tracebacks.finish()  # what tests before this one have left to be counted
    caplog.clear()
    error = TypeError("ours")
    try:
        exec(compile("raise error", tracebacks.__file__, "exec"), {"error": error})
    except TypeError:
        assert error.__traceback__ is not None
        error = error.with_traceback(error.__traceback__.tb_next)
    tracebacks.report("ping failed inside fastrpc", error)
    tracebacks.finish()
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[2] is error.__traceback__ is not None


# --- how often it is written ------------------------------------------------------------------------------


@pytest.mark.parametrize("run", ["inline", "thread", "auto"])
def test_the_same_failure_is_written_once_and_counted_to_the_end(run: str) -> None:
    text = log_of(run, "count", "100")
    assert text.count("Traceback") == 1
    assert text.count("ValueError: no text") == 1
    assert re.search(PREFIX + r"tool count failed: ValueError: 99 more, at <string>:\d+$", text)


def failing(app: Server, client_does: Any, caplog: pytest.LogCaptureFixture) -> list[str]:
    """Return the messages that the log got behind a conversation."""
    with_client(app, client_does)
    return [record.getMessage() for record in caplog.records]


def test_another_type_place_or_handler_is_another_failure(caplog: pytest.LogCaptureFixture) -> None:
    app = Server("t")

    def fail(how: str) -> str:
        if how == "here":
            raise ValueError(how)
        if how == "there":
            raise ValueError(how)
        raise {"key": KeyError, "type": TypeError}[how](how)

    app.add_tool(fail, name="one")
    app.add_tool(fail, name="two")

    async def conversation(client: Client) -> None:
        for how in ("here", "there", "key", "type"):
            for name in ("one", "two", "two"):
                assert (await client.call(name, how=how)).is_error

    messages = failing(app, conversation, caplog)
    assert len(messages) == 12
    assert sum(" failed: " in message and " more, at " not in message for message in messages) == 8
    assert sum("tool two failed: " in message and ": 1 more, at " in message for message in messages) == 4


def test_after_a_minute_it_is_written_again_with_the_count(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = Server("t")
    now = [-1000.0]  # long past for the compiled core, which reads its own clock and must ask this one
    monkeypatch.setattr(tracebacks, "monotonic", lambda: now[0])

    @app.tool
    async def fail() -> str:
        raise ValueError("no")

    async def conversation(client: Client) -> None:
        for passed in (0.0, 30.0, 29.9, 0.2, 0.0):
            now[0] += passed
            assert (await client.call("fail")).is_error

    first, second, last = failing(app, conversation, caplog)
    assert first == "tool fail failed: ValueError"
    assert second == "tool fail failed: ValueError (2 more since it was last written)"
    assert re.fullmatch(r"tool fail failed: ValueError: 1 more, at .*test_tracebacks\.py:\d+", last)


def test_a_bounded_number_of_places_is_kept_and_none_of_the_counts_is_lost(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracebacks, "MOST_PLACES", 4)
    errors = []
    for number in range(10):
        try:
            exec("\n" * number + "raise ValueError")
        except ValueError as error:
            errors.append(error)
    for error in errors:
        for _ in range(3):
            tracebacks.report("it failed", error)
        assert tracebacks.flush()
        assert len(tracebacks._places) <= 4
    tracebacks.finish()
    messages = [record.getMessage() for record in caplog.records]
    assert messages.count("it failed: ValueError") == 10
    assert len([message for message in messages if message.startswith("it failed: ValueError: 2 more")]) == 10
    assert not tracebacks._places


# --- the log holds no one up ------------------------------------------------------------------------------


def test_a_standard_error_that_no_one_reads_holds_no_call_and_not_the_end() -> None:
    read, write = os.pipe()
    try:
        os.set_blocking(write, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(write, b"x" * 4096)
        os.set_blocking(write, True)
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, "inline", "count", "50"], stderr=write, timeout=SECONDS
        )
        assert done.returncode == 0
    finally:
        os.close(read)
        os.close(write)


@pytest.mark.parametrize("how", ["closed", "gone"])
def test_a_standard_error_that_is_closed_fails_no_call(how: str) -> None:
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-c", PROGRAM, "inline", "count", "50"]
    if how == "closed":
        command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command]
    try:
        assert subprocess.run(command, stderr=write, timeout=SECONDS).returncode == 0
    finally:
        os.close(write)


def test_secrets_are_masked_in_a_traceback_too(tmp_path: Path) -> None:
    program = PROGRAM.replace('"no text"', '"it has a-planted-secret"')
    path = tmp_path / "log"
    subprocess.run(
        [sys.executable, "-c", program, "inline", "count", "1"],
        env={**os.environ, "FASTRPC_LOG_FILE": str(path), "MY_TOKEN": "a-planted-secret"},
        timeout=SECONDS,
        check=True,
    )
    assert path.read_text().endswith("ValueError: it has ****\n")


# --- a tool that fails has its place by its record ---------------------------------------------------------


@pytest.mark.parametrize("error", [ToolError, ValueError])
@pytest.mark.parametrize("with_context", [False, True])
def test_a_tool_that_raises_quickly_earns_its_place_and_loses_it_when_it_is_slow(
    error: type[Exception], with_context: bool
) -> None:
    app = Server("t")

    def fail(slow: bool = False) -> str:
        if slow:
            time.sleep(0.005)
        raise error("no")

    if with_context:

        @app.tool(name="fail")
        def inner(context: Context, slow: bool = False) -> str:
            return fail(slow)

    else:
        app.add_tool(fail, name="fail")

    async def conversation(client: Client) -> None:
        plan = app.runtime.plans.tools["fail"]
        for _ in range(5000):  # on a busy machine a quick call may look slow for a while
            if plan.inline:
                break
            assert (await client.call("fail")).is_error
        assert plan.inline
        assert (await client.call("fail", slow=True)).is_error
        assert not plan.inline

    with_client(app, conversation)

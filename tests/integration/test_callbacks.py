"""Callbacks of real servers over pipes: they fire while the client is idle, and survive the server."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import sqlite3
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

import pytest
from support.stdio import Process, serve
from support.waiting import eventually

Start = Callable[[], AbstractContextManager[Process]]


@pytest.fixture
def start(tmp_path: Any) -> Start:
    """Starts servers that share a state and a project."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    environment = {"FASTRPC_STATE_DIR": str(tmp_path / "state"), "HOME": str(tmp_path)}
    return lambda: serve(environment=environment, folder=str(folder))


@pytest.fixture
def server(start: Start) -> Iterator[Process]:
    with start() as process:
        process.initialize()
        yield process


def put(server: Process, message: str, delay: int, repeats: int = 1) -> str:
    result = server.call(
        "SetCallback", action="set", message=message, delay_seconds=delay, repeat_count=repeats
    )
    return texts(result)[0]


def texts(result: Any) -> list[str]:
    return [block["text"] for block in result["content"]]


def listed(server: Process) -> list[str]:
    return texts(server.call("SetCallback", action="list"))


def undelivered(folder: Any) -> int:
    """How many fires are on disk that no result has told of."""
    with contextlib.closing(sqlite3.connect(f"{folder}/state/state.sqlite3")) as database:
        return int(database.execute("SELECT sum(undelivered) FROM callbacks").fetchone()[0])


def listen(server: Process) -> None:
    assert server.request("logging/setLevel", {"level": "info"})["result"] == {}


def message(server: Process) -> str:
    """What the next line, which must be a callback's notification, says."""
    line = server.answer()
    assert line["method"] == "notifications/message", line
    assert (line["params"]["logger"], line["params"]["level"]) == ("callback", "info")
    return str(line["params"]["data"])


def result_of(server: Process, request: Any) -> Any:
    """The result of a call, which must come next: nothing is sent before it."""
    answer = server.answer()
    assert answer["id"] == request, answer
    return answer["result"]


def seconds_ago(note: str, text: str) -> int:
    found = re.fullmatch(r"\[callback \d due (\d+) s ago\] (.*)", note, re.DOTALL)
    assert found is not None, note
    assert found[2] == text
    return int(found[1])


def test_an_idle_client_is_notified_of_it_and_the_next_result_tells_it_once(server: Process) -> None:
    """SetCallback: an idle client gets a log notification of logger `callback` and level info, and the next
    result, an error as well, a second text block.
    """
    listen(server)
    began = time.monotonic()
    assert put(server, "حان الوقت", 1) == "Callback scheduled: fires once in 1s."
    assert message(server) == "حان الوقت"
    assert time.monotonic() - began > 0.9
    result = server.call("KillBgTask", task_id=4711)  # also when it is an error
    assert result["isError"] is True
    own, note = texts(result)
    assert own == "There is no background task 4711. Tasks: none."
    assert seconds_ago(note, "حان الوقت") <= time.monotonic() - began
    assert len(texts(server.call("KillBgTask", task_id=4711))) == 1
    assert listed(server) == ["No active callbacks."]
    server.assert_silent(0.2)


def test_who_set_no_level_hears_nothing_before_the_next_result(server: Process) -> None:
    began = time.monotonic()
    put(server, "quiet", 1)
    server.assert_silent(1.1)

    def notes() -> list[str]:
        listed = server.ask("tools/call", {"name": "ListBgTasks", "arguments": {}})
        own, *found = texts(result_of(server, listed))
        assert own == "No background tasks."
        return found

    (note,) = eventually(notes)
    assert seconds_ago(note, "quiet") <= time.monotonic() - began


def test_it_waits_for_the_end_of_the_call_in_flight(server: Process, tmp_path: Any) -> None:
    """SetCallback: it fires only while no call is in flight."""
    listen(server)
    command = f"until [ -e {tmp_path}/released ]; do sleep 0.01; done; echo done"
    request = server.ask("tools/call", {"name": "Bash", "arguments": {"command": command}})
    began = time.monotonic()
    put(server, "later", 1)
    server.assert_silent(1.3)
    (tmp_path / "released").touch()
    assert texts(result_of(server, request)) == ["done"]
    assert message(server) == "later"
    assert seconds_ago(texts(server.call("ListBgTasks"))[1], "later") <= time.monotonic() - began


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_timers_survive_the_server_and_what_is_overdue_fires_once(start: Start, number: int) -> None:
    """SetCallback: timers survive a restart, and overdue ones fire once at start."""
    with start() as first:
        first.initialize()
        put(first, "every two seconds", 2, repeats=30)
        put(first, "in an hour", 3600)
        first.signal(number)
        assert first.wait() == (-number if number == signal.SIGKILL else 0)
    time.sleep(2.1)
    with start() as second:
        second.initialize()
        listen(second)
        began = time.monotonic()
        assert message(second) == "every two seconds"
        active, note = listed(second)
        assert 0 <= seconds_ago(note, "every two seconds") < 5
        assert active.startswith("Active callbacks (2/8):\n")
        assert re.search(r'\[0\] "every two seconds" - fires in 0m\ds \(29 left\)\n', active), active
        assert re.search(r'\[1\] "in an hour" - fires in 59m5\ds \(1 left\)$', active), active
        assert message(second) == "every two seconds"
        assert 1.5 < time.monotonic() - began < 6


def test_what_no_result_reported_is_reported_after_sigkill(start: Start, tmp_path: Any) -> None:
    """SetCallback: a fire that no result told of survives SIGKILL."""
    with start() as first:
        first.initialize()
        listen(first)
        began = time.monotonic()
        put(first, "untold", 1)
        assert message(first) == "untold"
        eventually(lambda: undelivered(tmp_path) == 1)  # it is written behind the notification
        first.kill()
        first.wait()
    with start() as second:
        second.initialize()
        listen(second)
        own, note = texts(second.call("SetCallback", action="list"))
        assert own == "No active callbacks."
        assert seconds_ago(note, "untold") <= time.monotonic() - began
        second.assert_silent(0.2)
        second.close_stdin()
        assert second.wait() == 0
    with start() as third:
        third.initialize()
        assert listed(third) == ["No active callbacks."]


def test_two_servers_of_one_project_have_separate_slots(start: Start) -> None:
    """SetCallback: callbacks belong to the server that made them."""
    with start() as first, start() as second:
        first.initialize()
        second.initialize()
        for server, name in ((first, "first"), (second, "second")):
            put(server, f"of the {name}", 3000)
        assert "Active callbacks (1/8):\n" + '  [0] "of the first" - fires in' in listed(first)[0]
        assert "Active callbacks (1/8):\n" + '  [0] "of the second" - fires in' in listed(second)[0]
        assert texts(first.call("SetCallback", action="cancel")) == ["Cancelled 1 callbacks."]
        assert "of the second" in listed(second)[0]


@pytest.mark.parametrize("end", ["end of input", "SIGTERM", "broken pipe"])
def test_armed_timers_do_not_hold_the_end_back(server: Process, end: str) -> None:
    """SetCallback: armed timers do not hold back the end of the server."""
    for slot in range(8):
        put(server, f"{slot}", 1 if slot < 4 else 3600, repeats=-1)
    if end == "SIGTERM":
        server.signal(signal.SIGTERM)
    elif end == "broken pipe":
        server.close_stdout()
        server.close_stdin()
    else:
        server.close_stdin()
    assert server.wait() == 0
    assert server.stderr == ""


@pytest.mark.alone
def test_armed_timers_cost_nothing_while_they_wait(server: Process) -> None:
    """SetCallback: armed timers cost nothing while they wait."""
    for _ in range(8):
        put(server, "in an hour", 3600)
    time.sleep(0.3)
    before = processor_seconds(server.pid)
    time.sleep(1.5)
    assert processor_seconds(server.pid) - before <= 0.02


def processor_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

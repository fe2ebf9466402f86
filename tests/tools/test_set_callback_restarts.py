"""SetCallback and clocks: what a wall clock that jumps moves, and what a server finds of those before it.

In memory, with seconds that are shorter where one has to pass; processes are in integration/test_callbacks.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import re
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastrpc.tools import _project
from fastrpc.tools.agent import _callbacks, _instances, _state
from support.callbacks import (
    LONG_AGO,
    TICK,
    buried,
    left_behind,
    logged,
    notes,
    put,
    rows,
    run,
    settled,
    shown,
    until,
)
from support.state_folder import own_state

from fastrpc.testing import Client


@pytest.fixture(autouse=True)
def project(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A state folder and a project of its own for each test."""
    for _ in own_state(tmp_path, monkeypatch):
        yield _project.key()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_callbacks, "SECOND", TICK)


@pytest.mark.parametrize("jump", [-LONG_AGO, LONG_AGO])
def test_a_wall_clock_that_jumps_moves_nothing(
    quick: None, monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """SetCallback: a wall clock that jumps while the server runs moves nothing."""

    async def conversation(client: Client) -> None:
        began = time.monotonic()
        await put(client, "far", 3600)
        await put(client, "near", 10, repeat_count=2)
        monkeypatch.setattr(_callbacks, "wall_clock", lambda: time.time() + jump)
        assert await logged(client, 2) == ["near", "near"]
        assert time.monotonic() - began >= 20 * TICK - 0.01
        [far, *_] = (await shown(client)).splitlines()[1:]
        assert re.search(r"fires in (3m0s|2m\d+s)", far), far
        assert notes(await client.call("echo", text="x")) == []

    run(conversation)


def test_what_is_overdue_at_the_start_fires_once() -> None:
    async def conversation(client: Client) -> None:
        assert await logged(client, 1) == ["left"]
        result = await client.call("SetCallback", action="list")
        assert re.fullmatch(r"\[callback 0 due 36\d\d s ago\] left", result.content[1]["text"])
        active = r'Active callbacks \(1/8\):\n  \[0\] "left" - fires in 0m(30|[12]\d)s \(2 left\)'
        assert re.fullmatch(active, result.content[0]["text"])
        await until(lambda: [(r["instance"], r["fires_left"]) for r in rows()] == [(_instances.own(), 2)])
        assert len(client.logs) == 1

    left_behind()
    run(conversation)
    assert buried("1-dead")


@pytest.mark.parametrize(("due_in", "text"), [(20.0, "0m(20|1\\d)s"), (7200.0, "0m(30|2\\d)s")])
def test_what_is_not_due_waits_for_its_time_but_not_longer_than_its_delay(due_in: float, text: str) -> None:
    """SetCallback: across restarts the wall clock counts, but nothing waits longer than its delay."""

    async def conversation(client: Client) -> None:
        assert re.search(rf"fires in {text} \(3 left\)", await shown(client))
        assert client.logs == []

    left_behind(due_at=time.time() + due_in)
    run(conversation)


def test_who_sets_the_level_soon_after_the_start_is_still_notified_of_what_was_overdue(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(_callbacks, "LISTENER_LOOKS", 100)

    async def conversation(client: Client) -> None:
        await asyncio.sleep(0.2)
        await client.set_level("info")
        assert await logged(client, 1) == ["left"]
        await asyncio.sleep(0.6)
        assert len(client.logs) == 1

    left_behind()
    run(conversation, level=None)


def test_fires_that_no_result_reported_are_reported_by_the_next_server() -> None:
    async def conversation(client: Client) -> None:
        result = await client.call("SetCallback", action="list")
        assert result.content[0]["text"] == "No active callbacks."
        assert re.fullmatch(r"\[callback 0 due [1-6]\d s .* left\n\[it fired 2 times\]", notes(result)[0])
        assert client.logs == []

    left_behind(fires_left=0, undelivered=2, fired_at=time.time() - 12)
    run(conversation)
    settled(0)


def test_what_was_delivered_is_not_delivered_by_the_next_server(quick: None) -> None:
    async def conversation(client: Client) -> None:
        await put(client, "look", 1, repeat_count=1)
        await logged(client, 1)
        assert len(notes(await client.call("echo", text="x"))) == 1
        await shown(client)

    run(conversation)
    settled(0)


def test_only_rows_of_the_dead_and_of_this_project_are_taken_over() -> None:
    """SetCallback: a server takes over, at its start, only rows whose owner is dead."""

    async def conversation(client: Client) -> None:
        assert "(1/8)" in await shown(client)
        assert '"mine"' in await shown(client)
        await put(client, "new")
        assert sorted((row["message"], row["instance"]) for row in rows()) == [
            ("lives", "2-alive"),
            ("mine", _instances.own()),
            ("new", _instances.own()),
            ("other", "1-dead"),
        ]

    soon = time.time() + 20
    left_behind("mine", due_at=soon)
    left_behind("other", due_at=soon, project="/another/project", slot=1)
    left_behind("lives", due_at=soon, instance="2-alive")
    with open(os.path.join(_instances.folder(), "2-alive.lock")) as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        run(conversation)
    assert not buried("1-dead")


def test_slots_that_collide_are_numbered_anew_and_what_finds_none_waits_for_a_later_start() -> None:
    async def first(client: Client) -> None:
        lines = (await shown(client)).splitlines()
        assert lines[0] == "Active callbacks (8/8):"
        assert {line.split('"')[1] for line in lines[1:]} == {f"{name}" for name in range(8)}
        assert '[4] "0"' in "\n".join(lines)

    async def second(client: Client) -> None:
        assert re.findall(r'"(\d)"', await shown(client)) == ["8"]

    for name in range(9):  # the later it is due, the higher its name
        left_behind(f"{name}", slot=4, instance=f"{name}-dead", due_at=time.time() + 10 + name)
    run(first)
    assert [buried(f"{name}-dead") for name in range(9)] == [True] * 8 + [False]
    assert sorted(row["slot"] for row in rows() if row["instance"] == _instances.own()) == list(range(8))
    run(second)


def test_what_is_left_later_is_left_to_those_that_start_later() -> None:
    """SetCallback: what is left behind later is left to servers that start later."""

    async def conversation(client: Client) -> None:
        left_behind()
        assert await shown(client) == "No active callbacks."

    run(conversation)


def test_a_start_that_fails_is_said_and_tried_again_by_the_next_call(
    capfd: pytest.CaptureFixture[str],
) -> None:
    async def conversation(client: Client) -> None:
        said = ""
        while "fastrpc: the callbacks of an earlier server are not taken over: " not in said:
            said += capfd.readouterr().err
            await asyncio.sleep(0.01)
        refused = await client.call("SetCallback", action="list")
        assert refused.is_error
        assert _state.path() in refused.text
        os.unlink(_state.path())
        left_behind("mended")
        assert "mended" in await shown(client)

    left_behind()
    _state.close()
    with open(_state.path(), "wb") as file:
        file.write(b"no database at all, for certain" * 1000)
    run(conversation)


def test_a_server_on_a_new_state_makes_no_files_at_its_start(tmp_path: Any) -> None:
    async def conversation(client: Client) -> None:
        await client.call("echo", text="x")
        assert not (tmp_path / "state").exists()
        assert await shown(client) == "No active callbacks."

    run(conversation)
    assert not (tmp_path / "state").exists()

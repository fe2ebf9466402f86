"""SetCallback: what it answers, when its callbacks fire, how they reach the client.

In memory, with seconds that are shorter where one has to pass; processes are in integration/test_callbacks.
"""

from __future__ import annotations

import asyncio
import re
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastrpc.tools import _project
from fastrpc.tools.agent import _callbacks, _instances
from fastrpc.tools.agent import set_callback as module
from support.callbacks import (
    TICK,
    WAITS_END,
    left_behind,
    logged,
    new_server,
    notes,
    put,
    rows,
    run,
    settled,
    shown,
    until,
)
from support.loop_clock import LoopClock
from support.state_folder import own_state

from fastrpc.protocol.versions import VERSIONS
from fastrpc.testing import Client


@pytest.fixture(autouse=True)
def project(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A state folder and a project of its own for each test."""
    for _ in own_state(tmp_path, monkeypatch):
        yield _project.key()


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_callbacks, "SECOND", TICK)


# --- answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"repeat_count": 40}, "Callback scheduled: fires every 30s, repeats 40 times."),
        ({}, "Callback scheduled: fires every 30s, repeats 20 times."),
        ({"repeat_count": 2}, "Callback scheduled: fires every 30s, repeats 2 times."),
        ({"repeat_count": -1}, "Callback scheduled: fires every 30s, repeats infinitely."),
        ({"repeat_count": 0}, "Callback scheduled: fires once in 30s."),
        ({"repeat_count": 1}, "Callback scheduled: fires once in 30s."),
        ({"delay": 1, "repeat_count": "1"}, "Callback scheduled: fires once in 1s."),
        ({"delay": 3600}, "Callback scheduled: fires every 3600s, repeats 20 times."),
    ],
)
def test_set_says_how_often_it_fires(arguments: dict[str, Any], text: str) -> None:
    """SetCallback: repeat_count is 20 unless given, -1 for ever, 0 or 1 once; set answers with a text for
    each.
    """
    result = run(lambda client: put(client, **arguments))
    assert result.content == [{"type": "text", "text": text}]
    assert result.is_error is False
    assert result.meta["fastrpc/facts"]["callback_id"] == 0


def test_what_was_answered_is_on_disk(project: str) -> None:
    """SetCallback: what was answered is on disk."""

    async def conversation(client: Client) -> None:
        began = time.time()
        await put(client, "first", repeat_count=40)
        [row] = rows()
        assert (row["slot"], row["message"], row["delay_seconds"], row["fires_left"]) == (0, "first", 30, 40)
        assert (row["instance"], row["project"]) == (_instances.own(), project)
        assert began + 30 <= row["due_at"] <= time.time() + 30
        await client.call("SetCallback", action="cancel")
        assert rows() == []

    run(conversation)


def test_list_shows_each_slot_with_its_time_and_what_is_left() -> None:
    """SetCallback: list answers with each slot's number, message, time until it fires and what is left.
    SetCallback: an empty list is `No active callbacks.`
    """

    async def conversation(client: Client) -> None:
        assert await shown(client) == "No active callbacks."
        await put(client, "check\nthe   build", 12, repeat_count=38)
        await put(client, "for ever", 3600, repeat_count=-1)
        await put(client, "once", 65, repeat_count=0, callback_id=5)
        pattern = (  # of a machine that may be some seconds late
            r"Active callbacks \(3/8\):\n"
            r'  \[0\] "check the build" - fires in 0m(\d|1[012])s \(38 left\)\n'
            r'  \[1\] "for ever" - fires in (60m0|59m5\d)s \(infinite\)\n'
            r'  \[5\] "once" - fires in (1m[0-5]|0m5\d)s \(1 left\)'
        )
        assert re.fullmatch(pattern, await shown(client))

    run(conversation)


@pytest.mark.parametrize(
    ("message", "preview"),
    [
        ("x" * 60, "x" * 60),
        ("x" * 61, "x" * 59 + "…"),
        ("y" * 58 + "👩\u200d🚀 and more", "y" * 58 + "…"),
        ("z" * 58 + "e\u0301" * 10, "z" * 58 + "…"),
        ("ن" * 30 + "\u064e" * 2000, "ن" * 30 + "…"),
        ("مرحبا بالعالم", "مرحبا بالعالم"),
    ],
)
def test_a_preview_is_cut_between_characters(message: str, preview: str) -> None:
    assert module._preview(message) == preview


def test_eight_slots_and_no_more() -> None:
    """SetCallback: there are eight slots, 0 to 7, then `Error: all callback slots full (max 8)`."""

    async def conversation(client: Client) -> None:
        for slot in range(8):
            assert (await put(client, f"{slot}")).meta["fastrpc/facts"]["callback_id"] == slot
        for arguments in ({}, {"callback_id": 3}):
            ninth = await put(client, "nine", **arguments)
            assert ninth.text == "Error: all callback slots full (max 8)"
            assert ninth.is_error is True
        assert (await shown(client)).startswith("Active callbacks (8/8):\n")
        await client.call("SetCallback", action="cancel", callback_id=6)
        assert (await put(client, "nine")).meta["fastrpc/facts"]["callback_id"] == 6
        assert len(rows()) == 8

    run(conversation)


def test_cancel_one_and_cancel_all() -> None:
    """SetCallback: cancel answers with slot and message or, without an id, with how many there were."""

    async def conversation(client: Client) -> None:
        message = "all of it, " + "x" * 2000
        await put(client, message)
        await put(client, "b")
        await put(client, "c")
        one = await client.call("SetCallback", action="cancel", callback_id=0)
        assert one.text == f'Cancelled callback slot 0: "{message}"'
        again = await client.call("SetCallback", action="cancel", callback_id=0)
        assert again.is_error
        assert again.text == "callback_id: slot 0 has no callback. Active: 1, 2."
        assert (await client.call("SetCallback", action="cancel")).text == "Cancelled 2 callbacks."
        assert await shown(client) == "No active callbacks."
        assert (await client.call("SetCallback", action="cancel")).text == "Cancelled 0 callbacks."
        assert rows() == []

    run(conversation)


def test_a_cancelled_callback_does_not_fire() -> None:
    async def conversation(client: Client) -> None:
        clock = LoopClock()
        await put(client, "goes", 30, repeat_count=1)
        assert not (await client.call("SetCallback", action="cancel", callback_id=0)).is_error
        await put(client, "stays", 30, repeat_count=1)
        clock.advance(30)
        assert await logged(client, 1) == ["stays"]

    run(conversation)


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"delay_seconds": 5}, "message: required for set, the text to come back with."),
        ({"delay_seconds": 5, "message": ""}, "message: required for set, the text to come back with."),
        (
            {"delay_seconds": 5, "message": "é" * 2049},
            "message: expected at most 2,048 characters, got 2,049.",
        ),
        ({"message": "x"}, "delay_seconds: required for set, 1 to 3600."),
        ({"message": "x", "delay_seconds": 0}, "delay_seconds: expected 1 to 3600, got 0."),
        ({"message": "x", "delay_seconds": 3601}, "delay_seconds: expected 1 to 3600, got 3601."),
        (
            {"message": "x", "delay_seconds": 5, "repeat_count": -2},
            "repeat_count: expected 0 to 1,000,000,000, or -1 for ever, got -2.",
        ),
        (
            {"message": "x", "delay_seconds": 5, "repeat_count": 10**30},
            "repeat_count: expected 0 to 1,000,000,000, or -1 for ever, got 10000000000000000000….",
        ),
        ({"message": "x", "delay_seconds": 5, "callback_id": 8}, "callback_id: expected 0 to 7, got 8."),
        ({"message": "x", "delay_seconds": 5, "callback_id": -1}, "callback_id: expected 0 to 7, got -1."),
        ({"action": "cancel", "callback_id": 8}, "callback_id: expected 0 to 7, got 8."),
        ({"action": "stop"}, 'action: expected one of "set", "list", "cancel", got "stop"'),
        ({"message": "x", "delay_seconds": "soon"}, 'delay_seconds: expected integer, got "soon"'),
    ],
)
def test_bad_input_is_an_error_that_names_the_parameter(arguments: dict[str, Any], complaint: str) -> None:
    """SetCallback: a delay is 1 to 3600 seconds and a message at most 2,048 characters; bad input is an error
    that names the parameter.
    """

    async def conversation(client: Client) -> None:
        result = await client.call("SetCallback", **{"action": "set", **arguments})
        assert (result.text, result.is_error) == (complaint, True)
        assert await shown(client) == "No active callbacks."

    run(conversation)


def test_a_message_of_2048_characters_is_taken_whole(quick: None) -> None:
    """SetCallback: a message of 2,048 characters is taken whole."""

    async def conversation(client: Client) -> None:
        message = "م" * 2048
        await put(client, message, 1, repeat_count=1)
        assert await logged(client, 1) == [message]
        assert notes(await client.call("echo", text="x")) == [f"[callback 0 due 0 s ago] {message}"]

    run(conversation)


def test_a_slot_can_be_chosen_if_it_is_free() -> None:
    async def conversation(client: Client) -> None:
        assert (await put(client, "x", callback_id=7)).meta["fastrpc/facts"]["callback_id"] == 7
        taken = await put(client, "y", callback_id=7)
        assert taken.is_error
        assert taken.text == (
            "callback_id: slot 7 is taken; cancel it first, or leave callback_id out. "
            "Free: 0, 1, 2, 3, 4, 5, 6."
        )

    run(conversation)


def test_the_schema_states_the_choices_and_the_range() -> None:
    """SetCallback: the schema states the choices and the range."""

    async def conversation(client: Client) -> None:
        [schema] = [tool["inputSchema"] for tool in await client.tools() if tool["name"] == "SetCallback"]
        assert schema["properties"]["action"]["enum"] == ["set", "list", "cancel"]
        assert schema["properties"]["delay_seconds"] == {
            "type": "integer",
            "description": "Seconds to wait (1-3600)",
            "minimum": 1,
            "maximum": 3600,
        }
        assert schema["required"] == ["action"]

    run(conversation)


def test_a_state_that_cannot_be_written_takes_no_slot(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    async def conversation(client: Client) -> None:
        monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "file"))
        refused = await put(client)
        assert refused.is_error
        assert str(tmp_path / "file") in refused.text
        monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
        assert await shown(client) == "No active callbacks."
        assert not (await put(client)).is_error

    (tmp_path / "file").write_text("no folder")
    run(conversation)


def test_a_call_that_is_cancelled_sets_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    insert, begun, cancelled = _callbacks._insert, threading.Event(), threading.Event()

    def slow(row: dict[str, Any]) -> None:
        begun.set()
        cancelled.wait(30)
        insert(row)

    async def conversation(client: Client) -> None:
        arguments = {"action": "set", "message": "x", "delay_seconds": 1}
        id, _ = client.begin("tools/call", {"name": "SetCallback", "arguments": arguments})
        await until(begun.is_set)
        client.cancel(id)
        await asyncio.sleep(0)  # the cancelled call has its turn
        cancelled.set()
        assert await shown(client) == "No active callbacks."
        await client.call("SetCallback", action="set", message="y", delay_seconds=9)  # written behind it
        assert [row["message"] for row in rows()] == ["y"]

    monkeypatch.setattr(_callbacks, "_insert", slow)
    run(conversation)


# --- firing and delivery ----------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["echo", "fail", "nobody"])
def test_a_due_callback_is_reported_once_in_each_way(quick: None, tool: str) -> None:
    """SetCallback: a due callback is delivered once in each way there is."""

    async def conversation(client: Client) -> None:
        await put(client, "look", 1, repeat_count=1)
        assert await logged(client, 1) == ["look"]
        await until(lambda: [(row["fires_left"], row["undelivered"]) for row in rows()] == [(0, 1)])
        assert await shown(client) == "No active callbacks.\n[callback 0 due 0 s ago] look"
        for _ in range(3):
            assert len((await client.call("echo", text="x")).content) == 1
        await asyncio.sleep(2 * TICK)
        assert len(client.logs) == 1
        settled(0)

    async def other_results(client: Client) -> None:
        await put(client, "look", 1, repeat_count=1)
        await logged(client, 1)
        result = await client.call(tool, **({"text": "x"} if tool == "echo" else {}))
        assert result.is_error is (tool == "fail")
        assert notes(result) == ["[callback 0 due 0 s ago] look"]

    run(conversation)
    if tool != "nobody":
        run(other_results)


@pytest.mark.parametrize("version", VERSIONS)
def test_the_next_result_tells_it_in_each_version(quick: None, version: str) -> None:
    async def whole() -> None:
        async with Client(new_server(), version=version) as client:
            await put(client, "look", 1, repeat_count=1)
            await until(lambda: [row["undelivered"] for row in rows()] == [1])
            for tool in ("echo", "fail"):
                result = await client.call(tool, text="x")
                found = ["[callback 0 due 0 s ago] look"] if tool == "echo" else []
                assert notes(result) == found
                assert result.raw["isError"] is (tool == "fail")

    asyncio.run(asyncio.wait_for(whole(), 60))


def test_the_text_says_how_long_ago_it_was_due(quick: None) -> None:
    """SetCallback: the text says how long ago it was due."""

    async def conversation(client: Client) -> None:
        clock = LoopClock()
        began = clock.monotonic()
        await put(client, "look", 1, repeat_count=1)
        await logged(client, 1)
        clock.advance(7)
        note = (await client.call("echo", text="x")).content[1]["text"]
        assert 7 <= int(note.split()[3]) <= clock.monotonic() - began

    run(conversation)


def test_it_fires_as_often_as_was_asked_with_the_same_delay(quick: None) -> None:
    """SetCallback: it is armed again with the same delay after each fire."""

    async def conversation(client: Client) -> None:
        began = time.monotonic()
        await put(client, "again", 2, repeat_count=3)
        for count in (1, 2, 3):  # a busy machine sees one late, and the next one sooner behind it
            await logged(client, count)
            assert time.monotonic() - began >= count * 2 * TICK - 0.01
        await asyncio.sleep(4 * TICK)
        assert len(client.logs) == 3
        told = "No active callbacks.\n[callback 0 due 0 s ago] again\n[it fired 3 times]"
        assert await shown(client) == told

    run(conversation)


@pytest.mark.parametrize("repeats", [40, -1])
def test_what_is_left_is_counted_in_the_list_and_on_disk(quick: None, repeats: int) -> None:
    """SetCallback: with -1 it fires for ever."""

    async def conversation(client: Client) -> None:
        await put(client, "tick", 8, repeat_count=repeats)
        await logged(client, 2)
        text = await shown(client)
        lefts = [f"({repeats - fired} left)" for fired in range(2, len(client.logs) + 1)]
        assert any(left in text for left in (lefts if repeats > 0 else ["(infinite)"]))
        await until(lambda: rows()[0]["fires_left"] == (repeats - len(client.logs) if repeats > 0 else -1))

    run(conversation)


def test_nothing_fires_while_a_call_is_in_flight(quick: None) -> None:
    async def conversation(client: Client) -> None:
        WAITS_END.clear()
        _, waiting = client.begin("tools/call", {"name": "wait", "arguments": {}})
        await put(client, "later", 1, repeat_count=1)
        await asyncio.sleep(5 * TICK)
        assert not client.logs
        WAITS_END.append(True)
        await waiting
        assert await logged(client, 1) == ["later"]
        assert notes(await client.call("echo", text="x")) == ["[callback 0 due 0 s ago] later"]

    run(conversation)


def test_a_client_that_set_no_level_or_a_higher_one_gets_no_notification(quick: None) -> None:
    """SetCallback: the notification goes only to a client that called logging/setLevel at info or lower."""

    async def conversation(client: Client) -> None:
        await put(client, "quiet", 1, repeat_count=1)
        await until(lambda: [row["undelivered"] for row in rows()] == [1])  # written behind what is sent
        assert client.notifications == []
        assert notes(await client.call("echo", text="x")) == ["[callback 0 due 0 s ago] quiet"]

    run(conversation, level=None)
    run(conversation, level="warning")


@pytest.mark.parametrize(
    "message",
    [
        "ذكّرني بقراءة السجلّ",
        "\u202bمن اليمين\u202c to the left",
        "👩\u200d👩\u200d👧\u200d👦 🏳️\u200d🌈",
        "e\u0301 é \u1e69 s\u0323\u0307",
        'quotes " and \\ and\nlines\tand \u0001',
    ],
)
def test_any_text_comes_back_unchanged(quick: None, message: str) -> None:
    """SetCallback: any Unicode passes unchanged."""

    async def conversation(client: Client) -> None:
        await put(client, message, 1, repeat_count=2)
        assert await logged(client, 2) == [message, message]
        assert notes(await client.call("echo", text="x"))[0].startswith(f"[callback 0 due 0 s ago] {message}")
        await put(client, message)
        assert rows()[0]["message"] == message
        cancelled = await client.call("SetCallback", action="cancel", callback_id=0)
        assert cancelled.text == f'Cancelled callback slot 0: "{message}"'

    run(conversation)


def test_fires_that_pile_up_do_not_flood_a_result() -> None:
    async def conversation(client: Client) -> None:
        await shown(client)
        await put(client, "new")  # one more, in a slot that an old one had
        told: list[str] = []
        sizes = []
        while found := notes(await client.call("echo", text="x")):
            told += found
            sizes.append(sum(map(len, found)))
        assert max(sizes) <= 4000
        assert len(told) == 4  # the others came with the two results before
        assert all(text.endswith("\n[it fired 2 times]") for text in told)
        assert [row["message"] for row in settled(1)] == ["new"]

    for slot in range(8):
        left_behind(f"{slot}" * 1500, slot=slot, fires_left=0, undelivered=2, fired_at=time.time())
    run(conversation)


def test_notes_cost_nothing_while_there_are_none(quick: None) -> None:
    async def conversation(client: Client) -> None:
        assert app._note is None
        await put(client, "x", 1, repeat_count=1)
        await logged(client, 1)
        assert app._note is not None
        await client.call("echo", text="x")
        await until(lambda: app._note is None)

    app = new_server()
    run(conversation, app=app)

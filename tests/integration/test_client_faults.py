"""The client before servers that misbehave: each fault is one named error for the calls concerned, the others
go on, nothing hangs, and no process stays behind."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections.abc import Callable
from typing import Any

import pytest

from fastrpc import (
    Client,
    ClientError,
    ConnectionLost,
    InvalidAnswer,
    RemoteError,
    RequestTimeout,
)
from fastrpc.client import stdio
from fastrpc.processes import server_process

SERVER = os.path.join(os.path.dirname(os.path.dirname(__file__)), "support", "faulty_server.py")
LIMIT = 0.3
"""For what is never answered."""
LONG = 60.0


def command(fault: str, *when: str) -> list[str]:
    return [sys.executable, SERVER, fault, *when]


async def bad(client: Client, limit: float = LONG) -> Any:
    return await client.call_tool("bad", {}, timeout_seconds=limit)


def both(fault: str, check: Callable[[Any], Any], *when: str, **options: Any) -> None:
    """Run a check in an event loop, where `check` gets a function that returns an awaitable, and without
    one."""

    async def run() -> None:
        async with Client(command(fault, *when), **options) as client:

            async def call(name: str, limit: float = LONG, **arguments: Any) -> Any:
                return await client.call_tool(name, arguments, timeout_seconds=limit)

            await check(call)

    asyncio.run(asyncio.wait_for(run(), LONG))
    with Client.sync(command(fault, *when), **options) as client:

        async def call(name: str, limit: float = LONG, **arguments: Any) -> Any:
            return client.call_tool(name, arguments, timeout_seconds=limit)

        coroutine = check(call)
        with pytest.raises(StopIteration):
            coroutine.send(None)


async def still_serves(call: Any) -> None:
    assert (await call("good", text="here")).text == "here"


@pytest.mark.parametrize(
    ("fault", "expected"),
    [("rubbish", "ok"), ("twice", "first"), ("floods", "after the flood")],
)
def test_what_is_no_answer_is_skipped_and_the_call_has_its_own(fault: str, expected: str) -> None:
    async def check(call: Any) -> None:
        assert (await call("bad")).text == expected
        await still_serves(call)

    both(fault, check)


@pytest.mark.parametrize("fault", ["silent", "wrong-id"])
def test_a_call_that_is_not_answered_ends_at_its_time_limit_and_the_others_go_on(fault: str) -> None:
    async def check(call: Any) -> None:
        says = fault == "wrong-id"
        for limit in (LIMIT, 3.0, 20.0):  # what it says must come, which takes long on a busy machine
            with pytest.raises(RequestTimeout, match=rf"tools/call: no answer within {limit:g} s") as caught:
                await call("bad", limit)
            if ("it sent an invalid message" in str(caught.value)) is says:
                break
        else:
            pytest.fail(str(caught.value))
        await still_serves(call)

    both(fault, check)


def test_a_line_over_the_limit_fails_the_calls_that_wait_at_once() -> None:
    async def check(call: Any) -> None:
        with pytest.raises(
            InvalidAnswer, match="tools/call: the server sent a line of more than 67108864 bytes"
        ):
            await call("bad")
        await still_serves(call)

    both("huge", check)


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ("no-result", "tools/call: the answer cannot be read: neither a result nor an error"),
        ("no-content", "content: expected an array, got None"),
        ("wrong-content", "content: expected blocks with a type"),
    ],
)
def test_a_result_that_is_none_fails_its_call_alone(fault: str, words: str) -> None:
    async def check(call: Any) -> None:
        with pytest.raises(InvalidAnswer, match=words):
            await call("bad")
        await still_serves(call)

    both(fault, check)


@pytest.mark.parametrize(
    ("fault", "words", "code"),
    [
        ("dies-in-a-line", "exit code 7", 7),
        ("exits", "exit code 3", 3),
        ("killed", "signal 9", -9),
    ],
)
def test_a_server_that_ends_fails_what_is_in_flight_with_how_it_ended(
    fault: str, words: str, code: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_process, "EOF_SECONDS", 20.0)

    async def check(call: Any) -> None:
        await still_serves(call)
        with pytest.raises(ConnectionLost, match=words) as caught:
            await call("bad")
        assert caught.value.exit_code == code
        if fault == "dies-in-a-line":
            assert caught.value.stderr == "out of cheese"
            assert "out of cheese" in str(caught.value)
        if fault == "exits":
            assert "supersecretvalue" not in str(caught.value) + caught.value.stderr
        with pytest.raises(ConnectionLost, match=words):  # and so does every call behind it
            await call("good", text="here")

    both(fault, check)


CLOSING = {
    "closes-input": "its input",
    "closes-output": "its output",
    "closes-both": "its input and its output",
}


def closed(fault: str) -> str:
    return f"the connection to the server {sys.executable} is lost: it closed {CLOSING[fault]} and still runs"


@pytest.mark.parametrize("fault", CLOSING)
@pytest.mark.parametrize("when", ["call", "line", "between"])
def test_a_server_that_closes_a_pipe_and_runs_on_fails_its_calls_at_once(fault: str, when: str) -> None:
    async def check(call: Any) -> None:
        if when == "between":
            await still_serves(call)
        for _ in range(2):
            with pytest.raises(ConnectionLost) as caught:
                await call("bad", text="x" * (1024 * 1024 if when == "line" else 1))
            assert (str(caught.value), caught.value.exit_code) == (closed(fault), None)

    both(fault, check, when)


@pytest.mark.parametrize("fault", CLOSING)
def test_a_server_that_closes_a_pipe_before_it_has_answered_initialize_is_named(fault: str) -> None:
    async def connect() -> None:
        async with Client(command(fault, "start"), version="2025-11-25", start_seconds=LONG):
            raise AssertionError("connected")

    with pytest.raises(ConnectionLost) as caught:
        asyncio.run(asyncio.wait_for(connect(), LONG))
    assert str(caught.value) == closed(fault)
    with pytest.raises(ConnectionLost) as caught:
        Client.sync(command(fault, "start"), start_seconds=LONG).connect()
    assert str(caught.value) == closed(fault)


@pytest.mark.parametrize("fault", CLOSING)
def test_all_calls_fail_alike_when_a_server_closes_a_pipe_and_the_next_one_starts_it_again(
    fault: str,
) -> None:
    async def run() -> None:
        async with Client(command(fault), restart=True) as client:
            for _ in range(2):
                calls = [asyncio.ensure_future(bad(client)) for _ in range(256)]
                errors = await asyncio.gather(*calls, return_exceptions=True)
                assert {str(error) for error in errors} == {closed(fault)}
                assert (await client.call_tool("good", {"text": "here"})).text == "here"

    asyncio.run(asyncio.wait_for(run(), LONG))


def test_an_output_that_a_child_of_the_server_still_holds_may_bring_an_answer_until_the_time_limit() -> None:
    async def run() -> None:
        client = Client(command("held-output"))
        await client.connect()
        process: Any = client._transport.process  # type: ignore[union-attr]
        with pytest.raises(RequestTimeout):
            await bad(client, LIMIT)
        await client.close()
        assert process.gone.done()

    asyncio.run(asyncio.wait_for(run(), LONG))


def test_all_that_is_in_flight_fails_when_the_server_ends() -> None:
    async def run() -> None:
        async with Client(command("silent")) as client:
            calls = [asyncio.ensure_future(bad(client)) for _ in range(50)]
            await still_serves(lambda name, **arguments: client.call_tool(name, arguments))
            await client.close()
            errors = await asyncio.gather(*calls, return_exceptions=True)
            assert [type(error) for error in errors] == [ConnectionLost] * 50

    asyncio.run(asyncio.wait_for(run(), LONG))


def test_a_server_that_never_reads_stops_no_one_and_takes_no_more_than_so_much_memory() -> None:
    async def run() -> None:
        async with Client(command("never-reads"), version="2025-11-25") as client:
            text = "x" * 1024 * 1024
            calls = [
                asyncio.ensure_future(client.call_tool("good", {"text": text}, timeout_seconds=LIMIT))
                for _ in range(100)
            ]
            errors = await asyncio.gather(*calls, return_exceptions=True)
            kinds = [type(error) for error in errors]
            assert set(kinds) == {RequestTimeout, ClientError}
            assert "does not read" in str(errors[-1])

    asyncio.run(asyncio.wait_for(run(), LONG))
    words = r"no answer within 0\.3 s; it has not read 9[0-9]{2},[0-9]{3} bytes"
    silent = Client.sync(command("never-reads"), version="2025-11-25")
    with silent as client, pytest.raises(RequestTimeout, match=words):
        client.call_tool("good", {"text": "x" * 1024 * 1024}, timeout_seconds=LIMIT)


def test_a_server_that_reads_nothing_for_long_is_logged_and_in_the_end_lost(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(stdio, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(stdio, "STALLED_SECONDS", 0.5)

    async def run() -> None:
        async with Client(command("never-reads"), version="2025-11-25") as client:
            with pytest.raises(ConnectionLost, match=r"is lost: it has not read its input for 0\.5 s"):
                await client.call_tool("good", {"text": "x" * 1024 * 1024}, timeout_seconds=LONG)

    asyncio.run(asyncio.wait_for(run(), LONG))
    said = [record.getMessage() for record in caplog.records if "has not read" in record.getMessage()]
    assert len(said) == 1
    assert re.fullmatch(r"the server .* has not read its input for 0\.05 s: [0-9,]{6,9} bytes wait", said[0])


def test_a_server_that_does_not_start_in_time_is_ended() -> None:
    client = Client.sync(command("never-starts"), start_seconds=LIMIT)
    with pytest.raises(RequestTimeout, match="initialize"):
        client.connect()


def test_a_program_that_is_not_there_is_named() -> None:
    client = Client.sync(["/no-such-program"], stderr=False)
    with pytest.raises(ConnectionLost, match=r"no-such-program.*exit code 127"):
        client.connect()


@pytest.mark.parametrize(
    ("members", "words"),
    [
        ({"structuredContent": {"amount": 5}}, None),
        ({"structuredContent": {"amount": "five"}}, r"priced: structuredContent\['amount'\]"),
        ({"structuredContent": {}}, "priced: structuredContent"),
        ({}, "structuredContent: missing"),
        ({"isError": True}, None),
    ],
)
def test_a_result_that_breaks_its_own_schema_is_refused_once_the_tool_is_known(
    members: dict[str, Any], words: str | None
) -> None:
    with Client.sync(command("none")) as client:
        assert client.call_tool("priced", members).text == "?"
        assert [tool.name for tool in client.list_tools()] == ["good", "bad", "priced"]
        if words is None:
            assert client.call_tool("priced", members).text == "?"
        else:
            with pytest.raises(InvalidAnswer, match=words):
                client.call_tool("priced", members)


def test_no_process_stays_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_process, "EOF_SECONDS", 0.1)

    async def run(fault: str) -> int:
        client = Client(command(fault))
        await client.connect()
        process: Any = client._transport.process  # type: ignore[union-attr]
        try:
            await bad(client, LIMIT)
        except ClientError:
            pass
        await client.close()
        assert process.gone.done()
        return int(process.pid)

    for fault in ("silent", "closes-input", "closes-output", "exits"):
        assert asyncio.run(asyncio.wait_for(run(fault), LONG)) == 0


def test_a_server_that_ended_is_started_again_if_that_is_wished() -> None:
    async def run() -> None:
        async with Client(command("exits"), restart=True) as client:
            for _ in range(3):
                assert (await client.call_tool("good", {"text": "here"})).text == "here"
                with pytest.raises(ConnectionLost):
                    await bad(client)

    asyncio.run(asyncio.wait_for(run(), LONG))
    with Client.sync(command("exits"), restart=True) as client:
        for _ in range(2):
            assert client.call_tool("good", {"text": "here"}).text == "here"
            with pytest.raises(ConnectionLost):
                client.call_tool("bad", {})


def test_an_error_of_the_server_has_its_code() -> None:
    with Client.sync(command("none")) as client:
        with pytest.raises(RemoteError, match="no method resources/list") as caught:
            client.list_resources()
        assert caught.value.code == -32601


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (
            ["sh x.py --flag"],
            "'sh x.py --flag' does not exist; arguments belong in args: command 'sh', args ",
        ),
        (["no-such-program x"], "'no-such-program x' does not exist (exit code 127)"),
        (["./nowhere/x"], "'./nowhere/x' does not exist (exit code 127)"),
        (["sh", "-c", "exit 127"], "it ended with exit code 127"),
        (
            [" sh "],
            "' sh ' does not exist; without blanks and quotation marks around it: 'sh'",
        ),
        (["'sh' -c x"], "does not exist; arguments belong in args: command 'sh', args ['-c', 'x']"),
        (["/etc"], "the command '/etc' is a folder (exit code 126)"),
        (
            ["/etc/passwd"],
            "the command '/etc/passwd' is not executable: make it so (chmod +x), or name ",
        ),
        (["sh", "-c", "exit 126"], "it ended with exit code 126"),
    ],
)
def test_a_command_that_does_not_exist_is_named_so(command: list[str], said: str) -> None:
    async def connect() -> None:
        async with Client(command):
            raise AssertionError("connected")

    with pytest.raises(ConnectionLost) as caught:
        asyncio.run(connect())
    assert said in str(caught.value)

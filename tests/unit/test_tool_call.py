"""What `call_tool` returns: a coroutine to whoever awaits it, a future to the task that waits."""

from __future__ import annotations

import asyncio
import sys
import warnings
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import pytest

from fastrpc import Client
from fastrpc._core.client_stream import ClientStream
from fastrpc.errors import ArgumentError, ConnectionLost, RequestTimeout

SERVER = """
import json, sys
def say(id, result):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}) + "\\n")
    sys.stdout.flush()
held = []
for line in sys.stdin:
    message = json.loads(line)
    method, id = message["method"], message.get("id")
    if method == "initialize":
        say(id, {"protocolVersion": message["params"]["protocolVersion"],
                 "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}})
    elif method == "notifications/cancelled":
        held.append("cancelled")
    elif method == "tools/call":
        name, arguments = message["params"]["name"], message["params"]["arguments"]
        if name == "hold":
            held.append(id)
        elif name == "release":
            ids, held = held, []
            sys.stdout.write("".join(json.dumps({"jsonrpc": "2.0", "id": each, "result": {
                "content": [{"type": "text", "text": str(each)}]}}) + "\\n" for each in [*ids, id]))
            sys.stdout.flush()
        elif name == "said":
            say(id, {"content": [{"type": "text", "text": " ".join(map(str, held))}]})
"""


@asynccontextmanager
async def connected(**options: Any) -> AsyncIterator[Client]:
    command = [sys.executable, "-c", SERVER]
    async with Client(command, version="2025-11-25", **options) as client:
        yield client


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Any:
    """Runs a coroutine in a new event loop of either kind."""
    if request.param == "uvloop":
        return pytest.importorskip("uvloop").run
    return asyncio.run


def test_a_call_is_sent_when_it_is_first_awaited(run: Any) -> None:
    async def main() -> None:
        async with connected() as client:
            call = client.call_tool("hold")
            assert isinstance(call, Coroutine)
            assert not asyncio.isfuture(call)
            assert (await client.call_tool("said")).text == ""
            task = asyncio.create_task(call)
            await asyncio.sleep(0)
            assert "Client.call_tool" in repr(task)
            assert (await client.call_tool("said")).text != ""
            await client.call_tool("release")
            await task

    run(main())


def test_a_call_that_is_never_awaited_is_warned_of() -> None:
    client = Client(["unused"])
    with pytest.warns(RuntimeWarning, match="call_tool' was never awaited"):
        client.call_tool("echo")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        call: Any = client.call_tool("echo")
        call.close()
        del call


def test_a_call_can_be_awaited_once_only(run: Any) -> None:
    async def main() -> None:
        async with connected() as client:
            call: Any = client.call_tool("said")
            await call
            with pytest.raises(RuntimeError, match="already awaited"):
                await call
            waiting: Any = client.call_tool("hold")
            task = asyncio.create_task(waiting)
            await asyncio.sleep(0)
            with pytest.raises(RuntimeError, match="being awaited already"):
                await waiting
            await client.call_tool("release")
            await task

    run(main())


def test_calls_may_be_gathered_shielded_and_limited_like_any_coroutine(run: Any) -> None:
    async def main() -> None:
        async with connected() as client:
            first = await asyncio.gather(client.call_tool("said"), client.call_tool("said"))
            assert [result.text for result in first] == ["", ""]
            assert (await asyncio.shield(client.call_tool("said"))).text == ""
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.call_tool("hold"), 0.05)
            assert "cancelled" in (await client.call_tool("said")).text

    run(main())


@pytest.mark.parametrize("way", ["task", "closed", "thrown"])
def test_the_server_is_notified_of_a_call_that_is_given_up(run: Any, way: str) -> None:
    async def main() -> None:
        async with connected() as client:
            call: Any = client.call_tool("hold")
            if way == "task":
                task = asyncio.create_task(call)
                await asyncio.sleep(0)
                task.cancel("enough")
                with pytest.raises(asyncio.CancelledError):
                    await task
            else:
                call.send(None)
                if way == "closed":
                    call.close()
                else:
                    with pytest.raises(ValueError, match="mine"):
                        call.throw(ValueError("mine"))
            assert (await client.call_tool("said")).text.split()[-1] == "cancelled"

    run(main())


def test_a_cancelled_call_does_not_take_the_result_that_comes_nevertheless(run: Any) -> None:
    async def main() -> None:
        async with connected() as client:
            held = [asyncio.create_task(client.call_tool("hold")) for _ in range(2)]
            await client.call_tool("said")
            release = asyncio.create_task(client.call_tool("release"))
            await asyncio.sleep(0)  # sent before the cancellation is
            held[0].cancel()
            ends = await asyncio.gather(*held, release, return_exceptions=True)
            assert isinstance(ends[0], asyncio.CancelledError)
            assert [end.text.isdigit() for end in ends[1:]] == [True, True]  # type: ignore[union-attr]

    run(main())


def test_every_task_goes_on_in_its_own_context(run: Any) -> None:
    name: ContextVar[int] = ContextVar("name")

    async def main() -> None:
        async with connected() as client:

            async def holds(number: int) -> int:
                name.set(number)
                await client.call_tool("hold")
                task = asyncio.current_task()
                assert task is tasks[number]
                return name.get()

            tasks = [asyncio.create_task(holds(number)) for number in range(20)]
            await asyncio.sleep(0)
            await client.call_tool("release")
            assert await asyncio.gather(*tasks) == list(range(20))

    run(main())


def test_a_task_that_ends_the_program_leaves_the_others_their_results() -> None:
    loop = asyncio.new_event_loop()
    client = Client([sys.executable, "-c", SERVER], version="2025-11-25")
    loop.run_until_complete(client.connect())

    async def holds(number: int) -> str:
        result = await client.call_tool("hold")
        if number == 0:
            raise SystemExit(7)
        return result.text

    tasks = [loop.create_task(holds(number)) for number in range(3)]
    loop.run_until_complete(asyncio.sleep(0))
    release = loop.create_task(client.call_tool("release"))
    with pytest.raises(SystemExit):
        loop.run_until_complete(release)
    rest = loop.run_until_complete(asyncio.wait_for(asyncio.gather(*tasks[1:]), 30))
    assert [text.isdigit() for text in rest] == [True, True]
    assert isinstance(tasks[0].exception(), SystemExit)
    loop.run_until_complete(client.close())
    loop.close()


def test_a_task_may_close_the_client_that_has_just_resumed_it(run: Any) -> None:
    async def main() -> None:
        async with connected() as client:
            other = asyncio.create_task(client.call_tool("hold"))
            await asyncio.sleep(0)
            await client.call_tool("said")
            await client.close()
            with pytest.raises(ConnectionLost):
                await other

    run(main())


def test_a_call_that_fails_as_the_client_reconnects_raises_its_own_error(run: Any) -> None:
    async def main() -> None:
        async with connected() as client:
            task = asyncio.create_task(client.call_tool("hold"))
            await asyncio.sleep(0)
            stream = client._stream
            client._stream = ClientStream()  # not attached to the loop yet, as in the middle of `connect`
            stream.fail_all(lambda request: ConnectionLost("gone"))
            with pytest.raises(ConnectionLost, match="gone"):
                await task
            client._stream = stream

    run(main())


def test_a_tasks_time_limit_ends_its_call(run: Any) -> None:
    async def main() -> None:
        async with connected() as client:
            with pytest.raises(RequestTimeout):
                await client.call_tool("hold", timeout_seconds=0.05)
            assert (await client.call_tool("said")).text

    run(main())


def test_arguments_that_are_no_json_fail_their_call_alone(run: Any) -> None:
    async def main() -> None:
        async with connected() as client:
            with pytest.raises(ArgumentError, match=r"arguments\.of: expected a value with JSON, got object"):
                await client.call_tool("said", {"of": object()})
            assert (await client.call_tool("said")).text == ""

    run(main())


def test_a_task_of_another_kind_can_wait_for_a_call() -> None:
    async def main() -> str:
        asyncio.get_running_loop().set_task_factory(
            lambda loop, coroutine, **more: asyncio.tasks._PyTask(coroutine, loop=loop)  # type: ignore[attr-defined]
        )
        async with connected() as client:
            held = asyncio.create_task(client.call_tool("hold"))
            given_up = asyncio.create_task(client.call_tool("hold"))
            await asyncio.sleep(0)
            given_up.cancel()
            with pytest.raises(asyncio.CancelledError):
                await given_up
            await client.call_tool("release")
            return (await held).text

    assert asyncio.run(main()).isdigit()


def test_a_loop_that_was_closed_under_a_waiting_call_is_left_alone() -> None:
    loop = asyncio.new_event_loop()
    client = Client([sys.executable, "-c", SERVER], version="2025-11-25")
    loop.run_until_complete(client.connect())
    call: Any = client.call_tool("hold")
    call.send(None)
    loop.run_until_complete(client.close())
    loop.close()
    call.close()

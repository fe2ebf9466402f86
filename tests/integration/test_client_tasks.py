"""A client's tasks against real servers: in memory, over stdio and over HTTP, on both wires."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.child_processes import gone
from support.task_client import SESSION
from support.task_shop import EXTENSION, Shop
from support.waiting import SECONDS, until

from fastrpc import (
    CallResult,
    Client,
    ConnectionLost,
    Context,
    RemoteError,
    RequestTimeout,
    TaskCancelled,
    TasksUnsupported,
    ToolCallFailed,
)
from fastrpc.errors import Overloaded
from fastrpc.protocol.versions import STATELESS

on_both_wires = pytest.mark.parametrize("version", [SESSION, STATELESS])
over_processes = pytest.mark.parametrize("kind", ["stdio", "http"])


@pytest.fixture
def kind() -> str:
    return "memory"


@pytest.fixture
def shop(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    with ExitStack() as stack:
        yield Shop(tmp_path, kind, stack)


everywhere = pytest.mark.parametrize("kind", ["memory", "stdio", "http"])


def run(conversation: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(conversation(), SECONDS))


def by_its_message(params: dict[str, Any]) -> dict[str, Any]:
    return {"value": params["message"]}


# --- what a task is, and how it ends --------------------------------------------------------------------


@everywhere
@on_both_wires
def test_a_call_returns_a_task_at_once_and_its_result_later(shop: Shop, version: str) -> None:
    async def talk() -> None:
        async with shop.client(version) as client:
            task = await client.call_tool("build", {"go": shop.go, "what": "boat"}, task=True)
            assert (task.status, task.is_done, bool(task.id)) == ("working", False, True)
            waiting = asyncio.ensure_future(task.wait())
            await until(lambda: task.status_message == "half of it")
            shop.let_go()
            result = await waiting
            assert (result.text, result.is_error) == ("built boat", False)
            assert (task.status, task.is_done) == ("completed", True)
            assert (await task.wait()).text == "built boat"

    run(talk)


@everywhere
@on_both_wires
def test_the_clients_handlers_answer_what_a_task_asks(shop: Shop, version: str) -> None:
    async def talk() -> None:
        asked: list[str] = []

        async def answer(params: dict[str, Any]) -> dict[str, Any]:
            asked.append(params["message"])
            await asyncio.sleep(0)
            return by_its_message(params)

        async with shop.client(version, on_elicit=answer) as client:
            task = await client.call_tool("ask", task=True)
            assert (await task.wait()).text == "First? Last? Again?"
            assert sorted(asked) == ["Again?", "First?", "Last?"]  # each once

    run(talk)


@on_both_wires
def test_a_question_before_the_task_is_answered_as_in_any_other_call(shop: Shop, version: str) -> None:
    async def talk() -> None:
        async with shop.client(version, on_elicit=by_its_message) as client:
            task = await client.call_tool("ask_first", task=True)
            assert (await task.wait()).text == "First?"

    run(talk)


@on_both_wires
def test_the_error_of_a_handler_is_raised_to_whoever_waits(shop: Shop, version: str) -> None:
    def fail(params: dict[str, Any]) -> dict[str, Any]:
        raise LookupError("the handler's own")

    async def talk() -> None:
        async with shop.client(version, on_elicit=fail) as client:
            task = await client.call_tool("ask", task=True)
            with pytest.raises(LookupError, match="the handler's own"):
                await task.wait()

    run(talk)


@on_both_wires
def test_a_task_ends_with_what_its_call_would_have_ended_with(shop: Shop, version: str) -> None:
    async def talk() -> None:
        async with shop.client(version) as client:
            await client.list_tools()
            task = await client.call_tool("price", task=True)
            assert await task.wait(as_type=int) == 7
            failed = await client.call_tool("price", {"fails": True}, task=True)
            result = await failed.wait()
            assert (result.is_error, result.text, failed.status) == (True, "sold out", "completed")
            with pytest.raises(ToolCallFailed, match="sold out"):
                await failed.wait(as_type=int)
            broken = await client.call_tool("broken", task=True)
            for _ in range(2):
                with pytest.raises(RemoteError, match="broken") as caught:
                    await broken.wait()
                assert caught.value.data == {"why": "asked for"}
            assert broken.status == "failed"

    run(talk)


@on_both_wires
def test_a_task_that_ended_with_the_error_of_a_busy_server_is_not_waited_for(
    shop: Shop, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fastrpc.client.tasks.PAUSES", ())  # nothing is attempted again

    @shop.app.tool(effect="read", task="allowed", after_seconds=0)
    async def busy(ctx: Context, asks: bool = False) -> str:
        """Fail as if another server were busy, perhaps after a question."""
        await asyncio.sleep(0.001)
        if asks:
            await ctx.elicit("Now?", str)
        raise Overloaded("the next server is busy")

    async def talk() -> None:
        async with shop.client(version, on_elicit=by_its_message) as client:
            for asks in (False, True):
                task = await client.call_tool("busy", {"asks": asks}, task=True)
                with pytest.raises(RemoteError, match="the next server is busy"):
                    await task.wait()
                assert task.status == "failed"

    run(talk)


@everywhere
@on_both_wires
def test_cancelling_a_task_ends_its_processes(shop: Shop, version: str) -> None:
    async def talk() -> int:
        async with shop.client(version) as client:
            path = shop.folder / "pid"
            task = await client.call_tool("child", {"pid_file": str(path)}, task=True)
            waiting = asyncio.ensure_future(task.wait())
            await until(path.exists)
            await client.task(task.id).cancel()
            with pytest.raises(TaskCancelled, match=task.id):
                await waiting
            await asyncio.get_running_loop().run_in_executor(None, gone, int(path.read_text()))
            await task.cancel()  # it has ended: nothing to do
            assert task.status == "cancelled"
            return int(path.read_text())

    assert run(talk)


@on_both_wires
def test_whoever_stops_waiting_leaves_the_task_as_it_is(shop: Shop, version: str) -> None:
    async def talk() -> None:
        async with shop.client(version) as client:
            task = await client.call_tool("build", {"go": shop.go}, task=True)
            with pytest.raises(RequestTimeout, match=f"{task.id} has not ended"):
                await task.wait(timeout_ms=50)
            waiting = asyncio.ensure_future(task.wait())
            await asyncio.sleep(0.05)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            assert not client._session.listening
            shop.let_go()
            assert (await task.wait()).text == "built ship"

    run(talk)


@everywhere
@on_both_wires
def test_a_task_is_iterated_change_by_change(shop: Shop, version: str) -> None:
    async def talk() -> None:
        async with shop.client(version) as client:
            task = await client.call_tool("build", {"go": shop.go}, task=True)
            seen = [(task.status, task.status_message)]
            if task.status_message:  # it came with the task
                shop.let_go()
            async for now in task:
                assert now is task
                seen.append((now.status, now.status_message))
                shop.let_go()
            assert seen[-1][0] == "completed"
            assert ("working", "half of it") in seen
            changes: list[str] = []
            await task.wait(on_change=lambda task: changes.append(task.status))
            assert changes == []  # it had ended

    run(talk)


# --- who decides ----------------------------------------------------------------------------------------


@everywhere
@on_both_wires
def test_a_call_that_was_answered_at_once_is_a_task_that_has_ended(shop: Shop, version: str) -> None:
    async def talk() -> None:
        async with shop.client(version) as client:
            task = await client.call_tool("plain", task=True)
            assert (task.id, task.status, task.is_done) == ("", "completed", True)
            assert (await task.wait()).text == "plain"
            await task.cancel()
            assert (await task.refresh()).status == "completed"

    run(talk)


@pytest.mark.parametrize("version", [SESSION, STATELESS, "2025-06-18"])
def test_a_server_without_tasks_is_not_called(version: str, shop: Shop) -> None:
    from fastrpc import Server

    app = Server("plain")
    calls: list[int] = []

    @app.tool(effect="read")
    def plain() -> str:
        """No task."""
        calls.append(1)
        return "plain"

    async def talk(target: Any) -> None:
        async with Client(target, version=version) as client:
            with pytest.raises(TasksUnsupported):
                await client.call_tool("plain", task=True)
            with pytest.raises(TasksUnsupported):
                await client.tasks()

    run(lambda: talk(app))
    assert calls == []
    if version == "2025-06-18":
        run(lambda: talk(shop.app))


def test_options_of_tasks_belong_to_tasks(shop: Shop) -> None:
    async def talk() -> None:
        async with shop.client() as client:
            with pytest.raises(TypeError, match="ttl_ms"):
                await client.call_tool("plain", ttl_ms=1)  # type: ignore[call-overload]
            with pytest.raises(TypeError, match="as_type"):
                await client.call_tool("plain", task=True, as_type=str)  # type: ignore[call-overload]
            with pytest.raises(ValueError, match="the id of a task"):
                client.task("")

    run(talk)


def test_a_client_that_declares_tasks_for_all_calls_waits_in_each(shop: Shop) -> None:
    async def talk() -> None:
        capabilities = {"extensions": {EXTENSION: {}}}
        async with shop.client(STATELESS, capabilities=capabilities) as client:
            assert (await client.call_tool("price")).text == "7"
            calling = asyncio.ensure_future(client.call_tool("build", {"go": shop.go}))
            await until(lambda: shop.runs)
            shop.let_go()
            assert (await calling).text == "built ship"
            path = shop.folder / "pid"
            calling = asyncio.ensure_future(client.call_tool("child", {"pid_file": str(path)}))
            await until(path.exists)
            calling.cancel()
            with pytest.raises(asyncio.CancelledError):
                await calling
            await asyncio.get_running_loop().run_in_executor(None, gone, int(path.read_text()))

    run(talk)


def test_the_time_limit_of_a_call_holds_for_the_task_that_it_becomes(shop: Shop) -> None:
    ended: list[str] = []

    @shop.app.tool(effect="read", task="allowed", after_seconds=0)
    async def endless() -> str:
        """Wait until it is cancelled."""
        try:
            await asyncio.sleep(3600)
        finally:
            ended.append("endless")
        return "never"

    async def talk() -> None:
        capabilities = {"extensions": {EXTENSION: {}}}
        async with shop.client(STATELESS, capabilities=capabilities) as client:
            await client.call_tool("price")  # opens the database, which may take a second
            with pytest.raises(RequestTimeout):
                await client.call_tool("endless", timeout_seconds=1)
            await until(lambda: ended)

    run(talk)


# --- the list, ids, and time to live --------------------------------------------------------------------


def test_tasks_are_listed_from_all_pages(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.methods.tasks.PAGE", 2)

    async def talk() -> None:
        async with shop.client(SESSION) as client:
            ids = [(await client.call_tool("price", task=True)).id for _ in range(5)]
            found = await client.tasks()
            assert [task.id for task in found] == ids[::-1]
            assert (await found[0].wait()).text == "7"

    run(talk)


def test_the_version_without_a_list_says_so(shop: Shop) -> None:
    async def talk() -> None:
        async with shop.client(STATELESS) as client:
            with pytest.raises(TasksUnsupported, match="no list of tasks"):
                await client.tasks()

    run(talk)


def test_a_time_to_live_is_asked_for_where_the_version_has_it(shop: Shop) -> None:
    async def talk() -> None:
        async with shop.client(SESSION) as client:
            assert (await client.call_tool("price", task=True, ttl_ms=60_000)).ttl_ms == 60_000
        async with shop.client(STATELESS) as client:
            assert (await client.call_tool("price", task=True, ttl_ms=60_000)).ttl_ms == 24 * 3600 * 1000

    run(talk)


@on_both_wires
def test_an_unknown_id_is_the_servers_error(shop: Shop, version: str) -> None:
    async def talk() -> None:
        async with shop.client(version) as client:
            task = client.task("unknown-id")
            assert task.status == ""
            for ask in (task.wait, task.refresh, task.cancel):
                with pytest.raises(RemoteError, match="unknown-id"):
                    await ask()

    run(talk)


@over_processes
@on_both_wires
def test_a_task_is_taken_up_by_another_client_of_the_same_caller(shop: Shop, version: str) -> None:
    async def talk() -> None:
        async with shop.client(version) as first, shop.client(version) as second:
            task = await first.call_tool("build", {"go": shop.go}, task=True)
            both = [asyncio.ensure_future(each.task(task.id).wait()) for each in (first, second)]
            await until(lambda: shop.runs)
            shop.let_go()
            assert [(await each).text for each in both] == ["built ship"] * 2

    run(talk)


def test_a_task_outlives_its_client_over_http(tmp_path: Path) -> None:
    async def talk(shop: Shop) -> None:
        async with shop.client() as client:
            id = (await client.call_tool("build", {"go": shop.go}, task=True)).id
        shop.let_go()
        async with shop.client() as client:
            assert (await client.task(id).wait()).text == "built ship"

    with ExitStack() as stack:
        shop = Shop(tmp_path, "http", stack)
        run(lambda: talk(shop))


# --- a server that ends meanwhile -----------------------------------------------------------------------


@on_both_wires
def test_over_stdio_the_end_of_the_server_is_an_error_that_names_the_task(
    tmp_path: Path, version: str
) -> None:
    async def talk(shop: Shop) -> None:
        async with shop.client(version) as client:
            task = await client.call_tool("build", {"go": shop.go}, task=True)
            waiting = asyncio.ensure_future(task.wait())
            await until(lambda: shop.runs)
            os.kill(shop.runs[0], signal.SIGKILL)
            with pytest.raises(ConnectionLost, match=task.id) as caught:
                await waiting
            assert caught.value.exit_code == -signal.SIGKILL
        shop.let_go()
        async with shop.client(version) as client:  # the next server takes the task over
            assert (await client.task(task.id).wait()).text == "built ship"

    with ExitStack() as stack:
        shop = Shop(tmp_path, "stdio", stack)
        run(lambda: talk(shop))


@on_both_wires
def test_a_client_that_restarts_its_server_waits_on(tmp_path: Path, version: str) -> None:
    async def talk(shop: Shop) -> None:
        async with shop.client(version, restart=True) as client:
            task = await client.call_tool("build", {"go": shop.go}, task=True)
            waiting = asyncio.ensure_future(task.wait())
            await until(lambda: shop.runs)
            os.kill(shop.runs[0], signal.SIGKILL)
            await until(lambda: len(shop.runs) == 2)
            shop.let_go()
            assert (await waiting).text == "built ship"

    with ExitStack() as stack:
        shop = Shop(tmp_path, "stdio", stack)
        run(lambda: talk(shop))


@on_both_wires
def test_over_http_a_task_is_waited_for_across_a_restart_of_its_server(tmp_path: Path, version: str) -> None:
    async def talk(shop: Shop) -> None:
        async with shop.client(version, restart=True) as client:
            task = await client.call_tool("build", {"go": shop.go}, task=True)
            waiting = asyncio.ensure_future(task.wait())
            await until(lambda: shop.runs)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, shop.kill)
            await asyncio.sleep(0.3)
            assert not waiting.done()
            await loop.run_in_executor(None, shop.start)
            await until(lambda: len(shop.runs) == 2)
            shop.let_go()
            assert (await waiting).text == "built ship"

    with ExitStack() as stack:
        shop = Shop(tmp_path, "http", stack)
        run(lambda: talk(shop))


@on_both_wires
def test_a_server_that_is_terminated_ends_its_tasks_before(tmp_path: Path, version: str) -> None:
    async def talk(shop: Shop) -> None:
        async with shop.client(version, restart=True) as client:
            task = await client.call_tool("build", {"go": shop.go}, task=True)
            await until(lambda: shop.runs)
            ending = shop.terminate()
            await until(lambda: not answers(shop))
            assert ending.poll() is None
            shop.let_go()
            await until(lambda: ending.poll() is not None)
            loop = asyncio.get_running_loop()
            await loop.run_in_executor(None, shop.start)
            assert (await task.wait()).text == "built ship"
            assert len(shop.runs) == 1

    with ExitStack() as stack:
        shop = Shop(tmp_path, "http", stack)
        shop.kill()
        shop.start(SECONDS)
        run(lambda: talk(shop))


def answers(shop: Shop) -> bool:
    """Whether the server over HTTP accepts connections."""
    try:
        socket.create_connection(("127.0.0.1", shop.port)).close()
    except OSError:
        return False
    return True


def test_a_server_that_stays_away_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.client.tasks.LOST_SECONDS", 0.3)

    async def talk(shop: Shop) -> None:
        async with shop.client() as client:
            task = await client.call_tool("build", {"go": shop.go}, task=True)
            waiting = asyncio.ensure_future(task.wait())
            await until(lambda: shop.runs)
            await asyncio.get_running_loop().run_in_executor(None, shop.kill)
            with pytest.raises(ConnectionLost, match=task.id):
                await waiting

    with ExitStack() as stack:
        shop = Shop(tmp_path, "http", stack)
        run(lambda: talk(shop))


# --- without an event loop ------------------------------------------------------------------------------


@everywhere
@on_both_wires
def test_the_client_without_a_loop_has_the_same(shop: Shop, version: str) -> None:
    options = {"version": version, "on_elicit": by_its_message, **shop.options}
    with Client.sync(shop.target, **options) as client:
        task = client.call_tool("build", {"go": shop.go}, task=True)
        assert (task.status, repr(task)) == ("working", f"<SyncRemoteTask {task.id}: working>")
        with pytest.raises(RequestTimeout):
            task.wait(timeout_ms=50)
        shop.let_go()
        assert [now.status for now in task][-1] == "completed"
        result: CallResult = client.task(task.id).wait()
        assert result.text == "built ship"
        changes: list[str] = []
        asking = client.call_tool("ask", task=True)
        assert asking.wait(on_change=lambda task: changes.append(task.status)).text == "First? Last? Again?"
        assert changes[-1] == "completed"
        assert client.call_tool("price", task=True).wait(as_type=int) == 7
        cancelled = client.call_tool("child", {"pid_file": str(shop.folder / "pid")}, task=True)
        cancelled.cancel()
        assert cancelled.refresh().status == "cancelled"
        if version == SESSION:
            assert task.id in [each.id for each in client.tasks()]
        else:
            with pytest.raises(TasksUnsupported):
                client.tasks()


def test_leaving_the_changes_of_a_task_ends_their_subscription(shop: Shop) -> None:
    with Client.sync(shop.target, version=STATELESS) as client:
        task = client.call_tool("build", {"go": shop.go}, task=True)
        shop.let_go()
        for _ in task:
            break
        assert client._client._session.listening == []


def test_a_server_in_memory_is_used_in_one_event_loop_after_the_other(shop: Shop) -> None:
    async def leave_one_running() -> str:
        async with shop.client() as client:
            task = await client.call_tool("build", {"go": shop.go}, task=True)
            await until(lambda: shop.runs)
            return task.id

    async def have_one() -> str:
        async with shop.client(on_elicit=by_its_message) as client:
            task = await client.call_tool("ask", task=True)
            return (await task.wait()).text

    run(leave_one_running)
    assert not shop.app.runtime.tasks._rows.is_open
    assert run(have_one) == run(have_one) == "First? Last? Again?"

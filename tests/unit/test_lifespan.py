"""The life of a server: entered before the first call, once; left at the end; failures told."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from support.stdio import serve
from support.waiting import eventually

from fastrpc import Context, Server
from fastrpc.engine import lifespan
from fastrpc.testing import Client


class Life:
    """A lifespan that notes what happens, and may be held up or fail."""

    def __init__(self, fails: bool = False) -> None:
        self.events: list[str] = []
        self.gate = asyncio.Event()
        self.gate.set()
        self.fails = fails

    @contextlib.asynccontextmanager
    async def __call__(self, server: Server) -> AsyncIterator[dict[str, Any]]:
        self.events.append(f"enter {server.name}")
        await self.gate.wait()
        if self.fails:
            raise ConnectionError("no database")
        try:
            yield {"pool": server.name}
        finally:
            await asyncio.sleep(0)
            self.events.append("leave")


def server_with(life: Any) -> Server:
    app = Server("t", lifespan=life)

    @app.tool
    async def waits(context: Context) -> str:
        return str(context.state["pool"])

    @app.tool(run="inline")
    def inline(text: str) -> str:
        life.events.append(threading.current_thread().name)
        return text

    @app.tool
    def threaded(context: Context) -> str:
        return str(context.state["pool"])

    return app


def run(conversation: Any) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, 30))


def test_it_is_entered_once_before_the_first_call_and_left_with_the_last_client() -> None:
    life = Life()
    app = server_with(life)

    async def conversation() -> None:
        async with Client(app) as first, Client(app) as second:
            await first.tools()
            assert life.events == []
            texts = await asyncio.gather(first.call("waits"), second.call("threaded"), first.call("waits"))
            assert [result.text for result in texts] == ["t", "t", "t"]
            assert life.events == ["enter t"]
        assert life.events == ["enter t", "leave"]
        assert app.runtime.state is None

    run(conversation())


def test_calls_wait_in_order_while_lists_and_handshakes_do_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.engine.plans.scope", None)  # a bridge of another test may be there
    life = Life()
    app = server_with(life)

    async def conversation() -> None:
        life.gate.clear()
        async with Client(app) as client:
            futures = [
                client.begin("tools/call", {"name": "inline", "arguments": {"text": f"{number}"}})[1]
                for number in range(3)
            ]
            await asyncio.sleep(0.01)
            assert len(await client.tools()) == 3
            assert life.events == ["enter t"]
            life.gate.set()
            results = await asyncio.gather(*futures)
            assert [result["content"][0]["text"] for result in results] == ["0", "1", "2"]
            assert life.events == ["enter t", "MainThread", "MainThread", "MainThread"]
            plan = app.runtime.plans.tools["inline"]
            assert plan.inline
            assert app.runtime.calls.count == 0
            await client.call("inline", text="plans are made anew")
            dispatcher = next(iter(app.runtime.dispatchers))
            dispatcher.begin = None  # from here on the connection calls it by itself
            assert (await client.call("inline", text="direct")).text == "direct"

    run(conversation())


def test_a_call_that_is_cancelled_while_it_waits_never_runs() -> None:
    life = Life()
    app = server_with(life)

    async def conversation() -> None:
        life.gate.clear()
        async with Client(app) as client:
            id, _ = client.begin("tools/call", {"name": "inline", "arguments": {"text": "a"}})
            await asyncio.sleep(0.01)
            client.cancel(id)
            life.gate.set()
            await client.call("waits")
            assert life.events == ["enter t"]
            assert app.runtime.calls.count == 0

    run(conversation())


def test_a_failure_while_entering_fails_every_call_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    life = Life(fails=True)
    app = server_with(life)

    async def conversation() -> None:
        async with Client(app) as client:
            for tool in ("waits", "threaded"):
                result = await client.call(tool)
                assert result.is_error
                assert result.text == (
                    "the server could not start, its lifespan failed: ConnectionError: no database"
                )
            assert app.runtime.calls.count == 0
            assert len(await client.tools()) == 3

    run(conversation())
    assert life.events == ["enter t"]
    assert "the lifespan failed at its start" in caplog.text


def test_it_is_entered_anew_for_clients_that_come_later() -> None:
    life = Life()
    app = server_with(life)

    async def conversation() -> None:
        async with Client(app) as client:
            await client.call("inline", text="a")

    run(conversation())
    run(conversation())
    assert life.events == ["enter t", "MainThread", "leave"] * 2


def test_a_function_that_is_not_a_context_manager_is_reported() -> None:
    async def forgotten(server: Server) -> AsyncIterator[None]:
        yield None

    app = Server("t", lifespan=forgotten)
    app.add_tool(lambda: "x", name="x")

    async def conversation() -> str:
        async with Client(app) as client:
            return str((await client.call("x")).text)

    assert "contextlib.asynccontextmanager" in run(conversation())


def test_leaving_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifespan, "LEAVE_SECONDS", 0.05)
    events = []

    @contextlib.asynccontextmanager
    async def slow(server: Server) -> AsyncIterator[None]:
        try:
            yield None
        finally:
            try:
                await asyncio.sleep(30)
            except asyncio.CancelledError:
                events.append("cancelled")
                raise

    app = Server("t", lifespan=slow)
    app.add_tool(lambda: "x", name="x")

    async def conversation() -> None:
        async with Client(app) as client:
            await client.call("x")
        assert events == ["cancelled"]

    asyncio.run(asyncio.wait_for(conversation(), 20))


STDIO = """
import asyncio, contextlib, sys
from fastrpc import Context, Server

@contextlib.asynccontextmanager
async def life(server):
    print("entered", file=sys.stderr, flush=True)
    try:
        yield "value"
    finally:
        await asyncio.sleep(0)
        print("left", file=sys.stderr, flush=True)

app = Server("t", lifespan=life)

@app.tool
def look(context: Context) -> str:
    return context.state

@app.tool
async def sleep(context: Context) -> str:
    try:
        print("working", file=sys.stderr, flush=True)
        await asyncio.sleep(30)
    finally:
        print("unwound with", context.state, file=sys.stderr, flush=True)

app.run()
"""


def test_over_stdio_it_is_left_after_the_calls_have_unwound() -> None:
    with serve(STDIO) as server:
        server.initialize()
        assert "entered" not in server.stderr
        assert server.call("look")["content"][0]["text"] == "value"
        server.send_message(
            {
                "jsonrpc": "2.0",
                "id": "s",
                "method": "tools/call",
                "params": {"name": "sleep", "arguments": {}},
            }
        )
        eventually(lambda: "working\n" in server.stderr)
        server.signal(15)
        assert server.wait() == 0
        said = [line for line in server.stderr.splitlines() if line]
        assert said == ["entered", "working", "unwound with value", "left"]


def test_over_stdio_without_a_call_it_is_never_entered() -> None:
    with serve(STDIO) as server:
        server.initialize()
        server.ask("tools/list")
        server.close_stdin()
        assert server.wait() == 0
        assert server.stderr.strip() == ""

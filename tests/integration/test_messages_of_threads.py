"""What the threads of a call send reaches the client before the answer, in the order in which it was sent."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest
from support.in_memory import SECONDS, every_version, with_client

from fastrpc import Context, Server, ToolError
from fastrpc.protocol.versions import STATELESS
from fastrpc.testing import Client

SERVER = """
import threading
from fastrpc import Context, Server

app = Server("t")

@app.tool(run="inline")
def logs(ctx: Context) -> str:
    thread = threading.Thread(target=lambda: ctx.log("of the thread"))
    thread.start()
    thread.join()
    return "done"

app.run()
"""


def in_a_thread(function: Callable[[], object]) -> None:
    """Call a function on another thread and wait for it here: the loop has no turn meanwhile."""
    thread = threading.Thread(target=function)
    thread.start()
    thread.join()


def server() -> Server:
    app = Server("t")

    def say(ctx: Context) -> None:
        in_a_thread(lambda: [ctx.log(f"line {number}") for number in range(3)])
        ctx.log("own")
        in_a_thread(lambda: ctx.progress(1, 2))

    @app.tool(run="inline")
    def at_once(ctx: Context) -> str:
        say(ctx)
        return "done"

    @app.tool(run="inline")
    def fails(ctx: Context) -> str:
        say(ctx)
        raise ToolError("after all")

    @app.tool(run="thread")
    def on_a_thread(ctx: Context) -> str:
        say(ctx)
        return "done"

    @app.tool
    async def first_step(ctx: Context) -> str:
        say(ctx)
        return "done"

    @app.tool
    async def later_step(ctx: Context) -> str:
        await asyncio.sleep(0)
        say(ctx)
        return "done"

    @app.tool
    async def waits_again(ctx: Context) -> str:
        await asyncio.sleep(0)
        say(ctx)
        await asyncio.sleep(0)
        return "done"

    @app.tool
    async def fails_late(ctx: Context) -> str:
        await asyncio.sleep(0)
        say(ctx)
        raise ToolError("after all")

    @app.resource("said://here")
    def resource(ctx: Context) -> str:
        say(ctx)
        return "done"

    return app


TOOLS = ("at_once", "fails", "on_a_thread", "first_step", "later_step", "waits_again", "fails_late")
SAID = ["line 0", "line 1", "line 2", "own", 1]


@pytest.mark.parametrize("name", [*TOOLS, "said://here"])
@every_version
def test_what_a_thread_says_comes_before_the_answer_in_order(name: str, version: str) -> None:
    async def conversation(client: Client) -> list[Any]:
        meta = {"progressToken": "p"}
        if version == STATELESS:
            meta["io.modelcontextprotocol/logLevel"] = "info"
        method, key = ("resources/read", "uri") if "://" in name else ("tools/call", "name")
        await client.request(method, {key: name, "_meta": meta})
        said = (message["params"] for message in client.notifications)
        return [params["progress"] if "progress" in params else params["data"] for params in said]

    assert with_client(server(), conversation, version) == SAID


def test_over_stdio_too_where_no_loop_has_begun() -> None:
    messages = [
        {
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-06-18",
                "capabilities": {},
                "clientInfo": {"name": "t", "version": "1"},
            },
        },
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/call", "params": {"name": "logs"}},
    ]
    done = subprocess.run(
        [sys.executable, "-c", SERVER],
        input="".join(json.dumps({"jsonrpc": "2.0", **message}) + "\n" for message in messages),
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=True,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line.get("method", line.get("id")) for line in lines] == [1, "notifications/message", 2]

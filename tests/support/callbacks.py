"""A server with SetCallback in memory, and what its callbacks have left in the state."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Awaitable, Callable
from typing import Any

from fastrpc.tools import _project
from fastrpc.tools.agent import _instances, _state
from fastrpc.tools.agent.set_callback import attach, set_callback

from fastrpc import Server
from fastrpc.testing import CallResult, Client

TICK = 0.05  # how long a second lasts where `quick` is asked for
LONG_AGO = 3600.0
WAITS_END: list[bool] = []
"""Holds something when calls of `wait` are to return."""


def new_server() -> Server:
    app = Server("test")
    app.add_tool(set_callback)

    @app.tool(run="inline")
    def echo(text: str) -> str:
        return text

    @app.tool
    async def wait() -> str:
        await until(lambda: bool(WAITS_END))
        return "waited"

    @app.tool
    def fail() -> None:
        raise RuntimeError("no")

    attach(app)
    return app


def run(
    conversation: Callable[[Client], Awaitable[Any]], level: str | None = "info", app: Server | None = None
) -> Any:
    """Have a conversation with a server, a new one unless it is given."""

    async def whole() -> Any:
        async with Client(app or new_server(), log_level=level) as client:
            return await asyncio.wait_for(conversation(client), 60)

    return asyncio.run(whole())


async def put(client: Client, message: str = "look", delay: int = 30, **arguments: Any) -> CallResult:
    return await client.call("SetCallback", action="set", message=message, delay_seconds=delay, **arguments)


async def shown(client: Client) -> str:
    return at_once((await client.call("SetCallback", action="list")).text)


def rows() -> list[dict[str, Any]]:
    with _state.reading() as database:
        return [dict(row) for row in database.execute("SELECT * FROM callbacks ORDER BY slot")]


def settled(count: int) -> list[dict[str, Any]]:
    """The rows once there are so many: what need not be waited for is written behind the answer."""
    deadline = time.monotonic() + 30
    while len(found := rows()) != count:
        assert time.monotonic() < deadline, found
        time.sleep(0.005)
    return found


async def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline
        await asyncio.sleep(0.005)


async def logged(client: Client, count: int) -> list[Any]:
    """The messages of callbacks that have been logged, once there are so many."""
    await until(lambda: len(client.logs) >= count)
    assert all(log["logger"] == "callback" and log["level"] == "info" for log in client.logs)
    return [log["data"] for log in client.logs]


def at_once(text: str) -> str:
    """The text as it is on a machine that is not busy, where no callback is reported seconds late."""
    return re.sub(r"(\[callback \d due )\d s ago", r"\g<1>0 s ago", text)


def notes(result: CallResult) -> list[str]:
    """The texts behind a result's own."""
    return [at_once(block["text"]) for block in result.content[1:]]


def left_behind(message: str = "left", **values: Any) -> None:
    """A row as a server that was killed leaves it, overdue by an hour unless told otherwise."""
    row = {
        "id": int.from_bytes(os.urandom(6), "big"),
        "instance": "1-dead",
        "project": _project.key(),
        "slot": 0,
        "message": message,
        "delay_seconds": 30,
        "fires_left": 3,
        "due_at": time.time() - LONG_AGO,
        "undelivered": 0,
        "fired_at": 0.0,
        **values,
    }
    os.makedirs(_instances.folder(), exist_ok=True)
    with open(os.path.join(_instances.folder(), row["instance"] + ".lock"), "w"):
        pass  # no one holds it
    with _state.changing() as database:
        names = ", ".join(row)
        marks = ", ".join(f":{name}" for name in row)
        database.execute(f"INSERT INTO callbacks ({names}) VALUES ({marks})", row)


def buried(instance: str) -> bool:
    return not os.path.exists(os.path.join(_instances.folder(), instance + ".lock"))

"""How long sessions over HTTP last: those that no one uses end by themselves, others do not.

Most go by a clock that the test sets, in a server in this process.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from support.http_server import InProcess, in_process
from support.http_sessions import TOKEN, Server, calling, http, refused, text_of
from support.protocol import SESSION_VERSIONS, message
from support.waiting import eventually, until

from fastrpc import Server as App

IDLE_SECONDS = 100.0


def test_a_session_that_is_not_used_ends_by_itself() -> None:
    with Server(session_idle_seconds=0.3) as server:
        opened = server.ask(http(body=message("initialize", {"protocolVersion": SESSION_VERSIONS[-1]}, 1)))
        eventually(lambda: server.counts()["sessions"] == 0)
        given = {"mcp_session_id": opened.headers["mcp-session-id"]}
        refused(server.ask(http(body=calling("echo", text="hi"), **given)), 404, -32001)
        assert server.counts()["dispatchers"] <= 2  # of the fast path, and of what asks here


class Timed:
    """A server in this process whose sessions go by a clock that the test sets. Its tool holds a call."""

    def __init__(self, server: InProcess, monkeypatch: pytest.MonkeyPatch) -> None:
        self.server = server
        self.sessions = server.application.sessions
        self.now = 1000.0
        monkeypatch.setattr("fastrpc.transports.http.sessions.monotonic", lambda: self.now)

    def pass_by(self, times: float) -> None:
        """Let so many times pass in which an idle session ends."""
        self.now += times * IDLE_SECONDS

    async def open(self) -> str:
        _, _, headers = await self.ask(message("initialize", {"protocolVersion": SESSION_VERSIONS[-1]}, 1))
        return str(headers[b"mcp-session-id"].decode())

    async def ask(self, body: Any, method: str = "POST", **headers: str) -> Any:
        given = {"accept": "application/json, text/event-stream", "authorization": f"Bearer {TOKEN}"}
        return await self.server.ask(method, "/mcp", body, **given, **headers)

    async def ping(self, id: str) -> int:
        status: int = (await self.ask(message("ping", id=1), mcp_session_id=id))[0]
        return status


def timed(monkeypatch: pytest.MonkeyPatch, app: App, scene: Callable[[Timed], Awaitable[None]]) -> None:
    async def main() -> None:
        async with in_process(app, token=TOKEN, session_idle_seconds=IDLE_SECONDS) as server:
            await scene(Timed(server, monkeypatch))

    asyncio.run(asyncio.wait_for(main(), 60))


def test_each_request_gives_a_session_its_time_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scene(at: Timed) -> None:
        session = await at.open()
        for _ in range(6):
            at.pass_by(0.9)
            assert await at.ping(session) == 200
        at.pass_by(1.1)
        assert await at.ping(session) == 404

    timed(monkeypatch, App("timed"), scene)


def test_a_session_in_which_something_is_done_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    app = App("timed")

    async def scene(at: Timed) -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        @app.tool
        async def hold() -> str:
            begun.set()
            await go.wait()
            return "held"

        calls, listens, idle = [await at.open() for _ in range(3)]
        call = asyncio.ensure_future(at.ask(calling("hold"), mcp_session_id=calls))
        listening = asyncio.ensure_future(at.ask(b"", "GET", mcp_session_id=listens))
        await begun.wait()
        await until(lambda: at.sessions._sessions[listens].busy)
        at.pass_by(3)
        at.sessions.end_idle()
        assert len(at.sessions) == 2
        assert [await at.ping(id) for id in (calls, listens, idle)] == [200, 200, 404]
        go.set()
        assert text_of((await call)[1]) == "held"
        listening.cancel()
        await until(lambda: not at.sessions._sessions[listens].busy)
        assert [await at.ping(id) for id in (calls, listens)] == [200, 200]
        at.pass_by(1.1)
        at.sessions.end_idle()
        assert len(at.sessions) == 0

    timed(monkeypatch, app, scene)

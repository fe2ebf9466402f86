"""Notifications and responses over HTTP to a server that accepts none: few at a time, and not for ever."""

from __future__ import annotations

import asyncio

import pytest
from support.scripted_client import call_one, with_script
from support.scripted_plays import SAID, Play, Sessions
from support.scripted_server import Asked, Saying, Scripted
from support.waiting import until

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

from fastrpc import Client, Server
from fastrpc.client.http import carrier
from fastrpc.client.http.carrier import MOST_POSTS
from fastrpc.errors import ClientError, ConnectionLost, RemoteError, RequestTimeout

PING = {"jsonrpc": "2.0", "id": "ping", "method": "ping"}


class Deaf(Sessions):
    """Accepts messages that have no answer once it `hears`; the one that ends the handshake at once, unless
    it `is_late`."""

    def __init__(self, is_late: bool = False) -> None:
        super().__init__()
        self.is_late = is_late
        self.hears = asyncio.Event()
        self.waiting = self.accepted = 0

    async def __call__(self, asked: Asked, say: Saying) -> None:
        is_request = asked.method != "POST" or ("id" in asked.message and asked.rpc)
        if not is_request and (self.is_late or asked.rpc != "notifications/initialized"):
            self.waiting += 1
            await self.hears.wait()
            self.waiting -= 1
            self.accepted += 1
        await super().__call__(asked, say)


@pytest.fixture
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Little is waited for."""
    monkeypatch.setattr(carrier, "POST_SECONDS", 0.2)


def test_notifications_that_are_not_accepted_have_few_connections_and_calls_are_answered() -> None:
    deaf = Deaf()

    async def conversation(client: Client, server: Scripted) -> None:
        for _ in range(3 * MOST_POSTS):
            client.notify("notifications/note")
        await until(lambda: deaf.waiting == MOST_POSTS)
        await call_one(client, server)
        assert deaf.waiting == MOST_POSTS
        deaf.hears.set()
        await client.flush()
        assert deaf.accepted == 3 * MOST_POSTS

    with_script(deaf, conversation)


@pytest.mark.usefixtures("patience")
def test_a_notification_that_is_not_accepted_is_given_up() -> None:
    async def conversation(client: Client, server: Scripted) -> None:
        client.notify("notifications/note")
        await client.flush()

    with_script(Deaf(), conversation)


@pytest.mark.usefixtures("patience")
def test_a_call_fails_whose_question_is_answered_in_vain() -> None:
    async def asks(asked: Asked, say: Saying) -> None:
        await say.stream()
        await say.event(PING)
        await asyncio.sleep(60)

    async def conversation(client: Client, server: Scripted) -> None:
        with pytest.raises(ConnectionLost, match=r"not accepted it within 0\.2 s"):
            await client.call_tool("one")

    deaf = Deaf()
    deaf.on_call = asks
    with_script(deaf, conversation)


def test_a_server_that_does_not_accept_the_end_of_the_handshake_is_given_up_in_its_time() -> None:
    async def conversation() -> None:
        async with Scripted(Deaf(is_late=True)) as server:
            with pytest.raises(RequestTimeout, match=r"initialized: not accepted within 0\.3 s"):
                await Client(server.url, version="2025-11-25", start_seconds=0.3).connect()

    asyncio.run(asyncio.wait_for(conversation(), 60))


def test_a_proxy_says_what_its_start_waits_for() -> None:
    async def no_endpoint(asked: Asked, say: Saying) -> None:
        if asked.method != "GET":
            await say.answer(405)
        else:
            await say.stream()
            await asyncio.Event().wait()

    async def conversation(play: Play, waits_for: str) -> None:
        async with Scripted(play) as server:
            app = Server.proxy(server.url, start_seconds=0.5)
            async with Client(app) as client:
                with pytest.raises(RemoteError, match=f"waiting for {waits_for}"):
                    await client.list_tools()

    for play, waits_for in (
        (Deaf(is_late=True), "the acceptance of notifications/initialized"),
        (no_endpoint, "the endpoint event of HTTP"),
    ):
        asyncio.run(asyncio.wait_for(conversation(play, waits_for), 60))


def test_cancellations_and_notifications_that_wait_are_bounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(carrier, "MOST_UNSENT", 10 * carrier.POST_BYTES)
    deaf = Deaf()

    async def hangs(asked: Asked, say: Saying) -> None:
        await asyncio.sleep(60)

    async def conversation(client: Client, server: Scripted) -> None:
        deaf.on_call = hangs
        for _ in range(30):
            with pytest.raises(RequestTimeout):
                await client.call_tool("one", timeout_seconds=0.01)
        await until(lambda: deaf.waiting > 5)
        with pytest.raises(ClientError, match="the server accepts nothing"):
            client.notify("notifications/note")
        deaf.hears.set()
        await client.flush()
        assert 5 < deaf.accepted < 15
        deaf.on_call = None
        assert (await client.call_tool("one")).raw == SAID

    with_script(deaf, conversation)

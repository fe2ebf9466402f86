"""The client of a URL without an event loop: answers are read from the socket, all else runs in a separate
loop. And what a client of a URL imports."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from support.scripted_plays import SAID, Play, Sessions, Stateless
from support.scripted_server import Asked, Saying, Scripted
from support.waiting import until

from fastrpc.client import Client, sync
from fastrpc.client.sync import SyncClient

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

from fastrpc.client.http import connection


def without_loop(play: Play, talk: Callable[[SyncClient, Scripted], object]) -> None:
    """Let a client without an event loop speak with a scripted server."""

    async def whole() -> None:
        async with Scripted(play) as server:

            def connected() -> None:
                with Client.sync(server.url) as client:
                    talk(client, server)

            await asyncio.get_running_loop().run_in_executor(None, connected)

    asyncio.run(asyncio.wait_for(whole(), 30))


@pytest.mark.parametrize("play", [Sessions, Stateless])
def test_an_answer_on_a_kept_connection_needs_no_loop(
    play: type[Sessions | Stateless], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "SHORT_SECONDS", 20.0)
    monkeypatch.setattr(sync, "LOOP_EVERY_SECONDS", 60.0)
    monkeypatch.setattr(Scripted, "keeps_alive", True)
    long = {"content": [{"type": "text", "text": "x" * 100_000}]}

    async def on_call(asked: Asked, say: Saying) -> None:
        await say.result(asked, long if asked.message["params"]["arguments"] else SAID)

    def talk(client: SyncClient, server: Scripted) -> None:
        assert (
            client.call_tool("one").text == "said"
        )  # the session's stream has taken the connection there was

        def refuse(coroutine: Any) -> None:
            coroutine.close()
            raise AssertionError("the loop was run")

        with monkeypatch.context() as patch:
            patch.setattr(client, "_run", refuse)
            assert client.call_tool("one").text == "said"
            assert client.call_tool("one", {"long": True}).text == "x" * 100_000
            assert client.call_tool("one").text == "said"

    server = play()
    server.on_call = on_call
    without_loop(server, talk)


def test_what_the_server_asks_on_its_stream_is_answered_while_a_call_waits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connection, "SHORT_SECONDS", 60.0)
    monkeypatch.setattr(Scripted, "keeps_alive", True)
    play = Sessions()
    streams: list[Saying] = []
    answered: list[Any] = []

    async def on_get(asked: Asked, say: Saying) -> None:
        await say.stream()
        streams.append(say)
        await until(lambda: answered)

    async def on_call(asked: Asked, say: Saying) -> None:
        if asked.message["params"]["arguments"]:
            await until(lambda: streams)
            await streams[0].event({"jsonrpc": "2.0", "id": "p", "method": "ping"})
            await until(lambda: answered)
        await say.result(asked, SAID)

    async def whole(asked: Asked, say: Saying) -> None:
        if asked.body and asked.message.get("id") == "p":
            answered.append(asked.message)
        await play(asked, say)

    def talk(client: SyncClient, server: Scripted) -> None:
        assert client.call_tool("one").text == "said"
        assert client.call_tool("one", {"ping": True}).text == "said"
        assert answered[0]["result"] == {}

    play.on_get, play.on_call = on_get, on_call
    without_loop(whole, talk)


def test_what_the_client_imports_is_its_own() -> None:
    """httpx and what it imports take longer than the rest of a start."""
    code = """
import asyncio, sys
sys.path.insert(0, sys.argv[1])
from support.scripted_client import call_one, with_script
from support.scripted_plays import Stateless
with_script(Stateless(), call_one)
print(sorted({"httpx", "httpcore", "anyio", "h11", "certifi", "urllib.request"} & set(sys.modules)))
"""
    tests = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    environment = {name: text for name, text in os.environ.items() if not name.lower().endswith("_proxy")}
    done = subprocess.run(
        [sys.executable, "-c", code, tests],
        env={**environment, "PYTHONPATH": os.path.dirname(tests)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr

"""Texts that a database of tasks cannot hold, or not whole: in requests, in what a tool says, in results."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from support.task_client import SESSION, TaskClient
from support.waiting import SECONDS

from fastrpc import Context, Server
from fastrpc.protocol.pagination import encode_cursor
from fastrpc.protocol.versions import STATELESS
from fastrpc.tasks import store

pytest_plugins = ["support.postgres"]
both_wires = pytest.mark.parametrize("version", [SESSION, STATELESS])
INVALID = -32602


def converse(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    version: str,
    talk: Callable[[TaskClient], Awaitable[Any]],
) -> None:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(folder))
    monkeypatch.setenv("FASTRPC_TASKS_DATABASE", url)
    app = Server("shop", version="1")

    @app.tool(effect="read", task="required")
    async def say(ctx: Context, text: str) -> str:
        """Say a text, and return it."""
        ctx.progress(1, 2, text)
        await asyncio.sleep(0.001)
        return text

    @app.tool(effect="read", task="required")
    async def price() -> str:
        """Return a text that is not in the arguments."""
        return "5 €"

    async def run() -> None:
        client = TaskClient(app, version=version)
        try:
            await talk(client)
        finally:
            client.close()
            await app.runtime.leave()

    asyncio.run(asyncio.wait_for(run(), SECONDS))


@both_wires
def test_a_message_with_a_character_of_no_database_is_kept_without_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: Any, version: str
) -> None:
    async def talk(client: TaskClient) -> None:
        ended = await client.ended(await client.task("say", text="a\0b"))
        assert (ended["status"], ended["statusMessage"]) == ("completed", "a\ufffdb")
        if version == STATELESS:
            assert ended["result"]["content"] == [{"type": "text", "text": "a\0b"}]

    converse(tmp_path, monkeypatch, database_url, version, talk)


@both_wires
def test_an_id_with_a_character_of_no_database_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database_url: Any, version: str
) -> None:
    async def talk(client: TaskClient) -> None:
        last = "tasks/result" if version == SESSION else "tasks/update"
        for method in ("tasks/get", "tasks/cancel", last):
            unknown = await client.error(method, {"taskId": "0" * 32, "inputResponses": {}})
            error = await client.error(method, {"taskId": "a\0", "inputResponses": {}})
            assert error == {**unknown, "message": unknown["message"].replace("0" * 32, "a\0")}
        if version == SESSION:
            for place in ("1.0 a\0", "1.0", "x 0"):
                error = await client.error("tasks/list", {"cursor": encode_cursor(0, place)})
                assert (error["code"], error["message"]) == (INVALID, "cursor: unreadable")

    converse(tmp_path, monkeypatch, database_url, version, talk)


@both_wires
def test_params_that_are_too_long_are_refused_by_their_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    async def talk(client: TaskClient) -> None:
        params = {"name": "say", "arguments": {"text": "x" * store.PARAMS_LIMIT}, "task": {}}
        error = await client.error("tools/call", params)
        assert error["code"] == INVALID
        assert error["message"].startswith("params: expected at most 4,194,304 characters")
        assert (await client.ended(await client.task("say", text="next")))["status"] == "completed"

    converse(tmp_path, monkeypatch, "", version, talk)


@both_wires
@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_a_task_ends_although_its_database_has_another_encoding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, postgres: Any, version: str, encoding: str
) -> None:
    """LATIN1 has no "€": the tool that returns it has run, so its task is over. SQL_ASCII keeps any bytes."""
    options = f"ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
    url = postgres.url(postgres.new_database(options))

    async def talk(client: TaskClient) -> None:
        assert (await client.ended(await client.task("say", text="é")))["status"] == "completed"
        ended = await client.ended(await client.task("price"))
        assert ended["status"] == ("failed" if encoding == "LATIN1" else "completed")
        if "error" in ended:
            assert ended["error"]["message"].endswith("a text that the server's database cannot hold")

    converse(tmp_path, monkeypatch, url, version, talk)

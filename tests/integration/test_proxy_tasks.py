"""Tools that make tasks, behind a proxy: it offers none, so its clients wait, or get a clear refusal."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.task_client import SESSION, TaskClient
from support.task_shop import TOKEN, Shop
from support.waiting import SECONDS

from fastrpc import Client, RemoteError, Server, TasksUnsupported
from fastrpc.protocol.versions import STATELESS

on_both_wires = pytest.mark.parametrize("version", [SESSION, STATELESS])


@pytest.fixture(params=["stdio", "http"])
def shop(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / "state"))
    with ExitStack() as stack:
        yield Shop(tmp_path, request.param, stack)


def proxy_of(shop: Shop) -> Server:
    if shop.kind == "http":
        return Server.proxy(shop.target, token=TOKEN)
    return Server.proxy(shop.target, env=shop.environment)


def run(conversation: Callable[[], Awaitable[Any]]) -> Any:
    return asyncio.run(asyncio.wait_for(conversation(), SECONDS))


@on_both_wires
def test_a_client_of_a_proxy_waits_for_the_call_of_a_tool_that_may_become_a_task(
    shop: Shop, version: str
) -> None:
    async def talk() -> None:
        shop.let_go()
        async with Client(proxy_of(shop), version=version) as client:
            assert (await client.call_tool("build", {"go": shop.go})).text == "built ship"
            with pytest.raises(TasksUnsupported):
                await client.call_tool("build", {"go": shop.go}, task=True)
            assert len(shop.runs) == 1
            assert all("execution" not in tool for tool in await client.list_tools())

    run(talk)


@on_both_wires
def test_a_tool_that_requires_tasks_is_refused_by_a_proxy(shop: Shop, version: str) -> None:
    async def talk() -> None:
        async with Client(proxy_of(shop), version=version) as client:
            try:
                result = await client.call_tool("price")
            except RemoteError as error:
                said = error.message
            else:  # a session has no code for a capability that is missing
                assert result.is_error
                said = result.text
            assert "price runs as a task only" in said

    run(talk)


@on_both_wires
def test_a_client_that_asks_a_proxy_for_a_task_all_the_same_gets_the_result(shop: Shop, version: str) -> None:
    async def talk() -> None:
        shop.let_go()
        app = proxy_of(shop)
        client = TaskClient(app, version=version)
        found = await client.call("build", go=shop.go)
        assert found["content"][0]["text"] == "built ship"
        assert "task" not in found
        assert found.get("resultType", "complete") == "complete"
        error = await client.error("tasks/get", {"taskId": "t"})
        assert error["code"] in (-32601, -32602), json.dumps(error)
        client.close()
        await app.runtime.leave()

    run(talk)

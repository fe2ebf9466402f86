"""The client of a URL before servers of the official SDK for Python, over each of its HTTP transports."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from support.remote_server import OFFICIAL, Remote

from fastrpc.client import Client
from fastrpc.errors import ToolCallFailed
from fastrpc.protocol.versions import LATEST_LEGACY, MODERN

for needed in ("mcp", "httpx", "uvicorn"):
    pytest.importorskip(needed, reason="the official server over HTTP is not installed: pip install mcp")
if importlib.util.find_spec("mcp.server.mcpserver") is None:
    pytest.skip("the official SDK is older than 2.0", allow_module_level=True)

MODES = ["session", "json", "stateless", "sse"]
started: dict[str, str] = {}
"""How each server was started, by its address."""


def all_but(*left_out: tuple[str, str | None]) -> Any:
    """All ways to start it, each with the latest version and the latest with sessions, but for some."""
    pairs = [(mode, version) for mode in MODES for version in (None, LATEST_LEGACY)]
    kept = [pair for pair in pairs if pair not in left_out]
    return pytest.mark.parametrize(("official", "version"), kept, indirect=["official"])


@pytest.fixture(scope="module")
def official(request: pytest.FixtureRequest) -> Iterator[Remote]:
    path = "/sse" if request.param == "sse" else "/mcp"
    source = OFFICIAL.replace("MODE", repr(request.param))
    with Remote(source, token=None, path=path) as remote:
        started[remote.url] = request.param
        yield remote


def run(conversation: Awaitable[Any]) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, 25))  # less than its `sleep` takes


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("official", MODES, indirect=True)
@pytest.mark.parametrize("version", [None, LATEST_LEGACY, "2025-06-18", "2025-03-26"])
def test_its_features_work(official: Remote, version: str | None) -> None:
    async def conversation() -> None:
        logs: list[Any] = []
        reports: list[Any] = []
        async with Client(official.url, version=version, on_log=logs.append, log_level="info") as client:
            latest = LATEST_LEGACY if started[official.url] == "sse" else MODERN
            assert client.version == (version or latest)
            assert client.instructions == "from the SDK"
            assert {"add", "work"} <= {tool.name for tool in await client.list_tools()}
            assert await client.call_tool("add", {"a": 3}, as_type=int) == 5
            with pytest.raises(ToolCallFailed):
                await client.call_tool("add", {"a": "x"}, as_type=int)
            assert (await client.read_resource("docs://guide")).text == "# read me"
            got = await client.get_prompt("review", {"language": "C"})
            assert got.messages[0]["content"]["text"] == "review C"
            assert (await client.call_tool("work", on_progress=reports.append)).text == "done"
            if started[official.url] != "json":  # which has no stream to send them on
                assert [report["progress"] for report in reports] == [1]
                assert [entry["data"] for entry in logs] == ["careful"]

    run(conversation())


@pytest.mark.parametrize("official", MODES, indirect=True)
def test_it_is_called_without_a_loop(official: Remote) -> None:
    with Client.sync(official.url) as client:
        assert client.call_tool("add", {"a": 3}).text == "5"
        assert [resource.uri for resource in client.list_resources()] == ["docs://guide"]


@pytest.mark.parametrize("official", ["session", "sse"], indirect=True)  # the others have no way to ask
def test_its_questions_are_answered(official: Remote) -> None:
    async def conversation() -> None:
        async with Client(official.url, version=LATEST_LEGACY, on_elicit={"name": "Bob"}) as client:
            assert (await client.call_tool("ask")).text == "accept Bob"

    run(conversation())


@all_but(("stateless", LATEST_LEGACY), ("json", None))  # there it does not know that a call is cancelled
def test_cancellation_reaches_it(official: Remote, version: str | None, tmp_path: Any) -> None:
    path, begun = tmp_path / "note", tmp_path / "note.begun"

    async def conversation() -> None:
        async with Client(official.url, version=version) as client:
            call = asyncio.ensure_future(client.call_tool("sleep", {"path": str(path)}))
            await until(begun.exists)
            call.cancel()
            await until(path.exists)
            assert (await client.call_tool("add", {"a": 3})).text == "5"

    run(conversation())


@all_but(("json", LATEST_LEGACY), ("stateless", LATEST_LEGACY))  # there it has no way to tell
def test_its_changes_are_heard(official: Remote, version: str | None) -> None:
    async def conversation() -> None:
        async with Client(official.url, version=version) as client, client.listen(tools=True) as changes:
            name = f"heard_{version or 'latest'}".replace("-", "_")
            await client.call_tool("grow", {"name": name})
            assert (await changes.next())["method"] == "notifications/tools/list_changed"
            assert name in {tool.name for tool in await client.list_tools()}

    run(conversation())

"""The proxy of a URL in front of servers of the official SDK for Python, over each of its HTTP transports."""

from __future__ import annotations

import asyncio
import importlib.util
from collections.abc import Iterator
from typing import Any

import pytest
from support.remote_server import OFFICIAL, Remote

from fastrpc import Server
from fastrpc.protocol.versions import LATEST_LEGACY, MODERN
from fastrpc.testing import Client

for needed in ("mcp", "httpx", "uvicorn"):
    pytest.importorskip(needed, reason="the official server over HTTP is not installed: pip install mcp")
if importlib.util.find_spec("mcp.server.mcpserver") is None:
    pytest.skip("the official SDK is older than 2.0", allow_module_level=True)

MODES = ["session", "json", "stateless", "sse"]
started: dict[str, str] = {}
"""How each server was started, by its address."""


def all_but(*modes: tuple[str, str | None]) -> Any:
    """All ways to start it, each with the latest version and the latest with sessions, but for some."""
    pairs = [(mode, version) for mode in MODES for version in (None, LATEST_LEGACY)]
    kept = [pair for pair in pairs if pair not in modes]
    return pytest.mark.parametrize(("official", "upstream"), kept, indirect=["official"])


@pytest.fixture(scope="module")
def official(request: pytest.FixtureRequest) -> Iterator[Remote]:
    path = "/sse" if request.param == "sse" else "/mcp"
    source = OFFICIAL.replace("MODE", repr(request.param))
    with Remote(source, token=None, path=path) as remote:
        started[remote.url] = request.param
        yield remote


@pytest.mark.parametrize("official", MODES, indirect=True)
@pytest.mark.parametrize("version", [LATEST_LEGACY, MODERN])
@pytest.mark.parametrize("upstream", [None, LATEST_LEGACY, "2025-03-26"])
def test_its_features_pass(official: Remote, upstream: str | None, version: str) -> None:
    async def conversation() -> None:
        app = Server.proxy(official.url, protocol_version=upstream)
        async with Client(app, version=version, log_level="info") as client:
            assert client.info["instructions"] == "from the SDK"
            assert {"add", "work"} <= {entry["name"] for entry in await client.tools()}
            assert (await client.call("add", a=3)).text == "5"
            contents = (await client.request("resources/read", {"uri": "docs://guide"}))["contents"]
            assert contents[0]["text"] == "# read me"
            got = await client.request("prompts/get", {"name": "review", "arguments": {"language": "C"}})
            assert got["messages"][0]["content"]["text"] == "review C"
            params = {"name": "work", "arguments": {}, "_meta": {"progressToken": "mine"}}
            assert (await client.request("tools/call", params))["content"][0]["text"] == "done"
            if started[official.url] != "json":
                assert [report["progress"] for report in client.progress] == [1]
                assert [entry["data"] for entry in client.logs] == ["careful"]

    asyncio.run(asyncio.wait_for(conversation(), 30))


@pytest.mark.parametrize("official", ["session", "sse"], indirect=True)  # the others have no way to ask
def test_its_questions_are_answered(official: Remote) -> None:
    async def conversation() -> None:
        app = Server.proxy(official.url, protocol_version=LATEST_LEGACY)
        async with Client(app, on_elicit={"name": "Bob"}) as client:
            assert (await client.call("ask")).text == "accept Bob"

    asyncio.run(asyncio.wait_for(conversation(), 30))


@all_but(("stateless", LATEST_LEGACY), ("json", None))  # there it does not know that a call is cancelled
def test_cancellation_reaches_it(official: Remote, upstream: str | None, tmp_path: Any) -> None:
    path, begun = tmp_path / "note", tmp_path / "note.begun"

    async def until(condition: Any) -> None:
        while not condition():
            await asyncio.sleep(0.01)

    async def conversation() -> None:
        async with Client(Server.proxy(official.url, protocol_version=upstream)) as client:
            id, _ = client.begin("tools/call", {"name": "sleep", "arguments": {"path": str(path)}})
            await until(begun.exists)
            client.cancel(id)
            await until(path.exists)

    asyncio.run(asyncio.wait_for(conversation(), 30))


@all_but(("json", LATEST_LEGACY), ("stateless", LATEST_LEGACY))  # there it has no way to tell
def test_its_changes_are_told(official: Remote, upstream: str | None) -> None:
    async def conversation() -> None:
        async with Client(Server.proxy(official.url, protocol_version=upstream)) as client:
            name = f"late_{upstream or 'latest'}".replace("-", "_")
            await client.call("grow", name=name)
            while not any("list_changed" in told["method"] for told in client.notifications):
                await asyncio.sleep(0.01)
            assert name in [entry["name"] for entry in await client.tools()]

    asyncio.run(asyncio.wait_for(conversation(), 30))

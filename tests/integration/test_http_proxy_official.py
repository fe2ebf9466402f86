"""The proxy of a URL in front of servers of the official SDK for Python, over each of its HTTP transports."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.official_http import MODES, all_but, mode_of, started_when_asked_for
from support.remote_server import Remote
from support.waiting import until

from fastrpc import Server
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import Client


@pytest.fixture(scope="module")
def started_in() -> Iterator[Callable[[str], Remote]]:
    with started_when_asked_for() as started:
        yield started


@pytest.fixture
def official(request: pytest.FixtureRequest, started_in: Callable[[str], Remote]) -> Remote:
    return started_in(request.param)


@pytest.mark.parametrize("official", MODES, indirect=True)
@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("upstream", [None, LATEST_SESSION_VERSION, "2025-03-26"])
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
            if mode_of(official) != "json":
                assert [report["progress"] for report in client.progress] == [1]
                assert [entry["data"] for entry in client.logs] == ["careful"]

    asyncio.run(asyncio.wait_for(conversation(), 30))


@pytest.mark.parametrize("official", ["session", "sse"], indirect=True)  # the others have no way to ask
def test_its_questions_are_answered(official: Remote) -> None:
    async def conversation() -> None:
        app = Server.proxy(official.url, protocol_version=LATEST_SESSION_VERSION)
        async with Client(app, on_elicit={"name": "Bob"}) as client:
            assert (await client.call("ask")).text == "accept Bob"

    asyncio.run(asyncio.wait_for(conversation(), 30))


@all_but("upstream", ("stateless", LATEST_SESSION_VERSION), ("json", None))  # they see no cancellation
def test_cancellation_reaches_it(official: Remote, upstream: str | None, tmp_path: Any) -> None:
    path, begun = tmp_path / "note", tmp_path / "note.begun"

    async def conversation() -> None:
        async with Client(Server.proxy(official.url, protocol_version=upstream)) as client:
            id, _ = client.begin("tools/call", {"name": "sleep", "arguments": {"path": str(path)}})
            await until(begun.exists)
            client.cancel(id)
            await until(path.exists)

    asyncio.run(asyncio.wait_for(conversation(), 30))


@all_but(
    "upstream", ("json", LATEST_SESSION_VERSION), ("stateless", LATEST_SESSION_VERSION)
)  # there it has no way to tell
def test_its_changes_are_reported(official: Remote, upstream: str | None) -> None:
    async def conversation() -> None:
        async with Client(Server.proxy(official.url, protocol_version=upstream)) as client:
            name = f"late_{upstream or 'latest'}".replace("-", "_")
            await client.call("grow", name=name)
            while not any("list_changed" in told["method"] for told in client.notifications):
                await asyncio.sleep(0.01)
            assert name in [entry["name"] for entry in await client.tools()]

    asyncio.run(asyncio.wait_for(conversation(), 30))

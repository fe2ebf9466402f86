"""The client of a URL before servers of the official SDK for Python, over each of its HTTP transports."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from support.official_http import MODES, all_but, mode_of, started_when_asked_for
from support.remote_server import Remote
from support.waiting import SECONDS, until

from fastrpc.client import Client
from fastrpc.errors import ToolCallFailed
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS


@pytest.fixture(scope="module")
def started_in() -> Iterator[Callable[[str], Remote]]:
    with started_when_asked_for() as started:
        yield started


@pytest.fixture
def official(request: pytest.FixtureRequest, started_in: Callable[[str], Remote]) -> Remote:
    return started_in(request.param)


def run(conversation: Awaitable[Any]) -> Any:
    return asyncio.run(asyncio.wait_for(conversation, SECONDS))  # less than its `sleep` takes


@pytest.mark.parametrize("official", MODES, indirect=True)
@pytest.mark.parametrize("version", [None, LATEST_SESSION_VERSION, "2025-06-18", "2025-03-26"])
def test_its_features_work(official: Remote, version: str | None) -> None:
    async def conversation() -> None:
        logs: list[Any] = []
        reports: list[Any] = []
        async with Client(official.url, version=version, on_log=logs.append, log_level="info") as client:
            latest = LATEST_SESSION_VERSION if mode_of(official) == "sse" else STATELESS
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
            if mode_of(official) != "json":  # which has no stream to send them on
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
        async with Client(official.url, version=LATEST_SESSION_VERSION, on_elicit={"name": "Bob"}) as client:
            assert (await client.call_tool("ask")).text == "accept Bob"

    run(conversation())


@all_but("version", ("stateless", LATEST_SESSION_VERSION), ("json", None))  # they see no cancellation
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


@all_but(
    "version", ("json", LATEST_SESSION_VERSION), ("stateless", LATEST_SESSION_VERSION)
)  # there it has no way to tell
def test_its_changes_are_heard(official: Remote, version: str | None) -> None:
    async def conversation() -> None:
        async with Client(official.url, version=version) as client, client.listen(tools=True) as changes:
            name = f"heard_{version or 'latest'}".replace("-", "_")
            await client.call_tool("grow", {"name": name})
            assert (await changes.next())["method"] == "notifications/tools/list_changed"
            assert name in {tool.name for tool in await client.list_tools()}

    run(conversation())

"""Time limits of a client's requests: which ask for progress, that it restarts them, and what bounds that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from support.in_memory import in_loop

from fastrpc import Client, Context, Server
from fastrpc.errors import RequestTimeout
from fastrpc.protocol.versions import VERSIONS

EVERY_SECONDS = 0.01


def reporting(seen: list[Any] | None = None) -> Server:
    app = Server("reports")

    @app.tool
    async def forever(ctx: Context) -> str:
        number = 0
        while True:
            number += 1
            await ctx.progress(number)
            await asyncio.sleep(EVERY_SECONDS)

    @app.tool
    async def asked(ctx: Context) -> bool:
        await ctx.progress(1, total=2)
        return ctx.wants_progress

    @app.resource("docs://asked")
    async def resource(ctx: Context) -> str:
        return str(ctx.wants_progress)

    @app.prompt
    async def prompt(ctx: Context) -> str:
        return str(ctx.wants_progress)

    return app


@pytest.mark.parametrize("version", VERSIONS)
def test_progress_restarts_a_limit_until_the_bound(version: str) -> None:
    async def run() -> None:
        for limit in (0.5, 4.0):  # a machine may be so busy that two reports are further apart
            options: dict[str, Any] = {"timeout_seconds": limit, "max_seconds": 2.4 * limit}
            async with Client(reporting(), version=version, **options) as client:
                with pytest.raises(RequestTimeout) as caught:
                    await client.call_tool("forever")
                assert (await client.call_tool("asked")).text == "true"
            if f"tools/call: no end within {2.4 * limit:g} s, though it reports pro" in str(caught.value):
                return
        pytest.fail(str(caught.value))

    in_loop(run)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("options", "asks"),
    [
        ({}, False),
        ({"timeout_seconds": 60}, True),
        ({"timeout_seconds": 0}, False),
        ({"on_progress": print}, True),
    ],
)
def test_calls_reads_and_prompts_ask_for_progress_where_it_is_wanted(
    version: str, options: dict[str, Any], asks: bool
) -> None:
    seen: list[Any] = []
    if "on_progress" in options:
        options = {"on_progress": seen.append}

    async def run() -> None:
        async with Client(reporting(), version=version, **options) as client:
            assert (await client.call_tool("asked")).text == str(asks).lower()
            assert (await client.call_tool("asked", {}, meta={"a/b": 1})).text == str(asks).lower()
            assert (await client.call_tool("asked", {}, timeout_seconds=60)).text == "true"
            assert (await client.read_resource("docs://asked")).text == str(asks)
            assert (await client.get_prompt("prompt")).text == str(asks)

    in_loop(run)
    if "on_progress" in options:
        assert [report["progress"] for report in seen] == [1, 1, 1]


@pytest.mark.parametrize("options", [{}, {"timeout_seconds": 60}])
def test_a_client_without_an_event_loop_asks_likewise(options: dict[str, Any]) -> None:
    with Client.sync(reporting(), **options) as client:
        assert client.call_tool("asked").text == str(bool(options)).lower()
        assert client.call_tool("asked", timeout_seconds=60).text == "true"

"""`Context.read_resource`: a tool reads a resource of its server, by the same function in the same place."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from typing import Any

from support.in_memory import every_version, with_client

from fastrpc import Context, Server, ToolError
from fastrpc.protocol.versions import STATELESS
from fastrpc.testing import Client


@every_version
def test_a_tool_reads_what_a_client_would(version: str) -> None:
    app = Server("t")
    app.add_resource("docs://guide.md", "# Guide")

    @app.resource("docs://{id}/data", run="inline")
    def inline(id: int) -> dict[str, int]:
        return {"id": id}

    @app.resource("docs://{id}/later")
    async def later(id: str, ctx: Context) -> bytes:
        await ctx.progress(1)
        return id.encode()

    @app.tool
    async def look(uri: str, ctx: Context) -> str:
        [found] = await ctx.read_resource(uri)
        return f"{found.uri} {found.mime_type} {found.content!r}"

    async def conversation(client: Client) -> None:
        assert (await client.call("look", uri="docs://guide.md")).text == (
            "docs://guide.md text/markdown '# Guide'"
        )
        assert (await client.call("look", uri="docs://5/data")).text == (
            "docs://5/data application/json '{\"id\":5}'"
        )
        told: list[Any] = []
        result = await client.call("look", told.append, uri="docs://a/later")
        assert result.text == "docs://a/later application/octet-stream b'a'"
        assert [report["progress"] for report in told] == [1]
        for uri, problem in (("docs://x/data", "expected integer"), ("docs://nothing", "not found")):
            result = await client.call("look", uri=uri)
            assert result.is_error
            assert problem in result.text

    with_client(app, conversation, version)


def test_what_a_resource_raises_reaches_the_tool_that_reads_it() -> None:
    app = Server("t")

    @app.resource("docs://broken")
    def broken() -> str:
        raise LookupError("no ink")

    @app.resource("docs://slow", timeout_seconds=0.02)
    async def slow() -> str:
        await asyncio.sleep(20)
        return ""

    @app.tool
    async def look(uri: str, ctx: Context) -> str:
        try:
            await ctx.read_resource(uri)
        except (LookupError, ToolError) as error:
            return f"{type(error).__name__}: {error}"
        return "read"

    async def conversation(client: Client) -> None:
        assert (await client.call("look", uri="docs://broken")).text == "LookupError: no ink"
        assert (
            await client.call("look", uri="docs://slow")
        ).text == "ToolError: slow did not end within 0.02 s"

    with_client(app, conversation, STATELESS)


def test_a_read_from_inside_runs_where_the_function_does_for_a_client() -> None:
    app = Server("t")

    def where() -> str:
        return threading.current_thread().name

    app.add_resource("where://thread", where, run="thread")
    app.add_resource("where://inline", where, run="inline")

    @app.tool
    async def look(uri: str, ctx: Context) -> str:
        return (await ctx.read_resource(uri))[0].text

    async def conversation(client: Client) -> None:
        assert (await client.call("look", uri="where://thread")).text.startswith("fastrpc-")
        assert (await client.call("look", uri="where://inline")).text == "MainThread"

    with_client(app, conversation, STATELESS)


def test_a_resource_of_a_mounted_server_is_read_with_that_servers_state() -> None:
    @contextlib.asynccontextmanager
    async def life(server: Server) -> AsyncIterator[str]:
        yield f"state of {server.name}"

    host, other = Server("host", lifespan=life), Server("other", lifespan=life)

    @other.resource("docs://state")
    async def state(ctx: Context) -> str:
        return str(ctx.state)

    host.mount(other)

    @host.tool
    async def look(ctx: Context) -> str:
        return f"{(await ctx.read_resource('docs://state'))[0].text}, {ctx.state}"

    async def conversation(client: Client) -> None:
        early = await client.call("look")
        assert early.is_error
        assert "lifespan" in early.text
        assert (await client.read("docs://state")).text == "state of other"
        assert (await client.call("look")).text == "state of other, state of host"

    with_client(host, conversation, STATELESS)

"""Subscriptions through a proxy: they reach the upstream server by its own URIs, and end there with the last
client that has one."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.http_server import HttpProcess

from fastrpc import RemoteError, Server
from fastrpc.compat.fastmcp import FastMCP, Namespace, ProxyClient, ProxyProvider, create_proxy
from fastrpc.protocol.versions import STATELESS
from fastrpc.testing import Client

pytest.importorskip("httptools", reason="the client's side of HTTP stands on it: pip install httptools")

UPSTREAM = """
from fastrpc import Server
from fastrpc.subscriptions import subscribers

app = Server("pages")

@app.resource("page://front")
def front() -> str:
    return "front"

@app.resource("page://at/{name}")
def page(name: str) -> str:
    return name

@app.tool
async def touch(uri: str) -> str:
    app.resource_updated(uri)
    return uri

@app.tool
async def watched() -> str:
    return " ".join(sorted({each.uri for each in subscribers(app, "page://")}))
"""
SECONDS = 60.0
UPDATED = "notifications/resources/updated"


def target(where: Any) -> Any:
    """What FastMCP connects to."""
    if isinstance(where, str):
        return where
    return {"mcpServers": {"up": {"command": where[0], "args": where[1:]}}}


def native(where: Any) -> Server:
    app = Server("host")
    app.mount(Server.proxy(where))
    return app


def mounted(where: Any) -> Server:
    app = FastMCP("host")
    app.mount(create_proxy(target(where)), "up")
    return app


def provider(where: Any) -> Server:
    app = FastMCP("host")
    app.add_provider(ProxyProvider(lambda: ProxyClient(target(where))), namespace="up")
    return app


def transformed(where: Any) -> Server:
    """The namespace is the host's own: it comes before all that is mounted there."""
    app = FastMCP("host")
    app.mount(create_proxy(target(where)))
    app.add_transform(Namespace("up"))
    return app


HOPS = {"native": native, "mounted": mounted, "provider": provider, "transformed": transformed}


@pytest.fixture(scope="module")
def upstreams(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    folder = tmp_path_factory.mktemp("upstream")
    (folder / "pages.py").write_text(UPSTREAM)
    with HttpProcess("serve", "pages.py", "--http", "127.0.0.1:0", "--no-auth", folder=folder) as server:
        yield {
            "stdio": [sys.executable, "-m", "fastrpc", "serve", str(folder / "pages.py")],
            "http": f"http://127.0.0.1:{server.port}/mcp",
        }


async def eventually(condition: Any) -> None:
    while not await condition():
        await asyncio.sleep(0.005)


@pytest.mark.parametrize("version", ["2025-06-18", STATELESS])
@pytest.mark.parametrize("upstream", ["stdio", "http"])
@pytest.mark.parametrize("hop", HOPS)
def test_a_subscription_lasts_as_long_as_some_client_has_it(
    hop: str, upstream: str, version: str, upstreams: dict[str, Any]
) -> None:
    app = HOPS[hop](upstreams[upstream])
    name, start = ("", "page://") if hop == "native" else ("up_", "page://up/")

    async def run() -> None:
        async with Client(app, version=version) as one:
            watched = name + "watched"

            async def is_watched(*uris: str) -> bool:
                return (await one.call_tool(watched)).text == " ".join(uris)

            await one.list_tools()
            async with Client(app, version=version) as other:
                for uri in ("front", "at/x"):
                    await one.subscribe(start + uri)
                await other.subscribe(start + "at/x")
                await eventually(lambda: is_watched("page://at/x", "page://front"))
                await one.unsubscribe(start + "at/x")
                await one.unsubscribe(start + "front")
                await eventually(lambda: is_watched("page://at/x"))
                await one.call_tool(name + "touch", {"uri": "page://at/x"})

                async def is_told() -> bool:
                    told = [each for each in other.notifications if each["method"] == UPDATED]
                    return [each["params"]["uri"] for each in told] == [start + "at/x"]

                await eventually(is_told)
                assert UPDATED not in [each["method"] for each in one.notifications]
            await eventually(is_watched)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_an_update_of_a_mounted_server_has_the_uri_that_clients_know() -> None:
    inner, notes, outer = FastMCP("inner"), FastMCP("notes"), FastMCP("outer")

    @inner.resource("page://front")
    def front() -> str:
        return "front"

    class Notes:
        """Resources whose URIs are the same wherever their server is mounted."""

        def list(self) -> list[Any]:
            return []

        def read(self, uri: str) -> str:
            return uri

    notes.resources("note://")(Notes())
    for server, namespace in ((inner, "a"), (inner, "b"), (notes, "n")):
        outer.mount(server, namespace)

    async def run() -> None:
        async with Client(outer, version="2025-06-18") as client:
            for uri in ("page://a/front", "page://b/front", "note://1"):
                await client.subscribe(uri)
            inner.resource_updated("page://front")
            notes.resource_updated("note://1")

            async def is_told() -> bool:
                told = [each["params"]["uri"] for each in client.notifications if each["method"] == UPDATED]
                return sorted(told) == ["note://1", "page://a/front", "page://b/front"]

            await eventually(is_told)

    asyncio.run(asyncio.wait_for(run(), SECONDS))


def test_a_resource_that_no_provider_has_cannot_be_subscribed_to(upstreams: dict[str, Any]) -> None:
    async def run() -> None:
        async with Client(provider(upstreams["stdio"]), version="2025-06-18") as client:
            with pytest.raises(RemoteError, match="not found"):
                await client.subscribe("page://front")

    asyncio.run(asyncio.wait_for(run(), SECONDS))

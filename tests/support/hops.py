"""What is between a client and an upstream server that shows what reached it (`echo_upstream`): proxies,
gateways, mounts, and their counterparts of compat."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastrpc import Server
from fastrpc.compat.fastmcp import FastMCP, Middleware, ProxyClient, ProxyProvider, create_proxy
from fastrpc.gateway import gateway_of
from support import echo_upstream as echo
from support.scripted_server import Scripted

COMMAND = [sys.executable, echo.__file__]
TRACE = {
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
    "tracestate": "a=1",
    "baggage": "k=v",
    "example.com/tenant": {"id": 7, "deep": [None, {"é": '\n"'}]},
}
MORE = {"x-request": [1, {"a": None}]}
SECONDS = 60.0


@asynccontextmanager
async def over_stdio() -> AsyncIterator[Any]:
    yield COMMAND


@asynccontextmanager
async def over_http() -> AsyncIterator[Any]:
    async with Scripted(echo.play) as server:
        yield server.url


@asynccontextmanager
async def stateless() -> AsyncIterator[Any]:
    async with Scripted(echo.play_stateless) as server:
        yield server.url


def proxy(where: Any) -> Server:
    return Server.proxy(where)


def gateway(where: Any) -> Server:
    entry = {"url": where} if isinstance(where, str) else {"command": where[0], "args": where[1:]}
    return gateway_of({"up": entry})[0]


def mounted(where: Any) -> Server:
    app = Server("host")
    app.mount(Server.proxy(where), "up")
    return app


def watched(where: Any) -> Server:
    """A proxy whose guard sees each call, so that none is forwarded as bytes."""
    app = Server.proxy(where)
    app.guard(lambda call: None)
    return app


def compat_target(where: Any) -> Any:
    """What FastMCP connects to, where a program and its arguments are an entry of a configuration."""
    if isinstance(where, str):
        return where
    return {"mcpServers": {"up": {"command": where[0], "args": where[1:]}}}


class Passing(Middleware):
    async def on_request(self, context: Any, call_next: Any) -> Any:
        return await call_next(context)


def as_proxy(where: Any) -> Server:
    return FastMCP.as_proxy(compat_target(where), "host")


def provider(where: Any) -> Server:
    app = FastMCP("host")
    app.add_provider(ProxyProvider(lambda: ProxyClient(compat_target(where))))
    return app


def nested(where: Any) -> Server:
    """A provider with a prefix, within a server that is mounted with one."""
    inner, app = FastMCP("inner"), FastMCP("host")
    inner.add_provider(ProxyProvider(lambda: ProxyClient(compat_target(where))), namespace="up")
    app.mount(inner, "out")
    return app


def between(where: Any) -> Server:
    """A proxy, with a prefix, within a server whose middleware sees each request."""
    app = FastMCP("host", middleware=[Passing()])
    app.mount(create_proxy(compat_target(where)), "up")
    return app


UPSTREAMS = {"stdio": over_stdio, "http": over_http, "stateless": stateless}
HOPS = {"proxy": proxy, "gateway": gateway, "mounted": mounted, "guarded": watched}
HOPS |= {"as_proxy": as_proxy, "provider": provider, "between": between, "nested": nested}
NAMESPACES = {"between": ["up"], "nested": ["out", "up"]}
"""What the hops of FastMCP have before names and paths."""
NAMES = {"gateway": ["up"], "mounted": ["up"], **NAMESPACES}


def address(hop: str, uri: str) -> str:
    """Return the URI that a resource of the upstream server has at a hop."""
    scheme, _, path = uri.partition("://")
    return f"{scheme}://{'/'.join((*NAMESPACES.get(hop, ()), path))}"


async def eventually_in(notifications: list[dict[str, Any]], method: str) -> dict[str, Any]:
    while not (found := [each for each in notifications if each["method"] == method]):
        await asyncio.sleep(0.002)
    return found[0]


def assert_carried(got: dict[str, Any]) -> None:
    assert {name: got[name] for name in MORE} == MORE
    meta = dict(got["_meta"])
    own = [key for key in meta if key.startswith("io.modelcontextprotocol/") or key == "progressToken"]
    for key in own:
        del meta[key]
    assert meta == TRACE

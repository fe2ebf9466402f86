"""`auth` of single components holds however a component has come to a server: by a decorator, as an object,
made of another tool, from a provider, through a transform, of a mounted server.

For a caller whose token lacks the scope none of them exists, in lists and in calls; for another all do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from support.compat_auth import META, Own, ask, served
from support.http_server import InProcess

from fastrpc.compat import fastmcp
from fastrpc.compat.fastmcp import (
    FastMCP,
    FastMCPProvider,
    LocalProvider,
    MCPMixin,
    Namespace,
    Prompt,
    Resource,
    ResourceTemplate,
    Tool,
    ToolTransform,
    ToolTransformConfig,
    Transform,
    mcp_prompt,
    mcp_resource,
    mcp_tool,
    require_scopes,
)

ADMIN = require_scopes("admin")
RENAMED = {"hidden": ToolTransformConfig(name="secret")}
RETITLED = {"secret": ToolTransformConfig(title="Secret")}


def secret() -> str:
    return "ran"


def at(name: str) -> str:
    return f"ran {name}"


def shop(**options: Any) -> FastMCP:
    return FastMCP("shop", auth=Own(), **options)


def decorated(on: Any) -> Any:
    on.tool(auth=ADMIN)(secret)
    on.resource("r://s", auth=ADMIN)(secret)
    on.resource("t://{name}", auth=ADMIN)(at)
    on.prompt(auth=ADMIN)(secret)
    return on


def with_objects(on: Any) -> Any:
    on.add_tool(Tool.from_function(secret, auth=ADMIN))
    on.add_resource(Resource.from_function(secret, uri="r://s", auth=ADMIN))
    on.add_template(ResourceTemplate.from_function(at, uri_template="t://{name}", auth=ADMIN))
    on.add_prompt(Prompt.from_function(secret, auth=ADMIN))
    return on


def with_tool(tool: Any, on: Any = None) -> Any:
    server = shop() if on is None else on
    server.add_tool(tool)
    return server


def restricted_tool() -> Tool:
    return Tool.from_function(secret, auth=ADMIN)


def hiding(**options: Any) -> FastMCP:
    app = shop(**options)
    app.tool("hidden", auth=ADMIN)(secret)
    return app


class Runs(Tool):
    async def run(self, arguments: dict[str, Any]) -> str:
        return "ran"


class Renaming(Transform):
    async def list_tools(self, tools: Any) -> Any:
        return [tool.model_copy(update={"name": f"x_{tool.name}"}) for tool in tools]

    async def get_tool(self, name: str, call_next: Any, *, version: Any = None) -> Any:
        found = await call_next(name[2:], version=version)
        return found and found.model_copy(update={"name": name})


class Marked(MCPMixin):
    @mcp_tool(name="secret", auth=ADMIN)
    def as_tool(self) -> str:
        return "ran"

    @mcp_resource(uri="r://s", auth=ADMIN)
    def as_resource(self) -> str:
        return "ran"

    @mcp_prompt(name="secret", auth=ADMIN)
    def as_prompt(self) -> str:
        return "ran"


def mixed_in() -> FastMCP:
    app = shop()
    Marked().register_all(app)
    return app


def marked() -> FastMCP:
    app = shop()
    app.add_tool(fastmcp.tool(name="secret", auth=ADMIN)(lambda: "ran"))
    app.add_resource(fastmcp.resource("r://s", auth=ADMIN)(lambda: "ran"))
    app.add_prompt(fastmcp.prompt(name="secret", auth=ADMIN)(lambda: "ran"))
    return app


def of_another_server() -> FastMCP:
    app, other = shop(), decorated(FastMCP("other"))
    app.add_tool(Tool.from_tool(asyncio.run(other.get_tool("secret")), title="Secret"))
    app.add_resource(asyncio.run(other.get_resource("r://s")))
    app.add_template(asyncio.run(other.get_resource_template("t://{name}")))
    app.add_prompt(asyncio.run(other.get_prompt("secret")))
    return app


def set_later() -> FastMCP:
    app = shop()
    app.tool(secret)
    asyncio.run(app.get_tool("secret")).auth = ADMIN
    return app


def mounting(inner: FastMCP) -> FastMCP:
    app = shop()
    app.mount(inner, "n")
    return app


def provided_by_transformed() -> FastMCP:
    provider = decorated(LocalProvider())
    provider.add_transform(ToolTransform(RETITLED))
    return shop(providers=[provider])


def in_namespace() -> FastMCP:
    app = shop()
    app.add_provider(decorated(LocalProvider()), namespace="n")
    return app


WAYS: dict[str, tuple[int, Callable[[], FastMCP]]] = {
    "decorators": (4, lambda: decorated(shop())),
    "objects": (4, lambda: with_objects(shop())),
    "marks": (3, marked),
    "mixin": (3, mixed_in),
    "tool of a tool": (1, lambda: with_tool(Tool.from_tool(restricted_tool()))),
    "tool of a tool, auth=None": (1, lambda: with_tool(Tool.from_tool(restricted_tool(), auth=None))),
    "tool of a tool of a tool": (1, lambda: with_tool(Tool.from_tool(Tool.from_tool(restricted_tool())))),
    "tool of a tool, restricted": (
        1,
        lambda: with_tool(Tool.from_tool(Tool.from_function(secret), auth=ADMIN)),
    ),
    "constructor": (1, lambda: shop(tools=[Tool.from_tool(restricted_tool())])),
    "own class": (1, lambda: with_tool(Runs(name="secret", auth=ADMIN))),
    "of another server": (4, of_another_server),
    "set later": (1, set_later),
    "transform, renamed": (1, lambda: hiding(transforms=[ToolTransform(RENAMED)])),
    "transform by option": (1, lambda: hiding(tool_transformations=RENAMED)),
    "transform of one's own": (1, lambda: hiding(transforms=[Renaming()])),
    "namespace": (4, lambda: decorated(shop(transforms=[Namespace("n")]))),
    "provider": (4, lambda: shop(providers=[decorated(LocalProvider())])),
    "provider of objects": (4, lambda: shop(providers=[with_objects(LocalProvider())])),
    "provider in a namespace": (4, in_namespace),
    "provider of a tool of a tool": (
        1,
        lambda: shop(providers=[with_tool(Tool.from_tool(restricted_tool()), LocalProvider())]),
    ),
    "provider, transformed": (
        4,
        lambda: shop(providers=[decorated(LocalProvider())], transforms=[ToolTransform(RETITLED)]),
    ),
    "transformed provider": (4, provided_by_transformed),
    "server as a provider": (4, lambda: shop(providers=[FastMCPProvider(decorated(shop()))])),
    "mounted": (4, lambda: mounting(decorated(shop()))),
    "mounted provider": (4, lambda: mounting(shop(providers=[decorated(LocalProvider())]))),
    "mounted transform": (1, lambda: mounting(hiding(transforms=[ToolTransform(RENAMED)]))),
}
LISTS = (
    ("tools/list", "tools", "name", "tools/call"),
    ("prompts/list", "prompts", "name", "prompts/get"),
    ("resources/list", "resources", "uri", "resources/read"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate", "resources/read"),
)


async def listed(server: InProcess, bearer: str) -> list[tuple[str, str]]:
    """Return the requests that use what a caller sees, each with its target."""
    found = []
    for method, member, key, call in LISTS:
        _, body, _ = await ask(server, method, bearer)
        found += [
            (call, entry[key].replace("{name}", "a")) for entry in body.get("result", {}).get(member, ())
        ]
    return found


async def runs(server: InProcess, bearer: str, call: str, target: str) -> bool:
    given = {"uri": target} if call == "resources/read" else {"name": target, "arguments": {}}
    _, body, _ = await ask(server, call, bearer, **given)
    return "ran" in str(body)


@pytest.mark.parametrize("way", WAYS)
def test_a_check_holds_however_the_component_was_added(way: str) -> None:
    count, make = WAYS[way]

    async def work(server: InProcess) -> None:
        assert await listed(server, "good") == []
        calls = await listed(server, "admin")
        assert len(calls) == count
        for call in calls:
            assert await runs(server, "admin", *call)
            assert not await runs(server, "good", *call)

    served(make(), work)


def test_each_version_has_its_own_check() -> None:
    app = shop()
    app.tool(version="1", auth=ADMIN)(secret)
    app.tool("secret", version="2")(lambda: "open")

    async def text(server: InProcess, bearer: str, version: str) -> str:
        meta = {**META, "fastmcp": {"version": version}}
        params = {"name": "secret", "arguments": {}, "_meta": meta}
        body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        headers = {"mcp_method": "tools/call", "mcp_name": "secret", "authorization": f"Bearer {bearer}"}
        headers |= {"accept": "application/json, text/event-stream", "mcp_protocol_version": "2026-07-28"}
        return str((await server.ask("POST", "/mcp", body, **headers))[1])

    async def work(server: InProcess) -> None:
        assert "ran" in await text(server, "admin", "1")
        assert "Unknown tool" in await text(server, "good", "1")
        assert "open" in await text(server, "good", "2")

    served(app, work)


def test_a_check_that_was_taken_away_is_none() -> None:
    app = decorated(shop())
    asyncio.run(app.get_tool("secret")).auth = None

    async def work(server: InProcess) -> None:
        assert await listed(server, "good") == [("tools/call", "secret")]
        assert await runs(server, "good", "tools/call", "secret")

    served(app, work)

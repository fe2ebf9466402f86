"""What clients learn of exceptions in a compat server: what a ToolError or a ResourceError says, and, with
``mask_error_details`` and in the official SDK 2.x, nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from fastrpc.compat import fastmcp, mcp
from fastrpc.compat.fastmcp import FastMCP, FastMCPProvider, LocalProvider, Middleware
from fastrpc.testing import Client

SECRET = "key-4711"


def failing(on: Any) -> Any:
    """Add one of each kind that fails by an exception, and one that tells why."""

    def fail() -> str:
        raise KeyError(SECRET)

    def fail_at(name: str) -> str:
        raise ValueError(SECRET)

    def tell() -> str:
        raise fastmcp.ResourceError("told")

    on.tool("fail")(fail)
    on.prompt("fail")(fail)
    on.resource("r://fail")(fail)
    on.resource("t://{name}")(fail_at)
    on.resource("r://tell")(tell)
    return on


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    "tool": ("tools/call", {"name": "fail", "arguments": {}}),
    "prompt": ("prompts/get", {"name": "fail"}),
    "resource": ("resources/read", {"uri": "r://fail"}),
    "template": ("resources/read", {"uri": "t://a"}),
    "told": ("resources/read", {"uri": "r://tell"}),
}


def answers(server: Any) -> dict[str, str]:
    """Return what a client gets of each, each asked for three times."""

    async def asking() -> dict[str, str]:
        found = {}
        async with Client(server) as client:
            for kind, (method, params) in CALLS.items():
                told = set()
                for _ in range(3):
                    try:
                        told.add(str(await client.request(method, params)))
                    except Exception as error:
                        told.add(str(error))
                assert len(told) == 1
                found[kind] = told.pop()
        return found

    return asyncio.run(asking())


def hosting(inner: Any) -> FastMCP:
    host = FastMCP("host")
    host.mount(inner)
    return host


MASKED: dict[str, Callable[[], Any]] = {
    "FastMCP": lambda: failing(FastMCP("x", mask_error_details=True)),
    "the official SDK 2": lambda: failing(mcp.MCPServer("x")),
    "behind middleware": lambda: failing(FastMCP("x", mask_error_details=True, middleware=[Middleware()])),
    "of a provider": lambda: FastMCP("x", mask_error_details=True, providers=[failing(LocalProvider())]),
    "of a server as a provider": lambda: FastMCP(
        "x", providers=[FastMCPProvider(failing(FastMCP("y", mask_error_details=True)))]
    ),
    "mounted": lambda: hosting(failing(FastMCP("y", mask_error_details=True))),
}


@pytest.mark.parametrize("way", MASKED)
def test_an_exception_that_is_hidden_is_not_described(way: str) -> None:
    found = answers(MASKED[way]())
    told = found.pop("told")
    assert "told" in told
    for answer in found.values():
        assert SECRET not in answer
        assert "KeyError" not in answer
        assert "ValueError" not in answer


@pytest.mark.parametrize("kind", ["TOOL", "RESOURCE"])
def test_what_an_api_has_answered_is_hidden_like_an_exception(kind: str) -> None:
    httpx = pytest.importorskip("httpx", reason="operations are sent by it: pip install httpx")
    pytest.importorskip("openapi_pydantic", reason="it reads the document: pip install openapi-pydantic")
    operation = {"operationId": "read", "responses": {}}
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {"/a": {"get": operation}},
    }
    transport = httpx.MockTransport(lambda request: httpx.Response(500, text=SECRET))
    route = fastmcp.RouteMap(methods=["GET"], pattern=".*", mcp_type=fastmcp.MCPType[kind])

    async def answer(hides: bool) -> str:
        api = FastMCP.from_openapi(
            document,
            client=httpx.AsyncClient(transport=transport, base_url="http://api"),
            route_maps=[route],
            mask_error_details=hides,
        )
        async with Client(api) as client:
            calls = {
                "TOOL": ("tools/call", {"name": "read", "arguments": {}}),
                "RESOURCE": ("resources/read", {"uri": "resource://read"}),
            }
            try:
                return str(await client.request(*calls[kind]))
            except Exception as error:
                return str(error)

    assert SECRET in asyncio.run(answer(False))
    assert SECRET not in asyncio.run(answer(True))


def test_without_it_everything_is_shown() -> None:
    provider = failing(LocalProvider())
    hiding = FastMCP("hiding", providers=[provider], mask_error_details=True)
    open_ = FastMCP("open", providers=[provider])
    assert SECRET not in str(answers(hiding))
    for server in (failing(FastMCP("x")), failing(mcp.FastMCP("x")), open_):
        found = answers(server)
        assert all(SECRET in found[kind] for kind in ("tool", "prompt", "resource", "template"))
    assert SECRET not in str(answers(hiding))  # though another server has the same provider


def test_it_may_be_a_setting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTMCP_MASK_ERROR_DETAILS", "true")
    assert SECRET not in str(answers(failing(FastMCP("x"))))
    assert SECRET in str(answers(failing(FastMCP("x", mask_error_details=False))))


def test_the_official_sdk_2_tells_of_errors_for_another_kind_nothing() -> None:
    server = mcp.MCPServer("x")

    def of_tools() -> str:
        raise mcp.ToolError(SECRET)

    server.resource("r://fail")(of_tools)
    server.resource("t://{name}")(lambda name: of_tools())
    server.prompt("fail")(of_tools)
    server.tool("fail")(of_tools)
    found = answers(server)
    assert SECRET in found.pop("tool")
    assert SECRET not in str(found)

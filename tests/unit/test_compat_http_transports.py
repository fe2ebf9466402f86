"""Servers of the official SDK in a program's own application: session managers, SSE, and the application of
a low-level server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter
from support.waiting import SECONDS

from fastrpc.compat import mcp as sdk

pytest.importorskip("starlette")
httpx = pytest.importorskip("httpx")

from starlette.applications import Starlette  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.responses import PlainTextResponse, Response  # noqa: E402
from starlette.routing import Mount, Route  # noqa: E402

CALL = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "seen", "arguments": {}}}
ACCEPTED = {"accept": "application/json, text/event-stream"}


def low() -> Any:
    server = sdk.Server("low")

    @server.list_tools()
    async def listed() -> list[Any]:
        return [{"name": "seen", "inputSchema": {"type": "object"}}]

    @server.call_tool()
    async def call(name: str, arguments: dict[str, Any]) -> list[Any]:
        request = server.request_context.request
        return [{"type": "text", "text": "none" if request is None else request.headers["x-said"]}]

    return server


def use(app: Any, act: Callable[[Any], Awaitable[Any]]) -> Any:
    async def main() -> Any:
        async with app.router.lifespan_context(app):
            client = httpx.AsyncClient(
                transport=httpx.ASGITransport(app=app), base_url="http://localhost:8000"
            )
            async with client:
                return await act(client)

    return asyncio.run(asyncio.wait_for(main(), SECONDS))


async def called(client: Any, path: str, **headers: str) -> Any:
    return await client.post(path, json=CALL, headers={**ACCEPTED, "x-said": "hello", **headers})


def test_a_session_manager_serves_a_low_level_server_where_the_program_mounts_it() -> None:
    manager = sdk.StreamableHTTPSessionManager(low(), json_response=True, stateless=True)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncIterator[None]:
        async with manager.run():
            yield

    app = Starlette(routes=[Mount("/any/place", app=manager.handle_request)], lifespan=lifespan)

    async def act(client: Any) -> Any:
        return (await called(client, "/any/place/", host="api.example.com")).json()

    assert use(app, act)["result"]["content"][0]["text"] == "hello"
    with pytest.raises(RuntimeError, match="once"):
        use(app, act)


def test_a_session_manager_serves_nothing_before_it_runs_and_only_hosts_that_it_is_given() -> None:
    security = sdk.TransportSecuritySettings(allowed_hosts=["api.example.com"])
    manager = sdk.StreamableHTTPSessionManager(low(), stateless=True, security_settings=security)
    app = Starlette(routes=[Mount("/mcp", app=manager.handle_request)])

    async def early(client: Any) -> None:
        await called(client, "/mcp/")

    with pytest.raises(RuntimeError, match="run"):
        use(app, early)

    async def act(client: Any) -> Any:
        async with manager.run():
            others = [
                await called(client, "/mcp/", host=host) for host in ("evil.example", "api.example.com")
            ]
            return [answer.status_code for answer in others]

    assert use(app, act) == [421, 200]


def test_a_low_level_server_has_its_own_application() -> None:
    async def health(request: Any) -> Any:
        return PlainTextResponse("well")

    server = low()
    with pytest.raises(RuntimeError, match="streamable_http_app"):
        server.session_manager  # noqa: B018
    app = server.streamable_http_app(
        streamable_http_path="/here",
        stateless_http=True,
        json_response=True,
        custom_starlette_routes=[Route("/health", health)],
    )

    async def act(client: Any) -> Any:
        answer = await called(client, "/here")
        refused = await called(client, "/here", host="evil.example")
        return answer.json(), refused.status_code, (await client.get("/health")).text

    answer, refused, health_text = use(app, act)
    assert answer["result"]["content"][0]["text"] == "hello"
    assert (refused, health_text) == (421, "well")
    assert server.session_manager is not None


class PassingOn(sdk.SseServerTransport):
    """A transport of a program's own, which passes the messages on to the sessions by itself."""

    async def handle_post_message(self, scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        try:
            writer = self._read_stream_writers[UUID(hex=request.query_params["session_id"])]
        except (ValueError, KeyError):
            await Response("Could not find session", status_code=404)(scope, receive, send)
            return
        message = jsonrpc_message_adapter.validate_json(await request.body())
        await Response("Accepted", status_code=202)(scope, receive, send)
        await writer.send(SessionMessage(message))


@pytest.mark.parametrize("transport", [sdk.SseServerTransport, PassingOn])
@pytest.mark.parametrize("make", [low, lambda: sdk.FastMCP("x")._mcp_server])
def test_sse_is_served_by_a_route_and_a_mount_of_the_program(make: Any, transport: Any) -> None:
    sse = transport("/messages/")
    server = make()

    async def stream(request: Any) -> Any:
        async with sse.connect_sse(request.scope, request.receive, request._send) as streams:
            await server.run(*streams, server.create_initialization_options())
        return Response()

    app = Starlette(routes=[Route("/sse", stream), Mount("/messages/", app=sse.handle_post_message)])
    ping = {"jsonrpc": "2.0", "id": 7, "method": "ping"}

    async def main() -> None:
        sent: asyncio.Queue[Any] = asyncio.Queue()
        gone = asyncio.Event()

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        headers = [(b"host", b"localhost"), (b"accept", b"text/event-stream")]
        scope = {"type": "http", "method": "GET", "path": "/sse", "headers": headers, "query_string": b""}
        serving = asyncio.ensure_future(app({**scope, "root_path": "", "app": app}, receive, sent.put))
        place = b""
        while b"\n\n" not in place:
            place += (await sent.get()).get("body", b"")
        path = place.decode().split("data: ")[1].strip()
        assert path.startswith("/messages/?session_id=")
        async with httpx.AsyncClient(
            transport=httpx.ASGITransport(app=app), base_url="http://localhost"
        ) as client:
            assert (await client.post(path, json=ping)).status_code == 202
            assert (await client.post("/messages/?session_id=none", json=ping)).status_code >= 400
        body = (await sent.get())["body"].decode()
        assert json.loads(body.split("data: ")[1])["id"] == 7
        assert [each.hex for each in sse._read_stream_writers] == [path.partition("=")[2]]
        gone.set()
        await serving
        assert sse._read_stream_writers == {}

    asyncio.run(asyncio.wait_for(main(), SECONDS))

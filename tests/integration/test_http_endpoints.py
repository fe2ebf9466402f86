"""`Server.http_endpoints`: what is served beside MCP, behind the same guard, and until its end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from support.http_server import InProcess, in_process
from support.protocol import message

from fastrpc import Server
from fastrpc.transports.http.endpoints import Endpoint

TOKEN = "a-token-of-16-characters-or-more"
BEARER = {"authorization": f"Bearer {TOKEN}"}


class Echo(Endpoint):
    """Answers with the body; "wait" is never answered."""

    def __init__(self) -> None:
        self.waits = asyncio.Event()
        self.was_cancelled = asyncio.Event()

    async def answer(self, body: bytes) -> bytes:
        if body == b'"wait"':
            self.waits.set()
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                self.was_cancelled.set()
                raise
        return body

    def refusal(self, message: str) -> bytes:
        return json.dumps({"refused": message}).encode()


def served() -> tuple[Server, Echo]:
    app, echo = Server("demo"), Echo()
    app.http_endpoints["/echo"] = echo
    return app, echo


def run(check: Callable[[InProcess, Echo], Coroutine[Any, Any, None]]) -> None:
    """Run a check with a server in this process, within a time."""

    async def main() -> None:
        app, echo = served()
        async with in_process(app, token=TOKEN) as server:
            await check(server, echo)

    asyncio.run(asyncio.wait_for(main(), 30))


def test_a_post_is_answered_and_mcp_beside_it() -> None:
    async def check(server: InProcess, echo: Echo) -> None:
        assert (await server.ask("POST", "/echo", {"a": 1}, **BEARER))[:2] == (200, {"a": 1})
        assert (await server.ask("GET", "/healthz"))[0] == 200
        assert (await server.ask("POST", "/mcp", message("ping", id=1), **BEARER))[0] == 200

    run(check)


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {}, 401),
        ("POST", {"authorization": f"Bearer {TOKEN}x"}, 401),
        ("POST", {**BEARER, "host": "rebound.example"}, 421),
        ("POST", {**BEARER, "origin": "http://rebound.example"}, 403),
        ("POST", {**BEARER, "content_type": "text/plain"}, 415),
        ("POST", {**BEARER, "content_length": str(10**9)}, 413),
        ("GET", BEARER, 405),
    ],
)
def test_it_is_guarded_like_mcp_and_refuses_in_its_own_form(
    method: str, headers: dict[str, str], status: int
) -> None:
    async def check(server: InProcess, echo: Echo) -> None:
        found, answer, _ = await server.ask(method, "/echo", b"1", **headers)
        assert (found, list(answer)) == (status, ["refused"])

    run(check)


def test_the_end_cancels_what_is_not_answered_in_time_and_says_so() -> None:
    async def check(server: InProcess, echo: Echo) -> None:
        asking = asyncio.ensure_future(server.ask("POST", "/echo", b'"wait"', **BEARER))
        await echo.waits.wait()
        await server.asgi.aclose(0.0)
        assert echo.was_cancelled.is_set()
        status, answer, _ = await asking
        assert (status, list(answer)) == (503, ["refused"])

    run(check)


def test_a_client_that_goes_away_cancels_its_request() -> None:
    async def check(server: InProcess, echo: Echo) -> None:
        parts = [{"type": "http.request", "body": b'"wait"', "more_body": False}]

        async def receive() -> Any:
            if parts:
                return parts.pop()
            await echo.waits.wait()
            return {"type": "http.disconnect"}

        headers = {"host": "localhost", "content-type": "application/json", **BEARER}
        scope = {
            "type": "http",
            "method": "POST",
            "path": "/tools/echo",
            "root_path": "/tools",  # where a framework has mounted it
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        sent: list[Any] = []

        async def send(part: Any) -> None:
            sent.append(part)

        await server.asgi(scope, receive, send)
        assert echo.was_cancelled.is_set()
        assert sent == []

    run(check)

"""A compat server with authorization, in this process: requests with a token, and verifiers for them.

app = FastMCP("shop", auth=Own())
assert statuses(app, None, "good") == [401, 200]

async def work(server): return await ask(server, "tools/call", "good", name="add", arguments={})
status, body, headers = served(app, work)
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from fastrpc.compat.fastmcp import AccessToken, FastMCP, JWTVerifier, RSAKeyPair, TokenVerifier
from fastrpc.protocol.versions import STATELESS
from support.http_server import InProcess, in_process

PAIR = RSAKeyPair.generate()
ISSUER, AUDIENCE = "https://issuer.test", "https://mcp.test/mcp"
META = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientCapabilities": {},
}


def run(work: Awaitable[Any]) -> Any:
    return asyncio.run(asyncio.wait_for(work, 60))  # type: ignore[arg-type]


def verifier(**options: Any) -> JWTVerifier:
    given = {"public_key": PAIR.public_key, "issuer": ISSUER, "audience": AUDIENCE, **options}
    return JWTVerifier(**{name: value for name, value in given.items() if value is not None})


def token(pair: RSAKeyPair = PAIR, **options: Any) -> str:
    return pair.create_token(**{"issuer": ISSUER, "audience": AUDIENCE, "scopes": ["read"], **options})


def verify(by: Any, given: str) -> Any:
    return run(by.verify_token(given))


async def ask(
    server: InProcess, method: str, bearer: str | None = None, **params: Any
) -> tuple[int, Any, Any]:
    """Send a request of 2026-07-28."""
    headers = {"mcp_method": method, "mcp_protocol_version": STATELESS}
    headers["accept"] = "application/json, text/event-stream"
    named = params.get("name", params.get("uri"))
    if named is not None:
        headers["mcp_name"] = named
    if bearer is not None:
        headers["authorization"] = f"Bearer {bearer}"
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": META}}
    return await server.ask("POST", "/mcp", body, **headers)


def served(app: FastMCP, work: Callable[[InProcess], Awaitable[Any]]) -> Any:
    async def all_of_it() -> Any:
        async with in_process(app, **app._asgi_auth_options()) as server:
            return await work(server)

    return run(all_of_it())


def statuses(app: FastMCP, *tokens: str | None) -> list[int]:
    async def work(server: InProcess) -> list[int]:
        return [(await ask(server, "tools/list", each))[0] for each in tokens]

    return served(app, work)  # type: ignore[no-any-return]


class Own(TokenVerifier):
    """A verifier of a program's own; the tokens name what it does."""

    async def verify_token(self, token: str) -> AccessToken | None:
        if token == "broken":
            raise KeyError(token)
        if token == "odd":
            return 5  # type: ignore[return-value]
        if token in ("good", "old", "admin"):
            scopes = ["read", "admin"] if token == "admin" else ["read"]
            return AccessToken(
                token=token, client_id="c", scopes=scopes, expires_at=5 if token == "old" else None
            )
        return None

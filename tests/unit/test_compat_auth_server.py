"""An authorization server written for the official SDK is served beside MCP, by the SDK's own routes."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest
from support.login import log_in

from fastrpc.compat.mcp import (
    AccessToken,
    AuthSettings,
    ClientRegistrationOptions,
    FastMCP,
    RevocationOptions,
    TokenVerifier,
    get_access_token,
)

official = pytest.importorskip("mcp.server.auth.provider")
messages = pytest.importorskip("mcp.shared.auth")
httpx = pytest.importorskip("httpx")

HOME = "http://localhost:8000"


class Provider:
    """Agrees to everything; keeps all in memory."""

    def __init__(self) -> None:
        self.clients: dict[str, Any] = {}
        self.codes: dict[str, Any] = {}
        self.tokens: dict[str, AccessToken] = {}

    async def get_client(self, client_id: str) -> Any:
        return self.clients.get(client_id)

    async def register_client(self, client_info: Any) -> None:
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: Any, params: Any) -> str:
        self.codes["the-code"] = official.AuthorizationCode(
            code="the-code",
            client_id=client.client_id,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            expires_at=time.time() + 300,
            scopes=params.scopes or ["user"],
            code_challenge=params.code_challenge,
            resource=params.resource,
        )
        return str(
            official.construct_redirect_uri(str(params.redirect_uri), code="the-code", state=params.state)
        )

    async def load_authorization_code(self, client: Any, authorization_code: str) -> Any:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: Any) -> Any:
        self.tokens["issued-token"] = AccessToken(
            token="issued-token", client_id=client.client_id, scopes=authorization_code.scopes
        )
        return messages.OAuthToken(access_token="issued-token", scope=" ".join(authorization_code.scopes))

    async def load_access_token(self, token: str) -> Any:
        return self.tokens.get(token)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> Any:
        return None

    async def revoke_token(self, token: Any) -> None:
        self.tokens.pop(token.token, None)


class Verifier(TokenVerifier):
    """Knows no token."""


def settings(**options: Any) -> AuthSettings:
    return AuthSettings(
        issuer_url=HOME,
        resource_server_url=f"{HOME}/mcp",
        required_scopes=["user"],
        client_registration_options=ClientRegistrationOptions(
            enabled=True, valid_scopes=["user"], default_scopes=["user"]
        ),
        revocation_options=RevocationOptions(enabled=True),
        **options,
    )


def test_a_client_logs_in_at_the_server_itself() -> None:
    app = FastMCP("shop", auth=settings(), auth_server_provider=Provider())

    @app.tool()
    def who() -> str:
        access = get_access_token()
        return "nobody" if access is None else " ".join(access.scopes)

    call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "who", "arguments": {}}}
    head = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-06-18"}

    async def work() -> list[Any]:
        asgi = app.streamable_http_app()
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app=asgi), base_url=HOME) as client:
            found: list[Any] = [(await client.post("/mcp", json=call, headers=head)).status_code]
            token = await log_in(client)
            for given in (token, "another"):
                headers = {**head, "authorization": f"Bearer {given}"}
                answer = await client.post("/mcp", json=call, headers=headers)
                found.append(answer.json() if answer.status_code == 200 else answer.status_code)
            return found

    refused, result, other = asyncio.run(asyncio.wait_for(work(), 60))
    assert (refused, other) == (401, 401)
    assert result["result"]["content"][0]["text"] == "user"


def test_its_options_need_and_exclude_each_other() -> None:
    with pytest.raises(ValueError, match="need each other"):
        FastMCP("shop", auth_server_provider=Provider())
    with pytest.raises(ValueError, match="exclude each other"):
        FastMCP("shop", auth=settings(), auth_server_provider=Provider(), token_verifier=Verifier())
    with pytest.raises(TypeError, match="expected an object with load_access_token"):
        FastMCP("shop", auth=settings(), auth_server_provider=object())

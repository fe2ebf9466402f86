"""A login as MCP clients do it: register, authorize, exchange the code (RFC 7591, RFC 7636, OAuth 2.1)."""

from __future__ import annotations

import base64
import hashlib
from typing import Any
from urllib.parse import parse_qs, urlsplit

REDIRECT = "http://localhost:9/callback"
VERIFIER = "v" * 64


async def log_in(client: Any, scope: str | None = None, method: str = "none") -> str:
    """Return an access token of the authorization server that the protected resource at ``/mcp`` names.

    `client`: httpx's, with the server's URL. `method`: how the registered client authenticates at the token
    endpoint, ``none`` or ``client_secret_post``.
    """
    resource = (await client.get("/.well-known/oauth-protected-resource/mcp")).json()
    found = (await client.get("/.well-known/oauth-authorization-server")).json()
    assert resource["authorization_servers"] == [found["issuer"]]
    known = await client.post(
        found["registration_endpoint"],
        json={"redirect_uris": [REDIRECT], "client_name": "t", "token_endpoint_auth_method": method},
    )
    registered = {
        key: value for key, value in known.json().items() if key in ("client_id", "client_secret") and value
    }
    challenge = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).rstrip(b"=").decode()
    query = {
        "response_type": "code",
        "client_id": registered["client_id"],
        "redirect_uri": REDIRECT,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
        "state": "s",
        **({} if scope is None else {"scope": scope}),
    }
    agreed = await client.get(found["authorization_endpoint"], params=query)
    form = {
        "grant_type": "authorization_code",
        "code": parse_qs(urlsplit(agreed.headers["location"]).query)["code"][0],
        "redirect_uri": REDIRECT,
        "code_verifier": VERIFIER,
        **registered,
    }
    issued = await client.post(found["token_endpoint"], data=form)
    return str(issued.json()["access_token"])

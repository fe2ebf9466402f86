"""An authorization server and an MCP server that takes its tokens, in a thread of the test's process.

    with Protected() as protected:
        Client(protected.url, auth=OAuth(open_browser=visit, store=MemoryStore()))
        assert protected.count("/register") == 1

Both are at one address on the loopback interface: the MCP server is fastrpc's, over real HTTP, and the
authorization server answers by rules that a test changes: `expires_in`, `denies`, `scopes_of` and others.
What it has issued is in `tokens`, what came in `requests`.
"""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import urllib.request
from typing import Any
from urllib.parse import parse_qs, urlencode

import uvicorn

from fastrpc import Server

RESOURCE = "/.well-known/oauth-protected-resource/mcp"
METADATA = "/.well-known/oauth-authorization-server"


def visit(url: str) -> None:
    """Be the browser of a person who agrees to everything."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=20) as answer:
        answer.read()


def new_server() -> Server:
    app = Server("behind")

    @app.tool(effect="read")
    def add(a: int, b: int = 2) -> int:
        """Add."""
        return a + b

    @app.tool(effect="read")
    def write() -> str:
        """Write."""
        return "written"

    return app


class Protected:
    """Both servers."""

    def __init__(self) -> None:
        self.tokens: dict[str, set[str]] = {}
        """The access tokens that are good, each with its scopes."""
        self.refresh_tokens: dict[str, set[str]] = {}
        self.codes: dict[str, set[str]] = {}
        self.requests: list[tuple[str, dict[str, str]]] = []
        """The path and the form, or the query, of each request to the authorization server."""
        self.asked: list[str] = []
        """The MCP methods whose requests were let in."""
        self.expires_in: Any = 3600
        self.pkce: list[str] | None = ["S256"]
        """The methods of PKCE that the metadata names; None: it does not speak of them."""
        self.denies = False
        self.unwell: dict[str, tuple[int, dict[str, Any]]] = {}
        """Answers instead of the right ones, by path or by grant type."""
        self.authorization_server: str | None = None
        """The one that the MCP server names; None for the right one."""
        self.scopes_of: dict[str, str] = {}
        """The scope that a tool wants."""
        self.takes_none = False
        """Whether no token is good."""
        self._issued = 0
        self._app = new_server().asgi(auth=None)
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.origin = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(
            self._answer, interface="asgi3", log_level="error", loop="asyncio", timeout_graceful_shutdown=1
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def _serve(self) -> None:
        asyncio.run(self._server.serve([self._socket]))

    def __enter__(self) -> Protected:
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._server.should_exit = True
        self._thread.join(20)
        self._socket.close()

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    def count(self, path: str, **members: str) -> int:
        """How many requests came to a path, with these members of the form or query."""
        return sum(place == path and members.items() <= form.items() for place, form in self.requests)

    def revoke(self) -> None:
        """Let no access token be good that there is."""
        self.tokens.clear()

    # --- requests -------------------------------------------------------------------------------------

    async def _answer(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http" or (scope["path"] == "/mcp" and scope["method"] != "POST"):
            await self._app(scope, receive, send)
            return
        body = b""
        more = True
        while more:
            part = await receive()
            body += part.get("body", b"")
            more = part.get("more_body", False)
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        if scope["path"] != "/mcp":
            await self._serve_authorization(scope, body, send)
            return
        message = json.loads(body)
        refusal = self._refusal_of(message, headers.get("authorization", ""))
        if refusal is not None:
            await respond(send, *refusal)
            return
        self.asked.append(str(message.get("method")))
        waiting = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return waiting.pop() if waiting else await receive()

        await self._app(scope, again, send)

    def _refusal_of(self, message: dict[str, Any], header: str) -> tuple[int, dict[str, Any], Any] | None:
        """Return the answer to a request whose token does not do."""
        where = f'resource_metadata="{self.origin}{RESOURCE}"'
        scopes = self.tokens.get(header.removeprefix("Bearer "))
        if scopes is None or self.takes_none:
            return 401, {"www-authenticate": f'Bearer {where}, scope="basic"'}, {"error": "invalid_token"}
        wanted = self.scopes_of.get(message.get("params", {}).get("name", ""))
        if wanted is not None and wanted not in scopes:
            challenge = f'Bearer error="insufficient_scope", scope="{wanted}", {where}'
            return 403, {"www-authenticate": challenge}, {"error": "insufficient_scope"}
        return None

    async def _serve_authorization(self, scope: Any, body: bytes, send: Any) -> None:
        path = scope["path"]
        text = body.decode() if body else scope["query_string"].decode()
        form = {"json": text} if text.startswith("{") else {k: v[0] for k, v in parse_qs(text).items()}
        self.requests.append((path, form))
        unwell = self.unwell.get(form.get("grant_type", path))
        if unwell is not None:
            await respond(send, unwell[0], {}, unwell[1])
            return
        handler = {
            RESOURCE: self._resource,
            METADATA: self._metadata,
            "/register": self._register,
            "/authorize": self._authorize,
            "/token": self._token,
        }.get(path)
        await respond(send, *(handler(form) if handler is not None else (404, {}, {})))

    def _resource(self, form: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        servers = [self.authorization_server or self.origin]
        return 200, {}, {"resource": self.url, "authorization_servers": servers}

    def _metadata(self, form: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        places = {f"{name}_endpoint": f"{self.origin}/{path}" for name, path in PLACES.items()}
        methods = {} if self.pkce is None else {"code_challenge_methods_supported": self.pkce}
        return 200, {}, {"issuer": self.origin, **methods, **places}

    def _register(self, form: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        self._issued += 1
        members = {**json.loads(form["json"]), "client_id": f"client-{self._issued}"}
        members |= {"client_secret": f"secret-of-client-{self._issued}"}
        return 201, {}, {**members, "token_endpoint_auth_method": "client_secret_post"}

    def _authorize(self, form: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        answer = {"state": form["state"]}
        if self.denies:
            answer |= {"error": "access_denied", "error_description": "not today"}
        else:
            self._issued += 1
            answer["code"] = f"code-number-{self._issued}"
            self.codes[answer["code"]] = set(form.get("scope", "").split())
        return 302, {"location": f"{form['redirect_uri']}?{urlencode(answer)}"}, {}

    def _token(self, form: dict[str, str]) -> tuple[int, dict[str, str], Any]:
        if form["grant_type"] == "authorization_code":
            scopes = self.codes.pop(form["code"], None)
        elif form["grant_type"] == "refresh_token":
            scopes = self.refresh_tokens.pop(form["refresh_token"], None)
        else:
            scopes = set(form.get("scope", "").split())
        if scopes is None:
            return 400, {}, {"error": "invalid_grant"}
        self._issued += 1
        access, refresh = f"access-token-{self._issued}", f"refresh-token-{self._issued}"
        self.tokens[access] = self.refresh_tokens[refresh] = scopes
        answer = {"access_token": access, "token_type": "Bearer", "expires_in": self.expires_in}
        return 200, {}, {**answer, "refresh_token": refresh, "scope": " ".join(sorted(scopes))}


PLACES = {"authorization": "authorize", "token": "token", "registration": "register"}


async def respond(send: Any, status: int, headers: dict[str, str], members: Any) -> None:
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    start = {"type": "http.response.start", "status": status}
    await send({**start, "headers": [(b"content-type", b"application/json"), *pairs]})
    await send({"type": "http.response.body", "body": json.dumps(members).encode()})

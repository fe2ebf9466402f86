"""Authorization of a compat server in a separate process, over HTTP, as its clients meet it.

The server is a file as it is written for FastMCP, its import swapped. JWKS and introspection are on loopback.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.access_control import BOTH, INITIALIZE, Caller
from support.compat_auth import AUDIENCE, ISSUER, PAIR, token
from support.http_server import HttpProcess
from support.stdio import serve as serve_stdio
from support.web_server import Visit, Web, serve

from fastrpc.compat.fastmcp import Client, RSAKeyPair

SERVER = """
import sys

from fastrpc.compat.fastmcp import (
    FastMCP, IntrospectionTokenVerifier, JWTVerifier, MultiAuth, RemoteAuthProvider, StaticTokenVerifier,
    get_access_token, require_scopes,
)

jwt = JWTVerifier(
    jwks_uri="KEYS", issuer="ISSUER", audience="AUDIENCE", required_scopes=["read"]
)
introspection = IntrospectionTokenVerifier(
    introspection_url="INTROSPECTION", client_id="me", client_secret="s3cret-of-the-client"
)
static = StaticTokenVerifier({"static-token-of-carol": {"client_id": "carol", "scopes": ["read"]}})
providers = {
    "jwt": lambda: RemoteAuthProvider(
        token_verifier=jwt, authorization_servers=["ISSUER"], base_url="https://mcp.test"
    ),
    "all": lambda: MultiAuth(verifiers=[jwt, static, introspection]),
    "none": lambda: None,
}
mcp = FastMCP("shop", auth=providers["PROVIDER"]())


@mcp.tool(run_in_thread=False)
def who() -> str:
    access = get_access_token()
    return "nobody" if access is None else f"{access.client_id}: {' '.join(access.scopes)}"


@mcp.tool
async def who_async() -> str:
    return who()


@mcp.tool
def who_thread() -> str:
    return who()


@mcp.tool(auth=require_scopes("admin"))
def secret() -> str:
    return "secret"


if __name__ == "__main__":
    mcp.run(**OPTIONS)
"""


class Issuer:
    """A key that a JWKS address shows, and an introspection endpoint."""

    def __init__(self, web: Web) -> None:
        from jwt.algorithms import RSAAlgorithm

        key = RSAAlgorithm(RSAAlgorithm.SHA256).prepare_key(PAIR.public_key)
        self.keys = {"keys": [{**RSAAlgorithm.to_jwk(key, as_dict=True), "kid": "k", "use": "sig"}]}
        self.web = web
        web.add("/keys", json.dumps(self.keys).encode(), "application/json")
        web.answer("/introspect", self._introspect)

    def _introspect(self, visit: Visit) -> None:
        from urllib.parse import parse_qs

        form = parse_qs(visit.rfile.read(int(visit.headers["content-length"])).decode())
        is_known = form["token"] == ["opaque-token-of-bob"]
        answer = {"active": is_known, "client_id": "bob", "scope": "read admin"}
        visit.respond(json.dumps(answer), "application/json")

    def token(self, **options: Any) -> str:
        return token(**{"kid": "k", "subject": "ada", **options})

    def file(self, folder: Path, provider: str, run: str = "mcp.run(**OPTIONS)", **options: Any) -> Path:
        """Write a server."""
        text = SERVER
        for name, value in {
            "RUN": run,
            "KEYS": self.web.url("/keys"),
            "INTROSPECTION": self.web.url("/introspect"),
            "ISSUER": ISSUER,
            "AUDIENCE": AUDIENCE,
            "PROVIDER": provider,
            "OPTIONS": repr(options),
        }.items():
            text = text.replace(name, value)
        path = folder / f"server_{provider}.py"
        path.write_text(text)
        return path


class Served(HttpProcess, Caller):
    """The process of a file that serves over HTTP."""

    def __init__(self, file: Path) -> None:
        HttpProcess.__init__(self, command=[sys.executable, str(file)])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@pytest.fixture(scope="module")
def issuer() -> Iterator[Issuer]:
    with serve() as web:
        yield Issuer(web)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("servers")


@pytest.fixture(scope="module")
def by_jwt(issuer: Issuer, folder: Path) -> Iterator[Served]:
    with Served(issuer.file(folder, "jwt", transport="http", host="127.0.0.1", port=0)) as server:
        yield server


@pytest.fixture(scope="module")
def by_all(issuer: Issuer, folder: Path) -> Iterator[Served]:
    with Served(issuer.file(folder, "all", transport="http", host="127.0.0.1", port=0)) as server:
        yield server


def status(server: Served, given: str) -> int:
    return server.call("who", f"Authorization: Bearer {given}").status


def used(server: Served, given: str) -> tuple[list[str], list[Any]]:
    """Return the tools that a client sees, and what calls of some return; None for one that fails."""

    async def work() -> tuple[list[str], list[Any]]:
        async with Client(server.url, auth=given) as client:
            names = [tool.name for tool in await client.list_tools()]
            found: list[Any] = []
            for name in ("who", "who_async", "who_thread", "secret"):
                try:
                    found.append((await client.call_tool(name)).data)
                except Exception:  # ToolError or McpError
                    found.append(None)
            return names, found

    return asyncio.run(asyncio.wait_for(work(), 60))


def test_a_client_with_a_token_sees_and_calls_what_its_scopes_allow(by_jwt: Served, issuer: Issuer) -> None:
    reader, admin = issuer.token(), issuer.token(scopes=["read", "admin"])
    assert used(by_jwt, reader) == (["who", "who_async", "who_thread"], [*["ada: read"] * 3, None])
    names, found = used(by_jwt, admin)
    assert names == ["who", "who_async", "who_thread", "secret"]
    assert found == [*["ada: read admin"] * 3, "secret"]
    assert used(by_jwt, reader)[0] == ["who", "who_async", "who_thread"]


def test_callers_take_turns_on_the_fast_path_and_each_is_himself(by_jwt: Served, issuer: Issuer) -> None:
    tokens = {name: issuer.token(subject=name) for name in ("ada", "bob")}
    for _ in range(4):
        for name, given in tokens.items():
            answer = by_jwt.call("who", f"Authorization: Bearer {given}")
            assert json.loads(answer.body)["result"]["content"][0]["text"] == f"{name}: read"
    assert issuer.web.count("/keys") <= 2


WRONG: dict[str, tuple[dict[str, Any], int]] = {
    "expired": ({"expires_in_seconds": -1}, 401),
    "another audience": ({"audience": "https://else.test"}, 401),
    "another issuer": ({"issuer": "https://else.test"}, 401),
    "an unknown key": ({"kid": "other"}, 401),
    "no scope": ({"scopes": ["write"]}, 403),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_token_opens_nothing(by_jwt: Served, issuer: Issuer, name: str) -> None:
    changes, expected = WRONG[name]
    answer = by_jwt.call("who", f"Authorization: Bearer {issuer.token(**changes)}")
    assert answer.status == expected
    error = "invalid_token" if expected == 401 else "insufficient_scope"
    challenge = answer.headers["www-authenticate"]
    assert f'error="{error}"' in challenge
    assert 'resource_metadata="https://mcp.test/.well-known/oauth-protected-resource/mcp"' in challenge


def test_a_token_of_another_key_opens_nothing(by_jwt: Served) -> None:
    stranger = RSAKeyPair.generate()
    assert status(by_jwt, token(stranger, kid="k")) == 401


def test_clients_find_the_authorization_server(by_jwt: Served) -> None:
    refused = by_jwt.call("who", "X-Nothing: here")
    assert refused.status == 401
    assert "error=" not in refused.headers["www-authenticate"]
    found = by_jwt.ask("GET", "/.well-known/oauth-protected-resource/mcp")
    assert json.loads(found.body)["authorization_servers"] == [ISSUER]
    with pytest.raises(RuntimeError, match="401"):
        used(by_jwt, "wrong")


def test_each_verifier_of_several_knows_its_own(by_all: Served, issuer: Issuer) -> None:
    assert used(by_all, "opaque-token-of-bob")[1] == [*["bob: read admin"] * 3, "secret"]
    assert used(by_all, "static-token-of-carol")[1] == [*["carol: read"] * 3, None]
    assert used(by_all, issuer.token())[1] == [*["ada: read"] * 3, None]
    assert status(by_all, "opaque-token-of-eve") == 401


def session_of(server: Served, given: str) -> str:
    answer = server.ask(
        "POST",
        "/mcp",
        f"Authorization: Bearer {given}",
        *BOTH,
        body=INITIALIZE,
    )
    assert answer.status == 200
    return str(answer.headers["mcp-session-id"])


def list_in(server: Served, session: str, given: str) -> tuple[int, bytes]:
    answer = server.ask(
        "POST",
        "/mcp",
        f"Authorization: Bearer {given}",
        f"Mcp-Session-Id: {session}",
        "MCP-Protocol-Version: 2025-11-25",
        *BOTH,
        body=b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}',
    )
    return answer.status, answer.body


def test_a_session_outlives_its_first_token_but_not_its_caller(by_jwt: Served, issuer: Issuer) -> None:
    session = session_of(by_jwt, issuer.token())
    fresh = issuer.token(scopes=["read", "admin"])
    for _ in range(3):
        found, body = list_in(by_jwt, session, fresh)
        assert (found, b'"secret"' in body) == (200, True)
        found, body = list_in(by_jwt, session, issuer.token())
        assert (found, b'"secret"' in body) == (200, False)
    assert list_in(by_jwt, session, issuer.token(subject="eve"))[0] == 404
    assert list_in(by_jwt, session, issuer.token(expires_in_seconds=-1))[0] == 401


@pytest.mark.parametrize("run", ["mcp.run()", "asyncio.run(mcp.run_async())"])
def test_over_stdio_the_client_is_the_user(issuer: Issuer, folder: Path, run: str) -> None:
    file = issuer.file(folder, "jwt", run)
    with serve_stdio(command=[sys.executable, str(file)]) as server:
        server.initialize()
        names = [tool["name"] for tool in server.request("tools/list")["result"]["tools"]]
        assert "secret" in names
        answer = server.request("tools/call", {"name": "secret", "arguments": {}})
        assert answer["result"]["content"][0]["text"] == "secret"


def test_no_token_and_no_secret_shows_in_the_log(issuer: Issuer, folder: Path) -> None:
    path = issuer.file(folder, "all", transport="http", host="127.0.0.1", port=0, log_level="debug")
    with Served(path) as server:
        for given in ("static-token-of-carol", "opaque-token-of-bob", "opaque-token-of-eve", issuer.token()):
            status(server, given)
        server.stop()
        said = server.stderr + server.stdout
    for secret in ("static-token", "opaque-token", "s3cret", issuer.token()[:40]):
        assert secret not in said, said


def test_authorization_costs_a_server_over_stdio_no_library() -> None:
    code = (
        "import sys; from fastrpc.compat.fastmcp import FastMCP, JWTVerifier; "
        "FastMCP('shop', auth=JWTVerifier(jwks_uri='https://x.test/keys')); "
        "print({'jwt', 'httpx', 'cryptography', 'pydantic', 'starlette', 'mcp'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "set()", done.stderr

"""`[[claims]]` of a guard: a real server whose callers have tokens of a real authorization server."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.access_control import BOTH, INITIALIZE, Caller
from support.guarded_folder import variables
from support.http_server import FASTRPC, HttpProcess
from support.token_issuer import RESOURCE, RSA, AuthorizationServer
from support.waiting import eventually

from fastrpc import Client
from fastrpc.client.sync import SyncClient
from fastrpc.errors import RemoteError

TOOLS = """
from fastrpc import Context, Server

app = Server("shop")

@app.tool(effect="read")
def search(text: str) -> str:
    return f"found {text}"

@app.tool(effect="write")
def order(item: str) -> str:
    return f"ordered {item}"

@app.tool(effect="read")
def whoami(ctx: Context) -> str:
    return ctx.principal
"""
GUARD = """
[expose]
tools = ["search", "whoami"]

[classes.operator]
tools = ["search", "whoami", "order"]

[classes.limited]
rate = "4/hour"

[callers."ISSUER#mallory"]
tools = ["whoami"]

[[claims]]
claim = ["realm_access", "roles"]
contains = "ops"
class = "operator"

[[claims]]
claim = "email"
matches = "*@partner.test"
class = "limited"

[[rules]]
id = "needs-the-scope"
tools = ["search"]
when = '!("shop:read" in caller.scopes)'
then = "deny"
"""


@pytest.fixture(scope="module")
def issuing() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as server:
        yield server


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, issuing: AuthorizationServer) -> Path:
    folder = tmp_path_factory.mktemp("claims")
    (folder / "shop.py").write_text(TOOLS)
    text = GUARD.replace('["search", "whoami"]', '["search", "whoami", "order"]', 1)
    text += "[classes.default]\ntools = ['search', 'whoami']\n"
    (folder / "guard.toml").write_text(text.replace("ISSUER", issuing.issuer))
    return folder


@pytest.fixture(scope="module")
def server(folder: Path, issuing: AuthorizationServer) -> Iterator[HttpProcess]:
    command = ("serve", "shop.py:app", "--guard", "guard.toml", "--http", "127.0.0.1:0")
    options = ("--auth-server", issuing.issuer, "--resource", RESOURCE)
    with HttpProcess(*command, *options, folder=folder, environment=variables(folder)) as process:
        yield process


def client(server: HttpProcess, token: str) -> SyncClient:
    return Client.sync(f"http://127.0.0.1:{server.port}/mcp", token=token)


def names(client: SyncClient) -> list[str]:
    return [tool["name"] for tool in client.list_tools()]


def outcome(client: SyncClient, tool: str, **arguments: Any) -> Any:
    try:
        return client.call_tool(tool, arguments).text
    except RemoteError as error:
        return error.code


def test_the_claims_of_a_token_say_the_class_and_its_scopes_are_the_callers(
    server: HttpProcess, issuing: AuthorizationServer
) -> None:
    ops = {"realm_access": {"roles": ["ops"]}}
    with client(server, issuing.token(scope="shop:read", **ops)) as operator:
        assert names(operator) == ["search", "order", "whoami"]
        assert outcome(operator, "order", item="x") == "ordered x"
        assert outcome(operator, "search", text="x") == "found x"
        assert outcome(operator, "whoami") == f'operator"shop:read"@{issuing.issuer}#ada'
    with client(server, issuing.token()) as plain:
        assert names(plain) == ["search", "whoami"]
        assert outcome(plain, "order", item="x") == -32602
        assert outcome(plain, "search", text="x") == 403
        assert outcome(plain, "whoami") == f"default@{issuing.issuer}#ada"


def test_two_tokens_of_one_subject_at_the_same_time_have_each_their_own_rights(
    server: HttpProcess, issuing: AuthorizationServer
) -> None:
    ops = issuing.token(realm_access={"roles": ["ops"]})
    with client(server, ops) as operator, client(server, issuing.token()) as plain:
        for _ in range(3):
            assert outcome(operator, "order", item="x") == "ordered x"
            assert outcome(plain, "order", item="x") == -32602
            assert "order" in names(operator)
            assert "order" not in names(plain)


def test_a_session_is_that_of_the_rights_with_which_it_was_opened(
    server: HttpProcess, issuing: AuthorizationServer
) -> None:
    caller = Caller(server.port)

    def lines(token: str, *more: str) -> tuple[str, ...]:
        return (f"Authorization: Bearer {token}", *BOTH, *more)

    ops = {"realm_access": {"roles": ["ops"]}}
    opened = caller.ask("POST", "/mcp", *lines(issuing.token(**ops)), body=INITIALIZE)
    session = f"Mcp-Session-Id: {opened.headers['mcp-session-id']}"
    ping = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
    assert caller.ask("POST", "/mcp", *lines(issuing.token(RSA, **ops), session), body=ping).status == 200
    assert caller.ask("POST", "/mcp", *lines(issuing.token(), session), body=ping).status == 404


def test_rates_count_all_tokens_of_a_subject_together(
    server: HttpProcess, issuing: AuthorizationServer
) -> None:
    found = []
    for number in range(6):
        token = issuing.token(sub="eve", email="eve@partner.test", scope=f"s{number}")
        with client(server, token) as limited:
            found.append(outcome(limited, "whoami"))
    assert [each for each in found if isinstance(each, int)] == [429, 429]
    assert all(isinstance(each, str) for each in found[:4])


def test_a_table_of_callers_names_a_subject_whatever_its_class(
    server: HttpProcess, issuing: AuthorizationServer
) -> None:
    with client(server, issuing.token(sub="mallory", realm_access={"roles": ["ops"]})) as mallory:
        assert names(mallory) == ["whoami"]


def test_a_rule_about_a_server_that_issues_nothing_here_is_refused_at_the_start(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TOOLS)
    rule = "[[claims]]\nissuer = 'https://as.test'\nclaim = 'a'\npresent = true\nclass = 'b'\n"
    (tmp_path / "guard.toml").write_text(rule)
    command = [*FASTRPC, "serve", "shop.py:app", "--guard", "guard.toml", "--http", "127.0.0.1:0"]
    more = ["--auth-server", "https://as.test/", "--resource", RESOURCE]
    done = subprocess.run(
        [*command, *more],
        cwd=tmp_path,
        env=variables(tmp_path),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    said = "claims[0].issuer: no --auth-server is https://as.test (did you mean https://as.test/?)"
    assert said in done.stderr


def test_the_audit_names_class_and_subject(
    server: HttpProcess, issuing: AuthorizationServer, folder: Path
) -> None:
    with client(server, issuing.token(sub="grace", realm_access={"roles": ["ops"]})) as operator:
        assert outcome(operator, "nothing") == -32602
        assert outcome(operator, "search", text="x") == 403
    command = [*FASTRPC, "audit", "search", "--caller", "*#grace", "--outcome", "refused", "--json"]

    def found() -> list[str]:
        done = subprocess.run(command, cwd=folder, env=variables(folder), capture_output=True, text=True)
        return done.stdout.splitlines()

    (record,) = map(json.loads, eventually(found))  # a call is answered before its record is written
    assert (record["class"], record["rule"]) == ("operator", "needs-the-scope")
    assert record["actor"] == f"operator@{issuing.issuer}#grace"

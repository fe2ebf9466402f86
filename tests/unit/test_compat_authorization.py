"""Authorization of compat servers: challenge and metadata, the token of a call, checks of single components.

Statuses and lists are those that FastMCP 3 and 4 and the official SDK 1 give for the same server, except
where docs/compat.md says that they differ.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

import pytest
from support.compat_auth import ISSUER, Own, ask, run, served, statuses, token, verifier
from support.http_server import InProcess

from fastrpc.compat import NotOffered, fastmcp, mcp
from fastrpc.compat.auth.authenticator import principal_of
from fastrpc.compat.fastmcp import (
    AccessToken,
    AuthContext,
    AuthKitProvider,
    AuthMiddleware,
    AuthorizationError,
    Context,
    DebugTokenVerifier,
    FastMCP,
    KeycloakAuthProvider,
    MultiAuth,
    RemoteAuthProvider,
    ScalekitProvider,
    StaticTokenVerifier,
    SupabaseProvider,
    get_access_token,
    require_roles,
    require_scopes,
    restrict_tag,
    run_auth_checks,
)
from fastrpc.testing import Client
from fastrpc.transports import stdio

# --- challenge and metadata -------------------------------------------------------------------------------


def remote(**options: Any) -> RemoteAuthProvider:
    given = {"authorization_servers": ["https://as.test"], "base_url": "https://mcp.test", **options}
    return RemoteAuthProvider(**{"token_verifier": Own(required_scopes=["read"]), **given})


def test_clients_find_the_authorization_server() -> None:
    app = FastMCP("shop", auth=remote(resource_name="Shop", scopes_supported=["api://read"]))

    async def work(server: InProcess) -> tuple[Any, Any]:
        refused = await ask(server, "tools/list")
        found = await server.ask("GET", "/.well-known/oauth-protected-resource/mcp")
        return refused, found

    (status, _, headers), (found, metadata, _) = served(app, work)
    challenge = headers[b"www-authenticate"].decode()
    assert (status, found) == (401, 200)
    assert challenge == (
        'Bearer realm="mcp", resource_metadata="https://mcp.test/.well-known/oauth-protected-resource/mcp", '
        'scope="read"'
    )
    assert metadata == {
        "resource": "https://mcp.test/mcp",
        "authorization_servers": ["https://as.test"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["api://read"],
        "resource_name": "Shop",
    }


def test_a_missing_scope_is_named_in_the_challenge() -> None:
    async def work(server: InProcess) -> Any:
        return await ask(server, "tools/list", token(scopes=["write"]))

    status, body, headers = served(FastMCP("shop", auth=verifier(required_scopes=["read"])), work)
    challenge = headers[b"www-authenticate"].decode()
    assert status == 403
    assert challenge == 'Bearer realm="mcp", scope="read", error="insufficient_scope"'
    assert "the token needs the scopes read" in body["error"]["message"]


def test_a_verifier_alone_has_no_metadata() -> None:
    async def work(server: InProcess) -> int:
        return (await server.ask("GET", "/.well-known/oauth-protected-resource/mcp"))[0]

    assert served(FastMCP("shop", auth=verifier(base_url="https://mcp.test")), work) == 404


@pytest.mark.parametrize("validates", [None, True])
def test_the_settings_of_the_official_sdk(validates: bool | None) -> None:
    class Verifier(mcp.TokenVerifier):
        def __init__(self) -> None:
            self.seen: list[str] = []

        async def verify_token(self, token: str) -> Any:
            self.seen.append(token)
            resource = {"bound": "https://MCP.test/", "else": "https://else.test"}.get(token)
            return mcp.AccessToken(token=token, client_id="c", scopes=["user"], resource=resource)

    settings = mcp.AuthSettings(
        issuer_url="https://as.test",
        resource_server_url="https://mcp.test",
        required_scopes=["user"],
        validate_token_resource=validates,
    )
    app = mcp.FastMCP("shop", auth=settings, token_verifier=Verifier())
    others = 401 if validates else 200
    assert statuses(app, None, "bound", "else", "none") == [401, 200, others, others]

    async def work(server: InProcess) -> Any:
        return await server.ask("GET", "/.well-known/oauth-protected-resource")

    status, metadata, _ = served(app, work)
    assert status == 200
    assert metadata == {
        "resource": "https://mcp.test",
        "authorization_servers": ["https://as.test"],
        "bearer_methods_supported": ["header"],
        "scopes_supported": ["user"],
    }


def test_settings_and_verifier_need_each_other() -> None:
    settings = mcp.AuthSettings(issuer_url="https://as.test", resource_server_url=None)
    for options in ({"auth": settings}, {"token_verifier": Own()}):
        with pytest.raises(ValueError, match="need each other"):
            mcp.FastMCP("shop", **options)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected an object with verify_token"):
        FastMCP("shop", auth="token")


class Logins:
    """An authorization server."""

    async def authorize(self, client: object, params: object) -> str:
        return ""

    async def verify_token(self, token: str) -> None:
        return None


def test_an_authorization_server_is_not_offered() -> None:
    with pytest.raises(NotOffered, match="RemoteAuthProvider"):
        FastMCP("shop", auth=Logins())  # type: ignore[arg-type]


def test_no_two_identities_are_one_principal() -> None:
    def named(client: str, issuer: str | None = None, subject: str | None = None) -> str:
        claims = {} if issuer is None else {"iss": issuer}
        return principal_of(
            AccessToken(token="t", client_id=client, scopes=[], subject=subject, claims=claims)
        )

    given = [("a",), ("a#b",), ("a", "b"), ("a", None, "b"), ("a", "b", "c"), ("a#b", None, "c"), ("a%23b",)]
    assert len({named(*each) for each in given}) == len(given)
    assert principal_of(AccessToken(token="t", client_id="a", scopes=[]), 1) not in map(named, "ab")
    assert named("shop", ISSUER, "ada") == "shop#https://issuer.test#ada"


# --- inside a call ----------------------------------------------------------------------------------------


def shop(auth: Any) -> FastMCP:
    app = FastMCP("shop", auth=auth)

    @app.tool
    def who() -> str:
        access = get_access_token()
        return "nobody" if access is None else f"{access.client_id} {access.token}"

    @app.tool
    async def who_later() -> str:
        await asyncio.sleep(0.01)
        return who()

    @app.tool
    def who_in_a_thread() -> str:
        time.sleep(0.02)
        return who()

    return app


def text_of(body: Any) -> str:
    return str(body["result"]["content"][0]["text"])


@pytest.mark.parametrize("tool", ["who", "who_later", "who_in_a_thread"])
def test_a_call_sees_the_token_of_its_request(tool: str) -> None:
    async def work(server: InProcess) -> list[str]:
        calls = [ask(server, "tools/call", f"token-{n}", name=tool, arguments={}) for n in range(4)]
        return [text_of(body) for _, body, _ in await asyncio.gather(*calls)]

    expected = [f"debug-client token-{n}" for n in range(4)]
    assert served(shop(DebugTokenVerifier()), work) == expected
    assert get_access_token() is None


def test_there_is_no_token_in_memory_or_without_authentication() -> None:
    async def in_memory() -> str:
        async with Client(shop(DebugTokenVerifier())) as client:
            return (await client.call("who")).text

    async def work(server: InProcess) -> str:
        return text_of((await ask(server, "tools/call", "t", name="who", arguments={}))[1])

    assert run(in_memory()) == "nobody"
    assert served(shop(None), work) == "nobody"


def test_the_clients_of_several_verifiers_are_not_one_principal() -> None:
    tokens = [StaticTokenVerifier({name: {"client_id": "ada", "scopes": []}}) for name in ("one", "two")]
    app = FastMCP("shop", auth=MultiAuth(verifiers=tokens))

    @app.tool
    def who(ctx: Context) -> str:
        return f"{get_access_token().client_id} {ctx.inner.principal}"  # type: ignore[union-attr]

    async def work(server: InProcess) -> list[str]:
        calls = [await ask(server, "tools/call", name, name="who", arguments={}) for name in ("one", "two")]
        return [text_of(body) for _, body, _ in calls]

    assert served(app, work) == ["ada ada", "ada ada###1"]


# --- checks of single components --------------------------------------------------------------------------


def restricted(**options: Any) -> FastMCP:
    app = FastMCP("shop", auth=Own(), **options)

    @app.tool
    def open_() -> str:
        return "open"

    @app.tool(auth=require_scopes("admin"), tags={"danger"})
    def secret(count: int = 1) -> str:
        return "secret"

    @app.resource("x://s", auth=[require_scopes("read"), require_scopes("admin")])
    def fixed() -> str:
        return "fixed"

    @app.resource("t://{name}", auth=require_scopes("admin"))
    def template(name: str) -> str:
        return name

    @app.prompt(auth=require_scopes("admin"))
    def question() -> str:
        return "?"

    return app


LISTS = {
    "tools/list": ("tools", "name"),
    "resources/list": ("resources", "uri"),
    "resources/templates/list": ("resourceTemplates", "uriTemplate"),
    "prompts/list": ("prompts", "name"),
}


async def listed(server: InProcess, bearer: str | None) -> list[str]:
    found = []
    for method, (member, key) in LISTS.items():
        _, body, _ = await ask(server, method, bearer)
        found += [entry[key] for entry in body.get("result", {member: []})[member]]
    return found


CALLS: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("tools/call", {"name": "secret", "arguments": {}}, {"name": "absent", "arguments": {}}),
    ("resources/read", {"uri": "x://s"}, {"uri": "z://absent"}),
    ("resources/read", {"uri": "t://a"}, {"uri": "z://absent"}),
    ("prompts/get", {"name": "question"}, {"name": "absent"}),
]


def test_what_a_caller_may_not_use_does_not_exist() -> None:
    async def work(server: InProcess) -> None:
        assert await listed(server, "admin") == ["open_", "secret", "x://s", "t://{name}", "question"]
        assert await listed(server, "good") == ["open_"]
        assert await listed(server, "admin") == ["open_", "secret", "x://s", "t://{name}", "question"]
        for method, params, absent in CALLS:
            assert "result" in (await ask(server, method, "admin", **params))[1]
            hidden = json.dumps((await ask(server, method, "good", **params))[1])
            unknown = json.dumps((await ask(server, method, "good", **absent))[1])
            name = str(params.get("name", params.get("uri")))
            assert hidden.replace(name, "NAME") == unknown.replace(
                absent.get("name", absent.get("uri")), "NAME"
            )
        assert (await ask(server, "tools/call", "good", name="open_", arguments={}))[0] == 200

    served(restricted(), work)


def test_without_a_token_checks_refuse_except_over_stdio(monkeypatch: pytest.MonkeyPatch) -> None:
    async def in_memory(app: FastMCP) -> list[Any]:
        async with Client(app) as client:
            return [tool["name"] for tool in await client.tools()]

    async def work(server: InProcess) -> list[str]:
        return await listed(server, None)

    app = restricted()
    app.auth = None
    assert run(in_memory(app)) == ["open_"]
    assert served(app, work) == ["open_"]
    monkeypatch.setattr(stdio, "_is_serving", True)
    assert run(in_memory(restricted())) == ["open_", "secret"]
    assert served(app, work) == ["open_"]  # who calls over HTTP is not the user


def test_checks_of_a_mounted_server_hold_elsewhere() -> None:
    outer = FastMCP("outer", auth=Own())
    outer.mount(restricted(), "in")

    async def work(server: InProcess) -> None:
        assert await listed(server, "admin") == [
            "in_open_",
            "in_secret",
            "x://in/s",
            "t://in/{name}",
            "in_question",
        ]
        assert await listed(server, "good") == ["in_open_"]
        for name, bearer, is_right in (("in_secret", "admin", True), ("in_secret", "good", False)):
            _, body, _ = await ask(server, "tools/call", bearer, name=name, arguments={})
            assert ("result" in body) is is_right

    served(outer, work)


def test_checks_of_a_whole_server() -> None:
    app = restricted()
    AuthMiddleware(restrict_tag("danger", scopes=["audit"])).attach(app)

    async def work(server: InProcess) -> Any:
        assert await listed(server, "admin") == ["open_", "x://s", "t://{name}", "question"]
        return (await ask(server, "tools/call", "admin", name="secret", arguments={}))[1]

    assert text_of(served(app, work)).endswith(
        "Authorization failed for tool 'secret': insufficient scope (required: audit)"
    )


def check(given: Any, scopes: list[str] | None = None, **claims: Any) -> bool:
    found = AccessToken(token="t", client_id="c", scopes=scopes or [], claims=claims)
    component = type("Component", (), {"tags": {"a"}, "kind": "tool"})()
    return bool(run(run_auth_checks(given, AuthContext(None if scopes is None else found, component))))


def test_checks_can_be_asked_alone() -> None:
    assert check(require_scopes("a", "b"), ["b", "a", "c"])
    assert not check(require_scopes("a", "b"), ["a"])
    assert not check(require_scopes("a"), None)
    assert not check(require_scopes(), None)
    assert check(restrict_tag("b", scopes=["x"]), None)
    assert not check(restrict_tag("a", scopes=["x"]), [])
    assert check([lambda context: context.tool.kind == "tool", require_scopes("x")], ["x"])
    roles = require_roles("admin", extract=lambda claims: claims["roles"])
    assert check(roles, [], roles=["admin", "user"])
    assert check(roles, [], roles="admin")
    assert not check(require_roles("a", extract=lambda claims: claims["roles"]), [], roles="admin")
    assert not check(roles, [])
    with pytest.raises(ValueError, match="at least one role"):
        require_roles(extract=lambda claims: [])


def own_checks() -> FastMCP:
    app = FastMCP("shop", auth=Own())

    async def waits(context: AuthContext) -> bool:
        await asyncio.sleep(0)
        return "admin" in context.token.scopes

    async def does_not_wait(context: AuthContext) -> bool:
        return "admin" in context.token.scopes

    def broken(context: AuthContext) -> bool:
        raise KeyError("words of a bug")

    def deliberate(context: AuthContext) -> bool:
        raise AuthorizationError("not on Sundays")

    for check in (waits, does_not_wait, broken, deliberate):
        app.tool(lambda: "used", name=check.__name__, auth=check)
    return app


def test_checks_of_ones_own_may_wait_and_fail(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("WARNING", logger="fastrpc")

    async def work(server: InProcess) -> dict[str, list[str]]:
        used: dict[str, list[str]] = {}
        for bearer in ("admin", "good"):
            assert await listed(server, bearer) == (["does_not_wait"] if bearer == "admin" else [])
            used[bearer] = []
            for name in ("waits", "does_not_wait", "broken", "deliberate"):
                _, body, _ = await ask(server, "tools/call", bearer, name=name, arguments={})
                if "result" in body:
                    used[bearer].append(name)
        return used

    assert served(own_checks(), work) == {"admin": ["waits", "does_not_wait"], "good": []}
    assert "waits: what it restricts is not listed" in caplog.text


def test_a_name_that_is_free_again_has_no_check_left() -> None:
    app = restricted(on_duplicate="error")
    with pytest.raises(Exception, match="there is a tool of this name"):
        app.tool(lambda: "other", name="secret")

    async def names(server: InProcess) -> list[str]:
        return await listed(server, "good")

    assert served(app, names) == ["open_"]  # the one that was refused has taken no check away
    app.remove_tool("secret")
    app.tool(lambda: "other", name="secret")
    assert served(app, names) == ["open_", "secret"]


def test_a_server_without_checks_has_no_guard() -> None:
    app = shop(Own())
    assert app._guards == []
    assert app.list_filters == []


def test_what_is_no_check_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a check, or a list of them; got str"):
        FastMCP("shop").tool(auth="admin")(lambda: "x")


# --- services ---------------------------------------------------------------------------------------------


def test_services_are_known_by_their_addresses() -> None:
    authkit = AuthKitProvider(authkit_domain="https://x.authkit.test/", base_url="https://mcp.test")
    keycloak = KeycloakAuthProvider(realm_url="https://k.test/realms/a", base_url="https://mcp.test")
    scalekit = ScalekitProvider(
        environment_url="https://s.test", resource_id="res_1", base_url="https://mcp.test", resource_name="N"
    )
    supabase = SupabaseProvider(project_url="https://p.supabase.test", base_url="https://mcp.test")
    found = [
        (each.token_verifier.jwks_uri, each.token_verifier.issuer, each.issuers)
        for each in (authkit, keycloak, scalekit, supabase)
    ]
    scoped = "https://s.test/resources/res_1"
    assert found == [
        ("https://x.authkit.test/oauth2/jwks", "https://x.authkit.test", ["https://x.authkit.test"]),
        (
            "https://k.test/realms/a/protocol/openid-connect/certs",
            "https://k.test/realms/a",
            ["https://k.test/realms/a"],
        ),
        ("https://s.test/keys", ["https://s.test", scoped], [scoped]),
        (
            "https://p.supabase.test/auth/v1/.well-known/jwks.json",
            "https://p.supabase.test/auth/v1",
            ["https://p.supabase.test/auth/v1"],
        ),
    ]
    FastMCP("shop", auth=authkit)._token_check("/tools/mcp")
    audiences = [each.token_verifier.audience for each in (authkit, keycloak, scalekit, supabase)]
    assert audiences == ["https://mcp.test/tools/mcp", None, "res_1", "authenticated"]
    assert (keycloak.required_scopes, supabase.token_verifier.algorithm) == (["openid"], "ES256")
    assert scalekit.metadata == {"resource_name": "N"}


def test_a_provider_that_issues_tokens_says_that_it_is_fastmcps_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fastrpc.compat.names.originals.installed_spec", lambda package: None)
    for name in ("GitHubProvider", "OAuthProxy"):
        monkeypatch.delattr(fastmcp, name, raising=False)
        with pytest.raises(NotOffered, match="is a part of fastmcp itself: pip install fastmcp"):
            getattr(fastmcp, name)(client_id="a")
        monkeypatch.delattr(fastmcp, name)

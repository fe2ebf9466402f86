"""Where requests may come from over HTTP (scorecard F2): Host and Origin on every route, on real sockets."""

from __future__ import annotations

import ast
import asyncio
import inspect
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from support.access_control import CALL, METHODS, OTHER, STATELESS, TOKEN, Caller, GuardedServer
from support.http_server import in_process

from fastrpc import Server
from fastrpc.transports.http.app import HttpApp


@pytest.fixture(scope="module")
def local() -> Iterator[GuardedServer]:
    """Bound to loopback, with one origin and one host besides."""
    with GuardedServer(token=[TOKEN, OTHER], hosts=["mcp.test:8443"], origins=["https://app.test"]) as server:
        yield server


@pytest.fixture(scope="module")
def public() -> Iterator[GuardedServer]:
    """Bound to somewhere else, for named hosts and one origin."""
    hosts = ["mcp.test", "[2001:DB8:0::1]:80", "secure.test:443"]
    options: dict[str, Any] = {"hosts": hosts, "origins": ["https://app.test:8443", "https://plain.test:443"]}
    with GuardedServer(token=TOKEN, loopback=False, **options) as server:
        yield server


@pytest.fixture(scope="module")
def anywhere() -> Iterator[GuardedServer]:
    """Bound to somewhere else, for every host and no origin."""
    with GuardedServer(token=TOKEN, loopback=False) as server:
        yield server


# --- Host and Origin (scorecard F2) -----------------------------------------------------------------------

IN = None  # let in: what comes then is the route's business

HOSTS_LOCAL: list[tuple[str | None, int | None]] = [
    ("localhost", IN),
    ("localhost:8000", IN),
    ("LocalHost:1", IN),
    ("localhost.", IN),
    ("127.0.0.1", IN),
    ("127.0.0.1:65535", IN),
    ("127.255.1.3:80", IN),
    ("[::1]", IN),
    ("[::1]:8000", IN),
    ("mcp.test:8443", IN),
    ("mcp.test", 421),
    ("mcp.test:8444", 421),
    ("evil.test", 421),
    ("localhost.evil.test", 421),
    ("evil.localhost", 421),
    ("127.0.0.1.evil.test", 421),
    ("127.0.0.256", 421),
    ("127.1", 421),
    ("2130706433", 421),
    ("0x7f.0.0.1", 421),
    ("0.0.0.0", 421),
    ("192.168.0.1", 421),
    ("[::]", 421),
    ("[::ffff:127.0.0.1]", 421),
    ("[::1].evil.test", 400),
    ("[::1", 400),
    ("::1", 400),
    ("localhost:80:80", 400),
    ("localhost:8o", 400),
    ("localhost:123456", 400),
    ("localhost@evil.test", 400),
    ("evil.test@localhost", 400),
    ("http://localhost", 400),
    ("localhost/evil", 400),
    ("localhost, evil.test", 400),
    ("localhost evil", 400),
    ("localhost#", 400),
    ("l\xf6calhost", 400),
    (":80", 400),
    (None, 400),
]
ORIGINS_LOCAL: list[tuple[str, int | None]] = [
    ("http://localhost", IN),
    ("http://localhost:3000", IN),
    ("https://LOCALHOST:3000", IN),
    ("http://127.0.0.1:5173", IN),
    ("http://127.9.9.9", IN),
    ("http://[::1]:80", IN),
    ("https://app.test", IN),
    ("https://app.test:443", 403),
    ("http://app.test", 403),
    ("https://app.test.evil.test", 403),
    ("https://evil.test", 403),
    ("http://localhost.evil.test", 403),
    ("http://localhost@evil.test", 403),
    ("http://localhost:80@evil.test", 403),
    ("http://[::1]evil.test", 403),
    ("http://127.0.0.1.evil.test", 403),
    ("http://evil.test/localhost", 403),
    ("http://localhost/", 403),
    ("chrome-extension://localhost", 403),
    ("file://localhost", 403),
    ("file://", 403),
    ("null", 403),
    ("NULL", 403),
    ("*", 403),
    ("localhost", 403),
    ("http://", 403),
    ("http://2130706433", 403),
    ("http://0.0.0.0", 403),
    ("http://[::]", 403),
    ("http://localhost http://evil.test", 403),
    ("https://app.test, https://evil.test", 403),
]
PLACES_PUBLIC: list[tuple[tuple[str, ...], int | None]] = [
    (("Host: mcp.test",), IN),
    (("Host: MCP.test:443",), IN),
    (("Host: mcp.test:8080",), IN),
    (("Host: [2001:db8::1]:80",), IN),
    (("Host: [2001:db8::1]",), IN),
    (("Host: [2001:db8::1]:443",), 421),
    (("Host: [2001:db8::2]:80",), 421),
    (("Host: secure.test",), IN),
    (("Host: secure.test.:443",), IN),
    (("Host: secure.test:80",), 421),
    (("Host: localhost",), 421),
    (("Host: 127.0.0.1",), 421),
    (("Host: evil.test",), 421),
    (("Host: mcp.test.evil.test",), 421),
    (("Host: evil.mcp.test",), 421),
    (("Host: mcp.test", "Host: mcp.test"), 400),
    (("Host: mcp.test", "Origin: https://app.test:8443"), IN),
    (("Host: mcp.test", "Origin: https://plain.test"), IN),
    (("Host: mcp.test", "Origin: http://plain.test"), 403),
    (("Host: mcp.test", "Origin: https://app.test"), 403),
    (("Host: mcp.test", "Origin: https://mcp.test"), 403),
    (("Host: mcp.test", "Origin: http://localhost"), 403),
    (("Host: mcp.test", "Origin: null"), 403),
    (("Host: mcp.test", "Origin: https://app.test:8443", "Origin: https://app.test:8443"), 403),
    (("Host: mcp.test", "Origin: https://app.test:8443", "Origin: https://evil.test"), 403),
    (("Host: mcp.test", "Origin:"), 403),
    (("Host: mcp.test", "Sec-Fetch-Site: cross-site"), 403),
    (("Host: mcp.test", "Sec-Fetch-Site: same-site"), 403),
    (("Host: mcp.test", "Sec-Fetch-Site: none", "Sec-Fetch-Site: cross-site"), 403),
    (("Host: mcp.test", "Sec-Fetch-Site: none"), IN),
    (("Host: mcp.test", "Sec-Fetch-Site: same-origin"), IN),
    (("Host: mcp.test", "Origin: https://app.test:8443", "Sec-Fetch-Site: cross-site"), IN),
]


def application() -> HttpApp:
    async def make() -> HttpApp:
        async with in_process(Server("routes"), auth=None) as server:
            return server.application

    return asyncio.run(make())


def routes() -> list[str]:
    """Every route that there is, from the application itself, and some that are none."""
    app = application()
    return [*app.routes, *app.open_routes, "/", "/nowhere", "//mcp", "/mcp/"]


def check_everywhere(server: Caller, place: tuple[str, ...], expected: int | None) -> None:
    for path in routes():
        for method in METHODS:
            answer = server.ask(method, path, *place, "Content-Length: 0", host=None)
            where = f"{method} {path} with {place}: {answer.status} {answer.body!r}"
            if expected is not None:
                assert answer.status == expected, where
                assert method == "HEAD" or answer.code == -32600, where
                assert "access-control-allow-origin" not in answer.headers, where
            else:
                assert answer.status in (200, 204, 401, 404, 405), where
                origin = [line.partition(": ")[2] for line in place if line.startswith("Origin")]
                assert answer.headers.get("access-control-allow-origin") == (origin[0] if origin else None), (
                    where
                )


@pytest.mark.parametrize(("host", "expected"), HOSTS_LOCAL)
def test_on_loopback_only_loopback_hosts_are_answered_to(
    local: Caller, host: str | None, expected: int | None
) -> None:
    check_everywhere(local, () if host is None else (f"Host: {host}",), expected)


@pytest.mark.parametrize(("origin", "expected"), ORIGINS_LOCAL)
def test_on_loopback_only_loopback_origins_are_let_in(
    local: Caller, origin: str, expected: int | None
) -> None:
    check_everywhere(local, ("Host: localhost", f"Origin: {origin}"), expected)


@pytest.mark.parametrize(("place", "expected"), PLACES_PUBLIC)
def test_elsewhere_only_named_hosts_and_origins_are(
    public: Caller, place: tuple[str, ...], expected: int | None
) -> None:
    check_everywhere(public, place, expected)


def test_elsewhere_without_named_hosts_every_host_is_answered_to_but_no_origin(
    anywhere: Caller,
) -> None:
    for host in ("mcp.test", "localhost", "10.0.0.1:80", "[::1]"):
        check_everywhere(anywhere, (f"Host: {host}",), IN)
    for origin in ("http://localhost", "https://mcp.test", "null"):
        check_everywhere(anywhere, ("Host: mcp.test", f"Origin: {origin}"), 403)
    check_everywhere(anywhere, ("Host: mcp.test/x",), 400)


def test_a_call_that_the_straight_way_would_answer_is_checked_as_well(local: Caller) -> None:
    assert local.call("count").status == 200
    before = local.count()
    for host, expected in HOSTS_LOCAL:
        assert local.call("count", host=host).status == (expected or 200), host
    for origin, expected in ORIGINS_LOCAL:
        given = (f"Authorization: Bearer {TOKEN}", f"Origin: {origin}")
        assert local.call("count", *given).status == (expected or 200), origin
    let_in = [1 for _, expected in (*HOSTS_LOCAL, *ORIGINS_LOCAL) if expected is IN]
    assert local.count() == before + len(let_in) + 1


def test_the_guard_decides_on_every_route() -> None:
    """All requests go through one function, and the first thing that it does is to ask the guard."""
    route = ast.parse(textwrap.dedent(inspect.getsource(HttpApp._route))).body[0]
    function = next(node for node in ast.walk(route) if isinstance(node, ast.AsyncFunctionDef))
    statements = [node for node in function.body if not _is_docstring(node)]
    assert ast.unparse(statements[0]) == "request.origin = self.guard.check_place(request.headers)"
    paths = [
        node for node in ast.walk(function) if isinstance(node, ast.Constant) and str(node.value)[:1] == "/"
    ]
    assert not paths, "a route belongs into `routes` or `open_routes`, where the tables of this file find it"
    # Those without a token are named here one by one: whoever adds one thinks about it twice.
    assert sorted(application().open_routes) == [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/healthz",
        "/readyz",
    ]


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_every_route_but_the_open_ones_needs_a_token(local: Caller) -> None:
    for path in application().routes:
        for method in METHODS:
            answer = local.ask(method, path)
            assert answer.status == 401, (method, path, answer.status)


def test_where_there_is_nothing_no_token_is_asked_for(local: Caller) -> None:
    """A client that looks for a way to sign in takes 401 for an answer about that, and reports nonsense."""
    for path in ("/nowhere", "/", "/mcp/", "/mcp/sse/", *SIGN_IN):
        for method in METHODS:
            for given in ((), ("Authorization: Bearer a-token-of-nobody-at-all",)):
                answer = local.ask(method, path, *given)
                assert answer.status == 404, (method, path, answer.status)
                assert "www-authenticate" not in answer.headers
                assert method == "HEAD" or answer.code == -32600


SIGN_IN = (
    "/register",
    "/authorize",
    "/token",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/mcp",
    "/mcp/.well-known/openid-configuration",
)
"""Where clients look for an authorization server, and where the versions before 2025-06-18 have one."""


def test_who_looks_for_a_way_to_sign_in_learns_what_there_is(local: Caller) -> None:
    """Clients show the body of the answer to a registration that has failed."""
    for method, path in (("POST", "/register"), ("GET", "/authorize?x=y"), ("GET", SIGN_IN[3])):
        said = local.ask(method, path).json["error"]["message"]
        assert said.startswith(f"There is nothing at {path.partition('?')[0]}: ")
        assert "a token that its operator gives out" in said
    assert local.ask("GET", "/nowhere").json["error"]["message"] == "There is nothing at /nowhere"
    with GuardedServer(is_open=True) as server:
        assert "needs no token" in server.ask("POST", "/register").json["error"]["message"]


def test_a_client_without_a_token_learns_that_one_is_needed_and_where_it_goes(local: Caller) -> None:
    """RFC 6750, 3.1: no error code for a request without any authentication information."""
    for given in ((), (f"Authorization: Basic {TOKEN}",)):
        answer = local.ask("POST", "/mcp", *given, body=b"{}")
        assert answer.status == 401
        assert answer.headers["www-authenticate"] == 'Bearer realm="mcp"'
        said = answer.json["error"]["message"]
        assert said.startswith("Unauthorized: this server needs a token that its operator gives out")
        assert "Authorization header" in said


# --- the request target (RFC 9112, 3.2) --------------------------------------------------------------------

TARGETS: list[tuple[str, str, int]] = [
    # absolute form: its authority counts, not Host
    ("http://localhost/mcp", "localhost", 200),
    ("HTTP://LOCALHOST:1/mcp", "localhost", 200),
    ("https://[::1]:8000/mcp?x=/y", "localhost", 200),
    ("http://mcp.test:8443/mcp", "localhost", 200),
    ("http://localhost/mcp", "evil.test", 200),
    ("http://evil.test/mcp", "localhost", 421),
    ("http://mcp.test/mcp", "mcp.test:8443", 421),
    ("http://localhost.evil.test/mcp", "localhost", 421),
    ("http://localhost@evil.test/mcp", "localhost", 400),
    ("http://evil.test@localhost/mcp", "localhost", 400),
    ("http://evil.test#@localhost/mcp", "localhost", 400),
    ("http:///mcp", "localhost", 400),
    ("ftp://localhost/mcp", "localhost", 400),
    ("ws://localhost/mcp", "localhost", 400),
    ("http://localhost", "localhost", 404),
    ("http://evil.test", "localhost", 421),
    ("http://localhost?x", "localhost", 404),
    # but a Host that is none is a broken request all the same (3.2)
    ("http://localhost/mcp", "a b", 400),
    ("http://localhost/mcp", "", 400),
    # neither a path nor an address, and what is for OPTIONS only
    ("localhost:80", "localhost", 400),
    ("mcp", "localhost", 400),
    ("*", "localhost", 400),
]


@pytest.mark.parametrize(("target", "host", "expected"), TARGETS)
def test_a_target_with_a_host_of_its_own_is_judged_by_that(
    local: Caller, target: str, host: str, expected: int
) -> None:
    before = local.count()
    body = CALL.replace(b"TOOL", b"count").replace(b"ARGUMENTS", b"{}")
    given = (f"Authorization: Bearer {TOKEN}", *STATELESS, "Mcp-Name: count")
    assert local.ask("POST", target, *given, body=body, host=host).status == expected
    assert local.count() == before + (2 if expected == 200 else 1)
    if "://" in target and expected in (400, 421):
        root = target.partition("://")[0] + "://" + target.partition("://")[2].partition("/")[0]
        assert local.ask("GET", f"{root}/healthz", host=host).status == expected


def test_a_target_in_absolute_form_frees_no_one_from_sending_one_host(local: Caller) -> None:
    for hosts in ((), ("Host: localhost", "Host: localhost")):
        assert local.ask("GET", "http://localhost/healthz", *hosts, host=None).status == 400


def test_only_options_has_a_target_for_the_whole_server_and_no_tunnel_is_opened(
    local: Caller,
) -> None:
    assert local.ask("OPTIONS", "*").status == 404
    assert local.ask("OPTIONS", "*", host="evil.test").status == 421
    assert local.ask("GET", "*").status == 400
    for target in ("localhost:80", "evil.test:443"):
        answer = local.ask("CONNECT", target)
        assert (answer.status, answer.code) == (501, -32600)


# --- CORS -------------------------------------------------------------------------------------------------


def test_a_preflight_of_a_known_origin_is_answered_without_a_token(local: Caller) -> None:
    asked = "content-type, mcp-param-region, x-evil, mcp-param-\xe4, authorization"
    answer = local.ask(
        "OPTIONS",
        "/mcp",
        "Origin: http://localhost:3000",
        "Access-Control-Request-Method: POST",
        f"Access-Control-Request-Headers: {asked}",
        "Access-Control-Request-Private-Network: true",
    )
    assert (answer.status, answer.body) == (204, b"")
    assert answer.headers["access-control-allow-origin"] == "http://localhost:3000"
    allowed = [name.strip().lower() for name in answer.headers["access-control-allow-headers"].split(",")]
    assert {"authorization", "content-type", "mcp-session-id", "mcp-param-region"} <= set(allowed)
    assert not [name for name in allowed if "evil" in name or not name.isascii()]
    assert "access-control-allow-credentials" not in answer.headers
    assert answer.headers["access-control-allow-private-network"] == "true"
    assert answer.headers["vary"] == "Origin"


def test_a_known_origin_may_read_answers_and_errors(local: Caller) -> None:
    origin = "Origin: https://app.test"
    for given, status in (((f"Authorization: Bearer {TOKEN}", origin), 200), ((origin,), 401)):
        answer = local.call("count", *given)
        assert answer.status == status
        assert answer.headers["access-control-allow-origin"] == "https://app.test"
        assert "Mcp-Session-Id" in answer.headers["access-control-expose-headers"]


def test_without_authentication_the_place_is_checked_all_the_same() -> None:
    with GuardedServer(is_open=True) as server:
        assert (
            server.ask(
                "POST",
                "/mcp",
                *STATELESS,
                "Mcp-Name: count",
                body=CALL.replace(b"TOOL", b"count").replace(b"ARGUMENTS", b"{}"),
            ).status
            == 200
        )
        check_everywhere(server, ("Host: evil.test",), 421)
        check_everywhere(server, ("Host: localhost", "Origin: http://evil.test"), 403)

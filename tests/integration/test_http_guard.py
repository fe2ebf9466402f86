"""Who may come in over HTTP: Host, Origin and tokens on every route, held against a real server's sockets."""

from __future__ import annotations

import ast
import asyncio
import inspect
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from fastrpc import Server
from fastrpc.transports.http.app import HttpApp

TOKEN, OTHER = "a-token-of-the-first-caller", "a-token-of-the-second-caller"
METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH")

PROGRAM = r'''
import asyncio, json, os, subprocess, sys
from fastrpc import Server
from fastrpc.processes import environment
from fastrpc.transports.http.auth import token_from_environment
from fastrpc.transports.http.sockets import Address, listen
from fastrpc.transports.http.server import HttpServer

given = json.loads(sys.argv[1])
app = Server("guarded")
calls = 0

@app.tool(run="inline")
def count() -> str:
    """Count the calls of this tool."""
    global calls
    calls += 1
    return str(calls)

@app.tool(run="inline")
def variables() -> str:
    """Show what a child and this process have in their environment."""
    child = subprocess.run(["env"], capture_output=True, text=True).stdout
    return json.dumps([dict(os.environ), environment(), child])

@app.tool(run="inline")
def fail(text: str) -> str:
    raise RuntimeError(text)

if given.pop("from_environment", False):
    given["token"] = token_from_environment()
if given.pop("open", False):
    given["auth"] = None
application = app.asgi(**given)

async def main():
    sockets = listen(Address("127.0.0.1", 0))[0]
    here = application.here()
    await HttpServer(here, sockets, on_ready=lambda: print(sockets[0].getsockname()[1], flush=True)).serve()

asyncio.run(main())
'''


class Running:
    """A server's process, from `with` to its end."""

    def __init__(self, environment: dict[str, str] | None = None, **options: Any) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(options)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise AssertionError(self.process.communicate()[1].decode())
        self.port = int(line)

    def __enter__(self) -> Running:
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.communicate()

    def ask(
        self, method: str, path: str, *headers: str, body: bytes = b"", host: str | None = "localhost"
    ) -> Answer:
        """Send one request on a connection of its own; `body` is sent only as far as it goes."""
        lines = [f"{method} {path} HTTP/1.1", *([] if host is None else [f"Host: {host}"]), *headers]
        if body and not any(line.lower().startswith("content-length") for line in headers):
            lines.append(f"Content-Length: {len(body)}")
        return self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body, method)

    def send(self, data: bytes, method: str = "POST") -> Answer:
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(data)
            return Answer(connection, method)

    def count(self) -> int:
        """How many calls there have been, this one among them."""
        return int(json.loads(self.call("count").body)["result"]["content"][0]["text"])

    def call(self, tool: str, *headers: str, arguments: str = "{}", **options: Any) -> Answer:
        """Call a tool in 2026-07-28: a request that the straight way answers, where it is let in."""
        given = headers or (f"Authorization: Bearer {TOKEN}",)
        body = CALL.replace(b"TOOL", tool.encode()).replace(b"ARGUMENTS", arguments.encode())
        return self.ask("POST", "/mcp", *given, *MODERN, f"Mcp-Name: {tool}", body=body, **options)


class Answer:
    """A status, headers by lower-case name, and a body; read no further than its length."""

    def __init__(self, connection: socket.socket, method: str) -> None:
        data = b""
        while b"\r\n\r\n" not in data:
            part = connection.recv(65536)
            if not part:
                raise AssertionError(f"the connection ended behind {data!r}")
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        first, *lines = head.decode("latin-1").split("\r\n")
        self.status = int(first.split()[1])
        self.headers = {
            name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)
        }
        length = 0 if method == "HEAD" else int(self.headers.get("content-length", 0))
        while len(body) < length:
            part = connection.recv(65536)
            if not part:
                raise AssertionError("the body was cut short")
            body += part
        self.body = body[:length]

    @property
    def code(self) -> Any:
        return json.loads(self.body)["error"]["code"]


META = (
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientCapabilities":{}}'
)
CALL = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"TOOL","arguments":ARGUMENTS,'
    + META
    + b"}}"
)
BOTH = ("Content-Type: application/json", "Accept: application/json, text/event-stream")
MODERN = (*BOTH, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call")
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
)


@pytest.fixture(scope="module")
def local() -> Iterator[Running]:
    """Bound to loopback, with one origin and one host besides."""
    with Running(token=[TOKEN, OTHER], hosts=["mcp.test:8443"], origins=["https://app.test"]) as server:
        yield server


@pytest.fixture(scope="module")
def public() -> Iterator[Running]:
    """Bound to somewhere else, for named hosts and one origin."""
    options = {"hosts": ["mcp.test", "[2001:db8::1]:80"], "origins": ["https://app.test:8443"]}
    with Running(token=TOKEN, loopback=False, **options) as server:
        yield server


@pytest.fixture(scope="module")
def anywhere() -> Iterator[Running]:
    """Bound to somewhere else, for every host and no origin."""
    with Running(token=TOKEN, loopback=False) as server:
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
    (("Host: [2001:db8::1]",), 421),
    (("Host: localhost",), 421),
    (("Host: 127.0.0.1",), 421),
    (("Host: evil.test",), 421),
    (("Host: mcp.test.evil.test",), 421),
    (("Host: evil.mcp.test",), 421),
    (("Host: mcp.test", "Host: mcp.test"), 400),
    (("Host: mcp.test", "Origin: https://app.test:8443"), IN),
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
        app: HttpApp = Server("routes").asgi(auth=None).here()
        return app

    return asyncio.run(make())


def routes() -> list[str]:
    """Every route that there is, from the application itself, and some that are none."""
    app = application()
    return [*app.routes, *app.open_routes, "/", "/nowhere", "//mcp", "/mcp/", "*"]


def check_everywhere(server: Running, place: tuple[str, ...], expected: int | None) -> None:
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
    local: Running, host: str | None, expected: int | None
) -> None:
    check_everywhere(local, () if host is None else (f"Host: {host}",), expected)


@pytest.mark.parametrize(("origin", "expected"), ORIGINS_LOCAL)
def test_on_loopback_only_loopback_origins_are_let_in(
    local: Running, origin: str, expected: int | None
) -> None:
    check_everywhere(local, ("Host: localhost", f"Origin: {origin}"), expected)


@pytest.mark.parametrize(("place", "expected"), PLACES_PUBLIC)
def test_elsewhere_only_named_hosts_and_origins_are(
    public: Running, place: tuple[str, ...], expected: int | None
) -> None:
    check_everywhere(public, place, expected)


def test_elsewhere_without_named_hosts_every_host_is_answered_to_but_no_origin(anywhere: Running) -> None:
    for host in ("mcp.test", "localhost", "10.0.0.1:80", "[::1]"):
        check_everywhere(anywhere, (f"Host: {host}",), IN)
    for origin in ("http://localhost", "https://mcp.test", "null"):
        check_everywhere(anywhere, ("Host: mcp.test", f"Origin: {origin}"), 403)
    check_everywhere(anywhere, ("Host: mcp.test/x",), 400)


def test_a_call_that_the_straight_way_would_answer_is_checked_as_well(local: Running) -> None:
    assert local.call("count").status == 200
    before = local.count()
    for host, expected in HOSTS_LOCAL:
        assert local.call("count", host=host).status == (expected or 200), host
    for origin, expected in ORIGINS_LOCAL:
        given = (f"Authorization: Bearer {TOKEN}", f"Origin: {origin}")
        assert local.call("count", *given).status == (expected or 200), origin
    let_in = [1 for _, expected in (*HOSTS_LOCAL, *ORIGINS_LOCAL) if expected is IN]
    assert local.count() == before + len(let_in) + 1


def test_every_route_stands_behind_the_guard() -> None:
    """All requests go through one function, and the first thing that it does is to ask the guard."""
    route = ast.parse(inspect.cleandoc("if 1:\n" + inspect.getsource(HttpApp._route))).body[0]
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


def test_every_route_but_the_open_ones_needs_a_token(local: Running) -> None:
    for path in [*application().routes, "/nowhere", "/"]:
        for method in METHODS:
            answer = local.ask(method, path)
            assert answer.status == 401, (method, path, answer.status)


# --- CORS -------------------------------------------------------------------------------------------------


def test_a_preflight_of_a_known_origin_is_answered_without_a_token(local: Running) -> None:
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


def test_a_known_origin_may_read_answers_and_errors(local: Running) -> None:
    origin = "Origin: https://app.test"
    for given, status in (((f"Authorization: Bearer {TOKEN}", origin), 200), ((origin,), 401)):
        answer = local.call("count", *given)
        assert answer.status == status
        assert answer.headers["access-control-allow-origin"] == "https://app.test"
        assert "Mcp-Session-Id" in answer.headers["access-control-expose-headers"]


# --- tokens (scorecard F3) --------------------------------------------------------------------------------

WRONG = {
    "missing": ((), False),
    "wrong": (("Authorization: Bearer a-token-of-nobody-at-all",), True),
    "prefix": ((f"Authorization: Bearer {TOKEN[:-1]}",), True),
    "longer": ((f"Authorization: Bearer {TOKEN}x",), True),
    "other case": ((f"Authorization: Bearer {TOKEN.upper()}",), True),
    "twice": ((f"Authorization: Bearer {TOKEN}", f"Authorization: Bearer {TOKEN}"), True),
    "twice in one": ((f"Authorization: Bearer {TOKEN}, Bearer {TOKEN}",), True),
    "empty": (("Authorization: Bearer",), True),
    "no scheme": ((f"Authorization: {TOKEN}",), False),
    "wrong scheme": ((f"Authorization: Basic {TOKEN}",), False),
    "other header": ((f"X-Authorization: Bearer {TOKEN}", f"Cookie: token={TOKEN}"), False),
    "long": ((f"Authorization: Bearer {'x' * 20_000}",), True),
    "control": (("Authorization: Bearer \x7f\xff",), True),
    "tail": ((f"Authorization: Bearer {TOKEN} x",), True),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_token_is_answered_at_once_with_the_body_unread(local: Running, name: str) -> None:
    """16 MiB are announced and never sent: whoever waited for them would wait for ever."""
    headers, is_given = WRONG[name]
    began = time.monotonic()
    answer = local.ask("POST", "/mcp", *headers, *MODERN, "Content-Length: 16777216")
    assert time.monotonic() - began < 5
    assert (answer.status, answer.code) == (401, -32600)
    assert answer.headers["connection"] == "close"
    challenge = answer.headers["www-authenticate"]
    assert challenge.startswith('Bearer realm="mcp"')
    assert ('error="invalid_token"' in challenge) is is_given
    for text in (challenge, answer.body.decode()):
        assert TOKEN[:8] not in text


def test_a_token_of_a_megabyte_is_refused(local: Running) -> None:
    answer = local.ask("POST", "/mcp", f"Authorization: Bearer {'x' * 1_000_000}")
    assert answer.status in (400, 401, 431)


def test_a_token_in_the_query_opens_nothing(local: Running) -> None:
    for name in ("token", "access_token", "authorization"):
        answer = local.ask("POST", f"/mcp?{name}={TOKEN}", *MODERN, "Mcp-Name: count", body=CALL)
        assert answer.status == 401
        assert TOKEN.encode() not in answer.body


def test_the_scheme_is_taken_in_any_case(local: Running) -> None:
    """RFC 9110, 11.1: the name of a scheme has no case."""
    for scheme in ("Bearer", "bearer", "BEARER"):
        assert local.call("count", f"Authorization: {scheme} {TOKEN}").status == 200


def test_a_refused_call_is_not_made_and_the_connection_is_not_used_on(local: Running) -> None:
    """A second request behind the refused one's head is no request: it would be that one's body."""
    before = local.count()
    body = CALL.replace(b"TOOL", b"count").replace(b"ARGUMENTS", b"{}")
    lines = [
        "POST /mcp HTTP/1.1",
        "Host: localhost",
        f"Authorization: Bearer {TOKEN}",
        *MODERN,
        "Mcp-Name: count",
    ]
    inner = "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body
    outer = f"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(inner)}\r\n\r\n".encode()
    with socket.create_connection(("127.0.0.1", local.port), timeout=10) as connection:
        connection.sendall(outer + inner)
        assert Answer(connection, "POST").status == 401
        assert connection.recv(1000) == b""
    assert local.count() == before + 1


# --- one caller's handles are nothing to another ----------------------------------------------------------


def test_another_callers_session_looks_like_an_unknown_one(local: Running) -> None:
    mine, theirs = f"Authorization: Bearer {TOKEN}", f"Authorization: Bearer {OTHER}"
    opened = local.ask("POST", "/mcp", mine, *BOTH, body=INITIALIZE)
    session = opened.headers["mcp-session-id"]
    unknown = session[:-4] + ("AAAA" if session[-4:] != "AAAA" else "BBBB")
    ping = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
    note = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
    reply = b'{"jsonrpc":"2.0","id":1,"result":{}}'
    requests: list[tuple[str, tuple[str, ...], bytes]] = [
        *[("POST", (), body) for body in (ping, note, reply, INITIALIZE[:-1], b"[]", b"{")],
        ("GET", (), b""),
        ("GET", ("Last-Event-ID: 0-1",), b""),
        ("GET", ("Last-Event-ID: nonsense",), b""),
        ("DELETE", (), b""),
        ("DELETE", ("MCP-Protocol-Version: 1999-01-01",), b""),
    ]
    for method, headers, body in requests:
        answers = [
            local.ask(method, "/mcp", theirs, *BOTH, *headers, f"Mcp-Session-Id: {id}", body=body)
            for id in (session, unknown)
        ]
        seen = [(each.status, each.body, sorted(each.headers)) for each in answers]
        assert seen[0] == seen[1], (method, headers, body, seen)
        assert answers[0].status in (400, 404)
    assert local.ask("POST", "/mcp", mine, *BOTH, f"Mcp-Session-Id: {session}", body=ping).status == 200


def test_another_callers_stream_of_http_sse_looks_like_an_unknown_one(local: Running) -> None:
    ping = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
    with socket.create_connection(("127.0.0.1", local.port), timeout=10) as stream:
        head = f"GET /sse HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        stream.sendall(head.encode())
        data = b""
        while b"session_id=" not in data or not data.endswith(b"\n\n\r\n"):
            data += stream.recv(65536)
        session = data.partition(b"session_id=")[2].split()[0].decode()
        for method in METHODS:
            answers = [
                local.ask(
                    method, f"/messages?session_id={id}", f"Authorization: Bearer {token}", *BOTH, body=ping
                )
                for token, id in ((OTHER, session), (OTHER, session[:-4] + "AAAA"))
            ]
            assert answers[0].status == answers[1].status in (404, 405)
            assert answers[0].body == answers[1].body
        mine = local.ask(
            "POST", f"/messages?session_id={session}", f"Authorization: Bearer {TOKEN}", *BOTH, body=ping
        )
        assert mine.status == 202


# --- where tokens come from, and where they do not go -----------------------------------------------------


def test_the_token_of_the_environment_goes_to_no_child_log_or_error() -> None:
    """Planted: FASTRPC_TOKEN, a header, a query, a tool's own error. Looked for in all that can be read."""
    import os

    secret, guess = "planted-secret-of-the-environment", "planted-guess-of-a-caller"
    environment = {
        **os.environ,
        "FASTRPC_TOKEN": secret,
        "FASTRPC_LOG_LEVEL": "debug",
        "PYTHONASYNCIODEBUG": "1",
    }
    with Running(environment, from_environment=True) as server:
        right = f"Authorization: Bearer {secret}"
        shown = server.call("variables", right)
        assert shown.status == 200
        assert "PATH" in shown.body.decode()
        answers = [
            shown,
            server.call("count", f"Authorization: Bearer {guess}"),
            server.ask("GET", f"/mcp?token={guess}", f"Authorization: Bearer {guess}"),
            server.ask("POST", "/nowhere", right, f"Origin: http://{guess}.test", body=b"{"),
            server.call("fail", right, arguments='{"text":"it failed"}'),
            server.ask("POST", "/mcp", right, *BOTH, body=b"{broken"),
        ]
        command = subprocess.run(
            ["ps", "-o", "args=", "-p", str(server.process.pid)], capture_output=True, check=False
        ).stdout
        server.process.terminate()
        out, err = server.process.communicate(timeout=20)
    assert b"it failed" in err
    for place in (*(each.body + repr(each.headers).encode() for each in answers), command, out, err):
        assert secret.encode() not in place
        assert guess.encode() not in place


def test_a_token_file_is_read_again_when_it_changes(tmp_path: Any) -> None:
    path = tmp_path / "tokens"
    path.write_text(f"# callers\n{TOKEN}\n")
    path.chmod(0o600)
    with Running(token_file=str(path)) as server:
        for _ in range(3):  # the straight way knows the head by now
            assert server.call("count", f"Authorization: Bearer {TOKEN}").status == 200
        assert server.call("count", f"Authorization: Bearer {OTHER}").status == 401
        path.write_text(f"{OTHER}\n")
        deadline = time.monotonic() + 10
        while server.call("count", f"Authorization: Bearer {TOKEN}").status == 200:
            assert time.monotonic() < deadline, "a token that was taken out still opens"
            time.sleep(0.1)
        assert server.call("count", f"Authorization: Bearer {OTHER}").status == 200


def test_without_authentication_the_place_is_checked_all_the_same() -> None:
    with Running(open=True) as server:
        assert (
            server.ask(
                "POST",
                "/mcp",
                *MODERN,
                "Mcp-Name: count",
                body=CALL.replace(b"TOOL", b"count").replace(b"ARGUMENTS", b"{}"),
            ).status
            == 200
        )
        check_everywhere(server, ("Host: evil.test",), 421)
        check_everywhere(server, ("Host: localhost", "Origin: http://evil.test"), 403)

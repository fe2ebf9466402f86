"""The ASGI applications of compat servers, mounted as users of FastMCP and of the official SDK mount them;
the options of serving, and the settings of a server and of the program."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from fastrpc import UsageError
from fastrpc.compat.fastmcp import FastMCP
from fastrpc.compat.highlevel.settings import FastMCPSettings, settings
from fastrpc.compat.mcp import FastMCP as SdkFastMCP
from fastrpc.compat.mcp import MCPServer

starlette = pytest.importorskip("starlette")
httpx = pytest.importorskip("httpx")

ACCEPTED = {"accept": "application/json, text/event-stream"}
CALL = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/call",
    "params": {"name": "add", "arguments": {"a": 1, "b": 2}},
}


def adding(make: Callable[..., Any] = FastMCP, **options: Any) -> tuple[Any, list[str]]:
    """A server with one tool, and what its lifespan does."""
    log: list[str] = []

    @asynccontextmanager
    async def life(server: Any) -> AsyncIterator[dict[str, int]]:
        log.append("entered")
        yield {}
        log.append("left")

    mcp = make("adding", lifespan=life, **options)

    @mcp.tool()
    def add(a: int, b: int) -> int:
        return a + b

    return mcp, log


def use(app: Any, act: Callable[[Any], Awaitable[Any]], base: str = "http://localhost:8000") -> Any:
    """Run a function with a client of an application, within the application's lifespan."""

    async def main() -> Any:
        async with app.router.lifespan_context(app):
            transport = httpx.ASGITransport(app=app)
            async with httpx.AsyncClient(transport=transport, base_url=base) as client:
                return await act(client)

    return asyncio.run(asyncio.wait_for(main(), 30))


async def sum_at(client: Any, path: str) -> str:
    answer = await client.post(path, json=CALL, headers=ACCEPTED)
    assert answer.status_code == 200, answer.text
    return str(answer.json()["result"]["content"][0]["text"])


def test_fastapi_takes_over_the_lifespan_of_a_mounted_application() -> None:
    fastapi = pytest.importorskip("fastapi")
    mcp, log = adding()
    app = mcp.http_app(path="/mcp")
    api = fastapi.FastAPI(lifespan=app.lifespan)
    api.mount("/llm", app)

    async def act(client: Any) -> str:
        assert log == ["entered"]  # before the first call
        return await sum_at(client, "/llm/mcp")

    assert use(api, act) == "3"
    assert log == ["entered", "left"]


def test_starlette_mounts_the_application_of_the_official_sdk_with_its_session_manager() -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    mcp, log = adding(SdkFastMCP)
    with pytest.raises(RuntimeError, match="streamable_http_app"):
        _ = mcp.session_manager

    @asynccontextmanager
    async def lifespan(host: Any) -> AsyncIterator[None]:
        async with mcp.session_manager.run():
            yield

    app = Starlette(routes=[Mount("/x", app=mcp.streamable_http_app())], lifespan=lifespan)
    assert use(app, lambda client: sum_at(client, "/x/mcp")) == "3"
    assert log == ["entered", "left"]


def test_two_servers_are_mounted_in_one_application() -> None:
    from starlette.applications import Starlette
    from starlette.routing import Mount

    first, _ = adding(SdkFastMCP, streamable_http_path="/")
    second, _ = adding(MCPServer)

    @asynccontextmanager
    async def lifespan(host: Any) -> AsyncIterator[None]:
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(first.session_manager.run())
            await stack.enter_async_context(second.session_manager.run())
            yield

    routes = [
        Mount("/one", app=first.streamable_http_app()),
        Mount("/two", app=second.streamable_http_app(streamable_http_path="/tools")),
    ]
    app = Starlette(routes=routes, lifespan=lifespan)

    async def act(client: Any) -> list[str]:
        return [await sum_at(client, path) for path in ("/one/", "/two/tools")]

    assert use(app, act) == ["3", "3"]


def test_what_users_do_with_the_application_of_starlette() -> None:
    from starlette.applications import Starlette
    from starlette.responses import PlainTextResponse

    mcp, _ = adding()

    @mcp.custom_route("/hello/{name}", methods=["GET"], name="hello")
    async def hello(request: Any) -> Any:
        return PlainTextResponse(f"hello {request.path_params['name']} {request.app.state.mine}")

    app = mcp.http_app()
    assert isinstance(app, Starlette)
    app.state.mine = 7
    seen = []

    class Sees:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            seen.append(scope.get("path"))
            await self.app(scope, receive, send)

    app.add_middleware(Sees)
    assert [route.path for route in app.routes] == ["/mcp", "/hello/{name}"]
    assert app.url_path_for("hello", name="x") == "/hello/x"
    assert (app.state.path, app.state.fastmcp_server) == ("/mcp", mcp)

    async def act(client: Any) -> str:
        await sum_at(client, "/mcp")
        return str((await client.get("/hello/you")).text)

    assert use(app, act) == "hello you 7"
    assert seen[-2:] == ["/mcp", "/hello/you"]


def test_routes_of_a_mounted_server_are_served_too() -> None:
    from starlette.responses import PlainTextResponse

    child, log = adding()

    @child.custom_route("/child", methods=["GET"])
    async def of_child(request: Any) -> Any:
        return PlainTextResponse(",".join(log))

    parent = FastMCP("parent")
    parent.mount(child, "sub")

    async def act(client: Any) -> str:
        return str((await client.get("/child")).text)

    assert use(parent.http_app(), act) == "entered"


@pytest.mark.parametrize(
    ("make", "options", "host", "status"),
    [
        (FastMCP, {}, "anything", 200),
        (FastMCP, {"host_origin_protection": True}, "anything", 421),
        (FastMCP, {"host_origin_protection": True, "allowed_hosts": ["*.thing"]}, "any.thing", 200),
        (SdkFastMCP, {}, "localhost:8000", 200),
        (SdkFastMCP, {}, "anything", 421),
        (MCPServer, {"host": "0.0.0.0"}, "anything", 200),
    ],
)
def test_a_mounted_application_checks_hosts_as_the_original_does(
    make: Any, options: dict[str, Any], host: str, status: int
) -> None:
    mcp, _ = adding(make)
    app = mcp.streamable_http_app(**options)

    async def act(client: Any) -> int:
        answer = await client.post("/mcp", json=CALL, headers={**ACCEPTED, "host": host})
        assert "access-control-allow-origin" not in answer.headers
        return int(answer.status_code)

    assert use(app, act) == status


def test_transport_security_names_hosts_and_origins() -> None:
    from types import SimpleNamespace

    security = SimpleNamespace(
        enable_dns_rebinding_protection=True,
        allowed_hosts=["mcp.example.com", "localhost:*"],
        allowed_origins=["https://app.example.com:*"],
    )
    mcp, _ = adding(SdkFastMCP, transport_security=security)

    async def act(client: Any) -> list[int]:
        async def status(**headers: str) -> int:
            return int((await client.post("/mcp", json=CALL, headers={**ACCEPTED, **headers})).status_code)

        return [
            await status(host="mcp.example.com"),
            await status(host="localhost:99"),
            await status(host="other.example.com"),
            await status(host="mcp.example.com", origin="https://app.example.com:81"),
            await status(host="mcp.example.com", origin="https://evil.example.com"),
        ]

    assert use(mcp.streamable_http_app(), act) == [200, 200, 421, 200, 403]


# --------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda mcp: mcp.run(transport="http", prot=1), "no option prot .*port"),
        (
            lambda mcp: mcp.run(transport="stdio", statles_http=True),
            "no option statles_http .*stateless_http",
        ),
        (lambda mcp: mcp.run(http="127.0.0.1:0", tokn="x"), "no option tokn .*token"),
        (lambda mcp: mcp.run(transport="stdio", http="127.0.0.1:0"), "excludes http="),
        (lambda mcp: mcp.run(transport="htp"), "expected one of stdio, http"),
        (lambda mcp: mcp.http_app(pth="/x"), "no option pth .*path"),
        (lambda mcp: mcp.http_app(path="x"), "begins with /"),
        (lambda mcp: mcp.run(transport="http", port="many"), "port: expected a number"),
        (
            lambda mcp: mcp.run(transport="http", uvicorn_config={"rot_path": ""}),
            "no option rot_path .*root_path",
        ),
        (lambda mcp: mcp.run(transport="sse", stateless_http=True), "sse has sessions"),
    ],
)
def test_an_option_that_cannot_be_served_is_an_error(act: Callable[[Any], Any], words: str) -> None:
    mcp, _ = adding()
    with pytest.raises(UsageError, match=words):
        act(mcp)


def test_an_unknown_option_is_a_type_error_as_in_the_originals() -> None:
    with pytest.raises(TypeError):
        adding()[0].run(transport="http", nothing=1)


def test_options_of_http_have_no_effect_over_stdio() -> None:
    source = """
from fastrpc.compat.mcp import FastMCP
mcp = FastMCP("x", host="0.0.0.0", port=1, stateless_http=True, log_level="DEBUG")
mcp.run(transport="stdio")
"""
    ping = '{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
    ended = subprocess.run(
        [sys.executable, "-c", source], input=ping, capture_output=True, text=True, timeout=60
    )
    assert ended.stdout == '{"jsonrpc":"2.0","id":1,"result":{}}\n', ended.stderr


# -------------------------------------------------------------------------------------- settings


def test_what_was_assigned_precedes_what_was_given_and_that_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    known = FastMCPSettings()
    assert (known.host, known.port, known.json_response) == ("127.0.0.1", 8000, False)
    (tmp_path / ".env").write_text(
        "# names\nexport FASTMCP_PORT='9001'\nOTHER=1\nFASTMCP_HOST=a.example # here\n"
    )
    known = FastMCPSettings()
    assert (known.host, known.port) == ("a.example", 9001)
    monkeypatch.setenv("FASTMCP_PORT", "9002")
    monkeypatch.setenv("FASTMCP_STATELESS_HTTP", "yes")
    monkeypatch.setenv("FASTMCP_HTTP_ALLOWED_HOSTS", '["a", "b"]')
    monkeypatch.setenv("FASTMCP_HTTP_SESSION_IDLE_TIMEOUT", "none")
    assert (known.port, known.stateless_http, known.http_allowed_hosts) == (9002, True, ["a", "b"])
    assert known.http_session_idle_timeout is None
    known.port = 9003
    own = FastMCPSettings(known)
    assert own.port == 9003
    own = FastMCPSettings(known, port=9004)
    assert own.port == 9004
    own.port = 9005
    assert (own.port, known.port) == (9005, 9003)
    assert own.is_set("port")
    assert not own.is_set("max_sessions")


@pytest.mark.parametrize("make", [FastMCP, SdkFastMCP, MCPServer])
def test_a_server_has_settings(make: Any) -> None:
    mcp = make("x", debug=True, log_level="ERROR")
    assert (mcp.settings.debug, mcp.settings.log_level) == (True, "ERROR")
    mcp.settings.streamable_http_path = "/elsewhere"
    assert mcp.http_app().state.path == "/elsewhere"
    with pytest.raises(AttributeError, match="port"):
        mcp.settings.prot = 1
    with pytest.raises(AttributeError, match="host"):
        _ = mcp.settings.hst


def test_the_program_s_settings_are_those_of_every_server_of_fastmcp() -> None:
    import fastrpc.compat.fastmcp as fastmcp

    assert fastmcp.settings is settings
    try:
        fastmcp.settings.streamable_http_path = "/everywhere"
        assert FastMCP("x").http_app().state.path == "/everywhere"
    finally:
        del settings.streamable_http_path


def test_a_setting_of_the_environment_that_is_not_a_number_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FASTMCP_PORT", "many")
    with pytest.raises(UsageError, match="FASTMCP_PORT: expected a number"):
        FastMCP("x").run(transport="http")


def test_a_file_that_serves_stdio_imports_nothing_of_http() -> None:
    source = (
        "import sys\nfrom fastrpc.compat.fastmcp import FastMCP\nFastMCP('x', port=1, stateless_http=True)\n"
        "print([name for name in sys.modules if 'http' in name or name.split('.')[0] in "
        "('starlette', 'pydantic', 'uvicorn', 'logging')])"
    )
    found = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


@pytest.mark.parametrize("method", ["run_http_async", "run_stdio_async"])
def test_without_asyncio_the_error_says_so(method: str) -> None:
    serving = getattr(FastMCP("x"), method)()
    with pytest.raises(UsageError, match="asyncio"):
        serving.send(None)

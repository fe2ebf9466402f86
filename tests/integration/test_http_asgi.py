"""The plain ASGI application: under three servers, mounted in Starlette and FastAPI, behind a root path.

Each server is a process with its own command line, as its users start it. Without them a test skips, except
on CI, which has to have them.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from support.child_processes import is_alive
from support.http_client import (
    ECHO_AND_WAIT,
    Serving,
    Stream,
    answer_of,
    children,
    handshake,
    request,
    stateless_request,
)
from support.ports import free_port, is_open
from support.skips import not_installed
from support.waiting import eventually

TOOLS = (
    """
import asyncio, os, sys
from contextlib import asynccontextmanager
from fastrpc import Context, Server

@asynccontextmanager
async def life(server):
    yield "a state"
    sys.stderr.write("lifespan left\\n")
    sys.stderr.flush()

app = Server("elsewhere", lifespan=life)
TOKEN = "a-token-for-tests-of-serving"

@app.tool
async def state(context: Context) -> str:
    return context.state

@app.tool
async def report(context: Context) -> str:
    for step in (1, 2, 3):
        context.progress(step, 3)
        await asyncio.sleep(0.01)
    return "reported"

@app.tool
async def hold(place: str) -> str:
    open(place + ".begun", "w").close()
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError:
        open(place + ".cancelled", "w").close()
        raise
    return "held"

@app.tool
async def greet(context: Context) -> str:
    answer = await context.elicit("Your name?", str, key="name")
    return f"Hello, {answer.data}"
"""
    + ECHO_AND_WAIT
    + """
asgi = app.asgi(token=TOKEN, max_body=100_000, keep_alive_seconds=0.2)
"""
)

MOUNTED = """
from contextlib import asynccontextmanager
from tools import asgi
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

async def home(request):
    return PlainTextResponse("home")

starlette = Starlette(
    routes=[Route("/", home), Mount("/deep", routes=[Mount("/tools", app=asgi)])], lifespan=asgi.lifespan
)

@asynccontextmanager
async def life(host):
    async with asgi.lifespan():
        yield

fastapi = FastAPI(lifespan=life)
fastapi.get("/")(lambda: "home")
fastapi.mount("/deep/tools", asgi)
"""

SERVERS = {
    "uvicorn": (["--port", "0", "--timeout-graceful-shutdown", "20"], r"running on http://127.0.0.1(:\d+)"),
    "hypercorn": (
        ["--bind", "127.0.0.1:0", "--graceful-timeout", "20"],
        r"Running on http://127.0.0.1(:\d+)",
    ),
    "granian": (["--interface", "asgi", "--port", "PORT"], r"Started (worker)-1"),
}


@pytest.fixture
def folder(tmp_path: Any) -> Any:
    (tmp_path / "tools.py").write_text(TOOLS)
    (tmp_path / "mounted.py").write_text(MOUNTED)
    return tmp_path


def begin(name: str, folder: Any, target: str = "tools:asgi", *more: str, path: str = "/mcp") -> Serving:
    """Start a server by its own command line."""
    for library in (name, *(("starlette", "fastapi") if target.startswith("mounted") else ())):
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed")
    options, ready = SERVERS[name]
    port = free_port()  # for the server that does not say which one it has chosen
    arguments = [option.replace("PORT", str(port)) for option in options]
    server = Serving(
        target, *arguments, *more, command=[sys.executable, "-m", name], folder=folder, ready=ready, path=path
    )
    server.port = server.port or port
    try:
        eventually(lambda: is_open(server.port))
    except AssertionError:
        server.__exit__()
        raise
    return server


@pytest.fixture(params=SERVERS)
def server(request: pytest.FixtureRequest, folder: Any) -> Iterator[Serving]:
    with begin(request.param, folder) as server:
        yield server


# --- every feature, under each server ---------------------------------------------------------------------


def test_everything_is_served_under_any_server(server: Serving, tmp_path: Any) -> None:
    """One test for all: a process of each server is enough."""
    assert server.call("echo", text="hello") == "hello"
    assert server.call("state") == "a state"
    checks = (refusals, rounds, progress, sessions, resumption, listening, cancellation, the_older_transport)
    for check in checks:
        check(server, tmp_path)


def refusals(server: Serving, folder: Any) -> None:
    assert server.ask("GET", "/healthz").json == {"status": "ok"}
    assert server.ask("GET", "/nothing").status == 404
    assert server.stateless_request("tools/list", {}, Host="evil.example").status == 421
    assert server.stateless_request("tools/list", {}, Origin="http://evil.example").status == 403
    assert server.stateless_request("tools/list", {}, Authorization="Bearer none").status == 401
    assert server.stateless_request("no/such/method", {}).status == 404
    assert (
        server.stateless_request("tools/list", {}, MCP_Protocol_Version="2025-11-25").json["error"]["code"]
        == -32020
    )
    long = server.stateless_request("tools/call", {"name": "echo", "arguments": {"text": "x" * 200_000}})
    assert (long.status, long.headers.get_content_type()) == (413, "application/json")
    answer = server.ask("OPTIONS", "/mcp", Origin="http://localhost:3000")
    assert (answer.status, answer.headers["Access-Control-Allow-Origin"]) == (204, "http://localhost:3000")


def rounds(server: Serving, folder: Any) -> None:
    params: dict[str, Any] = {"name": "greet", "arguments": {}}
    result = server.stateless_request("tools/call", params).json["result"]
    params["inputResponses"] = {"name": {"action": "accept", "content": {"value": "Ada"}}}
    if "requestState" in result:
        params["requestState"] = result["requestState"]
    assert server.stateless_request("tools/call", params).text == "Hello, Ada"


def progress(server: Serving, folder: Any) -> None:
    params = {"name": "report", "arguments": {}, "_meta": {"progressToken": "p"}}
    answer = server.stateless_request("tools/call", params)
    assert answer.headers.get_content_type() == "text/event-stream"
    assert answer.headers["X-Accel-Buffering"] == "no"
    assert answer.body.count(b"notifications/progress") == 3
    assert answer.text == "reported"


def sessions(server: Serving, folder: Any) -> None:
    session = server.session()
    stream = session.listen()
    lines = stream.lines()
    assert next(lines) == "retry: 1000"
    assert next(line for line in lines if line.startswith(":")) == ": keep-alive"
    assert session.call("wait", seconds=0.01).text == "waited"
    held = session.begin_call("wait", seconds=30)
    server.has_begun(2)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
    assert session.send(cancelled).status == 202
    assert b"result" not in answer_of(held).body
    assert server.ask("DELETE", "/mcp", **session.headers()).status == 200
    assert [*lines][-1:] == [""]  # the stream has ended
    assert session.call("echo", text="x").status == 404


def resumption(server: Serving, folder: Any) -> None:
    session = server.session()
    message = request("tools/call", {"name": "report", "arguments": {}, "_meta": {"progressToken": 1}}, 5)
    stream = Stream(server, "POST", "/mcp", message, **session.headers())
    first = next(line for line in stream.lines() if line.startswith("id: "))[4:]
    stream.close()
    again = Stream(server, "GET", "/mcp", Last_Event_ID=first, **session.headers())
    said = [json.loads(text) for text in again.data()]
    assert said[-1]["result"]["content"][0]["text"] == "reported"
    numbers = [message["params"]["progress"] for message in said[:-1]]
    assert numbers == sorted(set(numbers))


def listening(server: Serving, folder: Any) -> None:
    message, headers = stateless_request(
        "subscriptions/listen", {"notifications": {"toolsListChanged": True}}
    )
    stream = Stream(server, "POST", "/mcp", message, **headers)
    assert "acknowledged" in next(stream.data())
    stream.close()


def cancellation(server: Serving, folder: Any) -> None:
    """2026-07-28: the client closes the stream, and the call is cancelled."""
    for streaming in (False, True):
        place = folder / f"held-{streaming}"
        call = server.begin_call("hold", place=str(place))
        eventually((folder / f"{place.name}.begun").exists)
        if streaming:
            call.getresponse().readline()  # of a keep-alive comment: the answer is a stream by now
        call.close()
        eventually((folder / f"{place.name}.cancelled").exists)


def the_older_transport(server: Serving, folder: Any) -> None:
    for at in ("/sse", "/mcp/sse"):
        stream = Stream(server, "GET", at)
        data = stream.data()
        place = next(data)
        assert server.ask("POST", place, handshake("2024-11-05")).status == 202
        assert json.loads(next(data))["result"]["protocolVersion"] == "2024-11-05"
        call = request("tools/call", {"name": "echo", "arguments": {"text": "older"}}, 2)
        assert server.ask("POST", place, call).status == 202
        assert "older" in next(data)
        stream.close()


@pytest.mark.parametrize("name", SERVERS)
def test_the_servers_own_end_leaves_the_lifespan_and_no_process(folder: Any, name: str) -> None:
    with begin(name, folder) as server:
        assert server.call("state") == "a state"
        waiting = server.begin_call("wait", seconds=0.5)
        server.has_begun(1)
        pids = [server.pid, *children(server.pid)]
        server.kill(signal.SIGINT if name == "granian" else signal.SIGTERM)
        assert answer_of(waiting).text == "waited"
        server.wait()
        eventually(lambda: not any(is_alive(pid) for pid in pids))
        assert "lifespan left\n" in server.stderr


# --- mounted ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["mounted:starlette", "mounted:fastapi"])
def test_mounted_below_a_path_everything_is_found_there(folder: Any, target: str) -> None:
    with begin("uvicorn", folder, target, path="/deep/tools/mcp") as server:
        assert b"home" in server.ask("GET", "/").body
        assert server.call("state") == "a state"
        session = server.session()
        stream = session.listen()
        assert session.call("echo", text="hello").text == "hello"
        assert server.ask("GET", "/deep/tools/healthz").json == {"status": "ok"}
        assert server.ask("GET", "/mcp").status == 404
        oldest = Stream(server, "GET", "/deep/tools/sse")
        place = next(oldest.data())
        assert place.startswith("/deep/tools/messages?session_id=")
        assert server.ask("POST", place, handshake("2024-11-05")).status == 202
        assert "2024-11-05" in next(oldest.data())
        for each in (stream, oldest):
            each.close()
        server.stop()
        assert "lifespan left\n" in server.stderr  # the host's own lifespan ends ours


def test_behind_a_root_path_everything_is_found(folder: Any) -> None:
    """As behind a proxy that takes a prefix away: the server knows it."""
    with begin("uvicorn", folder, "tools:asgi", "--root-path", "/prefix") as server:
        assert server.call("echo", text="hello") == "hello"
        stream = Stream(server, "GET", "/sse")
        assert next(stream.data()).startswith("/prefix/messages?session_id=")
        stream.close()


# --- the document -----------------------------------------------------------------------------------------

with open(os.path.join(os.path.dirname(__file__), "..", "..", "docs", "http.md"), encoding="utf-8") as file:
    DOCUMENT = file.read()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", DOCUMENT, re.DOTALL | re.MULTILINE)


PROGRAMS = blocks("py")


@pytest.mark.parametrize("number", range(len(PROGRAMS)))
def test_a_program_of_the_document_serves(tmp_path: Any, number: int) -> None:
    program = PROGRAMS[number]
    (tmp_path / "token").write_text("a-token-of-16-characters-or-more")
    (tmp_path / "token").chmod(0o600)
    if "app.run(" in program:
        (tmp_path / "shop.py").write_text(program.replace("127.0.0.1:8000", "127.0.0.1:0"))
        server = Serving(command=[sys.executable, "shop.py"], folder=tmp_path)
        path = "/mcp"
    else:
        (tmp_path / "mounted.py").write_text(program)
        name = "asgi" if "asgi = " in program else "application"
        path = "/mcp" if name == "asgi" else "/tools/mcp"
        server = begin("uvicorn", tmp_path, f"mounted:{name}", path=path)
    with server:
        server.token, server.path = "a-token-of-16-characters-or-more", path
        assert server.stateless_request("tools/list", {}).status == 200
        if "def price" in program:
            assert server.call("price", name="tea") == "2.5"


def test_the_command_of_the_document_that_asks_by_hand_gets_a_list(tmp_path: Any) -> None:
    if shutil.which("curl") is None:
        pytest.skip(not_installed("curl"))
    (tmp_path / "tools.py").write_text(TOOLS)
    with Serving("serve", "tools.py", "--http", "127.0.0.1:0", folder=tmp_path) as server:
        command = next(block for block in blocks("console") if block.startswith("$ curl"))[2:]
        command = command.replace("https://mcp.example.com/mcp", server.place).replace("curl ", "curl -sS ")
        environ = {**os.environ, "TOKEN": server.token or ""}
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=20, env=environ)
    assert "echo" in [tool["name"] for tool in json.loads(done.stdout)["result"]["tools"]], done


def test_what_the_document_names_is_there() -> None:
    from fastrpc.tools.agent import _settings

    from fastrpc.cli.serve import OPTIONS
    from fastrpc.settings import SETTINGS, declared_in
    from fastrpc.transports.http.asgi import APPLICATION, PLACES

    for block in blocks("json"):
        json.loads(block)
    commands = re.sub(r"\\\n", "", "".join(blocks("console")) + "".join(blocks("ini"))).splitlines()
    served = [line for line in commands if "fastrpc serve" in line]
    assert len(served) >= 5
    named = {option for line in served for option in re.findall(r"--[a-z-]+", line)}
    assert named <= set(OPTIONS)
    assert set(re.findall(r"FASTRPC_[A-Z_]+", DOCUMENT)) <= {
        setting.name for setting in (*SETTINGS, *declared_in(_settings))
    }
    for option in (*APPLICATION, *PLACES):
        assert f"`{option}`" in DOCUMENT, option
    for language in re.findall(r"^```(\w+)", DOCUMENT, re.MULTILINE):
        assert language in ("py", "json", "console", "nginx", "caddyfile", "haproxy", "ini", "dockerfile")

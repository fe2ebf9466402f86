"""Servers written for FastMCP or the official SDK, served over HTTP after the import line is swapped.

The file's own process, the official client and fastrpc's; what the file's options do; who may reach it; and
servers in an event loop that runs already. A server starts with the command line that its users give.
"""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from support.http_server import HttpProcess
from support.waiting import SECONDS

from fastrpc import Client

pytest.importorskip("starlette")

FIXTURE = os.path.join(
    os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures", "compat", "over_http.py"
)
TOKEN = "a-token-for-tests-of-compat"
LONG_SECONDS = 60.0
"""For a conversation: the first one imports the SDK."""
ACCEPTED = "application/json, text/event-stream"
START = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}


def swapped() -> str:
    with open(FIXTURE, encoding="utf-8") as file:
        text = file.read()
    line = "from mcp.server.fastmcp import"
    assert line in text
    return text.replace(line, "from fastrpc.compat.mcp import")


def environment(**more: str) -> dict[str, str]:
    cleared = ("FASTRPC_TOKEN", "FASTRPC_ALLOW_ANONYMOUS", "FASTMCP_PORT", "FASTMCP_HOST")
    return {name: value for name, value in os.environ.items() if name not in cleared} | more


@contextlib.contextmanager
def served(
    folder: Any, transport: str = "streamable-http", source: str = "", variables: Any = None, **options: Any
) -> Iterator[HttpProcess]:
    """The fixture, or a source, in a separate process, which has to end in order."""
    file = folder / "server.py"
    file.write_text(source or swapped(), encoding="utf-8")
    command = (sys.executable, str(file), transport, json.dumps({"port": 0, **options}))
    if not source:
        options.setdefault("host", "127.0.0.1")
        command = (*command[:3], json.dumps(options))
    with HttpProcess(
        command=command, folder=str(folder), environment=environment(**(variables or {}))
    ) as server:
        yield server
        assert server.stop() == 0, server.stderr
        assert "Traceback" not in server.stderr


def url_of(server: HttpProcess) -> str:
    return str(server.place)


def exchanged(url: str, message: dict[str, Any], **headers: str) -> tuple[int, Any, bytes]:
    """Post a message by a connection that is kept, as the fast path wants it; return what comes back."""
    where = urllib.parse.urlsplit(url)
    heads = {"Accept": ACCEPTED, "Content-Type": "application/json", **headers}
    with contextlib.closing(http.client.HTTPConnection(where.netloc, timeout=SECONDS)) as connection:
        connection.request("POST", where.path, json.dumps(message).encode(), heads)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()


def post(url: str, message: dict[str, Any], **headers: str) -> tuple[int, Any]:
    """Post a message to a server; return the status and the body."""
    status, _, body = exchanged(url, message, **headers)
    return status, json.loads(body or b"null")


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": arguments},
    }


STATELESS = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call"}


def stateless_call(tool: str, **arguments: Any) -> dict[str, Any]:
    message = call(tool, **arguments)
    message["params"]["_meta"] = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return message


async def official(url: str, headers: dict[str, str] | None = None) -> Any:
    """What the official client gets: the names of the tools, a sum, the reports, and a text."""
    import httpx2
    from mcp import ClientSession
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    async with contextlib.AsyncExitStack() as stack:
        if url.endswith("/sse"):
            streams: Any = await stack.enter_async_context(sse_client(url, headers=headers))
        else:
            http = await stack.enter_async_context(httpx2.AsyncClient(headers=headers))
            streams = await stack.enter_async_context(streamable_http_client(url, http_client=http))
        session = await stack.enter_async_context(ClientSession(streams[0], streams[1]))
        await session.initialize()
        reports: list[float] = []

        async def report(progress: float, total: float | None, message: str | None) -> None:
            reports.append(progress)

        tools = [tool.name for tool in (await session.list_tools()).tools]
        total = (await session.call_tool("add", {"a": 2, "b": 3})).structured_content
        text: Any = (await session.call_tool("count", {"upto": 3}, progress_callback=report)).content[0]
        return tools, total, reports, text.text


# ---------------------------------------------------------------------------------- the swapped file


@pytest.mark.parametrize("transport", ["streamable-http", "http", "sse"])
def test_the_official_client_uses_a_swapped_file(tmp_path: Any, transport: str) -> None:
    with served(tmp_path, transport) as server:
        url = url_of(server)
        assert url.endswith("/sse" if transport == "sse" else "/mcp")
        tools, total, reports, text = asyncio.run(asyncio.wait_for(official(url), LONG_SECONDS))
        assert (tools, total, text) == (["add", "count"], {"result": 5}, "counted")
        assert reports[-1] == 2
        assert server.stdout == ""


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
def test_fastrpc_s_client_uses_a_swapped_file(tmp_path: Any, transport: str) -> None:
    async def use(url: str) -> Any:
        async with Client(url) as client:
            return await client.call_tool("add", {"a": 2, "b": 3})

    with served(tmp_path, transport) as server:
        result = asyncio.run(asyncio.wait_for(use(url_of(server)), LONG_SECONDS))
        assert result.structured == {"result": 5}


def test_a_custom_route_is_served_beside_mcp_without_a_token(tmp_path: Any) -> None:
    with served(tmp_path, variables={"FASTRPC_TOKEN": TOKEN}) as server:
        base = url_of(server).removesuffix("/mcp")
        with urllib.request.urlopen(f"{base}/health", timeout=SECONDS) as answer:
            assert json.loads(answer.read())["status"] == "well"
        assert post(f"{base}/mcp", call("add", a=1, b=1))[0] == 401
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        assert post(f"{base}/mcp", call("add", a=1, b=1), **bearer)[0] == 200
        *_, text = asyncio.run(asyncio.wait_for(official(f"{base}/mcp", bearer), LONG_SECONDS))
        assert text == "counted"
        assert "no token is needed" not in server.stderr


def test_paths_are_where_the_options_say(tmp_path: Any) -> None:
    with served(tmp_path, streamable_http_path="/tools/here") as server:
        assert url_of(server).endswith("/tools/here")
        assert post(url_of(server), call("add", a=1, b=1))[0] == 200
        assert post(f"{url_of(server)}/", call("add", a=1, b=1))[0] == 200
        other = url_of(server).removesuffix("/tools/here") + "/mcp"
        assert post(other, call("add", a=1, b=1))[0] == 404
    with served(tmp_path, "sse", sse_path="/events", message_path="/posts/") as server:
        assert url_of(server).endswith("/events")

        async def use() -> Any:
            from mcp import ClientSession
            from mcp.client.sse import sse_client

            async with sse_client(url_of(server)) as streams, ClientSession(*streams) as session:
                await session.initialize()
                return (await session.call_tool("add", {"a": 1, "b": 1})).structured_content

        assert asyncio.run(asyncio.wait_for(use(), LONG_SECONDS)) == {"result": 2}


def test_without_sessions_every_request_is_independent(tmp_path: Any) -> None:
    with served(tmp_path, stateless_http=True, json_response=True) as server:
        url = url_of(server)
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": START}
        request = urllib.request.Request(
            url,
            json.dumps(message).encode(),
            {"Accept": "application/json", "Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:
            assert "mcp-session-id" not in answer.headers
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(urllib.request.Request(url), timeout=SECONDS)
        assert refused.value.code == 405
        counting = call("count", upto=3)
        counting["params"]["_meta"] = {"progressToken": "t"}
        status, body = post(url, counting, Accept="application/json")
        assert (status, body["result"]["content"][0]["text"]) == (200, "counted")
        tools, total, reports, _ = asyncio.run(asyncio.wait_for(official(url), LONG_SECONDS))
        assert (tools, total, reports) == (["add", "count"], {"result": 5}, [])


# ------------------------------------------------------------------------------------ who may use it


def test_at_a_loopback_address_hosts_and_origins_are_checked(tmp_path: Any) -> None:
    with served(tmp_path) as server:
        assert "no token is needed" in server.stderr
        assert post(url_of(server), call("add", a=1, b=1))[0] == 200
        assert post(url_of(server), call("add", a=1, b=1), Host="evil.example")[0] == 421
        assert post(url_of(server), call("add", a=1, b=1), Origin="https://evil.example")[0] == 403


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
def test_an_open_address_needs_a_token_or_the_explicit_word(tmp_path: Any, transport: str) -> None:
    file = tmp_path / "server.py"
    file.write_text(swapped(), encoding="utf-8")
    command = (sys.executable, str(file), transport, '{"host": "0.0.0.0"}')
    ended = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=LONG_SECONDS)
    assert ended.returncode != 0
    for name in ("FASTRPC_TOKEN", "auth=", "127.0.0.1", "FASTRPC_ALLOW_ANONYMOUS=1"):
        assert name in ended.stderr
    with served(tmp_path, host="0.0.0.0", variables={"FASTRPC_ALLOW_ANONYMOUS": "1"}) as server:
        assert "without a token" in server.stderr
        local = f"http://127.0.0.1:{server.port}/mcp"
        assert post(local, call("add", a=1, b=1), Host="mcp.example.com")[0] == 200
    with served(tmp_path, host="0.0.0.0", variables={"FASTRPC_TOKEN": TOKEN}) as server:
        local = f"http://127.0.0.1:{server.port}/mcp"
        assert post(local, call("add", a=1, b=1))[0] == 401


CORS = """
import json, sys
from fastrpc.compat.fastmcp import FastMCP
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware

mcp = FastMCP("pages")

@mcp.tool
def add(a: int, b: int) -> int:
    return a + b

class Stamp:
    def __init__(self, app):
        self.app = app

    async def __call__(self, scope, receive, send):
        async def stamped(message):
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (b"x-stamp", b"seen")]
            await send(message)
        await self.app(scope, receive, stamped)

mcp.run(transport=sys.argv[1], **json.loads(sys.argv[2]), middleware=[
    Middleware(Stamp), Middleware(CORSMiddleware, allow_origins=["https://app.example.com"])])
"""


def test_middleware_sees_every_request_and_its_origins_are_let_in(tmp_path: Any) -> None:
    with served(tmp_path, source=CORS) as server:

        def heads(message: dict[str, Any], **headers: str) -> Any:
            return exchanged(url_of(server), message, **headers)[1]

        for _ in range(3):  # these would take the fast path
            assert (
                heads(stateless_call("add", a=1, b=1), **STATELESS, **{"Mcp-Name": "add"})["x-stamp"]
                == "seen"
            )
        page = heads(call("add", a=1, b=1), Origin="https://app.example.com")
        assert page.get_all("access-control-allow-origin") == ["https://app.example.com"]
        assert post(url_of(server), call("add", a=1, b=1), Origin="https://evil.example")[0] == 403


# --------------------------------------------------------------------------- the request of a call

REQUESTS = """
import asyncio, json, sys, time
from fastrpc import Meta
from fastrpc.compat.fastmcp import FastMCP, Context
from fastrpc.compat.http.request import current_http_request, current_transport

mcp = FastMCP("requests")

def described():
    scope = current_http_request()
    if scope is None:
        return "none"
    return f"{current_transport()} {scope['path']} {dict(scope['headers'])[b'x-caller'].decode()}"

@mcp.tool(run="inline")
def inline() -> str:
    return described()

@mcp.tool(run="thread", max_running=1)
def thread() -> str:
    time.sleep(0.05)
    return described()

@mcp.tool(max_running=1)
async def waits(ctx: Context) -> str:
    await asyncio.sleep(0.02)
    return described()

mcp.run(transport=sys.argv[1], **json.loads(sys.argv[2]))
"""


def test_each_call_sees_its_own_request(tmp_path: Any) -> None:
    """Queued calls, which begin in the turn of another caller's call, too."""
    from concurrent.futures import ThreadPoolExecutor

    with served(tmp_path, source=REQUESTS) as server, ThreadPoolExecutor(8) as pool:

        def ask(tool: str, caller: int) -> str:
            _, body = post(url_of(server), call(tool), **{"X-Caller": f"caller-{caller}"})
            return str(body["result"]["content"][0]["text"])

        def stateless_request(tool: str, caller: int) -> str:
            heads = {**STATELESS, "Mcp-Name": tool, "X-Caller": f"caller-{caller}"}
            _, body = post(url_of(server), stateless_call(tool), **heads)
            return str(body["result"]["content"][0]["text"])

        for way in (ask, stateless_request):
            for tool in ("inline", "thread", "waits"):
                expected = [f"streamable-http /mcp caller-{number}" for number in range(8)]
                assert list(pool.map(way, [tool] * 8, range(8))) == expected, (way.__name__, tool)


# ------------------------------------------------------------------------- in a loop that runs already

IN_A_LOOP = """
import asyncio, sys
from contextlib import asynccontextmanager
from fastrpc.compat.mcp import FastMCP

@asynccontextmanager
async def life(server):
    print("entered", file=sys.stderr, flush=True)
    yield {}
    print("left", file=sys.stderr, flush=True)

mcp = FastMCP("loop", lifespan=life, port=0)

@mcp.tool()
async def add(a: int, b: int) -> int:
    await asyncio.sleep(0.01)
    return a + b

async def other():
    try:
        await asyncio.sleep(600)
    finally:
        print("the other has ended", file=sys.stderr, flush=True)

async def main():
    serving = getattr(mcp, sys.argv[1])
    task = asyncio.ensure_future(other())
    await serving()
    print("other done:", task.done(), file=sys.stderr, flush=True)

if __name__ == "__main__":
    if sys.argv[2] == "anyio":
        import anyio
        anyio.run(main)
    else:
        asyncio.run(main())
"""


@pytest.mark.parametrize("method", ["run_http_async", "run_streamable_http_async", "run_sse_async"])
def test_over_http_in_a_running_loop_a_signal_ends_the_whole_program(tmp_path: Any, method: str) -> None:
    file = tmp_path / "server.py"
    file.write_text(IN_A_LOOP, encoding="utf-8")
    command = (sys.executable, str(file), method, "asyncio")
    with HttpProcess(command=command, folder=str(tmp_path), environment=environment()) as server:
        if method != "run_sse_async":
            status, body = post(url_of(server), call("add", a=1, b=2))
            assert (status, body["result"]["content"][0]["text"]) == (200, "3")
        assert "entered" in server.stderr  # before the first call
        assert server.stop(signal.SIGTERM) == -signal.SIGTERM
        assert "left" in server.stderr


@pytest.mark.parametrize("runner", ["asyncio", "anyio"])
def test_stdio_in_a_running_loop(tmp_path: Any, runner: str) -> None:
    file = tmp_path / "server.py"
    file.write_text(IN_A_LOOP, encoding="utf-8")
    command = (sys.executable, str(file), "run_stdio_async", runner)

    async def use() -> Any:
        from mcp import ClientSession, StdioServerParameters
        from mcp.client.stdio import stdio_client

        given = StdioServerParameters(command=command[0], args=list(command[1:]), env=environment())
        async with stdio_client(given) as streams, ClientSession(*streams) as session:
            await session.initialize()
            return [(await session.call_tool("add", {"a": n, "b": 1})).structured_content for n in range(3)]

    results = asyncio.run(asyncio.wait_for(use(), LONG_SECONDS))
    assert results == [{"result": 1}, {"result": 2}, {"result": 3}]
    lines = [
        {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": START},
        call("add", a=4, b=5),
    ]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    ended = subprocess.run(
        command, input=text, env=environment(), capture_output=True, text=True, timeout=LONG_SECONDS
    )
    assert [json.loads(line)["id"] for line in ended.stdout.splitlines()] == [0, 1]
    assert ended.returncode == 0, ended.stderr
    assert "left" in ended.stderr
    assert "other done: False" in ended.stderr  # the program's own tasks are not cancelled by the server

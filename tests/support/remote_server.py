"""An MCP server over HTTP in a process of its own, for the tests of those who speak to one.

`Remote` starts it and says its address; it may be ended and started again at the same one. `BEHIND` is a
server of fastrpc with something of every kind, `OFFICIAL` one of the official SDK. `Scripted` is one in the
test's own loop that says, byte for byte, what the test wants it to.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from typing import Any

from support.ports import free_port
from support.upstream import OFFERS

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOKEN = "tok-12345-of-the-remote-server"
SECONDS = 20.0

BEHIND = (
    OFFERS
    + """
if __name__ == "__main__":
    options = {"token": sys.argv[2]} if sys.argv[2:] else {"auth": None}
    app.run(http=f"127.0.0.1:{sys.argv[1]}", drain_seconds=0.2, **options)
"""
)

OFFICIAL = """
import asyncio, sys
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from pydantic import BaseModel

app = MCPServer("official", instructions="from the SDK")

@app.tool()
async def add(a: int, b: int = 2) -> int:
    "Add."
    return a + b

@app.tool()
async def work(ctx: Context) -> str:
    await ctx.report_progress(1, 2, "half")
    await ctx.info("careful")
    return "done"

class Name(BaseModel):
    name: str

@app.tool()
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("who?", Name)
    return f"{answer.action} {answer.data.name}"

@app.tool()
async def sleep(path: str) -> str:
    open(path + ".begun", "w").close()
    try:
        await asyncio.sleep(30)
    finally:
        open(path, "w").close()

@app.tool()
async def grow(name: str, ctx: Context) -> str:
    async def late() -> str:
        return "late"
    app.add_tool(late, name=name)
    if ctx.protocol_version == "2026-07-28":
        await ctx.notify_tools_changed()
    else:
        await ctx.session.send_tool_list_changed()
    return "grown"

@app.resource("docs://guide")
def guide() -> str:
    return "# read me"

@app.prompt()
def review(language: str) -> str:
    return f"review {language}"

options = {"stateless": {"stateless_http": True}, "json": {"json_response": True}, "session": {}}
application = app.sse_app() if MODE == "sse" else app.streamable_http_app(**options[MODE])
uvicorn.run(application, host="127.0.0.1", port=int(sys.argv[1]), log_level="error")
"""
"""A server of the official SDK; `MODE` stands for how it is to serve: session, json, stateless or sse."""


class Remote:
    """A server that runs `source`, a Python program whose arguments are a port and, if there is one, the
    token."""

    def __init__(self, source: str = BEHIND, token: str | None = TOKEN, path: str = "/mcp") -> None:
        self.token = token
        self.path = path
        self.port = free_port()
        self._source = source
        self._folder = tempfile.TemporaryDirectory()
        self._file = os.path.join(self._folder.name, "behind.py")
        with open(self._file, "w", encoding="utf-8") as file:
            file.write(source)
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        arguments = [str(self.port), *([self.token] if self.token else [])]
        environment = {**os.environ, "PYTHONPATH": REPOSITORY}
        self.process = subprocess.Popen(
            [sys.executable, self._file, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env=environment,
        )
        deadline = time.monotonic() + SECONDS
        while not self._listens():
            if self.process.poll() is not None or time.monotonic() > deadline:
                self.process.kill()
                assert self.process.stderr is not None
                raise AssertionError(self.process.stderr.read().decode())
            select.select([self.process.stderr], [], [], 0.02)

    def _listens(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True

    def stop(self, number: int = signal.SIGKILL) -> None:
        """End it, and wait for its end."""
        if self.process is not None:
            self.process.send_signal(number)
            self.process.communicate(timeout=SECONDS)
            self.process = None

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()
        self._folder.cleanup()


class Asked:
    """One request that a scripted server has got."""

    def __init__(self, method: str, path: str, headers: dict[str, str], body: bytes) -> None:
        self.method = method
        self.path = path
        self.headers = headers
        self.body = body

    @property
    def message(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.body)
        return found

    @property
    def rpc(self) -> str:
        """The method of its message; empty if there is none."""
        return str(self.message.get("method", "")) if self.body else ""


class Saying:
    """The way back to the client: `head`, then what is to be sent."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writer = writer

    async def answer(self, status: int, body: Any = None, **headers: str) -> None:
        """Send a whole answer; what is no bytes is sent as JSON."""
        data = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        kind = {} if body is None or "content_type" in headers else {"content_type": "application/json"}
        await self.head(status, content_length=str(len(data)), **kind, **headers)
        await self.send(data)

    async def result(self, asked: Asked, result: Any, **headers: str) -> None:
        await self.answer(200, {"jsonrpc": "2.0", "id": asked.message["id"], "result": result}, **headers)

    async def error(self, asked: Asked, status: int, code: int, message: str, data: Any = None) -> None:
        error = {"code": code, "message": message, **({} if data is None else {"data": data})}
        await self.answer(status, {"jsonrpc": "2.0", "id": asked.message["id"], "error": error})

    async def stream(self, **headers: str) -> None:
        await self.head(200, content_type="text/event-stream", **headers)

    async def head(self, status: int, **headers: str) -> None:
        lines = [f"HTTP/1.1 {status} Said", "connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.send("\r\n".join([*lines, "", ""]).encode())

    async def event(self, message: Any = None, **fields: str) -> None:
        lines = [f"{name}: {value}" for name, value in fields.items()]
        lines.append("data: " + ("" if message is None else json.dumps(message)))
        await self.send("\n".join([*lines, "", ""]).encode())

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    def drop(self) -> None:
        """Break the connection off."""
        self._writer.transport.abort()


class Scripted:
    """A server in this event loop that answers as a function tells it to; one request a connection.

    `requests` are those that have come. `tls`: an ssl.SSLContext.
    """

    def __init__(self, play: Callable[[Asked, Saying], Awaitable[None]], tls: Any = None) -> None:
        self.requests: list[Asked] = []
        self._play = play
        self._tls = tls
        self._server: asyncio.Server | None = None

    @property
    def port(self) -> int:
        assert self._server is not None
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    @property
    def url(self) -> str:
        return f"{'https' if self._tls else 'http'}://localhost:{self.port}/mcp"

    def methods(self) -> list[str]:
        """What was asked, in order: the method of HTTP, and of the message."""
        return [f"{asked.method} {asked.rpc}".strip() for asked in self.requests]

    async def __aenter__(self) -> Scripted:
        self._server = await asyncio.start_server(self._serve, "localhost", 0, ssl=self._tls)
        return self

    async def __aexit__(self, *exception: Any) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {
                name.lower(): value.strip()
                for name, _, value in (line.partition(":") for line in lines if line)
            }
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            method, path, _ = first.split(" ")
            asked = Asked(method, path, headers, body)
            self.requests.append(asked)
            await self._play(asked, Saying(writer))
        with contextlib.suppress(ConnectionError):
            writer.close()
            await writer.wait_closed()

"""An MCP server over HTTP in a separate process, for the tests of those who speak to one.

`Remote` starts it (`http_server`) and says its address; it may be ended and started again at the same one.
`BEHIND` is a server of fastrpc with something of every kind, `OFFICIAL` one of the official SDK.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from typing import Any

from support.http_server import HttpProcess
from support.ports import free_port
from support.upstream import UPSTREAM

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOKEN = "tok-12345-of-the-remote-server"
READY = r"(?:serving at|running on) (\S+)"  # what fastrpc says, and uvicorn

BEHIND = (
    UPSTREAM
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
        await asyncio.sleep(100)
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
uvicorn.run(application, host="127.0.0.1", port=int(sys.argv[1]), log_level="info")
"""
"""A server of the official SDK; `MODE` says how it is to serve: session, json, stateless or sse."""


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
        self.process: HttpProcess | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    def start(self) -> None:
        """Start it, and wait until it takes connections."""
        arguments = [str(self.port), *([self.token] if self.token else [])]
        self.process = HttpProcess(
            *arguments,
            command=(sys.executable, self._file),
            environment={**os.environ, "PYTHONPATH": REPOSITORY},
            ready=READY,
        )

    def stop(self, number: int = signal.SIGKILL) -> None:
        """End it, and wait for its end."""
        if self.process is not None:
            self.process.stop(number)
            self.process.close()
            self.process = None

    def __enter__(self) -> Remote:
        return self

    def __exit__(self, *exception: Any) -> None:
        self.stop()
        self._folder.cleanup()

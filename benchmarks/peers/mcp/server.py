"""Peer: the official Python SDK, its high-level server over stdio, or with `--http PORT` over HTTP.

Over HTTP it is as fast as it gets: stateless, JSON answers, uvloop and httptools, no log line for a request.

The tools are coroutines: a plain function would be handed to a thread for every call, which is slower.
"""

import asyncio
import subprocess
import sys
from typing import Any

from mcp.server.mcpserver import MCPServer

app = MCPServer("bench")


@app.tool()
async def echo(text: str) -> str:
    """Return the text."""
    return text


@app.tool()
async def add(a: int, b: int) -> int:
    """Return the sum of two integers."""
    return a + b


@app.tool()
async def payload(object: dict[str, Any]) -> dict[str, Any]:
    """Return the object."""
    return object


@app.tool()
async def sleep(ms: int) -> str:
    """Wait for so many milliseconds."""
    await asyncio.sleep(ms / 1000)
    return "done"


@app.tool()
async def bash(command: str) -> str:
    """Run a command and return what it printed."""
    shell = await asyncio.create_subprocess_exec(
        "bash", "-c", command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    output, _ = await shell.communicate()
    return output.decode(errors="replace")


def serve(app: MCPServer, options: list[str]) -> None:
    """Serve over stdio, or over HTTP as `--http PORT` asks for."""
    if options[:1] == ["--http"]:
        serve_http(app, int(options[1]))
    else:
        app.run()


def serve_http(app: MCPServer, port: int) -> None:
    """Serve as the SDK's own `run` does, but with the fastest parts that uvicorn can be given."""
    import uvicorn

    application = app.streamable_http_app(stateless_http=True, json_response=True)
    fastest = {"loop": "uvloop", "http": "httptools", "access_log": False, "log_level": "warning"}
    uvicorn.run(application, host="127.0.0.1", port=port, **fastest)


if __name__ == "__main__":
    serve(app, sys.argv[1:])

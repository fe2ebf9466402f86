"""A guarded HTTP server of fastrpc in a process of its own, for tests of who may come in.

`Running` starts the tools of `PROGRAM` with whatever options `Server.asgi` takes; `constants` of modules are
changed first, so that nobody waits for half a minute. Each request has a connection of its own, and says
exactly what it is given. Bounded in time.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import Any

TOKEN, OTHER = "a-token-of-the-first-caller", "a-token-of-the-second-caller"
METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH")

PROGRAM = r'''
import asyncio, importlib, json, os, subprocess, sys
from fastrpc import Context, Server
from fastrpc.processes import environment
from fastrpc.transports.http import guard
from fastrpc.transports.http.auth import token_from_environment
from fastrpc.transports.http.sockets import Address, listen
from fastrpc.transports.http.server import HttpServer

given = json.loads(sys.argv[1])
for module, values in given.pop("constants", {}).items():
    for name, value in values.items():
        setattr(importlib.import_module(module), name, value)
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

@app.tool
async def ask(ctx: Context) -> str:
    answer = await ctx.elicit("Which?", str)
    return f"it is {answer.data}"

if given.pop("unguarded", False):
    guard.Guard.check_place = lambda self, headers: headers.get(b"origin", [b""])[0].decode() or None
if given.pop("from_environment", False):
    given["token"] = token_from_environment()
if "asked" in given:
    given["token"] = given.pop("asked").__getitem__
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
        self.wants_token = not options.get("open")
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

    @classmethod
    def at(cls, port: int, process: subprocess.Popen[bytes]) -> Running:
        """Speak to a server that was started otherwise."""
        running = cls.__new__(cls)
        running.port, running.process, running.wants_token = port, process, True
        return running

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

    def call(self, tool: str, *headers: str, arguments: str = "{}", more: str = "", **options: Any) -> Answer:
        """Call a tool in 2026-07-28: a request that the straight way answers, where it is let in."""
        given = headers or (f"Authorization: Bearer {TOKEN}",)
        body = CALL.replace(b"TOOL", tool.encode()).replace(b"ARGUMENTS", arguments.encode() + more.encode())
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
        assert len(self.headers) == len(lines), f"a header stands there twice: {lines}"
        length = 0 if method == "HEAD" else int(self.headers.get("content-length", 0))
        while len(body) < length:
            part = connection.recv(65536)
            if not part:
                raise AssertionError("the body was cut short")
            body += part
        self.body = body[:length]

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def code(self) -> Any:
        return self.json["error"]["code"]

    @property
    def text(self) -> str:
        """What a tool has returned."""
        found: str = self.json["result"]["content"][0]["text"]
        return found


META = (
    b'"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",'
    b'"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}'
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

"""A guarded server over HTTP, and callers that say exactly what they are given: for tests of who may come in.

`GuardedServer` starts it (`http_server`) with whatever options `Server.asgi` takes; `patch` sets names of
modules first, so that no one waits for half a minute. A `Caller` is of any server; each of its requests has a
separate connection. Bounded in time.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from support.http_server import HttpProcess, tool_server
from support.raw_http import Answer, Socket

TOKEN, OTHER = "a-token-of-the-first-caller", "a-token-of-the-second-caller"
METHODS = ("GET", "HEAD", "POST", "DELETE", "OPTIONS", "PUT", "PATCH")

TOOLS = r'''
import json, os, subprocess
from fastrpc import Context, Server
from fastrpc.processes import environment
from fastrpc.transports.http import guard
from fastrpc.transports.http.auth import token_from_environment

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

if given["unguarded"]:
    guard.AccessRules.check_place = lambda self, headers: headers.get(b"origin", [b""])[0].decode() or None
if given["from_environment"]:
    given["options"]["token"] = token_from_environment()
if given["asked"]:
    given["options"]["token"] = given["asked"].__getitem__
'''


class Caller:
    """Who asks the server at a port."""

    def __init__(self, port: int) -> None:
        self.port = port

    def ask(
        self, method: str, path: str, *headers: str, body: bytes = b"", host: str | None = "localhost"
    ) -> Answer:
        """Send one request on a separate connection; `body` is sent only as far as it goes."""
        lines = [f"{method} {path} HTTP/1.1", *([] if host is None else [f"Host: {host}"]), *headers]
        if body and not any(line.lower().startswith("content-length") for line in headers):
            lines.append(f"Content-Length: {len(body)}")
        return self.send("\r\n".join([*lines, "", ""]).encode("latin-1") + body, method)

    def send(self, data: bytes, method: str = "POST") -> Answer:
        with Socket(self.port) as connection:
            connection.send(data)
            return connection.answer(method)

    def count(self) -> int:
        """How many calls there have been, this one among them."""
        return int(json.loads(self.call("count").body)["result"]["content"][0]["text"])

    def call(self, tool: str, *headers: str, arguments: str = "{}", more: str = "", **options: Any) -> Answer:
        """Call a tool in 2026-07-28: a request that the fast path answers, where it is let in."""
        given = headers or (f"Authorization: Bearer {TOKEN}",)
        body = CALL.replace(b"TOOL", tool.encode()).replace(b"ARGUMENTS", arguments.encode() + more.encode())
        return self.ask("POST", "/mcp", *given, *STATELESS, f"Mcp-Name: {tool}", body=body, **options)


class GuardedServer(HttpProcess, Caller):
    """A server's process, from `with` to its end. `options` are those of `Server.asgi`.

    Its token is what `from_environment` finds, or what the dict `asked` says of one. `is_open`: it asks for
    none. `unguarded`: it does not look where requests come from.
    """

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        *,
        from_environment: bool = False,
        asked: dict[str, str] | None = None,
        is_open: bool = False,
        unguarded: bool = False,
        patch: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.wants_token = not is_open
        if is_open:
            options["auth"] = None
        own = {"from_environment": from_environment, "asked": asked, "unguarded": unguarded}
        command = tool_server(TOOLS, patch=patch, options=options, **own)
        HttpProcess.__init__(self, command=command, environment=environment)


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
STATELESS = (*BOTH, "MCP-Protocol-Version: 2026-07-28", "Mcp-Method: tools/call")
INITIALIZE = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25",'
    b'"capabilities":{},"clientInfo":{"name":"t","version":"1"}}}'
)

"""A proxy of another MCP server, with a hook that may refuse calls, and a tool of its own.

Serve with `fastrpc serve examples/proxy.py`. The upstream server is a child process, written in any language.
"""

from __future__ import annotations

import os
import sys

from fastrpc import CallInfo, Server, ToolError

BEHIND = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "mount.py")]

parts = Server.proxy(BEHIND, name="parts")


@parts.before(tools="words_*")
def not_too_long(call: CallInfo) -> None:
    """Refuse a call before the upstream server receives it."""
    if len(str(call.arguments.get("text", ""))) > 10_000:
        raise ToolError("text: at most 10,000 characters, please")


app = Server("front", version="1.0")
app.mount(parts)  # without a prefix: names stay as they are behind


@app.tool(effect="read")
def front() -> str:
    """Say who stands in front."""
    return "the server in front"


if __name__ == "__main__":
    app.run()

"""What the tests of the originals' dialects share: a server of each, and what it says of one function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fastrpc.compat import fastmcp, mcp
from fastrpc.protocol.versions import LATEST_SESSION_VERSION
from support.in_memory import with_client

FASTMCP, SDK_1, SDK_2 = fastmcp.FastMCP, mcp.FastMCP, mcp.MCPServer
SDKS = pytest.mark.parametrize("kind", [SDK_1, SDK_2], ids=["sdk1", "sdk2"])
ALL = pytest.mark.parametrize("kind", [FASTMCP, SDK_1, SDK_2], ids=["fastmcp", "sdk1", "sdk2"])


def tool_and_result(
    kind: Any,
    function: Callable[..., Any],
    arguments: Any = None,
    version: str = LATEST_SESSION_VERSION,
    **options: Any,
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the descriptor of a function as a tool of such a server, and the result of a call; `options` are
    those that it is added with."""
    server = kind("demo")
    server.add_tool(function, **options)

    async def conversation(client: Any) -> Any:
        (tool,) = (await client.request("tools/list", {}))["tools"]
        params = {"name": tool["name"], "arguments": arguments or {}}
        for _ in range(2):  # by the dispatcher and, from the second call on, by compiled code alone
            result = await client.request("tools/call", params)
        return tool, result

    found: tuple[dict[str, Any], dict[str, Any]] = with_client(server, conversation, version)
    return found

"""FastMCP's user interfaces (MCP Apps): tools that return an interface of the library prefab-ui, which a
client's host renders, and `FastMCPApp`, the tools of one interface together.

The library is the user's, and imported by the user's file; a server without interfaces imports nothing of
this package. A call of another tool of the same server costs what it costs elsewhere.
"""

from __future__ import annotations

UI_EXTENSION_ID = "io.modelcontextprotocol/ui"
"""The identifier of the extension MCP Apps."""
UI_MIME_TYPE = "text/html;profile=mcp-app"
"""The MIME type of the pages of MCP Apps."""

"""The rules of MCP that need no I/O: versions, the lifecycle, pages of lists, URI templates."""

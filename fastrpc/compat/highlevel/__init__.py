"""Parts of `fastrpc.compat.server`, the high-level servers of FastMCP and of the official SDK."""

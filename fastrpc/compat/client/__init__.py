"""The clients of FastMCP and of the official SDK, on `fastrpc.Client`."""

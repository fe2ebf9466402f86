"""The client side of MCP over HTTP, in every version of the protocol.

Imported by the first client or proxy of a URL; httpx is imported by the first request.
"""

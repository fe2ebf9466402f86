"""The client side of MCP over HTTP, in every version of the protocol.

Imported by the first client or proxy of a URL. The HTTP/1.1 is its own, on httptools: `connection` is one
connection, `pool` those to a server, `dialing` the way there, `wire` a request with credentials and errors.
"""

"""The client's side of MCP over HTTP: how a server at a URL is spoken to, in every version of the protocol.

Imported by the first proxy of a URL alone; httpx, which it stands on, by the first request.
"""

"""MCP over HTTP. `app` is the ASGI application with its routes, `server` serves it with uvicorn on sockets,
`run` starts it from its settings; the other files are parts of these. Not imported by a server over standard
input and output.
"""

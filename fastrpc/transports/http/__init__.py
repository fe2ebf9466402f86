"""MCP over HTTP. `app` is the ASGI application and its routes, `server` serves it with uvicorn on sockets,
`run` from settings to the end of the process; the other files hold one part of these each. Imported by
nothing that serves over standard input and output.
"""

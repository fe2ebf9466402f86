"""Authorization for compat servers: token verifiers, and checks of what a caller may see and call.

The classes have the names and arguments of FastMCP and of the official SDK; fastrpc's own check of bearer
tokens (`fastrpc.transports.http.auth`) calls them through `authenticator`. Over stdio none of this has an
effect, and the libraries for JWTs and HTTP are imported only when a server begins to serve over HTTP.
"""

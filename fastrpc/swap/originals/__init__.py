"""Serves the servers of FastMCP and of the official SDK over fastrpc's transports, with their own objects.

For `fastrpc swap --run --objects original`: classes, registries, contexts and handlers stay those of the
installed packages; what reads messages, keeps the session and writes answers is fastrpc. The original must be
installed.

* `loading` changes a few functions of the originals' modules when they are imported; it has the list of them
* `stdio` takes the place of ``stdio_server``, whose streams are not opened if `serving` reads standard input
* `serving` is the `fastrpc.Server` of one low-level server of the original, `methods` its table of methods
* `sdk1` and `sdk2` hand a request to a low-level server of the SDK's 1.x or 2.x, with the context it expects
* `first_fastmcp`, `mcpserver` and `fastmcp` find the tools whose calls need nothing but their function

What is not served in this way is left to the original's own code: another event loop than asyncio's, streams
of other transports, ``raise_exceptions``, experimental tasks.
"""

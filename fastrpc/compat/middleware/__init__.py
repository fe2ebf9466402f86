"""Middleware classes, as FastMCP has them: objects whose coroutines are around a server's requests.

`base` has what programs derive their own from, the other modules the ready ones; `chain` puts those of one
server around its calls and lists (`fastrpc.engine.wrappers`). What no middleware of a server overrides is not
wrapped: a class with `on_list_tools` alone leaves calls as they are. Imported by the first middleware.
"""

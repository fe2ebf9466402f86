"""What happens to a request between the connection that has read it and the bytes of its answer.

The engine knows ports, not features: what a server can do is handed to it as one table (`fastrpc.methods`),
and what a handler may do with its client as functions beside it. Nothing here does I/O.
"""

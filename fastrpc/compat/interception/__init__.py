"""Requests of a server with middleware, with methods that a program overrides, or with an inner server's
handlers: what the engine calls for them, and what they see of a call, a result and a list."""

"""Compat servers over HTTP: their options, their ASGI applications, and the request of the running call."""

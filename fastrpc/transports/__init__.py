"""Transports: each carries bytes between a client and the connection that it is given."""

from fastrpc._core.connection import Connection

def receive_named(connection: Connection, body: bytes, method: bytes, name: bytes) -> bool:
    """Handle a stateless request (MCP 2026-07-28) if it is a call of the tool `name`, or a list, as `method`
    announces. Return whether it is."""

def receive_in_session(connection: Connection, body: bytes) -> bool:
    """Handle a request of a session (MCP up to 2025-11-25), unless it is a handshake. Return whether it is
    one."""

def drop_line(connection: Connection) -> None:
    """Give back the memory of a long line that the connection has handled, and of what has parsed it."""

def give_back_memory() -> None:
    """Have glibc give the memory of large bodies back to the system as soon as they are freed."""

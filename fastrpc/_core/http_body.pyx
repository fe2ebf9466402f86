"""Hands the body of a POST to a connection, if it is the request that its head, or its session, announces.

The straight way over HTTP answers such a request before anything else looks at it. A body that is something
else is left alone: nothing has happened to it, and another way reads it again. No I/O.
"""

from libc.string cimport memcmp

from fastrpc._core.connection cimport Connection
from fastrpc._core.message cimport SESSION_WIRE, STATELESS_WIRE, REQUEST, Message
from fastrpc._core.slices cimport Slice

cdef extern from "heap_limits.h":
    void set_thresholds "fastrpc_set_thresholds"(int mapped, int trimmed) noexcept

cdef enum:
    MAPPED = 256 * 1024
    TRIMMED = 4 * 1024 * 1024


def give_back_memory():
    """Have glibc give the memory of large bodies back to the system as soon as they are freed.

    Its thresholds grow with what is freed, to 32 MiB: a few bursts of calls of a megabyte that
    clients had given up left two gigabytes in the process.
    """
    set_thresholds(MAPPED, TRIMMED)


cdef inline bint is_same(Slice found, bytes text) noexcept:
    return found.size == len(text) and memcmp(found.data, <char*> text, len(text)) == 0


def receive_named(
    Connection connection not None, bytes body not None, bytes method not None, bytes name not None
):
    """Handle a stateless request (MCP 2026-07-28) if it is a call of the tool `name`, or a list, as `method`
    announces. Return whether it is."""
    cdef Message message = connection.message
    message.read_line(connection.take(body), len(body))
    if message.kind_code != REQUEST or message.wire != STATELESS_WIRE or message.wants_progress:
        return False
    if message.is_call:
        if method != b"tools/call" or not is_same(message.target, name):
            return False
    elif not (message.is_list and method == b"tools/list"):
        return False
    connection.handle_message()
    return True


def receive_in_session(Connection connection not None, bytes body not None):
    """Handle a request of a session (MCP up to 2025-11-25), unless it is a handshake. Return whether it is
    one."""
    cdef Message message = connection.message
    cdef const char* text = connection.take(body)
    if not connection.known_stateless and connection.is_known(text, len(body)):
        connection.answer_known()
        return True
    message.read_line(text, len(body))
    if (
        message.kind_code != REQUEST
        or message.wire != SESSION_WIRE
        or is_same(message.method_name, b"initialize")
        or is_same(message.method_name, b"server/discover")
    ):
        return False
    connection.handle_message()
    return True


def drop_line(Connection connection not None):
    """Give back the memory of a long line that the connection has handled, and of what has parsed it."""
    connection.keep_context()
    connection.known = False
    connection.message = Message()

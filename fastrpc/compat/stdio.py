"""Serves a server over standard input and output in an event loop that the program runs itself.

For the coroutines of other frameworks: ``await mcp.run_stdio_async()``, ``async with stdio_server()``.
Standard output belongs to the protocol meanwhile: what the program prints goes to standard error.
fastrpc's own `Server.run` starts faster: it answers the first messages before there is an event loop.
"""

from __future__ import annotations

import os
import sys

from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.server import Server


async def serve_stdio(
    server: Server, *, drain_seconds: float = 1.0, stdin: int | None = None, stdout: int | None = None
) -> None:
    """Serve until the client disconnects; at the end of input calls in flight have `drain_seconds`.

    `stdin` and `stdout` are descriptors in the place of 0 and 1, which programs redirect sometimes.

    A cancellation, as by SIGINT, ends it at once; SIGTERM and SIGHUP, where the program has no handler for
    them, end the process. Raises UsageError if standard input or output is closed, and in a loop that is
    not asyncio's.
    """
    import asyncio

    from fastrpc.transports.stdio import serve_in_running_loop

    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise UsageError("standard input and output are served in an event loop of asyncio only") from None
    dispatcher = server.connect()
    try:
        with redirected(stdin, stdout):
            await serve_in_running_loop(dispatcher.connection, drain_seconds=drain_seconds)
    finally:
        dispatcher.close()
        server.drain_observers(at_end=True)


def redirected(stdin: int | None = None, stdout: int | None = None) -> _Redirected:
    """Have descriptors 0 and 1 refer to these, within `with`; by default for those of `sys.stdin` and
    `sys.stdout`, where a program has put other files: it keeps what libraries write to descriptor 1 away
    from the protocol in this way."""
    others = (stdin, stdout)
    files = (sys.stdin, sys.stdout)
    return _Redirected(
        {
            number: other if other is not None else _other_descriptor(file, number)
            for number, (other, file) in enumerate(zip(others, files, strict=True))
        }
    )


def _other_descriptor(file: Any, number: int) -> int | None:
    """Return the descriptor of a file of another number; None for a file without one."""
    try:
        found = int(file.fileno())
    except (AttributeError, OSError, ValueError):
        return None
    return None if found == number or found == 2 else found


class _Redirected:
    """Has standard descriptors refer to others, within `with`."""

    def __init__(self, others: dict[int, int | None]) -> None:
        self._others = {number: other for number, other in others.items() if other is not None}
        self._kept: dict[int, int] = {}

    def __enter__(self) -> None:
        for number, other in self._others.items():
            self._kept[number] = os.dup(number)
            os.dup2(other, number)

    def __exit__(self, *exception: object) -> None:
        for number, kept in self._kept.items():
            os.dup2(kept, number)
            os.close(kept)

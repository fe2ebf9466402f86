"""Keeps a child process that a handler forks from reading or answering on the server's connections.

A child of `os.fork` inherits everything: descriptors, signal handlers, buffered input. It may work, call
`exec`, or exit, as children of multiprocessing do. If it returns from the call in which it was forked, it
ends there (`leave`): with the code of `sys.exit`, with 1 after any other exception, else with 0. Functions of
`atexit` belong to the server and are not called. Transports use `in_child` to release what a child must not
use.

Callers of handlers compare `generation` before and after the call. That comparison is the only cost, unless
the process forks through Python (`subprocess` does not, except with ``preexec_fn``).
"""

from __future__ import annotations

import os
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

generation = 0
"""The number of forks between this process and the one that imported this module."""

_functions: list[Callable[[], object]] = []


def in_child(function: Callable[[], object]) -> None:
    """Register a function to be called once in a forked child, before other code runs there."""
    _functions.append(function)


def forget(function: Callable[[], object]) -> None:
    """Remove a registered function, if it is registered."""
    if function in _functions:
        _functions.remove(function)


def _before() -> None:
    """Block the signals that a server handles. Otherwise a child that receives one before it has released the
    server's signal handling would notify the server."""
    if _functions:
        from signal import SIG_BLOCK, SIGHUP, SIGINT, SIGTERM, SIGUSR1, pthread_sigmask

        _masks[get_ident()] = pthread_sigmask(SIG_BLOCK, (SIGHUP, SIGINT, SIGTERM, SIGUSR1))


def _after() -> None:
    mask = _masks.pop(get_ident(), None)
    if mask is not None:
        from signal import SIG_SETMASK, pthread_sigmask

        pthread_sigmask(SIG_SETMASK, mask)


def _begin_child() -> None:
    global generation
    generation += 1
    functions, _functions[:] = _functions[:], []
    try:
        for function in functions:
            function()
    finally:
        _after()


_masks: dict[int, set[Any]] = {}
"""For each thread, the signals that were blocked before it forked."""

os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_begin_child)


def replace(descriptors: Iterable[int]) -> None:
    """Replace descriptors by /dev/null, so that code which still uses their numbers does no harm. If the
    process has no free descriptor, close them."""
    try:
        null = os.open(os.devnull, os.O_RDWR)
    except OSError:
        for descriptor in descriptors:
            os.close(descriptor)
        return
    for descriptor in descriptors:
        os.dup2(null, descriptor, inheritable=False)
    os.close(null)


def leave(error: BaseException | None = None) -> NoReturn:
    """End a child that has returned from the call in which it was forked; `error` is what the call raised."""
    import sys

    code = 0
    if isinstance(error, SystemExit):
        code = _code_of(error)
    elif error is not None:
        from fastrpc import diagnostics

        diagnostics.write("error", f"a child process of a handler failed: {type(error).__name__}", error)
        code = 1
    for file in (sys.stdout, sys.stderr):
        try:
            file.flush()
        except (AttributeError, OSError, ValueError):
            pass  # missing, closed, or without a reader
    os._exit(code)


def leave_if_forked(since: int | None, error: BaseException | None = None) -> None:
    """End this process if it was forked since `generation` had this value (None: it may go on), in the call
    that has ended, or has raised `error`."""
    if since is not None and since != generation:
        leave(error)


def _code_of(error: SystemExit) -> int:
    """Return the exit code of a SystemExit; a text is written to standard error."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    from fastrpc import diagnostics

    diagnostics.write_line(str(error.code))
    return 1

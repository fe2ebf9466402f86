"""What a child process that a handler forks must not do: read or answer on the server's connections.

A child of `os.fork` has all that the server has: its descriptors, its signal handlers, the rest of what was
read. It may do its own work, `exec`, or end by itself, as the children of multiprocessing do. One that comes
back from the call it was forked in ends there (`leave`): by `sys.exit` with the code it gives, after an
exception with 1, else with 0; functions of `atexit` are the server's, and are not called. Transports register
what the child has to let go of with `in_child`.

Who calls a handler compares `generation` before and after. Costs a comparison there, and nothing else
unless a process forks through Python (`subprocess` does not, but for ``preexec_fn``).
"""

from __future__ import annotations

import os
from _thread import get_ident

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

generation = 0
"""How many forks lie between this process and the one that has imported this module."""

_functions: list[Callable[[], object]] = []


def in_child(function: Callable[[], object]) -> None:
    """Have a function called in a child that is forked from now on, once, before anything else of it runs."""
    _functions.append(function)


def forget(function: Callable[[], object]) -> None:
    """Have it called no more, if it was to be."""
    if function in _functions:
        _functions.remove(function)


def _before() -> None:
    """Hold back the signals that a server takes: one that came to a child before it has let go of the
    server's way to take them would be taken for the server's."""
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
"""By thread, the signals that were held back before it began to fork."""

os.register_at_fork(before=_before, after_in_parent=_after, after_in_child=_begin_child)


def replace(descriptors: Iterable[int]) -> None:
    """Put /dev/null in the place of descriptors, so that code that still uses their numbers does no harm. If
    the process has no descriptor left for that, they are closed."""
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
    """End a child that has come back from the call it was forked in, which may have raised `error`."""
    import sys

    code = 0
    if isinstance(error, SystemExit):
        code = _code_of(error)
    elif error is not None:
        from fastrpc import log

        log.write("error", f"a child process of a handler failed: {type(error).__name__}", error)
        code = 1
    for file in (sys.stdout, sys.stderr):
        try:
            file.flush()
        except (AttributeError, OSError, ValueError):
            pass  # none, closed, or nobody reads it
    os._exit(code)


def _code_of(error: SystemExit) -> int:
    """Return the exit code that `sys.exit` stands for; a text is written to standard error."""
    if error.code is None:
        return 0
    if isinstance(error.code, int):
        return error.code & 0xFF
    from fastrpc import log

    log.say(str(error.code))
    return 1

"""The event loop of a server: uvloop's where it is installed; only the serving coroutine ends it.

asyncio raises SystemExit and KeyboardInterrupt of any task or callback out of the loop: those of a tool's
task would end the server. The loop is intact afterwards, and is run again: the task has ended with its
exception, with no other effect. Costs nothing while nothing is raised.
"""

from __future__ import annotations

import asyncio

from fastrpc import diagnostics, forks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable, Coroutine
    from typing import Any


def new_loop() -> AbstractEventLoop:
    """Return a new event loop: uvloop's where it is installed. Raises OSError."""
    try:
        from fastrpc.transports.uvloop_loop import Loop
    except ImportError:
        return asyncio.new_event_loop()
    loop = Loop()
    if asyncio._get_running_loop() is None:  # else it will run on another thread
        # uvloop opens its last descriptors when it first runs. Where it may open no more, it can no longer be
        # closed, and that would hide the reason.
        loop.call_soon(loop.stop)
        loop.run_forever()
    return loop


def run(serving: Coroutine[Any, Any, None], is_signal: Callable[[], bool]) -> None:
    """Run a coroutine to its end, in a new loop.

    `is_signal` returns whether a KeyboardInterrupt raised now may come from a signal; it is raised then.
    """
    try:
        loop = new_loop()
    except OSError:
        serving.close()
        raise
    asyncio.set_event_loop(loop)
    forks.in_child(loop.stop)
    try:
        task = loop.create_task(serving)
        task.add_done_callback(lambda _: loop.stop())
        generation = forks.generation
        while not task.done():  # a tool that calls loop.stop() does not end the server either
            failure: BaseException | None = None
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                failure = error
            if generation != forks.generation:
                forks.leave(failure)
            if isinstance(failure, KeyboardInterrupt) and is_signal():
                loop.set_exception_handler(lambda *_: None)  # of what its tasks raised, or were about to do
                raise failure
            if failure is not None:
                what = type(failure).__name__
                diagnostics.write(
                    "error", f"a task or callback has raised {what}; the server goes on", failure
                )
        task.result()
    finally:
        forks.forget(loop.stop)
        asyncio.set_event_loop(None)
        loop.close()

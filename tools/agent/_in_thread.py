"""Runs long computations beside the event loop, on a thread that does not delay the end of the process."""

from __future__ import annotations

import asyncio
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")


async def in_thread(function: Callable[..., T], *arguments: Any) -> T:
    """Call a function on a separate thread and return its value. When the caller is cancelled, the function
    goes on and its result is dropped."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def resolve(value: Any, error: BaseException | None) -> None:
        if future.done():
            return
        if error is not None:
            future.set_exception(error)
        else:
            future.set_result(value)

    def work() -> None:
        value: Any = None
        failure: BaseException | None = None
        try:
            value = function(*arguments)
        except BaseException as error:
            failure = RuntimeError("StopIteration") if isinstance(error, StopIteration) else error
        try:
            loop.call_soon_threadsafe(resolve, value, failure)
        except RuntimeError:
            return  # the loop is closed: the server is gone

    threading.Thread(target=work, name=f"fastrpc-{function.__name__}", daemon=True).start()
    return await future

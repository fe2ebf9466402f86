"""`SyncClient`: the same client without an event loop, for scripts, threads and notebooks.

    with Client.sync(["python", "server.py"]) as client:
        print(client.call_tool("word_count", {"text": "two words"}).text)

Compiled code writes a tool call and waits for the response in poll(2). Over HTTP a response that arrives
within a millisecond is read from the socket. Everything else, such as the server's own requests, runs in a
private event loop, and only while a method runs: notifications that arrive between two methods are handled by
the next one. Calls from several threads run one at a time.
"""

from __future__ import annotations

import asyncio
import threading
from _signal import (  # type: ignore[import-not-found]  # those of `signal` convert to enums, for 30 µs a call
    SIGINT,
    default_int_handler,
    getsignal,
    signal,
)
from functools import wraps
from time import monotonic

from fastrpc._core.call_result import CallResult
from fastrpc.client.asynchronous import AsyncClient, ServerFacts
from fastrpc.errors import ClientError
from fastrpc.transports.loop import new_loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
    from typing import Any, Concatenate, Literal, ParamSpec, TypeVar, overload

    from typing_extensions import Self, Unpack

    from fastrpc._core.client_request import PendingRequest
    from fastrpc.client.handlers import Handler, OnNotification, Roots
    from fastrpc.client.listening import Listening
    from fastrpc.client.options import ClientOptions
    from fastrpc.client.session import Session
    from fastrpc.client.targets import Target
    from fastrpc.client.tasks import RemoteTask, SyncRemoteTask

    Given = ParamSpec("Given")
    Result = TypeVar("Result")
    Wanted = TypeVar("Wanted")

LOOP_EVERY_SECONDS = 0.01
"""At most so long answers are read without the loop, which may have other things to do."""


def _in_loop(
    method: Callable[Concatenate[AsyncClient, Given], Coroutine[Any, Any, Result]],
) -> Callable[Concatenate[SyncClient, Given], Result]:
    """Return the method of `SyncClient` that runs a method of `AsyncClient` to its end."""

    @wraps(method)
    def run(self: SyncClient, /, *args: Given.args, **options: Given.kwargs) -> Result:
        return self._run(method(self._client, *args, **options))

    return run


def _each_in_loop(
    method: Callable[[AsyncClient], AsyncIterator[Result]],
) -> Callable[[SyncClient], Iterator[Result]]:
    """Return the method of `SyncClient` that yields what a method of `AsyncClient` yields."""

    @wraps(method)
    def run(self: SyncClient) -> Iterator[Result]:
        return self._each(method(self._client))

    return run


class SyncClient(ServerFacts):
    """A client of one MCP server, without an event loop, for a ``with`` block, or `connect` and `close`.

    Arguments, methods and errors are those of `fastrpc.Client`. Handlers may be coroutine functions; a
    handler must not use the client that has called it.
    """

    def __init__(self, target: Target, **options: Unpack[ClientOptions]) -> None:
        self._client = AsyncClient(target, **options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._lock = threading.RLock()
        self._ran_at = 0.0

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def connect(self) -> None:
        """Connect to the server and negotiate the version. Raises ClientError."""
        with self._lock:
            self._loop = new_loop()
            try:
                self._run(self._client.connect())
            except BaseException:
                self._close_loop()
                raise

    def close(self) -> None:
        """Close the connection, and end the server if this client has started it."""
        with self._lock:
            if self._loop is not None:
                try:
                    self._run(self._client.close())
                finally:
                    self._close_loop()

    def _close_loop(self) -> None:
        loop, self._loop = self._loop, None
        if loop is not None:
            loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, Result]) -> Result:
        with self._lock:
            loop = self._loop
            if loop is None:
                coroutine.close()
                raise RuntimeError("use the client in a 'with' block, or connect() first")
            running = asyncio._get_running_loop()
            if running is None:
                try:
                    return _run_or_cancel(loop, coroutine)
                finally:
                    self._ran_at = monotonic()
            if running is loop:
                coroutine.close()
                raise RuntimeError("a handler must not use the client that calls it")
            # This thread runs another event loop (as in a notebook), and cannot run a second one.
            return _in_thread(loop, coroutine)

    def _each(self, entries: AsyncIterator[Result]) -> Iterator[Result]:
        """Yield what an asynchronous iterator of the client yields."""

        async def following() -> Any:
            return await anext(entries, None)

        try:
            while (entry := self._run(following())) is not None:
                yield entry
        except GeneratorExit:  # the caller has left the loop: end now what follows, such as a subscription
            ending: Any = entries
            if self._loop is not None:
                self._run(ending.aclose())
            raise

    if TYPE_CHECKING:

        @overload
        def call_tool(
            self,
            name: str,
            arguments: dict[str, Any] | None = None,
            *,
            timeout_seconds: float | None = None,
            on_progress: OnNotification | None = None,
            meta: dict[str, Any] | None = None,
        ) -> CallResult: ...

        @overload
        def call_tool(
            self,
            name: str,
            arguments: dict[str, Any] | None = None,
            *,
            as_type: type[Wanted],
            timeout_seconds: float | None = None,
            on_progress: OnNotification | None = None,
            meta: dict[str, Any] | None = None,
        ) -> Wanted: ...

        @overload
        def call_tool(
            self,
            name: str,
            arguments: dict[str, Any] | None = None,
            *,
            task: Literal[True],
            ttl_ms: int | None = None,
            timeout_seconds: float | None = None,
            on_progress: OnNotification | None = None,
            meta: dict[str, Any] | None = None,
        ) -> SyncRemoteTask: ...

    def call_tool(
        self,
        name: str,
        arguments: dict[str, Any] | None = None,
        *,
        as_type: Any = None,
        timeout_seconds: float | None = None,
        on_progress: OnNotification | None = None,
        meta: dict[str, Any] | None = None,
        task: bool = False,
        ttl_ms: int | None = None,
    ) -> Any:
        """Call a tool: see `AsyncClient.call_tool`. Raises ClientError."""
        client = self._client
        if task or ttl_ms is not None:
            return self._task_of(
                self._run(
                    client._call_as_task(
                        name, arguments, task, ttl_ms, as_type, timeout_seconds, on_progress, meta
                    )
                )
            )
        result = None
        if on_progress is None and meta is None and client._is_open:
            with self._lock:
                limit = client._timeout_seconds if timeout_seconds is None else timeout_seconds
                pending = client._stream.call(name, arguments, limit, bool(timeout_seconds))
                try:
                    if not client._stream.wait(pending) and not self._wait_shortly(pending):
                        self._run(self._wait_in_loop(pending))
                except BaseException:
                    client._session.withdraw(pending)
                    raise
                try:
                    result = pending.result()
                except ClientError as error:
                    if not client.may_call_again(error):
                        raise
        if type(result) is not CallResult:
            return self._run(
                client._complete_call(name, arguments, as_type, result, timeout_seconds, on_progress, meta)
            )
        if as_type is None and name not in client._output_schemas:
            return result
        return client._value_of(name, result, as_type)

    def task(self, id: str) -> SyncRemoteTask:
        """Return a task by its id: see `AsyncClient.task`. Raises ValueError."""
        return self._task_of(self._client.task(id))

    def tasks(self) -> list[SyncRemoteTask]:
        """Return the caller's tasks: see `AsyncClient.tasks`. Raises ClientError."""
        return [self._task_of(task) for task in self._run(self._client.tasks())]

    def _task_of(self, task: RemoteTask) -> SyncRemoteTask:
        from fastrpc.client.tasks import SyncRemoteTask

        return SyncRemoteTask(self, task)

    def _wait_shortly(self, pending: PendingRequest) -> bool:
        """Wait a moment for an answer that comes on a connection of the loop, without running it. Return
        whether it is there. What else the loop has to do may wait for `LOOP_EVERY_SECONDS`."""
        client = self._client
        if (
            client._stream.needs_loop
            or client._transport is None
            or monotonic() - self._ran_at > LOOP_EVERY_SECONDS
            or asyncio._get_running_loop() is not None
        ):
            return False
        client._transport.wait_shortly(pending)
        return pending.done

    async def _wait_in_loop(self, pending: PendingRequest) -> None:
        """Wait in the event loop: a handler has to run, or the connection is lost."""
        future = asyncio.get_running_loop().create_future()
        self._client._stream.follow(pending, future)
        await asyncio.wait({future})
        future.exception()  # retrieved here, raised by result()

    list_tools = _in_loop(AsyncClient.list_tools)
    iter_tools = _each_in_loop(AsyncClient.iter_tools)
    list_resources = _in_loop(AsyncClient.list_resources)
    iter_resources = _each_in_loop(AsyncClient.iter_resources)
    list_resource_templates = _in_loop(AsyncClient.list_resource_templates)
    iter_resource_templates = _each_in_loop(AsyncClient.iter_resource_templates)
    read_resource = _in_loop(AsyncClient.read_resource)
    list_prompts = _in_loop(AsyncClient.list_prompts)
    iter_prompts = _each_in_loop(AsyncClient.iter_prompts)
    get_prompt = _in_loop(AsyncClient.get_prompt)
    complete = _in_loop(AsyncClient.complete)

    request = _in_loop(AsyncClient.request)
    ping = _in_loop(AsyncClient.ping)
    set_log_level = _in_loop(AsyncClient.set_log_level)
    subscribe = _in_loop(AsyncClient.subscribe)
    unsubscribe = _in_loop(AsyncClient.unsubscribe)

    def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification. Raises ConnectionLost."""
        self._run(self._flushed(lambda: self._client.notify(method, params)))

    async def _flushed(self, send: Callable[[], None]) -> None:
        send()
        await self._client.flush()

    def wait(self, seconds: float) -> None:
        """Handle notifications and requests of the server for this many seconds."""
        self._run(asyncio.sleep(seconds))

    def set_roots(self, roots: Handler[Roots]) -> None:
        """Change the roots, and notify the server in versions that have the notification."""
        self._run(self._flushed(lambda: self._client.set_roots(roots)))

    def listen(
        self,
        *,
        tools: bool = False,
        prompts: bool = False,
        resources: bool = False,
        uris: Sequence[str] = (),
    ) -> SyncListening:
        """Receive notifications of changed lists, and of changes of the resources `uris`::

        with client.listen(tools=True) as changes:
            print(changes.next(60.0))
        """
        return SyncListening(
            self, self._client.listen(tools=tools, prompts=prompts, resources=resources, uris=uris)
        )

    @property
    def is_connected(self) -> bool:
        """Whether the connection is open, as far as is known."""
        return self._client.is_connected

    @property
    def _session(self) -> Session:
        return self._client._session

    @property
    def exit_code(self) -> int | None:
        """The exit code of the server process after `close`; negative for a signal, None for no process."""
        return self._client.exit_code


class SyncListening:
    """Receives change notifications inside a ``with`` block: see `fastrpc.client.listening.Listening`."""

    def __init__(self, client: SyncClient, listening: Listening) -> None:
        self.changes = listening.changes
        """The notifications received so far."""
        self._client = client
        self._listening = listening

    def __enter__(self) -> SyncListening:
        self._client._run(self._listening.__aenter__())
        return self

    def __exit__(self, *exception: Any) -> None:
        self._client._run(self._listening.__aexit__(*exception))

    @property
    def honoured(self) -> dict[str, Any]:
        """The subscriptions that the server has accepted."""
        return self._listening.honoured

    def next(self, seconds: float = 10.0) -> dict[str, Any]:
        """Return the next notification, waiting up to `seconds`. Raises TimeoutError, and EOFError if the
        server has ended the stream."""
        return self._client._run(self._listening.next(seconds))


def _run_or_cancel(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine to its end. Ctrl-C cancels it, and with it its requests; a second one ends at once.

    The first must not raise: an exception that is raised while uvloop enters or leaves its loop leaves it in
    a state in which it neither runs nor closes (as in `asyncio.Runner`)."""
    task = loop.create_task(coroutine)
    if (
        threading.current_thread() is not threading.main_thread()
        or getsignal(SIGINT) is not default_int_handler
    ):
        try:
            return loop.run_until_complete(task)
        except KeyboardInterrupt:  # of a handler that the program has installed
            if not task.done():
                task.cancel()
                loop.run_until_complete(asyncio.wait({task}))
            raise
    interrupted = False

    def interrupt(*_: object) -> None:
        nonlocal interrupted
        if interrupted:
            raise KeyboardInterrupt
        interrupted = True
        task.cancel()
        loop.call_soon_threadsafe(lambda: None)  # it may be waiting in the system

    signal(SIGINT, interrupt)
    try:
        return loop.run_until_complete(task)
    finally:
        signal(SIGINT, default_int_handler)
        if interrupted:
            raise KeyboardInterrupt


def _in_thread(loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Result]) -> Result:
    """Run a coroutine in `loop` on another thread, and wait for it."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as executor:
        return executor.submit(loop.run_until_complete, coroutine).result()

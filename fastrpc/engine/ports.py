"""The engine's ports: the interfaces of what is passed to it, and of what it passes to others.

A handler's `Context` reaches its client through an `OutboundChannel`. The methods of MCP are passed in as
`Features`, with a `ResultEncoder` for each kind of handler. For type checkers only: not imported at run time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from fastrpc.callers import Caller


class OutboundChannel(Protocol):
    """The channel from one call to its client, as `fastrpc.Context` uses it."""

    token: str | int | None

    @property
    def request(self) -> ClientRequest: ...
    @property
    def server(self) -> Any: ...
    @property
    def state(self) -> Any: ...
    @property
    def principal(self) -> str: ...
    @property
    def caller(self) -> Caller: ...
    @property
    def capabilities(self) -> dict[str, Any]: ...
    @property
    def task(self) -> TaskOfCall | None: ...
    def progress(self, report: dict[str, Any]) -> None: ...
    def log(self, level: str, data: Any, logger: str | None, rest: dict[str, Any] | None = None) -> None: ...
    def pause(self) -> None: ...
    def spend(self, unit: str, amount: float) -> None: ...
    def ask(self, input_requests: dict[str, Any]) -> Awaitable[dict[str, Any]]: ...
    def once(self, key: str, function: Callable[[], Any]) -> Any: ...
    def read_resource(self, uri: str) -> Awaitable[Any]: ...
    def in_thread(self, function: Callable[[], Any]) -> Awaitable[Any]: ...


class TaskOfCall(Protocol):
    """The task that a call is, or becomes if it lasts: `fastrpc.Context.task`."""

    @property
    def id(self) -> str:
        """Its id: the same when the call is run again for this task."""

    @property
    def exists(self) -> bool:
        """Whether the call is a task by now: no request waits for it."""

    @property
    def is_cancelled(self) -> bool:
        """Whether the client has cancelled the task. A call that ends with its server is not cancelled."""

    @property
    def is_run_again(self) -> bool:
        """Whether the call may have begun before, in a process that has ended since: no process continues
        what it has begun there."""


class ClientRequest(Protocol):
    """The client's request that a call serves."""

    version: str

    @property
    def meta(self) -> dict[str, Any]: ...
    @property
    def client_capabilities(self) -> dict[str, Any]: ...
    @property
    def dispatcher(self) -> object:
        """What serves the request's connection."""

    @property
    def known_roots(self) -> Any:
        """The stored roots of this session, if the client notifies changes of them; else None."""

    def keep_roots(self, roots: list[dict[str, Any]]) -> None: ...
    def notify_client(self, method: str, params: dict[str, Any]) -> None: ...


class ResultEncoder(Protocol):
    """Makes the JSON of a handler's result. The method that begins a call passes it in."""

    @property
    def is_text(self) -> bool:
        """Whether a `str` is one text block, which the connection may write by itself."""

    def encode(self, request: Any, handler: Any, value: Any) -> bytes:
        """Return the result for a value. Raises UnencodableResult, and ProtocolError."""

    def failure(self, request: Any, handler: Any, error: BaseException) -> bytes:
        """Return the result for an error. Raises the ProtocolError to answer with instead."""


class MethodProtocol(Protocol):
    """A request method: the versions that have it, what the server needs for it, and its function."""

    versions: tuple[str, ...]
    needs: str
    serve: Callable[[Any, Any], bytes | None]
    member: str
    """The member of the result that has the entries, for a method that lists some."""
    entries: Callable[[Any], Awaitable[list[Any]]] | None
    """Returns all entries that a request's principal sees; None: the method lists none."""


class NotifiedDispatcher(Protocol):
    """The dispatcher of one connection, as the parts that all connections share call it."""

    principal: str
    session: Any
    makes_tasks: bool
    """Whether it is a client's: the calls of tasks have connections, too."""
    call_task: HeldTask | None

    @property
    def outbound(self) -> MessageSender: ...
    @property
    def changes(self) -> ChangeNotifier: ...
    def close(self) -> None: ...


class MessageSender(Protocol):
    """The part of a dispatcher that sends messages which are no responses."""

    def post(self, function: Callable[[], object]) -> None: ...
    def notify(self, method: str, params: dict[str, Any] | None = None) -> None: ...
    def begin_loop(self) -> None: ...


class ChangeNotifier(Protocol):
    """The part of a dispatcher that notifies its client of changes."""

    def subscribed(self) -> list[str]: ...
    def has_subscribed(self, meant: str) -> bool: ...
    def forget_plans(self, before: Callable[[], object] = ...) -> None: ...
    def list_changed(self, kind: str) -> None: ...
    def resource_updated(self, uri: str, rest: dict[str, Any] | None = None) -> None: ...
    def watch(self) -> None: ...


class RequestCounter(Protocol):
    """Sees every request of a server's clients, calls and others: see `fastrpc.guard.requests`."""

    def serve(self, request: Any, serve: Callable[[Any], bytes | None]) -> bytes | None:
        """Return what `serve` returns: a result, or None if it comes later. Raises ProtocolError."""


class ApprovalGates(Protocol):
    """Approvals that no call waits for: see `fastrpc.guard.approvals.gates`. Methods raise FastrpcError."""

    async def ask(
        self, principal: str, name: str, shown: Mapping[str, Any], *, risk: str, seconds: float
    ) -> str:
        """Have people decide within so many seconds; return the approval's id, one for the same question."""

    async def decision(self, approval_id: str) -> tuple[bool, str, str]:
        """Return whether it was approved, by whom, and the comment, the last two "" if the time is over."""

    async def over(self, ids: list[str]) -> list[str]:
        """Return those of some approvals that no longer wait for a decision."""

    async def withdraw(self, approval_id: str, why: str) -> None:
        """Make an approval void, unless a call has used it."""


class GuardForTasks(Protocol):
    """The guard that decides about the calls of tasks, as tasks use it: see `fastrpc.guard.tasks`."""

    is_shared: bool
    """Whether another process with the same guard decides as this one does: it knows the same callers, and
    counts with it."""

    @property
    def place(self) -> str:
        """Where the guard's database is, the same text in each process that uses it."""

    @property
    def is_ready(self) -> bool:
        """Whether the guard can identify the caller of a principal now: it has read the tokens."""

    def caller(self, principal: str) -> str:
        """Return the owner and the class of a principal's caller now, as a text to be compared."""

    def refuse(self, principal: str, tool: str, task: str) -> str:
        """Record that a task, with this id, does not run, since its principal is another caller now; return
        the error for its client, as JSON."""


class HeldTask(TaskOfCall, Protocol):
    """The task of a call that a guard may hold: see `fastrpc.tasks.run`."""

    approval: str
    """The approval for which the call waited in the process that had the task before."""

    @property
    def named(self) -> str:
        """The id of the task; "" while there is none, and if there will be none."""

    async def waits(self, approval: str, message: str, *, is_held: bool) -> bool:
        """The call waits for an approval; it becomes a task now if it `is_held`. Return whether it is one."""

    async def claim(self) -> bool:
        """The function begins. False: it must not begin here. Raises StorageError."""


class RequestWrapper(Protocol):
    """Coroutines around the requests of a server: see `fastrpc.engine.wrappers` and `wrapped_requests`."""

    @property
    def declares_everything(self) -> bool:
        """Whether there may be resources and prompts that no registry has."""

    def wraps_calls(self, method: str) -> bool:
        """Whether calls by this method are wrapped, of the server's own handlers and mounted ones."""

    def wraps_requests(self, method: str) -> bool:
        """Whether requests of any other method are wrapped."""

    def wraps_notifications(self) -> bool:
        """Whether the wrapper is shown notifications."""

    def of_host(self, server: Any) -> RequestWrapper:
        """Return the wrapper of a server that has none and in which this one's is mounted: lists of mounted
        entries are wrapped by it."""

    async def call(self, call: Any, within: Any) -> Any:
        """Return the value of a call; ``within.proceed(call)`` makes it, a `WrappedCall`."""

    async def request(self, request: Any, call: Any, proceed: Callable[[], Awaitable[Any]]) -> Any:
        """Return what `proceed` returns, or another: the entries of a list; of a call that is refused, a
        value; of any other request its result, as JSON."""

    async def notification(self, dispatcher: Any, method: str, params: dict[str, Any]) -> None:
        """See a notification of a dispatcher's client, which has been handled."""


class Tasks(Protocol):
    """The tasks of a server: see `fastrpc.tasks.board`. Coroutines raise StorageError."""

    def begin(self, principal: str, tool: Any, request: Any, waiting: Any, ttl_ms: int | None) -> Any:
        """Begin the call of a request that may become a task; return it, with a ``cancel()``."""

    async def read(self, id: str, owner: str) -> Any: ...
    async def page(self, owner: str, limit: int, after: tuple[float, str] | None) -> Sequence[Any]: ...
    async def wait_for_change(self, record: Any) -> None: ...
    async def answer(self, record: Any, responses: dict[str, Any]) -> None: ...
    async def fail(self, record: Any, problem: str) -> None: ...
    async def cancel(self, id: str, owner: str, message: str | None = None) -> bool: ...
    def listen(self) -> None: ...
    def heard(self, id: str, owner: str, worker: str) -> None: ...
    async def leave(self) -> None: ...


class Features(Protocol):
    """The methods of MCP, and what calls and notifications need of them. `fastrpc.methods` implements it."""

    @property
    def METHODS(self) -> Mapping[str, MethodProtocol]: ...
    @property
    def TOOL_RESULTS(self) -> ResultEncoder: ...
    @property
    def NOTIFICATIONS(self) -> Mapping[str, Callable[[Any, dict[str, Any]], object]]: ...

    def encoder_of(self, method: str) -> ResultEncoder:
        """Return what makes the results of a method that calls tools, resources or prompts."""

    # for a handler, by its channel
    def log(
        self, channel: Any, level: str, data: Any, logger: str | None, rest: dict[str, Any] | None
    ) -> None: ...
    def ask(self, channel: Any, input_requests: dict[str, Any]) -> Awaitable[dict[str, Any]]: ...
    def once(self, request: Any, key: str, function: Callable[[], Any]) -> Any: ...
    def read_resource(self, channel: Any, uri: str) -> Awaitable[Any]: ...

    # for requests to the client
    def take_request_state(self, request: Any) -> None: ...
    def input_required(self, request: Any, input_requests: dict[str, dict[str, Any]]) -> bytes: ...

    # for changes
    def list_changed(self, changes: Any, kind: str) -> None: ...
    def resource_updated(self, changes: Any, uri: str, rest: dict[str, Any] | None) -> None: ...
    def call_as_task(self, dispatcher: Any, request: Any, tool: Any) -> None: ...
    def check_task_listener(self, dispatcher: Any, request: Any, ids: Any) -> None: ...
    def watched_tasks(self, changes: Any) -> set[str]: ...
    def task_changed(self, changes: Any, record: Any) -> None: ...
    def end_stream(self, changes: Any, request: Any) -> None: ...

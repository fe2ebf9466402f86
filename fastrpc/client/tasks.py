"""`RemoteTask`: a call that goes on after its request, as its client sees it, on both wires.

Two wires: the extension io.modelcontextprotocol/tasks of 2026-07-28, where the server decides which call
becomes a task, and the tasks of 2025-11-25, which the client asks for. The state of a task is read by
`tasks/get` as often as the server wants, and at once when the server notifies of a change (`task_changes`). A
connection that is lost meanwhile is waited for, as long as other requests of the client could be sent again.
Imported by the first call that asks for a task.
"""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from time import monotonic

from fastrpc._core.call_result import CallResult
from fastrpc.client.results import input_requests_in, member, objects, wrong
from fastrpc.client.task_changes import TaskChanges
from fastrpc.errors import (
    ClientError,
    ConnectionLost,
    HttpStatusError,
    MethodNotFound,
    Overloaded,
    RemoteError,
    RequestTimeout,
    TaskCancelled,
    TasksUnsupported,
    excerpt,
)
from fastrpc.protocol.followed_pages import FollowedPages
from fastrpc.protocol.versions import CAPABILITIES_KEY, STATELESS, TASKS, TASKS_EXTENSION
from fastrpc.tasks.record import CANCELLED, COMPLETED, FAILED, INPUT_REQUIRED, OPEN, STATES
from fastrpc.time_limit import TimeLimit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from typing import Any, TypeAlias, TypeVar, overload

    from fastrpc.client.handlers import OnNotification
    from fastrpc.client.session import Session

    AsyncClient: TypeAlias = Any
    SyncClient: TypeAlias = Any
    """The clients, whose modules import this one."""
    Wanted = TypeVar("Wanted")
    OnChange = Callable[["RemoteTask"], object]
    """A function of a task that has changed."""

POLL_MS = 1000
"""How often a task is read whose server does not say so."""
SHORTEST_POLL_MS, LONGEST_POLL_MS = 50, 3600_000
PUSHED_POLL_SECONDS = 5.0
"""How often it is read while the server notifies of its changes: notifications are optional."""
LOST_SECONDS = 60.0
"""How long a server may be out of reach, while a task is waited for, until that fails."""
PAUSES = (0.2, 0.5, 1.0, 2.0, 5.0)
"""Back-off in seconds between attempts to reach it; the last value repeats."""


class TaskFacts:
    """What is known of a task: `raw` as received last, and its members as attributes."""

    @property
    def raw(self) -> dict[str, Any]:
        """The Task as received last (MCP: Task)."""
        raise NotImplementedError

    @property
    def id(self) -> str:
        """The id, by which any client of the same caller finds the task (`Client.task`); "" if the server has
        answered the call at once, without a task."""
        return str(self.raw["taskId"])

    @property
    def status(self) -> str:
        """``working``, ``input_required``, ``completed``, ``failed`` or ``cancelled``; "" before the first
        `refresh` or `wait` of a task that was taken up by its id."""
        return str(self.raw.get("status", ""))

    @property
    def status_message(self) -> str | None:
        """What the server says about the state, such as the last progress."""
        found: str | None = self.raw.get("statusMessage")
        return found

    @property
    def ttl_ms(self) -> float | None:
        """How long after its creation the server keeps the task, in milliseconds; None if it does not say."""
        found: float | None = self.raw.get("ttlMs", self.raw.get("ttl"))
        return found

    @property
    def poll_ms(self) -> float:
        """How often the state may be read, in milliseconds."""
        found = self.raw.get("pollIntervalMs", self.raw.get("pollInterval"))
        return min(max(POLL_MS if found is None else found, SHORTEST_POLL_MS), LONGEST_POLL_MS)

    @property
    def is_done(self) -> bool:
        """Whether the task has ended."""
        return bool(self.status) and self.status not in OPEN

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id or 'without an id'}: {self.status or 'not read yet'}>"


class RemoteTask(TaskFacts):
    """A task of a server: see ``call_tool(…, task=True)``, `AsyncClient.task` and `AsyncClient.tasks`.

    Nothing is requested in the background: the state is that of the last `refresh`, `wait` or iteration.
    While the task is waited for, the client's handlers answer what it asks (elicitation, sampling, roots).
    """

    def __init__(
        self,
        client: AsyncClient,
        raw: dict[str, Any],
        tool: str = "",
        result: CallResult | None = None,
    ) -> None:
        self._client = client
        self._raw = raw
        self._tool = tool
        self._result = result
        """The result, if it was received apart from the state."""
        self._failure: RemoteError | None = None
        """The error that took the place of the result."""
        self._responses: dict[str, dict[str, Any]] = {}
        """Answers to the task's questions that the server has not confirmed yet, by key."""
        self._answered: set[str] = set()
        """Keys whose answers it has, or that are being answered."""

    @property
    def raw(self) -> dict[str, Any]:
        """The Task as received last (MCP: Task)."""
        return self._raw

    # --- for callers ------------------------------------------------------------------------------------

    if TYPE_CHECKING:

        @overload
        async def wait(
            self, *, timeout_ms: float | None = None, on_change: OnChange | None = None
        ) -> CallResult: ...

        @overload
        async def wait(
            self,
            *,
            as_type: type[Wanted],
            timeout_ms: float | None = None,
            on_change: OnChange | None = None,
        ) -> Wanted: ...

    async def wait(
        self,
        *,
        as_type: Any = None,
        timeout_ms: float | None = None,
        on_change: OnChange | None = None,
    ) -> Any:
        """Return the result once the task has ended, as `call_tool` would; a failed tool's has `is_error`.

        `timeout_ms`: the most that this waits, in milliseconds; None and 0: no limit. The task goes on after
        it, and also if this is cancelled. `on_change`: called with this task after each change. `as_type`:
        return the result's value as this type.

        Raises ClientError: RemoteError for a task that failed with an error of the protocol, or that does not
        exist any more; TaskCancelled; RequestTimeout after `timeout_ms`; ConnectionLost if the server has
        ended or is out of reach for a minute.
        """
        with TimeLimit(timeout_ms / 1000, self._late) if timeout_ms else nullcontext():
            async for _ in self:
                if on_change is not None:
                    on_change(self)
            result = await self._end()
        return self._client._value_of(self._tool, result, as_type)

    async def __aiter__(self) -> AsyncIterator[RemoteTask]:
        """Yield this task after each change, until it has ended. Changes that follow each other quickly may
        be one. Raises ClientError."""
        if self.is_done:
            return
        async with TaskChanges(self, lambda: self._client._session, self.meta) as changes:
            seen = self._raw
            while not self.is_done:
                await self._next(changes)
                while self._raw != seen:  # it may change during the yield, too
                    seen = self._raw
                    yield self

    async def refresh(self) -> RemoteTask:
        """Read the state, and return this task. Raises ClientError, RemoteError for a task that does not
        exist, or whose time to live is over."""
        if self.id:
            self.take("tasks/get", await self._request("tasks/get"))
        return self

    async def cancel(self) -> None:
        """Cancel the task. Returns also if it has ended meanwhile: its `status` says which. Raises
        ClientError."""
        if not self.id:
            return
        try:
            found = await self._request("tasks/cancel")
        except RemoteError:
            await self.refresh()
            if not self.is_done:
                raise
        else:
            if self._client.version == STATELESS:
                await self.refresh()
            else:
                self.take("tasks/cancel", found)

    # --- the state --------------------------------------------------------------------------------------

    def meta(self) -> dict[str, Any]:
        """Return the ``_meta`` of a request about this task, without the connection's members."""
        session = self._client._session
        return extension_of(session) if session.version == STATELESS else {}

    def take(self, method: str, raw: dict[str, Any]) -> None:
        """Take a Task that was received. An ended one does not change any more, and one that is older than
        what is known is ignored: pushed and polled states may come in any order. Raises InvalidAnswer."""
        raw = _checked(method, raw)
        if raw["taskId"] != self.id:
            raise wrong(f"{method}: taskId", repr(self.id), raw["taskId"])
        former, latter = self._raw.get("lastUpdatedAt"), raw.get("lastUpdatedAt")
        is_older = former is not None and latter is not None and latter < former
        if not self.is_done and not (is_older and raw["status"] in OPEN):
            self._raw = raw

    async def _next(self, changes: TaskChanges) -> None:
        """Answer what the task asks, and take its next state."""
        changes.follow()
        if not self.status:
            await self._patiently(self.refresh)
            return
        if self.status == INPUT_REQUIRED:
            await self._answer()
            if self.is_done:
                return
        seconds = self.poll_ms / 1000
        if changes.are_pushed:
            seconds = max(seconds, PUSHED_POLL_SECONDS)
        if not await changes.wait(seconds):
            await self._patiently(self.refresh)

    async def _answer(self) -> None:
        """Have the handlers answer what the task asks. In 2025-11-25 the server asks while its result is
        waited for."""
        session = self._client._session
        if session.version != STATELESS:
            await self._patiently(self._receive_result)
            await self._patiently(self.refresh)
            return
        for key, request in input_requests_in("tasks/get", self._raw).items():
            if key not in self._answered:
                self._answered.add(key)
                try:
                    self._responses[key] = await session.answer(request)
                except BaseException:
                    self._answered.discard(key)
                    raise
        if self._responses:
            sent = dict(self._responses)
            await self._patiently(lambda: self._request("tasks/update", inputResponses=sent))
            self._responses = {key: each for key, each in self._responses.items() if key not in sent}

    async def _end(self) -> CallResult:
        """Return the result of the task, which has ended. Raises what has taken its place."""
        if self.status == CANCELLED:
            raise TaskCancelled(f"the task {excerpt(self.id)} was cancelled")
        if self._result is None and self._failure is None:
            if self._client.version == STATELESS:
                self._read_result()
            else:
                await self._patiently(self._receive_result)
        if self._failure is not None:
            raise self._failure
        assert self._result is not None
        return self._result

    def _read_result(self) -> None:
        """Take the result out of the state (2026-07-28). Raises InvalidAnswer."""
        name = "result" if self.status == COMPLETED else "error"
        found = member("tasks/get", self._raw, name, dict, None)
        if found is None:
            raise wrong(f"tasks/get: {name}", "an object", found)
        if self.status == FAILED:
            self._failure = RemoteError(found)
        else:
            self._result = CallResult(found)

    async def _receive_result(self) -> None:
        """Wait for the result (2025-11-25: tasks/result). Raises ClientError."""
        try:
            self._result = CallResult(await self._request("tasks/result", timeout_seconds=0))
        except RemoteError as error:
            if error.code == Overloaded.code:
                await self.refresh()
                if self.status != FAILED:  # else the task has ended with this error
                    raise
            self._failure = error

    # --- requests ---------------------------------------------------------------------------------------

    async def _request(
        self, method: str, *, timeout_seconds: float | None = None, **params: Any
    ) -> dict[str, Any]:
        """Send a request about this task, and return its result. Raises ClientError."""
        params["taskId"] = self.id
        if meta := self.meta():
            params["_meta"] = meta
        found: dict[str, Any] = await self._client.request(method, params, timeout_seconds=timeout_seconds)
        return found

    async def _patiently(self, step: Callable[[], Awaitable[Any]]) -> Any:
        """Make a request, again while the server is out of reach, but may be back soon. Raises ClientError.
        Handlers of the client, and the error of a task that has failed, must not be part of `step`."""
        began: float | None = None
        attempts = 0
        while True:
            try:
                return await step()
            except ClientError as error:
                now = monotonic()
                if began is None:
                    began = now
                if not self._may_recur(error) or now - began > LOST_SECONDS:
                    raise self._named(error) from None
            await asyncio.sleep(PAUSES[min(attempts, len(PAUSES) - 1)])
            attempts += 1

    def _may_recur(self, error: ClientError) -> bool:
        """Whether a request may succeed if it is sent again after this error."""
        client = self._client
        if isinstance(error, ConnectionLost):
            return client._is_wanted and (client._session.lost is None or client._restart)
        if isinstance(error, HttpStatusError):
            return error.may_pass
        return isinstance(error, RemoteError) and error.code == Overloaded.code

    def _named(self, error: ClientError) -> ClientError:
        """Return the error of a lost connection with the id of the task, which may be taken up again."""
        if not isinstance(error, ConnectionLost):
            return error
        return error.again(f"waiting for the task {excerpt(self.id)}: ")

    def _late(self) -> RequestTimeout:
        return RequestTimeout(f"the task {excerpt(self.id)} has not ended within the time limit")


class SyncRemoteTask(TaskFacts):
    """A task for `SyncClient`: see `RemoteTask`."""

    def __init__(self, client: SyncClient, task: RemoteTask) -> None:
        self._client = client
        self._task = task

    @property
    def raw(self) -> dict[str, Any]:
        """The Task as received last (MCP: Task)."""
        return self._task.raw

    if TYPE_CHECKING:

        @overload
        def wait(
            self,
            *,
            timeout_ms: float | None = None,
            on_change: Callable[[SyncRemoteTask], object] | None = None,
        ) -> CallResult: ...

        @overload
        def wait(
            self,
            *,
            as_type: type[Wanted],
            timeout_ms: float | None = None,
            on_change: Callable[[SyncRemoteTask], object] | None = None,
        ) -> Wanted: ...

    def wait(
        self,
        *,
        as_type: Any = None,
        timeout_ms: float | None = None,
        on_change: Callable[[SyncRemoteTask], object] | None = None,
    ) -> Any:
        """Return the result once the task has ended: see `RemoteTask.wait`. Raises ClientError."""
        changed = None if on_change is None else lambda task: on_change(self)
        return self._client._run(self._task.wait(as_type=as_type, timeout_ms=timeout_ms, on_change=changed))

    def __iter__(self) -> Iterator[SyncRemoteTask]:
        """Yield this task after each change, until it has ended. Raises ClientError."""
        for _ in self._client._each(self._task.__aiter__()):
            yield self

    def refresh(self) -> SyncRemoteTask:
        """Read the state, and return this task. Raises ClientError."""
        self._client._run(self._task.refresh())
        return self

    def cancel(self) -> None:
        """Cancel the task: see `RemoteTask.cancel`. Raises ClientError."""
        self._client._run(self._task.cancel())


# --- how tasks begin, and are found -----------------------------------------------------------------------


async def call_as_task(
    client: AsyncClient,
    tool: str,
    arguments: dict[str, Any] | None,
    ttl_ms: int | None,
    timeout_seconds: float | None,
    on_progress: OnNotification | None,
    meta: dict[str, Any] | None,
) -> RemoteTask:
    """Call a tool as a task. If the server answers at once, the task has ended. Raises ClientError,
    TasksUnsupported before anything is sent to a server without tasks."""
    if not client._is_open:
        await client._open_again()
    _require(client)
    params: dict[str, Any] = {"name": tool, "arguments": arguments or {}}
    if client.version == STATELESS:
        meta = {**(meta or {}), **extension_of(client._session)}
    else:
        params["task"] = {} if ttl_ms is None else {"ttl": ttl_ms}
    if meta is not None:
        params["_meta"] = meta
    try:
        found = await client._complete(
            "tools/call",
            params,
            timeout_seconds=timeout_seconds,
            on_progress=on_progress,
            may_be_task=True,
        )
    except RemoteError as error:
        if error.code == MethodNotFound.code and client.version != STATELESS:
            raise TasksUnsupported(f"{tool:.200}: the server refuses a task: {error.message}") from None
        raise
    return task_of(client, tool, found)


def task_of(client: AsyncClient, tool: str, found: dict[str, Any]) -> RemoteTask:
    """Return the task that a call was answered by; one that has ended for a result. Raises InvalidAnswer."""
    if client.version == STATELESS and found.get("resultType", "complete") != "complete":
        if found["resultType"] != "task":
            raise wrong("tools/call: resultType", "complete, input_required or task", found["resultType"])
        return RemoteTask(client, _checked("tools/call", found), tool)
    if client.version != STATELESS and "task" in found and "content" not in found:
        return RemoteTask(client, _checked("tools/call", found["task"]), tool)
    return RemoteTask(client, {"taskId": "", "status": COMPLETED}, tool, CallResult(found))


async def end_of_call(
    client: AsyncClient, tool: str, found: dict[str, Any], timeout_seconds: float | None
) -> CallResult:
    """Wait until a task ends, and return the result of its call.
    `timeout_seconds`: the limit of the call, which begins anew with the task. At the limit, and if this is
    cancelled, the task is cancelled. Raises ClientError."""
    task = task_of(client, tool, found)
    try:
        return await task.wait(timeout_ms=timeout_seconds and timeout_seconds * 1000)
    except (asyncio.CancelledError, RequestTimeout):
        client._session.spawn(task.cancel())
        raise


async def list_tasks(client: AsyncClient) -> list[RemoteTask]:
    """Return the caller's tasks, from all pages (MCP 2025-11-25: tasks/list). Raises ClientError."""
    if not client._is_open:
        await client._open_again()
    if client.version == STATELESS:
        raise TasksUnsupported(f"{STATELESS} has no list of tasks: keep their ids, and use task(id)")
    _require(client, "list")
    pages = FollowedPages("tasks/list", "the server", client._max_seconds)
    return [
        RemoteTask(client, _checked("tasks/list: tasks", each))
        async for page in pages.read_by(client.request)
        for each in objects("tasks/list", page, "tasks")
    ]


def extension_of(session: Session) -> dict[str, Any]:
    """Return the member of ``_meta`` that declares tasks, besides the client's other capabilities."""
    declared = session.capabilities
    extensions = {**(declared.get("extensions") or {}), TASKS_EXTENSION: {}}
    return {CAPABILITIES_KEY: {**declared, "extensions": extensions}}


def _require(client: AsyncClient, *names: str) -> None:
    """Raise TasksUnsupported unless the server has tasks, by default those of tool calls."""
    version, found = client.version, client.server_capabilities
    if version not in (STATELESS, *TASKS):
        raise TasksUnsupported(f"the protocol version {version} has no tasks")
    path: tuple[str, ...] = ("extensions", TASKS_EXTENSION)
    if version != STATELESS:
        path = ("tasks", *(names or ("requests", "tools", "call")))
    for name in path:
        declared = found.get(name)
        if not isinstance(declared, dict):
            what = f"no capability {'.'.join(path)}" if version != STATELESS else "no extension " + path[1]
            raise TasksUnsupported(f"the server has {what}")
        found = declared


def _checked(method: str, raw: Any) -> dict[str, Any]:
    """Return a Task that was received, if its members have their types. Raises InvalidAnswer."""
    if not isinstance(raw, dict):
        raise wrong(f"{method}: task", "an object", raw)
    if not isinstance(raw.get("taskId"), str) or not raw["taskId"]:
        raise wrong(f"{method}: taskId", "a string", raw.get("taskId"))
    if raw.get("status") not in STATES:
        raise wrong(f"{method}: status", f"one of {', '.join(STATES)}", raw.get("status"))
    for name in ("statusMessage", "lastUpdatedAt"):
        member(method, raw, name, str, None)
    for name in ("ttlMs", "ttl", "pollIntervalMs", "pollInterval"):
        value = raw.get(name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise wrong(f"{method}: {name}", "a number", value)
    return raw

"""Calls that become tasks, and the methods tasks/get, result, list, cancel and update.

Two wires: the extension io.modelcontextprotocol/tasks of 2026-07-28, where the server decides which call
becomes a task, and the tasks of 2025-11-25, which the client asks for. The tasks are the runtime's
`tasks`; here is what requests and answers look like. Imported by the first request that needs it.
"""

from __future__ import annotations

from json import loads

from fastrpc.client_requests.pending import requests_of
from fastrpc.engine.call import own_fault
from fastrpc.errors import (
    FastrpcError,
    InvalidParams,
    MethodNotFound,
    MissingRequiredClientCapability,
    Overloaded,
    ProtocolError,
    ToolError,
    excerpt,
)
from fastrpc.json_encoding import to_json
from fastrpc.methods.subscriptions import send
from fastrpc.protocol.pagination import cursor_of, decode_cursor, encode_cursor
from fastrpc.protocol.refusal_codes import code_in_session
from fastrpc.protocol.versions import SERVER_KEY, STATELESS, TASKS, TASKS_EXTENSION
from fastrpc.tasks.record import CANCELLED, COMPLETED, FAILED, INPUT_REQUIRED

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc._core.task import CallTask
    from fastrpc.definitions.tool import Tool
    from fastrpc.engine.change_notifications import ChangeNotifications
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request
    from fastrpc.tasks.record import TaskRecord

RELATED = "io.modelcontextprotocol/related-task"
PAGE = 100
MOST_LISTENED = 1000
COMPLETE = {"resultType": "complete"}


def makes_task(request: Request, tool: Tool) -> bool:
    """Whether a call of a tool with the option ``task`` may be answered by a task. Raises ProtocolError if it
    has to be, and the client does not support that."""
    if request.version == STATELESS:
        if request.declares_tasks:
            return True
        if tool.task == "required":
            raise _extension_required(f"{tool.name} runs as a task only")
        return False
    if request.version in TASKS and "task" in request.params:
        return True
    if tool.task == "required":
        raise MethodNotFound(f"{tool.name} runs as a task only: call it with `task` (MCP 2025-11-25)")
    return False


def call(dispatcher: Dispatcher, request: Request, tool: Tool) -> None:
    """Begin a call that may become a task. The request is answered by the call or by the task."""
    ttl_ms = None if request.version == STATELESS else _ttl_of(request.params["task"])
    waiting = _WaitingCall(dispatcher, request)
    dispatcher.requests.defer(request, waiting)
    dispatcher.connection.call_in_loop(lambda: waiting.begin(tool, ttl_ms))


def _ttl_of(task: Any) -> int | None:
    """Return the time to live that a client has asked for, in ms. Raises InvalidParams."""
    if not isinstance(task, dict):
        raise InvalidParams("task: expected an object")
    ttl_ms = task.get("ttl")
    if ttl_ms is not None and (type(ttl_ms) not in (int, float) or not ttl_ms >= 0):
        raise InvalidParams("task.ttl: expected a number of milliseconds")
    return None if ttl_ms is None else int(ttl_ms)


class _LateAnswer:
    """A request in flight that is answered once."""

    def __init__(self, dispatcher: Dispatcher, request: Request) -> None:
        self.dispatcher = dispatcher
        self.request = request
        self.ended = False

    def answer(self, result: bytes) -> None:
        self._end(self.dispatcher.responses.answer, result)

    def refuse(self, error: ProtocolError) -> None:
        self._end(self.dispatcher.responses.refuse, error)

    def _end(self, send: Callable[[Request, Any], object], answer: bytes | ProtocolError) -> None:
        if not self.ended:
            self.ended = True
            send(self.request, answer)
            self.dispatcher.requests.forget(self.request)

    def cancel(self, said: dict[str, Any] | None = None) -> None:
        """The client has cancelled the request, or is gone."""
        if not self.ended:
            self.ended = True
            self.stop()
            self.dispatcher.requests.forget(self.request)
            self.dispatcher.requests.dropped()

    def stop(self) -> None:
        """End what would answer the request."""


class _WaitingCall(_LateAnswer):
    """A request that waits for its call, or for the task that the call becomes."""

    run: Any = None
    _as_task = b""

    def begin(self, tool: Tool, ttl_ms: int | None) -> None:
        if not self.ended:
            board = self.dispatcher.runtime.tasks
            self.run = board.begin(self.dispatcher.principal, tool, self.request, self, ttl_ms)

    def stop(self) -> None:
        if self.run is not None:
            self.run.cancel()

    def notified(self, message: dict[str, Any]) -> None:
        """Pass on a notification of the call, with the client's own progress token."""
        if message["method"] == "notifications/progress":
            token = self.request.progress_token
            if token is None:
                return
            message = {**message, "params": {**message["params"], "progressToken": token}}
        self.dispatcher.outbound.send(message)

    def answer(self, result: bytes) -> None:
        """Answer without a record: the call that was made for this request has one, and budgets and the audit
        would count it twice."""
        write = self.dispatcher.responses.put_result
        self._end(lambda request, result: write(request.id, result, request.batch), result)

    def call_returned(self, result: str) -> None:
        self.answer(result.encode())

    def call_refused(self, error: str) -> None:
        write = self.dispatcher.responses.put_error
        self._end(lambda request, error: write(request.id, error, request.batch), _error_of(loads(error)))

    def prepare(self, record: TaskRecord) -> None:
        version = self.request.version
        if version == STATELESS:
            self._as_task = _result(self.dispatcher, {"resultType": "task", **_task(record, STATELESS)})
        else:
            self._as_task = to_json({"task": _task(record, version)})

    def became_task(self, record: TaskRecord) -> None:
        if self.request.version != STATELESS:
            self.dispatcher.session.task_ids |= {record.id}
        self.answer(self._as_task)

    def became_no_task(self, error: FastrpcError) -> None:
        self.refuse(_no_task(error))


class _LateMethod(_LateAnswer):
    """A request that waits for a coroutine, which returns its result."""

    task: CallTask | None = None

    def begin(self, function: Callable[[Dispatcher, Request], Awaitable[bytes]]) -> None:
        import asyncio

        from fastrpc._core.task import task_of

        if not self.ended:
            coroutine = function(self.dispatcher, self.request)
            self.task = task_of(coroutine, asyncio.get_running_loop(), self.task_done)
            self.task.begin()

    def stop(self) -> None:
        if self.task is not None:
            self.task.cancel()

    def task_done(self, task: CallTask) -> None:
        error = task.call_error()
        if error is None:
            self.answer(task.value)
        elif isinstance(error, ProtocolError):
            self.refuse(error)
        elif isinstance(error, FastrpcError):
            self.refuse(_no_task(error))
        else:
            self.refuse(own_fault(self.request.method, error))


def _later(function: Callable[[Dispatcher, Request], Awaitable[bytes]]) -> Callable[..., None]:
    """Return a method that is served by a coroutine function."""

    def serve(dispatcher: Dispatcher, request: Request) -> None:
        if request.version == STATELESS and not request.declares_tasks:
            raise _extension_required(request.method)
        late = _LateMethod(dispatcher, request)
        dispatcher.requests.defer(request, late)
        dispatcher.connection.call_in_loop(lambda: late.begin(function))

    return serve


# --- methods --------------------------------------------------------------------------------------------


@_later
async def get(dispatcher: Dispatcher, request: Request) -> bytes:
    """Return a task as it is now; in 2026-07-28 with its questions, its result or its error."""
    record = await _record_of(dispatcher, request)
    if request.version == STATELESS:
        return _result(dispatcher, {**COMPLETE, **_whole(record)})
    return to_json(_task(record, request.version))


@_later
async def result(dispatcher: Dispatcher, request: Request) -> bytes:
    """Return what the task's call has returned, once it has (MCP 2025-11-25: tasks/result)."""
    board = dispatcher.runtime.tasks
    record = await _record_of(dispatcher, request)
    while record.is_open:
        if record.state == INPUT_REQUIRED:
            await _ask(dispatcher, record)
        else:
            await board.wait_for_change(record)
        record = await _record_of(dispatcher, request)
    if record.state == CANCELLED:
        raise InvalidParams(f"taskId: the task {excerpt(record.id)} was cancelled")
    if record.error:
        error = _error_of(loads(record.error))
        error.code = code_in_session(error.code, error.data)
        raise error
    return to_json(_session_result(loads(record.result), record.id))


@_later
async def list_tasks(dispatcher: Dispatcher, request: Request) -> bytes:
    """Return a page of the caller's tasks, the newest first (MCP 2025-11-25: tasks/list)."""
    after = _place_of(cursor_of(request.params))
    records = await dispatcher.runtime.tasks.page(dispatcher.principal, PAGE + 1, after)
    found: dict[str, Any] = {"tasks": [_task(each, request.version) for each in records[:PAGE]]}
    if len(records) > PAGE:
        found["nextCursor"] = _cursor_after(records[PAGE - 1])
    return to_json(found)


@_later
async def cancel(dispatcher: Dispatcher, request: Request) -> bytes:
    """Cancel a task. One that has ended stays as it is: 2025-11-25 has an error for that."""
    record = await _record_of(dispatcher, request)
    done = await dispatcher.runtime.tasks.cancel(record.id, dispatcher.principal)
    if request.version == STATELESS:
        return _result(dispatcher, COMPLETE)
    if not done:
        raise InvalidParams(f"taskId: the task {excerpt(record.id)} has ended already ({record.state})")
    return to_json(_task(await _record_of(dispatcher, request), request.version))


@_later
async def update(dispatcher: Dispatcher, request: Request) -> bytes:
    """Take answers to a task's questions; keys that wait for none are ignored."""
    responses = request.params.get("inputResponses")
    if not isinstance(responses, dict):
        raise InvalidParams(
            f"inputResponses: {'expected an object' if 'inputResponses' in request.params else 'missing'}"
        )
    record = await _record_of(dispatcher, request)
    await dispatcher.runtime.tasks.answer(record, responses)
    return _result(dispatcher, COMPLETE)


async def _record_of(dispatcher: Dispatcher, request: Request) -> TaskRecord:
    """Return the task that a request names, if it is its caller's. Raises InvalidParams."""
    id = request.params.get("taskId")
    if not isinstance(id, str):
        raise InvalidParams(f"taskId: {'expected a string' if 'taskId' in request.params else 'missing'}")
    record: TaskRecord | None = await dispatcher.runtime.tasks.read(id, dispatcher.principal)
    if record is None:
        raise InvalidParams(f"taskId: there is no task {excerpt(id)}, or its time to live is over")
    return record


async def _ask(dispatcher: Dispatcher, record: TaskRecord) -> None:
    """Send a task's questions to the client of a session, which waits for its result, and take the answers;
    the task fails if the client refuses."""
    board = dispatcher.runtime.tasks
    questions = loads(record.questions)
    for question in questions.values():
        question["params"] = {**question["params"], "_meta": {RELATED: {"taskId": record.id}}}
    try:
        responses = await requests_of(dispatcher.session).put(dispatcher, questions)
    except ToolError as error:
        await board.fail(record, str(error))
    else:
        await board.answer(record, responses)


# --- changes ----------------------------------------------------------------------------------------------


def check_listener(dispatcher: Dispatcher, request: Request, ids: Any) -> None:
    """Check that a stream may be opened for tasks, by their ids; whose they are is checked at each change.
    Raises InvalidParams, MissingRequiredClientCapability."""
    if not isinstance(ids, list) or not all(isinstance(id, str) for id in ids):
        raise InvalidParams("notifications.taskIds: expected a list of strings")
    if len(ids) > MOST_LISTENED:
        raise InvalidParams(f"notifications.taskIds: {len(ids)} are too many")
    if not request.declares_tasks:
        raise _extension_required("notifications.taskIds")
    if dispatcher.runtime.description.has_tasks:
        dispatcher.runtime.tasks.listen()


def watched(changes: ChangeNotifications) -> set[str]:
    """Return the tasks of whose changes a client is to be notified."""
    ids = set(changes.session.task_ids)
    for request in list(changes.listening.values()):
        ids.update(request.params["notifications"].get("taskIds", ()))
    return ids


def changed(changes: ChangeNotifications, record: TaskRecord) -> None:
    """Notify a client of a task that has changed, if it wants to know."""
    session = changes.session
    if record.id in session.task_ids:
        if not record.is_open:
            session.task_ids -= {record.id}
        changes.outbound.notify("notifications/tasks/status", _task(record, session.version or ""))
    for request in list(changes.listening.values()):
        if _listens(request, record.id):
            send(changes, request, "notifications/tasks", to_json(_whole(record))[1:-1] + b",")


def _listens(request: Request, id: str) -> bool:
    return id in request.params["notifications"].get("taskIds", ())


# --- what is sent ---------------------------------------------------------------------------------------


def _task(record: TaskRecord, version: str) -> dict[str, Any]:
    """Return a Task in the form of a version."""
    if version == STATELESS:
        return {**record.members(), "ttlMs": record.ttl_ms, "pollIntervalMs": record.poll_ms}
    return {**record.members(), "ttl": record.ttl_ms, "pollInterval": record.poll_ms}


def _whole(record: TaskRecord) -> dict[str, Any]:
    """Return a Task of 2026-07-28 with what belongs to its state."""
    found = _task(record, STATELESS)
    if record.state == INPUT_REQUIRED:
        found["inputRequests"] = loads(record.questions)
    elif record.state == COMPLETED:
        found["result"] = loads(record.result)
    elif record.state == FAILED:
        found["error"] = loads(record.error)
    return found


def _session_result(found: dict[str, Any], task_id: str) -> dict[str, Any]:
    """Return a result of 2026-07-28 as 2025-11-25 has it, with the id of its task."""
    found.pop("resultType", None)
    meta = found.get("_meta") or {}
    meta.pop(SERVER_KEY, None)
    found["_meta"] = {**meta, RELATED: {"taskId": task_id}}
    return found


def _result(dispatcher: Dispatcher, members: dict[str, Any]) -> bytes:
    meta = {SERVER_KEY: dispatcher.runtime.description.info_of(STATELESS)}
    return to_json({**members, "_meta": meta})


def _extension_required(what: str) -> MissingRequiredClientCapability:
    needed: dict[str, Any] = {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}}
    return MissingRequiredClientCapability(f"{what}: the client must support {TASKS_EXTENSION}", needed)


def _error_of(error: dict[str, Any]) -> ProtocolError:
    """Return the JSON-RPC error of a task's call."""
    found = ProtocolError(error["message"], error.get("data"))
    found.code = error["code"]
    return found


def _no_task(error: FastrpcError) -> ProtocolError:
    """Return the error for a task that cannot be created, read or changed now, or with these params. Where
    the database is, and what its problem is, is for the log (`TaskRows.do`)."""
    if isinstance(error, ProtocolError):
        return error
    seconds = getattr(error, "retry_after_seconds", None)  # of an error of the database
    when = "later" if seconds is None else f"in {seconds} s"
    data = None if seconds is None else {"retry_after_seconds": seconds}
    why = getattr(error, "for_clients", error)
    return Overloaded(f"Server busy: tasks cannot be stored now ({why}); try again {when}", data)


# --- pages ----------------------------------------------------------------------------------------------


def _cursor_after(record: TaskRecord) -> str:
    return encode_cursor(0, f"{record.created_at!r} {record.id}")


def _place_of(cursor: str | None) -> tuple[float, str] | None:
    """Return the time and the id in a cursor. Raises InvalidParams."""
    if cursor is None:
        return None
    created_at, _, id = decode_cursor(cursor)[1].partition(" ")
    try:
        if id.isalnum():
            return float(created_at), id
    except ValueError:
        pass
    raise InvalidParams("cursor: unreadable")

"""Sends requests to the client while a request of its own is pending: elicitation, sampling, roots.

A handler needs one ``await`` for all protocol versions. Up to 2025-11-25 the server sends requests, and the
function waits for the responses (`ClientRequests`). From 2026-07-28 on servers send no requests: `ask`
raises `InputRequired` through the function, the client receives an InputRequiredResult, and it repeats its
request with the answers. The function then runs again from its start, and
`fastrpc.client_requests.request_state` restores what it already knows. Imported by the first input request.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from fastrpc._core.client_request import sent_id
from fastrpc.client_requests.base import ClientRefusal, InputRequest, InvalidClientResult
from fastrpc.client_requests.request_state import memory_of, state_of
from fastrpc.engine.call import InputRequired
from fastrpc.errors import MissingRequiredClientCapability, ToolError, excerpt
from fastrpc.json_encoding import to_json
from fastrpc.protocol.lifecycle import READY
from fastrpc.protocol.versions import SERVER_KEY, STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable
    from typing import Any

    from fastrpc.client_requests.request_state import Memory
    from fastrpc.engine.interfaces import DispatcherProtocol
    from fastrpc.engine.outbound_channel import RequestChannel
    from fastrpc.engine.request import Request
    from fastrpc.protocol.lifecycle import SessionState

ANSWER_SECONDS = 600.0
"""Seconds that a client may take to answer; usually a person has to decide."""

ASKING_METHODS = ("tools/call", "prompts/get", "resources/read")
"""Methods whose result may be an InputRequiredResult (MCP 2026-07-28)."""


async def ask(channel: RequestChannel, input_requests: dict[str, InputRequest[Any]]) -> dict[str, Any]:
    """Send input requests to the client, all at once, and return the answers by the same keys.

    A request that the client does not support is skipped and answered with None. An empty key is replaced by
    a generated one. Raises ToolError if the client supports none of the requests, refuses one, or does not
    answer in time; InputRequired in 2026-07-28; TypeError for what is not an InputRequest.
    """
    request = channel.request
    memory = memory_of(request)
    askable: dict[str, InputRequest[Any]] = {}
    keys: dict[str, str] = {}
    unnamed = set()
    for name, input_request in input_requests.items():
        if not isinstance(input_request, InputRequest):
            raise TypeError(f"ask: {name}: expected a question, got a {type(input_request).__name__}")
        key = keys[name] = name or memory.next_key()
        if not name:
            unnamed.add(key)
        if input_request.obstacle(request.version, request.client_capabilities) is None:
            askable[key] = input_request
    if input_requests and not askable:
        raise _refusal(request, list(input_requests.values()))
    if request.version == STATELESS:
        answers = _answers_in_request(channel, askable, unnamed)
    else:
        answers = await _request_answers(channel, askable)
    return {name: answers.get(key) for name, key in keys.items()}


def _refusal(request: Request, input_requests: list[InputRequest[Any]]) -> ToolError:
    """Return the error for a client that supports none of these input requests."""
    obstacles = [each.obstacle(request.version, request.client_capabilities) for each in input_requests]
    message = "; ".join(dict.fromkeys(obstacle for obstacle in obstacles if obstacle))
    if request.version != STATELESS:
        return ToolError(message)
    needed: dict[str, Any] = {}
    for input_request in input_requests:
        for name, modes in input_request.needs.items():
            needed[name] = {**needed.get(name, {}), **modes}
    return MissingRequiredClientCapability(message, {"requiredCapabilities": needed})


# ------------------------------------------------------ from 2026-07-28 on: answers in the request


def _answers_in_request(
    channel: RequestChannel, input_requests: dict[str, InputRequest[Any]], unnamed: set[str]
) -> dict[str, Any]:
    """Return the answers that the request contains. Raises InputRequired if some are missing."""
    request = channel.request
    if request.method not in ASKING_METHODS:
        raise ToolError(f"{request.method} cannot ask the client")
    memory = memory_of(request)
    missing: dict[str, dict[str, Any]] = {}
    answers = {}
    for key, input_request in input_requests.items():
        put = {"method": input_request.method, "params": input_request.params(request.version)}
        result = memory.answer_to(key, put, key not in unnamed)
        try:
            answers[key] = input_request.read(result, request)
        except InvalidClientResult as problem:
            missing[key] = put if key not in memory.responses else _asked_again(memory, key, put, problem)
        else:
            memory.answers[key] = result
    if missing:
        raise InputRequired(missing)
    return answers


def _asked_again(
    memory: Memory, key: str, put: dict[str, Any], problem: InvalidClientResult
) -> dict[str, Any]:
    """Return the request for an answer in place of an invalid one, with the reason for the person who
    gives it. Raises ToolError if no person can read it, and for the second such answer."""
    if key in memory.refused or "message" not in put["params"]:
        raise _no_use(put["method"], problem)
    memory.refused.append(key)
    message = f"{put['params']['message']}\n\nThe last answer could not be used: {problem}"
    return {**put, "params": {**put["params"], "message": message}}


def _no_use(method: str, problem: InvalidClientResult) -> ToolError:
    return ToolError(f"the client's answer to {method} cannot be used: {problem}")


def input_required(request: Request, input_requests: dict[str, dict[str, Any]]) -> bytes:
    """Return the encoded result that asks the client for input (MCP 2026-07-28: InputRequiredResult)."""
    return to_json(
        {
            "resultType": "input_required",
            "inputRequests": input_requests,
            "requestState": state_of(request),
            "_meta": {SERVER_KEY: request.dispatcher.runtime.description.info_of(STATELESS)},
        }
    )


# -------------------------------------------------------- up to 2025-11-25: requests to the client


async def _request_answers(
    channel: RequestChannel, input_requests: dict[str, InputRequest[Any]]
) -> dict[str, Any]:
    request = channel.request
    dispatcher = request.dispatcher
    if dispatcher.session.state != READY:
        raise ToolError("the client cannot be asked before it has sent notifications/initialized")
    answers = {}
    put = {}
    for key, input_request in input_requests.items():
        known = input_request.known(request)
        if known is not None:
            answers[key] = known
        else:
            put[key] = {"method": input_request.method, "params": input_request.params(request.version)}
    results = await requests_of(dispatcher.session).put(dispatcher, put) if put else {}
    for key, result in results.items():
        try:
            answers[key] = input_requests[key].read(result, request)
        except InvalidClientResult as problem:
            raise _no_use(input_requests[key].method, problem) from None
    return answers


def requests_of(session: SessionState) -> ClientRequests:
    """Return the table of the requests to the client of a session, which the first request makes."""
    if session.client_requests is None:
        session.client_requests = ClientRequests(session.first_request_id)
    found: ClientRequests = session.client_requests
    return found


class ClientRequests:
    """The requests to one client that are pending. The table belongs to the thread of the session; the
    handler that waits may run in another. Ids count up from `first_id`."""

    def __init__(self, first_id: int = 1) -> None:
        self._pending: dict[int, tuple[_RequestGroup, str]] = {}
        self._last_id = first_id - 1
        self._closed = False

    def __len__(self) -> int:
        return len(self._pending)

    async def put(
        self, dispatcher: DispatcherProtocol, requests: dict[str, dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Send requests over the connection of the calling request; return the results by key. Raises
        ToolError if the client answers one with an error, disconnects, or takes too long. Those that are
        pending then, or when the caller is cancelled, are cancelled."""
        loop = asyncio.get_running_loop()
        pending = _RequestGroup(dispatcher, loop, requests)
        timer = loop.call_later(
            ANSWER_SECONDS, pending.fail, f"the client did not answer within {ANSWER_SECONDS:g} s"
        )
        dispatcher.outbound.post(lambda: self._send(pending))
        said: dict[str, Any] = {"reason": "the wait for the answer has ended"}
        try:
            return await pending.future
        except asyncio.CancelledError as error:
            said |= next((each for each in error.args if isinstance(each, dict)), {})  # of a proxy's upstream
            raise
        finally:
            timer.cancel()
            dispatcher.outbound.post(lambda: self._withdraw(pending, said))

    def _send(self, pending: _RequestGroup) -> None:
        if self._closed:
            pending.call_threadsafe(pending.fail, "the client is gone")
            return
        for key, request in pending.requests.items():
            self._last_id += 1
            self._pending[self._last_id] = pending, key
            pending.dispatcher.outbound.send({"jsonrpc": "2.0", "id": self._last_id, **request})

    def answered(self, message: dict[str, Any]) -> None:
        """Handle a response of the client. An unknown id is ignored."""
        pending, key = self._waiting(message["id"])
        if pending is None:
            return
        result = message.get("result")
        if isinstance(result, dict):
            pending.call_threadsafe(pending.set_result, key, result)
        else:
            method = pending.requests[key]["method"]
            pending.call_threadsafe(
                pending.fail,
                ClientRefusal(f"the client refused {method}{_reason(message)}", message.get("error")),
            )

    def refused(self, id: str | int, why: str) -> None:
        """Handle a response of the client that cannot be read, but for its id."""
        pending, key = self._waiting(id)
        if pending is not None:
            method = pending.requests[key]["method"]
            pending.call_threadsafe(pending.fail, f"the client's answer to {method} cannot be read: {why}")

    def _waiting(self, id: object) -> tuple[_RequestGroup | None, str]:
        """Return what waits for the answer with an id, which is no longer waited for."""
        sent = sent_id(id)
        return (None, "") if sent is None else self._pending.pop(sent, (None, ""))

    def _withdraw(self, pending: _RequestGroup, said: dict[str, Any]) -> None:
        """Cancel the requests that are still pending (MCP, utilities: cancellation)."""
        for id in [id for id, (other, _) in self._pending.items() if other is pending]:
            del self._pending[id]
            pending.dispatcher.outbound.notify("notifications/cancelled", {**said, "requestId": id})

    def close(self) -> None:
        """The connection has ended: fail all pending requests."""
        self._closed = True
        pending_requests, self._pending = self._pending, {}
        for pending, _ in pending_requests.values():
            pending.call_threadsafe(pending.fail, "the client is gone")


class _RequestGroup:
    """Requests that were sent together. The future has all results."""

    def __init__(
        self, dispatcher: DispatcherProtocol, loop: AbstractEventLoop, requests: dict[str, dict[str, Any]]
    ) -> None:
        self.dispatcher = dispatcher
        self.loop = loop
        self.requests = requests
        self.results: dict[str, dict[str, Any]] = {}
        self.future: Future[dict[str, dict[str, Any]]] = loop.create_future()

    def call_threadsafe(self, function: Callable[..., object], *values: Any) -> None:
        """Call a function in the loop of the waiting handler, which may belong to another thread."""
        with suppress(RuntimeError):  # that loop is closed: no task waits
            self.loop.call_soon_threadsafe(function, *values)

    def set_result(self, key: str, result: dict[str, Any]) -> None:
        self.results[key] = result
        if len(self.results) == len(self.requests) and not self.future.done():
            self.future.set_result(self.results)

    def fail(self, problem: str | ToolError) -> None:
        if not self.future.done():
            self.future.set_exception(ToolError(problem) if isinstance(problem, str) else problem)


def _reason(message: dict[str, Any]) -> str:
    error = message.get("error")
    if not isinstance(error, dict):
        return ": its answer has no result"
    return f": {excerpt(str(error.get('message')))} ({excerpt(str(error.get('code')))})"

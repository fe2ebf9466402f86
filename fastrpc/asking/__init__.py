"""Asking the client while a request of its own waits: forms, web pages, its model, its folders.

A handler writes one ``await`` for both eras. Up to 2025-11-25 questions are requests to the client, and the
function waits for the answers (`Questions`). From 2026-07-28 on a server sends no requests: `ask` raises
`InputRequired` through the function, the client is told what is missing, and sends its request again with
the answers, on which the function runs again from its start (`fastrpc.asking.state` remembers). Imported
by the first question.
"""

from __future__ import annotations

from fastrpc.asking.state import memory_of, state_of
from fastrpc.asking.state import once as once_of
from fastrpc.calls import InputRequired
from fastrpc.errors import MissingRequiredClientCapability, ToolError, excerpt
from fastrpc.questions import BadAnswer, ElicitResult, Form, Question, Roots, Sample, Sampling, Visit
from fastrpc.results import to_json
from fastrpc.session import READY
from fastrpc.versions import MODERN, SERVER_KEY

TYPE_CHECKING = False
if TYPE_CHECKING:
    from asyncio import AbstractEventLoop, Future
    from collections.abc import Callable
    from typing import Any

    from fastrpc.calls.link import Link
    from fastrpc.engine.interfaces import Dispatcher
    from fastrpc.engine.request import Request

    Answer = ElicitResult
else:

    def __getattr__(name: str) -> type:
        if name == "Answer":
            from warnings import warn

            warn("fastrpc.asking.Answer is called ElicitResult now", DeprecationWarning, stacklevel=2)
            return ElicitResult
        raise AttributeError(f"module 'fastrpc.asking' has no attribute {name!r}")


__all__ = ["ElicitResult", "Form", "Question", "Questions", "Roots", "Sample", "Sampling", "Visit", "ask"]

ANSWER_SECONDS = 600.0
"""How long a client may take over a question; there is mostly a person behind it."""

ASKING_METHODS = ("tools/call", "prompts/get", "resources/read")
"""Methods that 2026-07-28 lets answer with questions."""


async def ask(link: Link, questions: dict[str, Question[Any]]) -> dict[str, Any]:
    """Put questions to the client, all at once, and return the answers by the same keys.

    Those that the client cannot be asked are left out and answered with None; raises ToolError if that is
    all of them, if the client refuses or does not answer in time. A key that is empty is made.
    """
    request = link.request
    memory = memory_of(request)
    askable: dict[str, Question[Any]] = {}
    keys: dict[str, str] = {}
    unnamed = set()
    for name, question in questions.items():
        if not isinstance(question, Question):
            raise TypeError(f"ask: {name}: expected a question, got a {type(question).__name__}")
        key = keys[name] = name or memory.following_key()
        if not name:
            unnamed.add(key)
        if question.obstacle(request.version, request.client_capabilities) is None:
            askable[key] = question
    if questions and not askable:
        raise _refusal(request, list(questions.values()))
    if request.version == MODERN:
        answers = _answers_at_hand(link, askable, unnamed)
    else:
        answers = await _answers_from_client(link, askable)
    return {name: answers.get(key) for name, key in keys.items()}


def _refusal(request: Request, questions: list[Question[Any]]) -> ToolError:
    """Return the error for a client that cannot be asked any of these."""
    obstacles = [question.obstacle(request.version, request.client_capabilities) for question in questions]
    message = "; ".join(dict.fromkeys(obstacle for obstacle in obstacles if obstacle))
    if request.version != MODERN:
        return ToolError(message)
    needed: dict[str, Any] = {}
    for question in questions:
        for name, modes in question.needs.items():
            needed[name] = {**needed.get(name, {}), **modes}
    return MissingRequiredClientCapability(message, {"requiredCapabilities": needed})


def once(link: Link, key: str, function: Callable[[], Any]) -> Any:
    """Call `function` the first time that the request comes here; see `fastrpc.Context.once`."""
    return once_of(link.request, key, function)


# ------------------------------------------------------------ from 2026-07-28 on: answers at hand


def _answers_at_hand(link: Link, questions: dict[str, Question[Any]], unnamed: set[str]) -> dict[str, Any]:
    """Return the answers that the request has brought. Raises InputRequired while some are missing."""
    request = link.request
    if request.method not in ASKING_METHODS:
        raise ToolError(f"{request.method} cannot ask the client")
    memory = memory_of(request)
    missing: dict[str, dict[str, Any]] = {}
    answers = {}
    for key, question in questions.items():
        put = {"method": question.method, "params": question.params(request.version)}
        result = memory.answer_to(key, put, key not in unnamed)
        try:
            answers[key] = question.read(result, request)
        except BadAnswer:
            missing[key] = put
        else:
            memory.answers[key] = result
    if missing:
        raise InputRequired(missing)
    return answers


def input_required(request: Request, questions: dict[str, dict[str, Any]]) -> bytes:
    """Return the result that tells the client what to answer (MCP 2026-07-28: InputRequiredResult)."""
    return to_json(
        {
            "resultType": "input_required",
            "inputRequests": questions,
            "requestState": state_of(request),
            "_meta": {SERVER_KEY: request.dispatcher.service.server_info_of(MODERN)},
        }
    )


# ------------------------------------------------------ up to 2025-11-25: requests to the client


async def _answers_from_client(link: Link, questions: dict[str, Question[Any]]) -> dict[str, Any]:
    request = link.request
    dispatcher = request.dispatcher
    if dispatcher.session.state != READY:
        raise ToolError("the client cannot be asked before it has sent notifications/initialized")
    answers = {}
    put = {}
    for key, question in questions.items():
        known = question.known(request)
        if known is not None:
            answers[key] = known
        else:
            put[key] = {"method": question.method, "params": question.params(request.version)}
    pending: Questions = request.dispatcher.pending
    results = await pending.put(dispatcher, put) if put else {}
    for key, result in results.items():
        try:
            answers[key] = questions[key].read(result, request)
        except BadAnswer as problem:
            raise ToolError(f"the client's answer to {questions[key].method} is no use: {problem}") from None
    return answers


class Questions:
    """What a server has asked one client and not been answered yet.

    The table belongs to the session's thread; the handler that asks may wait in another.
    """

    def __init__(self) -> None:
        self._waiting: dict[int, tuple[_Asked, str]] = {}
        self._last_id = 0
        self._closed = False

    def __len__(self) -> int:
        return len(self._waiting)

    async def put(
        self, dispatcher: Dispatcher, requests: dict[str, dict[str, Any]]
    ) -> dict[str, dict[str, Any]]:
        """Send requests to the client, by the connection of the call that asks; return its results, by key.

        Raises ToolError when the client answers one with an error, is gone, or takes too long. What is not
        answered by then, or when the caller is cancelled, is withdrawn.
        """
        import asyncio

        loop = asyncio.get_running_loop()
        asked = _Asked(dispatcher, loop, requests)
        timer = loop.call_later(
            ANSWER_SECONDS, asked.fail, f"the client did not answer within {ANSWER_SECONDS:g} s"
        )
        dispatcher.post(lambda: self._send(asked))
        try:
            return await asked.future
        finally:
            timer.cancel()
            dispatcher.post(lambda: self._withdraw(asked))

    def _send(self, asked: _Asked) -> None:
        if self._closed:
            asked.fail_soon("the client is gone")
            return
        for key, request in asked.requests.items():
            self._last_id += 1
            self._waiting[self._last_id] = asked, key
            asked.dispatcher.send({"jsonrpc": "2.0", "id": self._last_id, **request})

    def answered(self, message: dict[str, Any]) -> None:
        """Take a response of the client, with its text or integer id; one that answers nothing is dropped."""
        asked, key = self._waiting.pop(message["id"], (None, ""))
        if asked is None:
            return
        result = message.get("result")
        if isinstance(result, dict):
            asked.answer_soon(key, result)
        else:
            asked.fail_soon(f"the client refused {asked.requests[key]['method']}{_reason(message)}")

    def _withdraw(self, asked: _Asked) -> None:
        """Tell the client to forget what it has not answered (MCP, utilities: cancellation)."""
        for id in [id for id, (other, _) in self._waiting.items() if other is asked]:
            del self._waiting[id]
            params = {"requestId": id, "reason": "the answer is no longer waited for"}
            asked.dispatcher.notify("notifications/cancelled", params)

    def close(self) -> None:
        """The connection has ended: nothing will be answered any more."""
        self._closed = True
        waiting, self._waiting = self._waiting, {}
        for asked, _ in waiting.values():
            asked.fail_soon("the client is gone")


class _Asked:
    """Requests that went out together; its future has the results once all are there."""

    def __init__(
        self, dispatcher: Dispatcher, loop: AbstractEventLoop, requests: dict[str, dict[str, Any]]
    ) -> None:
        self.dispatcher = dispatcher
        self.loop = loop
        self.requests = requests
        self.results: dict[str, dict[str, Any]] = {}
        self.future: Future[dict[str, dict[str, Any]]] = loop.create_future()

    def answer_soon(self, key: str, result: dict[str, Any]) -> None:
        self._soon(self._answer, key, result)

    def fail_soon(self, problem: str) -> None:
        self._soon(self.fail, problem)

    def _soon(self, function: Callable[..., object], *values: Any) -> None:
        """Go on in the loop of the handler that waits, which may be another thread's."""
        try:
            self.loop.call_soon_threadsafe(function, *values)
        except RuntimeError:  # that loop is closed: nobody waits
            pass

    def _answer(self, key: str, result: dict[str, Any]) -> None:
        self.results[key] = result
        if len(self.results) == len(self.requests) and not self.future.done():
            self.future.set_result(self.results)

    def fail(self, problem: str) -> None:
        if not self.future.done():
            self.future.set_exception(ToolError(problem))


def _reason(message: dict[str, Any]) -> str:
    error = message.get("error")
    if not isinstance(error, dict):
        return ": its answer has no result"
    return f": {excerpt(str(error.get('message')))} ({excerpt(str(error.get('code')))})"

"""State of a multi round-trip request, and how it travels (MCP 2026-07-28: requestState).

From 2026-07-28 on a server keeps nothing between a request and its repetition with the answers: the client
carries the state. Answers that were accepted, and values of `Context.once`, are sent to the client as a text
that it can read but not change. The text is signed, valid for an hour, and only for the same request of the
same authenticated principal. `fastrpc.signed_texts` signs it; processes that continue it share the key.
Requests that neither ask nor bring answers pay nothing.
"""

from __future__ import annotations

import hashlib
import json
import time
from base64 import urlsafe_b64decode, urlsafe_b64encode

from fastrpc._core.encoder import dumps
from fastrpc.errors import InvalidParams, Reworded
from fastrpc.protocol.versions import STATELESS
from fastrpc.signed_texts import keys_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.engine.request import Request
    from fastrpc.engine.runtime import Runtime

STATE_SECONDS = 3600
"""Seconds for which a requestState is valid."""

PURPOSE = "requestState"


class Memory:
    """The state of one request: what earlier runs of its handler learned. `answers` are accepted results by
    the key of the input request; `responses` are those of this request. `digests` identify the input requests
    that have no key; `refused` has the keys of those whose answer was invalid."""

    __slots__ = ("answers", "count", "digests", "done", "refused", "responses")

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.responses: dict[str, Any] = {}
        self.digests: dict[str, str] = {}
        self.refused: list[str] = []
        self.done: dict[str, tuple[Any, bool]] = {}  # of `once`; True: a coroutine's
        self.count = 0

    def next_key(self) -> str:
        """Return the generated key of an input request: its number in this run."""
        self.count += 1
        return str(self.count)

    def answer_to(self, key: str, input_request: dict[str, Any], named: bool) -> Any:
        """Return the client's result for an input request, or None. One with a generated key must equal that
        of the earlier run: otherwise the answer is for another one with the same number, and is dropped."""
        if not named:
            digest = _digest(input_request)
            if self.digests.setdefault(key, digest) != digest:
                self.digests[key] = digest
                self.answers.pop(key, None)
                self.responses.pop(key, None)
                return None
        found = self.answers.get(key)
        return self.responses.get(key) if found is None else found


def memory_of(request: Request) -> Memory:
    """Return the state of a request. Raises InvalidParams for a requestState that is not valid for it."""
    memory: Memory | None = request.asking
    if memory is None:
        memory = Memory()
        if request.version == STATELESS:
            _restore(request, memory)
        request.asking = memory
    return memory


def _restore(request: Request, memory: Memory) -> None:
    responses = request.params.get("inputResponses", {})
    if not isinstance(responses, dict):
        raise InvalidParams("inputResponses: expected an object")
    memory.responses = dict(responses)
    if "requestState" in request.params:
        state = _verified(request, request.params["requestState"])
        memory.answers = state["answers"]
        memory.digests = state["asked"]
        memory.refused = state.get("refused", [])
        memory.done = {key: (value, is_async) for key, (value, is_async) in state["done"].items()}


def state_of(request: Request) -> str:
    """Return the state of a request as signed text."""
    memory = memory_of(request)
    state = {
        "request": _binding(request),
        "answers": memory.answers,
        "asked": memory.digests,
        "refused": memory.refused,
        "done": memory.done,
    }
    return _signed(request.dispatcher.runtime, request.dispatcher.principal, state)


def renewed(runtime: Runtime, principal: str, text: str) -> str:
    """Return a state that the server itself has stored, valid from now on, and signed with this process's
    key. Its own signature is not checked, which another process may have made."""
    return _signed(runtime, principal, json.loads(urlsafe_b64decode(text.rpartition(".")[0])))


def _signed(runtime: Runtime, principal: str, state: dict[str, Any]) -> str:
    """Return a state as signed text, valid from now on."""
    state["until"] = int(time.time()) + STATE_SECONDS
    payload = urlsafe_b64encode(json.dumps(state, separators=(",", ":")).encode()).decode()
    return keys_of(runtime).signed(PURPOSE, principal, payload)


def _verified(request: Request, text: Any) -> dict[str, Any]:
    if not isinstance(text, str):
        raise InvalidParams("requestState: expected a string")
    dispatcher = request.dispatcher
    payload = keys_of(dispatcher.runtime).payload_of(text, PURPOSE, dispatcher.principal)
    if payload is None:
        raise InvalidParams("requestState: not from this server")
    state: dict[str, Any] = json.loads(urlsafe_b64decode(payload))
    if state["request"] != _binding(request):
        raise InvalidParams("requestState: from another request")
    if state["until"] < time.time():
        raise InvalidParams("requestState: too old; send the request again without it")
    return state


def _binding(request: Request) -> str:
    """Return a digest of server, method, name and arguments, which ties the state to the request."""
    params = request.params
    server = request.dispatcher.runtime.description.info.get("name")
    return _digest(
        [server, request.method, params.get("name"), params.get("uri"), params.get("arguments") or {}]
    )


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def once(request: Request, key: str, function: Any) -> Any:
    """Do what `fastrpc.Context.once` says. Raises TypeError for a value that is not JSON."""
    memory = memory_of(request)
    if key in memory.done:
        value, is_async = memory.done[key]
        return _completed(value) if is_async else value
    value = function()
    if hasattr(value, "__await__"):
        return _store_awaited(request, memory, key, value)
    value = _json_value(request, key, value)
    memory.done[key] = value, False
    return value


async def _store_awaited(request: Request, memory: Memory, key: str, awaitable: Any) -> Any:
    value = _json_value(request, key, await awaitable)
    memory.done[key] = value, True
    return value


async def _completed(value: Any) -> Any:
    return value


def _json_value(request: Request, key: str, value: Any) -> Any:
    """Return a value as it is after a JSON round trip. Raises TypeError if it is not JSON."""
    if request.version != STATELESS:
        return value
    before = f"once({key!r}): the value must be JSON ("
    with Reworded((TypeError, UnicodeEncodeError), TypeError, before, ")"):
        return json.loads(dumps(value))

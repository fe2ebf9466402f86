"""What a request that asks its client remembers, and how the memory travels (MCP 2026-07-28: requestState).

From 2026-07-28 on a server keeps nothing between a request and the one that brings the answers: the client
carries it. What has been answered and what `Context.once` has done go to the client as a text that it can
read but not change: it is signed, good for an hour, and for the same request of the same caller only. The
key is ``FASTRPC_SECRET``, where several processes must agree, or made at start. Costs nothing to requests
that neither ask nor bring answers.
"""

from __future__ import annotations

from fastrpc._core.encode import dumps
from fastrpc.errors import InvalidParams
from fastrpc.versions import MODERN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.engine.interfaces import Runtime
    from fastrpc.engine.request import Request

STATE_SECONDS = 3600
"""How long after a question its answer is taken."""

SECRET_VARIABLE = "FASTRPC_SECRET"


class Memory:
    """What one run of a request's handler knows of the runs before it, and notes for those to come.

    `answers` are results that clients gave, by the question's key, and were taken; `responses` those that
    came now. `asked` holds a digest of each question that has no key of its own.
    """

    __slots__ = ("answers", "asked", "count", "done", "responses")

    def __init__(self) -> None:
        self.answers: dict[str, Any] = {}
        self.responses: dict[str, Any] = {}
        self.asked: dict[str, str] = {}
        self.done: dict[str, tuple[Any, bool]] = {}  # value of `once`, and whether it is awaited
        self.count = 0

    def following_key(self) -> str:
        """Return the key of a question that was given none: its place in the run."""
        self.count += 1
        return str(self.count)

    def answer_to(self, key: str, question: dict[str, Any], named: bool) -> Any:
        """Return the client's result for a question, or None.

        A question without a key of its own must be the same that was put: an answer to another one, which
        has come to its place since, would be a misunderstanding.
        """
        if not named:
            digest = _digest(question)
            if self.asked.setdefault(key, digest) != digest:
                self.asked[key] = digest
                self.answers.pop(key, None)
                return None
        found = self.answers.get(key)
        return self.responses.get(key) if found is None else found


def memory_of(request: Request) -> Memory:
    """Return the memory of a request. Raises InvalidParams for a state that is not ours, or not this
    request's, or too old."""
    memory: Memory | None = request.asking
    if memory is None:
        memory = Memory()
        if request.version == MODERN:
            _recall(request, memory)
        request.asking = memory
    return memory


def _recall(request: Request, memory: Memory) -> None:
    responses = request.params.get("inputResponses", {})
    if not isinstance(responses, dict):
        raise InvalidParams("inputResponses: expected an object")
    memory.responses = responses
    if "requestState" in request.params:
        kept = _opened(request, request.params["requestState"])
        memory.answers = kept["answers"]
        memory.asked = kept["asked"]
        memory.done = {key: (value, awaited) for key, (value, awaited) in kept["done"].items()}


# ----------------------------------------------------------------------------------------- the text


def state_of(request: Request) -> str:
    """Return a request's memory as the text that the client brings back."""
    import json
    import time
    from base64 import urlsafe_b64encode

    memory = memory_of(request)
    kept = {
        "until": int(time.time()) + STATE_SECONDS,
        "request": _binding(request),
        "answers": memory.answers,
        "asked": memory.asked,
        "done": memory.done,
    }
    payload = urlsafe_b64encode(json.dumps(kept, separators=(",", ":")).encode()).decode()
    return f"{payload}.{_signature(request, payload)}"


def _opened(request: Request, text: Any) -> dict[str, Any]:
    import json
    import time
    from base64 import urlsafe_b64decode
    from hmac import compare_digest

    if not isinstance(text, str):
        raise InvalidParams("requestState: expected a string")
    payload, _, signature = text.rpartition(".")
    expected = _signature(request, payload)
    if not compare_digest(signature.encode("utf-8", "backslashreplace"), expected.encode()):
        raise InvalidParams("requestState: not one that this server gave")
    kept: dict[str, Any] = json.loads(urlsafe_b64decode(payload))
    if kept["request"] != _binding(request):
        raise InvalidParams("requestState: given for another request")
    if kept["until"] < time.time():
        raise InvalidParams("requestState: too old; send the request again without it")
    return kept


def _signature(request: Request, payload: str) -> str:
    """Sign for the caller too: another one's state looks like a forged one, and does not say whose it is."""
    import hmac

    dispatcher = request.dispatcher
    message = f"requestState {_digest(dispatcher.principal)} {payload}".encode("utf-8", "backslashreplace")
    return hmac.new(secret_of(dispatcher.service), message, "sha256").hexdigest()


def _binding(request: Request) -> str:
    """Return what tells this request from any other: server, method, name and arguments."""
    params = request.params
    server = request.dispatcher.service.server_info.get("name")
    return _digest(
        [server, request.method, params.get("name"), params.get("uri"), params.get("arguments") or {}]
    )


def _digest(value: Any) -> str:
    import hashlib
    import json

    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def secret_of(service: Runtime) -> bytes:
    """Return the key that signs: the environment's, or one that lives as long as the server."""
    if service.secret is None:
        import os

        text = os.environ.get(SECRET_VARIABLE, "").strip()
        service.secret = text.encode("utf-8", "surrogateescape") if text else os.urandom(32)
    return service.secret


# --------------------------------------------------------------------------------------------- once


def once(request: Request, key: str, function: Any) -> Any:
    """Call `function`, or return what it gave before; see `fastrpc.Context.once`."""
    memory = memory_of(request)
    if key in memory.done:
        value, awaited = memory.done[key]
        return _given(value) if awaited else value
    value = function()
    if hasattr(value, "__await__"):
        return _awaited(request, memory, key, value)
    value = _kept(request, key, value)
    memory.done[key] = value, False
    return value


async def _awaited(request: Request, memory: Memory, key: str, coming: Any) -> Any:
    value = _kept(request, key, await coming)
    memory.done[key] = value, True
    return value


async def _given(value: Any) -> Any:
    return value


def _kept(request: Request, key: str, value: Any) -> Any:
    """Return a value as it will come back. Raises TypeError for one that cannot."""
    if request.version != MODERN:
        return value
    import json

    try:
        return json.loads(dumps(value))
    except (TypeError, UnicodeEncodeError) as error:
        raise TypeError(f"once({key!r}): the value must be JSON ({error})") from None

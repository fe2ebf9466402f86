"""Results that ask the client for input, as handlers of the official SDK 2.x return them by hand.

A handler returns an ``InputRequiredResult``, and is called again with ``ctx.input_responses`` and
``ctx.request_state`` (MCP 2026-07-28, multi round-trip requests). Its state travels signed, within
fastrpc's own. For clients of earlier versions `ctx.elicit` works, and such a result is an error.
"""

from __future__ import annotations

from fastrpc.client_requests.request_state import memory_of
from fastrpc.compat.models import dumped, typed
from fastrpc.engine.call import InputRequired
from fastrpc.errors import InternalError
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.engine.request import Request

STATE = "fastrpc.compat request_state"
"""The key of a handler's state among the values that a request remembers."""


def is_input_required(value: Any) -> bool:
    """Whether what a handler has returned asks for input."""
    kind = getattr(value, "result_type", None) or getattr(value, "resultType", None)
    return kind == "input_required"


def asked(value: Any, request: Request) -> InputRequired:
    """Return what to raise for a result that asks for input. Raises InternalError for a client of an earlier
    version."""
    if request.version != STATELESS:
        raise InternalError(
            f"the handler asks by an InputRequiredResult, which version {request.version} does not have"
        )
    raw = dumped(value)
    memory = memory_of(request)
    state = raw.get("requestState")
    if state is None:
        memory.done.pop(STATE, None)
    else:
        memory.done[STATE] = state, False
    return InputRequired(raw.get("inputRequests") or {})


def responses_to(request: Request) -> dict[str, Any] | None:
    """Return the client's answers, by the keys of the input requests; None if there are none."""
    if "inputResponses" not in request.params:
        return None
    return {key: _typed(raw) for key, raw in memory_of(request).responses.items()}


def state_of(request: Request) -> str | None:
    """Return the state that the handler gave in the round before."""
    found = memory_of(request).done.get(STATE)
    return None if found is None else found[0]


def _typed(raw: Any) -> Any:
    if not isinstance(raw, dict):
        return raw
    if "action" in raw:
        return typed("ElicitResult", raw)
    if "roots" in raw:
        return typed("ListRootsResult", raw)
    is_one = not isinstance(raw.get("content"), list)
    return typed("CreateMessageResult" if is_one else "CreateMessageResultWithTools", raw)

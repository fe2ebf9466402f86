"""Calls of a stateless upstream server (MCP 2026-07-28: multi round-trip requests).

The server may answer with input requests instead of a result: they are forwarded to the client of the call,
and the request is sent again with the client's answers, until the result is complete.
"""

from __future__ import annotations

from fastrpc.client.results import input_requests_of
from fastrpc.errors import InvalidAnswer, MissingRequiredClientCapability, Reworded, ToolError
from fastrpc.protocol.versions import STATELESS
from fastrpc.proxy.entries import INPUT_REQUESTS, PassedInputRequest
from fastrpc.proxy.requests import UpstreamError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc.context import Context

    Send = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
    """Sends a request with these params, and returns its result. Raises RemoteError and ToolError."""

INPUT_REQUIRED = "input_required"
MOST_ROUNDS = 64
"""Rounds of input requests in one call before the proxy gives up."""


class _Complete(Exception):
    """Carries a complete result out of `Context.once`, which would otherwise store it."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


async def complete_result(send: Send, params: dict[str, Any], context: Context) -> dict[str, Any]:
    """Send a request for a call until its result is complete. Raises RemoteError and ToolError."""
    sent = params
    for number in range(MOST_ROUNDS):
        found = await _round(number, send, sent, context)
        if found.get("resultType") != INPUT_REQUIRED:
            return found
        sent = {**params, **await _input_responses(number, found, context)}
    raise ToolError(f"the upstream server still requests input after {MOST_ROUNDS} rounds")


async def _round(number: int, send: Send, params: dict[str, Any], context: Context) -> dict[str, Any]:
    """Send one round of a request. A client that answers by input responses too has the call run again from
    its start: the upstream's input requests are stored in `requestState`, and not sent twice."""

    async def send_once() -> dict[str, Any]:
        found = await send(params)
        if found.get("resultType") != INPUT_REQUIRED:
            raise _Complete(found)
        return {
            name: found[name] for name in ("resultType", "inputRequests", "requestState") if name in found
        }

    try:
        sent: dict[str, Any] = await context.once(f"proxy:{number}", send_once)
        return sent
    except _Complete as end:
        return end.result
    except UpstreamError as error:
        if error.code == MissingRequiredClientCapability.code and context.protocol_version != STATELESS:
            raise ToolError(str(error)) from None  # our client's version has no such error code
        raise


async def _input_responses(number: int, found: dict[str, Any], context: Context) -> dict[str, Any]:
    """Forward the upstream's input requests to the client of the call, by keys that include the number of the
    round, since later rounds may use a key again; return the next round's params."""
    with Reworded(InvalidAnswer, ToolError):
        requests = input_requests_of("the upstream server's answer", found) or {}
    input_requests, names = {}, {}
    for key, request in requests.items():
        if request["method"] not in INPUT_REQUESTS:
            raise ToolError(f"{request['method']}: the proxy does not support this input request")
        name = key if number == 0 and key != "self" else f"{number}:{key}"
        input_requests[name] = PassedInputRequest(request["method"], request.get("params") or {})
        names[name] = key
    following: dict[str, Any] = {}
    if input_requests:
        answers = await context.ask(**input_requests)
        following["inputResponses"] = {
            names[name]: answer for name, answer in answers.items() if answer is not None
        }
    if "requestState" in found:
        following["requestState"] = found["requestState"]
    return following

"""Requests about components of a composed server that are no calls: completions and subscriptions.

A component of another server is completed there, by the name that it has there. What a registry has of the
server's own is served as on any other server. `chain` is a `ComposedChain`. Which servers then watch a
resource that is subscribed to is left to `Upstreams.watch`.
"""

from __future__ import annotations

from fastrpc.compat.components.definitions import definition_of
from fastrpc.compat.composition.nested_calls import call_plan
from fastrpc.errors import FAILURES, InvalidParams, ProtocolError, ResourceNotFound, excerpt
from fastrpc.methods.completion import CompletionEncoder, reference_of, wanted
from fastrpc.methods.resources import subscribe_to_found, uri_of
from fastrpc.protocol.uri_template import normal
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

    from fastrpc._core.call_info import CallInfo
    from fastrpc.engine.request import Request


async def complete(chain: Any, request: Request, call: CallInfo) -> bytes:
    """Return the suggestions for an argument of a prompt or a template. Raises InvalidParams."""
    kind, key = reference_of(request.params)
    found = await _referred(chain, kind, key)
    if found is None or not await chain._may(kind, found):
        raise InvalidParams(f"ref: unknown {kind}: {excerpt(key)}")
    while "_chain" in found.__dict__:  # a component of another server
        chain, key = found._chain, found._own_key
        found = await _referred(chain, kind, key)
        if found is None:
            raise InvalidParams(f"ref: unknown {kind}: {excerpt(key)}")
    server = chain.server
    entry = getattr(found, "entry", None) or definition_of(kind, found, server)
    plan, value = wanted(request, server.runtime, entry)
    if plan is None:
        return CompletionEncoder.encode(request, entry, value)
    try:
        value = await call_plan(call.context, plan, server, plan.tool.name, value)
        return CompletionEncoder.encode(request, plan.tool, value)
    except ProtocolError:
        raise
    except FAILURES as error:
        return CompletionEncoder.failure(request, plan.tool, error)


async def _referred(chain: Any, kind: str, key: str) -> Any:
    """Return the prompt of a name, or the template that is written so; None if none is offered."""
    if kind == "prompt":
        return await chain.find(kind, key)
    key = normal(key)
    return next((each for each in await chain.objects(kind) if normal(each.key) == key), None)


async def subscribe(chain: Any, request: Request, call: CallInfo) -> bytes:
    """Subscribe the client to a resource. Raises ResourceNotFound."""
    dispatcher: Any = request.dispatcher
    uri = uri_of(request.params)
    _, found = await chain.find_called("resource", uri, None)
    if found is None:
        raise ResourceNotFound(uri, legacy=request.version != STATELESS)
    return subscribe_to_found(dispatcher, request)


ANSWERED: dict[str, Callable[[Any, Request, CallInfo], Awaitable[bytes]]] = {
    "completion/complete": complete,
    "resources/subscribe": subscribe,
}

"""Calls that a running call makes: of a tool's parent, of a component that a transform shows under another
name, of a component of a mounted server.

The caller, its guards, the client and its session stay the same. The wrapper of the server whose component is
called does not run again. Costs about what the call itself costs.
"""

from __future__ import annotations

from json import loads

from fastrpc import running_call
from fastrpc._core.call_info import CallInfo
from fastrpc.compat.components.tools import result_of, run_definition
from fastrpc.compat.errors import tool_error
from fastrpc.context import Context
from fastrpc.engine.guards import allow
from fastrpc.engine.outbound_channel import RequestChannel
from fastrpc.engine.wrappers import proceed_within
from fastrpc.errors import ArgumentError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc._core.plan import Plan
    from fastrpc.compat.values import ToolResult


def context_for(context: Context, server: Any) -> Context:
    """Return the Context of a running call for a handler of another server: with its lifespan's value."""
    channel: Any = context._channel
    if channel is None or channel.server is server:
        return context
    inner = RequestChannel(channel.request)
    inner.server = server
    return Context(context.request_id, context.protocol_version, context.client_info, inner)


async def call_plan(context: Context, plan: Plan, server: Any, name: str, bound: Any) -> Any:
    """Return the value of a handler of `server`, which is called within its guards and hooks but not within
    that server's wrapper. Raises what the guard or the handler raises."""
    runtime, handler = server.runtime, plan.tool
    while (lifespan := runtime.pending_lifespan(handler)) is not None:
        await lifespan.enter()
    own = context_for(context, runtime.server_of(handler))
    call = CallInfo(plan, name, context.principal, bound, own)
    await allow(plan.guard, call)
    with running_call.running(own):
        return await proceed_within(plan, call)


async def call_tool_entry(server: Any, entry: Any, arguments: dict[str, Any]) -> ToolResult:
    """Return the result of a tool's definition. Raises ToolError for arguments that do not fit, and what the
    tool raises."""
    context = running_call.current()
    if context is None or context._channel is None:
        return await run_definition(entry, arguments)
    runtime = server.runtime
    try:
        bound = entry.signature.bind(arguments)
    except ArgumentError as error:
        raise tool_error(str(error)) from None
    value = await call_plan(context, tool_plan(server, entry), server, entry.name, bound)
    return result_of(loads(runtime.results.of(entry, value, LATEST_SESSION_VERSION)))


def tool_plan(server: Any, entry: Any) -> Plan:
    """Return the plan of a tool's definition, whether the server lists it or not."""
    runtime = server.runtime
    plan: Plan | None = runtime.plans.tools.get(entry.name)
    if plan is None or plan.tool is not entry:
        plan = runtime.plans.of_tool(entry)
    return plan

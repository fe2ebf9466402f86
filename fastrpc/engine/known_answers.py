"""What a connection is handed so that it answers requests like one that the dispatcher has answered.

A resource or a prompt: its plan, with the bytes around a text that it returns. An unknown tool:
the error. Both are forgotten when the registries change (`Connection.take_plans`). Costs a dictionary's
look-up for each such request that comes to the dispatcher, and the encoding of one empty text.
"""

from __future__ import annotations

from fastrpc._core.plan import FramedPlan
from fastrpc.engine.results import error_object
from fastrpc.errors import LONGEST_EXCERPT
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc._core.plan import Plan
    from fastrpc.engine.interfaces import DispatcherProtocol
    from fastrpc.engine.request import Request
    from fastrpc.errors import UnknownName

UNKNOWN_KEPT = 64


def keep_plan(dispatcher: DispatcherProtocol, request: Request, plan: Plan) -> None:
    """Have the connection serve such requests for a resource or a prompt by itself from now on, unless this
    is the first: a connection may have one request only."""
    connection, target = dispatcher.connection, plan.target
    plans = connection.resources if plan.kind == "resource" else connection.prompts
    if not plan.is_bindable or plans.get(target) is not None:
        return
    if target not in plans:
        plans[target] = None
        return
    head, text, tail = plan.encoder.encode(request, plan.tool, "").partition(b'"text":""')
    assert text, "the encoder writes a text as one"
    plans[target] = FramedPlan(
        plan, b',"result":' + head + text[:-2], tail + b"}\n", request.version == STATELESS
    )


def remember_unknown(dispatcher: DispatcherProtocol, name: str, error: UnknownName) -> None:
    """Have the connection answer by itself when this tool is called again: agents repeat a wrong name, and
    looking for what may have been meant takes long."""
    runtime = dispatcher.runtime
    if runtime.filters.is_filtered:  # another caller's hint, where a connection serves several
        return
    if runtime.wrapper is not None:  # which may answer it
        return
    if runtime.recorder is None and not runtime.has_upstreams and len(name) <= LONGEST_EXCERPT:
        unknown = dispatcher.connection.unknown
        if len(unknown) >= UNKNOWN_KEPT:
            unknown.clear()
        unknown[name] = error_object(error.code, error.message)

"""Makes the call plan of a tool: how its function is called, what its arguments and results look like, and
which of that the compiled core can do by itself. Plans are made anew when tools, hooks or the policy change,
not on the way of a call.
"""

from __future__ import annotations

from fastrpc._core.plan import PARAMETER_LIMIT, REQUIRED, Plan
from fastrpc.engine.results import (
    divides_values,
    exact_type_of,
    form_of,
    keeps_plain_values,
    plain_check_of,
    plain_of,
    takes_blocks,
    text_maker_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fastrpc._core.recorder import Recorder
    from fastrpc.definitions.handler import Handler
    from fastrpc.definitions.tool import Tool
    from fastrpc.engine.ports import ResultEncoder
    from fastrpc.schema import Signature

    VectorForm = tuple[Callable[..., Any], list[tuple[str, str, Any, bool]] | None, int, tuple[str, ...]]


def plan_of(
    tool: Tool,
    *,
    direct: bool = True,
    noted: bool = False,
    guard: Callable[[Any], Any] | None = None,
    around: Any = None,
    recheck: Callable[[Any], object] | None = None,
    recorder: Recorder | None = None,
    encoder: ResultEncoder | None = None,
    conditional: bool = False,
) -> Plan:
    """Make the call plan of a tool: may the compiled binder serve it, and where does it run?

    Without `direct` each call goes through the dispatcher; `conditional`: see `Plan`.
    """
    signature, style = tool.signature, tool.style
    is_async = tool.is_async or (around is not None and around.is_async)
    function, parameters, context_at, keywords = vector_form_of(tool)
    if not direct or (is_async and tool.max_running is not None):
        parameters = None
    # A time limit cannot be kept, nor a bound on running calls be needed, on the loop's own thread.
    adaptive = tool.run == "auto" and tool.timeout_seconds is None and not is_async
    is_bounded = tool.timeout_seconds is not None or tool.max_running is not None
    forwardable = direct and guard is None and around is None and not noted and not is_bounded
    return Plan(
        tool,
        tool.name,
        function,
        parameters,
        inline=tool.run == "inline" and not is_async,
        adaptive=adaptive,
        is_async=is_async,
        binds_whole=signature.binds_whole,
        stepped=is_async and parameters is not None,
        context_at=context_at,
        context_kind=context_kind_of(tool, guard is not None or around is not None),
        form=form_of(signature) if keeps_plain_values(signature) and not divides_values(tool) else -1,
        refusal_prefix=style.refusal_prefix(tool.name),
        failure_prefix=style.failure_prefix(tool.name),
        hides_failures=style.hides_failures,
        exact=exact_type_of(signature),
        check=plain_check_of(tool),
        plain=plain_of(tool),
        to_text=text_maker_of(tool),
        load_content=load_content if takes_blocks(tool) else None,
        loads=loads_of(signature, parameters),
        keywords=keywords,
        guard=guard,
        around=around,
        recheck=recheck,
        recorder=recorder,
        encoder=encoder,
        noted=noted,
        forwarder=tool.forwarder if forwardable else None,
        conditional=conditional,
    )


def vector_form_of(handler: Handler) -> VectorForm:
    """Return how compiled code calls a handler: the function, or `Signature.positional` for one that takes
    keywords; its parameters as the compiled binder takes them, None where that cannot serve it; the place
    of its Context, or -1; and the names of parameters that are passed by name."""
    signature = handler.signature
    parameters: list[tuple[str, str, Any, bool]] = [
        (each.name, each.kind, REQUIRED if each.required else each.default, each.nullable)
        for each in signature.parameters
    ]
    takes_context = signature.context_parameter is not None
    if signature.vectorizable and (not takes_context or signature.context_index >= 0):
        return handler.function, parameters, signature.context_index, signature.keywords
    if signature.takes_others:  # as one value, after the others
        parameters.append(("", "json", None, False))
    if not signature.has_vector_form or len(parameters) > PARAMETER_LIMIT:
        return handler.function, None, signature.context_index, ()
    return signature.positional(handler.function), parameters, 0 if takes_context else -1, ()


def load_content() -> None:
    """Import what writes results that are content: the first that may be some is about to be written."""
    import fastrpc._core.content_blocks  # noqa: F401


def loads_of(
    signature: Signature, parameters: Sequence[Any] | None
) -> tuple[Callable[[Any], Any] | None, ...] | None:
    """Return what makes the values of a plan's checked parameters, where their types are all that matters."""
    if parameters is None or all(parameter[1] != "checked" for parameter in parameters):
        return None
    from fastrpc.schema.value_types import value_type_of

    known = {p.name: value_type_of(p.converter) for p in signature.parameters if p.kind == "checked"}
    types = [known.get(parameter[0]) for parameter in parameters]
    return tuple([None if each is None else each.load for each in types])


def context_kind_of(handler: Handler, needed: bool) -> type | None:
    """Return the class of a handler's Context, if its function takes one, or one is needed besides."""
    if handler.signature.context_parameter is None and not needed:
        return None
    from fastrpc.context import Context

    return Context

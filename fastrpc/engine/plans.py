"""The call plans of a server: how each function is called, what its arguments and results look like, and how
much of that the compiled core can do by itself. Plans are made at the first request that needs them and again
when registries, hooks, guards or observers have changed, not on the way of a call.
"""

from __future__ import annotations

from fastrpc._core.plan import PARAMETER_LIMIT, REQUIRED, Gate, Plan
from fastrpc.engine.messages import CALLED_BY
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
from fastrpc.errors import InternalError
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from fastrpc._core.recorder import Recorder
    from fastrpc.definitions.handler import Handler
    from fastrpc.definitions.tool import Tool
    from fastrpc.engine.guards import Guard
    from fastrpc.engine.ports import ResultEncoder
    from fastrpc.engine.shared_state import SharedState
    from fastrpc.engine.visibility import VisibilityFilters
    from fastrpc.schema import Signature

    VectorForm = tuple[Callable[..., Any], list[tuple[str, str, Any, bool]] | None, int, tuple[str, ...]]

NO_PLANS: dict[str, Plan] = {}
"""Those of a principal for whom there are no tools."""

scope: Callable[[Any, Any], Any] | None = None
"""Makes the outermost of what is around a handler, for those who want to know which call runs: it is handed
the handler and what is around it already (`fastrpc.running_call`)."""


class CallPlans:
    """The plans of all handlers of a server, mounted ones included. `lifespan_changed` is called when a
    lifespan that a plan has waited for has been entered, `use_processes` for tools that run in some."""

    def __init__(
        self,
        state: SharedState,
        filters: VisibilityFilters,
        lifespan_changed: Callable[[], object],
        use_processes: Callable[[], object],
    ) -> None:
        self._state = state
        self._filters = filters
        self._lifespan_changed = lifespan_changed
        self._use_processes = use_processes
        self._of_tools: dict[str, Plan] | None = None
        self._of_handlers: dict[tuple[int, int], tuple[Handler, ResultEncoder, Plan]] = {}

    def forget(self, kind: str = "") -> None:
        """Make the plans of tools, or of the other handlers, anew; without a kind of entry, all of them."""
        if kind in ("tool", ""):
            self._of_tools = None
        if kind != "tool":
            self._of_handlers.clear()

    # --- tools ----------------------------------------------------------------------------------------

    @property
    def tools(self) -> dict[str, Plan]:
        """The call plan of each tool, by name."""
        found = self._of_tools
        if found is None:
            self._state.load()
            tools = self._state.registries.tools
            plans = {tool.name: self.of_tool(tool) for tool in tools}
            found = plans | {name: plans[tool.name] for name, tool in tools.published.items()}
            self._of_tools = found
        return found

    def tools_of(self, principal: str | None) -> dict[str, Plan]:
        """Return the call plans of the tools that exist for a principal, or, if it is None, for all; none if
        a filter fails, which is logged."""
        if not self._filters.enforces_filters:
            return self.tools
        try:
            view = None if principal is None else self._filters.view_of(principal)
            return NO_PLANS if view is None else view.plans(self.tools)
        except InternalError:
            return NO_PLANS

    def input_schema_of(self, name: str, principal: str | None = None) -> dict[str, Any] | None:
        """Return the input schema of a tool that exists for a principal, or, if it is None, at all."""
        self._state.load()
        is_hidden = principal is not None and name not in self.tools_of(principal)
        tool = None if is_hidden else self._state.registries.tools.get(name)
        return None if tool is None else tool.descriptor(STATELESS)["inputSchema"]

    def are_tools_of(self, principal: str, plans: dict[str, Plan]) -> bool:
        """Whether these are a principal's plans; asked before each call where filters classify calls."""
        lists = self._filters.caller_lists
        if lists is None:
            return self.tools_of(principal) is plans
        try:
            return lists.view(principal).plans(self.tools) is plans
        except InternalError:
            return False

    def of_tool(self, tool: Tool) -> Plan:
        """Make a tool's plan: may the compiled binder serve it, and where does it run? While a lifespan has
        to be entered, the dispatcher alone calls it."""
        signature, style = tool.signature, tool.style
        is_direct = self._is_ready(tool) and tool.task != "required"
        is_noted = bool(self._state.results.notes)
        guard, around = self._guard_of(tool), self._around(tool, "tools/call")
        if tool.run == "process":
            self._use_processes()
        is_async = tool.is_async or (around is not None and around.is_async)
        function, parameters, context_at, keywords = vector_form_of(tool)
        if not is_direct or (is_async and tool.max_running is not None):
            parameters = None
        # A time limit cannot be kept, nor a bound on running calls be needed, on the loop's own thread.
        is_bounded = tool.timeout_seconds is not None or tool.max_running is not None
        is_open = guard is None or isinstance(guard, Gate)  # decides without the arguments, or not at all
        forwardable = is_direct and is_open and around is None and not is_noted and not is_bounded
        return Plan(
            tool,
            tool.name,
            function,
            parameters,
            inline=tool.run == "inline" and not is_async,
            adaptive=tool.run == "auto" and tool.timeout_seconds is None and not is_async,
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
            recheck=None if around is None else self._recheck_of(tool),
            recorder=self._recorder_of(tool),
            encoder=self._state.features.TOOL_RESULTS,
            noted=is_noted,
            forwarder=tool.forwarder if forwardable else None,
            conditional=self._filters.classifies_calls,
            makes_tasks=tool.offers_tasks,
        )

    # --- other handlers -------------------------------------------------------------------------------

    def of_handler(self, handler: Handler, encoder: ResultEncoder) -> Plan:
        """Return the plan, which is kept, by which a method calls a handler that is not a tool."""
        key = id(handler), id(encoder)
        found = self._of_handlers.get(key)
        if found is None:
            plan = self.make_for_handler(handler, encoder)
            found = self._of_handlers[key] = handler, encoder, plan
        return found[2]

    def make_for_handler(self, handler: Handler, encoder: ResultEncoder) -> Plan:
        """Make that plan. The connection can bind arguments if all are strings, or there are none."""
        is_called = handler.kind != "completion" and not getattr(handler, "is_list", False)
        guard = self._guard_of(handler) if is_called else None
        kind = "resource" if handler.kind in ("template", "provider") else handler.kind
        around = self._around(handler, CALLED_BY.get(kind, "") if is_called else "")
        is_async = handler.is_async or (around is not None and around.is_async)
        function, parameters, context_at, keywords = vector_form_of(handler)
        if (
            not self._is_ready(handler)
            or handler.max_running is not None
            or any(kind != "str" for _, kind, _, _ in parameters or ())
        ):
            parameters = None
        return Plan(
            handler,
            handler.name,
            function,
            parameters and [(name, kind, default, False) for name, kind, default, _ in parameters],
            keywords=keywords if parameters else (),
            inline=handler.run == "inline" and not is_async,
            adaptive=handler.run == "auto" and handler.timeout_seconds is None and not is_async,
            is_async=is_async,
            stepped=is_async and parameters is not None,
            context_at=context_at,
            context_kind=context_kind_of(handler, guard is not None or around is not None),
            kind=kind,
            target=handler.key,
            encoder=encoder,
            guard=guard,
            around=around,
            recorder=self._recorder_of(handler),
            conditional=self._filters.classifies_calls,
        )

    # --- what is called before and after a handler, and what has to be entered ------------------------

    def _is_ready(self, handler: Handler) -> bool:
        """Whether a handler can be called now; its plan is made anew when that changes."""
        state = self._state
        for lifespan in state.lifespans_of(handler):
            lifespan.watchers.add(self._lifespan_changed)
        holds_answers = state.recorder is not None and state.recorder.holder is not None
        return state.pending_lifespan(handler) is None and not holds_answers

    def _around(self, handler: Handler, method: str) -> Any:
        """Return what is around a handler that is called by a method; None: nothing."""
        around = None
        if self._state.hooks or handler.origin or self._state.wrapper is not None:
            from fastrpc.engine import interceptors

            around = interceptors.around(handler, self._state, method)
        return around if scope is None else scope(handler, around)

    def _guard_of(self, handler: Handler) -> Guard | None:
        """Return the function that asks all guards of a handler; None: there are none."""
        path = self._state.mount_path_of(handler)
        guards: list[tuple[str, Guard]] = [(name, guard) for name, state in path for guard in state.guards]
        if not guards:
            return None
        if len(guards) == 1 and guards[0][0] == handler.name:  # which a compiled gate may be
            return guards[0][1]
        from fastrpc.engine.guards import guarded_by

        return guarded_by(guards)

    def _recheck_of(self, tool: Tool) -> Callable[[Any], object] | None:
        """Return the function that has all guards decide again about changed arguments; None: none does."""
        rechecks = [
            (name, each) for name, state in self._state.mount_path_of(tool) for each in state.rechecks
        ]
        if not rechecks:
            return None
        from fastrpc.engine.guards import rechecked_by

        return rechecked_by(rechecks)

    def _recorder_of(self, handler: Handler) -> Recorder | None:
        """Return what records a handler's calls; None if no server on its mount path has observers."""
        observed = any(state.is_observed for _, state in self._state.mount_path_of(handler))
        return self._state.recorder if observed else None


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

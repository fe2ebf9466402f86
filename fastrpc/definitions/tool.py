"""Definitions of tools: what ``@tool`` creates.

`tool` marks a function and returns it unchanged. A `Tool` is validated when it is decorated, so that its
author sees mistakes at once. Tools with plain types cost no imports. Finding the marked functions of a module
or a command-line target is left to `fastrpc.loader`, calling tools to the dispatcher. No tool is
named here.
"""

from __future__ import annotations

from fastrpc.definitions.handler import RUNS, DescribedHandler, is_async, made
from fastrpc.errors import DefinitionError
from fastrpc.protocol.versions import known
from fastrpc.schema import describe
from fastrpc.tool_style import PLAIN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal, TypeVar, overload

    from typing_extensions import Unpack

    from fastrpc.options import Effect, Icon, Place, Risk, TaskSupport, ToolAnnotations, ToolOptions
    from fastrpc.schema import Signature
    from fastrpc.tool_style import ToolStyle

    Function = TypeVar("Function", bound=Callable[..., Any])

MARK = "__fastrpc_tool__"

EFFECTS: dict[str, ToolAnnotations] = {
    "read": {"readOnlyHint": True},
    "network": {"readOnlyHint": True, "openWorldHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False},
    "exec": {"destructiveHint": True, "openWorldHint": True},
}
"""The MCP annotations for each effect (MCP, tools: ToolAnnotations)."""
RISKS = ("none", "low", "medium", "high", "critical")
"""What a tool may say of the risk of its calls, the least first; see docs/guard.md."""

_HINTS: dict[str, type] = {
    "title": str,
    "readOnlyHint": bool,
    "destructiveHint": bool,
    "idempotentHint": bool,
    "openWorldHint": bool,
}
_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_NAME_LIMIT = 128
_UNIT_LIMIT = 32
MEASURED = frozenset(("call", "second", "minute", "hour", "byte", "kb", "mb", "gb", "kib", "mib", "gib"))
"""Units of budgets that the guard measures by itself."""
MOST_COSTS = 100_000_000
"""Of one call in one unit."""
_TASK_SUPPORT = {"allowed": "optional", "required": "required"}
"""In the words of MCP 2025-11-25 (ToolExecution)."""
_warned_of: set[str] = set()  # a definition is made anew for each server that it is mounted in


def known_tool(entry: dict[str, Any], version: str) -> dict[str, Any]:
    """Return a descriptor as a version knows it: one without titles has the title in the annotations."""
    found = known("Tool", entry, version)
    title = entry.get("title")
    if title is None or "title" in found:
        return found
    annotations = {"title": title, **(entry.get("annotations") or {})}
    return known("Tool", {**entry, "annotations": annotations}, version)


class Tool(DescribedHandler):
    """A function and its options as a tool. Raises `DefinitionError` for an invalid definition."""

    kind = "tool"
    places = "auto, inline, thread, process, or an Executor"
    forwarder: Any = None
    """What sends its calls to an upstream server, a `CallForwarder`; None: its function is called."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        title: str | None = None,
        effect: Effect | None = None,
        run: Place = "auto",
        timeout_seconds: float | None = None,
        max_running: int | None = None,
        max_memory: int | None = None,
        input_schema: dict[str, Any] | None = None,
        documents: Mapping[str, Any] | None = None,
        json_schema_extra: dict[str, Any] | None = None,
        annotations: ToolAnnotations | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        structured: bool | Literal["wrapped"] = True,
        style: ToolStyle = PLAIN,
        costs: Mapping[str, float] | None = None,
        risk: Risk | None = None,
        task: TaskSupport | None = None,
        after_seconds: float | None = None,
        resumable: bool = False,
    ) -> None:
        super().__init__(
            function,
            name=name,
            title=title,
            description=description,
            icons=icons,
            meta=meta,
            run=run,
            timeout_seconds=timeout_seconds,
            max_running=max_running,
        )
        self.max_memory = max_memory
        self._offload()
        self.effect: Effect | None = effect
        self.annotations: ToolAnnotations = {**EFFECTS.get(effect or "", {}), **(annotations or {})}
        self._input_schema = input_schema
        self._documents = documents
        self._schema_extra = json_schema_extra
        self._structured = structured
        self.style = style
        self.costs = costs
        self.risk: Risk | None = risk
        self.task: TaskSupport | None = task
        self.after_seconds = after_seconds
        self.resumable = resumable
        self._check_options()
        self.describe_early()

    def _offload(self) -> None:
        """Have the function called in a process or on an Executor, if `run` says so. Raises
        DefinitionError."""
        if self.run not in RUNS or self.max_memory is not None:
            from fastrpc.definitions import offloaded

            offloaded.check_memory(self)
            if self.run not in RUNS:
                offloaded.offload(self)

    @classmethod
    def of(cls, thing: object, options: dict[str, Any]) -> Tool:
        """Return the tool of a tool, a marked or a plain function. Raises `DefinitionError`."""
        mark: Any = getattr(thing, MARK, None)
        if options or mark is None:
            return super().of(thing, options)
        found: Tool = mark.bound_to(thing) if hasattr(thing, "__self__") else mark
        return found

    def _runs_elsewhere(self) -> bool:
        from fastrpc.definitions.offloaded import is_executor

        return self.run == "process" or is_executor(self.run)

    def _check_options(self) -> None:
        name = self.name
        if not isinstance(name, str) or not 0 < len(name) <= _NAME_LIMIT or not _NAME.issuperset(name):
            self._refuse_name()
        if self.effect is not None and self.effect not in EFFECTS:
            raise self.error(f"effect={self.effect!r} is not one of {', '.join(EFFECTS)}")
        if self.risk is not None and self.risk not in RISKS:
            raise self.error(f"risk={self.risk!r} is not one of {', '.join(RISKS)}")
        for hint, value in self.annotations.items():
            if hint in _HINTS and not isinstance(value, _HINTS[hint]):
                raise self.error(f"annotations: {hint}={value!r:.80} is no {_HINTS[hint].__name__}")
        if self.costs is not None:
            self._check_costs(self.costs)
        self._check_task()

    def _check_task(self) -> None:
        if self.task not in (None, "allowed", "required"):
            raise self.error(f"task={self.task!r} is not one of allowed, required")
        seconds = self.after_seconds
        if seconds is not None:
            is_number = isinstance(seconds, int | float) and not isinstance(seconds, bool)
            if not is_number or not seconds >= 0:
                raise self.error(f"after_seconds={seconds!r} is not a number from 0")
            if self.task is None:
                raise self.error('after_seconds= is for tools with task="allowed" or task="required"')
        if self.resumable and self.task is None:
            raise self.error('resumable= is for tools with task="allowed" or task="required"')

    @property
    def offers_tasks(self) -> bool:
        """Whether clients may get tasks. One that only allows them has none where they cannot be stored."""
        if self.task != "allowed":
            return self.task is not None
        from fastrpc.installed import can_store_tasks

        return can_store_tasks()

    def _check_costs(self, costs: Any) -> None:
        if not isinstance(costs, dict):
            raise self.error(f'costs: expected a dict such as {{"tokens": 5}}, got {costs!r:.80}')
        for unit, amount in costs.items():
            is_name = isinstance(unit, str) and unit.isascii() and unit.isidentifier() and unit[0] != "_"
            if not is_name or unit != unit.lower() or len(unit) > _UNIT_LIMIT:
                raise self.error(f"costs: expected a unit such as tokens, in lower case, got {unit!r:.80}")
            if unit in MEASURED or unit.removesuffix("s") in MEASURED:
                raise self.error(f"costs: {unit} are measured, and cannot be declared")
            is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
            if not is_number or not 0 <= amount <= MOST_COSTS:
                most = f"{MOST_COSTS:,}"
                raise self.error(f"costs: {unit}: expected a number from 0 to {most}, got {amount!r:.80}")

    def _refuse_name(self) -> None:
        """Raise DefinitionError for the name, or warn of it (MCP, tools: tool names)."""
        problem = f"cannot be a tool's name, which has 1 to {_NAME_LIMIT} of the characters A-Z a-z 0-9 _ . -"
        if self.style.checks_names or not isinstance(self.name, str) or not self.name:
            raise self.error(f"{problem}; give name=")
        if self.name not in _warned_of:
            from fastrpc import diagnostics

            _warned_of.add(self.name)
            diagnostics.write("warning", f"{self.name!r:.150} {problem}; some clients refuse it")

    def describe(self) -> Signature:
        signature = describe(
            self.function,
            input_schema=self._input_schema,
            documents=self._documents,
            structured=self._structured,
            explicit_nulls=self.style.explicit_nulls,
            structures_texts=self.style.structures_texts,
            aliases_results=self.style.aliases_results,
            marks_wrapping=self.style.marks_wrapping,
        )
        if self._schema_extra is not None:
            signature.input_schema = merged(signature.input_schema, self._schema_extra)
        return signature

    def descriptor(self, version: str) -> dict[str, Any]:
        """Return the tool's entry in ``tools/list``, with the members that a protocol version has."""
        signature = self.signature
        entry: dict[str, Any] = {
            "name": self.name,
            "title": self.title,
            "description": self.description or None,
            "inputSchema": signature.input_schema,
            "outputSchema": signature.output_schema,
            "annotations": self.annotations or None,
            "icons": self.icons,
            "execution": {"taskSupport": _TASK_SUPPORT[self.task or ""]} if self.offers_tasks else None,
            "_meta": self.meta or None,
        }
        return known_tool(entry, version)

    def bound_to(self, function: Callable[..., Any]) -> Tool:
        """Return this tool for a bound method: in a class body, `@tool` can only mark functions."""
        from copy import copy

        bound = copy(self)
        bound.function = function
        bound.is_async = is_async(function)
        bound._check_run()
        bound._offload()
        bound._signature = None
        bound.describe_early()
        return bound


if TYPE_CHECKING:

    @overload
    def tool(function: Function, /) -> Function: ...
    @overload
    def tool(function: None = None, /, **options: Unpack[ToolOptions]) -> Callable[[Function], Function]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a function as a tool: ``@tool`` or ``@tool(effect="read", …)``. Returns the function unchanged.

    `name`, `description`, `title`: what clients show; by default the function's name and docstring. `effect`:
    ``read``, ``write``, ``network`` or ``exec``; sets the MCP annotations, to which `annotations` can add.
    `run`: where a synchronous function runs, ``auto``, ``inline``, ``thread``, ``process`` (docs/scale.md) or
    a `concurrent.futures.Executor`. `timeout_seconds` and `max_running` limit its calls, `max_memory` the
    bytes of such a process. `input_schema`: a JSON Schema instead of annotations, with the `documents`
    (URI to schema) that it refers to. `json_schema_extra`: members that are added to the published schema, or
    replace members of it; they do not change which arguments are accepted. `icons`: objects with a ``src``
    (MCP 2025-11-25: Icon). `meta`: the descriptor's ``_meta``. `structured=False`: results are text only;
    ``"wrapped"``: structured content is always ``{"result": …}``. `style`: see `fastrpc.tool_style`. `costs`:
    what a call costs, in units of your own, for the budgets of a guard; 0 for one that says it by
    `Context.spend`. `risk`: ``none`` to ``critical``, for a guard, where the effect's own is not right.
    Raises `DefinitionError`.
    """
    if function is None:
        return lambda function: tool_with(function, options)
    return tool_with(function, options)


def merged(schema: dict[str, Any], extra: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with additional members; objects are merged, any other member is replaced."""
    found = dict(schema)
    for key, value in extra.items():
        present = found.get(key)
        found[key] = (
            merged(present, value) if isinstance(value, dict) and isinstance(present, dict) else value
        )
    return found


def tool_with(function: Any, options: dict[str, Any]) -> Any:
    mark = made(Tool, function, options)
    try:
        setattr(function, MARK, mark)
    except AttributeError:
        cure = "add it to a server instead, server.add_tool(…)"
        raise DefinitionError(f"{mark.name}: a {type(function).__name__} cannot be marked; {cure}") from None
    return function

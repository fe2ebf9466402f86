"""What ``@tool`` leaves behind, and the ordered set of tools that a server serves.

`tool` marks a function and gives it back unchanged; `collect` finds the marks of a module or
package, `load_target` those of a file, module or attribute named on the command line. A `Tool` is
judged while it is decorated: whoever writes a tool hears of a mistake at once. Costs no import for
tools of plain types. Running tools is left to the dispatcher; nothing here knows one by name.
"""

from __future__ import annotations

from fastrpc.errors import DefinitionError
from fastrpc.schema import describe
from fastrpc.schema_annotations import UnresolvedName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any, Literal, TypeVar, overload

    from fastrpc.schema import Signature

    Effect = Literal["read", "write", "network", "exec"]
    Run = Literal["auto", "inline", "thread"]
    Function = TypeVar("Function", bound=Callable[..., Any])

MARK = "__fastrpc_tool__"

EFFECTS: dict[str, dict[str, bool]] = {
    "read": {"readOnlyHint": True},
    "network": {"readOnlyHint": True, "openWorldHint": True},
    "write": {"readOnlyHint": False, "destructiveHint": False},
    "exec": {"destructiveHint": True, "openWorldHint": True},
}
"""What clients are told of each effect (MCP, tool annotations)."""

_NAME = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-")
_NAME_LIMIT = 128
_COROUTINE = 0x80


class Tool:
    """A function and all that was said of it. Raises `DefinitionError` for what cannot be a tool."""

    __slots__ = (
        "_documents",
        "_input_schema",
        "_signature",
        "_structured",
        "annotations",
        "description",
        "effect",
        "function",
        "is_async",
        "max_running",
        "meta",
        "name",
        "run",
        "timeout_seconds",
        "title",
    )

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        title: str | None = None,
        effect: Effect | None = None,
        run: Run = "auto",
        timeout_seconds: float | None = None,
        max_running: int | None = None,
        input_schema: dict[str, Any] | None = None,
        documents: Mapping[str, Any] | None = None,
        annotations: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
        structured: bool = True,
    ) -> None:
        if isinstance(function, staticmethod):
            function = function.__func__
        self.function = function
        self.name = name if name is not None else _name_of(function)
        if not callable(function):
            raise self._error("is not callable; decorate a function")
        self.description = clean_docstring(_docstring_of(function) if description is None else description)
        self.title = title
        self.effect = effect
        self.run = run
        self.timeout_seconds = timeout_seconds
        self.max_running = max_running
        self.annotations = {**EFFECTS.get(effect or "", {}), **(annotations or {})}
        self.meta = meta
        self.is_async = _is_async(function)
        self._input_schema = input_schema
        self._documents = documents
        self._structured = structured
        self._signature: Signature | None = None
        self._check_options()
        if not _is_unbound_method(function):
            try:
                self._signature = self._describe()
            except UnresolvedName:  # it may be defined further down; `signature` asks again
                pass

    def _check_options(self) -> None:
        name = self.name
        if not isinstance(name, str) or not 0 < len(name) <= _NAME_LIMIT or not _NAME.issuperset(name):
            allowed = f"1 to {_NAME_LIMIT} of the characters A-Z a-z 0-9 _ . -"
            raise self._error(f"cannot be a tool's name, which has {allowed}; give name=")
        if self.effect is not None and self.effect not in EFFECTS:
            raise self._error(f"effect={self.effect!r} is none of {', '.join(EFFECTS)}")
        if self.run not in ("auto", "inline", "thread"):
            raise self._error(f"run={self.run!r} is none of auto, inline, thread")
        if self.is_async and self.run != "auto":
            raise self._error(f"run={self.run!r} is for synchronous functions; leave it out")
        limit = self.timeout_seconds
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit > 0
        ):
            raise self._error(f"timeout_seconds={limit!r} is not a number above 0; leave it out for no limit")
        most = self.max_running
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise self._error(f"max_running={most!r} is not an integer above 0; leave it out for no limit")

    def _error(self, problem: str) -> DefinitionError:
        code = getattr(self.function, "__code__", None)
        place = f" ({code.co_filename.rpartition('/')[2]}, line {code.co_firstlineno})" if code else ""
        return DefinitionError(f"{self.name}{place}: {problem}")

    def _describe(self) -> Signature:
        return describe(
            self.function,
            input_schema=self._input_schema,
            documents=self._documents,
            structured=self._structured,
        )

    @property
    def signature(self) -> Signature:
        """How the function is called. Raises `DefinitionError` if an annotation is still undefined."""
        if self._signature is None:
            self._signature = self._describe()
        return self._signature

    def descriptor(self, version: str) -> dict[str, Any]:
        """Return the tool's entry in ``tools/list``, with the fields that a protocol version knows.

        MCP: `annotations` came with 2025-03-26, where the title is one of them; `title`,
        `outputSchema` and `_meta` came with 2025-06-18.
        """
        signature = self.signature
        entry: dict[str, Any] = {"name": self.name}
        modern = version >= "2025-06-18"
        if self.title is not None and modern:
            entry["title"] = self.title
        if self.description:
            entry["description"] = self.description
        entry["inputSchema"] = signature.input_schema
        if signature.output_schema is not None and modern:
            entry["outputSchema"] = signature.output_schema
        if version >= "2025-03-26":
            annotations = dict(self.annotations)
            if self.title is not None and not modern:
                annotations.setdefault("title", self.title)
            if annotations:
                entry["annotations"] = annotations
        if self.meta and modern:
            entry["_meta"] = self.meta
        return entry

    def bound_to(self, function: Callable[..., Any]) -> Tool:
        """Return this tool for the method of one object: a class can only mark its functions."""
        return Tool(
            function,
            name=self.name,
            description=self.description or "",
            title=self.title,
            effect=self.effect,
            run=self.run,
            timeout_seconds=self.timeout_seconds,
            max_running=self.max_running,
            input_schema=self._input_schema,
            documents=self._documents,
            annotations=self.annotations,
            meta=self.meta,
            structured=self._structured,
        )

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"


if TYPE_CHECKING:

    @overload
    def tool(function: Function, /) -> Function: ...
    @overload
    def tool(
        function: None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        title: str | None = None,
        effect: Effect | None = None,
        run: Run = "auto",
        timeout_seconds: float | None = None,
        max_running: int | None = None,
        input_schema: dict[str, Any] | None = None,
        documents: Mapping[str, Any] | None = None,
        annotations: dict[str, Any] | None = None,
        meta: dict[str, Any] | None = None,
        structured: bool = True,
    ) -> Callable[[Function], Function]: ...


def tool(function: Any = None, /, **options: Any) -> Any:
    """Mark a function as a tool: ``@tool`` or ``@tool(effect="read", …)``. The function stays as it is.

    `name`, `description`, `title`: what clients show; the function's name and docstring unless given.
    `effect`: ``read``, ``write``, ``network`` or ``exec``; sets the MCP annotations, which `annotations`
    can add to. `run`: where a synchronous function runs, ``auto``, ``inline`` or ``thread``.
    `timeout_seconds` and `max_running` bound its calls. `input_schema`: a JSON Schema instead of
    annotations, with the `documents` (URI to schema) that it refers to. `meta`: the descriptor's
    ``_meta``. `structured=False`: results are text only. Raises `DefinitionError`.
    """
    if function is None:
        return lambda function: tool_with(function, options)
    return tool_with(function, options)


def tool_with(function: Any, options: dict[str, Any]) -> Any:
    mark = Tool(function, **options)
    try:
        setattr(function, MARK, mark)
    except AttributeError:
        cure = "add it to a server instead, server.add_tool(…)"
        raise DefinitionError(f"{mark.name}: a {type(function).__name__} cannot be marked; {cure}") from None
    return function


class Registry:
    """The tools of a server, in the order they were added, one of each name.

    `on_change` is called after each change, for whoever keeps lists or plans made from them.
    """

    __slots__ = ("_tools", "on_change")

    def __init__(self) -> None:
        self._tools: dict[str, Tool] = {}
        self.on_change: Callable[[], object] | None = None

    def add(self, tool: Any, **options: Any) -> Tool:
        """Add a `Tool`, a marked function, or any function with the options of `tool`.

        Raises `DefinitionError` for a function that cannot be a tool, and for a name that is taken.
        """
        added = _tool_of(tool, options)
        present = self._tools.get(added.name)
        if present is not None:
            raise DefinitionError(
                f"{added.name}: there is a tool of this name already ({_place_of(present)}); give name="
            )
        self._tools[added.name] = added
        self._changed()
        return added

    def remove(self, name: str) -> None:
        """Remove a tool; raises KeyError if there is none of this name."""
        del self._tools[name]
        self._changed()

    def get(self, name: str) -> Tool | None:
        return self._tools.get(name)

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def __len__(self) -> int:
        return len(self._tools)

    def __contains__(self, name: object) -> bool:
        return name in self._tools


def _tool_of(tool: Any, options: dict[str, Any]) -> Tool:
    if isinstance(tool, Tool):
        if options:
            raise DefinitionError(f"{tool.name}: a Tool has its options already; add the function instead")
        return tool
    mark = getattr(tool, MARK, None)
    if options or mark is None:
        return Tool(tool, **options)
    found: Tool = mark
    return found.bound_to(tool) if hasattr(tool, "__self__") else found


def load_target(target: str) -> Any:
    """Return what ``fastrpc serve TARGET`` serves: a Server, or a list of tools.

    `target` is ``file.py``, ``module`` or either with ``:attribute``. See `fastrpc.targets`.
    """
    from fastrpc.targets import load_target

    return load_target(target)


def collect(module: Any) -> list[Tool]:
    """Return the marked tools of a module, or of a package and its submodules. See `fastrpc.targets`."""
    from fastrpc.targets import collect

    return collect(module)


# ----------------------------------------------------------------------------- facts about functions


def _name_of(function: Any) -> str:
    while type(function).__name__ == "partial":
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def _place_of(tool: Tool) -> str:
    function = tool.function
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', tool.name)}"


def _docstring_of(function: Any) -> str | None:
    while type(function).__name__ == "partial":
        function = function.func
    document = function.__doc__
    if hasattr(function, "__code__"):
        return document if isinstance(document, str) else None
    return type(function).__call__.__doc__ or type(function).__doc__  # an object that can be called


def clean_docstring(text: str | None) -> str | None:
    """Return a docstring without its indentation and outer blank lines; None if nothing is left."""
    if not text:
        return None
    first, *others = text.expandtabs().splitlines() or [""]
    indents = [len(line) - len(line.lstrip()) for line in others if line.strip()]
    margin = min(indents, default=0)
    lines = [first.strip(), *(line[margin:].rstrip() for line in others)]
    return "\n".join(lines).strip() or None


def _is_async(function: Any) -> bool:
    """Whether a call gives a coroutine: of the function itself, or of the one that it wraps."""
    while True:
        code = getattr(function, "__code__", None)
        if code is not None and code.co_flags & _COROUTINE:
            return True
        if hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        elif type(function).__name__ == "partial":
            function = function.func
        elif code is None and hasattr(type(function).__call__, "__code__"):
            function = type(function).__call__
        else:
            return False


def _is_unbound_method(function: Any) -> bool:
    """Whether a function was decorated in a class body: it is described once it belongs to an object."""
    code = getattr(function, "__code__", None)
    if code is None or hasattr(function, "__self__"):
        return False
    owner = function.__qualname__.rpartition(".")[0]
    first = code.co_varnames[0] if code.co_argcount else ""
    return (
        bool(owner)
        and not owner.endswith("<locals>")
        and first == "self"
        and first not in function.__annotations__
    )

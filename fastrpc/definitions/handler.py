"""What tools, resources, prompts and completions have in common: a function that serves requests.

A `Handler` has the function, its signature, and how it may run. It is validated when it is decorated, so that
its author sees mistakes at once. Functions with plain types cost no imports. Calling the function is left to
`fastrpc.engine.call`.
"""

from __future__ import annotations

from fastrpc.errors import DefinitionError, Reworded, suggest
from fastrpc.schema import describe
from fastrpc.schema.annotations import UnresolvedName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeVar

    from typing_extensions import Self

    from fastrpc.options import Icon, Place
    from fastrpc.schema import Signature

    Made = TypeVar("Made", bound="Handler")

RUNS = ("auto", "inline", "thread")
"""Where a synchronous function may run in the process that serves."""
_COROUTINE = 0x80


class Handler:
    """A function and how it may run. Raises `DefinitionError` for an invalid definition.

    `name` is unique among the handlers of one kind. `run` says where a synchronous function runs: ``auto``,
    ``inline`` or ``thread``. `timeout_seconds` and `max_running` limit its calls.
    """

    kind = "handler"
    """The kind of handler, as messages name it."""
    places = ", ".join(RUNS)
    """What `run` may be, as messages name it."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        run: Place = "auto",
        timeout_seconds: float | None = None,
        max_running: int | None = None,
    ) -> None:
        if isinstance(function, staticmethod):
            function = function.__func__
        self.function = function
        self.name = name if name is not None else name_of(function)
        if not callable(function):
            raise self._no_function(function)
        self.is_async = is_async(function)
        self.run: Place = run
        self.timeout_seconds = timeout_seconds
        self.max_running = max_running
        self.origin: tuple[tuple[Any, str], ...] = ()
        """The servers in which it is mounted, the innermost first, each with its name there."""
        self._signature: Signature | None = None
        self._check_run()

    @classmethod
    def of(cls, thing: object, options: dict[str, Any]) -> Self:
        """Return a handler unchanged, or make one of a function and options. Raises `DefinitionError`."""
        if not isinstance(thing, cls):
            return made(cls, thing, options)
        if options:
            raise DefinitionError(
                f"{thing.name}: a {cls.__name__} has its options already; add the function instead"
            )
        return thing

    @property
    def key(self) -> str:
        """The key of its registry."""
        return self.name

    def describe_early(self) -> None:
        """Read the signature now, unless it is an unbound method or an annotation is not defined yet."""
        if not is_unbound_method(self.function):
            try:
                self._signature = self.describe()
            except UnresolvedName:  # it may be defined further down; `signature` tries again
                pass

    def describe(self) -> Signature:
        return describe(self.function, structured=False)

    @property
    def signature(self) -> Signature:
        """The signature of the function. Raises `DefinitionError` if an annotation is still undefined."""
        if self._signature is None:
            self._signature = self.describe()
        return self._signature

    def settle(self) -> None:
        """Read the signature if it is unread. Raises `DefinitionError` if an annotation is undefined."""
        self.signature  # noqa: B018  # it is read where it is first asked for

    def _check_run(self) -> None:
        if self.run not in RUNS and not self._runs_elsewhere():
            raise self.error(f"run={self.run!r:.60} is not one of {self.places}")
        if self.is_async and self.run != "auto":
            raise self.error(f"run={self.run!r:.60} is for synchronous functions; leave it out")
        limit = self.timeout_seconds
        if limit is not None and (
            isinstance(limit, bool) or not isinstance(limit, (int, float)) or not limit > 0
        ):
            raise self.error(f"timeout_seconds={limit!r} is not a number above 0; leave it out for no limit")
        most = self.max_running
        if most is not None and (isinstance(most, bool) or not isinstance(most, int) or most < 1):
            raise self.error(f"max_running={most!r} is not an integer above 0; leave it out for no limit")

    def _runs_elsewhere(self) -> bool:
        """Whether `run` names a place out of the process that serves, where this kind of handler may run."""
        return False

    def _no_function(self, thing: Any) -> DefinitionError:
        if isinstance(thing, str):
            return DefinitionError(
                f"{self.kind}: expected a function, got {thing!r:.60}; for a name write name={thing!r:.60}"
            )
        if isinstance(thing, classmethod):
            return self.error("is a classmethod; add it below its class, which it is bound to: Class.method")
        return self.error("is not callable; decorate a function")

    def error(self, problem: str) -> DefinitionError:
        """Return the error for the author of the function: what is wrong, and where it is defined."""
        return DefinitionError(f"{self.name}{_line_of(self.function)}: {problem}")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


class DescribedHandler(Handler):
    """A handler with a description for clients, by default the function's docstring."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        icons: list[Icon] | None = None,
        meta: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(function, name=name, **options)
        document = docstring_of(self.function) if description is None else description
        self.description = clean_docstring(document)
        self.title = title
        self.icons = icons
        self.meta = meta
        if meta:
            from fastrpc.content import checked_meta

            with Reworded(ValueError, self.error):
                checked_meta(meta)


def made(kind: type[Made], thing: Any, options: dict[str, Any]) -> Made:
    """Return ``kind(thing, **options)``. Raises DefinitionError for an unknown option, with a suggestion."""
    known = _options_of(kind) if options else ()
    for option in options:
        if option not in known:
            near = suggest(option, known, 1)
            hint = f"did you mean {near[0]}=?" if near else f"the options are {', '.join(known)}"
            raise DefinitionError(f"{name_of(thing)}{_line_of(thing)}: there is no option {option}=; {hint}")
    if options:
        from fastrpc.definitions.option_types import check

        check(f"{name_of(thing)}{_line_of(thing)}", options)
    return kind(thing, **options)


_options: dict[type[Handler], list[str]] = {}


def _options_of(kind: type[Handler]) -> list[str]:
    """Return the keyword arguments of a kind of handler."""
    known = _options.get(kind)
    if known is None:
        known = _options[kind] = []
        for each in kind.__mro__:
            code = getattr(each.__dict__.get("__init__"), "__code__", None)
            if code is not None:
                names = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
                known += [name for name in names if name not in known]
    return known


def _line_of(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return f" ({code.co_filename.rpartition('/')[2]}, line {code.co_firstlineno})" if code else ""


# ----------------------------------------------------------------------------- facts about functions


def name_of(function: Any) -> str:
    while type(function).__name__ == "partial":
        function = function.func
    return str(getattr(function, "__name__", type(function).__name__))


def place_of(function: Any) -> str:
    """Return where a function is defined, for a message."""
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', name_of(function))}"


def docstring_of(function: Any) -> str | None:
    while type(function).__name__ == "partial":
        function = function.func
    document = function.__doc__
    if hasattr(function, "__code__"):
        return document if isinstance(document, str) else None
    return type(function).__call__.__doc__ or type(function).__doc__  # a callable object


def clean_docstring(text: str | None) -> str | None:
    """Return a docstring without indentation and outer blank lines; None if nothing is left."""
    if not text:
        return None
    first, *others = text.expandtabs().splitlines() or [""]
    indents = [len(line) - len(line.lstrip()) for line in others if line.strip()]
    margin = min(indents, default=0)
    lines = [first.strip(), *(line[margin:].rstrip() for line in others)]
    return "\n".join(lines).strip() or None


def is_async(function: Any) -> bool:
    """Whether a call returns an awaitable, of the function itself or of the one that it wraps."""
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


def is_unbound_method(function: Any) -> bool:
    """Whether a function was decorated in a class body. It is described once it is bound to an object."""
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

"""Values that functions receive besides the client's arguments: `Depends` of FastMCP and its siblings; and
the running call for functions without a parameter for it: `get_context`.

A function with such parameters runs as a coroutine that makes their values first; a synchronous one runs on a
worker thread after that. Importing this module has the plans of all calls store the running call, a fraction
of a microsecond each; files that name nothing of it do not import it. The SDK's own kind of dependencies,
`Resolve`, is in `fastrpc.compat.sdk2.resolvers`.
"""

from __future__ import annotations

import sys
from contextlib import AsyncExitStack
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, TypeVar

from fastrpc import running_call
from fastrpc.compat.context import Context
from fastrpc.compat.functions.parameters import Injected, Made, defaults_of, dependency_of
from fastrpc.compat.http.headers import get_http_headers, get_http_request
from fastrpc.context import Context as PlainContext
from fastrpc.definitions.handler import is_async, name_of
from fastrpc.errors import DefinitionError, ToolError
from fastrpc.schema.annotations import peel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from typing import overload

    from typing_extensions import Self

    from fastrpc.compat.functions.parameters import Needs

Value = TypeVar("Value", covariant=True)

running_call.keep(__name__)


# ----------------------------------------------------------------------------------- the running call


def get_context() -> Context:
    """Return the Context of the running call. Raises RuntimeError outside of calls."""
    call = running_call.current()
    if call is None:
        raise RuntimeError("No active context found.")
    return Context(call, call.server)


def context_of(server: Any) -> Context:
    """Return the Context of the running call; outside of calls one that reaches no client."""
    call = running_call.current()
    return Context(PlainContext() if call is None else call, server)


def get_server() -> Any:
    """Return the server of the running call. Raises RuntimeError outside of calls."""
    return get_context().fastmcp


def current_token() -> Any:
    """Return the access token of the running call's request; None where there is none."""
    access = sys.modules.get("fastrpc.compat.auth.access")  # imported by what checks tokens
    return None if access is None else access.get_access_token()


# ----------------------------------------------------------------------------------- dependencies


class Dependency(Injected, Generic[Value]):
    """The default of a parameter whose value is made in each call: what ``__aenter__`` returns.

    ``__aexit__`` is called when the call has ended, in reverse order.
    """

    single = False

    async def __aenter__(self) -> Value:
        raise NotImplementedError(f"{type(self).__name__} has no __aenter__")

    async def __aexit__(self, *exception: Any) -> None:
        return None


class FromFactory(Dependency[Value]):
    """What `Depends` returns."""

    is_metadata = True

    def __init__(self, factory: Callable[..., Any], bindings: dict[str, Any]) -> None:
        self.factory = factory
        self.bindings = bindings

    @property
    def key(self) -> Any:
        """Equal for dependencies that have one value in a call."""
        return self.factory, *((name, id(value)) for name, value in sorted(self.bindings.items()))


class _Called(Dependency[Value]):
    """The value of a function without parameters, called in each call."""

    def __init__(self, function: Callable[[], Value]) -> None:
        self._function = function

    async def __aenter__(self) -> Value:
        return self._function()


if TYPE_CHECKING:

    @overload
    def Depends(factory: Callable[..., AbstractAsyncContextManager[Value]], **bindings: Any) -> Value: ...
    @overload
    def Depends(factory: Callable[..., AbstractContextManager[Value]], **bindings: Any) -> Value: ...
    @overload
    def Depends(factory: Callable[..., Awaitable[Value]], **bindings: Any) -> Value: ...
    @overload
    def Depends(factory: Callable[..., Value], **bindings: Any) -> Value: ...


def Depends(factory: Callable[..., Any], **bindings: Any) -> Any:
    """Declare a parameter's value: what `factory` returns, called once in each call.

    It may be a coroutine function; a context manager that it returns is entered, and left when the call has
    ended. Its own parameters may have dependencies as defaults; `bindings` are its other arguments.
    """
    return FromFactory(factory, bindings)


def CurrentContext() -> Context:
    """Declare a parameter that receives the Context."""
    return _Called(get_context)  # type: ignore[return-value]


def OptionalCurrentContext() -> Context | None:
    """Declare a parameter that receives the Context, or None outside of calls."""
    return _Called(lambda: get_context() if running_call.current() else None)  # type: ignore[return-value]


def CurrentFastMCP() -> Any:
    """Declare a parameter that receives the server."""
    return _Called(get_server)


def CurrentRequest() -> Any:
    """Declare a parameter that receives the HTTP request; the call fails where there is none."""
    return _Called(get_http_request)


def CurrentHeaders() -> dict[str, str]:
    """Declare a parameter that receives the headers of the HTTP request; an empty dict over stdio."""
    return _Called(lambda: get_http_headers(include={"authorization"}))  # type: ignore[return-value]


def CurrentAccessToken() -> Any:
    """Declare a parameter that receives the access token; the call fails where there is none."""
    return _Called(_required_token)


def TokenClaim(name: str) -> str:
    """Declare a parameter that receives a claim of the access token; the call fails where there is none."""

    def claim() -> str:
        claims = getattr(_required_token(), "claims", None) or {}
        if name not in claims:
            raise RuntimeError(
                f"the access token has no claim {name!r}; it has {', '.join(claims) or 'none'}"
            )
        return str(claims[name])

    return _Called(claim)  # type: ignore[return-value]


def _required_token() -> Any:
    token = current_token()
    if token is None:
        raise RuntimeError("the request has no access token")
    return token


class Progress(Dependency["Progress"]):
    """Counts what a call has done; each step is reported to a client that has asked for progress."""

    def __init__(self) -> None:
        self.current: int | None = None
        self.total = 1
        self.message: str | None = None
        self._context: PlainContext | None = None

    async def __aenter__(self) -> Self:
        own = type(self)()  # the default is shared by all calls
        own._context = running_call.current()
        return own

    async def set_total(self, total: int) -> None:
        """Set the number of steps. Raises ValueError below 1."""
        if total < 1:
            raise ValueError("Total must be at least 1")
        self.total = total

    async def increment(self, amount: int = 1) -> None:
        """Count steps. Raises ValueError below 1."""
        if amount < 1:
            raise ValueError("Amount must be at least 1")
        self.current = (self.current or 0) + amount
        if self._context is not None:
            self._context.progress(self.current, self.total, self.message)

    async def set_message(self, message: str | None) -> None:
        """Set the text of the next report."""
        self.message = message


# ----------------------------------------------------------------------------------- making the values


class Resolution:
    """The values of one call's dependencies: each is made once."""

    def __init__(self, stack: AsyncExitStack, arguments: dict[str, Any], context: Context) -> None:
        self.arguments = arguments
        self.context = context
        self.outcomes: dict[Any, Any] = {}
        """What the SDK's resolvers have returned."""
        self._stack = stack
        self._values: dict[Any, Any] = {}

    async def value(self, dependency: Any) -> Any:
        """Return the value of a dependency."""
        if not isinstance(dependency, FromFactory):
            if hasattr(dependency, "resolved"):  # the SDK's
                return await dependency.resolved(self)
            return await self._stack.enter_async_context(dependency)
        if dependency.key not in self._values:
            given = {name: await self._bound(value) for name, value in dependency.bindings.items()}
            self._values[dependency.key] = await self._made(dependency.factory, given)
        return self._values[dependency.key]

    async def in_thread(self, function: Callable[..., Any], given: dict[str, Any]) -> Any:
        """Call a synchronous function on a worker thread."""
        return await _in_thread(partial(function, **given), self.context)

    async def _bound(self, value: Any) -> Any:
        return await self.value(value) if isinstance(value, Dependency) else value

    async def _made(self, factory: Callable[..., Any], given: dict[str, Any]) -> Any:
        for name, dependency in _dependencies_of(factory).items():
            if name not in given:
                given[name] = await self.value(dependency)
        made = factory(**given)
        if hasattr(made, "__aenter__") and hasattr(made, "__aexit__"):
            return await self._stack.enter_async_context(made)
        if hasattr(made, "__enter__") and hasattr(made, "__exit__"):
            return self._stack.enter_context(made)
        return await made if hasattr(made, "__await__") else made


def _dependencies_of(function: Any) -> dict[str, Any]:
    """Return the dependencies that a factory's own parameters declare."""
    while hasattr(function, "__wrapped__") or isinstance(function, partial):
        function = getattr(function, "__wrapped__", None) or function.func
    function = getattr(function, "__func__", function)
    if not hasattr(function, "__code__"):
        kind: Any = function
        made_by = kind.__init__ if isinstance(function, type) else type(function).__call__
        function = made_by if hasattr(made_by, "__code__") else None
    if function is None:
        return {}
    code, defaults = function.__code__, defaults_of(function)
    found = {}
    for name in code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]:
        annotation = function.__annotations__.get(name)
        dependency = dependency_of(annotation, defaults.get(name), function.__globals__)
        if dependency is None and _is_context(annotation, function.__globals__):
            dependency = CurrentContext()
        if dependency is not None:
            found[name] = dependency
    return found


def _is_context(annotation: Any, namespace: Mapping[str, Any]) -> bool:
    if annotation is None or (isinstance(annotation, str) and "Context" not in annotation):
        return False
    try:
        base = peel(annotation, namespace).base
    except DefinitionError:
        return False
    return isinstance(base, type) and issubclass(base, Context)


def with_dependencies(
    function: Any, needs: Needs, server: Any, convert: Callable[[Any], Any] | None
) -> Callable[..., Any]:
    """Return a coroutine function that makes the dependencies and calls `function`; `convert` turns its
    result into one of fastrpc."""
    runs_here = is_async(function)
    positional = [name for name in needs.names if name not in needs.dependencies]

    async def shim(*values: Any, **named: Any) -> Any:
        arguments = {**dict(zip(positional, values, strict=False)), **named}
        context = _context_among(arguments, server)
        arguments = {
            needs.renamed.get(name, name): context if isinstance(value, PlainContext) else _given(value)
            for name, value in arguments.items()
        }
        arguments.update(dict.fromkeys(needs.contexts, context))
        async with AsyncExitStack() as stack:
            resolution = Resolution(stack, dict(arguments), context)
            for name, dependency in needs.dependencies.items():
                arguments[name] = await _value_for(name, dependency, resolution, function)
            call = partial(function, **arguments)
            value = call() if runs_here else await _in_thread(call, context)
            if hasattr(value, "__await__"):
                value = await value
            return value if convert is None else convert(value)

    return shim


def _given(value: Any) -> Any:
    return value.factory() if type(value) is Made else value


def _context_among(arguments: dict[str, Any], server: Any) -> Context:
    for value in arguments.values():
        if isinstance(value, PlainContext):
            return Context(value, server)
    return context_of(server)


async def _value_for(name: str, dependency: Any, resolution: Resolution, function: Any) -> Any:
    try:
        return await resolution.value(dependency)
    except (ToolError, DefinitionError):
        raise
    except Exception as error:
        raise RuntimeError(f"Failed to resolve dependency {name!r} for {name_of(function)}") from error


async def _in_thread(call: Callable[[], Any], context: Context) -> Any:
    channel = context.inner._channel
    if channel is None:
        return call()
    return await channel.in_thread(partial(copy_context().run, call))

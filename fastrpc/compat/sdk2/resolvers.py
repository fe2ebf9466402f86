"""`Resolve` of the official SDK 2.x: values of parameters that a resolver makes, or asks the client for.

A resolver's own parameters are arguments of the tool by name, the Context, or values of other resolvers. It
returns a value, or what is to be requested: `Elicit`, `Sample`, `ListRoots`. Each resolver runs once in a
call, and again where an answer makes the handler run again (`fastrpc.Context.elicit`).
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

from fastrpc.compat.context import AcceptedElicitation, CancelledElicitation, Context, DeclinedElicitation
from fastrpc.compat.functions.parameters import Injected
from fastrpc.definitions.handler import is_async, name_of
from fastrpc.errors import DefinitionError, ToolError
from fastrpc.schema.annotations import peel, resolve

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from fastrpc.compat.functions.dependencies import Resolution

Model = TypeVar("Model")

ElicitationResult = AcceptedElicitation[Model] | DeclinedElicitation | CancelledElicitation
"""What the person has answered; a parameter of this type gets the refusals, too."""

_ANSWERS = (AcceptedElicitation, DeclinedElicitation, CancelledElicitation)


class Resolve(Injected):
    """In ``Annotated[T, Resolve(fn)]``: the parameter's value is what `fn` returns."""

    is_metadata = True

    def __init__(self, fn: Callable[..., Any]) -> None:
        self.fn = fn

    def declared(self, annotation: Any) -> Resolved:
        """Return the dependency of a parameter with this annotation."""
        kind = annotation.__origin__
        kinds = (kind, *getattr(kind, "__args__", ()))
        return Resolved(self, any(getattr(member, "__origin__", member) in _ANSWERS for member in kinds))


class Elicit(Generic[Model]):
    """Returned by a resolver: ask the person to fill in the form `schema`."""

    def __init__(self, message: str, schema: type[Model]) -> None:
        self.message = message
        self.schema = schema


class Sample:
    """Returned by a resolver: have the client's model continue `messages`."""

    def __init__(self, messages: list[Any], *, max_tokens: int, **options: Any) -> None:
        self.messages = messages
        self.max_tokens = max_tokens
        self.options = options


class ListRoots:
    """Returned by a resolver: request the client's roots."""


class Resolved:
    """A parameter whose value a resolver makes; `takes_answer`: it wants refusals of the person, too."""

    def __init__(self, marker: Resolve, takes_answer: bool) -> None:
        self.function = marker.fn
        self.takes_answer = takes_answer

    async def resolved(self, resolution: Resolution) -> Any:
        """Return the value. Raises ToolError if the person has refused."""
        outcome = await _outcome_of(self.function, resolution)
        if self.takes_answer:
            return outcome
        if isinstance(outcome, AcceptedElicitation):
            return outcome.data
        raise ToolError(f"{name_of(self.function)}: the person answered {outcome.action}")


async def _outcome_of(function: Any, resolution: Resolution) -> Any:
    """Run a resolver once, and return its value as an accepted answer, or the person's answer."""
    key = getattr(function, "__func__", function), id(getattr(function, "__self__", None))
    known: dict[Any, Any] = resolution.outcomes
    if key not in known:
        given = {name: await _given(name, function, resolution) for name in _parameters(function)}
        if is_async(function):
            made = await function(**given)
        else:
            made = await resolution.in_thread(function, given)
        known[key] = await _requested(made, resolution.context)
    return known[key]


async def _requested(made: Any, context: Context) -> Any:
    if isinstance(made, Elicit):
        return await context.elicit(made.message, schema=made.schema)
    if isinstance(made, Sample):
        session = context.session
        return AcceptedElicitation(
            await session.create_message(made.messages, max_tokens=made.max_tokens, **made.options)
        )
    if isinstance(made, ListRoots):
        return AcceptedElicitation(await context.session.list_roots())
    return AcceptedElicitation(made)


def _parameters(function: Any) -> tuple[str, ...]:
    inner = getattr(function, "__func__", function)
    code = inner.__code__ if hasattr(inner, "__code__") else type(inner).__call__.__code__
    is_bound = inner is not function or not hasattr(inner, "__code__")
    names: tuple[str, ...] = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return names[1:] if is_bound else names


async def _given(name: str, function: Any, resolution: Resolution) -> Any:
    """Return the value of a resolver's parameter. Raises DefinitionError."""
    inner = getattr(function, "__func__", function)
    if not hasattr(inner, "__code__"):
        inner = type(inner).__call__
    annotation = inner.__annotations__.get(name)
    if isinstance(annotation, str):
        annotation = resolve(annotation, inner.__globals__)
    for item in getattr(annotation, "__metadata__", ()):
        if isinstance(item, Resolve):
            return await item.declared(annotation).resolved(resolution)
    if annotation is not None:
        base = peel(annotation, inner.__globals__).base
        if isinstance(base, type) and issubclass(base, Context):
            return resolution.context
    if name in resolution.arguments:
        return resolution.arguments[name]
    raise DefinitionError(
        f"{name_of(function)}: parameter {name!r} is no argument of the tool, no Context, and has no Resolve"
    )

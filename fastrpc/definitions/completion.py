"""Definitions of completions: what ``@app.complete`` creates, and the choices that follow from a type.

A `Completion` is a function that suggests values for one argument of a prompt or one variable of a resource
template. It receives the text typed so far; if it has a second parameter, a dict of the other arguments; and
a `Context` if it has a parameter for one. Arguments of type enum, ``Literal`` and ``bool`` are completed
without a function. Calling it is left to `fastrpc.methods.completion`.
"""

from __future__ import annotations

from fastrpc.definitions.handler import Handler, is_unbound_method
from fastrpc.errors import DefinitionError
from fastrpc.protocol.uri_template import normal
from fastrpc.schema.annotations import UnresolvedName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any, Protocol

    from typing_extensions import Unpack

    from fastrpc.options import CallOptions
    from fastrpc.schema import Parameter, Signature

    class Entries(Protocol):
        """The prompts or templates of a server."""

        def get(self, key: str) -> Any: ...
        def __iter__(self) -> Iterator[Any]: ...


class Completions:
    """Suggestions, and their total number if `values` holds only the first of them.

    `total` is None if it is unknown. `has_more` follows from the two unless it is given.
    """

    __slots__ = ("has_more", "rest", "total", "values")

    def __init__(self, values: Iterable[str], total: int | None = None, has_more: bool | None = None) -> None:
        self.values = list(values)
        self.total = total
        self.has_more = has_more
        self.rest: dict[str, Any] | None = None
        """The result that an upstream server has sent, with its other members."""


class Completion(Handler):
    """A function that completes an argument. Raises `DefinitionError` for an invalid definition.

    `target` is the name of a prompt or a URI template (with braces); `argument` is the argument or variable.
    The other options are those of `Handler`.
    """

    kind = "completion"

    def __init__(
        self, function: Callable[..., Any], *, target: str, argument: str, **options: Unpack[CallOptions]
    ) -> None:
        super().__init__(function, name=key_of(target, argument), **options)
        self.target = target
        self.argument = argument
        if is_unbound_method(self.function):
            raise self.error("is a method; add the method of an object, app.complete(…)(thing.method)")
        self.describe_early()

    def describe(self) -> Signature:
        signature = super().describe()
        kinds = ["object" if _is_dict(parameter) else parameter.kind for parameter in signature.parameters]
        fits = 0 < len(kinds) < 3 and kinds[0] in ("str", "json") and kinds[1:] in ([], ["object"], ["json"])
        if not fits:
            raise self.error(
                "takes other parameters than a completion's: (value: str), or (value: str, arguments: dict)"
            )
        return signature


def _is_dict(parameter: Parameter) -> bool:
    return parameter.schema.get("type") == "object" and "properties" not in parameter.schema


def key_of(target: str, argument: str) -> str:
    """Return the registry key of an argument's completion; only a URI template contains braces."""
    is_template = "{" in target
    return f"{'resource' if is_template else 'prompt'}:{normal(target) if is_template else target}/{argument}"


def target_of(prompts: Entries, templates: Entries, target: Any, argument: str) -> str:
    """Return the name of a prompt or the URI template, given as such or as its function.

    Raises DefinitionError for a function that is neither, and for an argument that a registered prompt or
    template does not have.
    """
    if isinstance(target, str):
        found = templates.get(target) if "{" in target else prompts.get(target)
        key = target if found is None else found.key
    else:
        entries = (*prompts, *templates)
        found = next((entry for entry in entries if entry.function == target), None)
        if found is None:
            name = getattr(target, "__name__", repr(target))
            raise DefinitionError(
                f"complete: {name} is not a prompt or template of this server; add it first"
            )
        key = found.key
    if found is not None:
        _check_argument(found, argument)
    return key


def _check_argument(entry: Any, argument: str) -> None:
    try:
        names = [parameter.name for parameter in entry.signature.parameters]
    except UnresolvedName:  # such a name is checked at run time
        return
    if argument not in names:
        shown = ", ".join(names) or "none"
        raise DefinitionError(f"complete: {entry.key} has no argument {argument!r}; it has {shown}")


# ------------------------------------------------------------------------------- choices of a type


def choices_of(schema: dict[str, Any]) -> list[str]:
    """Return the values that a parameter's schema enumerates, as texts; an empty list if it does not."""
    values: list[Any] = []
    if "enum" in schema:
        values = schema["enum"]
    elif "const" in schema:
        values = [schema["const"]]
    elif schema.get("type") == "boolean":
        values = [True, False]
    texts = [_text_of(value) for value in values if value is not None]
    for member in schema.get("anyOf", ()):
        texts += choices_of(member)
    return list(dict.fromkeys(texts))


def _text_of(value: Any) -> str:
    if isinstance(value, str):
        return value
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def matching(value: str, choices: Iterable[str]) -> list[str]:
    """Return the choices that begin with a text, then those that contain it, ignoring case."""
    typed = value.casefold()
    first: list[str] = []
    then: list[str] = []
    for choice in choices:
        folded = choice.casefold()
        if folded.startswith(typed):
            first.append(choice)
        elif typed in folded:
            then.append(choice)
    return first + then

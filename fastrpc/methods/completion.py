"""completion/complete (MCP, utilities: completion).

An argument is completed by the function of ``@app.complete``, else by the choices of its type, else not at
all. At most 100 values are sent.
"""

from __future__ import annotations

from fastrpc.definitions.completion import Completions, choices_of, key_of, matching
from fastrpc.errors import InvalidParams, excerpt
from fastrpc.json_encoding import UnencodableResult
from fastrpc.methods.prompts import encoded, refusal, text_member, texts_member
from fastrpc.protocol.versions import COMPLETION_CONTEXT
from fastrpc.schema.converters import shorten

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc._core.plan import Plan
    from fastrpc.definitions.completion import Completion
    from fastrpc.definitions.registry import Registry
    from fastrpc.engine.dispatcher import Dispatcher
    from fastrpc.engine.request import Request
    from fastrpc.engine.runtime import Runtime
    from fastrpc.schema import Parameter

MOST_VALUES = 100
"""The protocol's own bound on the values of one answer."""


def complete(dispatcher: Dispatcher, request: Request) -> bytes | None:
    """Suggest values for an argument of a prompt or a variable of a template."""
    plan, found = wanted(request, dispatcher.runtime, _referred(dispatcher, request.params))
    return _answer(request, found) if plan is None else dispatcher.begin(request, plan, found)


def wanted(request: Request, runtime: Runtime, entry: Any) -> tuple[Plan | None, Any]:
    """Return the plan of what completes an argument of an entry in a runtime, and its bound arguments; None
    and the suggestions where these follow from the argument's type. Raises InvalidParams."""
    params = request.params
    argument = _object(params, "argument")
    name = text_member(argument, "name", "argument.name")
    value = text_member(argument, "value", "argument.value")
    others: dict[str, str] = {}  # the arguments that the client has values for already
    if request.version in COMPLETION_CONTEXT and "context" in params:
        others = texts_member(_object(params, "context"), "arguments", "context.arguments")
    parameter = _parameter(entry, name)
    completion = runtime.registries.completions.get(key_of(entry.key, name))
    if completion is None:
        return None, Completions(matching(value, choices_of(parameter.schema)))
    bound = [value, others][: len(completion.signature.parameters)]
    return runtime.plans.of_handler(completion, CompletionEncoder), bound


def reference_of(params: dict[str, Any]) -> tuple[str, str]:
    """Return the kind of what ``ref`` names, a prompt or a template, and its key. Raises InvalidParams."""
    reference = _object(params, "ref")
    kind = reference.get("type")
    if kind == "ref/prompt":
        return "prompt", text_member(reference, "name", "ref.name")
    if kind == "ref/resource":
        return "template", text_member(reference, "uri", "ref.uri")
    raise InvalidParams(f"ref.type: expected ref/prompt or ref/resource, got {shorten(kind)}")


def _referred(dispatcher: Dispatcher, params: dict[str, Any]) -> Any:
    """Return the prompt or template that ``ref`` names. Raises InvalidParams if there is none, or none that
    the principal sees in a list: no guard is called for completions."""
    kind, key = reference_of(params)
    filters, principal = dispatcher.runtime.filters, dispatcher.principal
    registries = dispatcher.runtime.registries
    registry: Registry[Any] = registries.prompts if kind == "prompt" else registries.templates
    entry = registry.get(key)
    if entry is None or (filters.is_filtered and entry not in filters.entries_for(principal, registry)):
        hint = filters.hint_for(principal, registry, key)
        raise InvalidParams(f"ref: unknown {registry.kind}: {excerpt(key)}{hint}")
    return entry


def _object(params: dict[str, Any], name: str) -> dict[str, Any]:
    value = params.get(name)
    if not isinstance(value, dict):
        got = f"expected an object, got {shorten(value)}" if name in params else "missing, expected an object"
        raise InvalidParams(f"{name}: {got}")
    return value


def _parameter(entry: Any, name: str) -> Parameter:
    parameters: dict[str, Parameter] = {parameter.name: parameter for parameter in entry.signature.parameters}
    if name not in parameters:
        known = ", ".join(parameters) or "none"
        raise InvalidParams(
            f"argument.name: {excerpt(entry.key)} has no argument {excerpt(name)}; it has {known}"
        )
    return parameters[name]


class CompletionEncoder:
    """Encodes the value of a completion, or its failure."""

    is_text = False

    @staticmethod
    def encode(request: Request, completion: Completion, value: Any) -> bytes:
        if not isinstance(value, Completions):
            if value is not None and not isinstance(value, (list, tuple)):
                raise UnencodableResult(f"expected a list of str or Completions, got {shorten(value)}")
            value = Completions(value or ())
        return _answer(request, value)

    @staticmethod
    def failure(request: Request, completion: Completion, error: BaseException) -> bytes:
        raise refusal(completion, error)


def _answer(request: Request, found: Completions) -> bytes:
    """Return the result that holds the first of the values. Raises UnencodableResult."""
    values = found.values
    for at, value in enumerate(values[:MOST_VALUES]):
        if not isinstance(value, str):
            raise UnencodableResult(f"[{at}]: expected str, got {shorten(value)}")
    sent = values[:MOST_VALUES]
    total = found.total
    if total is None and not found.has_more:
        total = len(values)
    result: dict[str, Any] = {"values": sent}
    if total is not None:
        result["total"] = max(total, len(values))
    more = bool(found.has_more) or len(values) > len(sent)
    if found.has_more is None and total is not None:
        more = more or total > len(sent)
    result["hasMore"] = more
    rest = found.rest or {}
    return encoded(request, {**rest, "completion": {**rest.get("completion", {}), **result}})

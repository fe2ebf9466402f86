"""The nine tools, made from the table in `_verbs`; `_calls` runs a call of one.

Success is ``{"ok": true, "data": …}``, as JSON text and as structuredContent; failure is ``isError`` with
``{"ok": false, "tool": …, "error": {code, message, retry, details}}``.
"""

from __future__ import annotations

from typing import Any, TypedDict

from fastrpc import Context, tool

from ._verbs import PREFIX, SHORT_SECONDS, VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

ANYTHING = {"type": "object"}


class Envelope(TypedDict):
    """The result of a verb that has succeeded."""

    ok: bool
    data: dict[str, Any]


def _tool_of(verb: str) -> Callable[..., Coroutine[Any, Any, Any]]:
    """The tool of a verb. Its schema is for clients; `_requests` validates the arguments, with its own
    messages."""
    facts = VERBS[verb]
    is_long = facts.seconds > SHORT_SECONDS

    @tool(
        name=PREFIX + verb,
        title=facts.title,
        description=facts.description,
        effect=facts.effect,
        annotations=facts.annotations,
        input_schema=ANYTHING,
        json_schema_extra=facts.schema(),
        task="allowed" if is_long else None,
        after_seconds=5 if is_long else None,
    )
    async def call(ctx: Context, **arguments: Any) -> Envelope:
        envelope: Envelope = await (_outcome or _imported())(verb, ctx, arguments)
        return envelope

    call.__name__ = call.__qualname__ = PREFIX + verb
    return call


_outcome: Callable[..., Coroutine[Any, Any, Any]] | None = None


def _imported() -> Callable[..., Coroutine[Any, Any, Any]]:
    """Return the function for calls; the first call imports it: an import statement costs each call more than
    a lookup."""
    global _outcome
    from ._calls import outcome

    _outcome = outcome
    return outcome


compile = _tool_of("compile")
test = _tool_of("test")
simulate = _tool_of("simulate")
deploy = _tool_of("deploy")
call = _tool_of("call")
chain_list = _tool_of("chain_list")
chain_register = _tool_of("chain_register")
artifact_get = _tool_of("artifact_get")
registry_lookup = _tool_of("registry_lookup")

"""Which components one client's session sees: ``ctx.enable_components(…)`` and its siblings.

A session's rules apply after the server's own; they last for its connection, as its other state does. A
server pays nothing until a session adds a rule.
"""

from __future__ import annotations

from fastrpc import running_call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc.compat.context import Context

_RULES = object()
"""The key of the rules among a session's states, with the server's."""

KINDS = {"tool": "tool", "resource": "resource", "template": "resource", "prompt": "prompt"}
"""Which list changes for a kind of component."""


def rules_of(server: Any) -> list[Any]:
    """Return the rules of the running call's session."""
    from fastrpc.compat.context import Context

    inner = running_call.current()
    if inner is None:
        return []
    found: list[Any] = Context(inner, server)._state.get((_RULES, id(server)), [])
    return found


def add_rule(context: Context, is_offered: bool, criteria: dict[str, Any]) -> None:
    """Add a rule to the context's session, and notify the client. Raises TypeError."""
    from fastrpc.compat.transforms.selecting import Visibility

    given = {name: value for name, value in criteria.items() if value}
    rule = Visibility(is_offered, **given)
    server = context.fastmcp
    context._state.setdefault((_RULES, id(server)), []).append(rule)
    server._compose().has_session_rules = True
    _tell(context, given.get("components") or KINDS)


def reset(context: Context) -> None:
    """Drop the rules of the context's session, and notify its client."""
    context._state.pop((_RULES, id(context.fastmcp)), None)
    _tell(context, KINDS)


def _tell(context: Context, kinds: Any) -> None:
    channel: Any = context.inner._channel
    if channel is not None:
        for kind in dict.fromkeys(KINDS[each] for each in kinds):
            channel.request.dispatcher.changes.list_changed(kind)

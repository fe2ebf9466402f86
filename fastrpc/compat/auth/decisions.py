"""What follows from the checks of a component: whether it is listed, and how its call is refused.

A component that its own checks refuse does not exist for the caller; what the checks of a whole server refuse
is said to be refused. A list cannot wait: a component with a check that waits is left out of it.
"""

from __future__ import annotations

from typing import Any

from fastrpc import diagnostics
from fastrpc.compat.auth.checks import AuthorizationError, missing_scopes, outcome_of, settled
from fastrpc.errors import ResourceNotFound, UnknownName, excerpt
from fastrpc.protocol.versions import STATELESS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from fastrpc._core.call_info import CallInfo
    from fastrpc.compat.auth.checks import AuthContext


def decision(
    call: CallInfo, context: AuthContext, own: Sequence[Any], of_all: Sequence[Any]
) -> Awaitable[None] | None:
    """Allow a call, or refuse it by an error; or return an awaitable that does either.

    Raises UnknownName and ResourceNotFound if a check of `own` refuses, AuthorizationError if one of `of_all`
    does.
    """
    checks = [(check, True) for check in own] + [(check, False) for check in of_all]
    for at, (check, is_own) in enumerate(checks):
        try:
            outcome = outcome_of(check, context)
        except AuthorizationError as error:
            raise _refusal(call, context, is_own, of_all, error) from None
        if hasattr(outcome, "__await__"):
            return _decide_later(call, context, outcome, checks[at:], of_all)
        if not outcome:
            raise _refusal(call, context, is_own, of_all)
    return None


async def _decide_later(
    call: CallInfo,
    context: AuthContext,
    outcome: Any,
    checks: Sequence[tuple[Any, bool]],
    of_all: Sequence[Any],
) -> None:
    """Decide by the remaining `checks`; `outcome` is the awaitable that the first one has returned."""
    for at, (check, is_own) in enumerate(checks):
        try:
            allowed = outcome if at == 0 else outcome_of(check, context)
            if hasattr(allowed, "__await__"):
                allowed = await settled(allowed)
        except AuthorizationError as error:
            raise _refusal(call, context, is_own, of_all, error) from None
        if not allowed:
            raise _refusal(call, context, is_own, of_all)


def _refusal(
    call: CallInfo,
    context: AuthContext,
    is_own: bool,
    of_all: Sequence[Any],
    error: AuthorizationError | None = None,
) -> Exception:
    """Return the error for a call that a check has refused: one of the component's own, or of all."""
    if not is_own:
        if error is not None:
            return error
        scopes = missing_scopes(list(of_all), context)
        why = f"insufficient scope (required: {', '.join(scopes)})" if scopes else "insufficient permissions"
        return AuthorizationError(f"Authorization failed for {call.kind} {excerpt(call.name)!r}: {why}")
    if call.kind == "resource":
        return ResourceNotFound(call.name, legacy=call.context.protocol_version != STATELESS)
    return UnknownName(f"Unknown {call.kind}: {excerpt(call.name)}")


def is_visible(checks: Sequence[Any], context: AuthContext) -> bool:
    """Return whether all checks allow it."""
    for check in checks:
        try:
            outcome = outcome_of(check, context)
            allowed = _at_once(check, outcome) if hasattr(outcome, "__await__") else outcome
        except AuthorizationError:
            return False
        if not allowed:
            return False
    return True


def _at_once(check: Any, outcome: Any) -> bool:
    """Return what a coroutine returns without waiting; False for one that waits. Raises
    AuthorizationError."""
    step = settled(outcome)
    try:
        step.send(None)
    except StopIteration as end:
        return bool(end.value)
    finally:
        step.close()
    name = getattr(check, "__qualname__", type(check).__name__)
    diagnostics.write("warning", f"auth: {name} waits: what it restricts is not listed")
    return False

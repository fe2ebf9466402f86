"""The step *guard* of a call that Python makes, and guards of several servers as one.

A guard returns None to allow a call, raises to refuse it, or returns an awaitable to decide later. `ask`
calls it; `allow` also awaits the decision, for a call that a running call makes. The compiled connection has
the same step for its own calls (`Connection.ask_guard`). A handler that is mounted has the guards of the
server and of those that it is mounted from (`guarded_by`); a single guard is put into the plan directly.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from fastrpc._core.call_info import CallInfo

    Guard = Callable[[CallInfo], "Awaitable[object] | None"]


def ask(guard: Guard, call: CallInfo) -> Awaitable[object] | None:
    """Ask a guard about a call. Return None if it allows the call, or an awaitable of its decision, for
    `check_decision`. Raises what the guard refuses with, and TypeError for any other answer."""
    decision = guard(call)
    check_awaitable(decision)
    return decision


async def allow(guard: Guard | None, call: CallInfo) -> None:
    """Ask a guard, if there is one, and await its decision. Raises as `ask`."""
    decision = None if guard is None else ask(guard, call)
    if decision is not None:
        check_decision(await decision)


def guarded_by(guards: Sequence[tuple[str, Guard]]) -> Guard:
    """Return a guard that calls these one after the other, each with its own server's name of the handler;
    the first that raises refuses."""

    def decide(call: CallInfo) -> Awaitable[object] | None:
        shown = call.name
        for at, (name, guard) in enumerate(guards):
            _rename(call, name)
            decision = ask(guard, call)
            if decision is not None:
                return _decide_rest(call, decision, guards[at + 1 :], shown)
        call.name = shown
        return None

    return decide


def rechecked_by(rechecks: Sequence[tuple[str, Callable[[CallInfo], object]]]) -> Callable[[CallInfo], None]:
    """Return what has these decide again about a call, each with its own server's name of the handler."""

    def recheck(call: CallInfo) -> None:
        shown = call.name
        try:
            for name, function in rechecks:
                _rename(call, name)
                function(call)
        finally:
            call.name = shown

    return recheck


async def _decide_rest(
    call: CallInfo, decision: Awaitable[object], guards: Sequence[tuple[str, Guard]], shown: str
) -> None:
    check_decision(await decision)
    for name, guard in guards:
        _rename(call, name)
        await allow(guard, call)
    call.name = shown


def _rename(call: CallInfo, name: str) -> None:
    if call.kind != "resource":  # which goes by its URI everywhere
        call.name = name


def check_awaitable(decision: Any) -> None:
    """Raise TypeError for an answer of a guard that is neither None nor an awaitable."""
    if not hasattr(decision, "__await__"):
        check_decision(decision)


def check_decision(decision: Any) -> None:
    """Raise TypeError for a decision that is not None."""
    if decision is not None:
        raise TypeError(
            f"a guard raises to refuse a call and returns None to allow it; it returned {decision!r:.60}"
        )

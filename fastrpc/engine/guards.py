"""Combines the guards of one call: those of the server, and of the servers that a handler is mounted from.

A single guard of the server itself is put into the plan directly, without this.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from typing import Any

    from fastrpc._core.call_info import CallInfo

    Guard = Callable[[CallInfo], "Awaitable[None] | None"]


def guarded_by(guards: Sequence[tuple[str, Guard]]) -> Guard:
    """Return a guard that calls these one after the other, each with its own server's name of the handler;
    the first that raises refuses."""

    def decide(call: CallInfo) -> Awaitable[None] | None:
        shown = call.name
        for at, (name, guard) in enumerate(guards):
            _rename(call, name)
            decision = guard(call)
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
    call: CallInfo, decision: Any, guards: Sequence[tuple[str, Guard]], shown: str
) -> None:
    """Await a decision, and call the remaining guards."""
    check_decision(await check_awaitable(decision))
    for name, guard in guards:
        _rename(call, name)
        answer: Any = guard(call)
        if answer is not None:
            check_decision(await check_awaitable(answer))
    call.name = shown


def _rename(call: CallInfo, name: str) -> None:
    if call.kind != "resource":  # which goes by its URI everywhere
        call.name = name


def check_awaitable(decision: Any) -> Any:
    """Return what a guard has returned, if it can be awaited. Raises TypeError for anything else."""
    if not hasattr(decision, "__await__"):
        check_decision(decision)
    return decision


def check_decision(decision: Any) -> None:
    """Raise TypeError for a decision that is not None."""
    if decision is not None:
        raise TypeError(
            f"a guard raises to refuse a call and returns None to allow it; it returned {decision!r:.60}"
        )

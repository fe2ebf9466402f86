"""Replaces a method of one part of a dispatcher, whose classes have no room for attributes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

PARTS = {
    "call_bound": "delegate",
    "call_ended": "delegate",
    "call_returned": "responses",
    "check_idle": "requests",
    "line_too_long": "responses",
}
"""The part that has a method; those of the dispatcher itself are not here."""


def part_with(dispatcher: Any, name: str) -> Any:
    """Return the part of a dispatcher that has a method."""
    part = PARTS.get(name)
    owner = dispatcher.connection if part == "delegate" else dispatcher
    return dispatcher if part is None else getattr(owner, part)


def replace_method(
    monkeypatch: Any, dispatcher: Any, name: str, made: Callable[[Callable[..., Any]], Any]
) -> Any:
    """Replace a method of a dispatcher's part by what `made` returns for it, and return that."""
    part = part_with(dispatcher, name)
    original = getattr(type(part), name)
    found = made(partial(original, part))

    def replaced(self: Any, *values: Any, **named: Any) -> Any:
        return found(*values, **named) if self is part else original(self, *values, **named)

    monkeypatch.setattr(type(part), name, replaced)
    return found

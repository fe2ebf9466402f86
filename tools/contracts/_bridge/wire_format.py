"""Parameters in tachyon's wire format: integers as decimal text with every digit, numbers where it requires
numbers.

The engine reads JSON numbers as float64 and changes long ones. Values that the format cannot express are
refused here. Pure.
"""

from __future__ import annotations

from .._errors import invalid
from .._values import quoted
from .._verbs import VERBS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

DEEPEST = 32
"""Levels of arrays and objects in an argument: no contract has more."""
DEFAULT_RUNS = 200
LOCAL_ONLY = ("include",)
"""Parameters that are applied to the engine's answer."""


def to_wire(verb: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters, which `_requests` has read, in the engine's form. Raises
    EngineError(INVALID_REQUEST)."""
    kinds = VERBS[verb].parameters
    return {
        name: WRITERS[kind](name, value) if (kind := kinds[name][0]) in WRITERS else value
        for name, value in parameters.items()
        if name not in LOCAL_ONLY
    }


def _decimal(name: str, value: int) -> str:
    return str(value)


def _block(name: str, value: str) -> str:
    """A number in decimal: tachyon reads the digits of a 0x text as decimal ones."""
    if value == "earliest":
        return "0"
    return str(int(value, 16)) if value.startswith("0x") else value


def _runs(name: str, value: int) -> bool:
    if value not in (0, DEFAULT_RUNS):
        raise invalid(name, "true or false: this engine takes no number of runs", str(value))
    return bool(value)


def exact(path: str, value: Any, level: int = 0) -> Any:
    """The value with every integer as decimal text, at any depth. Raises EngineError for a float, which has
    lost digits already."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return value
    if isinstance(value, int):
        return str(value)
    if level >= DEEPEST:
        raise invalid(path[:200], f"at most {DEEPEST} levels of arrays and objects", "more")
    if isinstance(value, list):
        return [exact(f"{path}[{index}]", each, level + 1) for index, each in enumerate(value)]
    if isinstance(value, dict):
        return {name: exact(f"{path}.{name}", each, level + 1) for name, each in value.items()}
    raise invalid(path[:200], "an integer as JSON integer or decimal text", quoted(value))


WRITERS: dict[str, Callable[[str, Any], Any]] = {
    "arguments": exact,
    "block": _block,
    "optimize": _runs,
    "wei": _decimal,
}

"""Schema: what adding a tool costs at start-up, and what binding by the schema costs later.

Many copies of each function take turns, as many tools do at start-up.
"""

from __future__ import annotations

from enum import Enum
from types import FunctionType
from typing import Annotated, Any

import pytest
from calls import BRIEFLY, one_by_one

from fastrpc import Context, tool
from fastrpc.definitions.registry import Registries
from fastrpc.schema import describe

pytestmark = pytest.mark.benchmark(group="schema", **BRIEFLY)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def plain(text: str, count: int = 1, flag: bool = False) -> str:
    """Three plain parameters."""
    return text


def described(
    command: Annotated[str, "The command"], timeout: Annotated[int, "In milliseconds"] = 30000
) -> Annotated[str, "Its output"]:
    """Two parameters with descriptions."""
    return command


def nested(
    context: Context, names: list[str], where: dict[str, list[int]] | None = None, colour: Colour = Colour.RED
) -> dict[str, int]:
    """Types that need msgspec."""
    return {}


FUNCTIONS = {"plain": plain, "descriptions": described, "nested": nested}


def copy_of(function: Any) -> Any:
    made = FunctionType(function.__code__, globals(), function.__name__, function.__defaults__)
    made.__annotations__ = function.__annotations__
    made.__doc__ = function.__doc__
    return made


def copies(function: Any) -> list[Any]:
    return [copy_of(function) for _ in range(256)]


@pytest.mark.parametrize("kind", FUNCTIONS)
def test_describing(benchmark, kind: str) -> None:
    assert describe(FUNCTIONS[kind]).input_schema["type"] == "object"
    benchmark(one_by_one(describe, copies(FUNCTIONS[kind])))


def test_adding_a_tool(benchmark) -> None:
    def add(function: Any) -> None:
        Registries().tools.add(tool(function)).descriptor("2025-11-25")

    benchmark(one_by_one(add, copies(described)))


@pytest.mark.parametrize(
    ("kind", "arguments"),
    [
        ("plain", [{"text": f"{n}", "count": n, "flag": n % 2 == 0} for n in range(256)]),
        ("nested", [{"names": [f"{n}", "b"], "where": {f"{n}": [n]}, "colour": "blue"} for n in range(256)]),
    ],
    ids=["plain", "nested"],
)
def test_binding_by_the_schema(benchmark, kind: str, arguments: list[dict[str, Any]]) -> None:
    bind = describe(FUNCTIONS[kind]).bind
    assert len(bind(arguments[0])) == 3
    benchmark(one_by_one(bind, arguments))

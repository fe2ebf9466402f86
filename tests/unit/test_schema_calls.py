"""What a tool's schemas publish is what calls take and return, driven by a client."""

from __future__ import annotations

import asyncio
import enum
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import attrs
import jsonschema
import msgspec
import pytest

from fastrpc import Server
from fastrpc.testing import Client


class Rights(enum.IntFlag):
    READ = 1
    WRITE = 2


class Doors(enum.Flag):
    LEFT = 1
    RIGHT = 2


@pytest.mark.parametrize("kind", [Rights, Doors])
def test_combinations_of_flags_are_what_their_schemas_say(kind: type[enum.Flag]) -> None:
    """Schema: a Flag's published schema allows the combinations that are taken and returned."""
    app = Server("s")

    def same(value: Any) -> Any:
        assert isinstance(value, kind)
        return value

    same.__annotations__ = {"value": kind, "return": kind}
    app.tool(same)

    async def drive() -> None:
        async with Client(app) as client:
            (tool,) = await client.list_tools()
            for value in (0, 1, 3):
                jsonschema.validate({"value": value}, tool["inputSchema"])
                result = await client.call("same", value=value)
                assert result.structured == {"result": value}
                jsonschema.validate(result.structured, tool["outputSchema"])

    asyncio.run(drive())


T = TypeVar("T")


@dataclass
class Pack(Generic[T]):
    item: T
    items: list[T]


class Bundle(msgspec.Struct, Generic[T]):
    item: T
    items: list[T]


@attrs.define
class Crate(Generic[T]):
    item: T
    items: list[T]


@pytest.mark.parametrize("kind", [Pack, Bundle, Crate])
def test_generic_records_are_taken_and_returned(kind: Any) -> None:
    """Schema: a parameter or a result of a generic class with its parameters does not break the server."""
    app = Server("s")

    def same(value: Any) -> Any:
        assert type(value) is kind
        return value

    def several(value: Any) -> Any:
        return [value]

    def other(a: int) -> int:
        return a

    same.__annotations__ = {"value": kind[int], "return": kind[int]}
    several.__annotations__ = {"value": kind[int], "return": list[kind[int]]}
    for function in (same, several, other):
        app.tool(function)
    value = {"item": 1, "items": [2]}

    async def drive() -> None:
        async with Client(app) as client:
            assert (await client.call("other", a=1)).structured == {"result": 1}
            assert (await client.call("same", value=value)).structured == value
            assert (await client.call("several", value=value)).structured == {"result": [value]}
            refused = await client.call("same", value={"item": "x", "items": []})
            assert refused.is_error

    asyncio.run(drive())

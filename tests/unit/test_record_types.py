"""Records of every kind: the published schema validates what a call takes, and what its result says."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import pytest
from support.in_memory import with_client

from fastrpc import Server
from fastrpc.testing import Client

attrs = pytest.importorskip("attrs")
jsonschema = pytest.importorskip("jsonschema")
msgspec = pytest.importorskip("msgspec")
pydantic = pytest.importorskip("pydantic")
typing_extensions = pytest.importorskip("typing_extensions")
Field = pydantic.Field
Aliased = Annotated[int, Field(alias="outer", ge=1)]


@attrs.define
class AttrsWithDefaults:
    a: int
    made: int = attrs.field(init=False, default=3)
    items: list[int] = attrs.Factory(list)


@attrs.frozen(kw_only=True)
class AttrsByKeyword:
    a: int = 1
    b: str


@attrs.define
class PrivateAttributes:
    _x: int
    __y: int = 1
    rest: list[PrivateAttributes] = attrs.Factory(list)


class HoldingPrivate(msgspec.Struct, rename="camel", omit_defaults=True):  # type: ignore[misc, name-defined, call-arg]
    the_first: PrivateAttributes
    the_others: dict[int, PrivateAttributes] = msgspec.field(default_factory=dict)


class RowOfPrivate(msgspec.Struct, array_like=True, tag=True):  # type: ignore[misc, name-defined, call-arg]
    a: PrivateAttributes
    b: str = "x"


class Renamed(msgspec.Struct, rename="camel"):  # type: ignore[misc, name-defined, call-arg]
    my_name: int
    other_name: str = "x"


class Named(msgspec.Struct):  # type: ignore[misc, name-defined]
    a: int = msgspec.field(name="outer")


class Strict(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):  # type: ignore[misc, name-defined, call-arg]
    a_b: int


class Sparse(msgspec.Struct, omit_defaults=True, rename={"a": "A"}):  # type: ignore[misc, name-defined, call-arg]
    a: int = 1


class Row(msgspec.Struct, array_like=True):  # type: ignore[misc, name-defined, call-arg]
    a: int
    b: str


@dataclasses.dataclass(kw_only=True)
class ByKeyword:
    b: int = 1
    c: str


@dataclasses.dataclass
class Seeded:
    a: int
    seed: dataclasses.InitVar[int] = 5
    total: int = dataclasses.field(init=False, default=0)

    def __post_init__(self, seed: int) -> None:
        self.total = self.a + seed


@dataclasses.dataclass
class Private:
    _x: int


@dataclasses.dataclass
class Constrained:
    a: Aliased
    b: int = 2


@dataclasses.dataclass
class WithField:
    a: int = Field(alias="outer", ge=1)


@dataclasses.dataclass
class Holding:
    items: list[Constrained]
    named: WithField | None = None


class Dict(typing_extensions.TypedDict):  # type: ignore[misc, name-defined]
    a: int
    b: typing_extensions.NotRequired[Aliased]


class Pair(NamedTuple):
    a: Annotated[int, Field(ge=1)]
    b: str = "x"


@pydantic.dataclasses.dataclass(config=pydantic.ConfigDict(alias_generator=lambda name: name.upper()))
class Generated:
    a: int


class ReadAndWritten(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    a: int = Field(validation_alias="read", serialization_alias="written")


class Computed(pydantic.BaseModel):  # type: ignore[misc, name-defined]
    a: int
    hidden: int = Field(2, exclude=True)

    @pydantic.computed_field  # type: ignore[untyped-decorator]
    @property
    def double(self) -> int:
        return 2 * self.a


RECORDS: dict[Any, tuple[list[Any], list[Any]]] = {
    AttrsWithDefaults: ([{"a": 1}, {"a": 1, "items": [2]}], [{}, {"a": 1, "items": ["x"]}]),
    AttrsByKeyword: ([{"b": "x"}, {"a": 2, "b": "x"}], [{"a": 1}]),
    PrivateAttributes: (
        [{"_x": 1}, {"_x": 1, "_PrivateAttributes__y": 2}, {"_x": 1, "rest": [{"_x": 2}]}],
        [{"x": 1}, {"_x": "a"}],
    ),
    HoldingPrivate: (
        [{"theFirst": {"_x": 1}}, {"theFirst": {"_x": 1}, "theOthers": {"1": {"_x": 2}}}],
        [{"theFirst": {"x": 1}}],
    ),
    RowOfPrivate: ([["RowOfPrivate", {"_x": 1}, "y"]], [["RowOfPrivate", {"x": 1}, "y"]]),
    Renamed: ([{"myName": 1}, {"myName": 1, "otherName": "y"}], [{"my_name": 1}]),
    Named: ([{"outer": 1}], [{"a": 1}]),
    Strict: ([{"a-b": 1}], [{"a_b": 1}, {"a-b": 1, "more": 1}]),
    Sparse: ([{}, {"A": 2}], [{"A": "x"}]),
    Row: ([[1, "x"]], [[1], {"a": 1, "b": "x"}]),
    ByKeyword: ([{"c": "x"}, {"b": 2, "c": "x"}], [{"b": 1}]),
    Seeded: ([{"a": 1}, {"a": 1, "seed": 2}], [{"seed": 2}, {"a": 1, "seed": "x"}]),
    Private: ([{"_x": 1}], [{"x": 1}]),
    Constrained: ([{"outer": 1}], [{"a": 1}, {"outer": 0}]),
    WithField: ([{"outer": 1}], [{"a": 1}, {"outer": 0}]),
    Holding: ([{"items": [{"outer": 1}], "named": {"outer": 2}}], [{"items": [{"a": 1}]}]),
    Dict: ([{"a": 1}, {"a": 1, "outer": 2}], [{}, {"a": 1, "outer": 0}]),
    Pair: ([[1, "x"]], [[0, "x"]]),
    Generated: ([{"A": 1}], [{"a": 1}]),
    ReadAndWritten: ([{"read": 1}], [{"a": 1}, {"written": 1}]),
    Computed: ([{"a": 1}, {"a": 1, "hidden": 3}], [{}]),
}
"""What is taken, and what is refused."""

PLACES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "itself": (lambda kind: kind, lambda value: value),
    "in a list": (lambda kind: list[kind], lambda value: [value]),
    "in a dict": (lambda kind: dict[str, kind], lambda value: {"k": value}),
    "or none": (lambda kind: kind | None, lambda value: value),
    "or a number": (lambda kind: int | kind, lambda value: value),
    "in a TypedDict": (
        lambda kind: typing_extensions.TypedDict("Holder", {"held": kind}),
        lambda value: {"held": value},
    ),
}
"""The annotation around a record's, and the value around a record."""


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__name__)
def test_the_schemas_of_a_record_say_what_is_taken_and_what_is_written(kind: Any, place: str) -> None:
    annotate, put = PLACES[place]

    def through(value: Any) -> Any:
        return value

    through.__annotations__.update({"value": annotate(kind), "return": annotate(kind)})
    app = Server("records")
    app.tool(through)

    async def conversation(client: Client) -> None:
        [tool] = await client.list_tools()
        arguments = jsonschema.Draft202012Validator(tool["inputSchema"])
        for taken, values in zip((True, False), RECORDS[kind], strict=True):
            for value in values:
                result = await client.call("through", value=put(value))
                assert (not result.is_error) is taken, result.text
                assert arguments.is_valid({"value": put(value)}) is taken
                if taken and "outputSchema" in tool:
                    results = jsonschema.Draft202012Validator(_closed(tool["outputSchema"]))
                    results.validate(result.structured)

    with_client(app, conversation)


def _closed(schema: Any) -> Any:
    """Return a schema that allows only the members that it names."""
    if isinstance(schema, list):
        return [_closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    closed = {name: _closed(each) for name, each in schema.items()}
    return {"additionalProperties": False, **closed} if "properties" in schema else closed


def test_private_attributes_of_attrs_are_written_with_the_values_that_they_have() -> None:
    def through(value: HoldingPrivate) -> HoldingPrivate:
        return value

    through.__annotations__.update({"value": HoldingPrivate, "return": HoldingPrivate})
    app = Server("records")
    app.tool(through)
    value = {"_x": 1, "_PrivateAttributes__y": 2, "rest": []}

    async def conversation(client: Client) -> None:
        result = await client.call("through", value={"theFirst": value, "theOthers": {"7": value}})
        assert result.structured == {"theFirst": value, "theOthers": {"7": value}}

    with_client(app, conversation)


@dataclasses.dataclass
class WithTime:
    name: str
    at: datetime.time | None = None
    count: int = 3
    rest: list[WithTime] = dataclasses.field(default_factory=list)


def test_an_argument_that_is_returned_has_its_defaults_too() -> None:
    def through(value: WithTime) -> WithTime:
        return value

    through.__annotations__.update({"value": WithTime, "return": WithTime})
    app = Server("records")
    app.tool(through)

    async def conversation(client: Client) -> None:
        result = await client.call("through", value={"name": "a", "rest": [{"name": "b", "at": "01:02:03"}]})
        inner = {"name": "b", "at": "01:02:03", "count": 3, "rest": []}
        assert result.structured == {"name": "a", "at": None, "count": 3, "rest": [inner]}

    with_client(app, conversation)

"""What the compiled types of values accept is what their converters accept, and becomes the same."""

from __future__ import annotations

import dataclasses
import datetime
import decimal
import enum
import json
import uuid
from typing import Annotated, Any, Literal, NamedTuple, TypedDict

import attrs
import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc import Meta
from fastrpc.engine.output_validation import conforming
from fastrpc.errors import FAILURES
from fastrpc.schema import describe
from fastrpc.schema.value_types import value_type_of


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Row(TypedDict):
    a: int
    b: str


class Partly(TypedDict, total=False):
    a: float | None
    b: list[str]


class Pair(NamedTuple):
    a: int
    b: str = "b"


@dataclasses.dataclass
class Point:
    a: int
    b: float = 0.5


@dataclasses.dataclass(frozen=True, slots=True)
class Whole:
    a: Point
    b: list[Point] = dataclasses.field(default_factory=list)
    c: Color | None = None


@dataclasses.dataclass
class Checked:
    a: int

    def __post_init__(self) -> None:
        if self.a < 0:
            raise ValueError("a: expected 0 or more")


@dataclasses.dataclass
class Derived(Point):
    def __init__(self, a: int) -> None:
        super().__init__(a, 7.0)


@dataclasses.dataclass
class Counted:
    a: int
    size: int = dataclasses.field(init=False, default=3)


class Node(msgspec.Struct):
    a: int
    next: Node | None = None


class Renamed(msgspec.Struct, rename="camel"):
    first_name: str
    is_old: bool = False


class Tagged(msgspec.Struct, tag="tagged"):
    a: int


class Sparse(msgspec.Struct, omit_defaults=True):
    a: int = 1


@attrs.define
class Attrs:
    a: int
    b: str = "b"


ANNOTATIONS: list[Any] = [
    str, int, float, bool, dict, list, list[int], list[float], list[str], dict[str, int], dict[str, float],
    dict[str, Any], list[dict[str, str]], str | int, int | None, float | int, bool | str | None,
    list[str | int], Literal["a", "b"], Literal[1, True], tuple[int, str], tuple[int, ...], set[int],
    dict[str, list[int] | None],
    Annotated[int, Meta(ge=0, lt=10)], Annotated[float, Meta(gt=0, le=1)],
    Annotated[int, Meta(multiple_of=2)], Annotated[str, Meta(min_length=2)],
    Annotated[str, Meta(max_length=3)], Annotated[str, Meta(pattern="^a")],
    Annotated[list[int], Meta(max_length=1)], list[Annotated[int, Meta(ge=1)]],
    Color, Level, Row, Partly, Pair, Point, Whole, Checked, Derived, Counted, Node, Renamed, Tagged, Sparse,
    Attrs, list[Point], dict[str, Point], Point | None, Point | str, list[Color], dict[str, Level],
    bytes, datetime.datetime, datetime.date, decimal.Decimal, uuid.UUID, list[bytes], tuple[Point, Color],
]  # fmt: skip

KEYS = st.sampled_from(["a", "b", "c", "size", "next", "firstName", "first_name", "isOld", "type", "other"])
LEAVES: Any = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 12),
    st.sampled_from([2**53, -(2**60), 2**70, 0.5, 1.0, -0.0, 1e300]),
    st.sampled_from(["", "a", "b", "abc", "red", "1", "true", "one", "tagged", "2026-07-28", "é" * 3]),
)  # fmt: skip
VALUES: Any = st.recursive(
    LEAVES,
    lambda values: st.one_of(st.lists(values, max_size=3), st.dictionaries(KEYS, values, max_size=3)),
    max_leaves=8,
)
RESULTS: Any = st.recursive(
    st.one_of(
        LEAVES,
        st.sampled_from([Color.RED, Level.LOW, b"x", decimal.Decimal("1.50"), float("nan")]),
        st.sampled_from([datetime.datetime(2026, 7, 28, 12), datetime.date(2026, 7, 28), uuid.UUID(int=5)]),
    ),
    lambda values: st.one_of(
        st.lists(values, max_size=3),
        st.tuples(values, values),
        st.dictionaries(KEYS, values, max_size=3),
        st.builds(Point, values, values),
        st.builds(Whole, values, values, values),
        st.builds(Pair, values, values),
        st.builds(Counted, values),
        st.builds(Node, values, values),
        st.builds(Renamed, values, values),
        st.builds(Tagged, values),
        st.builds(Sparse, values),
        st.builds(Attrs, values, values),
        st.builds(Derived, st.integers(0, 3)),
        st.builds(Checked, st.integers(0, 3)),
    ),
    max_leaves=6,
)


def of_annotation(annotation: Any) -> Any:
    def tool(value: Any) -> Any:
        """Take and give back a value."""
        return value

    tool.__annotations__ = {"value": annotation, "return": annotation}
    return describe(tool)


SIGNATURES = {str(annotation): of_annotation(annotation) for annotation in ANNOTATIONS}
KNOWN = {name: value_type_of(each.parameters[0].converter) for name, each in SIGNATURES.items()}
MAKERS = [
    (name, make)
    for name, each in SIGNATURES.items()
    if each.output_schema is not None
    for known in [value_type_of(each.result_converter)]
    for make in (known and known.plain, each.result_converter.plain_value)
    if make
]


def same(one: Any, other: Any) -> bool:
    """Equal, and of the same types all through: 1 is not 1.0, nor True."""
    return type(one) is type(other) and one == other and repr(one) == repr(other)


# Each value is tried with every annotation: to make a value takes longer than to compare it with all of them.


@settings(max_examples=500, deadline=None)
@given(VALUES.filter(lambda value: value is not None))
def test_a_loaded_argument_is_what_its_converter_makes_of_it(value: Any) -> None:
    for name, signature in SIGNATURES.items():
        converter = signature.parameters[0].converter
        if (known := KNOWN[name]) is None:
            continue
        loaded = known.load(value)
        assert loaded is NotImplemented or same(loaded, converter.accept(value)), name


@settings(max_examples=500, deadline=None)
@given(VALUES.filter(lambda value: value is not None))
def test_a_loader_makes_what_its_converter_makes(value: Any) -> None:
    for name, signature in SIGNATURES.items():
        converter = signature.parameters[0].converter
        if converter.load is None:
            continue
        try:
            loaded = converter.load(value)
        except FAILURES:
            continue
        assert same(loaded, converter.accept(value)), name


@settings(max_examples=500, deadline=None)
@given(RESULTS)
def test_a_plain_result_is_what_conforms_to_the_schema(value: Any) -> None:
    for name, make in MAKERS:
        try:
            made = make(value)
        except FAILURES:
            continue
        if made is not NotImplemented and not holds_nan(made):  # which the JSON writer refuses
            assert as_json(made) == as_json(conforming(SIGNATURES[name], value)), name


def as_json(value: Any) -> str:
    """The JSON of a result: a tuple and a list of the same members are the same there, 1 and 1.0 are not."""
    return json.dumps(value, default=repr)


def holds_nan(value: Any) -> bool:
    return "nan" in repr(value)


def test_most_annotations_are_decided_by_a_look_at_the_types_of_their_values() -> None:
    undecided = [name for name, known in KNOWN.items() if known is None]
    assert len(undecided) <= 14, undecided

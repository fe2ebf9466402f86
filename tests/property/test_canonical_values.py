"""Two bound values that differ, by ``==`` or in anything that a function can see, are two calls for whoever
approves them: they have different digests, and are shown differently."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import functools
import itertools
import json
import math
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from decimal import Decimal
from fractions import Fraction
from ipaddress import ip_address
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID
from zoneinfo import ZoneInfo

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc.guard.approvals.binding import Binding, indented
from fastrpc.guard.approvals.canonical import Unbindable, canonical


def binding(value: Any) -> Binding:
    return Binding(
        caller="ada",
        server="shop",
        kind="tool",
        name="pay",
        policy="p",
        arguments={"value": value},
        schema={},
    )


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", populate_by_name=True)
    amount: Any = pydantic.Field(1, exclude=True)
    to: Any = pydantic.Field("", alias="recipient", repr=False)
    _note: Any = pydantic.PrivateAttr(None)

    @pydantic.computed_field
    def text(self) -> str:
        return "the same"

    @pydantic.model_serializer
    def as_nothing(self) -> dict[str, Any]:
        return {}


class Other(pydantic.BaseModel):
    amount: Any = 1


class Root(pydantic.RootModel[list[int]]):
    pass


@dataclasses.dataclass
class Plain:
    amount: Any
    hidden: Any = dataclasses.field(default=1, repr=False, compare=False)
    late: Any = dataclasses.field(default=3, init=False)


@dataclasses.dataclass(slots=True, frozen=True)
class Slotted:
    amount: Any


@pydantic.dataclasses.dataclass
class Checked:
    amount: Any


@attrs.define
class Attrs:
    amount: Any
    hidden: Any = attrs.field(default=1, repr=False, eq=False)


class Struct(msgspec.Struct):
    amount: Any
    left_out: Any = msgspec.UNSET


class Renamed(msgspec.Struct, rename="camel", omit_defaults=True):
    the_amount: Any = 1


class Point(NamedTuple):
    x: Any


class Text(str):
    pass


class Colour(enum.Enum):
    RED = 1


class Number(enum.IntEnum):
    RED = 1


class Access(enum.Flag):
    READ = 1
    WRITE = 2


def with_attribute(value: Any, name: str, held: Any) -> Any:
    object.__setattr__(value, name, held)
    return value


HOUR = datetime.datetime(2026, 10, 25, 2, 30)
BERLIN, VIENNA = ZoneInfo("Europe/Berlin"), ZoneInfo("Europe/Vienna")
OTHER_NAN = struct.unpack(">d", bytes.fromhex("fff8000000000001"))[0]
VALUES: list[Any] = [
    *(None, True, 1, 1.0, 0.0, -0.0, "1", "", [], {}, (), [1], (1,), {1}, frozenset({1}), deque([1])),
    *(math.nan, OTHER_NAN, math.inf, 2**60, float(2**60), b"a", bytearray(b"a"), "a", 1j, range(3), ...),
    *(
        {"a": 1},
        OrderedDict(a=1, b=2),
        OrderedDict(b=2, a=1),
        {"$set": [1]},
        {1: 2},
        {"1": 2},
        {"$tuple": [1]},
    ),
    *(
        Decimal("1"),
        Decimal("1.0"),
        Decimal("-0"),
        Decimal("0"),
        Decimal("NaN"),
        Decimal("NaN1"),
        Fraction(1),
    ),
    *(HOUR, HOUR.replace(fold=1), HOUR.replace(tzinfo=BERLIN), HOUR.replace(tzinfo=BERLIN, fold=1)),
    *(HOUR.replace(tzinfo=VIENNA), HOUR.replace(tzinfo=datetime.timezone.utc), HOUR.date(), HOUR.time()),
    HOUR.replace(tzinfo=datetime.timezone(datetime.timedelta(0), "Z")),
    *(HOUR.time().replace(fold=1), datetime.timedelta(1), str(HOUR), HOUR.isoformat()),
    *(UUID(int=1), Path("a"), ip_address("::1"), ip_address("127.0.0.1"), Colour.RED, Number.RED),
    *(Access.READ, Access.WRITE, Access.READ | Access.WRITE),
    *(
        Model(amount=1),
        Model(amount=1_000_000),
        Model(),
        Model(to="x"),
        Model(amount=1, to=""),
        Model(amount=1, z=1),
    ),
    *(with_attribute(Model(amount=1), "_note", "x"), Other(amount=1), Other(), Root([1]), Root([2])),
    *(Plain(1), Plain(1, 2), with_attribute(Plain(1), "late", 4), with_attribute(Plain(1), "extra", 1)),
    *(
        Slotted(1),
        Slotted(2),
        Checked(1),
        Checked(2),
        Attrs(1),
        Attrs(1, 2),
        Struct(1),
        Struct(1, None),
        Struct(1, 2),
    ),
    *(Renamed(), Renamed(2), Point(1), Point(2), Text("1"), with_attribute(Text("1"), "note", 2)),
    *(
        pydantic.SecretStr("a b"),
        pydantic.SecretStr("c d"),
        pydantic.HttpUrl("https://a/b"),
        pydantic.HttpUrl("https://a/c"),
    ),
]


def test_no_two_of_many_values_have_one_digest_or_are_shown_alike() -> None:
    found = [binding(value) for value in VALUES]
    for (one, mine), (other, theirs) in itertools.combinations(zip(VALUES, found, strict=True), 2):
        assert mine.digest != theirs.digest, (one, other)
        assert mine.shown != theirs.shown, (one, other)
        assert indented(mine.shown) != indented(theirs.shown), (one, other)


def test_equal_values_have_one_digest_and_are_shown_alike() -> None:
    makers = [
        lambda: Model(amount=[1], to=Plain({"a": (1, 2)}), z={3, 2, 1}),
        lambda: Plain([Colour.RED, HOUR], {"a": Decimal(1)}),
        lambda: Struct({"b": 1, "a": 2}),
        lambda: frozenset((1, "1", 2.5)),
    ]
    for make in makers:
        assert binding(make()).digest == binding(make()).digest
        assert binding(make()).shown == binding(make()).shown
    assert binding({"a": 1, "b": 2}).digest == binding({"b": 2, "a": 1}).digest  # as JSON has it


LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.decimals(),
    st.fractions(),
    st.uuids(),
    st.dates(),
    st.timedeltas(),
    st.sampled_from(list(Access)),
    st.datetimes(
        timezones=st.sampled_from([None, BERLIN, VIENNA, datetime.timezone.utc]), allow_imaginary=True
    ),
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        *(st.builds(kind, inner) for kind in (Plain, Slotted, Attrs, Struct, Checked, Point)),
        st.builds(lambda amount, to: Model(amount=amount, to=to), inner, inner),
    ),
    max_leaves=5,
)


def seen(value: Any) -> Any:
    """All that a function can see of a value, as something that equals another only if that is the same."""
    kind = type(value).__name__
    if isinstance(value, dict):
        return kind, frozenset((key, seen(each)) for key, each in value.items())
    if isinstance(value, (list, tuple)):
        return kind, tuple(map(seen, value))
    if isinstance(value, float):
        return kind, struct.pack(">d", value)
    if isinstance(value, datetime.datetime):
        return kind, value.isoformat(), value.fold, repr(value.tzinfo)
    if isinstance(value, pydantic.BaseModel):
        return kind, seen(dict(value.__dict__)), frozenset(value.model_fields_set)
    names = getattr(value, "__dataclass_fields__", None) or getattr(value, "__struct_fields__", None)
    names = names or [each.name for each in getattr(value, "__attrs_attrs__", ())]
    if names:
        return kind, tuple((name, seen(getattr(value, name))) for name in names)
    return kind, repr(value)


@settings(max_examples=400, deadline=None)
@given(TREES, TREES)
def test_values_have_one_digest_and_one_display_only_if_a_function_sees_the_same(
    one: Any, other: Any
) -> None:
    mine, theirs = binding(one), binding(other)
    is_same = seen(one) == seen(other)
    assert (mine.digest == theirs.digest) == is_same
    if "****" not in mine.shown:
        assert (mine.shown == theirs.shown) == is_same or isinstance(one, dict)
    again = binding(one)
    assert (again.digest, again.shown) == (mine.digest, mine.shown)


class Handle:
    def __init__(self) -> None:
        self.amount = 1


class Stateful(list):  # type: ignore[type-arg]
    __slots__ = ("note",)


@dataclasses.dataclass
class Broken(Exception):
    amount: int


@pytest.mark.parametrize(
    "value",
    [
        Handle(),
        len,
        lambda: 1,
        functools.partial(len),
        Handle,
        iter([1]),
        (each for each in ()),
        defaultdict(list),
        Counter("a"),
        Broken(1),
        memoryview(b"a"),
        ZoneInfo.from_file(open("/usr/share/zoneinfo/UTC", "rb"))
        if Path("/usr/share/zoneinfo/UTC").exists()
        else Handle(),
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize(
    "wrap", [lambda x: x, lambda x: [x], lambda x: Plain(1, x), lambda x: Model(amount=x)]
)
def test_what_cannot_be_shown_as_a_whole_is_refused(value: Any, wrap: Any) -> None:
    with pytest.raises(Unbindable, match=f"type {type(value).__name__} has no canonical form"):
        binding(wrap(value))


def test_a_subclass_is_shown_by_what_it_holds_and_not_by_what_it_says() -> None:
    class Liar(str):
        def __str__(self) -> str:
            return "harmless"

        __repr__ = __str__

    class Hiding(dict):  # type: ignore[type-arg]
        def items(self) -> Any:
            return ()

        def __iter__(self) -> Any:
            return iter(())

    assert "rm -rf" in binding(Liar("rm -rf /")).shown
    assert "rm -rf" in binding(Hiding(command="rm -rf /")).shown
    kept = Stateful([1])
    kept.note = "seen"
    assert "seen" in binding(kept).shown


def test_the_canonical_form_is_of_plain_json() -> None:
    for value in VALUES:
        tree = canonical(value)
        assert json.dumps(json.loads(json.dumps(tree))) == json.dumps(tree)

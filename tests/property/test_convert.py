"""Arrays of numbers: what is converted in C against the definition, element by element."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastrpc.schema.converters import PLAIN, ArrayConverter, Mismatch

NUMBER_TEXTS = st.one_of(
    st.text("0123456789+-.eE ", max_size=30),
    st.integers(-(2**70), 2**70).map(str),
    st.floats().map(repr),
    st.builds("{}e{}".format, st.integers(0, 10**17), st.integers(-340, 320)),
    st.text("12_.e \t\n٣ﬁ", max_size=8),
)
ELEMENTS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([2**53, 2**53 - 1, -(2**53), 2**63, 2**64, 10**400]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.integers(-(2**60), 2**60).map(float),
    NUMBER_TEXTS,
    NUMBER_TEXTS.map(" {} ".format),
)


def outcome(convert: Any, values: list[Any], lenient: bool) -> Any:
    """The result of an array: types and bits of its elements, or what is said of the first that is wrong."""
    try:
        accepted = convert(values, lenient)
    except Mismatch as mismatch:
        return str(mismatch)
    return [(type(value), struct.pack("d", value) if type(value) is float else value) for value in accepted]


def one_by_one(kind: type) -> Any:
    def convert(values: list[Any], lenient: bool) -> list[Any]:
        accepted: list[Any] = []
        for value in values:
            try:
                accepted.append(PLAIN[kind].accept(value, lenient))
            except Mismatch as mismatch:
                raise mismatch.within(f"[{len(accepted)}]") from None
        return accepted

    return convert


@pytest.mark.parametrize("kind", [int, float])
@given(values=st.lists(ELEMENTS, max_size=8), lenient=st.booleans())
@example(values=["1", 2.0, " +7 ", "1e3", "9" * 19, "-0", -0.0], lenient=True)
@example(values=["0" * 23 + "1"], lenient=True)
@example(values=["1e999"], lenient=True)
@example(values=[2.0**53], lenient=True)
@example(values=["1", 1], lenient=False)
def test_an_array_is_converted_as_its_elements_are(kind: type, values: list[Any], lenient: bool) -> None:
    assert outcome(ArrayConverter(PLAIN[kind]).accept, values, lenient) == outcome(
        one_by_one(kind), values, lenient
    )


@pytest.mark.parametrize("value", [1e300, 2.0**53, -(2.0**60)])
def test_a_real_that_may_represent_several_integers_is_no_integer(value: float) -> None:
    with pytest.raises(Mismatch, match=r"expected integer below 2\*\*53, or one written in digits"):
        PLAIN[int].accept(value)

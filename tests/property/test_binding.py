"""Arguments that do not fit plainly: the compiled binder against the converters, one parameter at a time."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fastrpc.errors import ArgumentError
from fastrpc.schema import Signature, describe
from fastrpc.schema.converters import Mismatch, text_of_problems

NAMES = ("text", "count", "share", "flag", "table", "names", "any", "perhaps", "numbers")


def function(
    text: str,
    count: int,
    share: float = 0.5,
    flag: bool = False,
    table: dict | None = None,  # type: ignore[type-arg]
    names: list[str] | None = None,
    any: Any = None,
    perhaps: int | None = 3,
    numbers: list[int] = [],  # noqa: B006
) -> None: ...


SIGNATURE = describe(function)
VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=50),
    st.sampled_from(
        ["5", " 7 ", "1e3", "five", "true", "False ", "[1]", '["a"]', "{}", '{"a":1}', "0x10", "e"]
    ),
    st.text('0123456789+-.eE abc"\\\n\x7f', max_size=60),
    st.lists(st.one_of(st.integers(), st.text(max_size=3)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
ARGUMENTS = st.dictionaries(st.sampled_from([*NAMES, "txt", "unknown"]), VALUES)


def bound_plainly(signature: Signature, arguments: dict[str, Any]) -> list[Any] | str:
    """What `Signature.binder` is to return, by the converters alone."""
    values, problems = [], []
    for parameter in signature.parameters:
        if parameter.name in arguments:
            try:
                values.append(parameter.accept(arguments[parameter.name]))
            except Mismatch as mismatch:
                problems.append(mismatch.of(parameter.name))
        elif parameter.required:
            problems.append(signature._missing(parameter.name, arguments))
        else:
            values.append(parameter.default)
    return text_of_problems(problems) if problems else values


@given(arguments=ARGUMENTS)
@example({"text": 5, "count": "5"})
@example({"text": "a" * 300, "count": "five" * 60})
@example({"text": ["a"], "count": {}, "share": [], "flag": "no", "table": "x", "names": 5, "perhaps": "x"})
@example({"text": "", "count": 2.0, "share": 10**400})
@example({"text": "", "count": 1e300})
@example({"text": "", "count": 'a "quoted" word'})
@example({"txt": "", "count": None})
def test_the_binder_returns_and_says_what_the_converters_do(arguments: dict[str, Any]) -> None:
    expected = bound_plainly(SIGNATURE, arguments)
    found = SIGNATURE.binder(arguments)
    assert found == expected
    if isinstance(expected, str):
        with pytest.raises(ArgumentError) as caught:
            SIGNATURE.bind(arguments)
        assert str(caught.value) == expected
        assert len(expected) <= 240
    else:
        assert list(map(type, found)) == list(map(type, expected))

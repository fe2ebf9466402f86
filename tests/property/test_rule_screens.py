"""What compiled code says of rules about arguments is what they say themselves: behind an open gate a call is
refused if, and only if, evaluating the rule says so."""

from __future__ import annotations

import asyncio
import enum
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.guarded import guarded

from fastrpc import Server
from fastrpc.errors import RemoteError
from fastrpc.guard.cel import DYN, EvaluationError, compile
from fastrpc.testing import Client

CONDITIONS = [
    *(f"args.count {operator} 10" for operator in ("==", "!=", "<", "<=", ">", ">=")),
    *(f"10 {operator} args.count" for operator in ("==", "!=", "<", "<=", ">", ">=")),
    *(f"args.size {operator} 1.5" for operator in ("==", "<", ">=")),
    *("args.count > 1.5", "args.size > 1", "args.flag == true", "args.flag != true", "args['count'] > 2"),
    *('args.text == "x"', 'args.text != "x"', 'args.text > "m"', 'args.text in ["x", "y", ""]'),
    *('args.text.startsWith("x")', 'args.text.endsWith("x")', 'args.text.contains("x")'),
    *("!(args.count > 10)", '!args.text.contains("x")', "!(args.count > 10 && args.flag == true)"),
    *('args.count > 10 && args.text == "x"', 'args.count > 10 || args.text == "x"'),
    *("size(args.text) > 2", "args.text.size() == 0", "args.any.size() != 1", "size(args.text) < 1001"),
    *("args.count > 10 && size(args.text) > 2", "args.count > 10 || size(args.text) > 2"),
    *("args.count > 10 && 1 / args.count > 0", "args.count == 0 || 1 / args.count == 0"),
    *('args.text.matches("^x+$")', "args.count % 2 == 0", 'args.any == "x"', "args.any > 1", "args.any == 1"),
    *('args.any in ["x"]', "has(args.any) && args.count > 3", 'caller.class == "local" && args.count > 3'),
    *(
        "args.count > 9007199254740993",
        "args.count == 9007199254740993.0",
        'args.note == "x"',
    ),
    *("args.flag", "!args.flag && args.count > 3", "args.any || args.count > 3", "args.any in [1, 2.5]"),
    *("args.count in [1, 2, 3]", "args.size in [1, 2.5]", 'args.any in [1, "x"]', "args.count in []"),
    *('caller.class == "guest" && args.any', 'caller.class == "guest" || args.flag', "true && args.flag"),
    *('caller["class"] != "local" || args.any.size() > 1', "size(args) > 5"),
    *("args.count > 3 ? args.flag : args.any == 1", 'args.text + "x" == "xx"', "args.count + 1 > 9"),
    *('args.any.exists(each, each == "x")', "[1, 2].exists(each, each == args.count)", '"x" in args.any'),
]
TEXTS = st.one_of(st.text(max_size=3), st.sampled_from(["x", "y", "xx", "ax", "z" * 1001, "x" * 2000]))
NUMBERS = st.one_of(st.integers(-20, 20), st.sampled_from([2**53, 2**53 + 1, 10**30]))
CALLS = st.fixed_dictionaries(
    {"text": TEXTS, "count": NUMBERS},
    optional={
        "size": st.one_of(st.floats(-3, 3), st.integers(-3, 3)),
        "flag": st.booleans(),
        "any": st.one_of(TEXTS, NUMBERS, st.none(), st.floats(-3, 3), st.booleans(), st.just([])),
        "note": st.one_of(st.none(), TEXTS),
    },
)


def shop() -> Server:
    app = Server("shop")

    @app.tool(run="inline")
    def order(
        text: str,
        count: int,
        size: float = 1.0,
        flag: bool = False,
        any: object = "",
        note: str | None = None,
    ) -> str:
        return "ordered"

    return app


POLICY = """
[expose]
tools = ["*"]
[approvals]
from = "never"
[[rules]]
tools = ["order"]
when = '''{condition}'''
then = "deny"
"""
DEFAULTS = {"size": 1.0, "flag": False, "any": "", "note": None}


def is_refused_by(condition: str, arguments: dict[str, Any]) -> bool:
    values = {**DEFAULTS, **arguments}
    values["size"] = float(values["size"])
    try:
        expression = compile(condition, {"args": DYN, "caller": DYN})
        return expression.test({"args": values, "caller": {"class": "local"}})
    except EvaluationError:
        return True  # a rule that fails denies


@pytest.mark.long
@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=15, deadline=None)
@given(calls=st.lists(CALLS, min_size=1, max_size=12))
def test_the_gate_refuses_what_the_rule_refuses(condition: str, calls: list[dict[str, Any]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(refusals(Path(folder), condition, calls, shop()))
    assert found == [is_refused_by(condition, arguments) for arguments in calls]


@pytest.mark.parametrize(
    "condition",
    [
        "args.any == 9007199254740992.0",
        "args.any > 9007199254740992.0",
        "args.any != 9007199254740993",
        "args.any < 9007199254740993",
        "args.any in [9007199254740992.0]",
        "args.any in [1, 9007199254740993]",
    ],
)
def test_the_gate_compares_an_int_with_a_double_as_the_rule_does(condition: str, tmp_path: Path) -> None:
    numbers = (2**53, 2**53 + 1, 2**53 + 2, 2.0**53, 2.0**53 + 2, 2**63 - 1, 2.0**63, 1, 1.0)
    calls = [{"text": "", "count": 1, "any": number} for number in numbers]
    found = asyncio.run(refusals(tmp_path, condition, calls, shop()))
    assert found == [is_refused_by(condition, arguments) for arguments in calls]


# --- members of enums: a rule sees what was sent ------------------------------------------------------------


class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Shade(str, enum.Enum):
    DARK = "dark"
    PALE = "pale"


class Odd(str, enum.Enum):
    """The text of a member is not its value, which is what a caller sends."""

    def __new__(cls, value: str) -> Odd:
        made = str.__new__(cls, f"odd {value}")
        made._value_ = value
        return made

    RED = "red"
    DARK = "dark"


class Level(enum.Enum):
    LOW = 1
    HIGH = 20


class Rank(enum.IntEnum):
    LAST = 1
    FIRST = 20


ENUM_CONDITIONS = [
    *('args.color == "red"', 'args.color != "red"', 'args.color in ["red", "blue"]', 'args.color in ["red"]'),
    *('args.shade == "dark"', 'args.shade.startsWith("d")', 'args.shade in ["pale"]', "size(args.shade) > 3"),
    *('args.odd == "red"', 'args.odd.startsWith("odd")', 'args.odd in ["red"]', 'args.odd.contains("ar")'),
    *("args.level > 10", "args.level == 1", "args.level in [1]", "args.rank > 10", "args.rank in [1]"),
    *('args.several.exists(each, each == "red")', '"red" in args.several', "size(args.several) > 1"),
    *('"red" in args.by_color', "has(args.by_color.red)", 'args.by_color.all(each, each == "blue")'),
    *('args.color == "red" && args.level > 10', '!(args.color == "red") || args.rank == 1'),
    *('args.maybe == "red"', "args.maybe == null", 'args["color"] == "blue"', "size(args) == 3"),
]
ENUM_CALLS = st.fixed_dictionaries(
    {
        "color": st.sampled_from(["red", "blue"]),
        "shade": st.sampled_from(["dark", "pale"]),
        "odd": st.sampled_from(["red", "dark"]),
        "level": st.sampled_from([1, 20]),
        "rank": st.sampled_from([1, 20]),
        "several": st.lists(st.sampled_from(["red", "blue"]), max_size=3),
        "by_color": st.dictionaries(st.sampled_from(["red", "blue"]), st.integers(0, 3)),
        "maybe": st.sampled_from(["red", "blue", None]),
    }
)


def painter() -> Server:
    app = Server("painter")

    @app.tool(run="inline")
    def order(
        color: Color,
        shade: Shade,
        odd: Odd,
        level: Level,
        rank: Rank,
        several: list[Color],
        by_color: dict[Color, int],
        maybe: Color | None,
    ) -> str:
        return "ordered"

    return app


@pytest.mark.parametrize("condition", ENUM_CONDITIONS)
@settings(max_examples=10, deadline=None)
@given(calls=st.lists(ENUM_CALLS, min_size=1, max_size=6))
def test_a_rule_sees_the_values_of_enums_at_the_gate_and_after_it(
    condition: str, calls: list[dict[str, Any]]
) -> None:
    expression = compile(condition, {"args": DYN})
    expected = [expression.test({"args": call}) for call in calls]
    behind = compile(condition, {"args": DYN}, frozenset(BOUND))
    assert [behind.test({"args": bound(call)}) for call in calls] == expected
    with tempfile.TemporaryDirectory() as folder:
        assert asyncio.run(refusals(Path(folder), condition, calls, painter())) == expected


BOUND: dict[str, Any] = {
    "color": Color,
    "shade": Shade,
    "odd": Odd,
    "level": Level,
    "rank": Rank,
    "several": lambda values: list(map(Color, values)),
    "by_color": lambda values: {Color(key): value for key, value in values.items()},
    "maybe": lambda value: value and Color(value),
}


def bound(call: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments of a call as the tool's function gets them."""
    return {name: BOUND[name](value) for name, value in call.items()}


async def refusals(folder: Path, condition: str, calls: list[dict[str, Any]], app: Server) -> list[bool]:
    """Return which calls a policy with one rule refuses."""
    guarded(folder, POLICY.format(condition=condition), app)
    found = []
    async with Client(app) as client:
        for arguments in calls:
            try:
                found.append((await client.call("order", **arguments)).text != "ordered")
            except RemoteError as error:
                found.append(error.data["reason"] == "not_allowed")
    return found

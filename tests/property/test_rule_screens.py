"""What compiled code says of rules about arguments is what they say themselves: behind an open gate a call is
refused if, and only if, evaluating the rule says so."""

from __future__ import annotations

import asyncio
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


DEFAULTS = {"size": 1.0, "flag": False, "any": "", "note": None}


def is_refused_by(condition: str, arguments: dict[str, Any]) -> bool:
    values = {**DEFAULTS, **arguments}
    values["size"] = float(values["size"])
    try:
        expression = compile(condition, {"args": DYN, "caller": DYN})
        return expression.test({"args": values, "caller": {"class": "local"}})
    except EvaluationError:
        return True  # a rule that fails denies


@pytest.mark.parametrize("condition", CONDITIONS)
@settings(max_examples=15, deadline=None)
@given(calls=st.lists(CALLS, min_size=1, max_size=12))
def test_the_gate_refuses_what_the_rule_refuses(condition: str, calls: list[dict[str, Any]]) -> None:
    policy = f"""
[expose]
tools = ["*"]
[approvals]
from = "never"
[[rules]]
tools = ["order"]
when = '''{condition}'''
then = "deny"
"""

    async def outcomes(folder: Path) -> list[bool]:
        app, _ = guarded(folder, policy, shop())
        found = []
        async with Client(app) as client:
            for arguments in calls:
                try:
                    found.append((await client.call("order", **arguments)).text != "ordered")
                except RemoteError as error:
                    found.append(error.data["reason"] == "not_allowed")
        return found

    with tempfile.TemporaryDirectory() as folder:
        found = asyncio.run(outcomes(Path(folder)))
    assert found == [is_refused_by(condition, arguments) for arguments in calls]

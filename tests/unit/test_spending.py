"""What calls cost in units of one's own: as the tool declares it, as the policy says, and as a call spends
it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.guarded import guarded, policy_of
from support.in_memory import RawConversation, in_loop

from fastrpc import Context, Server
from fastrpc.definitions.tool import MEASURED
from fastrpc.errors import DefinitionError, RemoteError
from fastrpc.guard.budgets.file import BudgetFile
from fastrpc.guard.budgets.ledger import Ledger, parts_of
from fastrpc.guard.policy.budgets import UNITS
from fastrpc.guard.policy.sections import GuardConfigError
from fastrpc.protocol.versions import LATEST_SESSION_VERSION
from fastrpc.testing import Client

OPEN = '[approvals]\nfrom = "never"\n[expose]\ntools = ["*"]\n'
MILLION = 1_000_000


def model() -> Server:
    app = Server("model")

    @app.tool(run="inline", costs={"tokens": 5})
    def fixed() -> str:
        return "done"

    @app.tool(run="inline", costs={"tokens": 5, "usd": 0.5})
    def reckoned(ctx: Context, parts: list[float]) -> str:
        for each in parts:
            ctx.spend(each, "tokens")
        return "done"

    @app.tool(costs={"tokens": 0})
    async def said(ctx: Context, amount: float, fails: bool = False) -> str:
        await asyncio.sleep(0)
        ctx.spend(amount, "tokens")
        await asyncio.sleep(0)
        if fails:
            raise RuntimeError("after it was spent")
        return "done"

    @app.tool(run="thread", costs={"tokens": 0})
    def on_a_thread(ctx: Context, amount: float) -> str:
        ctx.spend(amount, "tokens")
        return "done"

    @app.tool(run="inline", costs={"tokens": 0})
    def maybe() -> str:
        return "done"

    @app.tool(run="inline")
    def free(ctx: Context, unit: str = "") -> str:
        if unit:
            ctx.spend(1, unit)
        return "done"

    return app


class Spending:
    def __init__(self, folder: Path, text: str, app: Server | None = None) -> None:
        self.file = BudgetFile(str(folder / "budgets"))
        self.ledger = Ledger(self.file)
        self.app, self.guard = guarded(folder, OPEN + text, app or model(), ledger=self.ledger)
        self.app.observe(self.ledger)
        self.app.runtime.spending.append(self.ledger.spend)

    def call(self, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
        """Return the text of each result, or the error's code, one call after the other."""

        async def run() -> list[Any]:
            found: list[Any] = []
            async with Client(self.app) as client:
                for tool, arguments in calls:
                    try:
                        found.append((await client.call(tool, **arguments)).text)
                    except RemoteError as error:
                        found.append(error.code)
                    self.app.drain_observers()
            return found

        return asyncio.run(asyncio.wait_for(run(), 60))

    def used(self) -> dict[str, float]:
        return {parts_of(text)[2]: amount / MILLION for _, _, _, amount, text in self.file.table.entries()}


Making = Callable[..., Spending]


@pytest.fixture
def spending(tmp_path: Path) -> Iterator[Making]:
    made: list[Spending] = []

    def make(text: str, app: Server | None = None) -> Spending:
        made.append(Spending(tmp_path, text, app))
        return made[-1]

    yield make
    for each in made:
        each.file.close()


def test_what_a_tool_declares_is_counted(spending: Making) -> None:
    found = spending('budget = ["12 tokens/day"]\n')
    assert found.call(("fixed", {}), ("fixed", {}), ("fixed", {}), ("free", {})) == [
        "done",
        "done",
        -32003,
        "done",
    ]
    assert found.used() == {"12 tokens/day": 10}


def test_the_policy_overrides_it_unit_by_unit(spending: Making) -> None:
    text = 'budget = ["100 tokens/day", "100 usd/day"]\n[costs]\n"reck*" = { tokens = 7 }\n'
    found = spending(text)
    found.call(("reckoned", {"parts": []}), ("fixed", {}))
    assert found.used() == {"100 tokens/day": 12, "100 usd/day": 0.5}


def test_what_a_call_spends_takes_the_place_of_what_was_declared(spending: Making) -> None:
    found = spending('budget = ["100 tokens/day", "1000 tokens/month"]\n')
    found.call(("reckoned", {"parts": [20, 10.5]}))
    assert found.used() == {"100 tokens/day": 30.5, "1000 tokens/month": 30.5}
    found.call(("reckoned", {"parts": [1]}), ("reckoned", {"parts": [0]}), ("reckoned", {"parts": []}))
    assert found.used()["100 tokens/day"] == 36.5, "less than declared, nothing, and as declared"


def test_what_is_spent_beyond_the_budget_is_counted_and_the_next_call_is_refused(spending: Making) -> None:
    found = spending('budget = ["10 tokens/day"]\n')
    assert found.call(("said", {"amount": 25}), ("said", {"amount": 1}), ("free", {})) == [
        "done",
        -32003,
        "done",
    ]
    assert found.used() == {"10 tokens/day": 25}


@pytest.mark.parametrize("tool", ["said", "on_a_thread"])
def test_a_call_that_says_it_by_itself_costs_exactly_that(spending: Making, tool: str) -> None:
    found = spending('budget = ["100 tokens/day"]\n')
    assert found.call(*[(tool, {"amount": amount}) for amount in (1, 0, 20, 2.5)]) == ["done"] * 4
    assert found.used() == {"100 tokens/day": 23.5}


def test_what_was_spent_before_a_failure_stays_counted(spending: Making) -> None:
    found = spending('budget = ["100 tokens/day"]\n')
    found.call(("said", {"amount": 7, "fails": True}))
    assert found.used() == {"100 tokens/day": 7}


def test_a_call_that_could_spend_and_does_not_costs_nothing(spending: Making) -> None:
    found = spending('budget = ["100 tokens/day"]\n')
    found.call(("maybe", {}))
    assert found.used() == {"100 tokens/day": 0}


def test_the_next_call_reserves_what_the_last_one_spent_less_an_eighth(spending: Making) -> None:
    found = spending('budget = ["100 tokens/day"]\n')
    found.call(("said", {"amount": 8}))
    account = found.guard.entry("").accounts["said"]
    account.reserve()
    assert found.used() == {"100 tokens/day": 8 + 7}


@pytest.mark.parametrize(("spent", "is_over"), [(10, True), (9.999999, False)])
def test_a_budget_that_is_used_up_to_the_last_refuses_a_tool_that_has_not_spent_yet(
    spending: Making, spent: float, is_over: bool
) -> None:
    found = spending('budget = ["10 tokens/day"]\n')
    assert found.call(("said", {"amount": spent}), ("maybe", {}))[1] == (-32003 if is_over else "done")


def test_calls_in_parallel_are_held_back_by_what_the_last_ones_spent(spending: Making) -> None:
    found = spending('budget = ["100 tokens/day"]\n')
    found.call(("said", {"amount": 20}))

    async def run() -> list[Any]:
        async def one(client: Client) -> Any:
            try:
                return (await client.call("said", amount=20)).text
            except RemoteError as error:
                return error.code

        async with Client(found.app) as client:
            return await asyncio.gather(*(one(client) for _ in range(20)))

    codes = asyncio.run(run())
    found.app.drain_observers()
    assert codes.count("done") == 4, "which is all that fits"
    assert found.used() == {"100 tokens/day": 100}


def test_a_mounted_tool_is_counted_where_it_is_called_and_where_it_is_from(spending: Making) -> None:
    outer = Server("outer")
    outer.mount(model(), prefix="in")
    found = spending('budget = ["100 tokens/day"]\n', outer)
    found.call(("in_said", {"amount": 3}), ("in_fixed", {}))
    assert found.used() == {"100 tokens/day": 8}


@pytest.mark.parametrize("is_guarded", [True, False])
def test_a_unit_that_the_tool_does_not_declare_is_refused_with_or_without_a_guard(
    spending: Making, is_guarded: bool
) -> None:
    app = spending('budget = ["100 tokens/day"]\n').app if is_guarded else model()

    async def run() -> None:
        async with Client(app) as client:
            result = await client.call("free", unit="tokens")
            assert "spend: free does not declare 'tokens'" in result.text

    asyncio.run(run())


@pytest.mark.parametrize("amount", [-1, float("nan"), float("inf"), True, "3", None])
def test_an_amount_that_is_none_is_refused(amount: Any) -> None:
    with pytest.raises(ValueError, match="spend: expected a number from 0 on"):
        Context().spend(amount, "tokens")
    Context().spend(3, "tokens")  # one made by hand counts nothing


def test_without_a_guard_it_does_nothing_and_the_request_is_not_looked_at() -> None:
    app = Server("t")
    kept: list[Any] = []

    @app.tool(run="inline", costs={"tokens": 0})
    def said(ctx: Context) -> str:
        ctx.spend(3, "tokens")
        kept.append(ctx._tool)
        return "done"

    async def run() -> None:
        peer = RawConversation(app, LATEST_SESSION_VERSION)
        peer.call(1, "said", {})
        assert (await peer.answer(1))["result"]["content"][0]["text"] == "done"
        peer.close()

    in_loop(run)
    assert kept[0].name == "said", "else the context would have been filled in"


@pytest.mark.parametrize(
    ("costs", "said"),
    [
        ([], "costs: expected a dict such as"),
        ({"Tokens": 1}, "costs: expected a unit such as tokens, in lower case, got 'Tokens'"),
        ({"a b": 1}, "costs: expected a unit such as tokens"),
        ({"": 1}, "costs: expected a unit such as tokens"),
        ({3: 1}, "costs: expected a unit such as tokens"),
        ({"calls": 1}, "costs: calls are measured, and cannot be declared"),
        ({"tokens": -1}, "costs: tokens: expected a number from 0 to 100,000,000, got -1"),
        ({"tokens": "1"}, "costs: tokens: expected a number"),
        ({"tokens": True}, "costs: tokens: expected a number"),
    ],
)
def test_a_mistake_in_a_declaration_is_named(costs: Any, said: str) -> None:
    app = Server("t")
    with pytest.raises(DefinitionError, match=said.split("(")[0]):
        app.add_tool(_nothing, costs=costs)


def _nothing() -> None: ...


def test_units_that_are_measured_are_the_policys() -> None:
    assert set(UNITS) == MEASURED


def test_a_budget_in_a_unit_that_nothing_costs_is_refused_with_its_line(tmp_path: Path) -> None:
    policy_of(tmp_path, OPEN + 'budget = ["5 tokens/day"]\n', model())
    with pytest.raises(GuardConfigError, match=r"line 5: expose\.budget: expected calls, .* got 'token'"):
        policy_of(tmp_path, OPEN + 'budget = ["5 token/day"]\n', model())
    with pytest.raises(GuardConfigError, match=r"tool_budgets: expected calls, .* got 'eur'"):
        policy_of(tmp_path, OPEN + 'tool_budgets = { "said" = ["5 eur/day"] }\n', model())

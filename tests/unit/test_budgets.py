"""Budgets in front of calls: what is counted and refused, what callers see, when it begins anew."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from fcntl import LOCK_EX, lockf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.guarded import guarded, policy_of, shop

from fastrpc import Server, ToolError
from fastrpc._core.budget_table import LONGEST_TEXT
from fastrpc.errors import RemoteError
from fastrpc.guard.budgets import periods
from fastrpc.guard.budgets.file import BudgetFile, BudgetFileError
from fastrpc.guard.budgets.ledger import FIRST, LEAST, Ledger, parts_of, text_of
from fastrpc.guard.guard import Guard
from fastrpc.guard.policy.budgets import BYTES, Budget, OverBudget
from fastrpc.guard.policy.sections import GuardConfigError
from fastrpc.guard.refusals import ApprovalRejected
from fastrpc.guard.times import rfc3339
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.testing import Client

NOON = datetime(2026, 2, 28, 12, tzinfo=timezone.utc).timestamp()


class Counted:
    """A server behind a guard with budgets, a clock that can be set, and what the file says."""

    def __init__(self, folder: Path, text: str, app: Server | None = None, **options: Any) -> None:
        self.folder = folder
        self.now = NOON
        self.file = BudgetFile(str(folder / "budgets"))
        self.ledger = Ledger(self.file, lambda: self.now)
        policy = f'[expose]\ntools = ["*"]\n{text}'
        if "[approvals]" not in text:
            policy += '\n[approvals]\nfrom = "never"\n'
        self.app, self.guard = guarded(folder, policy, app, ledger=self.ledger, **options)
        self.app.observe(self.ledger)
        self.app.runtime.spending.append(self.ledger.spend)

    def calls(self, *calls: tuple[str, dict[str, Any]], version: str = LATEST_SESSION_VERSION) -> list[Any]:
        """Return the results of calls, the errors of those that are refused."""

        async def run() -> list[Any]:
            found: list[Any] = []
            async with Client(self.app, version=version) as client:
                for tool, arguments in calls:
                    try:
                        found.append(await client.call(tool, **arguments))
                    except RemoteError as error:
                        found.append(error)
                    self.app.drain_observers()
            return found

        return asyncio.run(asyncio.wait_for(run(), 60))

    def codes(self, *calls: tuple[str, dict[str, Any]], version: str = LATEST_SESSION_VERSION) -> list[int]:
        """Return 0 for each call that has run, else the error's code."""
        return [getattr(each, "code", 0) for each in self.calls(*calls, version=version)]

    def used(self) -> dict[tuple[str, str], int]:
        """Return what is counted, by tool ("" for all) and budget."""
        entries = self.file.table.entries()
        return {parts_of(text)[1:]: amount for _, _, _, amount, text in entries}


Making = Callable[..., Counted]


@pytest.fixture
def counting(tmp_path: Path) -> Iterator[Making]:
    made: list[Counted] = []

    def make(text: str, app: Server | None = None, **options: Any) -> Counted:
        made.append(Counted(tmp_path, text, app, **options))
        return made[-1]

    yield make
    for each in made:
        each.file.close()


SEARCH, ORDER = ("search", {"text": "x"}), ("order", {"item": "x"})


@pytest.mark.parametrize(("version", "code"), [(LATEST_SESSION_VERSION, -32003), (STATELESS, 402)])
def test_a_call_more_than_the_budget_is_refused_and_says_how_much_is_used_until_when(
    counting: Making, version: str, code: int
) -> None:
    found = counting('budget = ["3 calls/day"]').calls(*[SEARCH] * 4, version=version)
    refused = found.pop()
    assert [each.text for each in found] == ["found x"] * 3
    assert refused.code == code
    assert refused.data == {
        "reason": "budget",
        "budget": "3 calls/day",
        "limit": 3,
        "used": 3,
        "resets_at": "2026-03-01T00:00:00Z",
    }


def test_from_80_percent_on_results_say_so_beside_what_the_tool_says(counting: Making) -> None:
    from fastrpc import ToolResult

    app = Server("t")

    @app.tool(run="inline")
    def search(text: str) -> ToolResult:
        return ToolResult(text, meta={"own": 1})

    counted = counting('budget = ["5 calls/day"]', app)
    found = counted.calls(*[SEARCH] * 5)
    assert [each.meta for each in found[:3]] == [{"own": 1}] * 3
    told = {"budget": "5 calls/day", "limit": 5, "resets_at": "2026-03-01T00:00:00Z"}
    assert [each.meta for each in found[3:]] == [
        {"own": 1, "fastrpc/budget": [{**told, "used": used}]} for used in (4, 5)
    ]


@pytest.mark.parametrize("run", ["inline", "thread", "coroutine"])
def test_tools_of_every_kind_say_so(counting: Making, run: str) -> None:
    app = Server("t")
    if run == "coroutine":

        @app.tool
        async def search(text: str) -> str:
            await asyncio.sleep(0)
            return text
    else:

        @app.tool(run=run)  # type: ignore[call-overload, unused-ignore]
        def search(text: str) -> str:
            return text

    (found,) = counting('budget = ["1 call/day"]', app).calls(SEARCH, version=STATELESS)
    assert found.text == "x"
    assert found.meta["fastrpc/budget"][0]["used"] == 1


def test_a_mounted_tool_says_so_and_what_its_own_guard_refuses_is_given_back(counting: Making) -> None:
    inner = shop()

    @inner.guard
    def decide(call: Any) -> None:
        if call.arguments.get("text") == "no":
            raise ToolError("no")

    outer = Server("outer")
    outer.mount(inner, prefix="shop")
    counted = counting('budget = ["2 calls/day"]', outer)
    refused, found = counted.calls(("shop_search", {"text": "no"}), ("shop_search", {"text": "x"}))
    assert refused.is_error
    assert found.meta == {}
    assert counted.calls(("shop_search", {"text": "x"}))[0].meta["fastrpc/budget"][0]["used"] == 2


def test_what_another_guard_of_the_server_refuses_is_given_back(counting: Making) -> None:
    app = shop()

    @app.guard
    def decide(call: Any) -> None:
        if call.arguments.get("text") == "no":
            raise ToolError("no")

    counted = counting('budget = ["2 calls/day"]', app)
    counted.calls(*[("search", {"text": "no"})] * 5)
    assert counted.codes(*[SEARCH] * 3) == [0, 0, -32003]


def test_seconds_and_bytes_are_what_the_calls_have_used(counting: Making) -> None:
    counted = counting('budget = ["1 hour/month", "1 MB/day"]')
    counted.calls(*[SEARCH] * 3)
    used = counted.used()
    assert 0 < used["", "1 hour/month"] < 3 * 1_000_000
    answer = len(
        '{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"found x"}],"isError":false}}\n'
    )
    assert used["", "1 MB/day"] == 3 * answer


def test_a_call_that_needs_more_than_was_reckoned_is_answered_and_the_next_is_refused(
    counting: Making,
) -> None:
    app = Server("t")

    @app.tool(run="inline")
    def page(size: int) -> str:
        return "x" * size

    counted = counting('budget = ["100 KB/day"]', app)
    refused = counted.calls(("page", {"size": 150_000}), ("page", {"size": 1}))[1]
    assert refused.code == -32003
    assert refused.data["used"] > 150
    counted.now += 86_400
    assert counted.codes(("page", {"size": 1})) == [0]


def test_what_runs_is_reserved_so_that_calls_in_parallel_cannot_overspend(counting: Making) -> None:
    app, may_end = Server("t"), threading.Event()

    @app.tool
    async def wait() -> str:
        while not may_end.is_set():
            await asyncio.sleep(0.001)
        return "done"

    counted = counting('budget = ["3 seconds/day"]', app)

    async def run() -> list[Any]:
        async with Client(app, version=LATEST_SESSION_VERSION) as client:
            calls = [asyncio.ensure_future(client.call("wait")) for _ in range(5)]
            done, _ = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
            while len(done) < 2:
                done, _ = await asyncio.wait(calls, timeout=0.01)
            may_end.set()
            return await asyncio.gather(*calls, return_exceptions=True)

    began = time.monotonic()
    found = asyncio.run(asyncio.wait_for(run(), 60))
    took = time.monotonic() - began
    assert [getattr(each, "code", 0) for each in found] == [0, 0, 0, -32003, -32003]
    app.drain_observers()
    assert 0 < counted.used()["", "3 seconds/day"] < 3_000_000 * took


def test_days_and_months_are_those_of_utc(counting: Making) -> None:
    counted = counting('budget = ["1 call/day", "2 calls/month"]')
    assert counted.codes(SEARCH, SEARCH) == [0, -32003]
    counted.now = datetime(2026, 2, 28, 23, 59, 59, tzinfo=timezone.utc).timestamp()
    assert counted.codes(SEARCH) == [-32003]
    counted.now += 1
    assert counted.codes(SEARCH, SEARCH) == [0, -32003]
    counted.now += 86_400
    assert counted.codes(SEARCH) == [0]
    counted.now += 86_400
    (refused,) = counted.calls(SEARCH)
    assert (refused.data["budget"], refused.data["resets_at"]) == ("2 calls/month", "2026-04-01T00:00:00Z")
    assert refused.data["used"] == 2


@pytest.mark.parametrize(
    ("moment", "day_ends", "month_ends"),
    [
        ("2026-12-31T23:59:59", "2027-01-01T00:00:00Z", "2027-01-01T00:00:00Z"),
        ("2028-02-29T00:00:00", "2028-03-01T00:00:00Z", "2028-03-01T00:00:00Z"),
        ("1970-01-01T00:00:00", "1970-01-02T00:00:00Z", "1970-02-01T00:00:00Z"),
    ],
)
def test_a_day_and_a_month_end_where_the_calendar_says(moment: str, day_ends: str, month_ends: str) -> None:
    seconds = datetime.fromisoformat(f"{moment}+00:00").timestamp()
    for period, ends in (("day", day_ends), ("month", month_ends)):
        assert rfc3339(periods.ends_at(period, periods.number_of(period, seconds))) == ends


def test_the_nearest_budget_of_a_unit_and_period_holds_and_a_tools_own_counts_besides(
    counting: Making,
) -> None:
    counted = counting(
        'budget = ["1 call/day", "9 calls/month"]\ntool_budgets = { "sea*" = ["2 calls/day"] }\n'
        '[classes.local]\nbudget = ["4 calls/day"]\n'
    )
    assert counted.codes(*[SEARCH] * 3, *[ORDER] * 3) == [0, 0, -32003, 0, 0, -32003]
    assert counted.used() == {("", "4 calls/day"): 4, ("", "9 calls/month"): 4, ("search", "2 calls/day"): 2}


def test_costs_of_the_file_are_counted_for_each_call_of_the_tool(counting: Making) -> None:
    counted = counting(
        'budget = ["0.05 usd/month"]\n[costs]\nsearch = { usd = 0.02, tokens = 3 }\n"or*" = { usd = 0.06 }\n'
    )
    found = counted.calls(SEARCH, ORDER, SEARCH, ("mystery", {}), SEARCH)
    assert [getattr(each, "code", 0) for each in found] == [0, -32003, 0, 0, -32003]
    assert (found[-1].data["used"], found[-1].data["limit"]) == (0.04, 0.05)
    assert found[2].meta["fastrpc/budget"][0]["budget"] == "0.05 usd/month"


def test_a_tool_that_costs_nothing_neither_counts_nor_gives_credit(counting: Making) -> None:
    counted = counting('budget = ["0.05 usd/month"]\n[costs]\nsearch = { usd = 0.02 }\n')
    assert counted.codes(SEARCH, *[ORDER] * 3, SEARCH, SEARCH) == [0, 0, 0, 0, 0, -32003]
    assert counted.used() == {("", "0.05 usd/month"): 40_000}
    entry = counted.guard.entry("")
    for tool, fixed in (("search", [20_000]), ("order", [])):
        decision = counted.guard._decision_for(entry.caller_class, _target(tool))
        assert [amount for _, _, amount in decision.budgets] == fixed


def test_invalid_and_unknown_calls_count_nothing_and_errors_of_tools_do(counting: Making) -> None:
    counted = counting('budget = ["100 calls/day"]')
    counted.calls(("search", {}), ("nothing", {}), SEARCH, ("wipe", {"place": "nowhere"}))
    assert counted.used() == {("", "100 calls/day"): 2}


def test_a_refused_call_counts_in_no_budget(counting: Making) -> None:
    counted = counting(
        'budget = ["100 calls/day"]\nrate = "2/hour"\n[[rules]]\ntools = ["order"]\nwhen = "args.count > 1"\n'
        'then = "deny"\n'
    )
    assert counted.codes(("order", {"item": "x", "count": 2}), SEARCH, SEARCH) == [-32000, 0, -32004]
    assert counted.used() == {("", "100 calls/day"): 1}
    assert counted.ledger.account("", "os:tester", "search", ()).is_idle


@pytest.mark.parametrize("says", ["yes", "no"])
def test_a_call_that_a_person_approves_is_counted_then_and_one_that_is_not_is_not(
    counting: Making, says: str
) -> None:
    counts: list[dict[tuple[str, str], int]] = []

    async def approve(asked: Any) -> dict[str, Any]:
        counts.append(counted.used())
        if says == "no":
            raise ApprovalRejected("no", LATEST_SESSION_VERSION)
        return {}

    counted = counting('budget = ["1 call/day"]\n[approvals]\nfrom = "medium"\n', approve=approve)
    (found,) = counted.calls(ORDER)
    assert counts == [{}]
    if says == "yes":
        assert found.meta["fastrpc/budget"][0]["used"] == 1
        assert counted.codes(ORDER) == [-32003]
    else:
        assert found.code == -32001
        assert counted.used() == {}
    assert counted.ledger.account("", "os:tester", "order", ()).is_idle


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("action", ["accept", "decline"])
def test_a_call_that_the_client_is_asked_about_is_counted_once_if_it_runs(
    counting: Making, version: str, action: str
) -> None:
    counted = counting('budget = ["9 calls/day", "1 hour/day"]\n[approvals]\nfrom = "medium"\n')

    reasons: list[str] = []

    async def run() -> None:
        answer = {} if action == "accept" else False
        async with Client(counted.app, version=version, on_elicit=lambda request: answer) as client:
            for _ in range(3):
                try:
                    await client.call("order", item="x")
                except RemoteError as error:
                    reasons.append(error.data["reason"])

    asyncio.run(asyncio.wait_for(run(), 60))
    counted.app.drain_observers()
    assert reasons == ([] if action == "accept" else ["approval_rejected"] * 3)
    used = counted.used()
    assert used.get(("", "9 calls/day"), 0) == (3 if action == "accept" else 0)
    assert used.get(("", "1 hour/day"), 0) < 3_000_000
    assert counted.ledger.account("", "os:tester", "order", ()).is_idle


def test_a_caller_that_cancels_while_a_person_is_asked_has_used_nothing(counting: Making) -> None:
    asked = threading.Event()

    async def approve(_: Any) -> dict[str, Any]:
        asked.set()
        await asyncio.sleep(60)
        return {}

    counted = counting('budget = ["1 call/day"]\n[approvals]\nfrom = "medium"\n', approve=approve)

    async def run() -> None:
        from support.in_memory import RawConversation

        peer = RawConversation(counted.app, LATEST_SESSION_VERSION)
        peer.call(1, "order", {"item": "x"})
        while not asked.is_set():
            await asyncio.sleep(0.001)
        peer.say({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
        await asyncio.sleep(0.01)
        peer.close()

    asyncio.run(asyncio.wait_for(run(), 60))
    counted.app.drain_observers()
    assert counted.used() == {}
    assert counted.ledger.account("", "os:tester", "order", ()).is_idle


def test_a_changed_limit_holds_for_what_was_used_before(counting: Making, tmp_path: Path) -> None:
    counted = counting('budget = ["2 calls/day"]')
    assert counted.codes(*[SEARCH] * 3) == [0, 0, -32003]
    text = '[expose]\ntools = ["*"]\nbudget = ["3 calls/day"]\n[approvals]\nfrom = "never"\n'
    counted.guard.use(policy_of(tmp_path, text, counted.app))
    assert counted.codes(*[SEARCH] * 2) == [0, -32003]
    assert counted.used() == {("", "3 calls/day"): 3}


def test_a_table_without_room_refuses_whom_it_cannot_count_and_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = BudgetFile(str(tmp_path / "budgets"), cells=64)
    ledger = Ledger(file)
    budget = Budget("1 call/day")
    found = []
    for number in range(66):
        account = ledger.account("", f"caller {number}", f"tool {number}", (("", budget, 1),))
        try:
            account.reserve()
        except OverBudget as error:
            found.append(error)
    assert [(error.budget.text, error.used) for error in found] == [("1 call/day", None)] * 2
    assert caplog.text.count("the budgets file is full") == 1
    file.close()


def test_calls_are_refused_and_others_served_while_a_stopped_process_holds_the_lock(
    counting: Making, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counted = counting('budget = ["100 calls/day"]')
    assert counted.codes(SEARCH) == [0]
    child = os.fork()
    if child == 0:
        held = os.open(tmp_path / "budgets", os.O_RDWR)
        lockf(held, LOCK_EX, 1)
        os.kill(os.getpid(), signal.SIGSTOP)
        os._exit(0)
    try:
        os.waitpid(child, os.WUNTRACED)
        for version, code in ((LATEST_SESSION_VERSION, -32005), (STATELESS, 503)):
            refused, served = counted.calls(ORDER, SEARCH, version=version)
            data = {"reason": "budget_unavailable", "retry_after_seconds": 1}
            assert (refused.code, refused.data) == (code, data)
            assert "another process holds the lock of the budgets file" in str(refused)
            assert served.text == "found x"
        (record,) = caplog.records
        assert record.message.endswith("does not release it: calls with an unknown count are refused")
        with pytest.raises(BudgetFileError, match="budgets: another process holds the lock"):
            BudgetFile(str(tmp_path / "budgets"), counts=False)
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert counted.codes(ORDER) == [0]
    assert counted.used() == {("", "100 calls/day"): 4}


def test_calls_without_budgets_do_not_reach_what_counts(tmp_path: Path) -> None:
    _, guard = guarded(tmp_path, '[expose]\ntools = ["*"]\ntool_budgets = { "order" = ["1 call/day"] }\n')
    assert isinstance(guard, Guard)
    assert guard.ledger is None
    decision = guard._decision_for(guard.entry("").caller_class, _target("search"))
    assert decision.is_plain


def _target(name: str) -> Any:
    from fastrpc.guard.policy.decisions import CallTarget

    return CallTarget("tool", name, "read")


ROOM = LONGEST_TEXT - len("\0order\0001 call/day")


@pytest.mark.parametrize("caller", ["ada#1", "x" * ROOM, "é" * (ROOM // 2)])
def test_a_cell_says_whose_it_is(caller: str) -> None:
    assert parts_of(text_of(caller, "order", "1 call/day")) == (caller, "order", "1 call/day")


@pytest.mark.parametrize("tool", ["order", *("x" * (LONGEST_TEXT - 12 - room) for room in (-99, 0, 1, 2, 3))])
def test_a_cell_is_full_and_ends_with_the_budget_where_a_name_is_too_long(tool: str) -> None:
    text = text_of("x" * 300, tool, "1 call/day")
    assert len(text) == LONGEST_TEXT
    *_, shown, budget = text.decode("utf-8", "replace").split("\0")
    assert tool.endswith(shown)
    assert budget == "1 call/day"
    if tool == "order":
        assert parts_of(text)[0] == "x" * (ROOM - 3) + "…"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        (b"1 call/day", ("", "", "1 call/day")),
        (b"order\0001 call/day", ("", "order", "1 call/day")),
        (b"a\0b\0order\0001 call/day", ("b", "order", "1 call/day")),
    ],
)
def test_the_budget_of_a_cell_is_its_last_part_whatever_is_missing(
    text: bytes, parts: tuple[str, str, str]
) -> None:
    assert parts_of(text) == parts


# --- the configuration ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "limit", "shown"),
    [
        ("1000 calls/day", 1000, 1000),
        ("1 call per month", 1, 1),
        ("1.5 hours/day", 5_400_000_000, 1.5),
        ("50 MB/day", 50_000_000, 50),
        ("2 GiB / month", 2 << 30, 2),
        ("90 seconds/day", 90_000_000, 90),
    ],
)
def test_a_budget_is_read_in_its_unit_and_shown_in_it(text: str, limit: int, shown: float) -> None:
    budget = Budget(text)
    assert (budget.limit, budget.shown(limit)) == (limit, shown)
    assert Budget(budget.text).limit == limit


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[expose]\nbudget = "5 calls/day"\n',
            'line 2: expose.budget: expected budgets such as ["1000 calls/day"]',
        ),
        ("[expose]\nbudget = ['5']\n", "expose.budget: expected a budget such as 1000 calls/day, got '5'"),
        ("[expose]\nbudget = ['5 calls/year']\n", "expected a budget such as 1000 calls/day"),
        ("[expose]\nbudget = ['0 calls/day']\n", "expected a whole amount up to"),
        ("[expose]\nbudget = ['1.5 calls/day']\n", "whole amount up to 140737488355327 calls"),
        (
            "[classes.a]\nbudget = ['5 usd/day']\n",
            "line 2: classes.a.budget: expected calls, seconds, minutes, hours, bytes, KB, MB, GB"
            " or a unit of [costs] or of a tool's costs, got 'usd'",
        ),
        (
            "[callers.a]\nbudget = ['5 seconds/day', '1 hour/day']\n",
            "callers.a.budget: two budgets of seconds for one day",
        ),
        ("[expose]\ntool_budgets = []\n", 'expected a table such as { "order" = ["10 calls/day"] }, got []'),
        (
            "[expose]\ntool_budgets = { order = ['x'] }\n",
            "line 2: expose.tool_budgets: order: expected a budget such as",
        ),
        ("[costs]\norder = 3\n", "line 2: costs.order: expected a table such as { usd = 0.01 }, got 3"),
        ("[costs]\norder = { usd = -1 }\n", "costs.order: usd: expected a number from 0 to"),
        ("[costs]\norder = { calls = 2 }\n", "expected a unit of your own such as usd, got 'calls'"),
    ],
)
def test_a_mistake_in_a_budget_is_named_with_its_line_and_what_was_expected(
    tmp_path: Path, text: str, said: str
) -> None:
    with pytest.raises(GuardConfigError) as caught:
        policy_of(tmp_path, text, Server("t"))
    assert said in str(caught.value)


def test_a_clock_that_is_set_back_counts_for_the_day_that_it_shows(tmp_path: Path) -> None:
    ledger = Ledger(BudgetFile(str(tmp_path / "budgets")), lambda: NOON)
    ledger.turn(NOON)
    assert ledger.begins <= NOON < ledger.ends == ledger.begins + 86_400
    assert not ledger.begins <= NOON - 86_400 < ledger.ends


def test_calls_are_counted_plainly_until_there_is_something_to_say(counting: Making) -> None:
    counted = counting('budget = ["5 calls/day"]')
    counted.calls(SEARCH)  # the first finds the cells
    account = counted.guard.entry("").accounts["search"]
    assert [account.reserve_plainly() for _ in range(4)] == [True, True, False, False]
    assert counted.used() == {("", "5 calls/day"): 3}
    counted.now += 86_400
    assert account.reserve() is False
    assert account.reserve_plainly() is True


@pytest.mark.parametrize(("guard_us", "left"), [(0, 1), (5, 0)])
def test_an_overload_gives_back_what_was_reserved_if_the_guard_had_decided(
    counting: Making, guard_us: int, left: int
) -> None:
    counted = counting('budget = ["5 calls/day"]')
    counted.calls(SEARCH)
    account = counted.guard.entry("").accounts["search"]
    account.reserve()
    record: Any = SimpleNamespace(outcome="overloaded", guard_us=guard_us, run_us=0, size=0)
    account.settle(record)
    assert counted.used() == {("", "5 calls/day"): 1 + left}
    assert account.is_idle is not bool(left)


def test_an_account_that_waits_for_a_record_is_not_forgotten(tmp_path: Path) -> None:
    ledger = Ledger(BudgetFile(str(tmp_path / "budgets")), lambda: NOON)
    idle, refused, running = (
        ledger.account("ada", "ada", tool, ()) for tool in ("idle", "refused", "running")
    )
    refused.expect("refused")
    running.reserve()
    ledger.forget_idle()
    assert ledger.account("ada", "ada", "refused", ()) is refused
    assert ledger.account("ada", "ada", "running", ()) is running
    assert ledger.account("ada", "ada", "idle", ()) is not idle


def record(outcome: str = "ok", **facts: Any) -> Any:
    return SimpleNamespace(
        **{"principal": "", "name": "search", "kind": "tool", "outcome": outcome, "guard_us": 1}
        | {"run_us": 0, "size": 0}
        | facts
    )


def test_a_call_reserves_the_longest_of_late_which_is_forgotten_by_an_eighth_with_each(
    counting: Making,
) -> None:
    counted = counting('budget = ["1 GB/day"]')
    budgets = counted.guard._decision_for(_class_of(counted), _target("search")).budgets
    account = counted.ledger.account("", "os:tester", "search", budgets)

    def reserved(size: int) -> int:
        """Have a call run that answers with so many bytes; return what was reserved for it."""
        before = counted.used().get(("", "1 GB/day"), 0)
        account.reserve()
        found = counted.used()["", "1 GB/day"] - before
        account.settle(record(size=size))
        assert counted.used()["", "1 GB/day"] - before == size
        return found

    first = FIRST[BYTES]
    assert [reserved(size) for size in (first - 800, 800_000, 0, 0)] == [first, first - 100, 800_000, 700_000]
    for _ in range(100):
        reserved(1)
    assert reserved(1) == LEAST[BYTES]


def _class_of(counted: Counted) -> Any:
    return counted.guard.entry("").caller_class


def test_a_call_with_room_whose_cells_are_known_takes_no_second_look(
    counting: Making, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = counting('budget = ["9 calls/day"]')
    counted.calls(SEARCH)
    account = counted.guard.entry("").accounts["search"]
    monkeypatch.setattr(account, "_take_slowly", None)
    assert account.reserve() is False


def test_the_seconds_of_a_call_are_counted_up_to_the_next_microsecond(counting: Making) -> None:
    counted = counting('budget = ["1 hour/day"]')
    budgets = counted.guard._decision_for(_class_of(counted), _target("search")).budgets
    account = counted.ledger.account("", "os:tester", "search", budgets)
    account.reserve()
    account.settle(record(run_us=41.5))
    assert counted.used() == {("", "1 hour/day"): 42}


def test_a_record_settles_the_tool_that_it_is_of_and_one_that_nothing_was_reserved_for_none(
    counting: Making,
) -> None:
    counted = counting('budget = ["5 calls/day"]')
    counted.calls(SEARCH)
    account = counted.guard.entry("").accounts["search"]
    account.reserve()
    counted.ledger([record(name="order"), record(kind="resource")])
    assert not account.is_idle
    counted.ledger([record(), record()])
    assert account.is_idle
    assert counted.used() == {("", "5 calls/day"): 2}


def test_the_first_moment_of_a_day_is_of_that_day_and_the_last_one_before_it_is_not(counting: Making) -> None:
    counted = counting('budget = ["9 calls/day"]')
    counted.calls(SEARCH)
    account = counted.guard.entry("").accounts["search"]
    counted.now = counted.ledger.ends
    assert not account.reserve_plainly(), "it is another day"
    account.reserve()
    assert account.reserve_plainly()
    assert counted.used() == {("", "9 calls/day"): 2}

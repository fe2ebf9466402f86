"""Rates and budgets that servers share: what the database grants, and that all together never count more."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.guarded import guarded
from support.waiting import eventually

from fastrpc import Server
from fastrpc._core.rate_limiter import LEASE, RateTable, now_ns
from fastrpc.cli import budgets
from fastrpc.errors import RemoteError
from fastrpc.guard.budgets.file import BudgetFile
from fastrpc.guard.budgets.ledger import Ledger
from fastrpc.guard.leases import leasing as leasing_module
from fastrpc.guard.leases.leasing import Leasing
from fastrpc.guard.leases.store import Change, LimitStore, settled
from fastrpc.guard.requests import EveryRequest
from fastrpc.protocol.versions import LATEST_SESSION_VERSION, STATELESS
from fastrpc.storage import DatabaseUnavailable
from fastrpc.storage.database import Database
from fastrpc.testing import Client

pytest_plugins = ["support.postgres"]

HOUR_NS = 3600 * 10**9
TOO_OFTEN = 429, -32004
REQUESTS: list[tuple[str, dict[str, Any]]] = [
    ("tools/list", {}),
    ("tools/call", {"name": "search", "arguments": {}}),
    ("tools/call", {"name": "nothing", "arguments": {}}),
    ("resources/list", {}),
]


# --- a lease of a rate --------------------------------------------------------------------------------------


def test_a_leased_limit_allows_what_was_leased_until_its_end() -> None:
    limit = RateTable().leased("ada", None)
    assert limit.take() == LEASE
    assert limit.add(2, now_ns(), HOUR_NS)
    assert [limit.take(), limit.take(), limit.take()] == [0, 0, LEASE]
    limit.give_back()
    assert limit.end() == 1
    assert limit.take() == LEASE
    limit.add(2, now_ns() - HOUR_NS, HOUR_NS // 2)
    assert limit.take() == LEASE


def test_a_lease_beside_another_one_ends_with_the_first() -> None:
    limit = RateTable().leased("ada", None)
    limit.add(1, now_ns(), 20 * 10**6)
    limit.add(1, now_ns(), HOUR_NS)
    time.sleep(0.03)
    assert limit.take() == LEASE


def test_the_processes_of_a_table_share_a_lease() -> None:
    table = RateTable()
    table.leased("ada", None).add(1, now_ns(), HOUR_NS)
    assert [table.leased("ada", None).take(), table.leased("ada", None).take()] == [0, LEASE]
    assert table.leased("eve", None).take() == LEASE


# --- what is granted ----------------------------------------------------------------------------------------


def rate(**amounts: int) -> Change:
    return Change("key", 10, 22, 1.0, **amounts)


def test_grants_of_one_window_never_exceed_the_limit_and_the_oldest_are_forgotten() -> None:
    counts, granted = settled({}, 100.5, rate(least=1, want=8))
    assert (granted.amount, granted.number, granted.total) == (8, 100, 8)
    counts, granted = settled(counts, 105.0, rate(least=1, want=8))
    assert granted.amount == 2
    counts, granted = settled(counts, 121.9, rate(least=1, want=1))
    assert granted.amount == 0
    assert granted.wait_seconds == pytest.approx(0.1)
    counts, granted = settled(counts, 122.0, rate(least=1, want=20))
    assert granted.amount == 8


def test_less_than_is_needed_is_not_granted() -> None:
    counts, granted = settled({5: 8}, 0.0, Change("key", 10, 1, number=5, least=3, want=9))
    assert (counts, granted.amount, granted.total) == ({5: 8}, 0, 8)


def test_what_is_given_back_is_granted_again_and_a_debt_counts_beyond_the_limit() -> None:
    counts, _ = settled({5: 10}, 0.0, Change("key", 10, 1, number=5, back=4, back_number=5))
    assert counts == {5: 6}
    counts, granted = settled(counts, 0.0, Change("key", 10, 1, number=5, debt=7))
    assert (counts, granted.amount) == ({5: 13}, 0)


def test_the_period_of_a_server_whose_clock_is_late_still_counts() -> None:
    counts, _ = settled({5: 10}, 0.0, Change("key", 10, 1, number=6, least=1, want=1))
    assert counts == {5: 10, 6: 1}
    _, granted = settled(counts, 0.0, Change("key", 10, 1, number=5, least=1, want=1))
    assert granted.amount == 0


@given(st.lists(st.tuples(st.floats(0, 8), st.integers(1, 5), st.integers(0, 3)), min_size=1, max_size=60))
def test_whatever_servers_ask_and_return_no_window_has_more_than_the_limit(
    steps: list[tuple[float, int, int]],
) -> None:
    """A use is at any time from its grant to the end of the lease: here as late as is possible."""
    counts: dict[int, int] = {}
    now, uses = 1000.0, []
    for pause, want, back in steps:
        now += pause
        counts, granted = settled(counts, now, rate(least=1, want=want))
        unused = min(back, granted.amount)
        uses += [(now, now + 1.0)] * (granted.amount - unused)
        if unused:
            counts, _ = settled(counts, now + 1.0, rate(back=unused, back_number=granted.number))
    for _, late in uses:  # the window of 20 s that begins with this use
        inside = [1 for early, end in uses if end >= late and early < late + 20.0]
        assert len(inside) <= 10


def test_two_servers_are_granted_one_limit(database_url: str) -> None:
    stores = [LimitStore(Database(database_url)) for _ in range(2)]
    change = Change("k" * 64, 5, 1, number=7, least=1, want=3)
    granted = [store.settle([change])[0].amount for store in stores * 2]
    assert granted == [3, 2, 0, 0]


# --- servers ------------------------------------------------------------------------------------------------


class Host:
    """A guarded server with a table of rates and a file of budgets, as each host has."""

    def __init__(self, folder: Path, text: str, open_database: Callable[[], Database]) -> None:
        folder.mkdir()
        self.leasing = Leasing(open_database)
        self.file = BudgetFile(str(folder / "budgets"))
        self.ledger = Ledger(self.file, leasing=self.leasing)
        app = Server("shop")

        @app.tool(effect="read", run="inline")
        def search() -> str:
            return "found"

        policy = f'[expose]\ntools = ["*"]\n{text}\n[approvals]\nfrom = "never"\n'
        self.app, self.guard = guarded(folder, policy, app, ledger=self.ledger, leasing=self.leasing)
        self.app.observe(self.ledger)

    def count_all(self) -> None:
        """Count requests that are no calls, too."""
        self.app.runtime.counter = EveryRequest(self.guard, None)

    async def allowed(self, count: int, at_once: int, version: str) -> list[bool]:
        """Make so many requests by different methods; return whether each was allowed. The first one is the
        handshake of the client."""

        async def one(client: Client, number: int) -> bool:
            method, params = REQUESTS[number % len(REQUESTS)]
            try:
                await client.request(method, params)
            except RemoteError as error:
                return error.code not in TOO_OFTEN
            return True

        async with Client(self.app, version=version) as client:
            found = [True]
            while len(found) < count:
                some = range(len(found), min(count, len(found) + at_once))
                found += await asyncio.gather(*(one(client, number) for number in some))
            return found

    async def outcomes(self, count: int, at_once: int = 1) -> list[Any]:
        async def one(client: Client) -> Any:
            try:
                return (await client.call("search")).text
            except RemoteError as error:
                return error

        found: list[Any] = []
        async with Client(self.app) as client:
            while len(found) < count:
                found += await asyncio.gather(*(one(client) for _ in range(min(at_once, count - len(found)))))
                self.app.drain_observers()
        return found


def ran(outcomes: list[Any]) -> int:
    return outcomes.count("found")


Making = Callable[..., Host]


@pytest.fixture
def host(tmp_path: Path, database_url: str) -> Iterator[Making]:
    """What makes a host on a database that all share."""
    made: list[Host] = []
    Database(database_url).close()  # it is migrated: a call waits for its lease two seconds at most

    def make(text: str, open_database: Callable[[], Database] | None = None) -> Host:
        folder = tmp_path / f"host{len(made)}"
        made.append(Host(folder, text, open_database or (lambda: Database(database_url))))
        return made[-1]

    yield make
    for each in made:
        each.leasing._end()


def together(*work: Any) -> list[Any]:
    async def run() -> list[Any]:
        return list(await asyncio.gather(*work))

    return asyncio.run(asyncio.wait_for(run(), 120))


@pytest.mark.parametrize(
    ("limit", "code"), [('rate = "50/hour"', -32004), ('budget = ["50 calls/month"]', -32003)]
)
def test_hosts_together_grant_exactly_what_is_configured(host: Making, limit: str, code: int) -> None:
    hosts = [host(limit) for _ in range(3)]
    found = together(*(each.outcomes(40, at_once=8) for each in hosts))
    everything = [outcome for each in found for outcome in each]
    refused = [outcome for outcome in everything if outcome != "found"]
    assert {outcome.code for outcome in refused} == {code}
    assert ran(everything) <= 50


@pytest.mark.parametrize("version", [LATEST_SESSION_VERSION, STATELESS])
@pytest.mark.parametrize("at_once", [1, 8])
def test_hosts_count_requests_that_are_no_calls_together_and_with_calls(
    host: Making, version: str, at_once: int
) -> None:
    hosts = [host('rate = "50/hour"\n[defaults]\nrequests = "all"') for _ in range(2)]
    for each in hosts:
        each.count_all()
    found = together(*(each.allowed(40, at_once, version) for each in hosts))
    assert 40 <= sum(map(sum, found)) <= 50


def test_requests_that_cannot_be_counted_are_refused_and_say_when_to_come_back(host: Making) -> None:
    def away() -> Database:
        raise DatabaseUnavailable("it is away")

    alone = host('rate = "50/hour"\n[defaults]\nrequests = "all"', away)

    async def run() -> tuple[Any, Any]:
        async with Client(alone.app, version=STATELESS) as client:
            alone.count_all()
            found = await asyncio.gather(
                *(client.request("tools/list", {}) for _ in range(3)), return_exceptions=True
            )
            return found, alone.app.runtime.calls.count

    found, in_flight = asyncio.run(asyncio.wait_for(run(), 60))
    assert [error.data["reason"] for error in found] == ["rate_unavailable"] * 3
    assert [error.data["retry_after_seconds"] for error in found] == [1] * 3
    assert in_flight == 0


def test_what_a_host_has_leased_and_does_not_use_another_one_uses(host: Making) -> None:
    hosts = [host('budget = ["60 calls/month"]') for _ in range(2)]
    assert ran(together(hosts[0].outcomes(40, at_once=8))[0]) == 40  # it has leased more by now
    count = 40

    def all_are_used() -> bool:
        nonlocal count
        count += ran(together(hosts[1].outcomes(5))[0])
        return count == 60

    eventually(all_are_used, seconds=30)
    assert ran(together(hosts[0].outcomes(5))[0]) == 0


def test_what_was_counted_on_a_host_before_it_shares_still_counts(host: Making) -> None:
    alone = host('budget = ["10 calls/month"]')
    alone.guard.leasing, alone.ledger._leasing = None, None
    assert ran(together(alone.outcomes(6))[0]) == 6
    alone.guard.leasing, alone.ledger._leasing = alone.leasing, alone.leasing
    alone.guard.use(alone.guard.policy)
    other = host('budget = ["10 calls/month"]')
    assert ran(together(alone.outcomes(1))[0]) == 1
    assert ran(together(other.outcomes(5))[0]) == 3


def test_calls_that_spend_more_than_was_reserved_are_owed_by_all_hosts(host: Making) -> None:
    first, second = (host('budget = ["100 bytes/month"]') for _ in range(2))
    together(first.outcomes(1))  # its answer is longer than that
    [(_, _, _, size, _)] = first.file.table.entries()
    assert size > 100

    def refused_with() -> object:
        [outcome] = together(second.outcomes(1))[0]
        assert outcome.code == -32003, "the reservation took all of it"
        return outcome.data["used"]

    eventually(lambda: refused_with() == size, seconds=30)


def test_the_command_shows_on_any_host_what_all_have_used_and_sets_it_to_zero(
    host: Making,
    tmp_path: Path,
    database_url: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("FASTRPC_GUARD_DATABASE", database_url)

    def said(at: str, *arguments: str) -> str:
        monkeypatch.setenv("FASTRPC_STATE_DIR", str(tmp_path / at))
        assert budgets.main([*arguments]) == 0
        return capsys.readouterr().out

    def used() -> set[tuple[str, int, str]]:
        """What a host that counts, another one, and one that counts nothing show."""
        found = [json.loads(said(at, "list", "--json")) for at in ("host0", "host1", "elsewhere")]
        return {(each["budget"], each["used"], each["counted"]) for shown in found for each in shown}

    hosts = [host('budget = ["60 calls/month"]') for _ in range(2)]
    assert [ran(each) for each in together(hosts[0].outcomes(20), hosts[1].outcomes(7))] == [20, 7]
    eventually(lambda: used() == {("60 calls/month", 27, "all hosts")}, seconds=30)
    [caller] = {each["caller"] for each in json.loads(said("elsewhere", "list", "--json"))}
    said("host0", "reset", caller)
    eventually(lambda: used() == {("60 calls/month", 0, "all hosts")}, seconds=30)
    found = together(hosts[0].outcomes(40, at_once=8), hosts[1].outcomes(40, at_once=8))
    assert sum(map(ran, found)) <= 60


def test_without_the_database_calls_that_need_a_lease_are_refused_at_once_and_others_run(
    host: Making,
) -> None:
    def away() -> Database:
        raise DatabaseUnavailable("the guard's database: gone")

    limited = host('rate = "50/hour"', away)
    [refused] = together(limited.outcomes(1))[0]
    assert (refused.code, refused.data["reason"]) == (-32005, "rate_unavailable")
    assert refused.data["retry_after_seconds"] == 1
    counted = host('budget = ["50 calls/day"]', away)
    [refused] = together(counted.outcomes(1))[0]
    assert (refused.code, refused.data["reason"]) == (-32005, "budget_unavailable")
    assert ran(together(host("", away).outcomes(3))[0]) == 3


def test_a_database_that_does_not_answer_delays_a_call_only_so_long(
    host: Making, monkeypatch: pytest.MonkeyPatch, database_url: str
) -> None:
    monkeypatch.setattr(leasing_module, "WAIT_SECONDS", 0.2)
    answers = threading.Event()

    def late() -> Database:
        answers.wait(60)
        return Database(database_url)

    hanging = host('rate = "50/hour"', late)
    found = together(hanging.outcomes(4))[0]
    assert [outcome.data["reason"] for outcome in found] == ["rate_unavailable"] * 4
    answers.set()
    eventually(lambda: ran(together(hanging.outcomes(1))[0]) == 1, seconds=30)


def test_most_calls_read_no_database(host: Making, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = 0
    settle = LimitStore.settle

    def counted(store: LimitStore, changes: Any) -> Any:
        nonlocal asked
        asked += 1
        return settle(store, changes)

    monkeypatch.setattr(LimitStore, "settle", counted)
    busy = host('rate = "100000/minute"\nbudget = ["100000 calls/month"]')
    assert ran(together(busy.outcomes(4000, at_once=50))[0]) == 4000
    assert 0 < asked <= 4000 // 20

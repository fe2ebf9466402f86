"""Counts calls against the budgets of their callers: reserve, run, settle.

    account = ledger.account(principal, caller, tool, budgets)
    is_near = account.reserve()              # raises OverBudget, and nothing is counted then
    ledger(records)                          # an observer: settles

A reservation counts one call, the cost of its tool, and an estimate of its seconds and bytes: the recent
maximum of the tool. It takes about 1 µs. When the call's record arrives, the estimate is replaced by the
actual use; a call that did not run is given back. A record settles any reservation of the same principal and
tool: which one does not matter for the sums. So a call is refused once past use and running calls together
reach the limit. Seconds and bytes exceed it at most by what the running calls exceed their estimates.

What a tool reports as spent (`Context.spend`) is counted at once. The record of a call that has spent in a
unit gives back the reservation in that unit: what the tool declares, or if it declares 0, the recent maximum
of a call.

If a process is killed, the estimates of its running calls are given back when the next process opens the
file; the calls themselves remain counted, since they had begun. A ledger uses four functions of a store,
which another store than `BudgetFile` must have: `claim`, which returns a cell, `take_all`, and `settle` and
`counted` of a cell.

If hosts share budgets (`fastrpc.guard.leases`), this host counts at most what it has leased. `reserve` raises
LeaseNeeded when that is used up.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from threading import Lock
from time import monotonic, time
from typing import Any, NoReturn

from fastrpc import diagnostics
from fastrpc._core.budget_table import LARGEST_AMOUNT, LONGEST_TEXT, LOST, UNLEASED, BudgetCell, take_all
from fastrpc._core.recorder import CallRecord
from fastrpc.guard.budgets import periods
from fastrpc.guard.budgets.file import GRANTS, BudgetFile
from fastrpc.guard.policy.budgets import BYTES, COST, MILLION, MONTH, SECONDS, Budget, CannotCount, OverBudget
from fastrpc.guard.policy.decisions import BudgetOfCall
from fastrpc.guard.times import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.guard.leases.leasing import Leasing
    from fastrpc.guard.leases.shares import BudgetShare

Reservation = tuple[tuple[BudgetOfCall, ...], tuple[BudgetCell, ...], tuple[int, ...], int, int]
"""Budgets, their cells, the amount that was reserved in each, the day and the month."""

FIRST = {SECONDS: 1_000_000, BYTES: 65_536}
LEAST = {SECONDS: 1_000, BYTES: 256}
"""The estimates for a tool that the caller has not called yet, and the minimum for any."""
MOST_WAITING = 4096
"""Reservations of one caller and tool that wait for a record. A call by another tool has no record."""
REFUSED, CANCELLED = "refused", "cancelled"
NOT_GUARDED = ("invalid", "unknown")
"""Outcomes of calls that have not reached the guard."""


class LeaseNeeded(Exception):
    """This host has to lease so much of these shares first."""

    def __init__(self, needs: list[tuple[BudgetShare, int]]) -> None:
        super().__init__()
        self.needs = needs


class Account:
    """The calls of one tool by one principal."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._caller = ""
        self._budgets: tuple[BudgetOfCall, ...] = ()
        self._cells: tuple[BudgetCell, ...] = ()
        self._amounts: tuple[int, ...] = ()
        self._said_day: int | None = None
        """The day on which a budget may be nearly used up: `reserve_plainly` takes no calls of that day."""
        self._estimates = dict(FIRST)
        self._cells_of: dict[str, list[BudgetCell]] = {}
        """Cells by unit of costs; those of former budgets remain until the next call, for running calls."""
        self._spends: Counter[str] = Counter()
        """By unit, the recent maximum that a call has spent; it decays by an eighth with each call."""
        self._spenders: Counter[str] = Counter()
        """By unit, how many calls have spent in it and have no record yet."""
        self._reckoning = Lock()
        """Held while budgets and amounts change; amounts change on the observers' thread, too."""
        self._waiting: deque[Reservation] = deque(maxlen=MOST_WAITING)
        self._without = {outcome: deque[None](maxlen=MOST_WAITING) for outcome in (REFUSED, CANCELLED)}
        """By outcome, one entry for each call without a reservation whose record will have that outcome."""

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not any(self._without.values())

    def use(self, caller: str, budgets: tuple[BudgetOfCall, ...]) -> None:
        """Count against these budgets of a caller from now on."""
        with self._reckoning:
            self._caller = caller
            self._budgets = budgets
            self._cells = ()
            self._said_day = None
            self._reckon()

    def reserve(self) -> bool:
        """Reserve for a call that is about to run; return whether a budget is nearly used up. Raises
        OverBudget, LeaseNeeded and CannotCount."""
        ledger = self._ledger
        now = ledger.clock()
        if not ledger.begins <= now < ledger.ends:
            ledger.turn(now)
        cells, amounts, day, month = self._cells, self._amounts, ledger.day, ledger.month
        found = take_all(cells, amounts, day, month) if cells else LOST
        if found < 0:
            cells, found = self._take_slowly(found, amounts, day, month)
        self._waiting.append((self._budgets, cells, amounts, day, month))
        return found > 0

    def reserve_plainly(self) -> bool:
        """Reserve if no budget is used up or nearly so, and return True. Otherwise count nothing."""
        ledger = self._ledger
        cells, amounts, day, month = self._cells, self._amounts, ledger.day, ledger.month
        if self._said_day == day or not ledger.begins <= ledger.clock() < ledger.ends:
            return False
        found = take_all(cells, amounts, day, month) if cells else LOST
        if found == 0:
            self._waiting.append((self._budgets, cells, amounts, day, month))
            return True
        if found > 0:
            self._said_day = day
            for cell, amount in zip(cells, amounts, strict=True):
                cell.settle(day, month, amount, 0)
        return False

    def _take_slowly(
        self, found: int, amounts: tuple[int, ...], day: int, month: int
    ) -> tuple[tuple[BudgetCell, ...], int]:
        """Reserve when the cells may have changed. Raises OverBudget, LeaseNeeded and CannotCount."""
        while found == LOST:
            cells = []
            for about, budget, fixed in self._budgets:
                cell = self._ledger.cell(self._caller, about, budget, is_estimate=not fixed)
                if cell is None:
                    raise OverBudget(budget, None, self._ledger.ends_at(budget))
                cells.append(cell)
            self._cells = tuple(cells)
            self._cells_of = {
                unit: [
                    cell
                    for cell, (_, budget, _) in zip(cells, self._budgets, strict=True)
                    if budget.unit == unit
                ]
                for unit in {budget.unit for _, budget, _ in self._budgets if budget.measure == COST}
            }
            found = take_all(self._cells, amounts, day, month)
        if LOST < found <= UNLEASED:
            self._lease(UNLEASED - found, amounts, day, month)
        if found < 0:
            raise self._over(-1 - found, day, month)
        return self._cells, found

    def _over(self, at: int, day: int, month: int) -> OverBudget:
        budget = self._budgets[at][1]
        used = self._cells[at].counted_everywhere(day, month)
        return OverBudget(budget, used, self._ledger.ends_at(budget))

    def _lease(self, at: int, amounts: tuple[int, ...], day: int, month: int) -> NoReturn:
        """Raise LeaseNeeded for the budget at a place, and those after it that need it, too; OverBudget if
        all of it is leased."""
        needs = []
        for place in range(at, len(self._cells)):
            share, state = self._cells[place].share, self._cells[place].state(day, month)
            if share is None or state is None or state[1] + amounts[place] <= state[2]:
                continue
            if monotonic() < share.denied_until:
                raise self._over(place, day, month)
            share.days = day, month
            needs.append((share, amounts[place]))
        raise LeaseNeeded(needs)

    def spend(self, unit: str, amount: int, total: int, is_first: bool) -> None:
        """Count what a call has spent, `total` in this unit so far. `is_first`: the call's record will give
        back the reservation. Thread-safe."""
        ledger = self._ledger
        now = ledger.clock()
        if not ledger.begins <= now < ledger.ends:
            ledger.turn(now)
        with self._reckoning:
            for cell in self._cells_of.get(unit, ()):
                cell.settle(ledger.day, ledger.month, 0, amount)
            self._spenders[unit] += is_first
            self._spends[unit] = max(total, self._spends[unit])
            self._reckon()

    def expect(self, outcome: str) -> None:
        """Expect the record of a call that was refused or cancelled before a reservation."""
        self._without[outcome].append(None)

    def near(self) -> list[dict[str, Any]]:
        """Return the budgets that are nearly used up, in the form of a result's ``_meta``."""
        ledger = self._ledger
        found = []
        for (_, budget, _), cell in zip(self._budgets, self._cells, strict=True):
            used = cell.counted_everywhere(ledger.day, ledger.month)
            if used >= budget.warns_at:
                found.append(facts(budget, used, ledger.ends_at(budget)))
        return found

    def settle(self, record: CallRecord) -> None:
        """Replace the reservation of a call by the amounts in its record."""
        outcome = record.outcome
        if outcome in NOT_GUARDED:
            return
        if self._without.get(outcome):
            self._without[outcome].popleft()
            return
        if outcome == "overloaded" and not record.guard_us:  # it was refused before the guard's decision
            return
        try:
            budgets, cells, amounts, day, month = self._waiting.popleft()
        except IndexError:
            return
        gives_back = outcome in (REFUSED, "overloaded")  # by a mounted server's guard, or after all guards
        used = {SECONDS: int(record.run_us) + 1, BYTES: record.size, COST: 0}
        spent = set() if gives_back else self._units_of_a_spender()
        for (_, budget, fixed), cell, amount in zip(budgets, cells, amounts, strict=True):
            real = 0 if gives_back or budget.unit in spent else fixed or used[budget.measure]
            if real != amount or not fixed:
                cell.settle(day, month, amount, real)
        if not gives_back:
            for measure, before in self._estimates.items():
                reckoned = before - (before - used[measure]) // 8
                self._estimates[measure] = max(used[measure], LEAST[measure], reckoned)
            with self._reckoning:
                self._reckon()

    def _units_of_a_spender(self) -> set[str]:
        """Return the units in which the call of a record may have spent. The record may be that of another
        call of the tool, which makes no difference for the sums."""
        if not self._spenders:
            return set()
        with self._reckoning:
            found = {unit for unit, count in self._spenders.items() if count}
            self._spenders.subtract(found)
            self._spends = Counter({unit: most - most // 8 for unit, most in self._spends.items()})
        return found

    def _reckon(self) -> None:
        """Set what the next call reserves: the recent maximum of each amount, which decays by an eighth with
        each call. It is at most the budget's limit, so that a first call is allowed."""
        self._amounts = tuple(
            fixed or min(self._estimate_of(budget), budget.limit) for _, budget, fixed in self._budgets
        )

    def _estimate_of(self, budget: Budget) -> int:
        if budget.measure != COST:
            return self._estimates[budget.measure]
        return self._spends[budget.unit] or 1  # at least 1, so that a used-up budget refuses


def facts(budget: Budget, used: int | None, resets_at: int) -> dict[str, Any]:
    """Return what callers receive about a budget."""
    return {
        "budget": budget.text,
        "limit": budget.shown(budget.limit),
        "used": None if used is None else budget.shown(used),
        "resets_at": rfc3339(resets_at),
    }


class Ledger:
    """The accounts of a server, in a file. An observer of calls: it settles them by their records.

    `day` and `month` are the current numbers, valid while the clock is in ``[begins, ends)``. `leasing`
    leases what hosts share; None: this host counts alone."""

    def __init__(
        self, file: BudgetFile, clock: Callable[[], float] = time, leasing: Leasing | None = None
    ) -> None:
        self._file = file
        self._leasing = leasing
        self.clock = clock
        self.turn(clock())
        self._accounts: dict[tuple[str, str], Account] = {}
        self._is_full = self._is_locked = False

    def turn(self, now: float) -> None:
        self.day, self.month = periods.day_of(now), periods.month_of(now)
        self.begins = self.day * periods.DAY_SECONDS
        self.ends = self.begins + periods.DAY_SECONDS

    def ends_at(self, budget: Budget) -> int:
        """Return when the current period of a budget ends, in seconds since 1970."""
        return periods.ends_at(budget.period, self.month if budget.period == MONTH else self.day)

    def account(self, principal: str, caller: str, tool: str, budgets: tuple[BudgetOfCall, ...]) -> Account:
        """Return the account of a principal and a tool, which counts against these budgets of the caller."""
        found = self._accounts.get((principal, tool))
        if found is None:
            found = self._accounts[principal, tool] = Account(self)
        found.use(caller, budgets)
        return found

    def forget_idle(self) -> None:
        """Remove the accounts that wait for no record. Called when no decision refers to them."""
        self._accounts = {key: each for key, each in self._accounts.items() if not each.is_idle}

    def spend(
        self, principal: str, tool: str, unit: str, amount: float, total: float, is_first: bool
    ) -> None:
        """Count what a call of a tool has spent: see `Context.spend`. Thread-safe."""
        account = self._accounts.get((principal, tool))
        if account is not None:
            account.spend(unit, _millionths(amount), _millionths(total), is_first)

    def cell(self, caller: str, about: str, budget: Budget, *, is_estimate: bool) -> BudgetCell | None:
        """Return the cell of a budget; None, which is logged once, if the table is full. An estimate is given
        back if the process is killed. Raises CannotCount, which is logged once, too."""
        key = "\0".join((caller, about, budget.unit, budget.period))
        text = text_of(caller, about, budget.text)
        leasing, name = self._leasing, f"budget\0{key}"
        share = None if leasing is None else leasing.budget(name, budget, GRANTS, caller, about)
        try:
            found = self._file.claim(key, text, budget, self.day, self.month, is_estimate, share)
        except CannotCount as error:
            if not self._is_locked:
                self._is_locked = True
                diagnostics.write("error", f"guard: {error}: calls with an unknown count are refused")
            raise
        self._is_locked = False
        if share is not None:
            share.cell, share.days = found, (self.day, self.month)
        if found is None and not self._is_full:
            self._is_full = True
            diagnostics.write("error", "guard: the budgets file is full: other callers are refused")
        return found

    def __call__(self, records: list[CallRecord]) -> None:
        for each in records:
            account = self._accounts.get((each.principal, each.name))
            if account is not None and each.kind == "tool":
                account.settle(each)


def _millionths(amount: float) -> int:
    return min(round(amount * MILLION), LARGEST_AMOUNT)


def text_of(caller: str, tool: str, budget: str) -> bytes:
    """Return the text that describes a cell; a caller's name that is too long is truncated."""
    end = f"\0{tool}\0{budget}".encode("utf-8", "replace")[-LONGEST_TEXT:]
    start = caller.encode("utf-8", "replace")
    room = LONGEST_TEXT - len(end)
    return (start if len(start) <= room else start[: max(room - 3, 0)] + "…".encode()[:room]) + end


def parts_of(text: bytes) -> tuple[str, str, str]:
    """Return the caller, the tool ("" for all) and the budget of `text_of`."""
    caller, tool, budget = ("", "", "", *text.decode("utf-8", "replace").split("\0"))[-3:]
    return caller, tool, budget

"""Counts calls against the budgets of their callers: reserve, run, settle.

    account = ledger.account(principal, caller, tool, budgets)
    is_near = account.reserve()              # raises OverBudget, and nothing is counted then
    ledger(records)                          # an observer: settles

A reservation counts one call, what its tool costs, and an estimate of the seconds and bytes it will take: the
longest that the tool took lately. It costs about 1 µs. When the call's record comes, the estimate is replaced
by what was used; a call that did not run after all is given back. A record is that of some reservation of the
same principal and tool: which one does not matter for the sums. So a call is refused once what is used and what
runs reaches the limit; seconds and bytes exceed it by no more than the calls that run then exceed their
estimates.

If a process is killed, the estimates of its running calls come back when the next one opens the file; the calls
themselves stay counted, since they had begun. What a ledger needs of a `BudgetFile` is `claim`, and `take` and
`settle` of a cell: another store has these three.
"""

from __future__ import annotations

from collections import deque
from time import time

from fastrpc import diagnostics
from fastrpc._core.budget_table import LONGEST_TEXT
from fastrpc.guard.budgets import periods
from fastrpc.guard.policy.budgets import BYTES, PERIODS, SECONDS, OverBudget

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from fastrpc._core.budget_table import BudgetCell
    from fastrpc._core.recorder import CallRecord
    from fastrpc.guard.budgets.file import BudgetFile
    from fastrpc.guard.policy.budgets import Budget
    from fastrpc.guard.policy.decisions import BudgetOfCall

    Reservation = tuple[tuple["Line", ...], list[int], int, int]
    """What was reserved on each line, in which day and month."""

FIRST_SECONDS, LEAST_SECONDS = 1_000_000, 1_000
FIRST_BYTES, LEAST_BYTES = 65_536, 256
"""The estimates for a tool that has not been called yet, and the least for any; microseconds and bytes."""
WARNS_FROM = 0.8
MOST_WAITING = 4096
"""Reservations of one caller and tool that wait for a record. A call that another tool makes has none."""
REFUSED, CANCELLED = "refused", "cancelled"
NOT_GUARDED = ("invalid", "unknown")
"""Outcomes of calls that have not come to the guard."""


class Line:
    """One budget that an account counts against. `fixed`: what a call costs, 0 for what is measured."""

    __slots__ = ("about", "budget", "cell", "fixed", "is_month", "limit", "measure", "warns_at")

    def __init__(self, about: str, budget: Budget, fixed: int) -> None:
        self.about = about
        self.budget = budget
        self.fixed = fixed
        self.measure = budget.measure
        self.is_month = budget.period == "month"
        self.limit = budget.limit
        self.warns_at = budget.limit * WARNS_FROM
        self.cell: BudgetCell | None = None


class Account:
    """The calls of one tool by one principal."""

    def __init__(self, ledger: Ledger, estimates: list[int]) -> None:
        self._ledger = ledger
        self._estimates = estimates
        self._lines: tuple[Line, ...] = ()
        self._caller = ""
        self._waiting: deque[Reservation] = deque(maxlen=MOST_WAITING)
        self._without = {outcome: deque[None](maxlen=MOST_WAITING) for outcome in (REFUSED, CANCELLED)}
        """One entry for each call that has no reservation, and whose record is to have that outcome."""

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not any(self._without.values())

    def use(self, caller: str, budgets: Iterable[BudgetOfCall]) -> None:
        """Count against these budgets of a caller from now on."""
        self._caller = caller
        self._lines = tuple(Line(*each) for each in budgets)

    def reserve(self) -> bool:
        """Count a call that is about to run; return whether a budget is nearly used up. Raises OverBudget."""
        day, month = self._ledger.current()
        estimates = self._estimates
        amounts: list[int] = []
        is_near = False
        for line in self._lines:
            amount = line.fixed
            if not amount:  # a first call is let through where more is reckoned than there ever is
                amount = min(estimates[line.measure], line.limit)
            cell = line.cell
            held = -2 if cell is None else cell.take(month if line.is_month else day, amount, line.limit)
            if held < 0:
                held = self._take_slowly(line, amount, held, (amounts, day, month))
            amounts.append(amount)
            if held >= line.warns_at:
                is_near = True
        self._waiting.append((self._lines, amounts, day, month))
        return is_near

    def _take_slowly(self, line: Line, amount: int, held: int, before: tuple[list[int], int, int]) -> int:
        """Take from a line whose cell is not known yet, or another's by now. Raises OverBudget, when what was
        taken `before` from other lines is given back."""
        amounts, day, month = before
        number = month if line.is_month else day
        while held == -2:
            line.cell = self._ledger.cell(self._caller, line, day, month)
            if line.cell is None:
                break
            held = line.cell.take(number, amount, line.limit)
        if held >= 0:
            return held
        _settle((self._lines, amounts, day, month), None)
        used = None if line.cell is None else line.cell.counted(number)
        raise OverBudget(line.budget, used, periods.ends_at(line.budget.period, number))

    def expect(self, outcome: str) -> None:
        """Say that a call was refused, or cancelled, before anything was reserved for it: a record with that
        outcome is to come."""
        self._without[outcome].append(None)

    def near(self) -> list[dict[str, Any]]:
        """Return the budgets that are nearly used up, as a result's ``_meta`` has them."""
        day, month = self._ledger.current()
        found = []
        for line in self._lines:
            number = month if line.is_month else day
            used = 0 if line.cell is None else line.cell.counted(number)
            if used >= line.warns_at:
                found.append(facts(line.budget, used, periods.ends_at(line.budget.period, number)))
        return found

    def settle(self, record: CallRecord) -> None:
        """Replace what was reserved for a call by what its record says."""
        outcome = record.outcome
        if outcome in NOT_GUARDED:
            return
        if self._without.get(outcome):
            self._without[outcome].popleft()
            return
        if outcome == "overloaded" and not record.guard_us:  # it came before the guard's decision
            return
        try:
            reservation = self._waiting.popleft()
        except IndexError:
            return
        if outcome in (REFUSED, "overloaded"):  # by the guard of a mounted server, or behind the guards
            _settle(reservation, None)
            return
        used = [1, int(record.run_us) + 1, record.size]
        _settle(reservation, used)
        estimates = self._estimates
        estimates[SECONDS] = _estimate(estimates[SECONDS], used[SECONDS], LEAST_SECONDS)
        estimates[BYTES] = _estimate(estimates[BYTES], used[BYTES], LEAST_BYTES)


def _settle(reservation: Reservation, used: list[int] | None) -> None:
    """Replace what was reserved by what was used; None: nothing was."""
    lines, amounts, day, month = reservation
    for line, amount in zip(lines, amounts, strict=False):
        real = 0 if used is None else line.fixed or used[line.measure]
        if real != amount or not line.fixed:
            assert line.cell is not None
            line.cell.settle(month if line.is_month else day, amount, real)


def _estimate(before: int, used: int, least: int) -> int:
    """Return what the next call is reckoned to use: the most of late, which is forgotten by an eighth."""
    return max(used, least, before - (before - used) // 8)


def facts(budget: Budget, used: int | None, resets_at: int) -> dict[str, Any]:
    """Return what callers are told of a budget."""
    return {
        "budget": budget.text,
        "limit": budget.shown(budget.limit),
        "used": None if used is None else budget.shown(used),
        "resets_at": periods.text_of(resets_at),
    }


class Ledger:
    """The accounts of a server, in a file. An observer of calls: it settles them by their records."""

    def __init__(self, file: BudgetFile, clock: Callable[[], float] = time) -> None:
        self._file = file
        self._clock = clock
        self._accounts: dict[tuple[str, str], Account] = {}
        self._estimates: dict[str, list[int]] = {}
        self._begins = self._ends = 0
        self._day = self._month = 0
        self._is_full = False

    def current(self) -> tuple[int, int]:
        """Return the numbers of the day and the month that it is."""
        now = self._clock()
        if not self._begins <= now < self._ends:
            self._day, self._month = periods.day_of(now), periods.month_of(now)
            self._begins = self._day * periods.DAY_SECONDS
            self._ends = self._begins + periods.DAY_SECONDS
        return self._day, self._month

    def account(self, principal: str, caller: str, tool: str, budgets: Iterable[BudgetOfCall]) -> Account:
        """Return the account of a principal and a tool, which counts against these budgets of the caller."""
        found = self._accounts.get((principal, tool))
        if found is None:
            estimates = self._estimates.setdefault(tool, [1, FIRST_SECONDS, FIRST_BYTES])
            found = self._accounts[principal, tool] = Account(self, estimates)
        found.use(caller, budgets)
        return found

    def forget_idle(self) -> None:
        """Forget the accounts that wait for nothing; nobody has them any more."""
        self._accounts = {key: each for key, each in self._accounts.items() if not each.is_idle}

    def cell(self, caller: str, line: Line, day: int, month: int) -> BudgetCell | None:
        """Return the cell of a line; None, which is logged once, if the table is full."""
        budget = line.budget
        found = self._file.claim(
            "\0".join((caller, line.about, budget.unit, budget.period)),
            PERIODS.index(budget.period),
            day,
            month,
            text_of(caller, line.about, budget.text),
            not line.fixed,
        )
        if found is None and not self._is_full:
            self._is_full = True
            diagnostics.write("error", "guard: the file of budgets has no room left: other callers are refused")
        return found

    def __call__(self, records: list[CallRecord]) -> None:
        for each in records:
            account = self._accounts.get((each.principal, each.name))
            if account is not None and each.kind == "tool":
                account.settle(each)


def text_of(caller: str, tool: str, budget: str) -> bytes:
    """Return what a cell says of itself; a caller's name that is too long is cut."""
    end = f"\0{tool}\0{budget}".encode("utf-8", "replace")[-LONGEST_TEXT:]
    start = caller.encode("utf-8", "replace")
    room = LONGEST_TEXT - len(end)
    return (start if len(start) <= room else start[: max(room - 3, 0)] + "…".encode()[:room]) + end


def parts_of(text: bytes) -> tuple[str, str, str]:
    """Return the caller, the tool ("" for all) and the budget of `text_of`."""
    caller, tool, budget = ("", "", "", *text.decode("utf-8", "replace").split("\0"))[-3:]
    return caller, tool, budget

"""What this server has of one shared limit: when it leases more, how much, and what it returns.

The amounts are in memory that the processes of a server share: of a rate in its table (`LeasedLimit`), of a
budget in the file of the host (`BudgetCell.grant`), where it also outlives the processes. So what a killed
process held, the others of the host use, or those that start later. A rate's lease ends after a twentieth of
the window, at most 10 s, by the clock of this server from before it asked; the window of the database is
longer by that. So in no window are more calls counted than the limit.

A lease is for what the waiting calls need, and a portion besides, which doubles while portions are used up
quickly, up to a twentieth of the limit. What is left is returned: of a rate when the lease has ended, of a
budget when it has not been leased for 2 s.
"""

from __future__ import annotations

import json
from time import monotonic

from fastrpc._core.budget_table import BudgetCell, BudgetShareBase
from fastrpc._core.rate_limiter import RateTable, now_ns
from fastrpc.guard.leases.store import Change, Granted, key_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from fastrpc.guard.policy.budgets import Budget

SLICES = 20
LONGEST_SECONDS = 10.0
QUICK_SECONDS = 1.0
IDLE_SECONDS = 2.0
DENIED_SECONDS = 0.5
"""How long the database is not asked again about a limit that has no room: some may be returned."""


class Portion:
    """How much more is leased than is needed at once, up to `most`."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.size = 0
        self._at = -QUICK_SECONDS
        self._is_used_up = True

    def next(self, need: int, now: float) -> int:
        """Return the portion for a lease at a time, when the one before is used up."""
        is_quick = now - self._at < QUICK_SECONDS
        self.size = min(max(need, 2 * self.size), self.most) if is_quick else self.size // 4
        self._at = now
        return self.size

    def is_idle(self, now: float) -> bool:
        return now - self._at > IDLE_SECONDS


class RateShare:
    """A rate of a caller: at most `count` calls in any so many seconds. `limit` is what calls take from."""

    def __init__(self, name: str, seconds: int, count: int, table: RateTable) -> None:
        self.limit = table.leased(f"leased\0{name}", self)
        self._key = key_of("rate", name)
        self._count = count
        self._slice = seconds / SLICES
        self._lasts = min(self._slice, LONGEST_SECONDS)
        self._portion = Portion(count // SLICES)
        self._number = self._began = 0
        self._ends = 0.0
        """When the last lease of this process ends (monotonic); 0: nothing is to be returned."""
        self.denied_until = self.room_at = 0.0
        """Until when the database is not asked, and when it may have room (monotonic)."""

    @property
    def holds(self) -> bool:
        return self._ends > 0

    def change(self, needs: list[int]) -> Change:
        """Return what to ask for so many calls."""
        now, self._began = monotonic(), now_ns()
        want = len(needs) + self._portion.next(len(needs), now)
        return self._change(1, min(want, self._count))

    def take(self, change: Change, granted: Granted) -> None:
        """Take what has been granted for a change."""
        now = monotonic()
        if not change.want:
            return
        if granted.amount:
            if self.limit.add(granted.amount, self._began, int(self._lasts * 1e9)):
                self._number, self._ends = granted.number, now + self._lasts
            return
        self.room_at = now + granted.wait_seconds
        self.denied_until = now + min(granted.wait_seconds, DENIED_SECONDS)

    def returned(self, *, at_end: bool) -> Change | None:
        """Return what to give back, None if there is nothing."""
        if not self.holds or not (at_end or monotonic() > self._ends):
            return None
        self._ends, left = 0.0, self.limit.end()
        return self._change(0, 0, left) if left else None

    def _change(self, least: int, want: int, back: int = 0) -> Change:
        span = SLICES + 2
        return Change(
            self._key, self._count, span, self._slice, 0, least, want, 0, back, self._number if back else 0
        )


class BudgetShare(BudgetShareBase):
    """A budget of a caller, for one tool or "" for all. `cell` counts it on this host."""

    def __init__(self, name: str, row: int, caller: str, tool: str) -> None:
        super().__init__(row)
        self.cell: BudgetCell | None = None
        self.days = (0, 0)
        """The current day and month, when the budget was last counted."""
        self._key = key_of("budget", name)
        self._of = caller, tool
        self._about = ""
        self._limit = 0
        self._portion = Portion(0)
        self._lowered: tuple[int, int] = (0, 0)
        """A period, and what is to be given back of it: this host counts against it no longer."""
        self.denied_until = 0.0

    holds = True

    def use(self, budget: Budget) -> None:
        """Lease up to the limit of this budget from now on."""
        self._limit, self._portion.most = budget.limit, budget.limit // SLICES
        self._about = json.dumps([*self._of, budget.text])

    def change(self, needs: list[int]) -> Change | None:
        """Return what to ask so that these amounts can be counted; None if the cell is another budget's."""
        state = self.cell.state(*self.days) if self.cell is not None else None
        if state is None:
            return None
        number, held, granted = state
        missing = held - granted
        least = max(missing + max(needs), 0)
        want = max(missing + sum(needs), least)
        want += self._portion.next(max(needs), monotonic())
        return self._change(number, least=max(least, 1), want=max(want, 1))

    def take(self, change: Change, granted: Granted) -> None:
        """Take what has been granted for a change."""
        if self.cell is not None:
            self.cell.grant(granted.number, granted.amount + change.debt)
        if change.want and not granted.amount:
            self.denied_until = monotonic() + DENIED_SECONDS
        self._note(granted)

    def returned(self, *, at_end: bool) -> Change | None:
        """Return what to give back, and the debt: what is counted here without a grant, which happens if
        calls use more than was reserved for them."""
        state = self.cell.state(*self.days) if self.cell is not None else None
        if state is None or self.cell is None:
            return None
        number, held, granted = state
        lowered_number, back = self._lowered
        self._lowered = (0, 0)
        debt = max(held - granted, 0) if granted else 0
        if granted > held and (at_end or self._portion.is_idle(monotonic())):
            # Given back at the next time: a call may be counting against it at this moment.
            self._lowered = (number, -self.cell.grant(number, held - granted))
        if not back and not debt:
            return None
        return self._change(number, debt=debt, back=back, back_number=lowered_number)

    def _note(self, granted: Granted) -> None:
        state = self.cell.state(*self.days) if self.cell is not None else None
        if state is not None and state[0] == granted.number:
            self.note(granted.number, max(granted.total - max(state[1:]), 0))

    def _change(self, number: int, **amounts: int) -> Change:
        return Change(self._key, self._limit, 1, number=number, about=self._about, **amounts)

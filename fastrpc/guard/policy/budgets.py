"""Budgets in configurations: ``1000 calls/day``, ``2 hours/month``, ``50 MB/day``, ``100 usd/month``.

An amount is an integer in the smallest part of its measure: a call, a microsecond of running time, a byte of
responses, a millionth of a unit of ``[costs]`` or of a tool's declared costs. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from decimal import Decimal
from typing import Any

from fastrpc._core.budget_table import LARGEST_AMOUNT
from fastrpc.errors import Reworded
from fastrpc.guard.policy import sections
from fastrpc.guard.policy.patterns import Patterns

CALLS, SECONDS, BYTES, COST = range(4)
"""The measures of budgets; `COST` is any unit of ``[costs]``, or of a tool's ``costs=``."""
DAY, MONTH = PERIODS = ("day", "month")
MILLION = 1_000_000
WARNS_FROM = 4, 5
"""The fraction of a budget from which on callers are warned."""
UNITS = {
    "call": (CALLS, 1),
    "second": (SECONDS, MILLION),
    "minute": (SECONDS, 60 * MILLION),
    "hour": (SECONDS, 3600 * MILLION),
    "byte": (BYTES, 1),
    "kb": (BYTES, 1000),
    "mb": (BYTES, 1000**2),
    "gb": (BYTES, 1000**3),
    "kib": (BYTES, 1024),
    "mib": (BYTES, 1024**2),
    "gib": (BYTES, 1024**3),
}
"""The measure of each unit, and its size."""
NAMED = "calls, seconds, minutes, hours, bytes, KB, MB, GB"
NAMES = {CALLS: "calls", SECONDS: "seconds", BYTES: "bytes"}
_BUDGET = re.compile(
    r"\s*([0-9]{1,12}(?:\.[0-9]{1,6})?)\s*([A-Za-z][A-Za-z0-9_]{0,31})\s*(?:/|per\s)\s*(day|month)\s*\Z"
)
_UNIT = re.compile(r"[a-z][a-z0-9_]{0,31}\Z")


class Budget:
    """At most `limit` of a unit in any `period`. `unit` is what limits of the same thing have in common:
    calls, seconds, bytes or the name of a cost."""

    def __init__(self, text: Any, costs: Container[str] | None = ()) -> None:
        """`costs` are the units of ``[costs]``; None: any unit is accepted. Raises ValueError."""
        found = _BUDGET.match(text) if isinstance(text, str) else None
        if found is None:
            raise ValueError(f"expected a budget such as 1000 calls/day, got {sections.shown(text)}")
        number, unit, self.period = found.groups()
        self.measure, self.scale = _measure(unit, costs)
        self.unit = unit if self.measure == COST else NAMES[self.measure]
        exact = Decimal(number) * self.scale
        self.limit = int(exact)
        if exact != self.limit or not 1 <= self.limit <= LARGEST_AMOUNT:
            largest = f"{LARGEST_AMOUNT // self.scale} {unit}"
            raise ValueError(f"expected a whole amount up to {largest}, got {sections.shown(text)}")
        self.text = f"{number} {unit}/{self.period}"

    @property
    def warns_at(self) -> int:
        """The amount from which on callers are warned that the budget is nearly used up."""
        part, whole = WARNS_FROM
        return -(-self.limit * part // whole)

    def shown(self, amount: int) -> int | float:
        """Return an amount in the unit of the budget's text."""
        found = round(amount / self.scale, 6)
        return int(found) if found == int(found) else found


class OverBudget(Exception):
    """A call does not fit into a budget. `used` is the amount that is used or reserved; None: the file has no
    room to count the budget."""

    def __init__(self, budget: Budget, used: int | None, resets_at: int) -> None:
        super().__init__(budget.text)
        self.budget = budget
        self.used = used
        self.resets_at = resets_at


class CannotCount(Exception):
    """A call cannot be counted at present, independently of what is left of its rate or budget."""


def _measure(unit: str, costs: Container[str] | None) -> tuple[int, int]:
    """Return the measure of a unit and its size. Raises ValueError for an unknown unit."""
    known = UNITS.get(unit.lower()) or UNITS.get(unit.lower().removesuffix("s"))
    if known is not None:
        return known
    if costs is None or unit in costs:
        return COST, MILLION
    raise ValueError(unit_expected(unit))


def unit_expected(unit: str) -> str:
    """Return the error text for a unit in which no tool has costs."""
    return f"expected {NAMED} or a unit of [costs] or of a tool's costs, got {sections.shown(unit)}"


def of_caller(value: Any) -> list[Budget]:
    """Read ``["1000 calls/day", "2 hours/month"]``, in any units. Raises ValueError."""
    if not isinstance(value, list):
        raise ValueError(f'expected budgets such as ["1000 calls/day"], got {sections.shown(value)}')
    found: list[Budget] = []
    for each in value:
        budget = Budget(each, None)
        if any((budget.unit, budget.period) == (other.unit, other.period) for other in found):
            raise ValueError(f"two budgets of {budget.unit} for one {budget.period}")
        found.append(budget)
    return found


def of_tools(value: Any) -> list[tuple[Patterns, list[Budget]]]:
    """Read ``{ "order" = ["10 calls/day"] }``. Raises ValueError."""
    if not isinstance(value, dict):
        raise ValueError(
            f'expected a table such as {{ "order" = ["10 calls/day"] }}, got {sections.shown(value)}'
        )
    found = []
    for glob, each in value.items():
        with Reworded(ValueError, ValueError, f"{glob}: "):
            found.append((Patterns([glob]), of_caller(each)))
    return found


def cost(value: Any) -> Mapping[str, int]:
    """Read ``{ usd = 0.01 }``: what one call costs, in millionths. Raises ValueError."""
    if not isinstance(value, dict) or not value:
        raise ValueError(f"expected a table such as {{ usd = 0.01 }}, got {sections.shown(value)}")
    found = {}
    for unit, amount in value.items():
        if not _UNIT.match(unit) or unit in UNITS or unit.removesuffix("s") in UNITS:
            raise ValueError(f"expected a unit of your own such as usd, got {sections.shown(unit)}")
        is_number = isinstance(amount, int | float) and not isinstance(amount, bool)
        exact = amount * MILLION if is_number else -1
        if not 0 <= exact <= LARGEST_AMOUNT:
            most = LARGEST_AMOUNT // MILLION
            raise ValueError(f"{unit}: expected a number from 0 to {most}, got {sections.shown(amount)}")
        found[unit] = round(exact)
    return found

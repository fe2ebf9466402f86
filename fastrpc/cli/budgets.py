"""``fastrpc budgets``: shows what callers have used of their budgets, or resets it to zero.

Two places know it, and both are read: the file in which the servers of this host count
(`fastrpc.guard.budgets.file`), and the guard's database, from which hosts lease what they share
(`fastrpc.guard.leases`). Servers can keep running. A budget is shown as it was when a call was last counted
against it, including reservations of running calls, and what hosts have leased and not used yet.
"""

from __future__ import annotations

import os
from time import time
from typing import NamedTuple

from fastrpc.cli import configuration, parser, write_line
from fastrpc.cli._catalogue import print_json, print_table
from fastrpc.cli._guard_database import add_database, guard_database
from fastrpc.command_line import check_action
from fastrpc.errors import UsageError
from fastrpc.guard.policy.budgets import Budget
from fastrpc.storage import GUARD_DATABASE
from fastrpc.storage.kinds import GUARD

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from fastrpc.guard.budgets.file import BudgetFile
    from fastrpc.guard.leases.store import LimitStore

USAGE = "list [CALLER] | reset CALLER  [OPTION…]"
EXAMPLES = """\
  fastrpc budgets list
  fastrpc budgets list 'ada#k3x7q2mfa4zt' --json
  fastrpc budgets reset 'ada#k3x7q2mfa4zt'
  fastrpc budgets reset 'ada#k3x7q2mfa4zt' --tool order
"""
ACTIONS: dict[str, tuple[str, tuple[str, ...]]] = {
    "list": ("Show what callers have used of their budgets.", ("json",)),
    "reset": ("Set what a caller has used to zero.", ()),
}
COLUMNS = ("caller", "tool", "budget", "used", "limit", "percent", "resets_at", "counted")


class Use(NamedTuple):
    """What a caller has used of a budget in the period `number`; `tool` is "" for all. `place` is that of its
    cell in this host's file, and `key` that of its row in the database, None where it is not counted there;
    `here` is the amount of the cell."""

    caller: str
    tool: str
    budget: Budget
    number: int
    amount: int
    place: int | None = None
    here: int = 0
    key: str | None = None

    @property
    def of(self) -> tuple[str, str, str, str, int]:
        """What the cell and the row of a budget have in common."""
        return self.caller, self.tool, self.budget.unit, self.budget.period, self.number


def main(arguments: list[str]) -> int:
    """Run one action; return 0. Raises UsageError."""
    options = parser("budgets", USAGE, EXAMPLES, ACTIONS)
    options.add_argument(
        "caller",
        metavar="CALLER",
        nargs="?",
        help="the caller, as 'fastrpc budgets list' and the audit log show it",
    )
    options.option("--tool TOOL", "only the budgets of this tool")
    options.option("--json", "for list: as JSON, for programs")
    add_database(options)
    chosen = options.parse(arguments)
    check_action("budgets", chosen.action, ACTIONS)
    if chosen.action == "reset" and chosen.caller is None:
        raise UsageError("budgets reset: name the caller (see 'fastrpc budgets list')")
    settings = configuration()
    settings.declare([GUARD_DATABASE])
    settings.export(os.environ)
    file = _opened()
    if not (chosen.database or settings[GUARD_DATABASE.name] or os.path.exists(GUARD.default_path)):
        _act(chosen, file, None)
        return 0
    from fastrpc.guard.leases.store import LimitStore

    with guard_database(chosen.database) as database:
        _act(chosen, file, LimitStore(database))
    return 0


def _act(chosen: Namespace, file: BudgetFile | None, shared: LimitStore | None) -> None:
    found = list(_of_all_hosts(shared)) if shared is not None else []
    uses = {use.of: use for use in found}
    for here in _of_this_host(file) if file is not None else ():
        use = uses.get(here.of, here)
        uses[here.of] = use._replace(place=here.place, here=here.amount)
    wanted = [
        use
        for use in uses.values()
        if chosen.caller in (None, use.caller)
        and chosen.tool in (None, use.tool)
        and (use.amount or use.place is not None)
    ]
    wanted.sort(key=lambda use: (use.caller, use.tool, use.budget.text))
    if chosen.action == "list":
        _list(wanted, as_json=chosen.json)
    else:
        _reset(file, shared, wanted, chosen)


def _opened() -> BudgetFile | None:
    """Return the file, None if nothing has been counted yet. Raises UsageError."""
    from fastrpc.guard.budgets.file import BudgetFile, default_path

    path = default_path()
    return BudgetFile(path, counts=False) if os.path.lexists(path) else None


def _of_this_host(file: BudgetFile) -> Iterator[Use]:
    from fastrpc.guard.budgets.ledger import parts_of
    from fastrpc.guard.budgets.periods import number_of

    now = time()
    for place, _, number, amount, text in file.table.entries():
        caller, tool, budget_text = parts_of(text)
        try:
            budget = Budget(budget_text, None)
        except ValueError:  # its cell is being claimed
            continue
        if number >= number_of(budget.period, now):
            yield Use(caller, tool, budget, number, amount, place, amount)


def _of_all_hosts(shared: LimitStore) -> Iterator[Use]:
    from fastrpc.guard.budgets.periods import number_of

    now = time()
    for key, caller, tool, text, counts in shared.budgets():
        budget = Budget(text, None)
        current = number_of(budget.period, now)
        for number, amount in {current: 0, **counts}.items():
            if number >= current:
                yield Use(caller, tool, budget, number, amount, key=key)


def _list(uses: list[Use], *, as_json: bool) -> None:
    described = [_described(use) for use in uses]
    if as_json:
        print_json(described)
        return
    rows = [tuple("-" if each[name] is None else str(each[name]) for name in COLUMNS) for each in described]
    print_table(tuple(name.replace("_", " ") for name in COLUMNS), rows)


def _described(use: Use) -> dict[str, Any]:
    from fastrpc.guard.budgets.ledger import facts
    from fastrpc.guard.budgets.periods import ends_at

    found = facts(use.budget, use.amount, ends_at(use.budget.period, use.number))
    return {
        "caller": use.caller,
        "tool": use.tool or None,
        **found,
        "percent": 100 * use.amount // use.budget.limit,
        "counted": "this host" if use.key is None else "all hosts",
    }


def _reset(file: BudgetFile | None, shared: LimitStore | None, uses: list[Use], chosen: Namespace) -> None:
    if not uses:
        what = "" if chosen.tool is None else f" of the tool {chosen.tool}"
        raise UsageError(f"budgets reset: nothing is counted{what} for {chosen.caller}")
    for use in uses:
        if shared is not None and use.key is not None:
            # What is set to zero here is leased and not used then: this host gives it back to the database.
            shared.set_count(use.key, use.number, use.here)
        if file is not None and use.place is not None:
            file.table.clear(use.place, use.number, use.here)
    count = f"{len(uses)} budget{'' if len(uses) == 1 else 's'}"
    write_line(f"fastrpc: {count} of {chosen.caller} set to zero")

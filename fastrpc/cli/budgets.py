"""``fastrpc budgets``: shows what callers have used of their budgets, or resets it to zero.

Reads and writes the file in which running servers count (`fastrpc.guard.budgets.file`); they can keep
running. A budget is shown as of the last call that was counted, with reservations of running calls.
"""

from __future__ import annotations

import os
from time import time

from fastrpc.cli import configuration, parser, write_line
from fastrpc.cli._catalogue import print_json, print_table
from fastrpc.command_line import check_action
from fastrpc.errors import UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Iterator
    from typing import Any

    from fastrpc.guard.budgets.file import BudgetFile
    from fastrpc.guard.policy.budgets import Budget

    Use = tuple[int, int, int, str, str, Budget]
    """A cell's position, the number of its period, the amount, the caller, the tool ("": all), the budget."""

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
    chosen = options.parse(arguments)
    check_action("budgets", chosen.action, ACTIONS)
    if chosen.action == "reset" and chosen.caller is None:
        raise UsageError("budgets reset: name the caller (see 'fastrpc budgets list')")
    configuration().export(os.environ)
    file = _opened()
    uses = sorted(_uses(file, chosen), key=lambda use: (*use[3:5], use[5].text)) if file is not None else []
    if chosen.action == "list":
        _list(uses, as_json=chosen.json)
    else:
        _reset(file, uses, chosen)
    return 0


def _opened() -> BudgetFile | None:
    """Return the file, None if nothing has been counted yet. Raises UsageError."""
    from fastrpc.guard.budgets.file import BudgetFile, default_path

    path = default_path()
    return BudgetFile(path, counts=False) if os.path.lexists(path) else None


def _uses(file: BudgetFile, chosen: Namespace) -> Iterator[Use]:
    from fastrpc.guard.budgets.ledger import parts_of
    from fastrpc.guard.budgets.periods import number_of
    from fastrpc.guard.policy.budgets import Budget

    now = time()
    for place, _, number, amount, text in file.table.entries():
        caller, tool, budget_text = parts_of(text)
        try:
            budget = Budget(budget_text, None)
        except ValueError:  # its cell is being claimed
            continue
        if number < number_of(budget.period, now) or chosen.caller not in (None, caller):
            continue
        if chosen.tool in (None, tool):
            yield place, number, amount, caller, tool, budget


def _list(uses: list[Use], *, as_json: bool) -> None:
    described = [_described(use) for use in uses]
    if as_json:
        print_json(described)
        return
    columns = ("caller", "tool", "budget", "used", "limit", "percent", "resets_at")
    rows = [tuple("-" if each[name] is None else str(each[name]) for name in columns) for each in described]
    print_table(tuple(name.replace("_", " ") for name in columns), rows)


def _described(use: Use) -> dict[str, Any]:
    from fastrpc.guard.budgets.ledger import facts
    from fastrpc.guard.budgets.periods import ends_at

    _, number, amount, caller, tool, budget = use
    found = facts(budget, amount, ends_at(budget.period, number))
    return {"caller": caller, "tool": tool or None, **found, "percent": 100 * amount // budget.limit}


def _reset(file: BudgetFile | None, uses: list[Use], chosen: Namespace) -> None:
    if file is None or not uses:
        what = "" if chosen.tool is None else f" of the tool {chosen.tool}"
        raise UsageError(f"budgets reset: nothing is counted{what} for {chosen.caller}")
    for place, number, amount, *_ in uses:
        file.table.clear(place, number, amount)
    count = f"{len(uses)} budget{'' if len(uses) == 1 else 's'}"
    write_line(f"fastrpc: {count} of {chosen.caller} set to zero")

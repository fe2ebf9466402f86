"""Budgets: how much each caller has used in a period, in memory that processes share and that outlives them.

The memory begins with `HEAD_SIZE` bytes that are its owner's. Amounts are integers up to `LARGEST_AMOUNT`, of
whatever unit; numbers of periods are below 65,535 and only grow.
"""

from mmap import mmap
from typing import Any

HEAD_SIZE: int
CELL_SIZE: int
LONGEST_TEXT: int
"""Bytes."""
LARGEST_AMOUNT: int
LOST: int
UNLEASED: int

def size_of(cells: int, processes: int) -> int:
    """Return how many bytes a table takes."""

class BudgetTable:
    """The cells of all budgets, over a block of memory that is a table or zeros. `process` is the place of
    this process among those that share it, -1 for one that only looks. Raises ValueError for numbers that
    do not fit the memory, and a number of cells that is no power of two from 64 on."""

    def __init__(self, memory: bytearray | mmap, cells: int, processes: int, process: int = -1) -> None: ...
    def recover(self, process: int) -> int:
        """Give back what a process had reserved that is gone; return in how many cells. Raises ValueError."""
    def claim(
        self,
        key: str,
        period: int,
        day: int,
        month: int,
        text: bytes,
        limit: int,
        warns_at: int,
        reserves: bool,
        share: BudgetShareBase | None = None,
    ) -> BudgetCell | None:
        """Return the cell of a key, claimed if there was none; None if all are in use. One process at a time.

        `period` is 0 for the day, 1 for the month; `day` and `month` are the numbers of the current ones;
        `text` is kept for people. At most `limit` can be taken. `reserves`: what is taken is given back if
        the process is killed before it has settled it. Raises ValueError for a text that is too long, and a
        limit that is out of range.

        With `share`, at most what `BudgetCell.grant` has allowed on this host can be taken."""
    def entries(self) -> list[tuple[int, int, int, int, bytes]]:
        """Return place, kind of period, its number, amount and text of each cell that is in use."""
    def clear(self, place: int, number: int, amount: int) -> None:
        """Take an amount off a cell, if it is in that period still. Raises ValueError."""

class BudgetShareBase:
    """That a budget is shared with other hosts. What this host may count is in `row` of the processes of the
    table, which no process has."""

    row: int

    def __init__(self, row: int) -> None: ...
    def note(self, number: int, elsewhere: int) -> None:
        """Note what other hosts have been granted in a period."""

class BudgetCell:
    """One budget of one caller. `share`: None if other hosts do not share it."""

    share: Any

    def settle(self, day: int, month: int, taken: int, used: int) -> int:
        """Replace an amount that was taken in a day and a month by the one that was used."""
    def counted(self, day: int, month: int) -> int:
        """Return what is counted in the current period, or in the later one that the cell is in: the clock
        may have been set back."""
    def counted_everywhere(self, day: int, month: int) -> int:
        """Return `counted`, and what other hosts have been granted, as far as that is known."""
    def state(self, day: int, month: int) -> tuple[int, int, int] | None:
        """Return the number of the current period, what is counted in it, and what this host may count; None
        if the cell is another budget's by now."""
    def grant(self, number: int, change: int) -> int:
        """Let this host count so much more in a period, or, below 0, take back at most so much that is not
        counted. Return by how much it has changed."""

def take_all(cells: tuple[BudgetCell, ...], amounts: tuple[int, ...], day: int, month: int) -> int:
    """Count an amount in each of some cells, or in none of them if one has no room left.

    Return 0, or 1 if one has reached its `warns_at`. Else nothing is counted: `LOST` if a cell is another
    budget's by now and has to be claimed again, -1 - N if the cell at N has no room, UNLEASED - N if
    this host may not count so much in it yet."""

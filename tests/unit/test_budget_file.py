"""The file of budgets: what is counted outlives processes, what no one knows is refused and left as it is."""

from __future__ import annotations

import os
import signal
import struct
import time
import zlib
from collections.abc import Callable
from fcntl import LOCK_EX, lockf
from pathlib import Path
from types import SimpleNamespace

import pytest

from fastrpc._core.budget_table import (
    HEAD_SIZE,
    LARGEST_AMOUNT,
    LOST,
    BudgetCell,
    BudgetTable,
    size_of,
    take_all,
)
from fastrpc.guard.budgets.file import CELLS, GRANTS, PROCESSES, BudgetFile, BudgetFileError
from fastrpc.guard.budgets.ledger import FIRST, Ledger, parts_of
from fastrpc.guard.policy import budgets as measures
from fastrpc.guard.policy.budgets import Budget

DAY, MONTH = 20_000, 657
CALLS = Budget("10 calls/day")
SECONDS = Budget("10 seconds/day")


def cell_of(file: BudgetFile, key: str = "ada", budget: Budget = CALLS, day: int = DAY) -> BudgetCell:
    found = file.claim(key, key.encode(), budget, day, MONTH, budget is SECONDS)
    assert found is not None
    return found


def take(cell: BudgetCell, amount: int = 1, day: int = DAY) -> int:
    return take_all((cell,), (amount,), day, MONTH)


def counted(file: BudgetFile, key: str = "ada", budget: Budget = CALLS, day: int = DAY) -> int:
    return cell_of(file, key, budget, day).counted(day, MONTH)


def in_child(run: Callable[[], object]) -> None:
    """Run something in a forked process that is killed behind it."""
    child = os.fork()
    if child == 0:
        try:
            run()
        finally:
            os.kill(os.getpid(), signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_new_file_is_private_whole_and_leaves_no_other_behind(tmp_path: Path) -> None:
    BudgetFile(str(tmp_path / "state" / "budgets"))
    (path,) = (tmp_path / "state").iterdir()
    facts = path.stat()
    assert (facts.st_mode & 0o777, facts.st_size) == (0o600, size_of(CELLS, PROCESSES))
    assert facts.st_blocks * 512 >= facts.st_size  # a full disk must not be met while calls are counted


def test_what_was_counted_is_there_after_the_process_was_killed(tmp_path: Path) -> None:
    path = str(tmp_path / "budgets")

    def count() -> None:
        cell = cell_of(BudgetFile(path))
        for _ in range(7):
            take(cell)

    in_child(count)
    assert counted(BudgetFile(path)) == 7


def test_estimates_of_a_killed_process_come_back_and_what_it_used_stays(tmp_path: Path) -> None:
    path = str(tmp_path / "budgets")

    def count() -> None:
        file = BudgetFile(path)
        seconds = cell_of(file, budget=SECONDS)
        take(seconds, 3_000_000)
        seconds.settle(DAY, MONTH, 3_000_000, 500_000)
        take(seconds, 2_000_000)
        take(cell_of(file, "eve"))

    in_child(count)
    looking = BudgetFile(path, counts=False)
    assert sorted(each[3] for each in looking.table.entries()) == [1, 2_500_000]
    looking.close()
    file = BudgetFile(path)
    assert counted(file, budget=SECONDS) == 500_000
    assert counted(file, "eve") == 1


def test_what_a_ledger_has_reserved_of_what_is_measured_comes_back_and_calls_stay(tmp_path: Path) -> None:
    path = str(tmp_path / "budgets")
    noon = (DAY + 0.5) * 86_400
    size = FIRST[measures.BYTES]  # as was estimated

    def count() -> None:
        ledger = Ledger(BudgetFile(path), lambda: noon)
        budgets = [(Budget("9 calls/day"), 1), (Budget("1 hour/day"), 0), (Budget("1 GB/day"), 0)]
        account = ledger.account("ada", "ada", "order", tuple(("", *each) for each in budgets))
        for _ in range(2):
            account.reserve()
        facts = {"outcome": "ok", "guard_us": 1, "run_us": 6, "size": size}
        account.settle(SimpleNamespace(**facts))  # type: ignore[arg-type]

    in_child(count)
    file = BudgetFile(path)
    Ledger(file, lambda: noon).account("ada", "ada", "order", (("", Budget("1 hour/day"), 0),)).reserve()
    found = {parts_of(text)[2]: amount for _, _, _, amount, text in file.table.entries()}
    assert found == {
        "9 calls/day": 2,
        "1 hour/day": 7 + FIRST[measures.SECONDS],
        "1 GB/day": size,
    }


def test_what_a_living_process_has_reserved_is_left_to_it(tmp_path: Path) -> None:
    path = str(tmp_path / "budgets")
    file = BudgetFile(path)
    take(cell_of(file, budget=SECONDS), 2_000_000)
    in_child(lambda: BudgetFile(path))
    assert counted(file, budget=SECONDS) == 2_000_000


def test_a_process_more_than_there_are_places_for_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "budgets")
    file = BudgetFile(path)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with open(path, "r+b") as held:
            lockf(held, LOCK_EX, GRANTS - 1, 2)  # all places but the first
            os.write(writing, b"x")
            time.sleep(60)
            os._exit(0)
    try:
        os.read(reading, 1)
        other = os.fork()
        if other == 0:
            try:
                BudgetFile(path)
            except BudgetFileError as error:
                os._exit(0 if f"{GRANTS} processes use it" in str(error) else 2)
            os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(other, 0)[1]) == 0
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(reading)
        os.close(writing)
        file.close()


def _version_2(data: bytearray) -> None:
    struct.pack_into("<I", data, 8, 2)
    struct.pack_into("<I", data, 24, zlib.crc32(data[:24]))


def _cut(data: bytearray) -> None:
    del data[-1:]


def _damaged(data: bytearray) -> None:
    data[13] ^= 1


def _foreign(data: bytearray) -> None:
    data[:4] = b"PK\3\4"


def _empty(data: bytearray) -> None:
    data.clear()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_version_2, "it has version 2; this fastrpc supports 1; it is not changed"),
        (_damaged, "its head is damaged; it is not changed"),
        (_foreign, "not a budgets file; it is not changed"),
        (_empty, "not a budgets file; it is not changed"),
        (_cut, f"expected {size_of(CELLS, PROCESSES)} bytes, it has {size_of(CELLS, PROCESSES) - 1}"),
    ],
)
def test_a_file_that_cannot_be_understood_is_refused_and_left_as_it_is(
    tmp_path: Path, change: Callable[[bytearray], None], said: str
) -> None:
    path = tmp_path / "budgets"
    BudgetFile(str(path)).close()
    data = bytearray(path.read_bytes())
    change(data)
    path.write_bytes(data)
    with pytest.raises(BudgetFileError) as caught:
        BudgetFile(str(path))
    assert str(caught.value).startswith(f"{path}: {said}")
    assert path.read_bytes() == data


def test_a_file_that_others_may_write_a_link_to_nowhere_and_a_folder_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "budgets"
    BudgetFile(str(path)).close()
    path.chmod(0o620)
    with pytest.raises(BudgetFileError, match=r"others may read or write it \(chmod 600\)"):
        BudgetFile(str(path))
    with pytest.raises(BudgetFileError, match="a folder, not a regular file"):
        BudgetFile(str(tmp_path))
    with pytest.raises(BudgetFileError, match="No such file"):
        BudgetFile(str(tmp_path / "nothing"), counts=False)


# --- the table --------------------------------------------------------------------------------------------


def table_of(cells: int = 64) -> BudgetTable:
    return BudgetTable(bytearray(size_of(cells, 2)), cells, 2, 0)


def claimed(table: BudgetTable, key: str, day: int = DAY, limit: int = 10) -> BudgetCell | None:
    return table.claim(key, 0, day, MONTH, key.encode(), limit, limit, False)


def test_a_table_that_is_full_has_no_room_for_another_key_and_room_again_on_the_next_day() -> None:
    table = table_of()
    found = [claimed(table, f"caller {number}") for number in range(65)]
    assert [each is None for each in found] == [False] * 64 + [True]
    assert claimed(table, "caller 64", DAY + 1) is not None
    assert len(table.entries()) == 64


def test_a_cell_that_another_key_has_by_now_counts_nothing_for_the_former_one() -> None:
    table = table_of()
    cells = [claimed(table, f"caller {number}") for number in range(64)]
    for number in range(64):
        assert claimed(table, f"other {number}", DAY + 1) is not None
    for cell in cells:
        assert cell is not None
        assert take(cell, day=DAY + 1) == LOST
        cell.settle(DAY + 1, MONTH, 0, 5)
        assert cell.counted(DAY + 1, MONTH) == 0
    assert {amount for _, _, _, amount, _ in table.entries()} == {0}


def test_of_several_budgets_all_are_taken_or_none() -> None:
    table = table_of()
    one, other = claimed(table, "one"), claimed(table, "other", limit=2)
    assert one is not None
    assert other is not None
    assert [take_all((one, other), (3, 1), DAY, MONTH) for _ in range(3)] == [0, 1, -2]
    assert (one.counted(DAY, MONTH), other.counted(DAY, MONTH)) == (6, 2)


def test_another_day_begins_at_nothing_and_a_clock_that_is_set_back_gives_nothing_again() -> None:
    cell = claimed(table_of(), "ada")
    assert cell is not None
    assert [take(cell, 10), take(cell, 1)] == [1, -1]
    assert take(cell, 10, DAY + 1) == 1
    assert take(cell, 1, DAY) == -1
    assert cell.counted(DAY, MONTH) == 10


def test_what_is_settled_on_the_next_day_changes_neither_day() -> None:
    cell = claimed(table_of(), "ada")
    assert cell is not None
    take(cell, 2, DAY)
    take(cell, 3, DAY + 1)
    cell.settle(DAY, MONTH, 2, 9)
    assert cell.counted(DAY + 1, MONTH) == 3


def test_amounts_have_bounds_that_nothing_wraps_around() -> None:
    cell = claimed(table_of(), "ada", limit=LARGEST_AMOUNT)
    assert cell is not None
    take(cell, 5)
    cell.settle(DAY, MONTH, 9, 0)
    assert cell.counted(DAY, MONTH) == 0
    for _ in range(4):
        cell.settle(DAY, MONTH, 0, LARGEST_AMOUNT)
    assert cell.counted(DAY, MONTH) == 2 * LARGEST_AMOUNT + 1
    assert take(cell, 1, DAY) == -1
    assert take(cell, 1, DAY + 1) == 0


@pytest.mark.parametrize(
    ("cells", "processes", "process", "size", "said"),
    [
        (100, 2, 0, None, "cells: expected a power of two from 64 on"),
        (64, 2, 2, None, "process: expected one of 2"),
        (64, 2, 0, HEAD_SIZE, "memory: expected"),
    ],
)
def test_numbers_that_do_not_fit_the_memory_are_refused(
    cells: int, processes: int, process: int, size: int | None, said: str
) -> None:
    memory = bytearray(size_of(cells, processes) if size is None else size)
    with pytest.raises(ValueError, match=said):
        BudgetTable(memory, cells, processes, process)


def test_what_is_out_of_range_is_refused() -> None:
    table = table_of()
    for text, limit in ((b"x" * 233, 1), (b"", 0), (b"", LARGEST_AMOUNT + 1)):
        with pytest.raises(ValueError, match="out of range"):
            table.claim("ada", 0, DAY, MONTH, text, limit, limit, False)
    with pytest.raises(ValueError, match="expected one of 2"):
        table.recover(2)
    with pytest.raises(ValueError, match="expected one of 64"):
        table.clear(64, DAY, 1)
    cell = claimed(table, "ada")
    assert cell is not None
    with pytest.raises(ValueError, match="expected 1 amounts, got 2"):
        take_all((cell,), (1, 1), DAY, MONTH)

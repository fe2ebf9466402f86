"""Whatever processes reserve, settle and leave undone, no budget of calls is exceeded and no estimate is
lost.

A plain-Python model counts beside the table: what it says is used must be what the cells say, after each
step."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc._core.budget_table import BudgetCell, BudgetTable, size_of, take_all

CELLS, PROCESSES = 64, 3
DAY, MONTH = 20_000, 657
CALLS_LIMIT, BYTES_LIMIT = 10, 1000


class Process:
    """One process: its table over the shared memory, and the reservations that it has not settled."""

    def __init__(self, memory: bytearray, place: int, day: int) -> None:
        self.table = BudgetTable(memory, CELLS, PROCESSES, place)
        self.cells = (self._cell("calls", day), self._cell("bytes", day))
        self.waiting: list[tuple[int, int]] = []

    def _cell(self, unit: str, day: int) -> BudgetCell:
        limit = CALLS_LIMIT if unit == "calls" else BYTES_LIMIT
        found = self.table.claim(unit, 0, day, MONTH, b"", limit, limit, unit == "bytes")
        assert found is not None
        return found


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, PROCESSES - 1), st.integers(1, 400)),
        st.tuples(st.just("settle"), st.integers(0, PROCESSES - 1), st.integers(0, 900)),
        st.tuples(st.just("kill"), st.integers(0, PROCESSES - 1), st.just(0)),
        st.tuples(st.just("next day"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@settings(deadline=None)
@given(STEPS)
def test_no_interleaving_exceeds_a_budget_of_calls_or_forgets_what_was_used(
    steps: list[tuple[str, int, int]],
) -> None:
    memory, day = bytearray(size_of(CELLS, PROCESSES)), DAY
    processes = [Process(memory, place, day) for place in range(PROCESSES)]
    calls, settled, reserved = 0, 0, 0
    for step, place, amount in steps:
        process = processes[place]
        if step == "reserve":
            fits = calls < CALLS_LIMIT and settled + reserved + amount <= BYTES_LIMIT
            assert (take_all(process.cells, (1, amount), day, MONTH) >= 0) == fits
            if fits:
                calls, reserved = calls + 1, reserved + amount
                process.waiting.append((day, amount))
        elif step == "settle" and process.waiting:
            began, taken = process.waiting.pop(0)
            process.cells[1].settle(began, MONTH, taken, amount)
            if began == day:
                settled, reserved = settled + amount, reserved - taken
        elif step == "kill":
            reserved -= sum(taken for began, taken in process.waiting if began == day)
            processes[(place + 1) % PROCESSES].table.recover(place)
            processes[place] = Process(memory, place, day)
        elif step == "next day":
            day, calls, settled, reserved = day + 1, 0, 0, 0
        assert calls <= CALLS_LIMIT
        counted = [cell.counted(day, MONTH) for cell in processes[0].cells]
        assert counted == [calls, settled + reserved]

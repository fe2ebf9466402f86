"""Budgets: how much each caller has used in a period, in memory that processes share and that outlives them.

A `BudgetTable` is laid over a writable block of memory, usually a mapped file: a head that is the owner's,
then what each process has reserved, then the cells. To take from a cell costs some 50 ns, and no lock. What
the file is, who may claim cells, and when periods begin is left to `fastrpc.guard.budgets`.
"""

from cpython.buffer cimport PyBUF_WRITABLE, Py_buffer, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int64_t, uint32_t, uint64_t
from libc.string cimport memcpy

from hashlib import blake2b

cdef extern from "budget_table.h":
    enum:
        TEXT_SIZE "FASTRPC_BUDGET_TEXT"
        SHIFT "FASTRPC_BUDGET_SHIFT"
    uint64_t AMOUNT "FASTRPC_BUDGET_AMOUNT"
    uint64_t CLOSED "FASTRPC_BUDGET_CLOSED"
    ctypedef struct Cell "fastrpc_budget_cell":
        uint64_t key
        uint64_t held
        uint32_t period
        uint32_t size
        char text[TEXT_SIZE]
    uint64_t load "fastrpc_budget_load"(const uint64_t*) noexcept nogil
    void change "fastrpc_budget_change"(
        uint64_t*, const uint64_t*, uint64_t, uint64_t, int64_t
    ) noexcept nogil
    int64_t take "fastrpc_budget_take"(
        Cell*, uint64_t*, const uint64_t*, uint64_t, uint64_t, uint64_t, uint64_t
    ) noexcept nogil
    int64_t grant "fastrpc_budget_grant"(uint64_t*, const Cell*, uint64_t, int64_t) noexcept nogil
    void settle "fastrpc_budget_settle"(
        Cell*, uint64_t*, uint64_t, uint64_t, int64_t, int64_t
    ) noexcept nogil
    size_t recover "fastrpc_budget_recover"(Cell*, uint64_t*, size_t) noexcept nogil
    int64_t claim "fastrpc_budget_claim"(
        Cell*, uint64_t*, size_t, size_t, uint64_t, uint32_t, const uint64_t*
    ) noexcept nogil

HEAD_SIZE = 4096
CELL_SIZE = sizeof(Cell)
LONGEST_TEXT = TEXT_SIZE
LOST = -(1 << 30)
UNLEASED = -(1 << 20)
LARGEST_AMOUNT = (<int64_t> 1 << (SHIFT - 1)) - 1


def size_of(Py_ssize_t cells, Py_ssize_t processes):
    """Return how many bytes a table takes."""
    return HEAD_SIZE + cells * (processes * sizeof(uint64_t) + sizeof(Cell))


cdef class BudgetTable:
    """The cells of all budgets (see budget_table.pyi)."""

    cdef Py_buffer view
    cdef size_t count
    cdef size_t processes
    cdef uint64_t* reserved
    cdef Cell* cells
    cdef Py_ssize_t process

    def __init__(self, memory, size_t cells, size_t processes, Py_ssize_t process=-1):
        if cells < 64 or cells & (cells - 1):
            raise ValueError(f"cells: expected a power of two from 64 on, got {cells}")
        if process >= <Py_ssize_t> processes:
            raise ValueError(f"process: expected one of {processes}, got {process}")
        PyObject_GetBuffer(memory, &self.view, PyBUF_WRITABLE)
        if self.view.len != size_of(cells, processes):
            raise ValueError(f"memory: expected {size_of(cells, processes)} bytes, got {self.view.len}")
        self.count = cells
        self.processes = processes
        self.process = process
        self.reserved = <uint64_t*> (<char*> self.view.buf + <Py_ssize_t> HEAD_SIZE)
        self.cells = <Cell*> (self.reserved + cells * processes)

    def __dealloc__(self):
        if self.view.buf != NULL:
            PyBuffer_Release(&self.view)

    def recover(self, size_t process):
        """Give back what a process had reserved that is gone; return in how many cells."""
        if process >= self.processes:
            raise ValueError(f"process: expected one of {self.processes}, got {process}")
        return recover(self.cells, self.reserved + process * self.count, self.count)

    def claim(
        self,
        str key,
        uint32_t period,
        uint64_t day,
        uint64_t month,
        bytes text,
        int64_t limit,
        int64_t warns_at,
        bint reserves,
        BudgetShareBase share=None,
    ):
        """Return the cell of a key, None if all are in use."""
        cdef uint64_t[2] numbers = [day, month]
        cdef BudgetCell found = BudgetCell.__new__(BudgetCell)
        cdef int64_t place
        if len(text) > TEXT_SIZE or period > 1 or not 1 <= limit <= LARGEST_AMOUNT:
            raise ValueError("text, period or limit: out of range")
        found.key = int.from_bytes(blake2b(key.encode(), digest_size=8).digest(), "little") or 1
        place = claim(
            self.cells, self.reserved, self.count, self.processes, found.key, period, numbers
        )
        if place < 0:
            return None
        found.table = self
        found.is_month = period == 1
        found.limit = limit
        found.warns_at = warns_at
        found.cell = &self.cells[place]
        if reserves and self.process >= 0:
            found.reserved = self.reserved + self.process * self.count + place
        if share is not None:
            if share.row >= self.processes:
                raise ValueError(f"row: expected one of {self.processes}, got {share.row}")
            found.share = share
            found.granted = self.reserved + share.row * self.count + place
        memcpy(found.cell.text, <const char*> text, len(text))
        found.cell.size = <uint32_t> len(text)
        return found

    def entries(self):
        """Return place, kind of period, its number, amount and text of each cell that is in use."""
        cdef size_t at
        cdef uint64_t held
        cdef Cell* cell
        found = []
        for at in range(self.count):
            cell = &self.cells[at]
            held = load(&cell.held)
            if load(&cell.key) != 0 and held != CLOSED:
                text = cell.text[: min(cell.size, <uint32_t> TEXT_SIZE)]
                found.append((at, cell.period, held >> SHIFT, held & AMOUNT, text))
        return found

    def clear(self, size_t place, uint64_t number, int64_t amount):
        """Take an amount off a cell, if it is in that period still."""
        cdef Cell* cell
        if place >= self.count:
            raise ValueError(f"place: expected one of {self.count}, got {place}")
        cell = &self.cells[place]
        change(&cell.held, &cell.key, load(&cell.key), number, -amount)


cdef class BudgetShareBase:
    """That a budget is shared with other hosts (see budget_table.pyi)."""

    cdef readonly size_t row
    cdef int64_t number
    cdef int64_t elsewhere

    def __init__(self, size_t row):
        self.row = row
        self.number = -1

    def note(self, int64_t number, int64_t elsewhere):
        """Note what others have been granted in a period."""
        self.number = number
        self.elsewhere = elsewhere

    cdef int64_t of_others(self, int64_t number) noexcept:
        return self.elsewhere if self.number == number else 0


cdef class BudgetCell:
    """One budget of one caller."""

    cdef BudgetTable table
    cdef Cell* cell
    cdef uint64_t* reserved
    cdef uint64_t* granted       # NULL: it is not shared with other hosts
    cdef readonly BudgetShareBase share
    cdef uint64_t key
    cdef bint is_month
    cdef int64_t limit
    cdef int64_t warns_at

    cpdef int settle(self, int64_t day, int64_t month, int64_t taken, int64_t used) except -1:
        """Replace an amount that was taken in a day and a month by the one that was used."""
        settle(self.cell, self.reserved, self.key, month if self.is_month else day, taken, used)
        return 0

    def counted(self, uint64_t day, uint64_t month):
        """Return what is counted in the current period, or in the later one that the cell is in."""
        cdef uint64_t held = load(&self.cell.held)
        if held == CLOSED or load(&self.cell.key) != self.key:
            return 0
        return 0 if held >> SHIFT < (month if self.is_month else day) else held & AMOUNT

    def counted_everywhere(self, uint64_t day, uint64_t month):
        """Return `counted`, and what other hosts have been granted, as far as that is known."""
        cdef int64_t others = 0
        if self.share is not None:
            others = self.share.of_others(<int64_t> (month if self.is_month else day))
        return self.counted(day, month) + others

    def state(self, uint64_t day, uint64_t month):
        """Return the current period, what is counted in it, and what is granted (see budget_table.pyi)."""
        cdef uint64_t number = month if self.is_month else day
        cdef uint64_t held = load(&self.cell.held)
        cdef uint64_t granted = 0 if self.granted == NULL else load(self.granted)
        if held == CLOSED or load(&self.cell.key) != self.key:
            return None
        number = max(number, held >> SHIFT)
        return (
            number,
            held & AMOUNT if held >> SHIFT == number else 0,
            granted & AMOUNT if granted >> SHIFT == number else 0,
        )

    def grant(self, uint64_t number, int64_t change):
        """Let this host count so much more; return by how much it changed (see budget_table.pyi)."""
        if self.granted == NULL or load(&self.cell.key) != self.key:
            return 0
        return grant(self.granted, self.cell, number, change)


def take_all(tuple cells, tuple amounts, int64_t day, int64_t month):
    """Count an amount in each of some cells, or in none (see budget_table.pyi)."""
    cdef BudgetCell each
    cdef Py_ssize_t at, before
    cdef int64_t total
    cdef int near = 0
    if len(cells) != len(amounts):
        raise ValueError(f"expected {len(cells)} amounts, got {len(amounts)}")
    for at in range(len(cells)):
        each = <BudgetCell?> cells[at]
        total = take(
            each.cell,
            each.reserved,
            each.granted,
            each.key,
            month if each.is_month else day,
            amounts[at],
            each.limit,
        )
        if total < 0:
            for before in range(at):
                (<BudgetCell> cells[before]).settle(day, month, amounts[before], 0)
            return LOST if total == -2 else UNLEASED - at if total == -3 else -1 - at
        if each.share is not None:
            total += each.share.of_others(month if each.is_month else day)
        near |= total >= each.warns_at
    return near

"""What is measured: a module a workload, each saying what it stands for and how it is taken."""

from __future__ import annotations

from workloads import eof, w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w12b, w13, w14, w15, w17
from workloads.row import Row

MODULES = (w1, w2, w3, w4, w5, w6, w7, w8, w9, w10, w11, w12, w12b, w13, w14, w15, w17, eof)
ROWS: tuple[Row, ...] = tuple(row for module in MODULES for row in module.ROWS)

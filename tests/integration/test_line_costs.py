"""No line costs more than five times an ordinary one of its size: over stdio, and over HTTP.

Ratios of processor time, taken in one process, so other tests may run beside it; `benchmarks/line_costs.py`
has the lines, and shows all of them. Costs a minute.
"""

from __future__ import annotations

import os
import sys

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(REPOSITORY, "benchmarks"))

line_costs = pytest.importorskip("line_costs", reason="the benchmarks are not here")

SIZE = 8 * 1024 * 1024
DEAR = ("empty arrays", "integers of 4,000 digits")
"""Shapes that are put into every place, and broken in every way; the others are arguments."""


def chosen(name: str) -> bool:
    shape, place, *fault = name.split("; ")
    return shape in DEAR or (place == "an argument" and not fault)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", line_costs.WAYS)
def test_no_line_costs_more_than_five_times_an_ordinary_one(way: str) -> None:
    server = line_costs.WAYS[way]()
    ordinary = line_costs.PLACES["an argument"](line_costs.ordinary(SIZE))
    right = line_costs.best_cost(server, ordinary, rounds=5) / len(ordinary)
    over = {}
    for name, line in line_costs.lines(SIZE, chosen):
        bar = right * len(line) * line_costs.BAR
        cost = line_costs.best_cost(server, line, rounds=5, enough=bar)
        if cost > bar:
            over[name] = round(cost / bar * line_costs.BAR, 1)
    assert over == {}

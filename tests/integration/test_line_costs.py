"""No line costs more than five times an ordinary one of its size: over stdio, and over HTTP.

Ratios of processor time, taken in one process, and alone all the same: what others do to the caches costs a
line that fills much memory more than an ordinary one. `benchmarks/line_costs.py` has the lines, and shows all
of them. Costs half a minute.
"""

from __future__ import annotations

import os
import sys

import pytest

pytestmark = pytest.mark.long

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(REPOSITORY, "benchmarks"))

line_costs = pytest.importorskip("line_costs", reason="the benchmarks are not here")

SIZE = 8 * 1024 * 1024
ROUNDS = 60  # at most, for the few lines that are near the bar
DEAR = ("empty arrays", "integers of 4,000 digits")
"""Shapes that are put into every place, and broken in every way; the others are arguments."""


def chosen(name: str) -> bool:
    shape, place, *fault = name.split("; ")
    return shape in DEAR or (place == "an argument" and not fault)


@pytest.mark.alone
@pytest.mark.timeout(600)
@pytest.mark.parametrize("way", line_costs.WAYS)
def test_no_line_costs_more_than_five_times_an_ordinary_one(way: str) -> None:
    server = line_costs.WAYS[way]()
    ordinary = line_costs.PLACES["an argument"](line_costs.ordinary(SIZE))

    def ratio_of(line: bytes) -> float:
        """What a line costs beside an ordinary one: the least of each, taken in turn. Others on the machine
        can only add to it, and to a line that fills much memory more than to another: it may need some
        rounds."""
        least = {line: float("inf"), ordinary: float("inf")}
        ratio = float("inf")
        for number in range(ROUNDS):
            for each in least:
                least[each] = min(least[each], server.cost(each) / len(each))
            ratio = least[line] / least[ordinary]
            if number >= 5 and ratio <= line_costs.BAR:
                break
        return ratio

    right = line_costs.best_cost(server, ordinary, rounds=10) / len(ordinary)
    over = {}
    for name, line in line_costs.lines(SIZE, chosen):
        below = right * len(line) * line_costs.BAR * 0.8  # the best of ten is no fifth too much
        if line_costs.best_cost(server, line, rounds=2, enough=below) > below:
            ratio = ratio_of(line)
            if ratio > line_costs.BAR:
                over[name] = round(ratio, 1)
    assert over == {}

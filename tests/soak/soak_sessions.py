"""The bar S3: 1,000 sessions over two hosts behind nginx without affinity, for FASTRPC_SOAK_SECONDS (60).

`make soak` runs each file `tests/soak/soak_*.py` as tests. Rates are promises here: nothing else should run.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from support.spread_sessions import WORKERS, Spread

pytest_plugins = ["support.postgres"]
SECONDS = float(os.environ.get("FASTRPC_SOAK_SECONDS", "60"))
SESSIONS = 1000
LISTENERS = 20
LEAST_RATIO = 0.7
ROUNDS = 5


@pytest.mark.timeout(0)
def test_every_answer_is_right_and_a_rolling_restart_loses_nothing(tmp_path: Path, postgres: Any) -> None:
    with Spread(tmp_path, postgres.url(postgres.new_database())) as spread:
        spread.open_sessions(SESSIONS)
        with spread.load(listeners=LISTENERS, updates_a_second=20) as load:
            time.sleep(SECONDS)
        print(load)
        load.check()
        assert len(load.answered) == 2 * WORKERS
        with spread.load(listeners=LISTENERS, updates_a_second=10) as load:
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                spread.restart()
            time.sleep(1)
        print(load)
        load.check(restarted=True)


@pytest.mark.timeout(0)
def test_spreading_costs_at_most_three_tenths_of_the_calls(tmp_path: Path, postgres: Any) -> None:
    """One host with all processes, and two hosts with half of them each, by turns."""
    store = postgres.url(postgres.new_database())
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    with (
        Spread(tmp_path / "one", store, hosts=1, workers=2 * WORKERS) as one,
        Spread(tmp_path / "two", store) as two,
    ):
        ratios, costs = [], []
        for spread in (one, two):
            spread.open_sessions(SESSIONS)
        for _ in range(ROUNDS):
            loads = []
            for spread in (one, two):
                with spread.load() as load:
                    time.sleep(SECONDS / ROUNDS / 2)
                print(load, f"{load.cost * 1e6:.0f} µs of the hosts' processors for a call")
                load.check()
                loads.append(load)
            ratios.append(loads[1].rate / loads[0].rate)
            costs.append(loads[1].cost / loads[0].cost)
        print(
            f"calls a second, two hosts to one: {sorted(ratios)}; processor time of a call: {sorted(costs)}"
        )
        assert sorted(ratios)[ROUNDS // 2] >= LEAST_RATIO

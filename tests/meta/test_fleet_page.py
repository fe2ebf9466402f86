"""The page about large fleets has the tables of the committed figures, and their arithmetic is right."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import replace
from typing import Any

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(REPOSITORY, "benchmarks"))

fleet = pytest.importorskip("fleet", reason="the benchmarks are not here")


@pytest.fixture(scope="module")
def costs() -> Any:
    with open(fleet.RECORD, encoding="utf-8") as file:
        return json.load(file)


def test_the_page_has_the_tables_of_the_committed_figures(costs: Any) -> None:
    with open(fleet.PAGE, encoding="utf-8") as file:
        found = file.read().partition(fleet.BEGIN)[2].partition(fleet.END)[0]
    assert found == fleet.tables(costs)


def test_a_session_is_served_by_more_processes_if_its_requests_are_spread() -> None:
    one_host = fleet.Fleet(processes=8, call_seconds=10.0, session_seconds=1800.0)
    assert one_host.served_by == pytest.approx(8, abs=0.01)
    assert 150 < replace(one_host, is_spread=True).served_by < 180
    assert replace(one_host, session_seconds=10.0, is_spread=True).served_by == pytest.approx(1)


def test_an_end_is_where_a_resource_is_used_up(costs: Any) -> None:
    load = fleet.Fleet()
    found = fleet.ends(load, lambda changed: fleet.processors(changed, costs) <= load.database_processors)
    at_end = replace(load, sessions=int(found["sessions"]))
    assert fleet.processors(at_end, costs) == pytest.approx(load.database_processors, rel=0.01)
    alone = replace(load, sessions=0, updates=0.0, tasks=found["tasks a second, with nothing else"])
    assert fleet.processors(alone, costs) == pytest.approx(load.database_processors, rel=0.01)
    twice = replace(load, hosts=2 * load.hosts)
    assert fleet.processors(twice, costs) > fleet.processors(load, costs)

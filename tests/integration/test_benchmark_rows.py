"""Rows of the benchmarks that do more than one load: servers of many tools, and starts.

Real servers and the real load client, each run as short as it can be. Costs three seconds.
"""

from __future__ import annotations

import os
import sys
from typing import Any

import pytest
from support.skips import not_prepared

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCHMARKS = os.path.join(REPOSITORY, "benchmarks")
sys.path.append(BENCHMARKS)

roster = pytest.importorskip("roster", reason="the benchmarks are not here")
from workloads import ROWS  # noqa: E402
from workloads.row import Options, run_client  # noqa: E402

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(
        not os.path.exists(os.path.join(BENCHMARKS, ".cache", "build", "client")),
        reason=not_prepared("the load client"),
    ),
]
ROW = {row.name: row for row in ROWS}
SHORT = Options(rounds=1, seconds=0.02, starts=2)


@pytest.fixture(scope="module")
def fastrpc() -> Any:
    return roster.peer_of("fastrpc", sys.executable)


def measured(name: str, peer: Any) -> dict[str, Any]:
    report: dict[str, Any] = ROW[name].measure(ROW[name], peer, SHORT)
    assert "void" not in report
    return report


@pytest.mark.parametrize("tools", roster.MANY_TOOLS)
def test_a_server_of_many_tools_lists_them_all_and_serves_its_echo(fastrpc: Any, tools: int) -> None:
    report = measured(f"W5-tools-{tools}", fastrpc)
    assert report["us_per_call"] > 0
    assert report["start_ms"] > 0
    assert report["list_ns_per_tool"] == pytest.approx(report["list_us"] * 1000 / tools)


def test_a_list_of_another_length_voids_the_row(fastrpc: Any) -> None:
    row = ROW["W5-tools-10"]
    report = run_client(row, fastrpc, ["--workload", "list", "--tools", "11", "--seconds", "0.01"])
    assert "expected 11 tools, got 10" in report["void"]


def test_a_start_to_the_list_takes_longer_than_one_to_initialize(fastrpc: Any) -> None:
    report = measured("W8-list", fastrpc)
    assert report["starts"] == SHORT.starts
    assert report["list_ms"] > report["initialize_ms"] > 0


def test_a_start_of_the_command_is_measured_beside_a_bare_python(fastrpc: Any) -> None:
    assert fastrpc.commands[roster.START_SERVE][-1] == "serve"
    bare = roster.peer_of("bare", sys.executable)
    for name in ("W8", "W8-serve", "W8-list"):
        assert measured(name, bare)[ROW[name].figure] > 0
        assert measured(name, fastrpc)[ROW[name].figure] > 0

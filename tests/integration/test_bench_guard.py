"""The guard of the benchmarks: what it lets pass, what it stops, and that a planted slowdown is noticed."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BENCHMARKS = os.path.join(REPOSITORY, "benchmarks")
BUILT = os.path.exists(os.path.join(BENCHMARKS, ".cache", "build", "client"))
sys.path.append(BENCHMARKS)

guard = pytest.importorskip("guard", reason="the benchmarks are not here")

COMMITTED = {"figure": 0.8, "holds": True, "less_is_better": False}


def entry(ratio: float, **more: Any) -> dict[str, Any]:
    return {"figure": {"median": 5.0}, "ratio": {"median": ratio}, **more}


@pytest.mark.parametrize(
    ("measured", "committed", "said"),
    [
        (entry(0.8, holds=True), COMMITTED, ""),
        (entry(0.65, holds=True), COMMITTED, ""),
        (entry(0.63, holds=True), COMMITTED, "worse"),
        (entry(0.7, holds=False, bar=0.75), COMMITTED, "misses the bar"),
        (entry(0.7, holds=False, bar=0.75), {**COMMITTED, "holds": False}, ""),
        (entry(1.2), {"figure": 1.0, "holds": True, "less_is_better": True}, ""),
        (entry(1.3), {"figure": 1.0, "holds": True, "less_is_better": True}, "worse"),
        (entry(0.1), None, ""),
        (entry(0.7, holds=True, bar=0.6), None, ""),
        (entry(0.7, holds=False, bar=0.75), None, "misses the bar"),
        ({"figure": {"median": 12.0}}, {"figure": 11.0, "holds": True, "less_is_better": True}, ""),
        ({"figure": {"median": 14.0}}, {"figure": 11.0, "holds": True, "less_is_better": True}, "worse"),
        ({"figure": {"median": 0.1}}, {"figure": 0.0, "holds": True, "less_is_better": True}, ""),
        ({"void": "a wrong answer"}, COMMITTED, "a wrong answer"),
    ],
)
def test_a_figure_fails_for_a_real_loss_only(measured: Any, committed: Any, said: str) -> None:
    complaint = guard.complaint(measured, committed)
    assert said in complaint
    assert bool(complaint) == bool(said)


@pytest.mark.parametrize(("bad_runs", "passes"), [(0, True), (1, True), (2, True), (3, False)])
def test_only_a_loss_in_each_of_three_repetitions_fails(
    bad_runs: int, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = guard.ROWS[0]
    ratios = iter([0.1] * bad_runs + [0.8] * 3)
    monkeypatch.setattr(
        guard, "measure", lambda rows, *_: {row.name: entry(next(ratios), holds=True)} if rows else {}
    )
    assert guard.guard([row], [], None, {row.name: COMMITTED}) is passes


@pytest.mark.skipif(not BUILT, reason="the load client is not built: python benchmarks/build.py")
@pytest.mark.parametrize("row", ["W2", "W11-cpu"])
def test_a_planted_slowdown_makes_the_guard_fail(row: str) -> None:
    committed = guard.committed_figures([each for each in guard.ROWS if each.name == row])
    assert row == "W11-cpu" or row in committed  # a row that is newer than the record has its bar
    command = [
        sys.executable,
        os.path.join(BENCHMARKS, "guard.py"),
        "--only",
        row,
        "--rounds",
        "1",
        "--seconds",
        "0.1",
    ]
    done = subprocess.run(
        command,
        env={**os.environ, "FASTRPC_GUARD_PLANT": "20"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"{row} failed" in done.stdout

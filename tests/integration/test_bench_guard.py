"""The guard of the benchmarks: what it lets pass, what it stops, and that a planted slowdown is noticed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from support.skips import not_prepared

pytestmark = pytest.mark.long

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


ROW = next(row for row in guard.ROWS if row.name == "W1")  # p50, less is better, to the C reference
FAST, SLOW = {"figure": 1.0, "holds": True, "less_is_better": True}, 2.0


def rounds_of(figures: dict[str, list[float]]) -> Any:
    """Replace `run_rows`: each repetition has one round, of the next figure of each peer."""
    left = {name: iter(each) for name, each in figures.items()}

    def run_rows(rows: list[Any], peers: list[Any], options: None) -> list[dict[str, Any]]:
        runs = {peer.name: [{ROW.figure: next(left[peer.name])}] for peer in peers}
        return [guard.summary(ROW, peer, runs) for peer in peers if rows]

    return run_rows


@pytest.mark.parametrize(
    ("fastrpc", "c", "passes"),
    [
        ([1.0], [1.0], True),
        ([SLOW, 1.0], [1.0] * 2, True),
        ([SLOW, SLOW, 1.0], [1.0] * 3, True),
        ([SLOW, SLOW, SLOW], [1.0] * 3, False),
        ([3 * SLOW, 2 * SLOW, SLOW], [4.0, SLOW, 1.0], False),  # no round is right, the best are not either
        ([5.0, 1.0], [3.0, 0.9], True),  # another program took time from the first; the bar is 1.15
        ([5.0, 1.2], [1.1, 0.9], False),
    ],
)
def test_only_a_loss_in_every_repetition_and_in_the_best_rounds_of_all_fails(
    fastrpc: list[float], c: list[float], passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    peers = [guard.roster.Peer(name, {}) for name in ("c", "fastrpc")]  # nothing is built or started
    monkeypatch.setattr(guard, "REPETITIONS", len(c))
    monkeypatch.setattr(guard, "run_rows", rounds_of({"fastrpc": fastrpc, "c": c}))
    assert bool(guard.guard([ROW], peers, None, {ROW.name: FAST})) is not passes


@pytest.mark.parametrize(
    ("now", "then", "is_slower"),
    [
        ([2.0] * 3, [1.9] * 3, False),  # twice as slow as the record says, and so is the recorded commit here
        ([2.0] * 3, [1.4] * 3, True),
        ([1.3] * 3, [1.0] * 3, True),
        ([2.0, 2.0, 1.0], [1.0] * 3, False),  # the best round is as good: other programs took the time
        ([1.4, 1.0, 1.0], [1.0, 1.0, 0.7], False),  # the best is worse, the median is not
    ],
)
def test_what_has_failed_is_measured_in_turns_with_the_recorded_commit(
    now: list[float], then: list[float], is_slower: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    peers, recorded = ([guard.roster.Peer(name, {}) for name in ("c", "fastrpc")] for _ in range(2))
    turns = iter([figure for pair in zip(now, then, strict=True) for figure in pair])
    measured: list[bool] = []

    def run_rows(rows: list[Any], whose: list[Any], options: Any) -> list[dict[str, Any]]:
        measured.append(whose is peers)
        runs = {"c": [{ROW.figure: 1.0}], "fastrpc": [{ROW.figure: next(turns)}]}
        return [guard.summary(ROW, peer, runs) for peer in whose]

    monkeypatch.setattr(guard, "run_rows", run_rows)
    assert guard.slower_than_recorded(ROW, peers, recorded, guard.Options(rounds=1)) is is_slower
    assert measured == [True, False] * 3


def test_a_row_whose_recorded_commit_cannot_be_had_has_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    peers = [guard.roster.Peer(name, {}) for name in ("c", "fastrpc")]
    monkeypatch.setattr(guard, "commits_in", lambda path: {ROW.name: "0" * 40})
    monkeypatch.setattr(guard.roster, "REPOSITORY", BENCHMARKS)
    assert guard.slower_here([ROW], peers, guard.Options(rounds=1))


def test_a_recorded_figure_is_of_the_commit_of_its_own_run(tmp_path: Path) -> None:
    record = {
        "commit": "a",
        "changed_files": False,
        "rows": [{"row": name} for name in ("W1", "W2", "W3", "W4")],
        "later": [
            {"commit": "b", "changed_files": False, "rows": ["W2"]},
            {"commit": "c", "changed_files": True, "rows": ["W3"]},
            {"commit": "a", "changed_files": True, "rows": ["W4"]},  # by the record of the first run
        ],
    }
    (tmp_path / "record.json").write_text(json.dumps(record))
    assert guard.commits_in(str(tmp_path / "record.json")) == {"W1": "a", "W4": "a", "W2": "b"}


def test_a_shell_command_has_a_bar_that_is_guarded() -> None:
    """Bash: the round trip of `true` takes at most 1.3 times the C reference's (`make bench-guard`)."""
    (row,) = (row for row in guard.ROWS if row.name == "W7")
    assert "W7" in guard.GUARDED
    assert row.bar == 1.3


@pytest.mark.parametrize("name", ["W12-context", "W12-coroutine", "W12-guard"])
def test_tools_as_people_write_them_are_guarded_beside_the_plain_one(name: str) -> None:
    (row,) = (row for row in guard.ROWS if row.name == name)
    assert name in guard.GUARDED
    assert (row.base, row.cores) == (guard.roster.PLAIN, 1)
    assert row.bar is not None


@pytest.mark.parametrize("name", ["W13-sync", "W13-async"])
def test_a_call_of_the_client_is_guarded_beside_the_load_client(name: str) -> None:
    (row,) = (row for row in guard.ROWS if row.name == name)
    assert name in guard.GUARDED
    assert (row.base, row.cores) == (guard.roster.LOAD_CLIENT, 1)
    assert row.bar is not None
    assert guard.options_for(row, guard.Options(rounds=5)).rounds == 3
    assert guard.options_for(row, guard.Options(rounds=1)).rounds == 1
    assert guard.options_for(ROW, guard.Options(rounds=5)).rounds == 5


def test_a_call_through_the_proxy_is_guarded_beside_the_direct_one() -> None:
    (row,) = (row for row in guard.ROWS if row.name == "W14")
    assert row.name in guard.GUARDED
    assert (row.base, row.cores, row.bar) == (guard.roster.PLAIN, 1, 3.0)


def test_a_call_through_a_guarded_proxy_is_guarded_beside_the_proxy_without_a_guard() -> None:
    (row,) = (row for row in guard.ROWS if row.name == "W14-guarded")
    assert row.name in guard.GUARDED
    assert (row.base, row.cores, row.bar) == (guard.roster.PLAIN, 1, 1.3)
    plain, guarded = (guard.roster.peer_of(name, sys.executable) for name in (row.base, "fastrpc"))
    assert guarded.commands[row.server][:2] == plain.commands[row.server]
    assert guarded.commands[row.server][2] == "--guard"


@pytest.mark.parametrize("name", ["W15-one", "W15-256"])
def test_the_access_guard_is_guarded_beside_the_same_server_without_it(name: str) -> None:
    (row,) = (row for row in guard.ROWS if row.name == name)
    assert name in guard.GUARDED
    assert (row.base, row.server, row.cores) == (guard.roster.PLAIN, guard.roster.GUARDED, 1)
    assert name in guard.committed_figures([row]), "there is something to compare it with"


QUICK_GUARD = """
import dataclasses, sys
import guard

planted = guard.planted
guard.planted = lambda peer: dataclasses.replace(planted(peer), warm_up=0.1)
guard.REPETITIONS = 2
sys.exit(guard.main(sys.argv[1:]))
"""
"""The guard, for a loss that no warming up and no repetition could hide."""


@pytest.mark.skipif(not BUILT, reason=not_prepared("the load client"))
def test_a_planted_slowdown_makes_the_guard_fail_in_every_row() -> None:
    names = ["W2", "W11-cpu", "W12-context", "W12-coroutine", "W12-guard", "W13-sync"]
    names += ["W15-one", "W15-256", "W15-rules"]
    rows = [each for each in guard.ROWS if each.name in names]
    committed = guard.committed_figures(rows)
    for row in rows:  # one that is newer than the record has its bar
        assert row.name in committed or row.bar is not None
    options = ["--only", ",".join(names), "--rounds", "1", "--seconds", "0.1", "--record-only"]
    done = subprocess.run(
        [sys.executable, "-c", QUICK_GUARD, *options],
        cwd=BENCHMARKS,
        env={**os.environ, "FASTRPC_GUARD_PLANT": "60"},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 1, done.stdout + done.stderr
    said = re.search(r"^repetition 2 of 2: (.*) failed$", done.stdout, re.MULTILINE)
    assert said is not None, done.stdout
    assert sorted(said[1].split(", ")) == sorted(names)

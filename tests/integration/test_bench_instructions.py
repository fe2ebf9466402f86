"""The count of instructions: what its check lets pass and what it stops, and that a guard shows in it."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Any

import pytest
from support.skips import not_installed

pytestmark = pytest.mark.long

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(REPOSITORY, "benchmarks"))

instructions = pytest.importorskip("instructions", reason="the benchmarks are not here")


def commit(monkeypatch: pytest.MonkeyPatch, figure: float, **other: str) -> None:
    """Have a figure be the committed one of this build."""
    facts = {"instructions_per_call": figure, **instructions.build(), **other}
    monkeypatch.setattr(instructions, "committed", lambda: [facts])


@pytest.mark.parametrize(("counted", "code"), [(900.0, 0), (1019.0, 0), (1021.0, 1)])
def test_over_two_percent_more_than_the_committed_figure_fail(
    monkeypatch: pytest.MonkeyPatch, counted: float, code: int
) -> None:
    commit(monkeypatch, 1000.0)
    assert instructions.check(counted) == code


def test_figures_of_another_build_are_not_compared(monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    commit(monkeypatch, 1000.0, compiler="another one")
    assert instructions.check(5000.0) == 0
    assert "cannot compare" in capsys.readouterr().out


def count(folder: str) -> float:
    """Return the instructions of one call, of fewer calls than those of the committed figures."""
    valgrind = shutil.which("valgrind")
    runs = (1, 100, 1100)  # the first compiles what no run has compiled yet
    _, few, many = (sum(instructions.count_run(valgrind, folder, calls).values()) for calls in runs)
    return float(many - few) / 1000


@pytest.mark.skipif(shutil.which("valgrind") is None, reason=not_installed("valgrind"))
def test_a_guard_that_says_nothing_is_over_the_bar_of_a_server_that_has_none(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    commit(monkeypatch, count(str(tmp_path)))
    guarded = instructions.SERVER.replace("\n\napp.run()", "\n\napp.guard(lambda call: None)\napp.run()")
    assert guarded != instructions.SERVER
    monkeypatch.setattr(instructions, "SERVER", guarded)
    assert instructions.check(count(str(tmp_path))) == 1

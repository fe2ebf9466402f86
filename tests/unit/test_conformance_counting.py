"""What counts in a run of the conformance suite: a scenario of tasks that is skipped or missing fails it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conformance.suite import TASKS, Outcome, Run, Scenario, count

TASK_RUN = Run("fastrpc serve", "requirements", "2026-07-28")


def scenario(folder: Path, name: str, *states: str) -> Scenario:
    """A scenario whose checks have these states."""
    checks = [{"id": f"check-{number}", "status": state} for number, state in enumerate(states)]
    (folder / "checks.json").write_text(json.dumps(checks))
    found = Scenario(name)
    count(found, str(folder))
    return found


@pytest.mark.parametrize(
    ("states", "is_well"),
    [
        (("SUCCESS",), True),
        (("SUCCESS", "SKIPPED"), False),
        (("SUCCESS", "FAILURE"), False),
        (("SKIPPED",), False),
        ((), False),
    ],
)
def test_a_scenario_of_tasks_is_well_if_all_of_its_checks_were_made_and_passed(
    tmp_path: Path, states: tuple[str, ...], is_well: bool
) -> None:
    found = scenario(tmp_path, "tasks-lifecycle", *states)
    assert found.is_well is is_well
    assert Outcome(TASK_RUN, [found], []).is_well is is_well


def test_a_scenario_of_tasks_that_was_not_run_fails_the_run() -> None:
    assert TASK_RUN.has_tasks
    assert len(TASKS) == 10
    assert not Outcome(TASK_RUN, [Scenario(name) for name in TASKS], []).is_well


def test_the_scenario_that_the_suite_always_skips_counts_as_soon_as_it_checks_something(
    tmp_path: Path,
) -> None:
    assert scenario(tmp_path, "tasks-status-notifications", "SKIPPED").kind == "skipped by the suite"
    assert scenario(tmp_path, "tasks-status-notifications", "SKIPPED", "FAILURE").kind == ""

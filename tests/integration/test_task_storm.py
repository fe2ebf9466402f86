"""The bar S2, short: a fleet whose processes are killed at random loses no task, and runs no tool twice that
must run once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.task_storm import Storm
from support.waiting import SECONDS

pytest_plugins = ["support.postgres"]


@pytest.mark.long
def test_no_task_is_lost_or_run_twice_while_a_process_is_killed_each_second(
    tmp_path: Path, postgres: Any
) -> None:
    with Storm(tmp_path, postgres.url(postgres.new_database())) as storm:
        found = storm.rage(20)
        print(found)
        found.check(cancel_seconds=SECONDS)
        assert found.kills >= 5

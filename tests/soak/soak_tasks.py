"""The bar S2 of tasks: a process of three hosts is killed each second, for FASTRPC_SOAK_SECONDS (60).

`make soak` runs each file `tests/soak/soak_*.py` as tests. Times are promises here: nothing else should run.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from support.task_storm import Storm

pytest_plugins = ["support.postgres"]
SECONDS = float(os.environ.get("FASTRPC_SOAK_SECONDS", "60"))
CANCEL_SECONDS = 2.0


def test_no_task_is_lost_or_run_twice_and_a_cancelled_one_is_gone_within_two_seconds(
    tmp_path: Path, postgres: Any
) -> None:
    with Storm(tmp_path, postgres.url(postgres.new_database())) as storm:
        found = storm.rage(SECONDS)
        print(found)
        found.check(CANCEL_SECONDS)

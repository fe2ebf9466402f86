"""A process that is killed at any step of a write, an extraction, an import or an export leaves a whole
store, and what it did can be done again."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize("scenario", ["write", "documents", "import", "export", "import-folder"])
def test_whoever_is_killed_at_a_step_leaves_a_whole_store(tmp_path: Path, scenario: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "support.killed_steps", scenario, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(TESTS)},
        capture_output=True,
        text=True,
        timeout=110,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout.splitlines()[-1]) > 10

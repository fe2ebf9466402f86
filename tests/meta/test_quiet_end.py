"""A run of tests ends with its summary: counts of failures of handlers are not printed behind it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FAILING = os.path.join("tests", "unit", "test_framed_calls.py")
"""Its handlers fail many times at one place."""


@pytest.mark.long
@pytest.mark.timeout(320)
@pytest.mark.parametrize("spread", [(), ("-n", "1")], ids=["alone", "spread"])
def test_nothing_is_printed_after_the_summary(spread: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *spread, FAILING]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    assert " more, at " not in done.stdout + done.stderr

"""What a run says of tests that it skipped, and that CI takes no skip for want of something."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SKIPPING = """
import pytest

@pytest.mark.parametrize("number", range(3))
def test_wants_a_browser(number):
    pytest.skip("no Chromium")

@pytest.mark.skipif(True, reason="only root is refused the sandbox everywhere")
def test_wants_root():
    pass
"""


def run(folder: str, ci: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "support.skips",
            "-p",
            "no:cacheprovider",
            *options,
            "test_it.py",
        ],
        cwd=folder,
        env={**os.environ, "CI": ci, "PYTHONPATH": TESTS},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize("spread", [(), ("-n", "1")], ids=["alone", "spread"])
def test_equal_reasons_are_counted_and_fail_the_run_in_ci_alone(tmp_path, spread) -> None:
    (tmp_path / "test_it.py").write_text(SKIPPING, encoding="utf-8")
    at_home, in_ci = (run(tmp_path, ci, *spread) for ci in ("", "true"))
    for done in (at_home, in_ci):
        assert "4 skipped, for want of" in done.stdout
        assert "\n     3 no Chromium\n     1 only root" in done.stdout
    assert at_home.returncode == 0
    assert in_ci.returncode == 1


def test_a_skip_that_nothing_can_help_does_not_fail_ci(tmp_path) -> None:
    (tmp_path / "test_it.py").write_text(SKIPPING, encoding="utf-8")
    done = run(tmp_path, "true", "-k", "root")
    assert "1 skipped, for want of" in done.stdout
    assert done.returncode == 0

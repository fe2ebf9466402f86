"""What a run says of tests that it skipped, and that CI takes no skip for want of something."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.skips import EXPECTED

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
WHOLE_FILE = """
import pytest
pytest.importorskip("no_such_library", reason="no such library")

def test_it():
    pass
"""
PASSING = "def test_it():\n    pass\n"
PLUGINS = ("-p", "support.skips", "-p", "xdist", "-p", "no:cacheprovider")
"""All that a run has: the others that are installed take most of its time to start."""
SPREAD = pytest.mark.parametrize("spread", [(), ("-n", "1")], ids=["alone", "spread"])


def run(folder: str, ci: str, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "pytest", *PLUGINS, *options],
        cwd=folder,
        env={**os.environ, "CI": ci, "PYTHONPATH": TESTS, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@SPREAD
def test_equal_reasons_are_counted_and_fail_the_run_in_ci_alone(tmp_path, spread) -> None:
    (tmp_path / "test_it.py").write_text(SKIPPING, encoding="utf-8")
    at_home, in_ci = (run(tmp_path, ci, *spread) for ci in ("", "true"))
    for done in (at_home, in_ci):
        assert "4 skipped, for want of" in done.stdout
        assert "\n     3 no Chromium\n     1 only root" in done.stdout
    assert at_home.returncode == 0
    assert in_ci.returncode == 1
    assert "CI takes no skip: 3 of 4 are not listed in tests/support/skips.py" in in_ci.stdout
    assert "CI takes" not in at_home.stdout


@pytest.mark.parametrize(
    ("ci", "is_red"), [("true", True), ("1", True), ("woodpecker", True), ("false", False)]
)
def test_ci_is_wherever_the_variable_is_set(tmp_path, ci: str, is_red: bool) -> None:
    (tmp_path / "test_it.py").write_text(SKIPPING, encoding="utf-8")
    assert run(tmp_path, ci).returncode == int(is_red)


@SPREAD
def test_a_file_that_is_skipped_whole_fails_ci_too(tmp_path, spread) -> None:
    (tmp_path / "test_it.py").write_text(WHOLE_FILE, encoding="utf-8")
    (tmp_path / "test_other.py").write_text(PASSING, encoding="utf-8")
    done = run(tmp_path, "true", *spread)
    assert "no such library" in done.stdout
    assert done.returncode == 1


def test_a_skip_that_is_listed_says_why_and_does_not_fail_ci(tmp_path) -> None:
    (tmp_path / "test_it.py").write_text(SKIPPING, encoding="utf-8")
    done = run(tmp_path, "true", "-k", "root")
    assert "1 skipped, for want of" in done.stdout
    assert "only root is refused the sandbox everywhere: the run is not root's" in done.stdout
    assert done.returncode == 0


def test_every_listed_reason_says_why_nothing_can_help() -> None:
    assert all(len(why.split()) >= 3 for why in EXPECTED.values())


def test_a_reason_that_only_begins_like_a_listed_one_is_not_listed(tmp_path) -> None:
    source = SKIPPING.replace("no Chromium", "FASTRPC_URL_TESTS is empty")
    (tmp_path / "test_it.py").write_text(source, encoding="utf-8")
    assert run(tmp_path, "true").returncode == 1


WANTING = """
import pytest
from support.skips import not_installed, not_prepared

@pytest.mark.parametrize("number", range(2))
def test_wants_a_program(number):
    pytest.skip(not_installed("tmux"))

def test_wants_a_package():
    pytest.skip(not_prepared("FastMCP"))
"""


@SPREAD
def test_what_one_command_brings_is_counted_after_it(tmp_path, spread) -> None:
    (tmp_path / "test_it.py").write_text(WANTING, encoding="utf-8")
    done = run(tmp_path, "", *spread)
    assert (
        "\n     2 tmux is not installed: .ci/packages\n     1 FastMCP is not there: make prepare\n"
        in done.stdout
    )
    assert "\n.ci/packages: this installs what 2 of them want\n" in done.stdout
    assert "\nmake prepare: this builds and fetches what 1 of them want\n" in done.stdout


@pytest.mark.long
@SPREAD
def test_a_second_run_counts_on_from_the_first(tmp_path, spread) -> None:
    (tmp_path / "test_it.py").write_text(WANTING, encoding="utf-8")
    (tmp_path / "test_other.py").write_text(SKIPPING, encoding="utf-8")
    tally = ("--skipped", str(tmp_path / "of" / "both.json"))
    first = run(tmp_path, "", *spread, *tally, "test_it.py")
    second = run(tmp_path, "", *spread, *tally, "test_other.py")
    assert "3 skipped, for want of" in first.stdout
    assert "7 skipped, for want of" in second.stdout
    assert ".ci/packages: this installs what 2 of them want" in second.stdout
    nothing_new = run(tmp_path, "", *spread, *tally, "-k", "no_such_test")
    assert "7 skipped, for want of" in nothing_new.stdout


@SPREAD
def test_a_run_has_what_another_has_skipped_and_nothing_else(tmp_path, spread) -> None:
    files = {"test_it.py": WANTING, "test_whole.py": WHOLE_FILE, "test_other.py": PASSING}
    for name, source in files.items():
        (tmp_path / name).write_text(source + PASSING.replace("test_it", "test_more"), encoding="utf-8")
    left = str(tmp_path / "skipped.json")
    assert run(tmp_path, "", "--skipped", left).returncode == 0
    brought = {"test_it.py": WANTING.replace("pytest.skip", "print"), "test_whole.py": PASSING}
    for name, source in brought.items():
        (tmp_path / name).write_text(source + PASSING.replace("test_it", "test_more"), encoding="utf-8")
    again = run(tmp_path, "true", *spread, "--skipped-before", left)
    assert "5 passed" in again.stdout, "three tests, and both of the file that was skipped whole"
    assert again.returncode == 0


def test_a_run_of_what_was_skipped_passes_where_nothing_was(tmp_path) -> None:
    (tmp_path / "test_it.py").write_text(PASSING, encoding="utf-8")
    left = str(tmp_path / "skipped.json")
    assert run(tmp_path, "", "--skipped", left).returncode == 0
    assert run(tmp_path, "true", "--skipped-before", left).returncode == 0

"""Says at the end of a run what was skipped, for want of what, and what brings it; fails the run in CI, where
nothing may be missing.

A plugin of `conftest.py`. A skip says its reason in the test; here equal reasons are counted together. What
one command brings has one form of reason: `not_installed`, `not_prepared`. With ``--skipped FILE`` a run
counts on from what the run before it has left in that file: `make test` is two runs. With
``--skipped-before FILE`` a run has only the tests that were skipped in the one that left this file.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

EXPECTED = {
    r"CPython 3\.10 cannot read TOML": "no package brings what the interpreter lacks",
    r"reads the file with the standard library of 3\.11": "no package brings what the interpreter lacks",
    r"no exception groups before Python 3\.11": "no package brings what the interpreter lacks",
    r"[\w.]+ is of Python 3\.11": "no package brings what the interpreter lacks",
    r"no CEL to compare with": "its package is of Python 3.11 and newer",
    r"Python 3\.11 brings it": "no package brings what the interpreter lacks",
    r"only root is refused the sandbox everywhere": "the run is not root's",
    r"makes a link of another user's": "the run is not root's",
    r"root may read everything": "the run is root's",
    r"the benchmarks are not here": "an sdist is tested, which has none",
    r"got empty parameter set": "there is no such case in this version",
    r"FASTRPC_URL_TESTS does not name": "another project's file, which no registry has by itself",
    r"no registry has the published pages": "where no folder of seeds is beside, or named",
    r"no registry has this version's schema": "that of 2024-11-05, where no folder of test data is beside",
}
"""The reasons, each a pattern of its beginning, that nothing which could be installed removes: they may come
in CI, too; and why that is."""


PACKAGES = ".ci/packages"
PREPARE = "make prepare"


def not_installed(what: str) -> str:
    """The reason of a skip for want of a program of the system, which its package manager brings."""
    return f"{what} is not installed: {PACKAGES}"


def not_prepared(what: str) -> str:
    """The reason of a skip for want of what `make test` builds or fetches where registries are reached."""
    return f"{what} is not there: {PREPARE}"


def in_ci() -> bool:
    """Whether this is a run of CI: the variable `CI` is set, as every service of that kind does."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def excuse_of(reason: str) -> str:
    """Return why a reason may come in CI, empty for one that may not."""
    return next((why for pattern, why in EXPECTED.items() if re.match(pattern, reason)), "")


Skips: TypeAlias = "dict[str, list[str]]"
"""What was skipped for each reason, by the ids of pytest: tests, and files that were skipped whole."""


def skips_of(reports: Iterable[Any]) -> Skips:
    """Return the skips that reports tell of."""
    found: Skips = {}
    for report in reports:
        place = report.longrepr
        reason = place[2] if isinstance(place, tuple) else str(place)
        found.setdefault(reason.removeprefix("Skipped: "), []).append(report.nodeid)
    return found


def number_of(skips: Skips, ending: str = "") -> int:
    """How many skips have a reason that ends so."""
    return sum(len(ids) for reason, ids in skips.items() if reason.endswith(ending))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--skipped", metavar="FILE", help="count skips on from this file, and leave them there")
    parser.addoption(
        "--skipped-before", metavar="FILE", help="run what the run that left this file has skipped"
    )


def _found(config: pytest.Config) -> Skips:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return skips_of(reporter.stats.get("skipped", ())) if reporter is not None else {}


def _unexpected(config: pytest.Config) -> int:
    """How many tests were skipped for a reason that is not listed."""
    return sum(len(ids) for reason, ids in _found(config).items() if not excuse_of(reason))


def _left_in(path: str) -> Skips:
    with open(path, encoding="utf-8") as file:
        left: Skips = json.load(file)
    return left


def _with_the_run_before(found: Skips, path: str) -> Skips:
    """Return the skips of this run and of the one that has left its own in a file, and leave them there."""
    whole = _left_in(path) if os.path.exists(path) else {}
    for reason, ids in found.items():
        whole[reason] = [*whole.get(reason, []), *ids]
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    with open(path, "w", encoding="utf-8") as file:
        json.dump(whole, file)
    return whole


def pytest_configure(config: pytest.Config) -> None:
    if path := config.getoption("--skipped-before"):
        config.pluginmanager.register(_SkippedBefore(_left_in(path)))


class _SkippedBefore:
    """Leaves out of a run what is not among the skips of another one."""

    def __init__(self, skips: Skips) -> None:
        self.ids = {each for ids in skips.values() for each in ids}
        self.files = {each.split("::")[0] for each in self.ids}

    def pytest_ignore_collect(self, collection_path: Path, config: pytest.Config) -> bool | None:
        if collection_path.suffix != ".py":
            return None
        return collection_path.relative_to(config.rootpath).as_posix() not in self.files or None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        wanted = {each: not self.ids.isdisjoint((each.nodeid, each.nodeid.split("::")[0])) for each in items}
        config.hook.pytest_deselected(items=[each for each in items if not wanted[each]])
        items[:] = [each for each in items if wanted[each]]


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: Any) -> None:
    config = terminalreporter.config
    if hasattr(config, "workerinput"):  # no one sees what a worker writes, and all of them have one file
        return
    found = own = _found(config)
    if path := config.getoption("--skipped"):
        found = _with_the_run_before(own, path)
    if not found:
        return
    terminalreporter.section(f"{number_of(found)} skipped, for want of")
    for reason, ids in sorted(found.items(), key=lambda each: -len(each[1])):
        excuse = excuse_of(reason)
        terminalreporter.write_line(f"{len(ids):6} {reason}{': ' if excuse else ''}{excuse}")
    for command, what in ((PREPARE, "builds and fetches"), (PACKAGES, "installs")):
        if number := number_of(found, f": {command}"):
            terminalreporter.write_line(f"{command}: this {what} what {number} of them want", yellow=True)
    if in_ci() and (unexpected := _unexpected(config)):
        terminalreporter.write_line(
            f"CI takes no skip: {unexpected} of {number_of(own)} are not listed in tests/support/skips.py",
            red=True,
        )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if in_ci() and not hasattr(session.config, "workerinput") and _unexpected(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    nothing_left = session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED
    if nothing_left and session.config.getoption("--skipped-before"):
        session.exitstatus = pytest.ExitCode.OK

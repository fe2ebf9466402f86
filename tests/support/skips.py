"""Says at the end of a run what was skipped, for want of what; fails it in CI, where nothing may be missing.

A plugin of `conftest.py`. A skip says its reason in the test; here equal reasons are counted together.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any

import pytest

EXPECTED = {
    r"CPython 3\.10 reads no TOML": "no package brings what the interpreter lacks",
    r"reads the file with the standard library of 3\.11": "no package brings what the interpreter lacks",
    r"no exception groups before Python 3\.11": "no package brings what the interpreter lacks",
    r"[\w.]+ is of Python 3\.11": "no package brings what the interpreter lacks",
    r"no CEL to compare with": "its package is of Python 3.11 and newer",
    r"Python 3\.11 brings it": "no package brings what the interpreter lacks",
    r"only root is refused the sandbox everywhere": "the run is not root's",
    r"makes a link of another user's": "the run is not root's",
    r"root may read everything": "the run is root's",
    r"got empty parameter set": "there is no such case in this version",
    r"FASTRPC_URL_TESTS does not name": "another project's file, which no registry has by itself",
}
"""The reasons, each a pattern of its beginning, that nothing which could be installed removes: they may come
in CI, too; and why that is."""


def in_ci() -> bool:
    """Whether this is a run of CI: the variable `CI` is set, as every service of that kind does."""
    return os.environ.get("CI", "").lower() not in ("", "0", "false")


def excuse_of(reason: str) -> str:
    """Return why a reason may come in CI, empty for one that may not."""
    return next((why for pattern, why in EXPECTED.items() if re.match(pattern, reason)), "")


def counted(reports: Iterable[Any]) -> list[tuple[str, int]]:
    """Return the reasons of skip reports and how often each came, the most frequent first."""
    reasons: Counter[str] = Counter()
    for report in reports:
        place = report.longrepr
        reason = place[2] if isinstance(place, tuple) else str(place)
        reasons[reason.removeprefix("Skipped: ")] += 1
    return reasons.most_common()


def _reports(config: pytest.Config) -> Iterable[Any]:
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    return reporter.stats.get("skipped", ()) if reporter is not None else ()


def _unexpected(config: pytest.Config) -> int:
    """How many tests were skipped for a reason that is not listed."""
    return sum(number for reason, number in counted(_reports(config)) if not excuse_of(reason))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    found = counted(terminalreporter.stats.get("skipped", ()))
    if not found:
        return
    whole = sum(number for _, number in found)
    terminalreporter.section(f"{whole} skipped, for want of")
    for reason, number in found:
        excuse = excuse_of(reason)
        terminalreporter.write_line(f"{number:6} {reason}{': ' if excuse else ''}{excuse}")
    if in_ci() and (unexpected := _unexpected(terminalreporter.config)):
        place = "tests/support/skips.py"
        terminalreporter.write_line(
            f"CI takes no skip: {unexpected} of {whole} are not listed in {place}", red=True
        )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if in_ci() and not hasattr(session.config, "workerinput") and _unexpected(session.config):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED

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

EXPECTED = re.compile(
    r"CPython 3\.10 reads no TOML|reads the file with the standard library of 3\.11"
    r"|no exception groups before Python 3\.11"
    r"|only root is refused the sandbox everywhere|root may read everything"
    r"|got empty parameter set|FASTRPC_URL_TESTS does not name"
)
"""Reasons that no package can remove: they may come in CI, too. The last is another project's file, which no
registry has by itself."""


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


def pytest_terminal_summary(terminalreporter: Any) -> None:
    found = counted(terminalreporter.stats.get("skipped", ()))
    if not found:
        return
    terminalreporter.section(f"{sum(number for _, number in found)} skipped, for want of")
    for reason, number in found:
        terminalreporter.write_line(f"{number:6} {reason}")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if os.environ.get("CI") != "true" or hasattr(session.config, "workerinput"):
        return
    if any(not EXPECTED.search(reason) for reason, _ in counted(_reports(session.config))):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED

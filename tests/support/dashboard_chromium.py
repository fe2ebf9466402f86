"""A real Chromium for pages of the dashboard: a plugin with `browser`, and `telephone`, a page."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any

import pytest

from support import chromium
from support.dashboard_checks import WIDTH


@pytest.fixture
def browser() -> Iterator[Any]:
    chromium.need()
    playwright = pytest.importorskip("playwright.sync_api")
    program = os.environ.get("FASTRPC_BROWSER") or next(filter(None, map(shutil.which, chromium.NAMES)))
    with playwright.sync_playwright() as started:
        found = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def telephone(browser: Any) -> Any:
    """A page as wide as a telephone, in which axe may be run."""
    return browser.new_context(bypass_csp=True, viewport={"width": WIDTH, "height": 740}).new_page()

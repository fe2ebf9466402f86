"""The dashboard in a real Chromium (`browser` of support.dashboard): what axe says about a page (`check`),
and a picture of each page that was checked, in the folder that FASTRPC_SCREENSHOTS names: CI keeps it."""

from __future__ import annotations

import os
import re
from functools import cache
from pathlib import Path
from typing import Any

from support import node_packages

PACKAGE = str(Path(__file__).parents[1] / "dashboard" / "package.json")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
WIDTH = 360


@cache
def _axe() -> str:
    packages = Path(node_packages.folder_with(PACKAGE, "axe"), "node_modules")
    return (packages / "axe-core" / "axe.min.js").read_text()


def keep_picture(page: Any) -> None:
    """Write a picture of the whole page, if a folder for pictures is named: its path says language, theme,
    test, which one of the test it is, and page."""
    folder = os.environ.get("FASTRPC_SCREENSHOTS")
    if not folder:
        return
    language, theme = (page.get_attribute("html", name) for name in ("lang", "data-theme"))
    test = re.sub(r".*/test_(\w+)\.py::test_(\w+).*", r"\1-\2", os.environ["PYTEST_CURRENT_TEST"])[:80]
    name = re.sub(r"\W+", "-", page.url.partition("/dashboard")[2]).strip("-")[:40] or "waiting"
    place = Path(folder, f"{language}-{theme}")
    place.mkdir(parents=True, exist_ok=True)
    number = len(list(place.glob(f"{test}-*"))) + 1
    page.screenshot(path=place / f"{test}-{number:02}-{name}.png", full_page=True)


def check(page: Any) -> None:
    """Fail for what axe finds, and for a page that is wider than a telephone."""
    keep_picture(page)
    page.evaluate(_axe())
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
    broken = [(each["id"], each["nodes"][0]["html"][:200]) for each in found["violations"]]
    assert broken == [], page.url
    assert len(found["passes"]) > 10
    assert page.evaluate("document.documentElement.scrollWidth") <= WIDTH


def choose(page: Any, language: str, theme: str) -> None:
    """Choose the language and the theme of the pages by their buttons, on a page in English whose theme is
    that of the browser."""
    if language == "ar":
        page.click("[lang=ar]")
        page.wait_for_selector("[dir=rtl]")
    for _ in range(2 if theme == "light" else 1):
        page.click("button[name=theme]")
        page.wait_for_load_state()
    assert page.get_attribute("html", "data-theme") == theme

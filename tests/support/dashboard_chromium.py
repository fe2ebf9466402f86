"""The dashboard in a real Chromium (`browser` of support.dashboard): what axe says about a page (`check`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support import node_packages

PACKAGE = str(Path(__file__).parents[1] / "dashboard" / "package.json")
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def check(page: Any) -> None:
    """Fail for what axe finds, and for a page that is wider than a telephone."""
    packages = Path(node_packages.folder_with(PACKAGE, "axe"), "node_modules")
    page.evaluate((packages / "axe-core" / "axe.min.js").read_text())
    found = page.evaluate("rules => axe.run(document, {runOnly: rules})", RULES)
    broken = [(each["id"], each["nodes"][0]["html"][:200]) for each in found["violations"]]
    assert broken == [], page.url
    assert len(found["passes"]) > 10
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


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

"""Each text of the dashboard has a translation in each language, and no translation is without a text."""

from __future__ import annotations

import ast
import json
import re
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules

import pytest

from fastrpc.dashboard import pages
from fastrpc.dashboard.access import ROLES
from fastrpc.dashboard.app import OTHER_SESSION, SESSION_OVER
from fastrpc.dashboard.language import LANGUAGES
from fastrpc.dashboard.pages import knowledge
from fastrpc.dashboard.view import NEEDED
from fastrpc.guard.approvals.store import STATES
from fastrpc.guard.policy.risks import LEVELS

FOLDER = Path(__file__).parents[2] / "fastrpc" / "dashboard"
MARKED = re.compile(r'(?:="[^"]*|block title %\}.*)\|\s*(?:visible|marked|code|prose)\b')
"""An attribute or a title with a filter that returns elements: they would be shown as text."""
IN_TEMPLATE = re.compile(r'_\("([^"]+)"')


def texts_of_code() -> set[str]:
    """Return what the pages say: titles, errors, what they look up in the visitor's language, and the values
    that they name in `WORDS`."""
    found: set[str] = set()
    for module in iter_modules(pages.__path__, f"{pages.__name__}."):
        found |= {*getattr(import_module(module.name), "WORDS", ())}
    for path in FOLDER.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = [*node.args[:1], *(each.value for each in node.keywords if each.arg == "title")]
            if name in ("text", "say", "PageError", "Page"):
                found |= {each.value for each in given if isinstance(each, ast.Constant) and each.value}
    return found


def texts() -> set[str]:
    """Return every English text of the pages."""
    found = {
        text for path in (FOLDER / "templates").iterdir() for text in IN_TEMPLATE.findall(path.read_text())
    }
    found |= texts_of_code() | {*ROLES, *STATES, *LEVELS, *NEEDED.values()}
    found.add("The form is longer than 1,048,576 bytes.")
    found.add("This link has been used, or its time is over. Make another one: fastrpc dashboard link")
    found |= {"Internal error; see the server's log", OTHER_SESSION, SESSION_OVER, knowledge.NOT_SERVED}
    for each in iter_modules(pages.__path__):
        found |= {*getattr(import_module(f"{pages.__name__}.{each.name}"), "WORDS", ())}
    return found


@pytest.mark.parametrize("code", sorted(set(LANGUAGES) - {"en"}))
def test_each_text_has_one_translation_and_each_translation_a_text(code: str) -> None:
    wanted, translated = texts(), LANGUAGES[code].texts
    files = [json.loads(path.read_text()) for path in (FOLDER / "texts" / code).iterdir()]
    assert len(translated) == sum(map(len, files)), "a text is in two files"
    assert len(wanted) > 50
    assert sorted(wanted - set(translated)) == []
    assert sorted(set(translated) - wanted) == []
    for english, other in translated.items():
        assert re.findall(r"\{\w+\}", english) == re.findall(r"\{\w+\}", other), english


def test_no_attribute_and_no_title_has_the_marks_of_a_filter() -> None:
    templates = sorted((FOLDER / "templates").iterdir())
    assert len(templates) > 30
    assert {path.name: found for path in templates if (found := MARKED.findall(path.read_text()))} == {}

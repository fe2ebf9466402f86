"""Texts are brought into Unicode's normal forms by `fastrpc.unicode_forms` alone: Python's own function takes
quadratic time for some."""

from __future__ import annotations

import re
from pathlib import Path

from conftest import REPOSITORY

OF_ONE_CHARACTER = {
    "fastrpc/guard/approvals/display.py",
    "fastrpc/unicode_forms.py",
    "tools/_page_text.py",
    "tools/knowledge/_outside.py",
}
"""The modules that call Python's own function: on one character, where no order of marks matters."""


def test_texts_are_brought_into_a_normal_form_by_no_other_function() -> None:
    found = set()
    for folder in ("fastrpc", "tools"):
        for path in Path(REPOSITORY, folder).rglob("*.py"):
            if re.search(r"(?<!def )\bnormalize\(", path.read_text(encoding="utf-8")):
                found.add(path.relative_to(REPOSITORY).as_posix())
    assert found == OF_ONE_CHARACTER

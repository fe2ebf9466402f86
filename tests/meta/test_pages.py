"""Tables of the pages are tables where they are rendered: of whole lines, and ended by an empty line."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parent.parent.parent
SEPARATOR = re.compile(r"\|(?: ?:?-{3,}:? ?\|)+")
PAGES = sorted([*REPOSITORY.glob("*.md"), *REPOSITORY.glob("docs/*.md"), *REPOSITORY.glob("benchmarks/*.md")])


def faults_of(page: str) -> list[str]:
    """Return the lines at which a table is not one to a renderer (GFM 4.10)."""
    faults, is_code = [], False
    for number, (line, following) in enumerate(itertools.pairwise([*page.splitlines(), ""]), 1):
        is_code ^= line.startswith("```")
        is_joined = SEPARATOR.search(line) is not None and SEPARATOR.fullmatch(line) is None
        is_last = line.startswith("|") and not following.startswith(("|", "<!-- "))
        if not is_code and (is_joined or (is_last and following.strip())):
            faults.append(f"{number}: {line[:80]}")
    return faults


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_each_table_is_made_of_lines_and_ends_with_an_empty_one(page: Path) -> None:
    assert faults_of(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize(
    ("page", "line"),
    [
        ("| a | b | |---|---| | c | d |", 1),
        ("| a | b |\n|---|---|\n| c | d |\n@\n\ntext", 3),
        ("| a |\n|---|\n| c |\ntext", 3),
    ],
)
def test_a_table_that_is_none_is_found(page: str, line: int) -> None:
    assert [fault.split(":")[0] for fault in faults_of(page)] == [str(line)]

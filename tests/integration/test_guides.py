"""The quickstart and the guides do what they print, as they print it, and are short."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.printed_pages import BLOCK, commands_in, mismatches, pattern_of, script_of
from support.skips import not_installed

pytestmark = pytest.mark.long

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
PAGES = [DOCS / "quickstart.md", *sorted((DOCS / "guides").glob("*.md"))]
MOST_LINES = 120
NOT_RUN = ("json", "sh", "caddyfile")
"""What a client reads, what has been run before the tests, what test_reverse_proxies.py runs."""


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_guide_prints_is_what_happens(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    if "\n$ curl " in text and shutil.which("curl") is None:
        pytest.skip(not_installed("curl"))
    assert not "\n".join(mismatches(text, tmp_path))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_guide_is_short_and_every_block_of_it_is_run(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert text.count("\n") <= MOST_LINES
    script, commands = script_of(text)
    assert len(re.findall("^```", text, re.MULTILINE)) == 2 * len(BLOCK.findall(text))
    for _, language, block in BLOCK.findall(text):
        if language == "console":
            assert block.startswith("$ ")
            assert set(commands_in(block)) <= set(commands)
        elif language not in NOT_RUN:
            assert block in script, f"{page.name} does not say which file this is:\n{block}"


def test_the_commands_that_are_not_run_are_those_of_the_readme() -> None:
    (block,) = re.findall(
        r"^```sh\n(.*?)^```", (DOCS / "quickstart.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert block == 'make run\nexport PATH="$PWD/.venv/bin:$PATH"\n'
    assert "\n$ make run " in (DOCS.parent / "README.md").read_text(encoding="utf-8")


def test_the_proxys_configuration_is_the_one_that_is_run() -> None:
    """docs/http.md has it, from where test_reverse_proxies.py takes it."""
    guide = (DOCS / "guides" / "http-behind-a-proxy.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```caddyfile\n.*?^```", guide, re.DOTALL | re.MULTILINE)
    assert block in (DOCS / "http.md").read_text(encoding="utf-8")


# ----------------------------------------------------------------------- what the pages are run with


def test_a_page_that_prints_something_else_is_seen(tmp_path: Path) -> None:
    page = "One.\n\n```console\n$ echo one\none\n$ echo two \\\n    three\ntwo\n```\n"
    assert mismatches(page, tmp_path) == ["$ echo two \\\n    three\ntwo three\n"]


def test_files_are_written_and_lines_inserted_before_the_commands_below_them(tmp_path: Path) -> None:
    page = (
        "`a/b.py`:\n\n```python\none = 1\nif one:\n    print(one)\n```\n"
        "Write this into `a/b.py`, above its last two lines:\n\n```py\none += 1\n```\n"
        "It prints:\n\n```console\n$ python a/b.py\n2\n```\n"
    )
    assert mismatches(page, tmp_path) == []


@pytest.mark.parametrize(
    ("expected", "printed", "fits"),
    [
        ("a … c\n", "a b c\n", True),
        ("a … c\n", "a\nc\n", False),
        ("a\n…\n", "a\nb\nc\n", True),
        ("a\n…\n", "a\n", True),
        ("", "", True),
        ("", "a\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_dots_replace_what_differs(expected: str, printed: str, fits: bool) -> None:
    assert bool(re.fullmatch(pattern_of(expected), printed)) == fits

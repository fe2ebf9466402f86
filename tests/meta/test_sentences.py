"""Each sentence about how a tool behaves is in the docstring of the test that proves it.

Such a sentence begins on a line of its own with the tool that it is about, or with `Every tool`, `State` or
`Configuration`: "Bash: a signal that ends a command is named." Which tools there are is published
(`fastrpc.tools.agent._contract`). ``python tests/meta/test_sentences.py`` prints all of them.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from fastrpc.tools.agent._contract import CONTRACT

TESTS = Path(__file__).resolve().parent.parent
LEAST = {
    "Every tool": 32,
    "State": 18,
    "Configuration": 17,
    "Bash": 15,
    "BackgroundBash": 3,
    "ReadBgOutput": 5,
    "ListBgTasks": 2,
    "KillBgTask": 3,
    "ReadImage": 35,
    "ReadDocs": 35,
    "WebSearch": 35,
    "TaskManager": 18,
    "PlanMode": 16,
    "AskUserQuestion": 26,
    "InvokeSkill": 21,
    "SetCallback": 26,
}
"""How many sentences there are of each at least: with a test that goes its sentences go, and that shows."""
BEGINNING = re.compile(rf"({'|'.join(LEAST)}): ")


class Sentence(NamedTuple):
    about: str
    text: str
    place: str
    """The file below `tests/` and the function."""


def sentences_of(docstring: str) -> Iterator[tuple[str, str]]:
    """What each sentence of a docstring is about, and its text, which goes on to the next one or to a gap."""
    found: list[list[str]] = []
    is_inside = False
    for line in docstring.splitlines():
        if BEGINNING.match(line.strip()):
            found.append([line.strip()])
            is_inside = True
        elif not line.strip():
            is_inside = False
        elif is_inside:
            found[-1].append(line.strip())
    for lines in found:
        about, _, text = " ".join(lines).partition(": ")
        yield about, text


def sentences_in(source: str, file: str) -> Iterator[Sentence]:
    """The sentences in the docstrings of a file's functions, whatever these are."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for about, text in sentences_of(ast.get_docstring(node) or ""):
                yield Sentence(about, text, f"{file}::{node.name}")


def all_sentences() -> list[Sentence]:
    found: list[Sentence] = []
    for path in sorted(TESTS.rglob("*.py")):
        if "node_modules" not in path.parts and path != Path(__file__):
            source = path.read_text(encoding="utf-8")
            if BEGINNING.search(source):  # few have any, and parsing takes long
                found += sentences_in(source, path.relative_to(TESTS).as_posix())
    return found


@pytest.fixture(scope="module")
def everything() -> list[Sentence]:
    return all_sentences()


def test_each_published_tool_has_sentences_and_no_other_has() -> None:
    assert set(LEAST) == {"Every tool", "State", "Configuration", *CONTRACT}


@pytest.mark.parametrize("about", LEAST)
def test_no_sentence_has_gone(about: str, everything: list[Sentence]) -> None:
    assert sum(sentence.about == about for sentence in everything) >= LEAST[about]


def test_each_sentence_is_in_a_test(everything: list[Sentence]) -> None:
    for sentence in everything:
        file, _, name = sentence.place.partition("::")
        assert name.startswith("test_"), f"{sentence.place} is no test, yet states: {sentence.text}"
        assert file.rpartition("/")[2].startswith("test_"), f"pytest does not collect {sentence.place}"


def test_each_sentence_is_whole_and_written_once(everything: list[Sentence]) -> None:
    first: dict[tuple[str, str], str] = {}
    for about, text, place in everything:
        assert re.search(r"[.?]`?$", text), f"{place}: where does this end? {text}"
        assert len(text.split()) >= 4, f"{place}: nobody can read from this what is promised: {text}"
        before = first.setdefault((about, text), place)
        assert before == place, f"{place} states what {before} states: {text}"


def test_sentences_are_read_from_docstrings() -> None:
    source = '''
def test_it():
    """What it is about.

    Bash: one that goes on
    in a second line. It has two.
    ReadDocs: another.

    No more: this is none.
    """

def helper():
    "State: one at a place where none belongs."
'''
    assert list(sentences_in(source, "a.py")) == [
        Sentence("Bash", "one that goes on in a second line. It has two.", "a.py::test_it"),
        Sentence("ReadDocs", "another.", "a.py::test_it"),
        Sentence("State", "one at a place where none belongs.", "a.py::helper"),
    ]


if __name__ == "__main__":
    everything_there_is = all_sentences()
    for about in LEAST:
        print(f"\n{about}")
        for sentence in (each for each in everything_there_is if each.about == about):
            print(f"  {sentence.text}\n      {sentence.place}")

"""Each sentence that states how a tool behaves has its test: the list in tests/tools/sentences.md is held
against the tests that there are."""

from __future__ import annotations

import ast
import os
import re

import pytest
from fastrpc.tools.agent._contract import CONTRACT

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LIST = os.path.join(REPOSITORY, "tests", "tools", "sentences.md")
GENERAL = ("What holds for every tool", "State", "Configuration")
ROW = re.compile(r"^\| (.+?) \| ([\w/.-]+)::(\w+) \|$")


def sections() -> dict[str, list[tuple[str, str, str]]]:
    """The rows of each section: sentence, file, name of the test."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    title = ""
    with open(LIST, encoding="utf-8") as file:
        for number, line in enumerate(file.read().splitlines(), 1):
            if line.startswith("## "):
                title = line[3:].strip("` ")
                assert title not in found, f"line {number}: {title} stands there twice"
                found[title] = []
            elif line.startswith("|") and line not in ("| sentence | test |", "|---|---|"):
                row = ROW.match(line)
                assert row, f"line {number} is no row: {line}"
                found[title].append((row[1], row[2], row[3]))
    return found


def names_in(path: str) -> set[str]:
    with open(os.path.join(REPOSITORY, path), encoding="utf-8") as file:
        text = file.read()
    if path.startswith("benchmarks/"):  # a bar of the guard: the name of its workload
        return set(re.findall(r"\bW\d+\b", text))
    nodes = ast.walk(ast.parse(text))
    return {node.name for node in nodes if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))}


def test_each_tool_has_its_section() -> None:
    assert set(sections()) == {*GENERAL, *CONTRACT}


@pytest.mark.parametrize("title", [*GENERAL, *CONTRACT])
def test_each_sentence_names_a_test_that_is_there(title: str) -> None:
    rows = sections()[title]
    assert len(rows) >= 2
    sentences = [sentence for sentence, _, _ in rows]
    assert len(set(sentences)) == len(sentences), f"{title}: a sentence stands there twice"
    for sentence, path, name in rows:
        assert name.startswith("test_") or path.startswith("benchmarks/"), f"{sentence}: {name} is no test"
        assert os.path.isfile(os.path.join(REPOSITORY, path)), f"{sentence}: there is no {path}"
        assert name in names_in(path), f"{sentence}: {path} has no {name}"

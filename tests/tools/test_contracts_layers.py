"""The two engines of the contracts toolset know nothing of each other: what both need is below them."""

from __future__ import annotations

import ast
import os
import re

import fastrpc.tools.contracts
import pytest

FOLDER = os.path.dirname(fastrpc.tools.contracts.__file__)
MAY_IMPORT = {
    "_project_files": {"_project_files"},
    "_chain": {"_chain", "_project_files"},
    "_embedded": {"_embedded", "_chain", "_project_files"},
    "_bridge": {"_bridge", "_chain", "_project_files"},
}
"""The folders that the modules of each may import; the modules beside them, too, but none that chooses an
engine."""
ABOVE = {"_calls", "_engines", "_engine_command", "_engine_endpoint", "_resources", "_selftest", "verbs"}


def imported(text: str) -> set[str]:
    """The folders and modules of the toolset that a module in one of its folders imports from above it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.level == 2:
            found |= {node.module.split(".")[0]} if node.module else {each.name for each in node.names}
    return found


def modules(folder: str) -> list[str]:
    return sorted(name for name in os.listdir(os.path.join(FOLDER, folder)) if name.endswith(".py"))


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_each_folder_imports_what_is_below_it(folder: str) -> None:
    for name in modules(folder):
        with open(os.path.join(FOLDER, folder, name), encoding="utf-8") as file:
            text = file.read()
        others = imported(text) & (set(MAY_IMPORT) | ABOVE)
        assert others <= MAY_IMPORT[folder], f"{folder}/{name} imports {others - MAY_IMPORT[folder]}"
        assert not re.search(r"(from|import) fastrpc\.tools", text), f"{folder}/{name}: imports are relative"


def test_every_folder_of_modules_is_named() -> None:
    folders = {each.name for each in os.scandir(FOLDER) if os.path.exists(os.path.join(each, "__init__.py"))}
    assert folders == set(MAY_IMPORT)


def test_that_sees_what_it_forbids() -> None:
    text = "from .._embedded import abi\nfrom .._chain.rpc import Node\nfrom .. import _engines, _values\n"
    assert imported(text) == {"_embedded", "_chain", "_engines", "_values"}

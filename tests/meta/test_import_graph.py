"""No two modules of fastrpc tie each other: not at import, not lazily, not for types.

What two modules need of one another is a leaf below both, or an interface (`fastrpc/engine/ports.py`).
"""

from __future__ import annotations

import ast
import re

from test_house import FRAMEWORK, module_of, text_of

MODULES = {module_of(path) for path in FRAMEWORK}
BY_NAME = MODULES - {"fastrpc", "fastrpc.testing"}  # the one is a logger, too, and a server's name the other


def imports_of(path: str) -> set[str]:
    """The modules of fastrpc that a file names in any import, wherever it stands, or to import by name."""
    text = text_of(path)
    if path.endswith((".pyx", ".pxd")):
        named = re.findall(r"^\s*from (fastrpc[\w.]*) c?import (\w+)", text, re.MULTILINE)
        return {_module(f"{package}.{name}") for package, name in named}
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {_module(alias.name) for alias in node.names if alias.name.split(".")[0] == "fastrpc"}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "fastrpc":
            found |= {_module(f"{node.module}.{alias.name}") for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in BY_NAME:
            found.add(node.value)
    return found


def _module(name: str) -> str:
    """The module that a dotted name is, or is a member of."""
    while name not in MODULES:
        name = name.rpartition(".")[0]
    return name


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The groups of modules each of which can be reached from each other one (Tarjan, 1972)."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(module: str) -> None:
        order[module] = low[module] = len(order)
        stack.append(module)
        for other in graph[module]:
            if other not in order:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], order[other])
        if low[module] == order[module]:
            at = stack.index(module)
            group, stack[at:] = stack[at:], []
            if len(group) > 1:
                found.append(sorted(group))

    for module in graph:
        if module not in order:
            visit(module)
    return found


def test_no_modules_import_each_other() -> None:
    graph: dict[str, set[str]] = {module: set() for module in MODULES}
    for path in FRAMEWORK:
        module = module_of(path)
        graph[module] |= imports_of(path) - {module}
    assert sum(map(len, graph.values())) > 300  # it has looked
    assert circles(graph) == []


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert circles(graph) == [["b", "c"]]
    assert circles({"a": {"b"}, "b": {"a", "c"}, "c": {"a"}}) == [["a", "b", "c"]]

"""No two modules of fastrpc, and none of its tools, tie each other: not at import, not lazily, not for types.

What two modules need of one another is a leaf below both, or an interface (`fastrpc/engine/ports.py`).
"""

from __future__ import annotations

import ast

from test_house import FRAMEWORK, LAYERS, imports_of, module_of, sources, text_of


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


def graph_of_the_tools() -> dict[str, set[str]]:
    """The modules below `tools/`, which is the package fastrpc.tools, and what each imports of the others."""
    files = {f"fastrpc.{module_of(path)}": path for path in sources("tools")}
    return {
        module: imports_between(text_of(path), module, path.endswith("__init__.py"), set(files)) - {module}
        for module, path in files.items()
    }


def imports_between(text: str, module: str, is_package: bool, known: set[str]) -> set[str]:
    """The known modules that a source imports. A package is imported with each of its modules, of course: it
    counts where a name of its own is taken from it."""
    package = module.split(".") if is_package else module.split(".")[:-1]
    found = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else []
            place = ".".join([*above, *filter(None, [node.module])])
            names = {f"{place}.{alias.name}" for alias in node.names}
            found |= {name if name in known else place for name in names}
    return found & known


def test_no_modules_import_each_other() -> None:
    graph: dict[str, set[str]] = {module: set() for module in LAYERS}
    for path in FRAMEWORK:
        module = module_of(path)
        graph[module] |= imports_of(path) - {module}
    assert sum(map(len, graph.values())) > 300  # it has looked
    assert circles(graph) == []


def test_no_modules_of_the_tools_import_each_other() -> None:
    graph = graph_of_the_tools()
    assert sum(map(len, graph.values())) > 200  # it has looked
    assert circles(graph) == []


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert circles(graph) == [["b", "c"]]
    assert circles({"a": {"b"}, "b": {"a", "c"}, "c": {"a"}}) == [["a", "b", "c"]]


def test_each_way_to_import_a_neighbour_is_seen() -> None:
    known = {"f.tools.x", "f.tools.x._a", "f.tools.x._b", "f.tools._c"}
    for text, seen in {
        "from . import _a": {"f.tools.x._a"},
        "from ._a import name": {"f.tools.x._a"},
        "from . import name": {"f.tools.x"},
        "from .. import _c": {"f.tools._c"},
        "def lazily():\n    from f.tools.x import _a, _b": {"f.tools.x._a", "f.tools.x._b"},
        "import f.tools.x._a": {"f.tools.x._a"},
        "import os\nfrom f import Server": set(),
    }.items():
        assert imports_between(text, "f.tools.x._d", False, known) == seen, text
    assert imports_between("from ._a import name", "f.tools.x", True, known) == {"f.tools.x._a"}

"""No two modules of fastrpc tie each other: not at import, not lazily, not for types.

What two modules need of one another is a leaf below both, or an interface (`fastrpc/engine/ports.py`).
"""

from __future__ import annotations

from test_house import FRAMEWORK, LAYERS, imports_of, module_of


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
    graph: dict[str, set[str]] = {module: set() for module in LAYERS}
    for path in FRAMEWORK:
        module = module_of(path)
        graph[module] |= imports_of(path) - {module}
    assert sum(map(len, graph.values())) > 300  # it has looked
    assert circles(graph) == []


def test_a_circle_is_found() -> None:
    graph = {"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set(), "e": {"a"}}
    assert circles(graph) == [["b", "c"]]
    assert circles({"a": {"b"}, "b": {"a", "c"}, "c": {"a"}}) == [["a", "b", "c"]]

"""How many functions a class may have: a class that does more than one thing is several."""

from __future__ import annotations

import ast

from meta.test_house import sources, text_of

MOST = 30
MOST_OF_THE_ENGINE = 20

EXCEPTIONS = {
    # public: each function is one that users call, or an option of a decorator
    "fastrpc/client/asynchronous.py AsyncClient": 50,
    "fastrpc/server.py Server": 51,
    # compat: classes with the functions of the originals'
    "fastrpc/compat/client/fastmcp_client.py Client": 44,
    "fastrpc/compat/client/sessions.py ClientSession": 39,
    "fastrpc/compat/context.py Context": 54,
    "fastrpc/compat/lowlevel/server.py Server": 41,
}
"""Classes that have more, with how many: a number may only fall, and a class that no longer has more goes."""


def functions_of_classes(path: str, text: str) -> dict[str, int]:
    """The classes of a Python module, and how many functions each defines, properties included; without those
    that are only declared for type checkers, such as overloads."""
    classes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ClassDef)]
    return {
        f"{path} {each.name}": sum(
            isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            and "overload" not in map(ast.unparse, node.decorator_list)
            for node in each.body
        )
        for each in classes
    }


def too_large(counts: dict[str, int]) -> dict[str, int]:
    """The classes with more functions than a class may have, of the engine or elsewhere."""
    return {
        name: count
        for name, count in counts.items()
        if count > (MOST_OF_THE_ENGINE if name.startswith("fastrpc/engine/") else MOST)
    }


def test_no_class_has_more_functions_than_it_may() -> None:
    counts: dict[str, int] = {}
    for path in sources("fastrpc"):
        counts |= functions_of_classes(path, text_of(path))
    assert len(counts) > 500  # it has looked
    found = too_large(counts)
    assert {name: count for name, count in found.items() if count > EXCEPTIONS.get(name, 0)} == {}
    assert sorted(EXCEPTIONS.keys() - found.keys()) == [], "these have few enough now: remove their lines"


def test_the_check_counts_properties_and_coroutines_and_no_overloads() -> None:
    text = "class A:\n if 0:\n  def a(self): ...\n @property\n def b(self): ...\n async def c(self): ..."
    assert functions_of_classes("a.py", text) == {"a.py A": 2}
    assert too_large({"fastrpc/engine/a.py A": 21, "fastrpc/a.py B": 30, "fastrpc/a.py C": 31}) == {
        "fastrpc/engine/a.py A": 21,
        "fastrpc/a.py C": 31,
    }

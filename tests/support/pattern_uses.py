"""Every regular expression in the sources: where it is, how it is applied, and the expression itself."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
FUNCTIONS = ("compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer")
APPLIED = re.compile(rf"(\w+)\.({'|'.join(FUNCTIONS[1:])})\b")
SEARCHING = ("search", "sub", "subn", "split", "findall", "finditer")


class Use:
    """One expression. `key` names it: the file, and the name that it has there, or the function that it
    is in and how many stood there before. `pattern` is None where it is made when the program runs."""

    def __init__(self, key: str, pattern: re.Pattern[Any] | None, methods: frozenset[str]) -> None:
        self.key = key
        self.pattern = pattern
        self.methods = methods

    def __repr__(self) -> str:
        return f"{self.key} {self.pattern.pattern if self.pattern else None!r} {sorted(self.methods)}"


def sources() -> list[Path]:
    return sorted(each for folder in ("fastrpc", "tools") for each in (ROOT / folder).rglob("*.py"))


def uses() -> Iterator[Use]:
    texts = {path: path.read_text() for path in sources()}
    everywhere = methods_by_name("\n".join(texts.values()))
    for path, text in texts.items():
        if re.search(r"\bre\b", text):
            yield from uses_in(path, text, everywhere)


def methods_by_name(text: str) -> dict[str, set[str]]:
    """Return which methods of an expression are called on each name."""
    methods: dict[str, set[str]] = {}
    for name, method in APPLIED.findall(text):
        methods.setdefault(name, set()).add(method)
    return methods


def uses_in(path: Path, text: str, everywhere: dict[str, set[str]]) -> Iterator[Use]:
    name = str(path.relative_to(ROOT))
    here = methods_by_name(text)
    counts: dict[str, int] = {}
    tree = ast.parse(text)
    applied = {  # where it is compiled and applied at once
        node.value: node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call) and node.attr in FUNCTIONS
    }
    for place, call, target in calls(tree):
        method = applied.get(call) or call.func.attr  # type: ignore[attr-defined]
        where = target or place
        counts[where] = counts.get(where, 0) + 1
        key = f"{name}:{where}" + (f"#{counts[where]}" if counts[where] > 1 else "")
        pattern = pattern_of(name, call)
        if method != "compile":
            methods = frozenset({method})
        elif target:
            found = (here if target.startswith("_") else everywhere).get(target, ())
            is_whole = pattern is not None and str(pattern.pattern).endswith("\\Z")  # handed to what matches
            methods = frozenset(found) or frozenset(("match",) if is_whole else SEARCHING)
        else:
            methods = frozenset(SEARCHING)
        yield Use(key, pattern, methods)


def calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call, str]]:
    """Each call of `re`, with the function that it is in and the name of the module that it is given."""
    for top in tree.body:
        target = ""
        if isinstance(top, ast.Assign) and isinstance(top.targets[0], ast.Name):
            target = top.targets[0].id
        elif isinstance(top, ast.AnnAssign) and isinstance(top.target, ast.Name):
            target = top.target.id
        yield from nested(top, "", target)


def nested(node: ast.AST, place: str, target: str) -> Iterator[tuple[str, ast.Call, str]]:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        place = f"{place}.{node.name}" if place else node.name
        target = ""
    if isinstance(node, ast.Call) and is_re(node.func):
        yield place, node, target
    for child in ast.iter_child_nodes(node):
        yield from nested(child, place, target)


def is_re(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and isinstance(function.value, ast.Name)
        and function.value.id == "re"
        and function.attr in FUNCTIONS
    )


def pattern_of(name: str, call: ast.Call) -> re.Pattern[Any] | None:
    """Return the expression of a call, by the names of its module; None if it is not known before it runs."""
    module = importlib.import_module(
        ("fastrpc." if name.startswith("tools/") else "")
        + name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    )
    flags = next((each.value for each in call.keywords if each.arg == "flags"), None)
    method = call.func.attr if isinstance(call.func, ast.Attribute) else ""
    at = {"compile": 1, "match": 2, "search": 2, "fullmatch": 2, "findall": 2, "finditer": 2}.get(method, 9)
    if flags is None and len(call.args) > at:
        flags = call.args[at]
    try:
        text = evaluated(call.args[0], module)
        return re.compile(text, evaluated(flags, module) if flags is not None else 0)
    except NameError:
        return None


def evaluated(node: ast.expr, module: Any) -> Any:
    code = compile(ast.Expression(node), "pattern", "eval")
    return eval(code, vars(module), {"re": re})

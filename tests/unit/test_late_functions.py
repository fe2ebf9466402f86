"""The functions of features that are imported by their first call: each of them exists."""

from __future__ import annotations

import importlib
import inspect
from typing import Any

from fastrpc import methods


def late_functions() -> dict[str, tuple[str, str]]:
    """Return the module and the name of each such function, by where it is used."""
    used = {name: value for name, value in vars(methods).items() if callable(value)}
    for method, found in methods.METHODS.items():
        used[method] = found.serve
        if found.entries is not None:
            used[f"{method} (entries)"] = found.entries
    variables = {
        where: inspect.getclosurevars(each).nonlocals for where, each in used.items() if is_late(each)
    }
    return {where: (found["home"], found["name"]) for where, found in variables.items()}


def is_late(function: Any) -> bool:
    return getattr(function, "__qualname__", "") == "_later.<locals>.call"


def test_each_function_that_is_imported_by_its_first_call_exists() -> None:
    found = late_functions()
    assert len(found) > 20
    for where, (home, name) in found.items():
        assert callable(getattr(importlib.import_module(home), name, None)), f"{where}: {home}.{name}"

"""What is read of docstrings, against griffe, with which FastMCP reads them.

The texts are docstrings of the standard library and of packages that are installed, and lines of docstrings
in any order: headings, entries, fences, at any depth.
"""

from __future__ import annotations

import ast
import functools
import inspect
import logging
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastrpc.compat.functions import docstrings
from fastrpc.compat.functions.docstrings import read_docstring

if sys.version_info < (3, 11):
    pytest.skip("griffelib is of Python 3.11", allow_module_level=True)
griffe = pytest.importorskip("griffe", reason="griffe, which FastMCP uses: pip install griffelib")
logging.getLogger("griffe").setLevel(logging.CRITICAL)

VERSIONS = [(3, 4), (4, 1), (4, 2)]
PACKAGES = ["_pytest", "argparse", "asyncio", "email", "hypothesis", "logging", "mcp", "pydantic"]
MOST = 500
LINES = st.sampled_from(
    [
        "",
        "Text goes on",
        "Args:",
        "Parameters:",
        "Keyword Args:",
        "Returns:",
        "Raises:",
        "Example:",
        "Rules:",
        "Note: with a title",
        "no heading: this",
        "name: what it is",
        "name (int, optional): what it is",
        "  deeper",
        "```",
        "Parameters",
        "Returns",
        "Notes",
        "name : int",
        "one, two : int",
        "----",
        ":param name: what it is",
        ":param int name: what it is",
        ":type name: int",
        ":return: what it is",
        ":raises ValueError: when",
    ]
)
TEXTS = st.lists(st.tuples(st.sampled_from([0, 0, 2, 4, 6, 8]), LINES), max_size=14).map(
    lambda lines: "\n".join(" " * depth + line if line else "" for depth, line in lines)
)


@functools.lru_cache(maxsize=64)
def sections_of(text: str, notation: Any) -> list[Any]:
    """What griffe makes of a text: the same for all versions, and most of the time that this file takes."""
    return griffe.Docstring(text, lineno=1, parser=notation).parse()


def found_by_griffe(text: str, version: tuple[int, int]) -> tuple[str, dict[str, str]]:
    """Return what FastMCP of this version takes from a docstring: the description, and the parameters'."""
    clean = "\n".join(line.rstrip() for line in inspect.cleandoc(text).split("\n")).strip()
    for notation in ("google", "numpy", "sphinx"):
        description = ""
        parameters: dict[str, str] = {}
        is_structured = False
        for section in sections_of(clean, notation):
            kind = section.kind.value
            if kind == "text":
                description = description or section.value
                continue
            if kind == "parameters":
                parameters.update({each.name: each.description for each in section.value})
            if kind != "admonition" or version < (4, 2) or section.value.kind in docstrings.ADMONITIONS:
                is_structured = True
        if parameters or (is_structured and version >= (4, 1)):
            return description, parameters
    return clean, {}


def check(text: str, version: tuple[int, int]) -> None:
    with mock.patch.object(docstrings, "installed_release", return_value=version):
        description, parameters = read_docstring(text)
    expected, described = found_by_griffe(text, version)
    assert (description or "").strip() == expected.strip()
    assert parameters == described


def docstrings_of(package: str) -> Iterator[str]:
    spec = find_spec(package)
    assert spec is not None
    places: list[Any] = list(spec.submodule_search_locations or ())
    paths = [path for place in places for path in sorted(Path(place).rglob("*.py"))]
    for path in paths or [Path(spec.origin or "")]:
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                text = ast.get_docstring(node, clean=False)
                if text:
                    yield text


@pytest.mark.long
@pytest.mark.parametrize("package", PACKAGES)
def test_docstrings_of_packages_are_read_as_griffe_reads_them(package: str) -> None:
    texts = list(dict.fromkeys(docstrings_of(package)))[:MOST]
    assert texts
    for text in texts:
        for version in VERSIONS:
            check(text, version)


@settings(max_examples=500)
@given(TEXTS, st.sampled_from(VERSIONS))
def test_lines_in_any_order_are_read_as_griffe_reads_them(text: str, version: tuple[int, int]) -> None:
    check(text, version)

"""Public modules and classes that have been renamed: their former names give the same one, and a warning."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from fastrpc.former_names import FORMER_NAMES

FORMER_MEMBERS = [
    ("fastrpc.client_requests", "Answer", "ElicitResult"),
    ("fastrpc.client_requests", "Question", "InputRequest"),
    ("fastrpc.egress_proxy", "CheckingProxy", "EgressProxy"),
]
"""Classes of public modules: module, former name, name."""


@pytest.fixture(autouse=True)
def _forget():
    """What has been imported by a former name is forgotten: the next import of it warns again."""
    yield
    for name in FORMER_NAMES:
        sys.modules.pop(name, None)


@pytest.mark.parametrize(("former", "name"), FORMER_NAMES.items())
def test_a_module_is_found_by_its_former_name(former: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{former} is called {name} now") as warned:
        module = importlib.import_module(former)
    assert module is importlib.import_module(name)
    assert len(warned) == 1


@pytest.mark.parametrize(("module", "former", "name"), FORMER_MEMBERS)
def test_a_class_is_found_by_its_former_name(module: str, former: str, name: str) -> None:
    home = importlib.import_module(module)
    with pytest.warns(DeprecationWarning, match=f"{former} is called {name} now") as warned:
        found = getattr(home, former)
    assert found is getattr(home, name)
    assert [each.filename for each in warned] == [__file__]


@pytest.mark.parametrize("module", sorted({module for module, _, _ in FORMER_MEMBERS}))
def test_a_name_that_a_module_never_had_is_not_found(module: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing_like_it'"):
        _ = importlib.import_module(module).nothing_like_it


def test_the_warning_names_the_line_that_imports() -> None:
    with pytest.warns(DeprecationWarning, match=r"fastrpc\.types") as warned:
        from fastrpc.types import Image
    assert warned[0].filename == __file__
    from fastrpc import Image as public

    assert Image is public


def test_a_module_says_its_own_name_after_an_import_by_its_former_one() -> None:
    from fastrpc import content

    with pytest.warns(DeprecationWarning, match=r"fastrpc\.types"):
        importlib.import_module("fastrpc.types")
    assert content.__name__ == content.__spec__.name == "fastrpc.content"


def test_names_that_no_module_ever_had_are_not_found() -> None:
    with pytest.raises(ModuleNotFoundError, match=r"fastrpc\.nothing_like_it"):
        importlib.import_module("fastrpc.nothing_like_it")


def test_a_program_that_uses_no_former_name_does_not_load_them() -> None:
    code = "import sys, fastrpc; fastrpc.Server('x'); print('fastrpc.former_names' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30)
    assert done.stdout == "False\n", done.stderr

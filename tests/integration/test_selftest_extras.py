"""`fastrpc selftest` in an installation without extras: what waits for their packages is left out."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

# Simulates an environment in which these modules and distributions are not installed.
PROGRAM = """
import importlib.metadata, sys
hidden = {hidden!r}

class Hider:
    def find_spec(self, name, path=None, target=None):
        if name in hidden:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

whole = importlib.metadata.distribution

def distribution(name):
    if name in hidden:
        raise importlib.metadata.PackageNotFoundError(name)
    return whole(name)

sys.meta_path.insert(0, Hider())
importlib.metadata.distribution = distribution
from fastrpc.cli.selftest import main
sys.exit(main([]))
"""


def selftest(folder, *hidden: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PROGRAM.format(hidden=hidden)],
        cwd=folder,
        env={**os.environ, "HOME": str(folder), "XDG_STATE_HOME": str(folder)},
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )


@pytest.mark.parametrize(
    ("hidden", "extras"),
    [
        (("lxml",), "tools"),
        (("uvicorn",), "http"),
        (("rich", "textual"), "view"),
        (("rich", "textual", "tokenizers"), "local-embeddings,view"),
        (("lxml", "pypdf", "uvicorn", "httptools"), "contracts,documents,http,tools"),
    ],
)
def test_modules_that_wait_for_an_extra_are_counted_and_fail_nothing(tmp_path, hidden, extras):
    done = selftest(tmp_path, *hidden)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"modules: they need fastrpc-mcp[{extras}]\n" in done.stdout
    assert "FAIL" not in done.stdout


def test_no_module_of_the_contracts_toolset_waits_for_a_package(tmp_path):
    """Its tools are listed without them; a verb that needs one says so."""
    packages = ("eth-abi", "eth_abi", "eth-hash", "eth_hash", "jsonschema-rs", "jsonschema_rs", "vyper")
    done = selftest(tmp_path, *packages)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    assert "skip" not in done.stdout


def test_a_missing_module_fails_where_all_extras_are_installed(tmp_path):
    done = selftest(tmp_path, "h11")  # no extra names it, so no extra explains it
    assert done.returncode == 1
    assert "ModuleNotFoundError: No module named 'h11'" in done.stdout


def test_a_missing_module_of_our_own_fails_whatever_is_installed(tmp_path):
    done = selftest(tmp_path, "fastrpc.tools.agent._documents.writer", "lxml")
    assert done.returncode == 1
    assert "No module named 'fastrpc.tools.agent._documents.writer'" in done.stdout

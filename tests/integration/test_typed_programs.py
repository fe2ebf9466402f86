"""Type checkers find the mistakes in programs that use fastrpc, and nothing in those that have none.

The programs lie in ``tests/typed``. Each line that ends with ``# error`` is a mistake that mypy and pyright,
both strict, must report; no other line may be reported. ``assert_type`` fixes what they infer. The examples
have no mistakes. They are checked in a separate folder, as a user's files are, and for Python 3.10.

pyright needs Node and the package of ``tests/typed/package.json``; `npm install` is run once into a cache
folder. Without Node its tests skip on a user's machine, and fail in CI.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable

import pytest
from support.node_packages import folder_with

pytestmark = pytest.mark.long

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TYPED = os.path.join(REPOSITORY, "tests", "typed")
EXAMPLES = os.path.join(REPOSITORY, "examples")

Reports = dict[tuple[str, int], str]
"""What was reported, by file and line."""


def programs_of(folder: str) -> list[str]:
    return sorted(os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".py"))


def copied(folder: str, paths: Iterable[str]) -> str:
    for path in paths:
        shutil.copy(path, folder)
    return str(folder)


def mistakes_in(folder: str) -> set[tuple[str, int]]:
    """The lines that are marked."""
    found = set()
    for path in programs_of(folder):
        with open(path, encoding="utf-8") as file:
            marked = {number for number, line in enumerate(file, 1) if line.endswith("# error\n")}
        found |= {(os.path.basename(path), number) for number in marked}
    return found


def found_by_mypy(folder: str) -> Reports:
    cache = os.path.join(REPOSITORY, ".mypy_cache", "typed")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version", "3.10", "--cache-dir", cache]
    options = ["--config-file=", "--follow-imports=silent", "--no-error-summary"]
    names = [os.path.basename(path) for path in programs_of(folder)]
    environment = {**os.environ, "MYPYPATH": REPOSITORY}
    done = subprocess.run(
        [*command, *options, *names], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    reports: Reports = {}
    for line in done.stdout.splitlines():
        match = re.match(r"([^:]+):(\d+): error: (.*)", line)
        if match:
            reports[match[1], int(match[2])] = match[3]
    return reports


def found_by_pyright(folder: str) -> Reports:
    settings = {
        "extraPaths": [REPOSITORY],
        "pythonVersion": "3.10",
        "typeCheckingMode": "strict",
        "reportUnusedExpression": False,  # a wrong line need not do anything
        "reportUnusedCoroutine": False,
    }
    with open(os.path.join(folder, "pyrightconfig.json"), "w", encoding="utf-8") as file:
        json.dump(settings, file)
    pyright = os.path.join(pyright_folder(), "node_modules", "pyright", "index.js")
    done = subprocess.run(
        ["node", pyright, "--pythonpath", sys.executable, "--outputjson"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    return {
        (os.path.basename(report["file"]), report["range"]["start"]["line"] + 1): report["message"]
        for report in json.loads(done.stdout)["generalDiagnostics"]
        if report["severity"] == "error"
    }


def pyright_folder() -> str:
    """A folder with pyright's package."""
    return folder_with(os.path.join(TYPED, "package.json"), "pyright")


CHECKERS = [
    pytest.param(found_by_mypy, id="mypy"),
    pytest.param(found_by_pyright, id="pyright"),
]


@pytest.mark.timeout(700)
@pytest.mark.parametrize("checked", CHECKERS)
def test_each_mistake_is_found_and_nothing_else(checked: Callable[[str], Reports], tmp_path) -> None:
    folder = copied(tmp_path, programs_of(TYPED))
    mistakes = mistakes_in(folder)
    assert len(mistakes) > 100
    reports = checked(folder)
    assert sorted(mistakes - reports.keys()) == []
    assert {place: text for place, text in reports.items() if place not in mistakes} == {}


@pytest.mark.timeout(700)
def test_mypy_finds_nothing_in_the_examples(tmp_path) -> None:
    assert found_by_mypy(copied(tmp_path, programs_of(EXAMPLES))) == {}

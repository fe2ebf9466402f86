"""What building says where it cannot work, and that all who build agree on what for."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ON_WINDOWS = """
import runpy, sys
import setuptools.command.build_ext, Cython.Build
sys.platform = "win32"
runpy.run_path("setup.py")
"""


def text_of(path: str) -> str:
    with open(os.path.join(REPOSITORY, path), encoding="utf-8") as file:
        return file.read()


EDITABLE = """
import runpy, sys
sys.argv = ["setup.py", "--version"]
runpy.run_path("setup.py")
from setuptools.warnings import InformationOnly
InformationOnly.emit("Editable installation.", "Please be careful with folders")
InformationOnly.emit("Another thing.", "It is said.")
"""


def test_windows_gets_a_clear_message() -> None:
    built = subprocess.run(
        [sys.executable, "-c", ON_WINDOWS],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert built.returncode == 1
    assert "setup.py: fastrpc runs on Linux and macOS; on Windows, use it inside WSL" in built.stderr
    assert "Traceback" not in built.stderr


@pytest.mark.long
def test_the_first_command_of_a_checkout_prints_no_warning_of_setuptools() -> None:
    built = subprocess.run(
        [sys.executable, "-c", EDITABLE],
        env={name: value for name, value in os.environ.items() if name != "PYTHONWARNINGS"},
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=110,
        check=True,
    )
    assert "Another thing." in built.stderr
    assert "Editable installation" not in built.stderr


def test_the_same_pythons_are_named_everywhere() -> None:
    named = text_of("pyproject.toml")
    versions = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', named)
    assert versions
    assert f'requires-python = ">={versions[0]}"' in named
    build = " ".join(f"cp{version.replace('.', '')}-*" for version in versions)
    assert f'[tool.cibuildwheel]\nbuild = "{build}"' in named
    listed = ", ".join(f'"{version}"' for version in versions)
    assert f"VERSIONS = ({listed})" in text_of(".ci/wheels/pythons.py")
    assert f"python: [{listed}]" in text_of(".github/workflows/tests.yml")
    assert "--versions $versions" in text_of(".ci/run")  # those of pythons.py that the machine has
    for path in ("README.md", "docs/stability.md"):
        assert f"{versions[0]} to {versions[-1]}" in text_of(path), path
    # The release has one wheel of each for Linux and macOS, two processors, and Linux with two C libraries.
    assert f'wc -l)" = {6 * len(versions)}' in text_of(".github/workflows/release.yml")


@pytest.mark.timeout(320)
def test_the_links_of_pypis_page_lead_to_files_of_this_version(tmp_path) -> None:
    built = subprocess.run(
        [sys.executable, "setup.py", "--quiet", "egg_info", "--egg-base", tmp_path],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=300,  # where nothing is built yet, all is translated first
        check=False,
    )
    assert built.returncode == 0, built.stderr
    metadata = (tmp_path / "fastrpc_mcp.egg-info" / "PKG-INFO").read_text(encoding="utf-8")
    for label in ("Repository", "Documentation", "Changelog", "Issues"):
        assert f"\nProject-URL: {label}, https://" in metadata
    page = metadata.partition("\n\n")[2]
    project = text_of("pyproject.toml")
    repository = re.search(r'^Repository = "https://github\.com/(.+)"$', project, re.MULTILINE)[1]
    version = re.search(r'^version = "(.+)"$', project, re.MULTILINE)[1]
    roots = {
        "!": f"https://raw.githubusercontent.com/{repository}/v{version}/",
        "": f"https://github.com/{repository}/blob/v{version}/",
    }
    links = re.findall(r"(!?)\[[^]]*\]\(([^)]+)\)", page)
    ours = [
        (kind, target.removeprefix(roots[kind])) for kind, target in links if target.startswith(roots[kind])
    ]
    assert {kind for kind, _ in ours} == {"", "!"}
    for _, path in ours:
        assert os.path.exists(os.path.join(REPOSITORY, path)), path
    assert all(target.startswith("https://") for _, target in links)


def test_where_the_published_schemas_are_not_runs_of_tests_are_none_of_ci() -> None:
    """They are not in the repository, and a run of CI without them fails before its first test."""
    settings = text_of("pyproject.toml").partition("[tool.cibuildwheel]")[2].partition("\n[")[0]
    assert 'test-environment = { CI = "" }' in settings
    steps = {"tests.yml": ("make test-all", "make test-fast"), "release.yml": ("make check-wheels",)}
    for name, commands in steps.items():
        text = text_of(f".github/workflows/{name}")
        for command in commands:
            step = text.partition(f"- run: {command}")[2].partition("\n      - ")[0]
            assert re.search(r'\n        env:\n          CI: ""', step), f"{name}: {command}"


def test_ci_runs_the_readmes_two_commands_where_nothing_was_prepared() -> None:
    readme = text_of("README.md")
    bare = text_of(".ci/bare")
    assert "$ make run" in readme
    assert "$ make test" in readme
    assert "in_it make run" in bare
    assert "in_it make test-all\n" in bare
    assert "\ntest-all: test " in text_of("Makefile")
    assert "\n      - run: .ci/bare\n" in text_of(".github/workflows/tests.yml")
    run = text_of(".ci/run")
    assert ".ci/bare begin" in run
    assert ".ci/bare end\n" in run
    assert "\nmake test-skipped BEFORE=.cache/bare.json\n" in run


def test_no_two_files_of_tests_have_one_name() -> None:
    """`make test` collects all of them in one run, in which each name is a module's; CI in parts."""
    names = Counter(path.name for path in Path(REPOSITORY, "tests").rglob("test_*.py"))
    assert names
    assert [name for name, count in names.items() if count > 1] == []

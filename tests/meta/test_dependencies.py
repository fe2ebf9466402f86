"""What is installed with fastrpc has floors above known faults; what makes its wheels is pinned by hash."""

from __future__ import annotations

import os
import re
from typing import Any

import pytest

tomllib = pytest.importorskip("tomllib", reason="Python 3.11 brings it")
Requirement: Any = pytest.importorskip("packaging.requirements", reason="pip install packaging").Requirement
canonical: Any = pytest.importorskip("packaging.utils").canonicalize_name

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WHEELS = os.path.join(".ci", "wheels")

FAULTY = {
    "cryptography": ("46.0.6", "CVE-2026-39892: reads beyond buffers"),
    "ddgs": ("9.16.0", "takes the advertisements of an engine for results"),
    "fastapi": ("0.132.0", "takes no Starlette that is right"),
    "granian": ("2.4.0", "does not tell an application of its end"),
    "httpcore": ("1.0.8", "takes h11 0.15, CVE-2025-43859: chunks without their line ends"),
    "httptools": ("0.6.2", "takes folded headers and chunks without their line ends: smuggled requests"),
    "idna": ("3.14", "CVE-2026-45409: long names take quadratic time"),
    "lxml": ("6.0.4", "CVE-2026-41066: external entities of XML are read"),
    "msgspec": ("0.20.0", "describes sets without uniqueItems"),
    "orjson": ("3.11.5", "CVE-2025-67221: deep values overflow the stack"),
    "pillow": ("12.2.0", "image files write beyond buffers and take any memory"),
    "playwright": ("1.55.0", "CVE-2025-59288: browsers come by connections that nobody has checked"),
    "pyjwt": ("2.14.0", "CVE-2024-53861, CVE-2026-32597, CVE-2026-48523 and more, the last fixed in 2.15"),
    "pypdf": (
        "6.21.4",
        "CVE-2026-119208 and others, the last fixed in 7: files that take any time and memory",
    ),
    "pytest": ("9.0.2", "CVE-2025-71176: a folder that others may have made"),
    "setuptools": ("78.1.0", "CVE-2025-47273: writes outside of its folder"),
    "starlette": ("1.3.0", "CVE-2026-48710 and others: hosts and forms that are not checked"),
    "vyper": ("0.4.1", "CVE-2025-47285, CVE-2025-47774: concat and slice leave out what their arguments do"),
}
"""The newest version of each that must not be installed with fastrpc, and why: no floor may let it in."""


def text_of(*path: str) -> str:
    with open(os.path.join(REPOSITORY, *path), encoding="utf-8") as file:
        return file.read()


PROJECT = tomllib.loads(text_of("pyproject.toml"))


def requirements() -> list[Any]:
    project = PROJECT["project"]
    texts = [*project["dependencies"], *PROJECT["build-system"]["requires"]]
    texts += [text for extra in project["optional-dependencies"].values() for text in extra]
    return [found for found in map(Requirement, texts) if found.name != "fastrpc-mcp"]


@pytest.mark.parametrize("name", FAULTY)
def test_no_floor_lets_in_a_version_that_is_known_to_be_faulty(name: str) -> None:
    version, why = FAULTY[name]
    mine = [found for found in requirements() if canonical(found.name) == name]
    assert mine, f"{name} is required no more: take it out of the table"
    for found in mine:
        assert not found.specifier.contains(version), f"{found} lets in {name} {version}: {why}"


def test_every_dependency_has_a_floor() -> None:
    for found in requirements():
        assert any(each.operator in (">=", "==") for each in found.specifier), found


def test_pillow_has_one_floor_for_each_python() -> None:
    """Pillow 13 ends CVE-2026-112393 (saving TIFF writes beyond a buffer), but not for CPython 3.10."""
    floors = [floor for floor in requirements() if floor.name == "pillow"]
    for version in ("3.10", "3.11", "3.14"):
        for_it = [floor for floor in floors if floor.marker.evaluate({"python_version": version})]
        assert [floor.specifier.contains("12.3.0") for floor in for_it] == [version == "3.10"]


# --- what makes the wheels --------------------------------------------------------------------------------


def group(name: str) -> list[Any]:
    found = []
    for entry in PROJECT["dependency-groups"][name]:
        found += group(entry["include-group"]) if isinstance(entry, dict) else [Requirement(entry)]
    return found


def locked(name: str) -> dict[str, tuple[str, list[str]]]:
    """Return the packages of a file that `make lock` has written: version and hashes, by name."""
    text = re.sub(r"^#.*\n", "", text_of(WHEELS, f"{name}.txt"), flags=re.MULTILINE).replace("\\\n", " ")
    found = {}
    for line in filter(None, text.split("\n")):
        requirement, *hashes = re.split(r"\s+--hash=", line.strip())
        match = re.fullmatch(r"([a-z0-9-]+)==([0-9a-z.]+)(?: ; .*)?", requirement.strip())
        assert match, line
        found[match[1]] = match[2], hashes
    return found


@pytest.mark.parametrize("name", ["build", "wheels", "native"])
def test_what_makes_wheels_is_written_down_by_version_and_hash(name: str) -> None:
    """Change a group in pyproject.toml, then `make lock`."""
    packages = locked(name)
    for version, hashes in packages.values():
        assert hashes, version
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", each) for each in hashes)
    for wanted in group(name):
        version, _ = packages[canonical(wanted.name)]
        assert wanted.specifier.contains(version), f"{wanted}, but {version} in {name}.txt: make lock"


def test_one_wheel_is_made_by_the_same_packages_wherever_it_is_made() -> None:
    build, wheels = locked("build"), locked("wheels")
    assert build.items() <= wheels.items()
    needed = {canonical(Requirement(text).name) for text in PROJECT["build-system"]["requires"]}
    assert needed == set(build)


def test_nothing_that_makes_a_release_is_installed_without_its_hash() -> None:
    places = {"Makefile": text_of("Makefile").partition("\nlock:")[2]}
    places["release.yml"] = text_of(".github", "workflows", "release.yml")
    for place, text in places.items():
        for line in text.partition("\nclean:")[0].split("\n"):
            if re.search(r"\b(pip|uv pip) install\b|\bpipx? run\b|\buvx\b", line):
                assert "--require-hashes" in line, f"{place}: {line.strip()}"
    settings = PROJECT["tool"]["cibuildwheel"]
    assert "--no-isolation" in settings["build-frontend"]["args"]  # else `build` resolves what it needs
    assert settings["before-build"] == "uv pip install --require-hashes -r {project}/.ci/wheels/build.txt"
    assert "include .ci/wheels/*.txt" in text_of("MANIFEST.in")  # the workflow takes them from the sdist


def test_the_actions_of_the_workflows_are_pinned_by_commit() -> None:
    folder = os.path.join(REPOSITORY, ".github", "workflows")
    for name in os.listdir(folder):
        for used in re.findall(r"uses:\s*(\S+)", text_of(".github", "workflows", name)):
            assert re.fullmatch(r"[\w.-]+/[\w./-]+@[0-9a-f]{40}", used), f"{name}: {used}"

"""Installs the servers of others that the client is tried against, in pinned versions, from their registries.

A folder beside this file holds what is installed and its lock file; everything installed lies under
`.cache/interop`. How that is done, and when it is up to date, is left to `benchmarks/peers/build.py`: this
adds what servers take that are not programs of ours. A missing toolchain costs nothing but what needs it:
`NotBuilt` says why. Takes about ten minutes and 3 GB the first time (Rust by far the most), and the network;
nothing later.
"""

from __future__ import annotations

import glob
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
REPOSITORY = os.path.dirname(os.path.dirname(HERE))
CACHE = os.path.join(REPOSITORY, ".cache", "interop")
sys.path.insert(0, os.path.join(REPOSITORY, "benchmarks", "peers"))

from build import NotBuilt, Recipe, build, build_python, python_of, run, state  # noqa: E402

__all__ = ["PACKAGES", "NotBuilt", "install", "program"]


@dataclass(frozen=True)
class Package(Recipe):
    """What one folder installs; its program is found by `program`."""

    @property
    def source(self) -> str:
        return os.path.join(HERE, self.folder)

    @property
    def target(self) -> str:
        return os.path.join(CACHE, self.folder)


def build_with_examples(recipe: Recipe) -> None:
    """The package, and from its source distribution the examples, which its wheel does not have."""
    build_python(recipe)
    download = [python_of(recipe), "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    folder = os.path.join(recipe.target, "examples")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    archive = os.path.join(recipe.source, "examples.txt")
    run(recipe, [*download, "--no-deps", "--no-binary", ":all:", "--requirement", archive], folder)
    for path in glob.glob(os.path.join(folder, "*.tar.gz")):
        run(recipe, ["tar", "-xzf", path, "--strip-components", "1"], folder)


def build_npm(recipe: Recipe) -> None:
    for name in ("package.json", "package-lock.json"):
        shutil.copyfile(os.path.join(recipe.source, name), os.path.join(recipe.target, name))
    run(recipe, ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--omit=peer"], recipe.target)


def build_go(recipe: Recipe) -> None:
    """Each tool of the module becomes a program, named after its module and folder: some share a name."""
    with open(os.path.join(recipe.source, "go.mod"), encoding="utf-8") as file:
        tools = file.read().partition("tool (")[2].partition(")")[0].split()
    for tool in tools:
        module, _, rest = tool.removeprefix("github.com/").partition("/")[2].partition("/")
        output = os.path.join(recipe.target, f"{module}-{rest.replace('/', '-')}")
        run(recipe, ["go", "build", "-mod=readonly", "-trimpath", "-o", output, tool], recipe.source)


def build_rmcp(recipe: Recipe) -> None:
    """A program of the server that rmcp's own package brings for its tests, which lists its tools only: with
    the attribute by which rmcp has them called, too."""
    source = os.path.join(recipe.target, "source")
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(recipe.source, source)
    listed = subprocess.run(
        ["cargo", "metadata", "--format-version", "1", "--locked"],
        cwd=source,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if listed.returncode:
        raise NotBuilt(f"cargo metadata failed: {listed.stderr.strip()[-300:]}")
    packages = json.loads(listed.stdout)["packages"]
    rmcp = next(one["manifest_path"] for one in packages if one["name"] == "rmcp")
    calculator = os.path.join(os.path.dirname(rmcp), "tests", "common", "calculator.rs")
    with open(calculator, encoding="utf-8") as file:
        text = file.read()
    head = "impl ServerHandler for Calculator"
    with open(os.path.join(source, "src", "calculator.rs"), "w", encoding="utf-8") as file:
        file.write(text.replace(head, f"#[rmcp::tool_handler(router = self.tool_router)]\n{head}"))
    run(recipe, ["cargo", "build", "--release", "--locked", "--target-dir", recipe.target], source)


def build_crates(recipe: Recipe) -> None:
    """The programs named in the folder's list, each by the lock file that its own package brings."""
    with open(os.path.join(recipe.source, recipe.manifest), encoding="utf-8") as file:
        crates = file.read().split()
    for crate in crates:
        name, _, version = crate.partition("@")
        command = ["cargo", "install", "--quiet", "--locked", "--root", recipe.target, name]
        run(recipe, [*command, "--version", version], recipe.source)


def starts_nothing(recipe: Recipe) -> list[str]:
    raise NotBuilt(f"{recipe.folder} has more than one program")


def python_package(folder: str, package: str, has_examples: bool = True) -> Package:
    steps = build_with_examples if has_examples else build_python
    files = ("requirements.in", "requirements.txt")
    return Package(folder, package, *files, (sys.executable,), "--version", steps, starts_nothing)


PACKAGES = {
    package.folder: package
    for package in (
        Package(
            "npm",
            "@modelcontextprotocol/server-everything",
            "package.json",
            "package-lock.json",
            ("node", "npm"),
            "--version",
            build_npm,
            starts_nothing,
        ),
        python_package("python-1", "mcp"),
        python_package("python-2", "mcp"),
        python_package("python-fastmcp", "fastmcp"),
        python_package("python-servers", "mcp-server-time", has_examples=False),
        Package("go", "go-sdk", "go.mod", "go.sum", ("go",), "version", build_go, starts_nothing),
        Package(
            "rust", "rmcp", "Cargo.toml", "Cargo.lock", ("cargo",), "--version", build_rmcp, starts_nothing
        ),
        Package(
            "crates",
            "crates",
            "crates.txt",
            "crates.txt",
            ("cargo",),
            "--version",
            build_crates,
            starts_nothing,
        ),
    )
}


def install(folder: str) -> None:
    """Install what a folder holds, unless that is up to date. Raises NotBuilt."""
    build(PACKAGES[folder])


def program(folder: str, *parts: str) -> str:
    """Return the path of an installed file. Raises NotBuilt for a folder that is not installed."""
    package = PACKAGES[folder]
    kept = state(package)
    if not kept.get("built"):
        reason = str(kept.get("reason", "the last build did not end"))
        raise NotBuilt(reason.replace("benchmarks/peers/build.py", "make interop"))
    return os.path.join(package.target, *parts)

"""Builds the SDKs that fastrpc is compared with, each in release mode and as its authors would.

A folder beside this file holds each server, its manifest and its lock file; everything built lies under
`benchmarks/.cache/peers`. A missing toolchain or a build that fails costs nothing but that peer: the reason
is kept, and `run.py` shows it in place of figures. Takes about three minutes and 2 GB the first time, and
the network; nothing when all is up to date.

    python benchmarks/peers/build.py                 build what the machine's toolchains can
    python benchmarks/peers/build.py mcp rmcp        only these
    python benchmarks/peers/build.py --list          say what is built, build nothing
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass

HERE = os.path.dirname(os.path.abspath(__file__))
CACHE = os.path.join(os.path.dirname(HERE), ".cache", "peers")
BUILD_LIMIT_SECONDS = 1800
STATE = "state.json"


class NotBuilt(Exception):
    """Why there is no such server here, in one sentence."""


@dataclass(frozen=True)
class Recipe:
    """How one folder is built, and how what came out is started."""

    folder: str
    package: str  # what the manifest calls the SDK
    manifest: str
    lock: str
    tools: tuple[str, ...]  # toolchain programs, the one with the version first
    version_option: str
    build: Callable[[Recipe], None]
    start: Callable[[Recipe], list[str]]
    start_shape: Callable[[Recipe, str], list[str]] | None = None  # where it serves the shapes of W12

    @property
    def source(self) -> str:
        return os.path.join(HERE, self.folder)

    @property
    def target(self) -> str:
        return os.path.join(CACHE, self.folder)

    def version(self) -> str:
        """The version of the SDK that the manifest asks for."""
        with open(os.path.join(self.source, self.manifest), encoding="utf-8") as file:
            found = re.search(rf"{re.escape(self.package)}[^\d\n]*(\d[\w.]*)", file.read())
        return found[1] if found else ""

    def digest(self) -> str:
        """A hash of all that the build reads: other sources make what is built out of date."""
        found = hashlib.sha256()
        for folder, folders, names in os.walk(self.source):
            folders[:] = sorted(name for name in folders if name != "__pycache__")
            for name in sorted(names):
                path = os.path.join(folder, name)
                found.update(os.path.relpath(path, self.source).encode() + b"\0")
                with open(path, "rb") as file:
                    found.update(hashlib.sha256(file.read()).digest())
        return found.hexdigest()


# ----------------------------------------------------------------------------------------- builders


def run(recipe: Recipe, command: list[str], folder: str) -> None:
    """Run one step of a build at low priority, its output into a log. Raises NotBuilt."""
    nice = ["nice", "-n", "19"] if shutil.which("nice") else []
    log = os.path.join(recipe.target, "build.log")
    with open(log, "ab") as file:
        file.write((" ".join(command) + "\n").encode())
        file.flush()
        try:
            done = subprocess.run(
                [*nice, *command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                timeout=BUILD_LIMIT_SECONDS,
            )
        except subprocess.TimeoutExpired:
            raise NotBuilt(f"{command[0]} took more than {BUILD_LIMIT_SECONDS} s") from None
    if done.returncode:
        raise NotBuilt(f"{os.path.basename(command[0])} failed, see {os.path.relpath(log)}")


def python_of(recipe: Recipe) -> str:
    return os.path.join(recipe.target, "venv", "bin", "python")


def build_python(recipe: Recipe) -> None:
    """A virtual environment of its own: these packages never meet the project's."""
    run(recipe, [sys.executable, "-m", "venv", "--clear", os.path.join(recipe.target, "venv")], recipe.source)
    install = [python_of(recipe), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    run(recipe, [*install, "--no-deps", "--requirement", "requirements.txt"], recipe.source)
    run(recipe, [python_of(recipe), "-m", "pip", "check"], recipe.source)


def start_python(recipe: Recipe) -> list[str]:
    return [python_of(recipe), os.path.join(recipe.source, "server.py")]


def start_python_shape(recipe: Recipe, shape: str) -> list[str]:
    return [python_of(recipe), os.path.join(recipe.source, "shapes.py"), shape]


def build_node(recipe: Recipe) -> None:
    """Node looks for packages beside the program, so the program goes to the packages."""
    for name in ("package.json", "package-lock.json", "server.mjs"):
        shutil.copyfile(os.path.join(recipe.source, name), os.path.join(recipe.target, name))
    run(recipe, ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], recipe.target)


def start_node(recipe: Recipe) -> list[str]:
    return ["node", os.path.join(recipe.target, "server.mjs")]


def build_rust(recipe: Recipe) -> None:
    run(recipe, ["cargo", "build", "--release", "--locked", "--target-dir", recipe.target], recipe.source)


def start_rust(recipe: Recipe) -> list[str]:
    return [os.path.join(recipe.target, "release", f"benchmark-peer-{recipe.folder}")]


def start_rust_shape(recipe: Recipe, shape: str) -> list[str]:
    return [*start_rust(recipe), "--shape", shape]


def build_go(recipe: Recipe) -> None:
    program = start_go(recipe)[0]
    run(recipe, ["go", "build", "-mod=readonly", "-trimpath", "-o", program, "."], recipe.source)


def start_go(recipe: Recipe) -> list[str]:
    return [os.path.join(recipe.target, "server")]


def python_recipe(folder: str) -> Recipe:
    manifest, lock = "requirements.in", "requirements.txt"
    start, shape = start_python, start_python_shape
    return Recipe(folder, folder, manifest, lock, (sys.executable,), "--version", build_python, start, shape)


def node_recipe(folder: str, package: str) -> Recipe:
    manifest, lock = "package.json", "package-lock.json"
    return Recipe(folder, package, manifest, lock, ("node", "npm"), "--version", build_node, start_node)


def rust_recipe(folder: str, start_shape: Callable[[Recipe, str], list[str]] | None = None) -> Recipe:
    manifest, lock = "Cargo.toml", "Cargo.lock"
    return Recipe(
        folder, folder, manifest, lock, ("cargo",), "--version", build_rust, start_rust, start_shape
    )


def go_recipe(folder: str, module: str) -> Recipe:
    return Recipe(folder, module, "go.mod", "go.sum", ("go",), "version", build_go, start_go)


RECIPES = {
    recipe.folder: recipe
    for recipe in (
        python_recipe("mcp"),
        python_recipe("fastmcp"),
        node_recipe("ts-v1", "@modelcontextprotocol/sdk"),
        node_recipe("ts-v2", "@modelcontextprotocol/server"),
        rust_recipe("rmcp", start_rust_shape),
        rust_recipe("tower-mcp"),
        go_recipe("go-sdk", "github.com/modelcontextprotocol/go-sdk"),
        go_recipe("mcp-go", "github.com/mark3labs/mcp-go"),
    )
}

# A peer is a folder and what its program is started with.
PEERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "mcp": ("mcp", ()),
    "fastmcp": ("fastmcp", ()),
    "ts-v1": ("ts-v1", ()),
    "ts-v2": ("ts-v2", ()),
    "rmcp": ("rmcp", ()),
    "rmcp-pipes": ("rmcp", ("--pipes",)),
    "tower-mcp": ("tower-mcp", ()),
    "go-sdk": ("go-sdk", ()),
    "mcp-go": ("mcp-go", ()),
}


# -------------------------------------------------------------------------------------------- state


def build(recipe: Recipe, again: bool = False) -> None:
    """Build one folder if it is out of date, and keep what came of it. Raises NotBuilt."""
    if not again and state(recipe).get("built"):
        return
    os.makedirs(recipe.target, exist_ok=True)
    state_path = os.path.join(recipe.target, STATE)
    for path in (state_path, os.path.join(recipe.target, "build.log")):
        if os.path.exists(path):
            os.unlink(path)
    result: dict[str, object] = {"digest": recipe.digest(), "built": True, "version": recipe.version()}
    try:
        if absent := [tool for tool in recipe.tools if not shutil.which(tool)]:
            raise NotBuilt(f"no {' and no '.join(absent)} on this machine")
        result["toolchain"] = first_line([recipe.tools[0], recipe.version_option])
        recipe.build(recipe)
    except NotBuilt as problem:
        result.update(built=False, reason=str(problem))
        raise
    finally:
        with open(state_path, "w", encoding="utf-8") as file:
            json.dump(result, file)


def first_line(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, timeout=30).stdout.partition("\n")[0]


def state(recipe: Recipe) -> dict[str, object]:
    """What the last build of this folder came to; without `built` there is nothing to run."""
    try:
        with open(os.path.join(recipe.target, STATE), encoding="utf-8") as file:
            kept: dict[str, object] = json.load(file)
    except (OSError, ValueError):
        return {"reason": "run benchmarks/peers/build.py"}
    if kept.get("digest") != recipe.digest():
        return {"reason": "its sources have changed, run benchmarks/peers/build.py"}
    return kept


def command_of(peer: str, shape: str = "") -> tuple[list[str], dict[str, object]]:
    """Return how a built peer is started, and its versions. Raises NotBuilt.

    With a shape, how its echo of this shape is; that takes a folder which serves shapes.
    """
    folder, options = PEERS[peer]
    recipe = RECIPES[folder]
    kept = state(recipe)
    if not kept.get("built"):
        raise NotBuilt(str(kept.get("reason", "the last build did not end")))
    versions: dict[str, object] = {name: kept[name] for name in ("version", "toolchain") if name in kept}
    if shape:
        assert recipe.start_shape is not None
        return [*recipe.start_shape(recipe, shape), *options], versions
    return [*recipe.start(recipe), *options], versions


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Build the SDKs that fastrpc is compared with.")
    parser.add_argument("folders", nargs="*", metavar="FOLDER", help=f"of {', '.join(RECIPES)}; default: all")
    parser.add_argument("--list", action="store_true", help="say what is built, build nothing")
    parser.add_argument("--again", action="store_true", help="build what is up to date, too")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.folders if name not in RECIPES]:
        parser.error(f"{', '.join(unknown)}: expected some of {', '.join(RECIPES)}")
    for name in options.folders or RECIPES:
        recipe = RECIPES[name]
        outcome = "built"
        try:
            if options.list:
                command_of(name)
            else:
                build(recipe, options.again)
        except NotBuilt as problem:
            outcome = f"not built: {problem}"
        print(f"{name:<10} {recipe.version():<8} {outcome}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Compiles the sources of a project by solc's standard JSON and makes its artifacts, with structured
diagnostics.

`solc` runs the compiler. Imports resolve among the sources alone: nothing is read from disk or network for
them; ``forge-std/`` is ours. An error of the compiler is EngineError(COMPILER_SOLC_FAILED) with all
diagnostics; warnings are returned beside the artifacts.
"""

from __future__ import annotations

import os

from .._errors import SOLC_FAILED, EngineError, invalid
from .._requests import PARTS
from .._values import quoted
from . import solc, source_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FORGE_STD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "forge_std")
OUTPUTS = ["abi", "evm.bytecode.object", "evm.bytecode.linkReferences", "evm.deployedBytecode.object"]
SOURCE_FOLDERS = ("src", "contracts")
MOST_SHOWN = 5  # diagnostics in an error's text; all of them are in its details


def sources_in(root: str) -> dict[str, str]:
    """The Solidity sources of a project folder, those below src/ or contracts/, by path."""
    found = source_files.read_below(root, SOURCE_FOLDERS)
    if not found:
        raise invalid("project_root", "a folder with .sol files below src/ or contracts/", quoted(root))
    return found


def _library_sources(sources: dict[str, str]) -> dict[str, str]:
    """Our forge-std, where a source mentions it and the project has none."""
    if not any("forge-std/" in text for text in sources.values()):
        return {}
    found = {}
    for name in sorted(os.listdir(FORGE_STD)):
        with open(os.path.join(FORGE_STD, name), encoding="utf-8") as file:
            found[f"forge-std/{name}"] = file.read()
    return found


async def compile_sources(
    sources: dict[str, str], *, optimize: int, via_ir: bool, evm_version: str | None
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the artifacts and the diagnostics. Raises EngineError."""
    settings: dict[str, Any] = {
        "optimizer": {"enabled": optimize > 0, "runs": max(optimize, 1)},
        "outputSelection": {"*": {"*": OUTPUTS}},
        "viaIR": via_ir,
    }
    if evm_version is not None:
        settings["evmVersion"] = evm_version
    every = {**_library_sources(sources), **sources}
    request = {
        "language": "Solidity",
        "sources": {path: {"content": text} for path, text in every.items()},
        "settings": settings,
    }
    output = await solc.compile_standard(request)
    diagnostics = [diagnostic_of(each, every) for each in output.get("errors", ())]
    if errors := [each for each in diagnostics if each["severity"] == "error"]:
        raise failure_of(errors, diagnostics)
    compiler = {
        "name": "solc",
        "version": await solc.version(),
        "settings": {"optimize_runs": optimize, "via_ir": via_ir, "evm_version": evm_version},
    }
    artifacts = [
        _artifact(path, name, made, compiler)
        for path, contracts in output.get("contracts", {}).items()
        if path in sources
        for name, made in contracts.items()
    ]
    return artifacts, diagnostics


def _artifact(path: str, name: str, made: dict[str, Any], compiler: dict[str, Any]) -> dict[str, Any]:
    evm = made["evm"]
    links = evm["bytecode"].get("linkReferences", {})
    artifact = {
        "name": name,
        "path": path,
        "abi": made["abi"],
        "bytecode": "0x" + evm["bytecode"]["object"],
        "deployedBytecode": "0x" + evm["deployedBytecode"]["object"],
        "compiler": compiler,
    }
    libraries = [f"{file}:{library}" for file, found in links.items() for library in found]
    return {**artifact, "links": libraries} if libraries else artifact


def chosen(artifact: dict[str, Any], include: list[str] | None) -> dict[str, Any]:
    """The artifact with the parts that were asked for."""
    if include is None:
        return artifact
    return {name: value for name, value in artifact.items() if name not in PARTS or name in include}


def diagnostic_of(error: dict[str, Any], sources: dict[str, str]) -> dict[str, Any]:
    """A message of the compiler, with path, line and column instead of an offset."""
    found = {
        "severity": error["severity"],
        "code": error.get("errorCode"),
        "type": error.get("type"),
        "message": error["message"],
    }
    place = error.get("sourceLocation")
    if place and place.get("start", -1) >= 0 and place["file"] in sources:
        before = sources[place["file"]].encode()[: place["start"]].decode(errors="replace")
        found |= {
            "path": place["file"],
            "line": before.count("\n") + 1,
            "column": len(before) - before.rfind("\n"),
        }
    return found


def failure_of(errors: list[dict[str, Any]], diagnostics: list[dict[str, Any]]) -> EngineError:
    shown = [
        (f"{each['path']}:{each['line']}:{each['column']}: " if "path" in each else "") + each["message"]
        for each in errors[:MOST_SHOWN]
    ]
    if len(errors) > MOST_SHOWN:
        shown.append(f"and {len(errors) - MOST_SHOWN} more")
    return EngineError(SOLC_FAILED, "; ".join(shown), details={"diagnostics": diagnostics})

"""Compiles the sources of a project, both Solidity and Vyper, and makes its artifacts, with structured
diagnostics.

`solc` and `vyper` run the compilers, by their standard JSON. Imports resolve among the sources alone: nothing
is read from disk or network for them; ``forge-std/`` comes with fastrpc. Errors are
EngineError(COMPILER_SOLC_FAILED), or COMPILER_VYPER_FAILED if none is of Solidity, with all diagnostics.
Warnings are returned with the artifacts.
"""

from __future__ import annotations

import asyncio
import os

from .._errors import SOLC_FAILED, VYPER_FAILED, invalid
from .._project_files import source_files
from .._values import quoted
from . import solc, vyper
from .diagnostics import SolcReader, errors_in, failure_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Found = tuple[list[dict[str, Any]], list[dict[str, Any]]]

FORGE_STD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "forge_std")
OUTPUTS = ["abi", "evm.bytecode.object", "evm.bytecode.linkReferences", "evm.deployedBytecode.object"]
SOURCE_FOLDERS = ("src", "contracts")


def sources_in(root: str) -> dict[str, str]:
    """The sources of a project folder, those below src/ or contracts/, by path."""
    found = source_files.read_below(root, SOURCE_FOLDERS)
    if not found:
        raise invalid("project_root", "a folder with sources below src/ or contracts/", quoted(root))
    return found


def _library_sources(sources: dict[str, str]) -> dict[str, str]:
    """fastrpc's forge-std, if a source mentions it and the project has none."""
    if not any("forge-std/" in text for text in sources.values()):
        return {}
    found = {}
    for name in sorted(os.listdir(FORGE_STD)):
        with open(os.path.join(FORGE_STD, name), encoding="utf-8") as file:
            found[f"forge-std/{name}"] = file.read()
    return found


async def compile_sources(
    sources: dict[str, str], *, optimize: int, via_ir: bool, evm_version: str | None
) -> Found:
    """Return the artifacts and the diagnostics. `optimize`: the number of runs; 0: no optimization. Raises
    EngineError."""
    source_files.check_size("sources", sources)
    of_vyper = {path: text for path, text in sources.items() if path.endswith(vyper.SUFFIXES)}
    of_solidity = {path: text for path, text in sources.items() if path.endswith(".sol")}
    for path in sources:
        if path not in of_vyper and path not in of_solidity:
            raise invalid(f'sources["{path}"]', "a .sol or .vy file, no configuration", quoted(path))
    artifacts: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    code = VYPER_FAILED
    if of_solidity:
        artifacts, said = await _compile_solidity(
            of_solidity, optimize=optimize, via_ir=via_ir, evm_version=evm_version
        )
        code = SOLC_FAILED if errors_in(said) else VYPER_FAILED
    if of_vyper:
        made, more = await vyper.compile_sources(of_vyper, optimize=optimize > 0, evm_version=evm_version)
        artifacts += made
        said += more
    if errors := errors_in(said):
        raise failure_of(code, errors, said)
    return artifacts, said


async def _compile_solidity(
    sources: dict[str, str], *, optimize: int, via_ir: bool, evm_version: str | None
) -> Found:
    """The artifacts and the diagnostics, errors among them."""
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
    compiler = {
        "name": "solc",
        "version": await solc.version(),
        "settings": {"optimize_runs": optimize, "via_ir": via_ir, "evm_version": evm_version},
    }
    said = await asyncio.to_thread(_said, output, every)
    if errors_in(said):
        return [], said
    artifacts = [
        _artifact(path, name, made, compiler)
        for path, contracts in output.get("contracts", {}).items()
        if path in sources
        for name, made in contracts.items()
    ]
    return artifacts, said


def _said(output: dict[str, Any], sources: dict[str, str]) -> list[dict[str, Any]]:
    reader = SolcReader(sources)
    return [reader.diagnostic_of(each) for each in output.get("errors", ())]


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

"""The Vyper compiler: sources in, artifacts and diagnostics out.

Vyper is a Python program, the extra ``fastrpc-mcp[vyper]``. It runs for each compilation, by its standard
JSON, one at a time, which takes 0.3 s and more. Imports resolve among the sources and to what Vyper itself
contains (``ethereum.ercs``, ``math``): nothing is read from disk for them. A contract is named after its
file. A file with ``uses:`` may be a module, from which no contract can be made. It is compiled with the files
that import it, and by itself only to find that out.
"""

from __future__ import annotations

import asyncio
import json
import re
import time

from .. import _programs
from .._errors import VYPER_FAILED
from .._per_loop import PerLoop
from . import diagnostics
from .compiler_process import TIMEOUT_SECONDS, output_of, parsed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Found = tuple[list[dict[str, Any]], list[dict[str, Any]]]

SUFFIXES = (".vy", ".vyi")
OUTPUTS = ["abi", "evm.bytecode.object", "evm.deployedBytecode.object"]
OF_INTERFACES = ["abi"]
NOT_BY_ITSELF = "InitializerException"
_USES = re.compile(r"^uses\s*:", re.MULTILINE)
_turns = PerLoop(asyncio.Lock)


async def compile_sources(
    sources: dict[str, str],
    *,
    optimize: bool,
    evm_version: str | None,
    timeout_seconds: float = TIMEOUT_SECONDS,
) -> Found:
    """Return the artifacts and the diagnostics, errors among them. Raises EngineError if Vyper is missing,
    takes too long or fails."""
    program = _programs.find("vyper")
    settings: dict[str, Any] = {"optimize": "gas" if optimize else "none"}
    if evm_version is not None:
        settings["evmVersion"] = evm_version
    artifacts: list[dict[str, Any]] = []
    said: list[dict[str, Any]] = []
    modules = possible_modules(sources)
    others = [path for path in sources if path not in modules]
    async with _turns.current():
        deadline = time.monotonic() + timeout_seconds
        for paths in filter(None, (others, *([path] for path in modules))):
            body = json.dumps(_request(sources, paths, settings)).encode()
            written = await output_of(
                [program, "--standard-json"],
                body,
                failure=VYPER_FAILED,
                timeout_seconds=deadline - time.monotonic(),
            )
            made, more = await asyncio.to_thread(_read, written, sources, settings)
            if paths[0] in modules:
                more = [_of_module(each) for each in more]
            artifacts += made
            said += [each for each in more if each not in said]
    return artifacts, said


def _of_module(said: dict[str, Any]) -> dict[str, Any]:
    """Return a diagnostic of a file that was compiled alone; "not a contract by itself" becomes an info."""
    if said["type"] != NOT_BY_ITSELF:
        return said
    return {**said, "severity": "info", "message": f"not a contract by itself: {said['message']}"}


def possible_modules(sources: dict[str, str]) -> list[str]:
    """The files that may need another one to initialize the modules that they use."""
    return [path for path, text in sources.items() if path.endswith(".vy") and _USES.search(text)]


def _request(sources: dict[str, str], paths: list[str], settings: dict[str, Any]) -> dict[str, Any]:
    selection = {path: OUTPUTS if path.endswith(".vy") else OF_INTERFACES for path in paths}
    return {
        "language": "Vyper",
        "sources": {path: {"content": text} for path, text in sources.items()},
        "settings": {**settings, "outputSelection": selection},
    }


def _read(written: bytes, sources: dict[str, str], settings: dict[str, Any]) -> Found:
    """The artifacts and the diagnostics of one output. Raises EngineError."""
    output = parsed(written, "vyper", VYPER_FAILED)
    said = [found for each in output.get("errors") or () for found in diagnostics.of_vyper(each, sources)]
    compiler = {
        "name": "vyper",
        "version": str(output.get("compiler", "")).removeprefix("vyper-"),
        "settings": {"optimize": settings["optimize"], "evm_version": settings.get("evmVersion")},
    }
    artifacts = [
        _artifact(path, name, made, compiler)
        for path, contracts in output.get("contracts", {}).items()
        for name, made in contracts.items()
    ]
    return artifacts, said


def _artifact(path: str, name: str, made: dict[str, Any], compiler: dict[str, Any]) -> dict[str, Any]:
    def code(part: str) -> str:
        found: str = made.get("evm", {}).get(part, {}).get("object", "")
        return "0x" + found.removeprefix("0x")

    return {
        "name": name,
        "path": path,
        "abi": made["abi"],
        "bytecode": code("bytecode"),
        "deployedBytecode": code("deployedBytecode"),
        "compiler": compiler,
    }

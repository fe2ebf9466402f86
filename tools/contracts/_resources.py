"""Artifacts as resources, ``contracts://PROJECT/NAME``, for those that are too large for a tool's result. And
the skill: how an agent works with the nine tools, ``skill://solidity-contracts/SKILL.md``, named as in
SEP-2640. A client that looks for skills in folders can use the file itself."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from fastrpc import Server

ROOT = "contracts://"
SKILL = "solidity-contracts"
SKILL_DESCRIPTION = (
    "Write, test, deploy and call smart contracts, Solidity or Vyper, with the tachyon tools and a local "
    "chain. Use when a contract is to be written, reviewed, tested or deployed, or when one of these tools "
    "has failed."
)
SKILL_FILE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "skills", SKILL, "SKILL.md")
LARGE_CHARACTERS = 20_000
"""If a result's artifacts are longer together, the result names them, and clients read them as resources."""
LARGE_PARTS = ("bytecode", "deployedBytecode", "abi")


def attach(server: Server) -> None:
    server.resource(
        ROOT + "{project}/{+name}",
        name="artifact",
        title="A compiled contract",
        description="ABI, bytecode and compiler of a contract; name: Counter or src/Counter.sol:Counter",
        mime_type="application/json",
    )(artifact)
    server.resource(
        f"skill://{SKILL}/SKILL.md",
        name=SKILL,
        title="How to work with contracts",
        description=SKILL_DESCRIPTION,
        mime_type="text/markdown",
    )(skill)


def skill() -> str:
    """Return the text of the skill."""
    with open(SKILL_FILE, encoding="utf-8") as file:
        return file.read()


async def artifact(project: str, name: str) -> str:
    """Return the artifact as JSON."""
    import json

    from fastrpc import ToolError

    from . import _engines, _requests
    from ._errors import EngineError

    try:
        parameters = _requests.read("artifact_get", {"project_id": project, "name": name})
        found = await _engines.current().request("artifact_get", parameters, lambda phase: None)
    except EngineError as error:
        raise ToolError(error.message) from None
    return json.dumps(found["artifact"])


def uri_of(project: str, made: dict[str, Any]) -> str:
    return f"{ROOT}{project}/{made['path']}:{made['name']}"


def shortened(project: str, artifacts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The artifacts, without their large parts if they are too large together; each then gives its
    address."""
    import json

    if sum(len(json.dumps(each)) for each in artifacts) <= LARGE_CHARACTERS:
        return artifacts
    return [
        {name: value for name, value in each.items() if name not in LARGE_PARTS}
        | {"resource": uri_of(project, each)}
        for each in artifacts
    ]

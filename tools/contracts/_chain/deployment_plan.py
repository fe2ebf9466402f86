"""What is to be deployed: code with arguments, salt, cap; and what an idempotency key identifies.

Computed from the parameters of a deployment and an artifact, before any chain is asked. Pure. Each engine
decides how to send it, and how to record its outcome in the ledger.
"""

from __future__ import annotations

import hashlib
import json
import re
from typing import NamedTuple

from .. import _values
from .._errors import INVALID_REQUEST, EngineError
from .._project_files.store import Deployment
from . import abi as abi_codec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CREATE2_DEPLOYER = "0x4e59b44847b379578588920cA78FbF26c0B4956C"
"""The deterministic deployment proxy, at the same address on nearly every chain, anvil's included."""

NO_NONCE = -1
"""The nonce in the line of a contract that no known transaction of this server has created."""

_PLACEHOLDER = re.compile(r"__\$[0-9a-fA-F]{34}\$__")


class Plan(NamedTuple):
    """A deployment."""

    chain: str
    key: str
    artifact: dict[str, Any]
    code: bytes  # with the constructor's arguments
    create2: tuple[bytes, str] | None  # salt and deployer
    cap: int | None

    @property
    def contract(self) -> str:
        return f"{self.artifact['path']}:{self.artifact['name']}"

    def fingerprint(self, sender: str) -> str:
        """The hash of everything that the key identifies."""
        salt, deployer = self.create2 or (b"", "")
        text = json.dumps([self.chain, self.code.hex(), salt.hex(), deployer, sender])
        return hashlib.sha256(text.encode()).hexdigest()


def code_of(artifact: dict[str, Any], arguments: list[Any]) -> bytes:
    """The code that creates the contract. Raises EngineError for one that cannot be created."""
    bytecode = str(artifact["bytecode"])
    name = str(artifact["name"])
    if not bytecode[2:]:
        raise EngineError(INVALID_REQUEST, f"contract: {name} has no code: it is abstract, or an interface")
    if _PLACEHOLDER.search(bytecode):
        libraries = ", ".join(artifact.get("links", ())) or "a library"
        raise EngineError(INVALID_REQUEST, f"contract: {name} has unlinked libraries: {libraries}")
    return bytes.fromhex(bytecode[2:]) + abi_codec.encode_constructor(name, artifact["abi"], arguments)


def plan_of(given: dict[str, Any], artifact: dict[str, Any], chain: str) -> Plan:
    """Return the plan for the parameters of a deployment; `chain` is the chain's number. Raises EngineError
    for a contract that cannot be created."""
    create2 = given.get("create2")
    return Plan(
        chain,
        given["idempotency_key"],
        artifact,
        code_of(artifact, given.get("constructor_args", [])),
        None if create2 is None else _create2_of(create2),
        given.get("spend_cap_wei"),
    )


def _create2_of(given: dict[str, Any]) -> tuple[bytes, str]:
    """Salt and deployer in the parameter."""
    return bytes.fromhex(given["salt"][2:]), given.get("deployer", CREATE2_DEPLOYER)


def check_same(known: Deployment, plan: Plan, sender: str) -> None:
    """Raise EngineError(INVALID_REQUEST) if the key identifies another deployment."""
    if known.fingerprint != plan.fingerprint(sender):
        raise EngineError(
            INVALID_REQUEST,
            f"idempotency_key: {_values.quoted(plan.key)} belongs to another deployment, of {known.contract}",
        )


def answer(line: Deployment, *, existing: bool) -> dict[str, Any]:
    """The data of the verb. `existing`: it was deployed before."""
    return {
        "address": line.address,
        "tx_hash": line.tx_hash or None,
        "idempotency_key": line.key,
        "chain_id": line.chain,
        "contract": line.contract,
        "existing": existing,
        "receipt": json.loads(line.receipt) if line.receipt else None,
    }

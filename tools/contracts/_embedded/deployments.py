"""Deploys a contract once: the same idempotency key never deploys twice, and never something else.

The ledger's line is written before anything is sent, with the sender's nonce and the address that follows
from it. A server that dies in between leaves a line that says "planned" or "sent"; the next request with the
key looks at the chain: there is code at the address, so it is done; the nonce has not been used, so nothing
was sent; or the outcome is unknown, which is said, and nothing is sent again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from typing import NamedTuple

from .. import _values
from .._errors import DEPLOY_FAILED, INVALID_REQUEST, EngineError
from . import abi as abi_codec
from . import transactions
from .rpc import Node, RpcError
from .store import DONE, PLANNED, SENT, Deployment, Store
from .transactions import Transaction

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CREATE2_DEPLOYER = "0x4e59b44847b379578588920cA78FbF26c0B4956C"
"""The deterministic deployment proxy, at the same address on nearly every chain; anvil has it."""

NO_NONCE = -1
"""Of a contract that was there: no transaction of ours made it."""

_PLACEHOLDER = re.compile(r"__\$[0-9a-fA-F]{34}\$__")


class Plan(NamedTuple):
    """What is to be deployed."""

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
        """Of what the key stands for."""
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
    """Salt and deployer of the parameter."""
    return bytes.fromhex(given["salt"][2:]), given.get("deployer", CREATE2_DEPLOYER)


def check_same(known: Deployment, plan: Plan, sender: str) -> None:
    """Raise EngineError(INVALID_REQUEST) where the key stands for something else."""
    if known.fingerprint != plan.fingerprint(sender):
        raise EngineError(
            INVALID_REQUEST,
            f"idempotency_key: {_values.quoted(plan.key)} stands for another deployment, of {known.contract}",
        )


async def deploy(node: Node, store: Store, plan: Plan, sender: str) -> dict[str, Any]:
    """Deploy, or return what the key has deployed before. The caller holds the chain's broadcast lock."""
    known = await asyncio.to_thread(store.deployment, plan.chain, plan.key)
    if known is not None:
        check_same(known, plan, sender)
        if (found := await _settled(node, store, known, plan.artifact["abi"])) is not None:
            return answer(found, existing=True)
    transaction, address = _transaction(plan, sender)
    if plan.create2 is not None and await transactions.has_code(node, address):
        return await _found_there(node, store, plan, sender, address)
    gas = await _tried(node, plan, transaction)
    nonce = await transactions.nonce_of(node, sender)
    address = address or transactions.created_address(sender, nonce)
    line = Deployment(
        plan.chain,
        plan.key,
        plan.fingerprint(sender),
        PLANNED,
        plan.artifact["project_id"],
        plan.contract,
        sender,
        nonce,
        address,
    )
    await asyncio.to_thread(store.put_deployment, line)
    return await _sent(node, store, line, transaction, gas, plan.artifact["abi"])


def _transaction(plan: Plan, sender: str) -> tuple[Transaction, str]:
    """The transaction, and the address where that does not depend on the nonce."""
    if plan.create2 is None:
        return Transaction(sender, "", plan.code), ""
    salt, deployer = plan.create2
    address = transactions.created2_address(deployer, salt, plan.code)
    return Transaction(sender, deployer, salt + plan.code), address


async def _tried(node: Node, plan: Plan, transaction: Transaction) -> int:
    """The gas that the deployment needs. Raises EngineError where it would revert or cost too much."""
    abi = plan.artifact["abi"]
    trial = await transactions.try_out(node, transaction, "latest", abi, refused=DEPLOY_FAILED)
    if trial.revert is not None:
        reason = trial.revert.get("reason", "without a reason")
        raise EngineError(
            DEPLOY_FAILED,
            f"the constructor of {plan.artifact['name']} reverts: {reason}",
            details={"revert": trial.revert},
        )
    gas = transactions.with_margin(trial.gas)
    await transactions.check_cap(node, transaction, gas, plan.cap)
    return gas


async def _sent(
    node: Node, store: Store, line: Deployment, transaction: Transaction, gas: int, abi: list[dict[str, Any]]
) -> dict[str, Any]:
    try:
        tx_hash = await transactions.send(node, transaction, gas, line.nonce)
    except RpcError:  # the chain has refused it; where there was no answer, the line stays
        await asyncio.to_thread(store.drop_deployment, line.chain, line.key)
        raise
    line = line._replace(state=SENT, tx_hash=tx_hash)
    await asyncio.to_thread(store.put_deployment, line)
    return answer(await _finished(node, store, line, abi), existing=False)


async def _finished(node: Node, store: Store, line: Deployment, abi: list[dict[str, Any]]) -> Deployment:
    """The line with its receipt. Raises EngineError for a deployment that has reverted: its key is free."""
    receipt = await transactions.receipt_of(node, line.tx_hash)
    if not transactions.succeeded(receipt) or not await transactions.has_code(node, line.address):
        await asyncio.to_thread(store.drop_deployment, line.chain, line.key)
        raise EngineError(
            DEPLOY_FAILED,
            f"the deployment of {line.contract} has reverted, in transaction {line.tx_hash}",
            details={"tx_hash": line.tx_hash},
        )
    short = transactions.short_receipt(receipt, abi)
    line = line._replace(state=DONE, receipt=json.dumps(short))
    await asyncio.to_thread(store.put_deployment, line)
    return line


async def _settled(
    node: Node, store: Store, line: Deployment, abi: list[dict[str, Any]]
) -> Deployment | None:
    """What has become of a deployment that was begun before; None: nothing was sent."""
    if await transactions.has_code(node, line.address):
        if line.state == DONE:
            return line
        if line.tx_hash and await node.request("eth_getTransactionReceipt", line.tx_hash) is not None:
            return await _finished(node, store, line, abi)
        line = line._replace(state=DONE)  # without a receipt, which the chain may have forgotten
        await asyncio.to_thread(store.put_deployment, line)
        return line
    if line.nonce == NO_NONCE or await transactions.nonce_of(node, line.sender) <= line.nonce:
        await asyncio.to_thread(store.drop_deployment, line.chain, line.key)
        return None  # the chain has never seen it, or is one of before
    if line.state == DONE:
        raise EngineError(
            DEPLOY_FAILED,
            f"{line.contract} was deployed to {line.address} by this key, and the chain has no code there "
            "any more: use a new idempotency_key",
        )
    raise EngineError(
        DEPLOY_FAILED,
        f"outcome unknown: a deployment with this key was begun, and nonce {line.nonce} of {line.sender} "
        f"has been used by a transaction that left no code at {line.address}; look at that account",
        details={"sender": line.sender, "nonce": line.nonce, "address": line.address},
    )


async def _found_there(node: Node, store: Store, plan: Plan, sender: str, address: str) -> dict[str, Any]:
    """The same code with the same salt has been created before, by whomever."""
    fingerprint, project = plan.fingerprint(sender), plan.artifact["project_id"]
    line = Deployment(
        plan.chain, plan.key, fingerprint, DONE, project, plan.contract, sender, NO_NONCE, address
    )
    await asyncio.to_thread(store.put_deployment, line)
    return answer(line, existing=True)


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

"""Deploys a contract once: the same idempotency key never deploys twice, and never another contract.

The ledger's line is written before anything is sent, with the sender's nonce and the address that follows
from it. A server that dies in between leaves a line with the state "planned" or "sent". The next request with
the key then checks the chain. If the address has code, the deployment is done. If the nonce has not been
used, nothing was sent. Otherwise the outcome is unknown: an error says so, and nothing is sent again.
"""

from __future__ import annotations

import asyncio
import json

from .._chain import transactions
from .._chain.deployment_plan import NO_NONCE, Plan, answer, check_same
from .._chain.rpc import Node, RpcError
from .._chain.transactions import Transaction
from .._errors import DEPLOY_FAILED, EngineError
from .._project_files.store import DONE, PLANNED, SENT, Deployment, Store

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


async def deploy(node: Node, store: Store, plan: Plan, sender: str) -> dict[str, Any]:
    """Deploy, or return the earlier deployment with the key. The caller holds the chain's broadcast lock."""
    known = await store.soon(Store.deployment, plan.chain, plan.key)
    if known is not None:
        check_same(known, plan, sender)
        if (found := await _settled(node, store, known, plan.artifact["abi"])) is not None:
            return answer(found, existing=True)
    transaction, address = _transaction(plan, sender)
    if plan.create2 is not None and await transactions.has_code(node, address):
        return await _found_there(node, store, plan, sender, address)
    gas = await _tried(node, store, plan, transaction)
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
    """The transaction, and the address if that does not depend on the nonce."""
    if plan.create2 is None:
        return Transaction(sender, "", plan.code), ""
    salt, deployer = plan.create2
    address = transactions.created2_address(deployer, salt, plan.code)
    return Transaction(sender, deployer, salt + plan.code), address


async def _tried(node: Node, store: Store, plan: Plan, transaction: Transaction) -> int:
    """The gas that the deployment needs. Raises EngineError if it would revert or cost too much."""
    abi = plan.artifact["abi"]
    trial = await transactions.try_out(node, store, transaction, abi, refused=DEPLOY_FAILED)
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
    except RpcError:  # the chain has refused it; without an answer, the line stays
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
    """The outcome of a deployment that was begun before; None: nothing was sent."""
    if await transactions.has_code(node, line.address):
        if line.state == DONE:
            return line
        if line.tx_hash and await node.request("eth_getTransactionReceipt", line.tx_hash) is not None:
            return await _finished(node, store, line, abi)
        line = line._replace(state=DONE)  # without a receipt, which the chain may no longer have
        await asyncio.to_thread(store.put_deployment, line)
        return line
    if line.nonce == NO_NONCE or await transactions.nonce_of(node, line.sender) <= line.nonce:
        await asyncio.to_thread(store.drop_deployment, line.chain, line.key)
        return None  # the chain has never received it, or was replaced since
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
    """Record and return a contract that the same code with the same salt has created before, for any
    sender."""
    fingerprint, project = plan.fingerprint(sender), plan.artifact["project_id"]
    line = Deployment(
        plan.chain, plan.key, fingerprint, DONE, project, plan.contract, sender, NO_NONCE, address
    )
    await asyncio.to_thread(store.put_deployment, line)
    return answer(line, existing=True)

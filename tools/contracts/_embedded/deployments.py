"""Deploys a contract once: the same idempotency key never deploys twice, and never something else.

The ledger's line is written before anything is sent, with the sender's nonce and the address that follows
from it. A server that dies in between leaves a line that says "planned" or "sent"; the next request with the
key looks at the chain: there is code at the address, so it is done; the nonce has not been used, so nothing
was sent; or the outcome is unknown, which is said, and nothing is sent again.
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
    """Deploy, or return what the key has deployed before. The caller holds the chain's broadcast lock."""
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
    """The transaction, and the address where that does not depend on the nonce."""
    if plan.create2 is None:
        return Transaction(sender, "", plan.code), ""
    salt, deployer = plan.create2
    address = transactions.created2_address(deployer, salt, plan.code)
    return Transaction(sender, deployer, salt + plan.code), address


async def _tried(node: Node, store: Store, plan: Plan, transaction: Transaction) -> int:
    """The gas that the deployment needs. Raises EngineError where it would revert or cost too much."""
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

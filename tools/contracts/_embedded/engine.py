"""The embedded engine: the nine verbs by existing programs: solc, forge and anvil.

One engine serves one project folder, below the state folder; several servers may share it. `_requests` has
validated the parameters. Compilations run one at a time (`solc`), tests too (`forge`), broadcasts one at a
time on a chain; lists and lookups do not wait for any of them. The engine broadcasts only to the local chain.
For other chains it has no wallet, so it only reads and simulates.
"""

from __future__ import annotations

import asyncio
import os

from .. import _settings, _values
from .._artifacts import chosen
from .._chain import abi as abi_codec
from .._chain import deployment_plan, transactions
from .._chain.rpc import Node, Nodes, RpcError
from .._chain.transactions import Transaction, Trial
from .._errors import (
    CALL_FAILED,
    CHAIN_RPC_FAILED,
    DEPLOY_FAILED,
    ENGINE_TIMEOUT,
    INVALID_REQUEST,
    SIMULATE_FAILED,
    WALLET_NOT_CONFIGURED,
    EngineError,
)
from .._project_files.store import DONE, Chain, Store
from . import compiler, deployments
from .local_chain import ID, NUMBER, LocalChain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Report = Callable[[str], None]

DEFAULT_PROJECT = "default"
TRACE_SECONDS, MOST_TRACE = 8.0, 1024 * 1024
BROADCAST_SECONDS = 45.0  # a broadcast waits so long for others, less than a call may take
REFUSED = {"simulate": SIMULATE_FAILED, "deploy": DEPLOY_FAILED, "call": CALL_FAILED}
"""The code of a verb's failure if the chain's node refuses it."""
LOCAL_FEATURES = ["read", "simulate", "trace", "deploy", "call"]
REMOTE_FEATURES = ["read", "simulate"]


class EmbeddedEngine:
    """The engine of the project whose files are in `folder`, which is private to the user."""

    grace_seconds = 0.0

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._store = Store(folder)
        self._local = LocalChain(folder)
        self._nodes = Nodes()

    async def request(self, verb: str, parameters: dict[str, Any], report: Report) -> dict[str, Any]:
        """Run a verb and return its data; call `report` with the name of each phase. Raises EngineError."""
        try:
            found: dict[str, Any] = await getattr(self, f"_{verb}")(parameters, report)
        except RpcError as error:
            code = REFUSED.get(verb, CHAIN_RPC_FAILED)
            raise EngineError(code, transactions.refusal(error), retry=error.retry) from None
        return found

    # --- sources --------------------------------------------------------------------------------------

    async def _compile(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        project = given.get("project_id", DEFAULT_PROJECT)
        sources: dict[str, str] | None = given.get("sources")
        if sources is None:
            sources = await asyncio.to_thread(compiler.sources_in, given["project_root"])
        report(f"compiling {_values.counted(len(sources), 'file')}")
        artifacts, diagnostics = await compiler.compile_sources(
            sources,
            optimize=given.get("optimize", 200),
            via_ir=given.get("via_ir", False),
            evm_version=given.get("evm_version"),
        )
        report(f"{_values.counted(len(artifacts), 'contract')} compiled")
        targets = given.get("targets")
        if targets is not None:
            _check_targets(targets, artifacts)
        await asyncio.to_thread(self._store.put_artifacts, project, artifacts)
        shown = [
            chosen(each, given.get("include"))
            for each in artifacts
            if targets is None or each["name"] in targets or f"{each['path']}:{each['name']}" in targets
        ]
        return {"project_id": project, "artifacts": shown, "diagnostics": diagnostics}

    async def _test(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        from . import forge

        return await forge.run_tests(
            given.get("sources"),
            given.get("project_root"),
            folder=os.path.join(self._folder, "forge"),
            match_path=given.get("match_path"),
            match_contract=given.get("match_contract"),
            filter=given.get("filter"),
            evm_version=given.get("evm_version"),
            project_config=_settings.PROJECT_CONFIG.read(),
            report=report,
        )

    async def _artifact_get(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        found = await self._store.soon(Store.artifact, given["name"], given.get("project_id"))
        return {"artifact": chosen(found, given.get("include"))}

    # --- chains ---------------------------------------------------------------------------------------

    async def _chain_list(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        chains = await self._chains()
        return {"chains": [self._shown(each) for each in chains], "active_chain_id": ID}

    async def _chain_register(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        if given["id"] == ID or given["chain_id"] == NUMBER:
            raise EngineError(
                INVALID_REQUEST, f"id: {ID} ({NUMBER}) is the local chain; choose another id and number"
            )
        chain = Chain.of(given, name=given["id"])
        await asyncio.to_thread(self._store.put_chain, chain)
        return self._shown(chain)

    async def _chains(self) -> list[Chain]:
        local = Chain(ID, "Local chain (anvil)", self._local.url, NUMBER, "anvil")
        return [local, *await self._store.soon(Store.chains)]

    def _shown(self, chain: Chain) -> dict[str, Any]:
        is_local = chain.id == ID
        return {
            "id": chain.id,
            "name": chain.name,
            "rpc_url": _values.masked_url(chain.rpc_url) if chain.rpc_url else None,
            "chain_id": chain.chain_id,
            "preset": chain.preset or None,
            "explorer": chain.explorer or None,
            "features": LOCAL_FEATURES if is_local else REMOTE_FEATURES,
            "active": is_local,
        }

    async def _chain(self, asked: str) -> Chain:
        """The chain of this id or number. Raises EngineError(CHAIN_NOT_FOUND)."""
        chains = await self._chains()
        for chain in chains:
            if asked in (chain.id, str(chain.chain_id)):
                return chain
        raise _values.unknown_chain(asked, [each.id for each in chains])

    async def _node(self, chain: Chain) -> Node:
        if chain.id == ID:
            return await self._local.node()
        node = await self._nodes.at(chain.rpc_url, is_local=False)
        number = await node.number("eth_chainId")
        if number != chain.chain_id:
            raise EngineError(
                CHAIN_RPC_FAILED,
                f"chain_id: {chain.id} is registered as {chain.chain_id}, its node is of {number}",
            )
        return node

    async def _place(self, given: dict[str, Any]) -> tuple[Node, str, bool]:
        """The node to ask, its chain's number ("" for a bare URL), and whether it is the local chain."""
        if "rpc_url" in given:
            return await self._nodes.at(given["rpc_url"], is_local=False), "", False
        chain = await self._chain(given.get("chain_id", ID))
        return await self._node(chain), str(chain.chain_id), chain.id == ID

    async def _registry_lookup(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        chain = await self._chain(given["chain_id"])
        line = await self._store.soon(Store.deployment, str(chain.chain_id), given["idempotency_key"])
        if line is None:
            return {"found": False, "address": None, "tx_hash": None, "contract": None, "confirmed": False}
        return {
            "found": True,
            "address": line.address,
            "tx_hash": line.tx_hash or None,
            "contract": line.contract,
            "confirmed": line.state == DONE,
        }

    # --- transactions ---------------------------------------------------------------------------------

    async def _deploy(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        chain = await self._chain(given["chain_id"])
        artifact = await self._store.soon(Store.artifact, given["contract"], given.get("project_id"))
        number = str(chain.chain_id)
        plan = deployment_plan.plan_of(given, artifact, number)
        if chain.id != ID:
            raise _no_wallet(chain.id)
        node = await self._node(chain)
        async with transactions.turn(self._folder, number, ENGINE_TIMEOUT):
            report("deploying")
            sender = await transactions.sender_of(node, given.get("from"))
            found = await deployments.deploy(node, self._store, plan, sender)
            await self._local.save()
        return {**found, "chain_id": chain.id}

    async def _simulate(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        node, chain, is_local = await self._place(given)
        abi = await self._abi_at(chain, given["to"])
        data = bytes.fromhex(given.get("data", "0x")[2:])
        transaction = Transaction(
            await _caller(node, given, is_local), given["to"], data, given.get("value", 0)
        )
        block = given.get("block", "latest")
        report("simulating")
        trial = await transactions.try_out(
            node, self._store, transaction, abi, block=block, refused=SIMULATE_FAILED
        )
        trace = await self._traced(node, transaction, block) if given.get("trace") else None
        decoded = None if trial.revert else abi_codec.decode_answer(data, abi, trial.result)
        return {
            "result": None if trial.revert else "0x" + trial.result.hex(),
            "gas_estimate": None if trial.revert else trial.gas,
            "revert": trial.revert,
            "trace": trace,
            "decoded": decoded,
        }

    async def _traced(self, node: Node, transaction: Transaction, block: str) -> Any:
        """The tree of calls, by geth's callTracer, or a text that says why it is missing. anvil takes minutes
        for 100,000 calls, and answers no other request meanwhile: then it is restarted."""
        try:
            return await node.request(
                "debug_traceCall",
                transaction.fields(),
                block,
                {"tracer": "callTracer"},
                seconds=TRACE_SECONDS,
                most_bytes=MOST_TRACE,
            )
        except (RpcError, EngineError) as error:
            if isinstance(error, EngineError) and error.retry:
                await self._local.end(node)
            return f"there is no trace: {error.message}"

    async def _call(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        node, chain, is_local = await self._place(given)
        abi = await self._abi_for(given, chain)
        data, entry = abi_codec.calldata_of(given, abi)
        reads = given.get("simulate_only", False) or (entry or {}).get("stateMutability") in ("view", "pure")
        if not reads and not is_local:
            raise _no_wallet(given.get("chain_id", "rpc_url"))
        if data and not await transactions.has_code(node, given["to"]):
            raise EngineError(CALL_FAILED, f"to: there is no contract at {given['to']}")
        if reads:
            report("reading")
            sender = await _caller(node, given, is_local)
            transaction = Transaction(sender, given["to"], data, given.get("value", 0))
            return _read(await self._tried(node, transaction, abi), entry)
        async with transactions.turn(self._folder, chain, ENGINE_TIMEOUT):
            report("calling")
            sender = await transactions.sender_of(node, given.get("from"))
            transaction = Transaction(sender, given["to"], data, given.get("value", 0))
            trial = await self._tried(node, transaction, abi)
            found = await _broadcast(node, transaction, trial, abi, given.get("spend_cap_wei"))
            await self._local.save()
        return found

    async def _tried(self, node: Node, transaction: Transaction, abi: list[dict[str, Any]]) -> Trial:
        return await transactions.try_out(node, self._store, transaction, abi, refused=CALL_FAILED)

    async def _abi_for(self, given: dict[str, Any], chain: str) -> Any:
        """The given ABI, else that of the named contract, else that of the contract at the address."""
        if "abi" in given:
            return given["abi"]
        if "contract" in given:
            project = given.get("project_id")
            return (await self._store.soon(Store.artifact, given["contract"], project))["abi"]
        found = await self._abi_at(chain, given["to"])
        if not found and "method" in given:
            raise EngineError(
                INVALID_REQUEST, "method: give abi or contract too; nothing is known of this address"
            )
        return found

    async def _abi_at(self, chain: str, address: str) -> list[dict[str, Any]]:
        """The ABI of the contract that this project has deployed to an address; empty if it has not."""
        line = await self._store.soon(Store.deployment_at, chain, address)
        if line is None:
            return []
        try:
            artifact = await self._store.soon(Store.artifact, line.contract, line.project)
        except EngineError:  # the project has been compiled since without it
            return []
        found: list[dict[str, Any]] = artifact["abi"]
        return found


async def _caller(node: Node, given: dict[str, Any], is_local: bool) -> str:
    """The sender of a call that sends nothing: any address may be given."""
    return given.get("from") or (await transactions.sender_of(node, None) if is_local else transactions.ZERO)


def _check_targets(targets: list[str], artifacts: list[dict[str, Any]]) -> None:
    from fastrpc.errors import suggestion

    known = {each["name"] for each in artifacts} | {f"{each['path']}:{each['name']}" for each in artifacts}
    for index, target in enumerate(targets):
        if target not in known:
            hint = suggestion(target, known)
            raise EngineError(
                INVALID_REQUEST, f"targets[{index}]: no contract {_values.quoted(target)}{hint}"
            )


def _no_wallet(chain: str) -> EngineError:
    return EngineError(
        WALLET_NOT_CONFIGURED,
        f"chain_id: this engine holds no keys, and broadcasts only on {ID}, not on {chain}: simulate "
        "there, or serve an engine that has a wallet",
    )


def _read(trial: Trial, entry: dict[str, Any] | None) -> dict[str, Any]:
    """The return value that the call would have; nothing is sent."""
    if trial.revert is not None:
        raise _reverted("the call reverts", trial.revert)
    decoded = None if entry is None else abi_codec.decode_outputs(entry.get("outputs", []), trial.result)
    return {
        "result": "0x" + trial.result.hex(),
        "tx_hash": None,
        "receipt": None,
        "revert": None,
        "decoded": decoded,
    }


async def _broadcast(
    node: Node, transaction: Transaction, trial: Trial, abi: list[dict[str, Any]], cap: int | None
) -> dict[str, Any]:
    """Send the transaction, if it would succeed, and wait for its receipt."""
    if trial.revert is not None:
        raise _reverted("the call would revert; nothing was sent", trial.revert)
    gas = transactions.with_margin(trial.gas)
    await transactions.check_cap(node, transaction, gas, cap)
    nonce = await transactions.nonce_of(node, transaction.sender)
    tx_hash = await transactions.send(node, transaction, gas, nonce)
    receipt = await transactions.receipt_of(node, tx_hash)
    short = transactions.short_receipt(receipt, abi)
    if not transactions.succeeded(receipt):
        raise EngineError(
            CALL_FAILED, f"transaction {tx_hash} has reverted", details={"tx_hash": tx_hash, "receipt": short}
        )
    entry = abi_codec.entry_of(transaction.data, abi)
    decoded = None if entry is None else abi_codec.decode_outputs(entry.get("outputs", []), trial.result)
    return {"result": None, "tx_hash": tx_hash, "receipt": short, "revert": None, "decoded": decoded}


def _reverted(what: str, revert: dict[str, Any]) -> EngineError:
    reason = revert.get("reason") or "without a reason"
    return EngineError(CALL_FAILED, f"{what}: {reason}", details={"revert": revert})

"""Sends each transaction through an engine once: the ledger is written before, the receipt is read
afterwards.

Before a transaction is sent, its arguments, libraries and cap are checked and the same call is simulated. The
engine's wire format has no receipts. If this machine can reach the chain's node, its receipt decides whether
the transaction has succeeded, whatever the engine returns. If an answer is lost, the engine's registry is
asked once. If the registry does not have the key, the outcome is unknown and nothing is sent again, except a
deployment by CREATE2, which cannot happen twice. All servers of a project together send one transaction at a
time on a chain. If the caller is cancelled after the transaction was sent, the transaction goes on, and the
ledger gets its outcome.
"""

from __future__ import annotations

import asyncio
import json
import logging

from .. import _values
from .._chain import abi as abi_codec
from .._chain import deployment_plan, transactions
from .._chain.rpc import RpcError
from .._errors import (
    ARTIFACT_NOT_FOUND,
    CALL_FAILED,
    CHAIN_NOT_FOUND,
    CHAIN_RPC_FAILED,
    DEPLOY_FAILED,
    ENGINE_UNAVAILABLE,
    INVALID_REQUEST,
    SIMULATE_FAILED,
    WALLET_NOT_CONFIGURED,
    WALLET_POLICY_DENIED,
    EngineError,
    invalid,
)
from .._project_files.store import DONE, PLANNED, SENT, Deployment, Store
from . import answers
from .chains import Target, Targets
from .connection import Refused, Unreachable
from .wire_format import to_wire

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from contextlib import AbstractAsyncContextManager
    from typing import Any

    from .._chain.rpc import Node
    from .connection import Engine, Report

    Wire = dict[str, Any]

NOT_SENT = (ARTIFACT_NOT_FOUND, CHAIN_NOT_FOUND, INVALID_REQUEST, WALLET_NOT_CONFIGURED)
"""Failures of an engine that has sent nothing."""
FINAL = (CALL_FAILED, CHAIN_RPC_FAILED, DEPLOY_FAILED, SIMULATE_FAILED, WALLET_POLICY_DENIED)
"""Failures after which nothing was sent, or the transaction has failed. If the engine sets `retry`, it may
have sent the transaction and not waited long enough for its receipt."""

EARLIER_ANSWER_LOST = "the answer to an earlier request was lost"

logger = logging.getLogger("fastrpc")


class Broadcasts:
    """The transactions of a bridge. `folder` holds the locks; `is_local`: the engine runs on this machine."""

    def __init__(self, engine: Engine, store: Store, folder: str, *, is_local: bool) -> None:
        self._engine = engine
        self._store = store
        self._folder = folder
        self._targets = Targets(engine.chains, is_local=is_local)
        self._going: set[asyncio.Task[Any]] = set()
        self._deployed: set[str] | None = None

    # --- deployments ----------------------------------------------------------------------------------

    async def deploy(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Deploy, or return the earlier deployment with the key. Raises EngineError."""
        target = await self._targets.of(given)
        artifact, known_as = await self._engine.artifact(given["contract"], given.get("project_id"))
        plan = deployment_plan.plan_of(given, artifact, target.number)
        wire = {**to_wire("deploy", given), **known_as}
        if plan.create2 is not None:
            wire["create2"] = {"salt": "0x" + plan.create2[0].hex(), "deployer": plan.create2[1]}
        deployment = _Deployment(self, plan, wire, target, given.get("from", ""), report)
        return await self._to_its_end("deploy", deployment.run, deployment)

    def turn(self, target: Target) -> AbstractAsyncContextManager[None]:
        """The lock of the target's chain: one transaction at a time."""
        return transactions.turn(self._folder, target.number, ENGINE_UNAVAILABLE)

    async def _to_its_end(
        self, verb: str, run: Callable[[], Coroutine[Any, Any, dict[str, Any]]], sending: _Sending
    ) -> dict[str, Any]:
        """Run a transaction to its end. If the caller is cancelled before the transaction was sent, it is
        cancelled too. Later it goes on, and the ledger gets its outcome."""
        task = asyncio.ensure_future(run())
        self._going.add(task)
        task.add_done_callback(self._ended)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not sending.is_sent:
                task.cancel()
            elif not task.done():
                logger.warning("tachyon_%s was cancelled after it was sent: the engine goes on", verb)
            raise

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._going.discard(task)
        if not task.cancelled():
            task.exception()  # retrieved, or asyncio would log it if the caller was cancelled

    async def remembered(self, given: dict[str, Any]) -> dict[str, Any] | None:
        """Return the ledger's entry for a key that the engine's registry does not have, or no longer has."""
        if not await self._knows(given["idempotency_key"]):
            return None
        target = await self._targets.of(given)
        line = await self._store.soon(Store.deployment, target.number, given["idempotency_key"])
        if line is None or line.state != DONE:
            return None
        return {
            "found": True,
            "address": line.address,
            "tx_hash": line.tx_hash,
            "contract": line.contract,
            "confirmed": bool(line.receipt),
        }

    async def _knows(self, key_or_address: str) -> bool:
        """Whether this key or address is in the ledger, by a set in memory that is read once. It does not
        include deployments that another server has made since."""
        if self._deployed is None:
            self._deployed = await self._store.soon(Store.deployed)
        return key_or_address in self._deployed

    # --- calls ----------------------------------------------------------------------------------------

    async def call(self, given: dict[str, Any], report: Report) -> dict[str, Any]:
        """Call a method: read, or send a transaction. Raises EngineError."""
        abi, known_as = await self._abi_for(given)
        data, entry = abi_codec.calldata_of(given, abi)
        wire = {**to_wire("call", given), **known_as}
        if given.get("simulate_only") or (entry or {}).get("stateMutability") in ("view", "pure"):
            report("the engine reads")
            found = await self._engine.ask("call", {**wire, "simulate_only": True}, reads=True)
            return _called(found.get("result"), entry, revert=found.get("revert"))
        if "rpc_url" in given:
            raise invalid("chain_id", "a chain, for a transaction", "rpc_url, which is only for reading")
        target = await self._targets.of(given)
        given = {**given, "chain_id": target.id}  # another chain may be active by then
        wire["chain_id"] = given["chain_id"]
        call = _Call(self, given, abi, entry, data, wire, target, report)
        return await self._to_its_end("call", call.run, call)

    async def _abi_for(self, given: dict[str, Any]) -> tuple[Any, dict[str, str]]:
        """Return the ABI in the parameters, else that of the named contract, else that of the contract at the
        address; and the parameters by which the engine finds it."""
        if "abi" in given:
            return given["abi"], {}
        if "contract" in given:
            found, known_as = await self._engine.artifact(given["contract"], given.get("project_id"))
            return found["abi"], known_as
        line = await self._line_at(given)
        if line is not None:
            found, known_as = await self._engine.artifact(line.contract, line.project or None)
            return found["abi"], known_as
        if "method" in given:
            raise EngineError(
                INVALID_REQUEST, "method: give abi or contract too; nothing is known of this address"
            )
        return [], {}

    async def abi_at(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        """The ABI of the contract that this bridge has deployed to an address; empty if it has not."""
        line = await self._line_at(given)
        if line is None:
            return []
        try:
            found, _ = await self._engine.artifact(line.contract, line.project or None)
        except EngineError:
            return []
        abi: list[dict[str, Any]] = found["abi"]
        return abi

    async def explained(
        self, error: EngineError, given: dict[str, Any], abi: list[dict[str, Any]] | None = None
    ) -> EngineError:
        """Return the error of a failed simulation with the revert decoded, if the chain's node can be asked:
        engines pass on only a text."""
        if error.code != SIMULATE_FAILED or "rpc_url" in given:
            return error
        node = await (await self._targets.of(given)).node()
        if node is None:
            return error
        data = _values.bytes_of(given.get("data"))
        sender = given.get("from") or transactions.ZERO
        transaction = transactions.Transaction(sender, given["to"], data, given.get("value", 0))
        known = abi if abi is not None else await self.abi_at(given)
        try:
            block = given.get("block", "latest")
            trial = await self.try_out(node, transaction, known, block=block, refused=SIMULATE_FAILED)
        except EngineError:
            return error
        if trial.revert is None:
            return error
        details = {**(error.details or {}), "revert": trial.revert}
        return EngineError(error.code, trial.revert.get("reason") or error.message, details=details)

    async def try_out(
        self,
        node: Node,
        transaction: transactions.Transaction,
        abi: list[dict[str, Any]],
        *,
        block: str = "latest",
        refused: str,
    ) -> transactions.Trial:
        """Return what a transaction would do, according to the chain's node. Raises EngineError."""
        return await transactions.try_out(node, self._store, transaction, abi, block=block, refused=refused)

    async def _line_at(self, given: dict[str, Any]) -> Deployment | None:
        if "rpc_url" in given or not await self._knows(given["to"]):
            return None
        target = await self._targets.of(given)
        return await self._store.soon(Store.deployment_at, target.number, given["to"])

    # --- for deployments and calls --------------------------------------------------------------------

    async def sender_on(self, target: Target) -> str:
        """The account that the engine has sent from before; "" if it is unknown."""
        return await self._store.soon(Store.sender_on, target.number)

    async def keep(self, line: Deployment) -> None:
        if line.state == DONE and self._deployed is not None:
            self._deployed |= {line.key, line.address}
        await asyncio.to_thread(self._store.put_deployment, line)

    async def forget(self, line: Deployment) -> None:
        await asyncio.to_thread(self._store.drop_deployment, line.chain, line.key)

    async def line_of(self, plan: deployment_plan.Plan) -> Deployment | None:
        return await self._store.soon(Store.deployment, plan.chain, plan.key)

    async def ask(self, verb: str, wire: Wire) -> dict[str, Any]:
        """Send the engine a verb, once."""
        return await self._engine.ask(verb, wire)


class _Sending:
    """A transaction that is being sent. `is_sent`: the engine may have received it."""

    def __init__(self, broadcasts: Broadcasts, target: Target, report: Report) -> None:
        self.broadcasts = broadcasts
        self.target = target
        self.report = report
        self.is_sent = False

    async def check_cap(self, value: int, gas: int | None, cap: int | None) -> None:
        """Refuse a transaction that may cost more than the cap: its value plus, if the chain's node gives the
        price, its gas."""
        if cap is None:
            return
        if value > cap:
            raise EngineError(
                WALLET_POLICY_DENIED,
                f"spend_cap_wei: the value is {value} wei, and the cap is {cap}: nothing was sent",
            )
        node = await self.target.node()
        if node is not None and gas is not None:
            transaction = transactions.Transaction("", "", b"", value)
            await transactions.check_cap(node, transaction, gas + gas // 5, cap)

    async def receipt(self, tx_hash: str | None) -> dict[str, Any] | None:
        """Return the receipt from the chain's node; None if the node cannot be asked or returns an error. The
        transaction was sent, so such an error is not a failure of it."""
        node = await self.target.node() if tx_hash else None
        if node is None or tx_hash is None:
            return None
        try:
            return await transactions.receipt_of(node, tx_hash)
        except (EngineError, RpcError) as error:
            logger.warning("the receipt of %s cannot be read: %s", tx_hash, error)
            return None

    async def has_no_code(self, address: str) -> bool:
        """Whether the chain's node reports that the address has no contract."""
        node = await self.target.node()
        try:
            return node is not None and not await transactions.has_code(node, address)
        except (EngineError, RpcError):
            return False


class _Deployment(_Sending):
    """One request to deploy."""

    def __init__(
        self,
        broadcasts: Broadcasts,
        plan: deployment_plan.Plan,
        wire: Wire,
        target: Target,
        sender: str,
        report: Report,
    ) -> None:
        super().__init__(broadcasts, target, report)
        self.plan = plan
        self.wire = wire
        self.sender = sender
        self.abi: list[dict[str, Any]] = plan.artifact["abi"]

    async def run(self) -> dict[str, Any]:
        async with self.broadcasts.turn(self.target):
            known = await self.broadcasts.line_of(self.plan)
            if known is not None:
                deployment_plan.check_same(known, self.plan, self.sender)
                found = await self._settled(known)
                if found is not None:
                    return self._answer(found, existing=True)
            await self._try()
            line = Deployment(
                self.plan.chain,
                self.plan.key,
                self.plan.fingerprint(self.sender),
                PLANNED,
                self.plan.artifact["project_id"],
                self.plan.contract,
                self.sender,
                deployment_plan.NO_NONCE,
                "",
            )
            await self.broadcasts.keep(line)
            self.is_sent = True
            self.report("the engine deploys")
            return await self._send(line)

    async def _try(self) -> None:
        """Simulate the creation, and check the cap. Raises EngineError for one that would revert."""
        node = await self.target.node()
        gas = None
        if node is not None:
            sender = self.sender or await self.broadcasts.sender_on(self.target)
            transaction = transactions.Transaction(sender or transactions.ZERO, "", self.plan.code)
            trial = await self.broadcasts.try_out(node, transaction, self.abi, refused=DEPLOY_FAILED)
            if trial.revert is not None:
                reason = trial.revert.get("reason", "without a reason")
                raise EngineError(
                    DEPLOY_FAILED,
                    f"the constructor of {self.plan.artifact['name']} reverts: {reason}{_hint(sender)}",
                    details={"revert": trial.revert},
                )
            gas = trial.gas
        await self.check_cap(0, gas, self.plan.cap)

    async def _send(self, line: Deployment) -> dict[str, Any]:
        """Send the deployment to the engine. If its answer is lost, ask its registry once; a creation by
        CREATE2, which cannot happen twice, is then sent again."""
        try:
            data = await self.broadcasts.ask("deploy", self.wire)
        except EngineError as error:
            if not _may_be_sent(error):
                await self.broadcasts.forget(line)
                raise
            await self.broadcasts.keep(line._replace(state=SENT))
            found = await self._registered(line)
            if found is None:
                self._check_repeatable(error)
                found = await self._finished(line, await self.broadcasts.ask("deploy", self.wire))
            return self._answer(found, existing=True)
        existing = data.get("existing") is True
        return self._answer(await self._finished(line, data), existing=existing)

    async def _settled(self, known: Deployment) -> Deployment | None:
        """Return the outcome of a deployment that was begun before; None if it must be sent. Raises
        EngineError if its outcome is unknown."""
        if known.state != DONE:
            found = await self._registered(known)
            if found is None:
                self._check_repeatable(EngineError(ENGINE_UNAVAILABLE, EARLIER_ANSWER_LOST))
            return found
        if await self.has_no_code(known.address):
            await self.broadcasts.forget(known)  # the chain was replaced since
            return None
        return known

    def _check_repeatable(self, error: EngineError) -> None:
        """Raise EngineError unless the deployment may be sent again: only CREATE2 cannot deploy twice."""
        if self.plan.create2 is None:
            raise _unknown(error, self.plan) from None

    async def _registered(self, line: Deployment) -> Deployment | None:
        """Ask the engine's registry once for the key. Return the deployment; None if the registry does not
        have it, or does not answer."""
        lookup = {"idempotency_key": self.plan.key, "chain_id": self.wire["chain_id"]}
        try:
            data = await self.broadcasts.ask("registry_lookup", lookup)
        except EngineError:
            return None
        return await self._finished(line, data) if data["found"] else None

    async def _finished(self, line: Deployment, data: dict[str, Any]) -> Deployment:
        """The ledger's line with its address and receipt. Raises EngineError for a deployment that has
        reverted."""
        address, tx_hash = _address(data.get("address")), _text(data.get("tx_hash"))
        receipt = await self.receipt(tx_hash)
        reverted = receipt is not None and not transactions.succeeded(receipt)
        if reverted or await self.has_no_code(address):
            await self.broadcasts.forget(line)
            raise EngineError(
                DEPLOY_FAILED,
                f"the engine says that {line.contract} is deployed to {address}, and the chain says that "
                + ("its transaction has reverted" if reverted else "there is no code"),
                details={"tx_hash": tx_hash, "address": address},
            )
        short = _receipt(receipt, data, self.abi)
        line = line._replace(
            state=DONE,
            address=address,
            tx_hash=tx_hash or "",
            receipt=json.dumps(short) if short else "",
            sender=_values.checksummed(receipt["from"]) if receipt and "from" in receipt else line.sender,
        )
        await self.broadcasts.keep(line)
        return line

    def _answer(self, line: Deployment, *, existing: bool) -> dict[str, Any]:
        return {**deployment_plan.answer(line, existing=existing), "chain_id": self.target.id}


class _Call(_Sending):
    """One request to call a method with a transaction."""

    def __init__(
        self,
        broadcasts: Broadcasts,
        given: dict[str, Any],
        abi: list[dict[str, Any]],
        entry: dict[str, Any] | None,
        data: bytes,
        wire: Wire,
        target: Target,
        report: Report,
    ) -> None:
        super().__init__(broadcasts, target, report)
        self.given = given
        self.abi = abi
        self.entry = entry
        self.data = data
        self.wire = wire

    async def run(self) -> dict[str, Any]:
        async with self.broadcasts.turn(self.target):
            result = await self._try()
            self.is_sent = True
            self.report("the engine calls")
            try:
                found = await self.broadcasts.ask("call", self.wire)
            except EngineError as error:
                if _may_be_sent(error):
                    raise _unknown(error, None) from None
                raise
            tx_hash = _text(found.get("tx_hash"))
            receipt = await self.receipt(tx_hash)
        short = _receipt(receipt, found, self.abi)
        if short is not None and short.get("status") == "reverted":
            raise EngineError(
                CALL_FAILED,
                f"transaction {tx_hash} has reverted",
                details={"tx_hash": tx_hash, "receipt": short},
            )
        return _called(result, self.entry, tx_hash=tx_hash, receipt=short)

    async def _try(self) -> Any:
        """Simulate the call; return its result. Raises EngineError for one that would revert or cost more
        than its cap."""
        given = self.given
        sender = given.get("from") or await self.broadcasts.sender_on(self.target)
        simulated = {"to": given["to"], "data": "0x" + self.data.hex(), "value": given.get("value", 0)}
        simulated |= {"from": sender} if sender else {}
        simulated |= {"chain_id": given["chain_id"]} if "chain_id" in given else {}
        self.report("the engine simulates")
        try:
            found = await self.broadcasts.ask("simulate", to_wire("simulate", simulated))
        except EngineError as error:
            if error.code != SIMULATE_FAILED:
                raise
            told = await self.broadcasts.explained(error, {**given, "data": simulated["data"]}, self.abi)
            raise _would_revert(told.message, sender, told.details) from None
        if found.get("revert"):
            raise _would_revert(found["revert"], sender, {"revert": found["revert"]})
        gas = found.get("gas_estimate")
        await self.check_cap(
            given.get("value", 0), gas if isinstance(gas, int) else None, given.get("spend_cap_wei")
        )
        return found.get("result")


def _may_be_sent(error: EngineError) -> bool:
    """Whether the engine may have sent the transaction, or may still send it."""
    if isinstance(error, Refused):
        return False
    if isinstance(error, Unreachable):
        return error.was_sent
    return error.code not in NOT_SENT and (error.retry or error.code not in FINAL)


def _unknown(error: EngineError, plan: deployment_plan.Plan | None) -> EngineError:
    """Return the error for a transaction that the engine may have sent."""
    key = "" if plan is None else f" The key {_values.quoted(plan.key)} sends nothing more."
    return EngineError(
        error.code,
        f"outcome unknown: {error.message}. The transaction may have been sent, or not: look at the nonce of "
        f"the {'sender' if plan is None else 'deployer'} before you send it again.{key}",
        details=error.details,
    )


def _would_revert(revert: Any, sender: str, details: dict[str, Any] | None) -> EngineError:
    reason = revert.get("reason") if isinstance(revert, dict) else revert
    return EngineError(
        CALL_FAILED,
        f"the call would revert; nothing was sent: {reason or 'without a reason'}{_hint(sender)}",
        details=details,
    )


def _hint(sender: str) -> str:
    return "" if sender else " (simulated without a sender, since the engine names none: give from)"


def _called(result: Any, entry: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    """The data of a call; `result` is its return value (or, if only simulated, its expected one), as 0x
    text."""
    decoded = None
    if entry is not None and (returned := _values.bytes_of(result)):
        decoded = abi_codec.decode_outputs(entry.get("outputs", []), returned)
    sent = more.get("tx_hash")
    members = {"tx_hash": None, "receipt": None, "revert": None, **more}
    return {"result": None if sent else result, **members, "decoded": decoded}


def _receipt(
    receipt: dict[str, Any] | None, data: dict[str, Any], abi: list[dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the short form of the node's receipt, else the receipt in the engine's data, else None."""
    if receipt is not None:
        return transactions.short_receipt(receipt, abi)
    found = data.get("receipt")
    return found if isinstance(found, dict) else None


def _address(value: Any) -> str:
    try:
        return _values.address("address", value)
    except EngineError:
        raise answers.protocol_error(f"sent an invalid address: {_values.quoted(value)}") from None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None

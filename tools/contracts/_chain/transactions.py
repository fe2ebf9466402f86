"""Sends transactions to a chain and waits for their receipts; simulates them first.

`try_out` simulates a transaction first: one that would revert is refused with the content of the revert, and
nothing is sent. The receipt decides about a sent transaction: a reverted one is an error, not a result. Only
the local chain's own accounts send; no key is handled here. `deployments` and the ledger decide who may
broadcast, and that it happens once.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from typing import NamedTuple

from .._errors import (
    CHAIN_RPC_FAILED,
    WALLET_NOT_CONFIGURED,
    WALLET_POLICY_DENIED,
    EngineError,
)
from .._project_files.held_lock import hold
from .._values import checksummed
from . import abi as abi_codec
from .rpc import Node, RpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager
    from typing import Any

    from .._project_files.store import Store

ZERO = "0x" + "0" * 40
"""The sender of a transaction that is only simulated, if no other is known."""
TURN_SECONDS = 100.0
RECEIPT_SECONDS = 45.0  # less than a call may take
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.005, 0.5
HALTS = re.compile(
    r"evm error|vm (execution )?error|out of ?gas|invalid (fe)?opcode|invalid jump|stack (under|over)flow"
    r"|max code size exceeded",
    re.IGNORECASE,
)
"""The messages of nodes for code that stopped without a revert, which is a failed transaction too."""


MOST_GAS = 30_000_000
"""The gas limit of a block of the local chain."""
MOST_LOGS = 500
"""The most events of a receipt that are shown."""


class Transaction(NamedTuple):
    """A transaction to send. `to` is empty for a contract's creation."""

    sender: str
    to: str
    data: bytes
    value: int = 0

    def fields(self) -> dict[str, str]:
        found = {"from": self.sender, "data": "0x" + self.data.hex(), "value": hex(self.value)}
        return {**found, "to": self.to} if self.to else found


class Trial(NamedTuple):
    """The effect of a transaction: `revert` is the content of its revert, None if it would succeed."""

    result: bytes = b""
    gas: int = 0
    revert: dict[str, Any] | None = None


def turn(folder: str, chain: str, late: str) -> AbstractAsyncContextManager[None]:
    """The lock of a chain, by its number. All servers that share `folder` send one transaction at a time on
    it, since concurrent ones race for the nonce. Raises EngineError(`late`) if others hold it for too
    long."""
    error = EngineError(late, "others are broadcasting on this chain", retry=True)
    path = os.path.join(folder, f"broadcast-{chain}.lock")
    return hold(path, time.monotonic() + TURN_SECONDS, error)


async def sender_of(node: Node, asked: str | None) -> str:
    """The account that sends: the requested one, else the first. Raises EngineError if the node does not hold
    it, or holds no account."""
    try:
        accounts = [checksummed(each) for each in await node.request("eth_accounts")]
    except RpcError:
        accounts = []
    if asked is None and accounts:
        return accounts[0]
    if asked not in accounts:
        some = f"; it has {', '.join(accounts[:3])} and more" if accounts else ""
        raise EngineError(
            WALLET_NOT_CONFIGURED, f"from: this chain has no unlocked account {asked or ''}{some}"
        )
    return asked


async def try_out(
    node: Node,
    store: Store,
    transaction: Transaction,
    abi: list[dict[str, Any]],
    *,
    block: str = "latest",
    refused: str,
) -> Trial:
    """Simulate the transaction in a block. Raises EngineError; its code is `refused` if the node has not even
    tried, because the block does not exist or the ether does not suffice. `abi` is that of the contract; the
    store has the errors of other contracts that it calls."""
    fields = transaction.fields()
    try:
        result = await node.data("eth_call", fields, block)
        gas = await node.number("eth_estimateGas", fields, block)
    except RpcError as error:
        if not _is_outcome(error):
            raise EngineError(refused, refusal(error), retry=error.retry) from None
        return Trial(revert={"reason": error.message, **await _decoded(error.data or b"", abi, store)})
    return Trial(result=result, gas=gas)


async def _decoded(revert: bytes, abi: list[dict[str, Any]], store: Store) -> dict[str, Any]:
    """The content of a revert. An error that the contract does not declare may be one of a contract that it
    calls."""
    found = abi_codec.decode_revert(revert, abi)
    if "error" in found or len(revert) < 4:
        return found
    return abi_codec.decode_revert(revert, await asyncio.to_thread(store.errors))


def _is_outcome(error: RpcError) -> bool:
    """Whether the transaction has run, to a revert or a halt."""
    reverted = error.data is not None or error.code == 3 or "revert" in error.message.lower()
    return reverted or HALTS.search(error.message) is not None


def refusal(error: RpcError) -> str:
    return f"the chain's node refuses this: {error.message}"


def with_margin(gas: int) -> int:
    """The gas limit to send: the estimate plus a fifth, up to a block's limit."""
    return max(gas, min(gas + gas // 5, MOST_GAS))


async def check_cap(node: Node, transaction: Transaction, gas: int, cap: int | None) -> None:
    """Refuse a transaction that may cost more than the cap: its value and its gas at today's price."""
    if cap is None:
        return
    price = await node.number("eth_gasPrice")
    most = transaction.value + gas * price
    if most > cap:
        raise EngineError(
            WALLET_POLICY_DENIED,
            f"spend_cap_wei: this may cost {most} wei, and the cap is {cap}: nothing was sent",
        )


async def send(node: Node, transaction: Transaction, gas: int, nonce: int) -> str:
    """Send a transaction and return its hash. Raises RpcError if the node refuses it, and EngineError if it
    may have been sent."""
    fields = {**transaction.fields(), "gas": hex(gas), "nonce": hex(nonce)}
    found: str = await node.request("eth_sendTransaction", fields)
    return found


async def receipt_of(node: Node, tx_hash: str) -> dict[str, Any]:
    """Wait for the receipt of a transaction. Raises EngineError when it does not come in time."""
    deadline, pause = time.monotonic() + RECEIPT_SECONDS, FIRST_PAUSE_SECONDS
    while True:
        receipt: dict[str, Any] | None = await node.request("eth_getTransactionReceipt", tx_hash)
        if receipt is not None:
            return receipt
        if time.monotonic() > deadline:
            raise EngineError(
                CHAIN_RPC_FAILED,
                f"transaction {tx_hash} was sent and is in no block after {RECEIPT_SECONDS:.0f} s",
                details={"tx_hash": tx_hash},
            )
        await asyncio.sleep(pause)
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def succeeded(receipt: dict[str, Any]) -> bool:
    return int(receipt.get("status", "0x0"), 16) == 1


def short_receipt(receipt: dict[str, Any], abi: list[dict[str, Any]]) -> dict[str, Any]:
    """The parts of a receipt that callers need."""
    logs = receipt.get("logs") or []
    short = {
        "status": "success" if succeeded(receipt) else "reverted",
        "block_number": int(receipt["blockNumber"], 16),
        "gas_used": int(receipt["gasUsed"], 16),
        "logs": abi_codec.decode_logs(logs[:MOST_LOGS], abi),
    }
    return {**short, "logs_left_out": len(logs) - MOST_LOGS} if len(logs) > MOST_LOGS else short


async def nonce_of(node: Node, account: str) -> int:
    return await node.number("eth_getTransactionCount", account, "pending")


async def has_code(node: Node, address: str) -> bool:
    return bool(await node.data("eth_getCode", address, "latest"))


def created_address(sender: str, nonce: int) -> str:
    """The address of a contract that an account creates: the last 20 bytes of keccak(rlp([sender, nonce]))
    (Ethereum Yellow Paper, section 7)."""
    from eth_hash.auto import keccak

    number = nonce.to_bytes((nonce.bit_length() + 7) // 8, "big")
    tail = number if len(number) == 1 and number[0] < 0x80 else bytes([0x80 + len(number)]) + number
    body = b"\x94" + bytes.fromhex(sender[2:]) + tail
    return checksummed("0x" + keccak(bytes([0xC0 + len(body)]) + body)[12:].hex())


def created2_address(deployer: str, salt: bytes, code: bytes) -> str:
    """The address of a contract that CREATE2 makes (EIP-1014)."""
    from eth_hash.auto import keccak

    body = b"\xff" + bytes.fromhex(deployer[2:]) + salt + keccak(code)
    return checksummed("0x" + keccak(body)[12:].hex())

"""A stand-in for the node of a chain, in the test's own loop: JSON-RPC over HTTP, each result as scripted.

    async with Node() as node:              # node.url
        node.results["eth_getTransactionReceipt"] = receipt(status="0x0")

What a method is not scripted for is answered as a quiet chain with one contract would; a result that is a
`Failure` is answered by an error, and NONSENSE by what is no JSON-RPC. `node.asked` are the methods that were
asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any, NamedTuple

from support.standin_engine import COUNTER_RUNTIME, NUMBER, hash_of

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
SENDER = "0x" + "7" * 40
BLOCK = {"number": "0x10", "baseFeePerGas": "0x7", "timestamp": "0x0", "gasLimit": "0x1c9c380"}


NONSENSE = "what is no answer"


class Failure(NamedTuple):
    """An error of the node. `data`: the bytes of a revert."""

    code: int
    message: str
    data: bytes | None = None

    def shown(self) -> dict[str, Any]:
        found: dict[str, Any] = {"code": self.code, "message": self.message}
        return found if self.data is None else {**found, "data": f"0x{self.data.hex()}"}


def receipt(tx_hash: str = hash_of(1), **other: Any) -> dict[str, Any]:
    """A receipt as a node has it: of a transaction that has succeeded, but for `other`."""
    return {
        "transactionHash": tx_hash,
        "status": "0x1",
        "blockNumber": "0x10",
        "gasUsed": "0xa7d8",
        "logs": [],
        **other,
    }


class Node:
    """A node at a URL of this machine."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.results: dict[str, Any] = {
            "eth_accounts": [SENDER],
            "eth_blockNumber": "0x10",
            "eth_call": "0x",
            "eth_chainId": hex(NUMBER),
            "eth_estimateGas": "0xa7d8",
            "eth_gasPrice": "0x3b9aca00",
            "eth_getBlockByNumber": BLOCK,
            "eth_getCode": "0x" + COUNTER_RUNTIME,
            "eth_getTransactionCount": "0x0",
            "eth_getTransactionReceipt": receipt,
        }
        """The result of each method, or a function of its parameters."""
        self._server: asyncio.Server | None = None

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    async def __aenter__(self) -> Node:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(self, *exception: Any) -> None:
        assert self._server is not None
        self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"content-length:")[2].split(b"\r\n")[0])
                body = json.dumps(self._answer(json.loads(await reader.readexactly(length)))).encode()
                writer.write(HEAD % len(body) + body)
                await writer.drain()
        writer.close()

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        method = message["method"]
        self.asked.append(method)
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
        if method not in self.results:
            return {**answer, "error": {"code": -32601, "message": f"no method {method}"}}
        found = self.results[method]
        if callable(found):
            found = found(*message.get("params", ()))
        if found == NONSENSE:
            return {}
        if isinstance(found, Failure):
            return {**answer, "error": found.shown()}
        return {**answer, "result": found}

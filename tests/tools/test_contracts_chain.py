"""Chains and their nodes: what a node may answer, what the ledger makes of it, how the local chain is kept.

Nodes of the test's own loop answer as scripted (`support.standin_node`); anvil is the real one.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.contracts._chain import rpc
from fastrpc.tools.contracts._chain.deployment_plan import Plan
from fastrpc.tools.contracts._chain.rpc import RpcError
from fastrpc.tools.contracts._embedded import deployments, local_chain
from fastrpc.tools.contracts._errors import EngineError
from fastrpc.tools.contracts._project_files import held_lock
from fastrpc.tools.contracts._project_files.store import PLANNED, Store
from support.contracts import needs
from support.contracts_session import Session, in_loop, processes_in
from support.dripping import Dripping
from support.standin_node import NONSENSE, SENDER, Failure, Node
from support.waiting import SECONDS, eventually

from fastrpc import egress_proxy, processes

COUNTER = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
contract Counter {
    uint256 public value;
    constructor(uint256 v) { value = v; }
    function set(uint256 v) external { value = v; }
}
"""
ARTIFACT = {"name": "A", "path": "a.sol", "project_id": "p", "abi": [], "bytecode": "0x00"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    eventually(lambda: not processes_in(tmp_path))  # no program outlives its server


# ---------------------------------------------------------------------------------- nodes


@pytest.mark.parametrize("begins", ["", "HTTP/1.1 200 OK\r\n\r\n"])
def test_a_node_that_answers_byte_by_byte_is_given_up(begins: str) -> None:
    async def ask(url: str) -> None:
        node = rpc.Node(url, is_local=True)
        try:
            await asyncio.wait_for(node.request("eth_chainId", seconds=0.3), SECONDS)
        finally:
            await node.close()

    with Dripping(begins) as server, pytest.raises(EngineError, match="did not answer in time"):
        asyncio.run(ask(server.url))


@in_loop
async def test_what_a_node_answers_is_a_result_a_refusal_or_nonsense(folder: Path) -> None:
    networks = {"FASTRPC_CONTRACTS_NETWORKS": "127.0.0.0/8"}
    async with Session(folder, **networks) as session, Node() as node:
        given = {"to": "0x" + "11" * 20, "rpc_url": node.url}
        at_once = await asyncio.gather(*(session.data("simulate", **given) for _ in range(5)))
        assert [each["gas_estimate"] for each in at_once] == [int("0xa7d8", 16)] * 5
        for answer, code, retry in (
            (Failure(-32000, "header not found"), "SIMULATE_FAILED", False),
            (Failure(-32000, "gas required exceeds allowance (0)"), "SIMULATE_FAILED", False),
            (Failure(-32005, "limit exceeded"), "SIMULATE_FAILED", True),
            ("0xz", "CHAIN_RPC_FAILED", False),
            (None, "CHAIN_RPC_FAILED", False),
            ({}, "CHAIN_RPC_FAILED", False),
            (NONSENSE, "CHAIN_RPC_FAILED", False),
        ):
            node.results["eth_call"] = answer
            error = await session.error("simulate", **given)
            assert (error["code"], error["retry"]) == (code, retry)
        for reverted in (
            Failure(3, "execution reverted", b""),
            Failure(-32000, "out of gas"),
            Failure(-32015, "VM execution error.", b"\1"),
        ):
            node.results["eth_call"] = reverted
            assert (await session.data("simulate", **given))["revert"]["reason"] == reverted.message
        await node.__aexit__()
        error = await session.error("simulate", **given)
        assert (error["code"], error["retry"]) == ("CHAIN_RPC_FAILED", True)


@in_loop
async def test_requests_at_once_make_one_connection_by_one_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    started = []
    start = egress_proxy.EgressProxy.start

    async def counted(proxy: Any) -> Any:
        started.append(proxy)
        await asyncio.sleep(0)
        return await start(proxy)

    monkeypatch.setattr(egress_proxy.EgressProxy, "start", counted)
    monkeypatch.setenv("FASTRPC_CONTRACTS_NETWORKS", "127.0.0.0/8")
    async with Node() as there:
        node = rpc.Node(there.url, is_local=False)
        await asyncio.gather(*(node.number("eth_chainId") for _ in range(5)))
        await node.close()
    assert len(started) == 1


@in_loop
async def test_a_node_that_is_being_asked_keeps_its_connection_whatever_others_are_used() -> None:
    may_answer = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        await may_answer.wait()
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "result": "0x7"}).encode()
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % len(body) + body)

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
    nodes = rpc.Nodes()
    node = await nodes.at(url, is_local=True)
    asking = asyncio.ensure_future(node.number("eth_chainId"))
    await asyncio.sleep(0)
    others = [f"http://node{number}.example/" for number in range(2 * rpc.MOST_NODES)]
    first, *_ = [await nodes.at(other, is_local=False) for other in others]
    assert await nodes.at(others[0], is_local=False) is not first
    assert await nodes.at(url, is_local=True) is node
    may_answer.set()
    assert await asking == 7
    await node.close()
    server.close()


@in_loop
async def test_a_deployment_that_the_node_refuses_frees_its_key_and_one_without_answer_keeps_it(
    tmp_path: Path,
) -> None:
    store = Store(str(tmp_path))
    plan = Plan("1", "key", ARTIFACT, b"\0", None, None)
    async with Node() as there:
        node = rpc.Node(there.url, is_local=True)
        there.results["eth_sendTransaction"] = Failure(-32003, "nonce too low")
        with pytest.raises(RpcError):
            await deployments.deploy(node, store, plan, SENDER)
        assert store.deployment("1", "key") is None
        there.results["eth_sendTransaction"] = NONSENSE
        with pytest.raises(EngineError) as caught:
            await deployments.deploy(node, store, plan, SENDER)
        assert caught.value.code == "CHAIN_RPC_FAILED"
        line = store.deployment("1", "key")
        assert line is not None
        assert line.state == PLANNED
        there.results["eth_getCode"] = "0x"  # nothing was sent, as the account's nonce says
        there.results["eth_sendTransaction"] = Failure(-32003, "nonce too low")
        with pytest.raises(RpcError):
            await deployments.deploy(node, store, plan, SENDER)
        await node.close()


# ---------------------------------------------------------------------------------- the local chain


SHORT_MEMORY = """
import sys
from fastrpc.tools.contracts._embedded import local_chain
from fastrpc.__main__ import main
local_chain.BLOCKS = 4
sys.exit(main(["serve", "fastrpc.tools.contracts"]))
"""
"""A server whose chain keeps four blocks of its past."""


@needs("solc")
@needs("anvil")
@in_loop
async def test_a_chain_that_forgets_its_past_does_not_grow_and_deploys_nothing_twice(folder: Path) -> None:
    async with Session(folder, [sys.executable, "-c", SHORT_MEMORY]) as session:
        await session.data("compile", sources={"src/Counter.sol": COUNTER})
        first = await session.deploy("k")
        for value in range(8):
            await session.data("call", to=first["address"], method="set", args=[value])
        (file,) = (folder / "state").glob("contracts/*/anvil.json")
        assert len(json.loads(file.read_text())["transactions"]) <= 4
        names = {"anvil.json", "anvil.lock", "anvil.port", "broadcast-31337.lock", "contracts.sqlite3"}
        assert {each.name for each in file.parent.iterdir()} == names
        sent = "UPDATE deployments SET state = 'sent', receipt = ''"
        with sqlite3.connect(file.with_name("contracts.sqlite3")) as base:
            base.execute(sent)  # as a server leaves it that is killed before it has the receipt
        base.close()
        again = await session.deploy("k")
        assert (again["address"], again["existing"], again["receipt"]) == (first["address"], True, None)


@needs("anvil")
@in_loop
async def test_what_a_killed_server_has_begun_to_write_is_removed(tmp_path: Path) -> None:
    old, new = tmp_path / "anvil.json.abc", tmp_path / "anvil.json.def"
    for each in (old, new):
        each.write_text("{")
    os.utime(old, (0, 0))
    chain = local_chain.LocalChain(str(tmp_path))
    try:
        await chain.node()
        assert (old.exists(), new.exists()) == (False, True)
    finally:
        await processes.close()


@in_loop
async def test_a_chain_that_cannot_be_started_is_left_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "anvil"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("FASTRPC_CONTRACTS_ANVIL", str(program))
    with pytest.raises(EngineError, match="anvil, cannot be started") as caught:
        await local_chain.LocalChain(str(tmp_path)).node()
    assert caught.value.code == "CHAIN_RPC_FAILED"
    late = AssertionError("the lock is held")
    async with held_lock.hold(str(tmp_path / "anvil.lock"), 0.0, late):
        pass
    await processes.close()

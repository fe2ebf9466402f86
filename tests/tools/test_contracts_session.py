"""A session of an agent with the contracts toolset: a real server, real solc, forge and anvil."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest
from support.contracts import needs
from support.waiting import until

from fastrpc import Client

pytestmark = [needs("solc"), needs("anvil")]

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLE = os.path.join(REPOSITORY, "examples", "contracts_session.py")
SERVER = [sys.executable, "-m", "fastrpc", "serve", "fastrpc.tools.contracts"]
COUNTER = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

contract Counter {
    error TooMuch(uint256 most);
    event Set(address indexed by, uint256 value);
    uint256 public value;

    constructor(uint256 v) { require(v < 1000, "too large"); value = v; }

    function set(uint256 v) external {
        if (v == 13) revert TooMuch(12);
        value = v;
        emit Set(msg.sender, v);
    }
    function big() external pure returns (uint256, int256) { return (type(uint256).max, -5); }
}
"""
SECONDS = 100
BIG = "123456789012345678901234567890"


class Session:
    """A client of a server of its own, in a project folder."""

    def __init__(self, folder: Path) -> None:
        env = {**os.environ, "FASTRPC_STATE_DIR": str(folder / "state")}
        self.client = Client(SERVER, cwd=str(folder), env=env)

    async def __aenter__(self) -> Session:
        await self.client.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> None:
        await self.client.__aexit__(*error)

    async def data(self, verb: str, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(f"tachyon_{verb}", arguments)
        assert not result.is_error, result.text
        envelope = json.loads(result.text)
        assert envelope == result.structured
        assert envelope["ok"] is True
        found: dict[str, Any] = envelope["data"]
        return found

    async def error(self, verb: str, **arguments: Any) -> dict[str, Any]:
        result = await self.client.call_tool(f"tachyon_{verb}", arguments)
        assert result.is_error, result.text
        envelope = json.loads(result.text)
        assert (envelope["ok"], envelope["tool"]) == (False, f"tachyon_{verb}")
        found: dict[str, Any] = envelope["error"]
        return found

    async def deploy(self, key: str, value: Any = 7, **more: Any) -> dict[str, Any]:
        return await self.data(
            "deploy",
            idempotency_key=key,
            chain_id="local",
            contract="Counter",
            constructor_args=[value],
            **more,
        )


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test's coroutine in an event loop of its own, within a time."""

    @wraps(test)
    def run(**given: Any) -> None:
        asyncio.run(asyncio.wait_for(test(**given), SECONDS))

    return run


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    assert not processes_in(tmp_path), "a program has outlived its server"


def processes_in(folder: Path) -> list[int]:
    """The processes that were started for a folder: its path is their working directory."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if os.readlink(f"/proc/{entry}/cwd").startswith(str(folder)):
                    found.append(int(entry))
            except OSError:
                continue
    return found


@in_loop
async def test_from_a_source_text_to_a_called_contract_and_on_after_a_restart(folder: Path) -> None:
    async with Session(folder) as session:
        made = await session.data("compile", sources={"src/Counter.sol": COUNTER})
        assert [each["name"] for each in made["artifacts"]] == ["Counter"]
        assert made["artifacts"][0]["bytecode"].startswith("0x60")
        first = await session.deploy("counter-1")
        assert first["existing"] is False
        assert first["receipt"]["status"] == "success"
        again = await session.deploy("counter-1")
        assert again == {**first, "existing": True}
        assert (await session.deploy("counter-2"))["address"] != first["address"]
        to = first["address"]
        assert (await session.data("call", to=to, method="value"))["decoded"] == "7"
        done = await session.data("call", to=to, method="set", args=[BIG])
        assert done["receipt"]["logs"][0]["args"]["value"] == BIG
        assert (await session.data("call", to=to, method="value"))["decoded"] == BIG
        most = str(2**256 - 1)
        assert (await session.data("call", to=to, method="big"))["decoded"] == [most, "-5"]
    async with Session(folder) as session:  # the chain is as it was left
        looked = await session.data("registry_lookup", idempotency_key="counter-1", chain_id="31337")
        assert (looked["found"], looked["address"], looked["confirmed"]) == (True, to, True)
        assert (await session.data("call", to=to, method="value"))["decoded"] == BIG
        assert (await session.deploy("counter-1"))["existing"] is True


@in_loop
async def test_what_would_revert_is_told_and_not_sent(folder: Path) -> None:
    async with Session(folder) as session:
        await session.data("compile", sources={"src/Counter.sol": COUNTER})
        to = (await session.deploy("k"))["address"]
        selector = "0x60fe47b1" + (13).to_bytes(32, "big").hex()
        simulated = await session.data("simulate", to=to, data=selector, trace=True)
        assert simulated["revert"]["reason"] == "TooMuch(most=12)"
        assert simulated["result"] is None
        assert simulated["trace"]["error"]
        error = await session.error("call", to=to, method="set", args=[13])
        assert error["code"] == "CALL_FAILED"
        assert "nothing was sent: TooMuch(most=12)" in error["message"]
        error = await session.error(
            "deploy", idempotency_key="k2", chain_id="local", contract="Counter", constructor_args=[5000]
        )
        assert (error["code"], "too large" in error["message"]) == ("DEPLOY_FAILED", True)
        assert (await session.data("registry_lookup", idempotency_key="k2", chain_id="local"))[
            "found"
        ] is False
        assert (await session.deploy("k2", 5))["existing"] is False  # the key is still free


@in_loop
async def test_what_a_chain_has_lost_is_deployed_again_to_the_same_address(folder: Path) -> None:
    async with Session(folder) as session:
        await session.data("compile", sources={"src/Counter.sol": COUNTER})
        first = await session.deploy("k")
    (state,) = (folder / "state").glob("contracts/*/anvil.json")
    state.unlink()
    async with Session(folder) as session:
        again = await session.deploy("k")
        assert (again["address"], again["existing"]) == (first["address"], False)
        assert (await session.data("call", to=first["address"], method="value"))["decoded"] == "7"


@in_loop
async def test_a_key_stands_for_one_deployment_alone(folder: Path) -> None:
    async with Session(folder) as session:
        await session.data("compile", sources={"src/Counter.sol": COUNTER})
        await session.deploy("k", 1)
        error = await session.error(
            "deploy", idempotency_key="k", chain_id="local", contract="Counter", constructor_args=[2]
        )
        assert (error["code"], error["message"][:15]) == ("INVALID_REQUEST", "idempotency_key")


@in_loop
async def test_six_deployments_at_once_have_six_addresses_and_one_key_has_one(folder: Path) -> None:
    async with Session(folder) as session:
        await session.data("compile", sources={"src/Counter.sol": COUNTER})
        six = await asyncio.gather(*(session.deploy(f"k{number}", number) for number in range(6)))
        assert len({each["address"] for each in six}) == 6
        same = await asyncio.gather(*(session.deploy("same") for _ in range(6)))
        assert len({each["address"] for each in same}) == 1
        assert sorted(each["existing"] for each in same) == [False, True, True, True, True, True]


@in_loop
async def test_two_servers_of_a_project_share_its_chain(folder: Path) -> None:
    async with Session(folder) as one, Session(folder) as other:
        await one.data("compile", sources={"src/Counter.sol": COUNTER})
        six = await asyncio.gather(
            *(each.deploy(f"{n}-{i}") for n, each in enumerate((one, other)) for i in range(3))
        )
        assert len({each["address"] for each in six}) == 6
        await other.data("call", to=six[0]["address"], method="set", args=[99])
        assert (await one.data("call", to=six[0]["address"], method="value"))["decoded"] == "99"


@in_loop
async def test_create2_finds_what_is_there(folder: Path) -> None:
    salt = {"salt": "0x" + "11" * 32}
    async with Session(folder) as session:
        await session.data("compile", sources={"src/Counter.sol": COUNTER})
        first = await session.deploy("a", create2=salt)
        second = await session.deploy("b", create2=salt)
        assert (second["address"], second["existing"]) == (first["address"], True)


@in_loop
async def test_a_cap_that_is_too_low_refuses_before_anything_is_sent(folder: Path) -> None:
    async with Session(folder) as session:
        await session.data("compile", sources={"src/Counter.sol": COUNTER})
        arguments = {
            "idempotency_key": "k",
            "chain_id": "local",
            "contract": "Counter",
            "constructor_args": [1],
        }
        error = await session.error("deploy", **arguments, spend_cap_wei="1000")
        assert (error["code"], "nothing was sent" in error["message"]) == ("WALLET_POLICY_DENIED", True)
        error = await session.error("deploy", **arguments, spend_cap_wei="much")
        assert (error["code"], error["message"][:13]) == ("INVALID_REQUEST", "spend_cap_wei")


@in_loop
async def test_errors_of_the_compiler_say_where(folder: Path) -> None:
    async with Session(folder) as session:
        broken = COUNTER.replace("value = v;", "valu = v;", 1)
        error = await session.error("compile", sources={"src/Counter.sol": broken})
        assert error["code"] == "COMPILER_SOLC_FAILED"
        (found,) = error["details"]["diagnostics"]
        assert (found["path"], found["line"], found["severity"]) == ("src/Counter.sol", 10, "error")


@pytest.mark.parametrize(
    ("verb", "arguments", "said"),
    [
        ("deploy", {"idempotency_key": "k", "chain_id": "moon", "contract": "A"}, "CHAIN_NOT_FOUND"),
        ("deploy", {"idempotency_key": "k", "chain_id": "local", "contract": "A"}, "ARTIFACT_NOT_FOUND"),
        (
            "call",
            {"to": "hello", "method": "x"},
            'to: expected an address (0x and 40 hex digits), got "hello"',
        ),
        ("artifact_get", {"nam": "A"}, "did you mean name?"),
        ("chain_register", {"id": "local", "rpc_url": "http://x", "chain_id": 1}, "the local chain"),
    ],
)
@in_loop
async def test_mistakes_are_named(verb: str, arguments: dict[str, Any], said: str, folder: Path) -> None:
    async with Session(folder) as session:
        error = await session.error(verb, **arguments)
        assert said in f"{error['code']} {error['message']}"


@in_loop
async def test_a_registered_chain_is_kept_masked_and_never_broadcast_to(folder: Path) -> None:
    url = "https://user:secret@node.example/v3/0123456789abcdef0123"
    async with Session(folder) as session:
        await session.data("compile", sources={"src/Counter.sol": COUNTER})
        shown = await session.data("chain_register", id="sepolia", rpc_url=url, chain_id=11155111)
        assert "secret" not in json.dumps(shown)
        error = await session.error(
            "deploy", idempotency_key="k", chain_id="sepolia", contract="Counter", constructor_args=[1]
        )
        assert error["code"] == "WALLET_NOT_CONFIGURED"
    async with Session(folder) as session:
        listed = await session.data("chain_list")
        assert [each["id"] for each in listed["chains"]] == ["local", "sepolia"]
        assert "secret" not in json.dumps(listed)


@in_loop
async def test_an_rpc_url_may_not_lead_into_the_machine(folder: Path) -> None:
    async with Session(folder) as session:
        error = await session.error("simulate", to="0x" + "11" * 20, rpc_url="http://127.0.0.1:9/")
        assert error["code"] == "CHAIN_RPC_FAILED"


@in_loop
async def test_large_artifacts_are_resources(folder: Path) -> None:
    body = "".join(f"function f{n}() external pure returns (uint256) {{ return {n}; }}" for n in range(150))
    source = f"// SPDX-License-Identifier: MIT\npragma solidity ^0.8.0;\ncontract Large {{ {body} }}"
    async with Session(folder) as session:
        made = await session.data("compile", sources={"src/Large.sol": source})
        (artifact,) = made["artifacts"]
        assert "bytecode" not in artifact
        assert artifact["resource"] == "contracts://default/src/Large.sol:Large"
        read = await session.client.read_resource(artifact["resource"])
        whole = json.loads(read.text)
        assert len(whole["abi"]) == 150
        assert whole["bytecode"].startswith("0x60")


@in_loop
async def test_prompts_say_how_to_go_about_it(folder: Path) -> None:
    async with Session(folder) as session:
        listed = [prompt["name"] for prompt in await session.client.list_prompts()]
        assert listed == ["write_contract", "review_contract", "deploy_safely"]
        prompt = await session.client.get_prompt("deploy_safely", {"contract": "Counter"})
        assert "counter-v1-local" in prompt.messages[0]["content"]["text"]


@in_loop
async def test_a_killed_server_leaves_no_program_and_no_deployment_is_lost(folder: Path) -> None:
    async with Session(folder) as session:
        await session.data("compile", sources={"src/Counter.sol": COUNTER})
        first = await session.deploy("k")
        assert processes_in(folder)
        process: Any = session.client._transport._process  # type: ignore[union-attr]
        assert process.pid > 0
        os.kill(process.pid, signal.SIGKILL)
        await until(lambda: not processes_in(folder))
    async with Session(folder) as session:
        assert await session.deploy("k") == {**first, "existing": True}


@needs("forge")
@in_loop
async def test_tests_run_and_fail_with_their_reasons(folder: Path) -> None:
    test = """
    // SPDX-License-Identifier: MIT
    pragma solidity ^0.8.20;
    import {Test} from "forge-std/Test.sol";
    import {Counter} from "../src/Counter.sol";
    contract CounterTest is Test {
        function test_right() external { assertEq(new Counter(7).value(), 7); }
        function test_wrong() external { assertEq(new Counter(7).value(), 8, "not eight"); }
    }
    """
    sources = {"src/Counter.sol": COUNTER, "test/Counter.t.sol": test}
    async with Session(folder) as session:
        error = await session.error("test", sources=sources)
        assert error["code"] == "TEST_ASSERTION_FAILED"
        assert (error["details"]["passed"], error["details"]["failed"]) == (1, 1)
        assert "not eight" in error["message"]
        done = await session.data("test", sources=sources, filter="test_right")
        assert (done["passed"], done["failed"]) == (1, 0)


def test_the_example_goes_from_a_source_text_to_a_called_contract(folder: Path) -> None:
    env = {**os.environ, "FASTRPC_STATE_DIR": str(folder / "state")}
    done = subprocess.run([sys.executable, EXAMPLE], env=env, capture_output=True, text=True, timeout=SECONDS)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("deployed to 0x")
    assert "'decoded': '12'" in lines[1]
    assert lines[2] == "refused: the call would revert; nothing was sent: TooMuch(most=10)"

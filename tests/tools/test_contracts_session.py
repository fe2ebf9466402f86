"""A session of an agent with the contracts toolset: a real server, real solc, forge and anvil."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.agent._front_matter import split
from fastrpc.tools.contracts import _errors
from support.contracts import needs
from support.contracts_session import SECONDS, Session, Stage, in_loop, on_stage, processes_in
from support.waiting import eventually, until

pytestmark = [needs("solc"), needs("anvil")]

REPOSITORY = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
EXAMPLE = os.path.join(REPOSITORY, "examples", "contracts_session.py")
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
CALLER = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
interface ISet { function set(uint256) external; }
contract Caller { function pass(ISet to, uint256 v) external { to.set(v); } }
"""
BIG = "123456789012345678901234567890"


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    yield tmp_path
    eventually(lambda: not processes_in(tmp_path))  # no program outlives its server


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("stage")
    with Stage(folder, {"src/Counter.sol": COUNTER, "src/Caller.sol": CALLER}) as stage:
        yield stage
    eventually(lambda: not processes_in(folder))  # no program outlives its server


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


@on_stage
async def test_what_would_revert_is_reported_and_not_sent(stage: Stage) -> None:
    session = stage.session
    to = (await stage.deploy())["address"]
    selector = "0x60fe47b1" + (13).to_bytes(32, "big").hex()
    simulated = await session.data("simulate", to=to, data=selector, trace=True)
    assert simulated["revert"]["reason"] == "TooMuch(most=12)"
    assert simulated["result"] is None
    assert simulated["trace"]["error"]
    error = await session.error("call", to=to, method="set", args=[13])
    assert error["code"] == "CALL_FAILED"
    assert "nothing was sent: TooMuch(most=12)" in error["message"]
    error = await session.error(
        "deploy",
        idempotency_key=stage.key + "-2",
        chain_id="local",
        contract="Counter",
        constructor_args=[5000],
    )
    assert (error["code"], "too large" in error["message"]) == ("DEPLOY_FAILED", True)
    assert (await session.data("registry_lookup", idempotency_key=stage.key + "-2", chain_id="local"))[
        "found"
    ] is False
    assert (await session.deploy(stage.key + "-2", 5))["existing"] is False  # the key is still free


@on_stage
async def test_an_error_of_a_contract_that_is_called_is_decoded_too(stage: Stage) -> None:
    session = stage.session
    counter = (await stage.deploy())["address"]
    to = (await stage.deploy("-2", contract="Caller", constructor_args=[]))["address"]
    error = await session.error("call", to=to, method="pass", args=[counter, 13])
    assert error["message"].endswith("nothing was sent: TooMuch(most=12)")
    assert error["details"]["revert"]["args"] == {"most": "12"}


@on_stage
async def test_what_cannot_even_be_tried_fails_with_the_reason(stage: Stage) -> None:
    session = stage.session
    to = (await stage.deploy())["address"]
    poor, much = "0x" + "11" * 20, str(10**30)
    for verb, given, code, said in (
        ("simulate", {"from": poor, "value": 1}, "SIMULATE_FAILED", "Insufficient funds"),
        ("simulate", {"block": 4711}, "SIMULATE_FAILED", "BlockOutOfRange"),
        ("call", {"method": "set", "args": [1], "value": much}, "CALL_FAILED", "Insufficient funds"),
    ):
        error = await session.error(verb, to=to, **given)
        assert (error["code"], error["retry"]) == (code, False)
        assert said in error["message"]
    error = await session.error("simulate", to=to, rpc_url="http://127.0.0.1:9/")
    assert (error["code"], error["retry"]) == ("CHAIN_RPC_FAILED", False)
    assert "FASTRPC_CONTRACTS_NETWORKS" in error["message"]


@on_stage
async def test_a_key_is_for_one_deployment_alone(stage: Stage) -> None:
    session = stage.session
    await stage.deploy(value=1)
    error = await session.error(
        "deploy", idempotency_key=stage.key, chain_id="local", contract="Counter", constructor_args=[2]
    )
    assert (error["code"], error["message"][:15]) == ("INVALID_REQUEST", "idempotency_key")


@on_stage
async def test_six_deployments_at_once_have_six_addresses_and_one_key_has_one(stage: Stage) -> None:
    six = await asyncio.gather(*(stage.deploy(f"-{number}", number) for number in range(6)))
    assert len({each["address"] for each in six}) == 6
    same = await asyncio.gather(*(stage.deploy() for _ in range(6)))
    assert len({each["address"] for each in same}) == 1
    assert sorted(each["existing"] for each in same) == [False, True, True, True, True, True]


@on_stage
async def test_two_servers_of_a_project_share_its_chain(stage: Stage) -> None:
    one = stage.session
    async with Session(stage.folder) as other:
        six = await asyncio.gather(
            *(each.deploy(f"{stage.key}-{n}-{i}") for n, each in enumerate((one, other)) for i in range(3))
        )
        assert len({each["address"] for each in six}) == 6
        await other.data("call", to=six[0]["address"], method="set", args=[99])
        assert (await one.data("call", to=six[0]["address"], method="value"))["decoded"] == "99"


@on_stage
async def test_create2_finds_what_is_there(stage: Stage) -> None:
    salt = {"salt": "0x" + "11" * 32}
    first = await stage.deploy("-a", create2=salt)
    second = await stage.deploy("-b", create2=salt)
    assert (second["address"], second["existing"]) == (first["address"], True)


@on_stage
async def test_a_cap_that_is_too_low_refuses_before_anything_is_sent(stage: Stage) -> None:
    session = stage.session
    arguments = {
        "idempotency_key": stage.key,
        "chain_id": "local",
        "contract": "Counter",
        "constructor_args": [1],
    }
    error = await session.error("deploy", **arguments, spend_cap_wei="1000")
    assert (error["code"], "nothing was sent" in error["message"]) == ("WALLET_POLICY_DENIED", True)
    error = await session.error("deploy", **arguments, spend_cap_wei="much")
    assert (error["code"], error["message"][:13]) == ("INVALID_REQUEST", "spend_cap_wei")


@on_stage
async def test_errors_of_the_compiler_say_where(stage: Stage) -> None:
    session = stage.session
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
@on_stage
async def test_mistakes_are_named(verb: str, arguments: dict[str, Any], said: str, stage: Stage) -> None:
    session = stage.session
    error = await session.error(verb, **arguments)
    assert said in f"{error['code']} {error['message']}"


@on_stage
async def test_a_registered_chain_is_kept_masked_and_never_broadcast_to(stage: Stage) -> None:
    url = "https://user:secret@node.example/v3/0123456789abcdef0123"
    shown = await stage.session.data("chain_register", id="sepolia", rpc_url=url, chain_id=11155111)
    assert "secret" not in json.dumps(shown)
    error = await stage.session.error(
        "deploy", idempotency_key="k", chain_id="sepolia", contract="Counter", constructor_args=[1]
    )
    assert error["code"] == "WALLET_NOT_CONFIGURED"
    async with Session(stage.folder) as session:
        listed = await session.data("chain_list")
        assert [each["id"] for each in listed["chains"]] == ["local", "sepolia"]
        assert "secret" not in json.dumps(listed)


@on_stage
async def test_large_artifacts_are_resources(stage: Stage) -> None:
    body = "".join(f"function f{n}() external pure returns (uint256) {{ return {n}; }}" for n in range(150))
    source = f"// SPDX-License-Identifier: MIT\npragma solidity ^0.8.0;\ncontract Large {{ {body} }}"
    session = stage.session
    made = await session.data("compile", sources={"src/Large.sol": source}, project_id="large")
    (artifact,) = made["artifacts"]
    assert "bytecode" not in artifact
    assert artifact["resource"] == "contracts://large/src/Large.sol:Large"
    read = await session.client.read_resource(artifact["resource"])
    whole = json.loads(read.text)
    assert len(whole["abi"]) == 150
    assert whole["bytecode"].startswith("0x60")


@on_stage
async def test_prompts_say_how_to_go_about_it(stage: Stage) -> None:
    session = stage.session
    listed = [prompt["name"] for prompt in await session.client.list_prompts()]
    assert listed == ["write_contract", "review_contract", "deploy_safely"]
    prompt = await session.client.get_prompt("deploy_safely", {"contract": "Counter"})
    assert "counter-v1-local" in prompt.messages[0]["content"]["text"]


@needs("forge")
@on_stage
async def test_the_skill_is_served_and_its_example_and_its_names_are_right(stage: Stage) -> None:
    session = stage.session
    listed = {each["uri"]: each for each in await session.client.list_resources()}
    text = (await session.client.read_resource("skill://solidity-contracts/SKILL.md")).text
    keys, body = split(text)
    shown = listed["skill://solidity-contracts/SKILL.md"]
    assert (shown["name"], shown["description"]) == (keys["name"], keys["description"])
    assert shown["mimeType"] == "text/markdown"
    tools = {tool["name"] for tool in await session.client.list_tools()}
    assert set(re.findall(r"tachyon_\w+", body)) <= tools
    codes = {value for value in vars(_errors).values() if isinstance(value, str)}
    assert set(re.findall(r"`([A-Z]+_[A-Z_]+)`", body)) <= codes
    (example,) = re.findall(r"```solidity\n(.*?)```", body, re.DOTALL)
    counter = COUNTER.replace("v == 13", "v > 100").replace("TooMuch(12)", "TooMuch(100)")
    sources = {"src/Counter.sol": counter, "test/Counter.t.sol": textwrap.dedent(example)}
    assert (await session.data("test", sources=sources))["passed"] == 3


@in_loop
async def test_a_killed_server_loses_no_deployment_and_what_a_chain_has_lost_is_deployed_again(
    folder: Path,
) -> None:
    async with Session(folder) as session:
        await session.data("compile", sources={"src/Counter.sol": COUNTER})
        first = await session.deploy("k")
        assert processes_in(folder)
        os.kill(session.pid, signal.SIGKILL)
        await until(lambda: not processes_in(folder))
    async with Session(folder) as session:
        assert await session.deploy("k") == {**first, "existing": True}
    (state,) = (folder / "state").glob("contracts/*/anvil.json")
    state.unlink()
    async with Session(folder) as session:
        again = await session.deploy("k")
        assert (again["address"], again["existing"]) == (first["address"], False)
        assert (await session.data("call", to=first["address"], method="value"))["decoded"] == "7"


@needs("forge")
@on_stage
async def test_tests_run_and_fail_with_their_reasons(stage: Stage) -> None:
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
    session = stage.session
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

"""The contracts toolset on an engine at a URL: what is broadcast is broadcast once, one after another, and
what happened to it is reported.

The server is a real one; the engine is a stand-in that plays the fault (`support.standin_http`), as is the
node of its chain (`support.standin_node`).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastrpc.tools.contracts._chain.abi import selector_of
from support.bridged import ADDRESS, SOURCES, Bridged, Stage, deployment, in_loop, on_stage
from support.standin_engine import (
    CHAIN,
    COUNTER_ABI,
    COUNTER_CODE,
    NUMBER,
    OTHER_CHAIN,
    PROJECT,
    answers,
    artifact,
    cuts,
    drops,
    fails,
    hash_of,
    loses,
    pauses,
    waits,
)
from support.standin_http import ANY, Asked, HttpEngine, overlap, status
from support.standin_node import Failure, Node, receipt
from support.waiting import until

DEPLOY, CALL, LOOKUP, SIMULATE = (
    "tachyon_deploy",
    "tachyon_call",
    "tachyon_registry_lookup",
    "tachyon_simulate",
)
SALT = {"salt": "0x" + "22" * 32}
UNKNOWN = ("outcome unknown", "nonce")


def calling(number: Any = 9, **other: Any) -> dict[str, Any]:
    """Valid arguments of a tachyon_call that broadcasts."""
    call = {"to": ADDRESS, "chain_id": CHAIN, "contract": "Counter", "method": "set", "args": [number]}
    return {**call, **other}


def broadcasts(engine: HttpEngine) -> list[Asked]:
    """What was asked of the engine that it would send to a chain."""
    calls = [each for each in engine.asked(CALL) if not each.params.get("simulate_only")]
    return [*engine.asked(DEPLOY), *calls]


def is_unknown(envelope: dict[str, Any]) -> bool:
    """Whether a call says that no one knows what it has done, and that it must not just be repeated."""
    if envelope["ok"]:
        return False
    error = envelope["error"]
    return not error["retry"] and all(word in error["message"] for word in UNKNOWN)


@asynccontextmanager
async def with_node(folder: Path) -> AsyncIterator[tuple[Node, Bridged]]:
    """The node of the stand-in's chain, and a session with a server that is bridged to the stand-in."""
    async with (
        Node() as node,
        HttpEngine(rpc_url=node.url) as engine,
        Bridged(folder, engine.url) as session,
    ):
        yield node, session


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


# --- what is asked before ---------------------------------------------------------------------------------


@in_loop
async def test_a_deployment_asks_for_chain_and_artifact_and_is_sent_once(tmp_path: Path) -> None:
    async with HttpEngine() as engine, Bridged(tmp_path, engine.url) as session:
        found = await session.deploy()
        assert engine.methods() == ["tachyon_chain_list", "tachyon_artifact_get", DEPLOY]
        sent = engine.asked(DEPLOY)[0].params
        assert sent == {**deployment(), "constructor_args": ["7"]}
        data = found["data"]
        assert (data["existing"], data["receipt"], data["idempotency_key"]) == (False, None, "k")
        assert data["tx_hash"] == hash_of(1)


LIBRARY = "0x" + COUNTER_CODE[:40] + "__$" + "ab" * 17 + "$__" + COUNTER_CODE[80:]


@pytest.mark.parametrize(
    ("made", "given", "said"),
    [
        ({}, {"constructor_args": []}, "constructor_args: Counter(uint256 v) takes 1, got 0"),
        ({}, {"constructor_args": None}, "constructor_args: Counter(uint256 v) takes 1, got 0"),
        ({}, {"constructor_args": [1, 2]}, "takes 1, got 2"),
        ({}, {"constructor_args": [-1]}, "constructor_args[0]"),
        ({}, {"constructor_args": [1.5]}, "constructor_args[0]"),
        ({}, {"constructor_args": [True]}, "constructor_args[0]"),
        ({}, {"constructor_args": [2**256]}, "constructor_args[0]"),
        ({}, {"constructor_args": ["seven"]}, "constructor_args[0]"),
        ({"bytecode": LIBRARY}, {}, "unlinked"),
        ({"bytecode": "0x"}, {}, "abstract"),
        ({"bytecode": ""}, {}, "abstract"),
    ],
)
@on_stage
async def test_what_cannot_be_deployed_is_refused_before(
    stage: Stage, made: dict[str, Any], given: dict[str, Any], said: str
) -> None:
    stage.engine.on("tachyon_artifact_get", answers({"artifact": artifact(**made)}))
    found = await stage.deploy(**given)
    assert found["error"]["code"] == "INVALID_REQUEST"
    assert said in found["error"]["message"]
    assert not broadcasts(stage.engine)
    assert (await stage.deploy())["ok"], "the key is still free"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"args": []}, "takes 1, got 0"),
        ({"args": ["nine"]}, "args[0]"),
        ({"args": [-1]}, "args[0]"),
        ({"method": "sett"}, "method"),
        ({"contract": None, "abi": [{"type": "event", "name": "set"}]}, "method"),
        ({"contract": None}, "abi"),
        ({"rpc_url": "http://127.0.0.1:9", "chain_id": None}, "rpc_url"),
    ],
)
@on_stage
async def test_a_call_that_cannot_be_made_is_refused_before(
    stage: Stage, given: dict[str, Any], said: str
) -> None:
    error = await stage.session.error("call", **calling(**given))
    assert said in error["message"]
    assert not broadcasts(stage.engine)


@pytest.mark.parametrize(
    ("verb", "arguments", "code"),
    [
        ("deploy", {**deployment(), "contract": "Nobody"}, "ARTIFACT_NOT_FOUND"),
        ("deploy", {**deployment(), "chain_id": "moon"}, "CHAIN_NOT_FOUND"),
        ("call", calling(chain_id="moon"), "CHAIN_NOT_FOUND"),
        ("call", calling(contract="Nobody"), "ARTIFACT_NOT_FOUND"),
    ],
)
@on_stage
async def test_what_the_engine_does_not_know_is_not_broadcast(
    stage: Stage, verb: str, arguments: dict[str, Any], code: str
) -> None:
    assert (await stage.session.error(verb, **arguments))["code"] == code
    assert not broadcasts(stage.engine)


@on_stage
async def test_a_call_is_simulated_as_it_will_be_sent(stage: Stage) -> None:
    sender = "0x" + "33" * 20
    done = await stage.session.data("call", **calling(9, value="0x10", **{"from": sender}))
    assert done["tx_hash"].startswith("0x")
    assert stage.engine.methods()[-2:] == [SIMULATE, CALL]
    tried, sent = stage.engine.asked(SIMULATE)[0].params, stage.engine.asked(CALL)[0].params
    assert tried["data"] == "0x60fe47b1" + f"{9:064x}"
    for name in ("to", "value", "from", "chain_id"):
        assert tried[name] == sent[name]
    assert (sent["to"], sent["value"], sent["from"]) == (ADDRESS, "16", sender)


@on_stage
async def test_a_call_that_would_revert_is_not_sent(stage: Stage) -> None:
    error = await stage.session.error("call", **calling(13))
    assert (error["code"], error["retry"]) == ("CALL_FAILED", False)
    assert "unlucky" in error["message"]
    assert not broadcasts(stage.engine)


@on_stage
async def test_a_view_method_is_read_and_nothing_is_sent(stage: Stage) -> None:
    to = (await stage.deploy())["data"]["address"]
    found = await stage.session.data("call", **calling(to=to, method="value", args=[]))
    assert int(found["result"], 16) == 7
    assert len(broadcasts(stage.engine)) == 1  # the deployment


@pytest.mark.parametrize("known", [{"contract": "Counter"}, {"abi": COUNTER_ABI}, {}])
@on_stage
async def test_the_abi_is_given_or_that_of_what_was_deployed(stage: Stage, known: dict[str, Any]) -> None:
    to = (await stage.deploy())["data"]["address"]
    await stage.session.data("call", to=to, chain_id=CHAIN, method="set", args=[31], **known)
    assert stage.engine.engine.kept["values"][to] == 31


# --- a lost answer ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [loses, cuts])
@on_stage
async def test_a_deployment_whose_answer_was_lost_is_looked_up(stage: Stage, fault: Any) -> None:
    stage.engine.on(DEPLOY, fault())
    found = await stage.deploy()
    assert found["ok"], found
    made = stage.engine.engine.kept["deployments"][f"{stage.key}:{CHAIN}"]
    assert (found["data"]["address"], found["data"]["existing"]) == (made["address"], True)
    assert (len(stage.engine.asked(DEPLOY)), len(stage.engine.asked(LOOKUP))) == (1, 1)


@in_loop
async def test_a_deployment_that_no_one_knows_of_is_never_sent_again(tmp_path: Path) -> None:
    async with HttpEngine() as engine:
        async with Bridged(tmp_path, engine.url) as session:
            engine.on(DEPLOY, drops())
            assert is_unknown(await session.deploy())
            assert (len(engine.asked(DEPLOY)), len(engine.asked(LOOKUP))) == (1, 1)
            assert is_unknown(await session.deploy())
            assert (len(engine.asked(DEPLOY)), len(engine.asked(LOOKUP))) == (1, 2)
            session.kill()
        async with Bridged(tmp_path, engine.url) as session:
            assert is_unknown(await session.deploy())
            assert len(engine.asked(DEPLOY)) == 1
            made = {"address": ADDRESS, "tx_hash": hash_of(5), "contract": "Counter"}
            engine.engine.kept["deployments"][f"k:{CHAIN}"] = made  # it has come through after all
            found = await session.deploy()
            assert (found["data"]["address"], found["data"]["existing"]) == (ADDRESS, True)
            assert len(engine.asked(DEPLOY)) == 1


@pytest.mark.parametrize(
    "fault",
    [
        status(502, "bad gateway"),
        status(504, "gateway timeout"),
        status(500, "it fell over"),
        fails("DEPLOY_FAILED", "receipt timeout", retry=True),
        fails("INTERNAL_ERROR", "it fell over", retry=True),
        fails("OF_A_LATER_VERSION", "who knows"),
        fails("WALLET_POLICY_DENIED", "the wallet's server has not answered", retry=True),
        answers({}),
    ],
)
@on_stage
async def test_an_answer_that_does_not_say_what_was_sent_lets_nothing_be_sent_again(
    stage: Stage, fault: dict[str, Any]
) -> None:
    stage.engine.on(DEPLOY, fault)
    assert not (await stage.deploy())["ok"]
    assert not (await stage.deploy())["ok"]
    assert len(stage.engine.asked(DEPLOY)) == 1


@in_loop
async def test_a_deployment_that_takes_too_long_is_not_sent_again(tmp_path: Path) -> None:
    async with HttpEngine() as engine, Bridged(tmp_path, engine.url, engine_seconds="2") as session:
        await session.data("chain_list")  # the first request takes longer than others
        engine.on(DEPLOY, waits())
        assert is_unknown(await session.deploy())
        assert is_unknown(await session.deploy())
        assert len(engine.asked(DEPLOY)) == 1


@on_stage
async def test_a_deployment_that_was_cancelled_is_not_sent_again(stage: Stage) -> None:
    """The engine goes on with it, so its answer is waited for."""
    stage.engine.on(DEPLOY, waits())
    deploying = asyncio.ensure_future(stage.deploy())
    await until(lambda: stage.engine.asked(DEPLOY))
    deploying.cancel()
    await stage.session.data("chain_list")
    again = asyncio.ensure_future(stage.deploy())
    stage.engine.release()
    assert (await again)["data"]["existing"] is True
    assert len(stage.engine.asked(DEPLOY)) == 1


@in_loop
async def test_a_server_that_was_killed_has_its_deployment_looked_up(tmp_path: Path) -> None:
    async with HttpEngine() as engine:
        async with Bridged(tmp_path, engine.url) as session:
            engine.on(DEPLOY, waits(), pauses(0.3))
            lost = asyncio.ensure_future(session.deploy("lost"))
            await until(lambda: len(engine.asked(DEPLOY)) == 1)
            done = asyncio.ensure_future(session.deploy("done", chain_id=OTHER_CHAIN))
            await until(lambda: len(engine.asked(DEPLOY)) == 2)
            session.kill()
            await asyncio.gather(lost, done, return_exceptions=True)
        await until(lambda: engine.asked(DEPLOY)[0].ended and engine.engine.kept["deployments"])
        async with Bridged(tmp_path, engine.url) as session:
            assert is_unknown(await session.deploy("lost"))
            again = await session.deploy("done", chain_id=OTHER_CHAIN)
            assert again["data"]["existing"] is True
        assert len(engine.asked(DEPLOY)) == 2


@on_stage
async def test_a_create2_deployment_is_sent_once_more(stage: Stage) -> None:
    """It can be made but once: at an address that follows from what it is."""
    stage.engine.on(DEPLOY, drops())
    assert (await stage.deploy(create2=SALT))["ok"]
    assert stage.engine.methods()[-3:] == [DEPLOY, LOOKUP, DEPLOY]
    assert stage.engine.asked(DEPLOY)[0].params["create2"]["deployer"].startswith("0x")
    stage.engine.on(DEPLOY, loses())
    assert (await stage.deploy("-2", create2=SALT))["ok"]
    assert len(stage.engine.asked(DEPLOY)) == 3
    stage.engine.on(DEPLOY, drops(), drops())
    assert not (await stage.deploy("-3", create2=SALT))["ok"]
    assert len(stage.engine.asked(DEPLOY)) == 5


@pytest.mark.parametrize(
    "fault",
    [
        drops(),
        loses(),
        cuts(),
        status(502, "bad gateway"),
        fails("CALL_FAILED", "the node has not answered", retry=True),
        fails("INTERNAL_ERROR", "it fell over", retry=True),
        fails("WALLET_POLICY_DENIED", "the wallet's server has not answered", retry=True),
    ],
)
@on_stage
async def test_a_call_whose_answer_was_lost_is_not_sent_again(stage: Stage, fault: dict[str, Any]) -> None:
    stage.engine.on(CALL, fault)
    assert is_unknown(await stage.session.envelope("call", **calling()))
    assert len(broadcasts(stage.engine)) == 1


@in_loop
async def test_what_was_never_sent_can_be_sent_later(tmp_path: Path) -> None:
    """An engine that cannot be reached has got nothing: the key is free."""
    engine = HttpEngine()
    async with engine:
        session = Bridged(tmp_path, engine.url)
        await session.client.__aenter__()
        await session.data("chain_list")
        await session.data("artifact_get", name="Counter")
    async with session:
        found = await session.deploy()
        assert (found["error"]["code"], found["error"]["retry"]) == ("ENGINE_UNAVAILABLE", True)
        async with engine:
            assert (await session.deploy())["data"]["existing"] is False
            assert len(engine.asked(DEPLOY)) == 1


# --- keys -------------------------------------------------------------------------------------------------


@in_loop
async def test_a_key_that_has_deployed_returns_what_it_has_deployed(tmp_path: Path) -> None:
    async with HttpEngine() as engine:
        async with Bridged(tmp_path, engine.url) as session:
            first = (await session.deploy())["data"]
            again = [(await session.deploy(chain_id=chain))["data"] for chain in (CHAIN, NUMBER, str(NUMBER))]
        async with Bridged(tmp_path, engine.url) as session:
            again.append((await session.deploy())["data"])
        assert [each["existing"] for each in (first, *again)] == [False, True, True, True, True]
        assert {each["address"] for each in (first, *again)} == {first["address"]}
        assert len(engine.asked(DEPLOY)) == 1


@on_stage
async def test_a_deployment_is_found_by_the_chains_id_and_by_its_number(stage: Stage) -> None:
    """The engine keeps it under the text that it was given."""
    await stage.deploy("-id")
    await stage.deploy("-number", chain_id=NUMBER)
    for suffix in ("-id", "-number"):
        for chain in (CHAIN, NUMBER, str(NUMBER)):
            key = stage.key + suffix
            found = await stage.session.data("registry_lookup", idempotency_key=key, chain_id=chain)
            assert found["found"]


@pytest.mark.parametrize(
    "other",
    [
        {"constructor_args": [8]},
        {"contract": "Other"},
        {"contract": "Other", "project_id": "another"},
        {"create2": SALT},
        {"from": "0x" + "44" * 20},
    ],
)
@on_stage
async def test_a_key_is_for_one_deployment_alone(stage: Stage, other: dict[str, Any]) -> None:
    for project in (PROJECT, "another"):
        made = artifact("Other", bytecode="0x" + COUNTER_CODE + "00")
        stage.engine.engine.kept["artifacts"][f"{project}:Other"] = made
    await stage.deploy()
    error = (await stage.deploy(**other))["error"]
    assert (error["code"], error["retry"]) == ("INVALID_REQUEST", False)
    assert "idempotency_key" in error["message"]
    assert len(stage.engine.asked(DEPLOY)) == 1


@pytest.mark.parametrize(
    "code",
    [
        "INVALID_REQUEST",
        "WALLET_NOT_CONFIGURED",
        "WALLET_POLICY_DENIED",
        "ARTIFACT_NOT_FOUND",
        "CHAIN_NOT_FOUND",
    ],
)
@on_stage
async def test_a_refusal_of_the_engine_frees_the_key(stage: Stage, code: str) -> None:
    stage.engine.on(DEPLOY, fails(code, "not like this"))
    error = (await stage.deploy())["error"]
    assert (error["code"], error["message"]) == (code, "not like this")
    found = await stage.deploy(constructor_args=[8])
    assert found["data"]["existing"] is False
    assert len(stage.engine.asked(DEPLOY)) == 2


@on_stage
async def test_an_engine_that_asks_for_a_token_has_done_nothing(stage: Stage) -> None:
    stage.engine.on(DEPLOY, status(401, "no"))
    assert (await stage.deploy())["error"]["code"] == "ENGINE_UNAUTHORIZED"
    assert (await stage.deploy())["data"]["existing"] is False
    assert len(stage.engine.asked(DEPLOY)) == 2


# --- one at a time ----------------------------------------------------------------------------------------


@on_stage
async def test_broadcasts_on_a_chain_come_one_after_another(stage: Stage) -> None:
    stage.engine.always(DEPLOY, pauses(0.05))
    stage.engine.always(CALL, pauses(0.05))
    deploying = [stage.deploy(f"-{n}", chain_id=(CHAIN, NUMBER)[n % 2]) for n in range(6)]
    done = await asyncio.gather(*deploying, *(stage.session.envelope("call", **calling(n)) for n in range(3)))
    assert all(each["ok"] for each in done)
    assert len(broadcasts(stage.engine)) == 9
    assert not overlap(broadcasts(stage.engine))


@in_loop
async def test_broadcasts_of_two_servers_of_a_project_come_one_after_another(tmp_path: Path) -> None:
    async with HttpEngine() as engine, Bridged(tmp_path, engine.url) as one:
        async with Bridged(tmp_path, engine.url) as other:
            engine.always(DEPLOY, pauses(0.05))
            done = await asyncio.gather(*((one, other)[n % 2].deploy(f"k{n}") for n in range(6)))
            assert all(each["ok"] for each in done)
            assert not overlap(engine.asked(DEPLOY))
            same = await asyncio.gather(*((one, other)[n % 2].deploy("same") for n in range(6)))
        assert sorted(each["data"]["existing"] for each in same) == [False, True, True, True, True, True]
        assert len(engine.asked(DEPLOY)) == 7


@on_stage
async def test_broadcasts_on_two_chains_do_not_wait_for_each_other(stage: Stage) -> None:
    stage.engine.on(DEPLOY, waits())
    first = asyncio.ensure_future(stage.deploy("-a"))
    await until(lambda: stage.engine.asked(DEPLOY))
    assert (await stage.deploy("-b", chain_id=OTHER_CHAIN))["ok"]
    assert not first.done()
    stage.engine.release()
    assert (await first)["ok"]


# --- the spend cap ----------------------------------------------------------------------------------------


@on_stage
async def test_a_value_above_the_cap_is_refused(stage: Stage) -> None:
    error = await stage.session.error("call", **calling(value=10, spend_cap_wei=9))
    assert (error["code"], error["retry"]) == ("WALLET_POLICY_DENIED", False)
    assert not broadcasts(stage.engine)
    await stage.session.data("call", **calling(value=10, spend_cap_wei="0xa"))
    assert broadcasts(stage.engine)[0].params["spend_cap_wei"] == "10"


@pytest.mark.parametrize("cap", ["1 ether", "abc", -1, 1.5, "", "1e18", True, ["1"], "0x", "١"])
@on_stage
async def test_a_cap_that_cannot_be_read_is_refused(stage: Stage, cap: Any) -> None:
    """The engine would pass it over, and send without a cap."""
    for verb, arguments in (("deploy", deployment()), ("call", calling())):
        error = await stage.session.error(verb, **{**arguments, "spend_cap_wei": cap})
        assert error["code"] == "INVALID_REQUEST"
        assert error["message"].startswith("spend_cap_wei")
    assert stage.engine.requests == []


@on_stage
async def test_a_cap_in_hex_arrives_as_decimal_text(stage: Stage) -> None:
    await stage.deploy(spend_cap_wei="0xde0b6b3a7640000")
    assert stage.engine.asked(DEPLOY)[0].params["spend_cap_wei"] == str(10**18)


# --- receipts ---------------------------------------------------------------------------------------------

RECEIPT = {"status": "success", "block_number": 16, "gas_used": 42_968, "logs": []}


@in_loop
async def test_a_receipt_is_fetched_from_a_node_of_this_machine(tmp_path: Path) -> None:
    late = iter([None, None])  # it is in no block yet
    async with with_node(tmp_path) as (node, session):
        node.results["eth_getTransactionReceipt"] = lambda tx_hash: next(late, receipt(tx_hash))
        assert (await session.deploy())["data"]["receipt"] == RECEIPT
        assert (await session.data("call", **calling()))["receipt"] == RECEIPT


@in_loop
async def test_a_transaction_that_has_reverted_is_an_error_whatever_the_engine_says(tmp_path: Path) -> None:
    async with with_node(tmp_path) as (node, session):
        node.results["eth_getTransactionReceipt"] = lambda tx_hash: receipt(tx_hash, status="0x0")
        error = (await session.deploy())["error"]
        assert (error["code"], error["details"]["tx_hash"]) == ("DEPLOY_FAILED", hash_of(1))
        error = await session.error("call", **calling())
        assert (error["code"], error["details"]["tx_hash"]) == ("CALL_FAILED", hash_of(2))


@in_loop
async def test_a_deployment_that_has_left_no_code_is_an_error(tmp_path: Path) -> None:
    async with with_node(tmp_path) as (node, session):
        node.results["eth_getCode"] = "0x"
        error = (await session.deploy())["error"]
        assert (error["code"], error["details"]["tx_hash"]) == ("DEPLOY_FAILED", hash_of(1))


@in_loop
async def test_a_node_that_cannot_tell_the_receipt_makes_no_sent_transaction_an_error(tmp_path: Path) -> None:
    async with with_node(tmp_path) as (node, session):
        del node.results["eth_getTransactionReceipt"]
        assert (await session.deploy())["data"]["receipt"] is None
        assert (await session.data("call", **calling()))["receipt"] is None


@on_stage
async def test_without_a_node_in_reach_the_receipt_is_null(stage: Stage) -> None:
    assert (await stage.deploy())["data"]["receipt"] is None
    assert (await stage.session.data("call", **calling()))["receipt"] is None


@pytest.mark.parametrize("number", ["../../../../up", {"/": 1}, None, True])
@on_stage
async def test_a_chain_without_a_number_is_not_broadcast_to(stage: Stage, number: Any) -> None:
    listed = {"chains": [{"id": CHAIN, "name": "", "chain_id": number}], "active_chain_id": CHAIN}
    stage.engine.always("tachyon_chain_list", answers(listed))
    for found in (await stage.deploy(), await stage.session.envelope("call", **calling())):
        assert not found["ok"]
        assert found["error"]["code"] in ("ENGINE_PROTOCOL", "CHAIN_NOT_FOUND")
    assert not broadcasts(stage.engine)


@in_loop
async def test_an_engine_that_is_gone_is_not_broadcast_to_once_the_breaker_is_open(tmp_path: Path) -> None:
    async with HttpEngine() as engine, Bridged(tmp_path, engine.url) as session:
        engine.always(ANY, drops())
        for _ in range(5):
            await session.envelope("compile", sources={"src/A.sol": "contract A {}"})
        error = (await session.deploy())["error"]
        assert (error["code"], error["retry"]) == ("ENGINE_UNAVAILABLE", True)
        assert not broadcasts(engine)


@in_loop
async def test_a_deployment_that_the_node_cannot_even_try_has_failed_and_is_not_sent(tmp_path: Path) -> None:
    async with with_node(tmp_path) as (node, session):
        await session.data("compile", sources=SOURCES)
        node.results["eth_call"] = Failure(-32000, "gas required exceeds allowance (0)")
        error = (await session.deploy())["error"]
        assert (error["code"], error["retry"]) == ("DEPLOY_FAILED", False)
        assert "exceeds allowance" in error["message"]


@in_loop
async def test_an_error_of_a_contract_that_is_called_is_decoded_by_what_was_compiled(tmp_path: Path) -> None:
    error = {"type": "error", "name": "TooMuch", "inputs": [{"name": "most", "type": "uint256"}]}
    other = artifact("Other", abi=[error])
    async with (
        Node() as node,
        HttpEngine(rpc_url=node.url) as engine,
        Bridged(tmp_path, engine.url) as session,
    ):
        await session.data("compile", sources=SOURCES)
        engine.on("tachyon_compile", answers({"artifacts": [other], "project_id": "others"}))
        await session.data("compile", sources=SOURCES, project_id="others")
        revert = selector_of(error) + (12).to_bytes(32, "big")
        node.results["eth_call"] = Failure(3, "execution reverted", revert)
        found = (await session.deploy(project_id=PROJECT))["error"]
        assert (found["code"], found["details"]["revert"]["args"]) == ("DEPLOY_FAILED", {"most": "12"})
        assert "TooMuch(most=12)" in found["message"]
        assert not engine.asked(DEPLOY)

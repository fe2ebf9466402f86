"""The contracts toolset on an engine at a URL: what is sent, what is believed, and what each fault becomes.

The server is a real one; the engine is a stand-in that plays the fault (`support.standin_http`).
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support import bridged
from support.bridged import (
    ADDRESS,
    READS,
    SERVER,
    SOURCES,
    TOKEN,
    Bridged,
    Stage,
    deployment,
    environment,
    in_loop,
    on_stage,
)
from support.ports import free_port
from support.standin_engine import (
    CHAIN,
    COUNTER_ABI,
    COUNTER_SOURCE,
    Play,
    answers,
    artifact,
    cuts,
    drops,
    fails,
    loses,
    refuses,
    says,
    waits,
)
from support.standin_http import ANY, HttpEngine, endless, hangs_up, raw, sends, status
from support.stdio import serve
from support.waiting import until

OTHERS: dict[str, dict[str, Any]] = {
    "compile": {"sources": SOURCES},
    "test": {"sources": SOURCES},
    "chain_register": {"id": "mine", "rpc_url": "http://127.0.0.1:1", "chain_id": 99},
}
# What a contract takes that wants large integers at any depth.
DEEP_INPUTS = [
    {"name": "a", "type": "uint256"},
    {"name": "b", "type": "uint256[]"},
    {"name": "c", "type": "tuple", "components": [{"name": "x", "type": "int128"}]},
    {"name": "d", "type": "bool"},
]
DEEP = [123456789012345678901234567890, [2**255], {"x": -170141183460469231731687303715884105728}, True]
DEEP_SENT = (
    b'["123456789012345678901234567890",'
    b'["57896044618658097711785492504343953926634992332820282019728792003956564819968"],'
    b'{"x":"-170141183460469231731687303715884105728"},true]'
)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with Stage(tmp_path_factory.mktemp("stage")) as stage:
        yield stage


# --- results ----------------------------------------------------------------------------------------------


@in_loop
async def test_every_verb_does_what_the_engine_does(tmp_path: Path) -> None:
    async with HttpEngine() as engine, Bridged(tmp_path, engine.url) as session:
        made = await session.data("compile", sources=SOURCES)
        assert made["project_id"].startswith("src-")
        assert made["artifacts"][0]["abi"] == COUNTER_ABI
        assert (await session.data("test", sources=SOURCES))["passed"] == 1
        assert (await session.data("artifact_get", name="Counter"))["artifact"]["name"] == "Counter"
        deployed = await session.data("deploy", **deployment())
        to = deployed["address"]
        lookup = await session.data("registry_lookup", idempotency_key="k", chain_id=CHAIN)
        assert (lookup["found"], lookup["address"]) == (True, to)
        sent = await session.data("call", to=to, chain_id=CHAIN, contract="Counter", method="set", args=[9])
        assert sent["tx_hash"].startswith("0x")
        simulated = await session.data("simulate", to=to, chain_id=CHAIN, data="0x3fa4f245")
        assert int(simulated["result"], 16) == 9
        chain = await session.data("chain_register", id="mine", rpc_url="http://127.0.0.1:1", chain_id=99)
        assert (chain["id"], chain["chain_id"]) == ("mine", 99)
        assert "mine" in [each["id"] for each in (await session.data("chain_list"))["chains"]]


@pytest.mark.parametrize(
    ("code", "more"),
    [
        ("COMPILER_FORGE_FAILED", {"details": {"diagnostics": [{"line": 3}]}}),
        ("CHAIN_RPC_FAILED", {"retry": True}),
        ("OF_A_LATER_VERSION", {"retry": True, "details": {"why": "new"}}),
    ],
)
@on_stage
async def test_a_failure_of_the_engine_is_passed_on_as_it_is(
    stage: Stage, code: str, more: dict[str, Any]
) -> None:
    stage.engine.on("tachyon_compile", fails(code, "what it says", **more))
    error = await stage.session.error("compile", sources=SOURCES)
    assert error == {"code": code, "message": "what it says", "retry": False, **more}


@on_stage
async def test_what_does_not_compile_is_not_to_be_repeated_whatever_the_engine_says(stage: Stage) -> None:
    message = "see https://manual.example/of-this-compiler"
    for name in ("SOLC", "VYPER", "FORGE"):
        stage.engine.on("tachyon_compile", fails(f"COMPILER_{name}_FAILED", message, retry=True))
        error = await stage.session.error("compile", sources=SOURCES)
        assert (error["message"], error["retry"]) == (message, False), name


@on_stage
async def test_what_tests_have_found_is_there_when_some_fail(stage: Stage) -> None:
    suite = {"file": "test/A.t.sol", "passed": 0, "failed": 1, "skipped": 0, "cases": []}
    failure = {"code": "TEST_ASSERTION_FAILED", "message": "1 failed", "retry": False}
    data = {"suites": [suite], "passed": 0, "failed": 1}
    stage.engine.on("tachyon_test", says({"ok": False, "data": data, "error": failure}))
    error = await stage.session.error("test", sources=SOURCES)
    assert (error["code"], error["details"]["suites"]) == ("TEST_ASSERTION_FAILED", [suite])


@on_stage
async def test_empty_lists_that_the_engine_writes_as_null_are_lists(stage: Stage) -> None:
    stage.engine.on("tachyon_chain_list", answers({"chains": None}))
    assert (await stage.session.data("chain_list"))["chains"] == []


@on_stage
async def test_warnings_are_diagnostics(stage: Stage) -> None:
    stage.engine.on(
        "tachyon_compile",
        answers({"project_id": "p", "artifacts": [artifact()], "warnings": ["one", "two"]}),
    )
    made = await stage.session.data("compile", sources=SOURCES)
    shown = [(each["severity"], each["message"]) for each in made["diagnostics"]]
    assert shown == [("warning", "one"), ("warning", "two")]


@on_stage
async def test_the_parts_to_return_are_chosen_here(stage: Stage) -> None:
    made = await stage.session.data("compile", sources=SOURCES, include=["abi"])
    found = await stage.session.data("artifact_get", name="Counter", include=["bytecode"])
    assert {"abi", "bytecode", "deployedBytecode"} & set(made["artifacts"][0]) == {"abi"}
    assert {"abi", "bytecode", "deployedBytecode"} & set(found["artifact"]) == {"bytecode"}
    assert all("include" not in asked.params for asked in stage.engine.requests)


# --- what is sent -----------------------------------------------------------------------------------------


@on_stage
async def test_requests_are_json_rpc_with_small_numbers(stage: Stage) -> None:
    for verb, arguments in {**READS, **OTHERS}.items():
        await stage.session.data(verb, **arguments)
    ids = [asked.message["id"] for asked in stage.engine.requests]
    assert all(type(id) is int and 0 <= id < 10_000 for id in ids)
    assert len(set(ids)) == len(ids)
    for asked in stage.engine.requests:
        assert (asked.path, asked.message["jsonrpc"]) == ("/rpc", "2.0")
        assert asked.headers["content-type"].startswith("application/json")
        assert "authorization" not in asked.headers


@pytest.mark.parametrize("given", [31337, "31337", CHAIN])
@on_stage
async def test_a_chain_is_sent_as_text(stage: Stage, given: Any) -> None:
    await stage.session.data("simulate", to=ADDRESS, chain_id=given)
    assert stage.engine.asked("tachyon_simulate")[0].params["chain_id"] in ("31337", CHAIN)


@pytest.mark.parametrize("given", [99, "99", "0x63"])
@on_stage
async def test_a_chain_is_registered_by_its_number(stage: Stage, given: Any) -> None:
    await stage.session.data("chain_register", id="mine", rpc_url="http://127.0.0.1:1", chain_id=given)
    assert stage.engine.asked("tachyon_chain_register")[0].params["chain_id"] == 99


@pytest.mark.parametrize(
    ("given", "sent"),
    [(5, "5"), ("5", "5"), ("0xff", "255"), (2**200, str(2**200)), (hex(2**200), str(2**200))],
)
@on_stage
async def test_wei_is_sent_as_decimal_text(stage: Stage, given: Any, sent: str) -> None:
    await stage.session.data("simulate", to=ADDRESS, chain_id=CHAIN, value=given)
    assert stage.engine.asked("tachyon_simulate")[0].params["value"] == sent


@pytest.mark.parametrize(("given", "sent"), [(16, "16"), ("0x10", "16"), ("latest", "latest")])
@on_stage
async def test_a_block_is_sent_as_decimal_text(stage: Stage, given: Any, sent: str) -> None:
    """The engine takes the 0x off a number and reads what is left as decimal: 0x10 would be block 10."""
    await stage.session.data("simulate", to=ADDRESS, chain_id=CHAIN, block=given)
    assert stage.engine.asked("tachyon_simulate")[0].params.get("block", "latest") == sent


@on_stage
async def test_integers_in_arguments_keep_every_digit(stage: Stage) -> None:
    constructor = {"type": "constructor", "inputs": DEEP_INPUTS, "stateMutability": "nonpayable"}
    function = {**constructor, "type": "function", "name": "deep", "outputs": []}
    await stage.session.data(
        "call", to=ADDRESS, chain_id=CHAIN, method="deep", args=DEEP, abi=[function], simulate_only=True
    )
    (called,) = stage.engine.asked("tachyon_call")
    assert DEEP_SENT in called.body.replace(b", ", b",").replace(b": ", b":")
    stage.engine.on("tachyon_artifact_get", answers({"artifact": artifact(abi=[constructor])}))
    await stage.deploy(constructor_args=DEEP)
    (deployed,) = stage.engine.asked("tachyon_deploy")
    assert DEEP_SENT in deployed.body.replace(b", ", b",").replace(b": ", b":")


@pytest.mark.parametrize(("given", "sent"), [(True, True), (False, False), (200, True), (0, False)])
@on_stage
async def test_optimize_is_sent_as_a_switch(stage: Stage, given: Any, sent: bool) -> None:
    await stage.session.data("compile", sources=SOURCES, optimize=given)
    assert stage.engine.requests[0].params["optimize"] is sent


@on_stage
async def test_what_the_engine_would_pass_over_or_misread_is_refused_here(stage: Stage) -> None:
    refused: list[tuple[str, dict[str, Any], str]] = [
        ("compile", {"sources": SOURCES, "optimize": 999}, "optimize"),
        ("compile", {"sources": SOURCES, "optimise": True}, "did you mean optimize"),
        ("chain_list", {"chain": "x"}, "chain"),
        ("deploy", {**deployment(), "spend_cap": "1"}, "spend_cap"),
        ("simulate", {"to": ADDRESS, "value": 1.5}, "value"),
        ("compile", {"sources": SOURCES, "evm_version": 'paris"\nffi=true'}, "evm_version"),
        ("test", {"sources": SOURCES, "filter": "--ffi"}, "filter"),
        ("test", {"sources": SOURCES, "match_path": "a\nb"}, "match_path"),
        ("test", {"sources": SOURCES, "match_contract": "-x"}, "match_contract"),
    ]
    for verb, arguments, said in refused:
        error = await stage.session.error(verb, **arguments)
        assert (error["code"], error["retry"]) == ("INVALID_REQUEST", False), arguments
        assert said in error["message"]
    assert stage.engine.requests == []


# --- connections and the token ----------------------------------------------------------------------------


@in_loop
async def test_calls_in_a_row_take_one_connection(tmp_path: Path) -> None:
    async with HttpEngine() as engine, Bridged(tmp_path, engine.url) as session:
        for _ in range(20):
            await session.data("chain_list")
        assert {asked.connection for asked in engine.requests} == {0}


@on_stage
async def test_a_connection_that_the_engine_has_closed_meanwhile_costs_no_call(stage: Stage) -> None:
    stage.engine.on(ANY, hangs_up())
    await stage.session.data("chain_list")
    await asyncio.sleep(0.1)  # for the end to arrive
    assert (await stage.deploy())["ok"]
    assert stage.engine.methods().count("tachyon_deploy") == 1


@in_loop
async def test_a_token_of_the_environment_is_sent(tmp_path: Path) -> None:
    async with HttpEngine(token=TOKEN) as engine, Bridged(tmp_path, engine.url, token=TOKEN) as session:
        await session.data("chain_list")


@in_loop
async def test_a_token_file_is_read_again_when_it_changes(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    options = ["--engine-token-file", str(file)]
    async with HttpEngine(token=TOKEN) as engine, Bridged(tmp_path, engine.url, *options) as session:
        await session.data("chain_list")
        engine.token = TOKEN[::-1]
        assert (await session.error("chain_list"))["code"] == "ENGINE_UNAUTHORIZED"
        file.write_text(TOKEN[::-1] + "\n")
        await session.data("chain_list")


@in_loop
async def test_the_engine_is_named_by_an_option_too(tmp_path: Path) -> None:
    async with HttpEngine() as engine, Bridged(tmp_path, "", "--engine", engine.url) as session:
        await session.data("chain_list")
        assert engine.methods() == ["tachyon_chain_list"]


@in_loop
async def test_a_token_is_in_no_error_and_in_no_log(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")

    def talk(url: str) -> str:
        variables = environment(tmp_path, url, token_file=str(file))
        command = [*SERVER, "--log-level", "debug"]
        with serve(command=command, environment=variables, folder=str(tmp_path)) as server:
            server.initialize()
            said = [server.call("tachyon_chain_list") for _ in range(4)]
            with open(f"/proc/{server.pid}/cmdline", "rb") as cmdline:
                shown = cmdline.read().decode()
            return json.dumps(said) + server.stderr + shown

    async with HttpEngine(token=TOKEN) as engine:
        echo = json.dumps({"ok": False, "error": {"code": "X", "message": f"not {TOKEN}", "retry": False}})
        engine.on("tachyon_chain_list", status(401, echo, "application/json"), drops(), drops(), drops())
        engine.on("tachyon_chain_list", status(500, f"<p>{TOKEN}</p>"))
        seen = await asyncio.to_thread(talk, engine.url)
        assert engine.requests[-1].headers["authorization"] == f"Bearer {TOKEN}"
        assert "ENGINE_UNAUTHORIZED" in seen
        assert TOKEN not in seen


@in_loop
async def test_a_token_is_not_sent_over_plain_http_to_another_machine(tmp_path: Path) -> None:
    async with Bridged(tmp_path, "http://192.0.2.1:8645", token=TOKEN) as session:
        error = await session.error("chain_list")
        assert error["code"] in ("ENGINE_UNAUTHORIZED", "INVALID_REQUEST")
        assert "https" in error["message"]


# --- what is believed -------------------------------------------------------------------------------------

RESULT = b'{"jsonrpc":"2.0","id":$ID,"result":%s}'
CHAINS: dict[str, Any] = {"chains": []}
NO_ENGINE: dict[str, Play] = {
    "status 404": status(404, "nothing is here"),
    "status 500": status(500, "{}", "application/json"),
    "a page": sends(b"<!doctype html><html></html>", "text/html"),
    "an empty body": sends(b""),
    "no JSON": sends(b'{"jsonrpc":"2.0","id":$ID,"result":'),
    "two values": sends(RESULT % b'{"ok":true,"data":{"chains":[]}}' * 2),
    "an array": sends(b"[]"),
    "no JSON-RPC": sends(b'{"ok":true,"data":{"chains":[]}}'),
    "another version": sends(b'{"jsonrpc":"1.0","id":$ID,"result":{"ok":true,"data":{"chains":[]}}}'),
    "a wrong id": sends(b'{"jsonrpc":"2.0","id":4711,"result":{"ok":true,"data":{"chains":[]}}}'),
    "a text id": sends(b'{"jsonrpc":"2.0","id":"$ID","result":{"ok":true,"data":{"chains":[]}}}'),
    "no result": sends(b'{"jsonrpc":"2.0","id":$ID}'),
    "no ok": says({"data": CHAINS}),
    "an ok that is text": says({"ok": "true", "data": CHAINS}),
    "an ok that is a number": says({"ok": 1, "data": CHAINS}),
    "a list as data": says({"ok": True, "data": []}),
    "no data": says({"ok": True}),
    "a text as a list": says({"ok": True, "data": {"chains": "none"}}),
    "texts in a list": says({"ok": True, "data": {"chains": ["local"]}}),
    "an error that is null": says({"ok": False, "error": None}),
    "an error without a code": says({"ok": False, "error": {"message": "?"}}),
    "an error with a number as code": says({"ok": False, "error": {"code": 5, "message": "?"}}),
    "NaN": sends(RESULT % b'{"ok":true,"data":{"chains":[{"id":"a","chain_id":NaN}]}}'),
    "deep nesting": sends(
        RESULT % (b'{"ok":true,"data":{"chains":' + b"[" * 200_000 + b"]" * 200_000 + b"}}")
    ),
    "no UTF-8": sends(RESULT % b'{"ok":true,"data":{"chains":[{"id":"\xff"}]}}'),
    "no method": refuses(-32601, "there is no tachyon_chain_list"),
    "an internal error": refuses(-32603, "internal"),
    "more than 32 MiB": endless(),
}


@on_stage
async def test_what_is_no_answer_of_an_engine_is_an_error_and_the_next_call_works(stage: Stage) -> None:
    wrong = {}
    for name, play in NO_ENGINE.items():
        before = len(stage.engine.requests)
        stage.engine.on("tachyon_chain_list", play)
        found = await stage.session.envelope("chain_list")
        code = found.get("error", {}).get("code", "a success")
        if (code, len(stage.engine.requests) - before) != ("ENGINE_PROTOCOL", 1):
            wrong[name] = code, len(stage.engine.requests) - before
        assert (await stage.session.data("chain_list"))["chains"], name

    assert not wrong


@pytest.mark.parametrize(
    "data",
    [b"SSH-2.0-OpenSSH_9.9\r\n", b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\n{}"],
)
@on_stage
async def test_what_is_no_http_is_an_error(stage: Stage, data: bytes) -> None:
    stage.engine.on(ANY, raw(data))
    error = await stage.session.error("compile", sources=SOURCES)
    assert error["code"] in ("ENGINE_PROTOCOL", "ENGINE_UNAVAILABLE")
    await stage.session.data("compile", sources=SOURCES)


@pytest.mark.parametrize("number", [301, 302, 303, 307, 308])
@in_loop
async def test_redirects_are_not_followed(number: int, tmp_path: Path) -> None:
    async with HttpEngine() as engine, HttpEngine() as other, Bridged(tmp_path, engine.url) as session:
        for target in (f"{engine.url}/rpc", "/rpc", f"{other.url}/rpc"):
            engine.on(ANY, status(number, location=target))
            error = await session.error("compile", sources=SOURCES)
            assert (error["code"], error["retry"]) == ("ENGINE_PROTOCOL", False)
        assert (len(engine.requests), other.requests) == (3, [])


@pytest.mark.parametrize("number", [401, 403])
@on_stage
async def test_an_engine_that_wants_a_token_is_distinguished(stage: Stage, number: int) -> None:
    stage.engine.on(ANY, status(number, "no"))
    error = await stage.session.error("chain_list")
    assert (error["code"], error["retry"]) == ("ENGINE_UNAUTHORIZED", False)
    assert len(stage.engine.requests) == 1


@pytest.mark.parametrize("number", [429, 502, 503, 504])
@on_stage
async def test_an_engine_that_is_busy_may_be_asked_again(stage: Stage, number: int) -> None:
    stage.engine.always(ANY, status(number, "busy"))
    error = await stage.session.error("compile", sources=SOURCES)
    assert (error["code"], error["retry"]) == ("ENGINE_UNAVAILABLE", True)
    assert len(stage.engine.requests) == 1


@on_stage
async def test_parameters_that_the_engine_cannot_read_are_the_callers_fault(stage: Stage) -> None:
    stage.engine.on("tachyon_compile", refuses(-32602, "sources: what is this"))
    error = await stage.session.error("compile", sources=SOURCES)
    assert (error["code"], error["retry"]) == ("INVALID_REQUEST", False)
    assert "sources: what is this" in error["message"]


# --- an engine that goes away -----------------------------------------------------------------------------


@pytest.mark.parametrize("verb", READS)
@on_stage
async def test_reads_are_repeated_twice(stage: Stage, verb: str) -> None:
    for faults in ([drops(), loses()], [cuts()]):
        stage.engine.on(f"tachyon_{verb}", *faults)
        await stage.session.data(verb, **READS[verb])
        assert stage.engine.methods()[-len(faults) - 1 :] == [f"tachyon_{verb}"] * (len(faults) + 1)


@on_stage
async def test_what_is_lost_three_times_is_reported(stage: Stage) -> None:
    stage.engine.on("tachyon_chain_list", drops(), loses(), cuts())
    error = await stage.session.error("chain_list")
    assert (error["code"], error["retry"]) == ("ENGINE_UNAVAILABLE", True)
    assert len(stage.engine.requests) == 3
    await stage.session.data("chain_list")


@pytest.mark.parametrize("fault", [drops, loses, cuts])
@on_stage
async def test_what_does_something_is_not_repeated(stage: Stage, fault: Any) -> None:
    for verb, arguments in OTHERS.items():
        stage.engine.on(f"tachyon_{verb}", fault())
        error = await stage.session.error(verb, **arguments)
        assert (error["code"], error["retry"]) == ("ENGINE_UNAVAILABLE", True), verb
        assert len(stage.engine.asked(f"tachyon_{verb}")) == 1
        await stage.session.data(verb, **arguments)


@in_loop
async def test_an_engine_that_starts_later_is_found(tmp_path: Path) -> None:
    port = free_port()
    async with Bridged(tmp_path, f"http://127.0.0.1:{port}") as session:
        error = await session.error("compile", sources=SOURCES)
        assert (error["code"], error["retry"]) == ("ENGINE_UNAVAILABLE", True)
        assert str(port) in error["message"]
        async with HttpEngine(port=port):
            await session.data("chain_list")


OWN_CLOCK = """
import sys, types
from fastrpc.tools.contracts._bridge import connection
from fastrpc.__main__ import main
def monotonic():
    with open("clock") as file:
        return float(file.read())
connection.time = types.SimpleNamespace(monotonic=monotonic)
sys.exit(main(["serve", "fastrpc.tools.contracts"]))
"""
"""A server whose breaker has its time from a file."""


@in_loop
async def test_after_five_failures_in_a_row_it_is_not_asked_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridged, "SERVER", [sys.executable, "-c", OWN_CLOCK])
    clock = tmp_path / "clock"
    clock.write_text("1000")
    async with HttpEngine() as engine, Bridged(tmp_path, engine.url) as session:
        engine.always(ANY, drops())
        for _ in range(5):
            await session.error("compile", sources=SOURCES)
        for verb, arguments in {**READS, **OTHERS}.items():
            error = await session.error(verb, **arguments)
            assert (error["code"], error["retry"]) == ("ENGINE_UNAVAILABLE", True)
            assert "5.0 s" in error["message"]
        engine.always(ANY, None)
        clock.write_text("1004.9")
        assert "0.1 s" in (await session.error("chain_list"))["message"]
        assert len(engine.requests) == 5
        clock.write_text("1005")
        await session.data("chain_list")
        assert len(engine.requests) == 6
        engine.on(ANY, drops())  # one success has closed it: one failure is but the first
        await session.error("compile", sources=SOURCES)
        await session.data("compile", sources=SOURCES)


@in_loop
async def test_an_engine_that_is_slow_is_left_after_the_time(tmp_path: Path) -> None:
    async with HttpEngine() as engine, Bridged(tmp_path, engine.url, engine_seconds="2") as session:
        await session.data("chain_list")  # the first request takes longer than others
        engine.on("tachyon_chain_list", waits())
        assert (await session.error("chain_list"))["code"] == "ENGINE_TIMEOUT"
        _, asked = engine.requests
        await asyncio.wait_for(asked.gone.wait(), 20)
        await session.data("chain_list")


# --- calls beside each other ------------------------------------------------------------------------------


@on_stage
async def test_lists_and_lookups_do_not_wait_for_a_compile(stage: Stage) -> None:
    stage.engine.on("tachyon_compile", waits())
    compiling = asyncio.ensure_future(stage.session.data("compile", sources=SOURCES))
    await until(lambda: stage.engine.requests)
    for verb in ("chain_list", "artifact_get", "registry_lookup"):
        await stage.session.data(verb, **READS[verb])
    assert not compiling.done()
    stage.engine.release()
    await compiling


@on_stage
async def test_a_cancelled_call_closes_its_request(stage: Stage) -> None:
    stage.engine.on("tachyon_compile", waits())
    compiling = asyncio.ensure_future(stage.session.data("compile", sources=SOURCES))
    await until(lambda: stage.engine.requests)
    compiling.cancel()
    await asyncio.wait_for(stage.engine.requests[0].gone.wait(), 20)
    await stage.session.data("chain_list")


@on_stage
async def test_progress_says_phase_and_time(stage: Stage) -> None:
    stage.engine.on("tachyon_compile", waits())
    told: list[dict[str, Any]] = []
    client = stage.session.client
    running = asyncio.ensure_future(
        client.call_tool("tachyon_compile", {"sources": SOURCES}, on_progress=told.append)
    )
    await until(lambda: len(told) >= 2)
    stage.engine.release()
    await running
    assert [each["progress"] for each in told][:2] == [1, 2]
    assert all(re.search(r"compil\w*, \d+ s", each["message"]) for each in told)


# --- nothing that a caller uploads configures the engine --------------------------------------------------


@pytest.mark.parametrize(
    "path",
    ["foundry.toml", "src/foundry.toml", ".env", "remappings.txt", "lib/a/src/A.sol", "src/../../A.sol"],
)
@on_stage
async def test_sources_that_would_configure_the_engine_are_refused(stage: Stage, path: str) -> None:
    for verb in ("compile", "test"):
        error = await stage.session.error(verb, sources={**SOURCES, path: "[profile.default]\nffi = true"})
        assert error["code"] == "INVALID_REQUEST"
        assert path in error["message"]
    assert stage.engine.requests == []


@in_loop
async def test_a_project_folder_with_a_configuration_is_refused_unless_that_is_allowed(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    (project / "src").mkdir(parents=True)
    (project / "src" / "Counter.sol").write_text(COUNTER_SOURCE)
    arguments = {"project_root": str(project)}
    async with HttpEngine() as engine:
        async with Bridged(tmp_path, engine.url) as session:
            await session.data("compile", **arguments)
            (project / "foundry.toml").write_text("[profile.default]\nffi = true\n")
            for verb in ("compile", "test"):
                error = await session.error(verb, **arguments)
                assert error["code"] == "INVALID_REQUEST"
                assert "foundry.toml" in error["message"]
            assert engine.methods() == ["tachyon_compile"]
        async with Bridged(tmp_path, engine.url, "--project-config") as session:
            await session.data("compile", **arguments)
            await session.data("compile", sources={**SOURCES, "foundry.toml": "[profile.default]\n"})
        assert engine.methods() == ["tachyon_compile"] * 3

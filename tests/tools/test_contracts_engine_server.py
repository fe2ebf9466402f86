"""`fastrpc contracts engine`: the real command, asked over its wire; with real programs, and stuck ones."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from support.child_processes import is_alive
from support.contracts import needs
from support.contracts_engine import (
    BEARER,
    OTHER_TOKEN,
    STUCK,
    TOKEN,
    Engine,
    command_line,
    deployment,
    head,
    refusal_of,
    rpc,
    stuck_programs,
    token_file,
)
from support.ports import is_open
from support.process_list import below
from support.waiting import SECONDS, eventually

from fastrpc import Client

COUNTER = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

contract Counter {
    uint256 public value;
    constructor(uint256 v) { value = v; }
    function set(uint256 v) external { require(v != 13, "unlucky"); value = v; }
}
"""
COUNTER_TEST = """
// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;
import {Test} from "forge-std/Test.sol";
import {Counter} from "../src/Counter.sol";
contract CounterTest is Test {
    function test_right() external { assertEq(new Counter(7).value(), 7); }
    function test_wrong() external { assertEq(new Counter(7).value(), 8, "not eight"); }
}
"""
SOURCES = {"src/Counter.sol": COUNTER}
BIG = "123456789012345678901234567890"
LIST = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tachyon_chain_list"}).encode()

FAULTY = """
import sys
from fastrpc.tools.contracts._embedded.engine import EmbeddedEngine
from fastrpc.tools.contracts import _engine_endpoint
from fastrpc.__main__ import main

async def broken(self, given, report):
    raise KeyError("a fault of ours")

EmbeddedEngine._artifact_get = broken
_engine_endpoint.SECONDS["test"] = 0.5
sys.exit(main(sys.argv[1:]))
"""
"""The command, with a fault, and a time limit that a test can wait for."""


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The engine of most tests, with the real programs."""
    folder = tmp_path_factory.mktemp("project")
    with Engine(folder, "--token-file", token_file(folder)) as engine:
        yield engine
        programs = below(engine.pid)
        assert engine.stop() == 0
        eventually(lambda: not [pid for pid in programs if is_alive(pid)])
        assert engine.stdout == ""
        assert engine.stderr.count("\n") == 1, engine.stderr  # where it is


@pytest.fixture(scope="module")
def stuck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """One whose programs never end, and which has a fault."""
    folder = tmp_path_factory.mktemp("stuck")
    command = (sys.executable, "-c", FAULTY)
    with Engine(folder, command=command, FASTRPC_TOKEN=TOKEN, **stuck_programs(folder)) as engine:
        yield engine
        assert engine.stop(signal.SIGINT) == 0
        assert TOKEN not in engine.stderr


# --- the verbs --------------------------------------------------------------------------------------------


@needs("solc")
@needs("anvil")
def test_from_a_source_text_to_a_called_contract(engine: Engine) -> None:
    made = engine.data("compile", sources=SOURCES, project_id="p", optimize=True)
    assert [each["name"] for each in made["artifacts"]] == ["Counter"]
    got = engine.data("artifact_get", name="Counter", project_id="p", include=["abi"])["artifact"]
    assert (got["path"], "bytecode" in got) == ("src/Counter.sol", False)
    first = engine.deploy("counter-1")
    assert (first["existing"], first["receipt"]["status"]) == (False, "success")
    to = first["address"]
    done = engine.data("call", to=to, method="set", args=[BIG], value="0")
    assert done["receipt"]["status"] == "success"
    assert engine.data("call", to=to, method="value", chain_id="31337")["decoded"] == BIG
    unlucky = "0x60fe47b1" + (13).to_bytes(32, "big").hex()
    assert engine.data("simulate", to=to, data=unlucky)["revert"]["reason"] == "unlucky"
    looked = engine.data("registry_lookup", idempotency_key="counter-1", chain_id="local")
    assert (looked["found"], looked["address"], looked["confirmed"]) == (True, to, True)
    error = engine.error("call", to=to, method="set", args=["13"])
    assert (error["code"], error["retry"], error["details"]["revert"]["reason"]) == (
        "CALL_FAILED",
        False,
        "unlucky",
    )


@needs("solc")
def test_all_parts_of_large_artifacts_are_in_the_answer(engine: Engine) -> None:
    body = "".join(f"function f{n}() external pure returns (uint256) {{ return {n}; }}" for n in range(150))
    source = f"// SPDX-License-Identifier: MIT\npragma solidity ^0.8.0;\ncontract Large {{ {body} }}"
    (artifact,) = engine.data("compile", sources={"Large.sol": source}, project_id="large")["artifacts"]
    assert len(artifact["abi"]) == 150
    assert artifact["bytecode"].startswith("0x60")


@needs("solc")
@needs("forge")
def test_failed_tests_are_data_and_details(engine: Engine) -> None:
    sources = {**SOURCES, "test/Counter.t.sol": COUNTER_TEST}
    envelope = engine.envelope("test", sources=sources)
    assert (envelope["ok"], envelope["error"]["code"]) == (False, "TEST_ASSERTION_FAILED")
    assert envelope["data"] == envelope["error"]["details"]
    assert (envelope["data"]["passed"], envelope["data"]["failed"]) == (1, 1)
    assert engine.data("test", sources=sources, filter="test_right")["failed"] == 0


def test_a_registered_chain_is_listed_and_the_local_one_stays_active(engine: Engine) -> None:
    url = "https://user:secret@node.example/"
    shown = engine.data("chain_register", id="sepolia", rpc_url=url, chain_id="11155111")
    assert (shown["chain_id"], "secret" in json.dumps(shown)) == (11155111, False)
    listed = engine.data("chain_list")
    assert [each["id"] for each in listed["chains"]] == ["local", "sepolia"]
    for local in ("local", 31337, "31337"):
        assert engine.data("chain_use", chain_id=local) == listed
    error = engine.error("chain_use", chain_id="sepolia")
    assert (error["code"], "local is always the active one" in error["message"]) == ("INVALID_REQUEST", True)
    assert engine.error("chain_use", chain_id="moon")["code"] == "CHAIN_NOT_FOUND"
    for params in ({}, {"chain_id": None}, {"chain": "local"}, {"chain_id": [1]}):
        assert engine.error("chain_use", **params)["code"] == "INVALID_REQUEST"


def test_health_says_what_is_served(engine: Engine, stuck: Engine) -> None:
    found = engine.data("health")
    assert found["project_root"] == os.path.realpath(engine.folder)
    assert found["chains"][0] == "local"
    assert found["version"]
    assert stuck.data("health")["forge"] == "forge without a token"  # no program inherits it


def test_whether_it_lives_is_public_and_says_no_more(engine: Engine) -> None:
    answer = httpx.get(f"{engine.root}/healthz", trust_env=False)
    assert (answer.status_code, answer.json()) == (200, {"status": "ok"})


def test_the_tools_are_served_over_mcp_too(engine: Engine) -> None:
    with Client.sync(f"{engine.root}/mcp", token=TOKEN) as client:
        assert len(client.list_tools()) == 9
        assert '"active_chain_id":"local"' in client.call_tool("tachyon_chain_list", {}).text


def test_mistakes_are_envelopes(engine: Engine) -> None:
    envelope = engine.envelope("artifact_get", nam="A")
    assert envelope.keys() == {"ok", "error"}
    assert envelope["error"]["code"] == "INVALID_REQUEST"
    assert "did you mean name?" in envelope["error"]["message"]
    assert engine.error("health", all=True)["code"] == "INVALID_REQUEST"


# --- JSON-RPC ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("id", [0, -1, 2**70, 1.5, "a\n\U0001f600", None])
def test_the_id_comes_back_as_it_was_sent(engine: Engine, id: Any) -> None:
    answer = engine.post({"jsonrpc": "2.0", "id": id, "method": "tachyon_chain_list", "params": None})
    assert answer["id"] == id
    assert answer["result"]["ok"] is True


@pytest.mark.parametrize(
    ("body", "id", "code"),
    [
        (b"", None, -32700),
        (b"{", None, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"tachyon_chain_list","x":"\xff"}', None, -32700),
        (b'{"jsonrpc":"2.0","id":NaN,"method":"tachyon_chain_list"}', None, -32700),
        (b"[" * 200_000, None, -32700),
        (b'{"jsonrpc":"2.0","id":"\\ud83d","method":"tachyon_chain_list"}', None, -32700),
        ([{"jsonrpc": "2.0", "id": 1, "method": "tachyon_chain_list"}], None, -32600),
        ("tachyon_chain_list", None, -32600),
        ({"id": 1, "method": "tachyon_chain_list"}, None, -32600),
        ({"jsonrpc": "2.0", "method": "tachyon_chain_list"}, None, -32600),
        ({"jsonrpc": "2.0", "id": [1], "method": "tachyon_chain_list"}, None, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": 5}, 1, -32600),
        ({"jsonrpc": "2.0", "id": 1, "method": "tachyon_chain_lst"}, 1, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "chain_list"}, 1, -32601),
        ({"jsonrpc": "2.0", "id": 1, "method": "tachyon_tachyon_test"}, 1, -32601),
        ({"jsonrpc": "2.0", "id": "x", "method": "tachyon_chain_list", "params": []}, "x", -32602),
        ({"jsonrpc": "2.0", "id": "x", "method": "tachyon_chain_list", "params": "all"}, "x", -32602),
    ],
)
def test_what_is_no_request_is_an_error_of_json_rpc(engine: Engine, body: Any, id: Any, code: int) -> None:
    answer = engine.post(body)
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert "result" not in answer
    assert ("batch" in answer["error"]["message"]) is isinstance(body, list)


def test_an_unexpected_fault_is_an_envelope_and_the_next_request_is_served(stuck: Engine) -> None:
    error = stuck.error("artifact_get", name="Counter")
    assert (error["code"], error["message"]) == ("INTERNAL_ERROR", "KeyError, see the engine's log")
    assert stuck.data("chain_list")["chains"]
    eventually(lambda: "a fault of ours" in stuck.stderr)


def test_what_takes_too_long_is_ended(stuck: Engine) -> None:
    sources = {**SOURCES, "test/Counter.t.sol": COUNTER_TEST}
    error = stuck.error("test", sources=sources)
    assert (error["code"], error["message"]) == ("ENGINE_TIMEOUT", "not done after 0.5 s, and ended")
    eventually(lambda: not stuck.runs("sleep", STUCK))


# --- who may use it: all else of HTTP is that of `fastrpc serve --http` ------------------------------------


@pytest.mark.parametrize("headers", [(), (f"Authorization: Bearer {TOKEN}x",), (BEARER, BEARER)])
def test_without_its_token_a_request_is_refused_with_an_envelope_before_its_body_is_read(
    engine: Engine, headers: tuple[str, ...]
) -> None:
    with engine.socket() as client:
        client.send(head("POST /rpc HTTP/1.1", "Content-Length: 1000", *headers))
        answer = client.answer()
        assert answer.status == 401
        assert (answer.json["ok"], answer.json["data"]) == (False, None)
        assert (answer.json["error"]["code"], answer.json["error"]["retry"]) == ("INVALID_REQUEST", False)
        assert TOKEN not in answer.json["error"]["message"]
        assert answer.headers["www-authenticate"].startswith("Bearer")


@pytest.mark.parametrize("token", [TOKEN, OTHER_TOKEN])
def test_each_token_of_the_file_opens(engine: Engine, token: str) -> None:
    given = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    answer = httpx.post(engine.url, content=LIST, headers=given, trust_env=False)
    assert answer.json()["result"]["ok"] is True


@pytest.mark.parametrize(
    ("line", "host", "header", "status"),
    [
        ("POST /rpc HTTP/1.1", "rebound.example", "X: y", 421),
        ("POST /rpc HTTP/1.1", "127.0.0.1", "Origin: http://rebound.example", 403),
        ("POST /rpc HTTP/1.1", "127.0.0.1", "Sec-Fetch-Site: cross-site", 403),
        ("POST /rpc HTTP/1.1", "127.0.0.1", "Content-Type: text/plain", 415),
        ("POST /rpc HTTP/1.1", "127.0.0.1", f"Content-Length: {32 * 1024 * 1024 + 1}", 413),
        ("GET /rpc HTTP/1.1", "127.0.0.1", "X: y", 405),
    ],
)
def test_what_is_refused_is_reported_in_an_envelope(
    engine: Engine, line: str, host: str, header: str, status: int
) -> None:
    kind = () if header.startswith("Content-Type") else ("Content-Type: application/json",)
    with engine.socket() as client:
        client.send(head(line, BEARER, *kind, header, host=host))
        answer = client.answer()
        assert (answer.status, answer.json["ok"]) == (status, False)
        assert answer.json["error"]["code"] == "INVALID_REQUEST"


@pytest.mark.parametrize(
    ("options", "variables", "said"),
    [
        ([], {}, "a server needs a token"),
        (["--no-auth"], {"FASTRPC_TOKEN": TOKEN}, "--no-auth, but FASTRPC_TOKEN is set (environment)"),
        (["--no-auth", "--token-file", "x"], {}, "--no-auth and --token-file exclude each other"),
        (["--no-auth", "--http", "0.0.0.0:0"], {}, "loopback addresses only"),
        (["--token-file", "missing"], {}, "missing"),
        (["--no-auth", "--http", "8645"], {}, "8645"),
        (["--no-auth", "--cwd", "nowhere"], {}, "--cwd nowhere: No such file or directory"),
        (["--no-auth", "--drain-seconds", "-1"], {}, "--drain-seconds: expected a number of seconds"),
    ],
)
def test_it_does_not_start_without_knowing_who_may_use_it(
    tmp_path: Path, options: list[str], variables: dict[str, str], said: str
) -> None:
    line = refusal_of(*options, folder=tmp_path, **variables)
    assert said in line
    assert TOKEN not in line


# --- clients that go, work that goes on -------------------------------------------------------------------


def test_lists_and_lookups_do_not_wait_for_a_compilation(stuck: Engine) -> None:
    with stuck.socket() as client:
        client.send(rpc("compile", sources=SOURCES))
        eventually(lambda: stuck.runs("sleep", STUCK))
        assert stuck.data("chain_list")["chains"]
        looked = stuck.data("registry_lookup", idempotency_key="k", chain_id="local")
        assert looked["found"] is False
        assert stuck.data("chain_register", id="c", rpc_url="https://node.example", chain_id=5)
        assert stuck.data("health")["chains"]
        assert stuck.runs("sleep", STUCK)  # all that was beside it
        assert not client.has_more()
    eventually(lambda: not stuck.runs("sleep", STUCK))  # its client has gone, and so is it


@needs("solc")
@needs("anvil")
def test_a_deployment_goes_on_when_its_client_has_gone(engine: Engine) -> None:
    engine.data("compile", sources=SOURCES)
    engine.deploy("before")  # the chain runs, and its lock is there
    (lock,) = engine.folder.glob("state/contracts/*/broadcast-31337.lock")
    with open(lock, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with engine.socket() as client:
            client.send(rpc("deploy", **deployment("gone")))
            eventually(lambda: str(lock) in opened_by(engine.pid))  # it has begun, and waits
        assert engine.data("chain_list")["chains"]  # by now the server knows that the client has gone
        assert not engine.data("registry_lookup", idempotency_key="gone", chain_id="local")["found"]
    looked = {"idempotency_key": "gone", "chain_id": "local"}
    found = eventually(lambda: engine.data("registry_lookup", **looked)["confirmed"])
    assert found is True
    assert engine.deploy("gone")["existing"] is True


def opened_by(pid: int) -> list[str]:
    found = []
    for name in os.listdir(f"/proc/{pid}/fd"):
        try:
            found.append(os.readlink(f"/proc/{pid}/fd/{name}"))
        except OSError:
            continue
    return found


# --- the end ----------------------------------------------------------------------------------------------


@needs("solc")
@needs("anvil")
def test_no_program_outlives_it_when_it_is_killed(tmp_path: Path) -> None:
    with Engine(tmp_path, "--no-auth") as engine:
        engine.data("compile", sources=SOURCES)
        engine.data("simulate", to="0x" + "11" * 20)
        programs = below(engine.pid)
        names = " ".join(" ".join(command_line(pid)) for pid in programs)
        assert "anvil" in names
        assert engine.stop(signal.SIGKILL) == -signal.SIGKILL
        eventually(lambda: not [pid for pid in programs if is_alive(pid)])
        assert engine.stdout == ""


def test_what_the_end_cuts_off_says_so(tmp_path: Path) -> None:
    with Engine(tmp_path, "--no-auth", **stuck_programs(tmp_path)) as engine:
        found: list[dict[str, Any]] = []
        asking = threading.Thread(target=lambda: found.append(engine.error("compile", sources=SOURCES)))
        asking.start()
        programs = eventually(lambda: engine.runs("sleep", STUCK))
        engine.kill()
        eventually(lambda: not is_open(engine.port))
        engine.kill()  # the second one waits for nothing
        assert engine.wait() == 0
        asking.join(SECONDS)
        assert (found[0]["code"], found[0]["retry"]) == ("ENGINE_UNAVAILABLE", True)
        eventually(lambda: not [pid for pid in programs if is_alive(pid)])


def test_it_asks_no_other_engine_not_even_itself(tmp_path: Path) -> None:
    with Engine(tmp_path, "--no-auth", FASTRPC_CONTRACTS_ENGINE="http://127.0.0.1:9") as engine:
        assert engine.data("chain_list")["active_chain_id"] == "local"
